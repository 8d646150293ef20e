// A recursion in Scaled, frame by frame: for sequences whose messages leave the range of double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "drhmm/recursion/facts.hpp"
#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/system/interruption.hpp"

namespace drhmm {

// Steps in Scaled, and the counts and likelihoods of batch inference.
class WideSteps : public LiveSteps<Scaled> {
 public:
  // Counts the transitions into the frame of the last call of `backward`.
  virtual void count(const Scaled* before,      // (states) the forward message of the frame before
                     const Scaled* back) = 0;   // (states) the b that `backward` returned
  virtual void add_counts(double* counts) = 0;  // counts (C, C) += the counted transitions
  // The log of the total divisor of forward messages.
  double log_scale() const { return pivots_ + kLog2 * static_cast<double>(exponents_); }

 protected:
  static constexpr double kLog2 = 0.6931471805599453;

  double pivots_ = 0;
  std::int64_t exponents_ = 0;
};

template <class Operator>
class Wide final : public WideSteps {
 public:
  Wide(const ChainFacts& facts, const Operator& op)
      : facts_(facts), op_(op), one_(room(stride())), weighed_(one_), reach_(room(n_columns())), row_(reach_.size()) {}

  Index stride() const override { return op_.template stride<Scaled>(); }
  Index column_stride() const override { return op_.template column_stride<Scaled>(); }
  void set_start(Scaled* m) const override {
    for (Index i = 0; i < stride(); ++i) m[i] = i < n_states() ? Scaled(facts_.start[i]) : Scaled(0);
  }
  void set_unknown(Scaled* b) const override {
    for (Index i = 0; i < stride(); ++i) b[i] = i < n_states() ? Scaled(1) : Scaled(0);
  }

  Status forward(const double* log_ratios, std::int64_t steps, Scaled* m, Scaled* w) override {
    advance<true>(steps, m);
    Status status;
    double pivot = 0;
    bool unused = false;
    op_.by_column(m, reach_.data());
    status.outcome = weights_of_reachable(log_ratios, n_columns(), reach_.data(), facts_.is_mixing, 0.0, w, row_.data(),
                                          pivot, status.column, unused);
    if (!status.ok()) return status;
    std::fill(w + n_columns(), w + column_stride(), Scaled(0));
    op_.weigh(m, w);
    pivots_ += pivot;
    exponents_ += rescale(m);
    return status;
  }

  void backward(const Scaled* f, const Scaled* w, std::int64_t dt, Scaled* b) override {
    // As in MessageRange::drop_unreachable.
    for (Index i = 0; i < n_states() && !facts_.is_mixing; ++i) {
      if (!(f[i] > Scaled(0))) b[i] = Scaled(0);
    }
    rescale(b);
    op_.weigh(b, w);
    copy_values(b, stride(), weighed_.data());
    advance<false>(dt, b);
  }

  void posterior_of(const Scaled* f, const Scaled* b, double* out) override {
    for (Index i = 0; i < n_states(); ++i) one_[at(i)] = b == nullptr ? f[i] : f[i] * b[i];
    op_.by_column(one_.data(), reach_.data());
    Scaled sum = reach_[0];
    for (Index c = 1; c < n_columns(); ++c) sum += reach_[at(c)];
    for (Index c = 0; c < n_columns(); ++c) out[c] = double(reach_[at(c)] / sum);
  }
  bool was_hard() override { return false; }

