// A Framing from numpy arrays, for the features and for the ratio stage.
#pragma once

#include "arrays.hpp"
#include "drhmm/features/frames.hpp"

namespace drhmm::bindings {

inline Framing make_framing(const Array& mean, const Array& scale, Index window, Index span = 0) {
  check_size(window, "window", 1);
  check_size(span, "span");
  require(mean.ndim() == 1 && scale.ndim() == 1 && mean.shape(0) == scale.shape(0),
          "mean and scale must be vectors of the same size");
  return {vector(mean, "mean"), vector(scale, "scale").cwiseInverse(), window, span};
}

}  // namespace drhmm::bindings
