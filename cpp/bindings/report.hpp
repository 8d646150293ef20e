// The report of a recursion. Python turns it into an exception.
#pragma once

#include <tuple>

#include "drhmm/recursion/evidence.hpp"

namespace drhmm::bindings {

using Report = std::tuple<int, Index, Index, Index>;  // outcome, sequence, frame, column

inline Report report(const SequenceStatus& status) {
  return {static_cast<int>(status.status.outcome), status.sequence, status.status.frame, status.status.column};
}

}  // namespace drhmm::bindings
