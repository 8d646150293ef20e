// The sizes that the recursions of mixing chains are compiled for, behind one interface.
#pragma once

#include <memory>
#include <type_traits>

#include "drhmm/recursion/lane_recursion.hpp"
#include "drhmm/recursion/mixing.hpp"
#include "drhmm/recursion/row_recursion.hpp"

namespace drhmm {

class MixingSizes {
 public:
  virtual ~MixingSizes() = default;
  // log_ratios, posteriors (T, S); false, with nothing of use written, where the general recursion is needed.
  virtual bool filter(const double* log_ratios, Index n_frames, double* posteriors) const = 0;
  virtual bool smooth(const double* log_ratios, Index n_frames, double* posteriors) const = 0;
  // The same for a group of stretches; log_ratios, posteriors (N, S) hold all sequences.
  virtual Index stretches_together() const = 0;
  virtual bool filter(const double* log_ratios, const StretchGroup& group, Edges* edges, double* posteriors) const = 0;
  virtual bool smooth(const double* log_ratios, const StretchGroup& group, Edges* edges, Index warm_up,
                      double* posteriors) const = 0;
};

namespace detail {

template <int P, bool exact>
class MixingSize : public MixingSizes {
 public:
  MixingSize(const Matrix& transmat, const Vector& startprob)
      : transmat_(transmat), startprob_(startprob), chain_(transmat, startprob) {}

  bool filter(const double* log_ratios, Index n_frames, double* posteriors) const override {
    return MixingRecursion<P, exact>(log_ratios, n_frames, startprob_.size(), chain_, posteriors).filter();
  }
  bool smooth(const double* log_ratios, Index n_frames, double* posteriors) const override {
    return MixingRecursion<P, exact>(log_ratios, n_frames, startprob_.size(), chain_, posteriors).smooth();
  }
  Index stretches_together() const override { return InStretches::kWidth; }
  bool filter(const double* log_ratios, const StretchGroup& group, Edges* edges, double* posteriors) const override {
    return stretches(log_ratios, group, edges, posteriors).filter();
  }
  bool smooth(const double* log_ratios, const StretchGroup& group, Edges* edges, Index warm_up,
              double* posteriors) const override {
    return stretches(log_ratios, group, edges, posteriors).smooth(warm_up);
  }

 private:
  // Few states: one lane per stretch. Many, or one lane only: rows of states.
  static constexpr bool kFew = exact && P <= (kLanes<double> > 1 ? 16 : 8);
  using InStretches = std::conditional_t<kFew, LaneRecursion<P>, RowRecursion<P, exact>>;

  InStretches stretches(const double* log_ratios, const StretchGroup& group, Edges* edges, double* posteriors) const {
    if constexpr (kFew) {
      return {transmat_, startprob_, group, edges, log_ratios, posteriors};
    } else {
      return {chain_, startprob_.size(), group, edges, log_ratios, posteriors};
    }
  }

  Matrix transmat_;
  Vector startprob_;
  MixingChain<P> chain_;
};

// P states if there are so many, or fewer, padded.
template <int P>
std::shared_ptr<const MixingSizes> mixing_size(const Matrix& transmat, const Vector& startprob) {
  if (startprob.size() == P) return std::make_shared<MixingSize<P, true>>(transmat, startprob);
  if constexpr (P > 8) return std::make_shared<MixingSize<P, false>>(transmat, startprob);
  return nullptr;
}

}  // namespace detail

// Null for one state, and for more states than there are sizes.
inline std::shared_ptr<const MixingSizes> mixing_sizes(const Matrix& transmat, const Vector& startprob) {
  const Index n = startprob.size();
  switch (n) {
    case 2:
      return detail::mixing_size<2>(transmat, startprob);
    case 3:
      return detail::mixing_size<3>(transmat, startprob);
    case 4:
      return detail::mixing_size<4>(transmat, startprob);
    case 5:
      return detail::mixing_size<5>(transmat, startprob);
    case 6:
      return detail::mixing_size<6>(transmat, startprob);
    case 7:
      return detail::mixing_size<7>(transmat, startprob);
    case 8:
      return detail::mixing_size<8>(transmat, startprob);
    default:
      break;
  }
  if (n >= 9 && n <= 16) return detail::mixing_size<16>(transmat, startprob);
  if (n >= 9 && n <= 32) return detail::mixing_size<32>(transmat, startprob);
  if (n >= 9 && n <= 64) return detail::mixing_size<64>(transmat, startprob);
  return nullptr;
}

}  // namespace drhmm
