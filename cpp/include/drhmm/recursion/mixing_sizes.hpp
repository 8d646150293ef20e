// The sizes that the recursions of mixing chains are compiled for, behind one interface.
#pragma once

#include <memory>

#include "drhmm/recursion/mixing.hpp"

namespace drhmm {

class MixingSizes {
 public:
  virtual ~MixingSizes() = default;
  // log_ratios, posteriors (T, S); false, with nothing of use written, where the general recursion is needed.
  virtual bool filter(const double* log_ratios, Index n_frames, double* posteriors) const = 0;
  virtual bool smooth(const double* log_ratios, Index n_frames, double* posteriors) const = 0;
};

namespace detail {

template <int P, bool exact>
class MixingSize : public MixingSizes {
 public:
  MixingSize(const Matrix& transmat, const Vector& startprob)
      : n_states_(startprob.size()), chain_(transmat, startprob) {}

  bool filter(const double* log_ratios, Index n_frames, double* posteriors) const override {
    return MixingRecursion<P, exact>(log_ratios, n_frames, n_states_, chain_, posteriors).filter();
  }
  bool smooth(const double* log_ratios, Index n_frames, double* posteriors) const override {
    return MixingRecursion<P, exact>(log_ratios, n_frames, n_states_, chain_, posteriors).smooth();
  }

 private:
  Index n_states_;
  MixingChain<P> chain_;
};

template <int P>
std::shared_ptr<const MixingSizes> mixing_size(const Matrix& transmat, const Vector& startprob) {
  if (startprob.size() == P) return std::make_shared<MixingSize<P, true>>(transmat, startprob);
  return std::make_shared<MixingSize<P, false>>(transmat, startprob);
}

}  // namespace detail

// Null for more states than there are sizes.
inline std::shared_ptr<const MixingSizes> mixing_sizes(const Matrix& transmat, const Vector& startprob) {
  const Index n = startprob.size();
  if (n == 2) return detail::mixing_size<2>(transmat, startprob);
  if (n == 3) return detail::mixing_size<3>(transmat, startprob);
  if (n == 4) return detail::mixing_size<4>(transmat, startprob);
  if (n <= 8) return detail::mixing_size<8>(transmat, startprob);
  if (n <= 16) return detail::mixing_size<16>(transmat, startprob);
  if (n <= 32) return detail::mixing_size<32>(transmat, startprob);
  if (n <= 64) return detail::mixing_size<64>(transmat, startprob);
  return nullptr;
}

}  // namespace drhmm