  void count(const Scaled* before, const Scaled* back) override {
    if (sums_.empty()) sums_.resize(static_cast<std::size_t>(op_.n_counts()));
    Scaled total = before[0] * back[0];
    for (Index i = 1; i < n_states(); ++i) total += before[i] * back[i];
    for (Index i = 0; i < n_states(); ++i) one_[at(i)] = before[i] / total;
    op_.count(one_.data(), weighed_.data(), sums_.data());
  }
  void add_counts(double* counts) override {
    op_.for_each_count([&](Index k, Index i, Index j, double factor) {
      if (factor == 0 || sums_.empty()) return;  // the sum of an impossible transition may be infinite
      counts[i * n_columns() + j] += double(sums_[at(k)] * Scaled(factor));
    });
    sums_.clear();
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static std::vector<Scaled> room(Index n) { return std::vector<Scaled>(at(n)); }
  Index n_states() const { return op_.n_states(); }
  Index n_columns() const { return op_.n_columns(); }

  // m <- (A^dt)^T m, or A^dt m.
  template <bool is_forward>
  void advance(std::int64_t dt, Scaled* m) {
    if (dt == 1) {
      is_forward ? op_.forward(m, one_.data()) : op_.backward(m, one_.data());
      copy_values(one_.data(), stride(), m);
    } else if (dt > 1) {
      facts_.scaled_powers->template advance<is_forward>(dt, m, one_.data());
    }
  }

  // Brings the largest entry to [1, 2); returns its exponent before.
  std::int64_t rescale(Scaled* m) const {
    Scaled most(0);
    for (Index i = 0; i < n_states(); ++i) most = most < m[i] ? m[i] : most;
    for (Index i = 0; i < n_states(); ++i) m[i] = m[i].times_power_of_two(-most.exponent());
    return most.exponent();
  }

  const ChainFacts& facts_;
  const Operator& op_;
  std::vector<Scaled> one_, weighed_;  // (stride); weighed_: w(t) .* b(t)
  std::vector<Scaled> reach_;          // (C)
  std::vector<double> row_;            // (C)
  std::vector<Scaled> sums_;           // (counts)
};

// The pieces of one sequence in Scaled; names as in detail::Pieces.
class WidePieces {
 public:
  WidePieces(std::unique_ptr<WideSteps> steps, const Evidence& evidence, const Answers& answers, Index begin,
             Index n_frames, Index piece)
      : steps_(std::move(steps)),
        evidence_(evidence),
        answers_(answers),
        begin_(begin),
        n_frames_(n_frames),
        piece_(piece),
        messages_(static_cast<std::size_t>(std::min(piece, n_frames) * stride())),
        weights_(static_cast<std::size_t>(std::min(piece, n_frames) * steps_->column_stride())) {}

  Index stride() const { return steps_->stride(); }

  Status forward(Index k, std::vector<Scaled>& m, double& gain, bool is_filtered = false) {
    check_interruption();
    const double before = k == 0 ? steps_->log_scale() : level(m);
    for (Index t = k * piece_; t < end(k); ++t) {
      if (t == 0) steps_->set_start(m.data());
      Status status = steps_->forward(evidence_.row(begin_ + t), evidence_.steps(begin_ + t) - (t == 0 ? 1 : 0),
                                      m.data(), weights(t));
      if (!status.ok()) return status.frame = begin_ + t, status;
      copy_values(m.data(), stride(), message(t));
      if (is_filtered) steps_->posterior_of(m.data(), nullptr, posterior(t));
    }
    gain += level(m) - before;
    return {};
  }

  void backward(Index k, std::vector<Scaled>& b, const std::vector<Scaled>& before) {
    for (Index t = end(k) - 1; t >= k * piece_; --t) {
      steps_->posterior_of(message(t), b.data(), posterior(t));
      if (t == 0) return steps_->set_unknown(b.data());  // nothing is before the start of a sequence
      steps_->backward(message(t), weights(t), evidence_.steps(begin_ + t), b.data());
      const Scaled* const earlier = t > k * piece_ ? message(t - 1) : before.data();
      if (answers_.counts != nullptr) steps_->count(earlier, b.data());
    }
  }

  void add_counts() { steps_->add_counts(answers_.counts); }

 private:
  Index end(Index k) const { return std::min((k + 1) * piece_, n_frames_); }
  Scaled* message(Index t) { return messages_.data() + t % piece_ * stride(); }
  Scaled* weights(Index t) { return weights_.data() + t % piece_ * steps_->column_stride(); }
  double* posterior(Index t) const { return answers_.posteriors + (begin_ + t) * evidence_.n_columns; }
  double level(const std::vector<Scaled>& m) const {
    return steps_->log_scale() + sum(m.data(), static_cast<Index>(m.size())).log();
  }

  std::unique_ptr<WideSteps> steps_;
  const Evidence evidence_;
  const Answers answers_;
  Index begin_, n_frames_, piece_;
  std::vector<Scaled> messages_, weights_;  // (piece, stride), (piece, column stride)
};

}  // namespace drhmm
