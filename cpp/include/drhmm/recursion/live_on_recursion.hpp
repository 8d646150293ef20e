// Steps of live sequences on Recursion.
#pragma once

#include <vector>

#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/recursion/recursion.hpp"

namespace drhmm {

template <class Operator>
class LiveStepsOf final : public LiveSteps<double> {
 public:
  LiveStepsOf(const ChainFacts& facts, const Operator& op)
      : facts_(facts),
        starts_(std::vector<Index>{1}),
        group_(starts_, &stretch_, 1),
        recursion_(facts, op, {nullptr, op.n_columns()}, {}, group_, &edges_, 8) {}

  Index stride() const override { return recursion_.stride(); }
  Index column_stride() const override { return recursion_.column_stride(); }
  void set_start(double* m) const override {
    for (Index i = 0; i < stride(); ++i) {
      m[i] = i < facts_.start.size() ? facts_.start[i] * 0x1p500 : 0.0;
    }
  }
  Status forward(const double* log_ratios, std::int64_t steps, double* m, double* w) override {
    return recursion_.step_forward(log_ratios, steps, m, w) ? Status() : recursion_.status();
  }
  void backward(const double* f, const double* w, std::int64_t dt, double* b) override {
    recursion_.step_backward(f, w, dt, b);
  }
  void set_unknown(double* b) const override { recursion_.set_unknown(b); }
  void posterior_of(const double* f, const double* b, double* out) override { recursion_.posterior_of(f, b, out); }
  bool was_hard() override {
    const bool result = recursion_.is_hard(0) || recursion_.at_floor();
    recursion_.forget_floors();
    return result;
  }

 private:
  const ChainFacts& facts_;
  Stretch stretch_{0, 0, 1, 1};
  SequenceStarts starts_;
  StretchGroup group_;
  Edges edges_;
  Recursion<double, Operator> recursion_;
};

}  // namespace drhmm
