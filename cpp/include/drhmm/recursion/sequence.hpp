// One whole sequence, piece by piece: forward with a checkpoint before each piece, then backward. Pieces where double
// loses too much are repeated in Scaled.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "drhmm/recursion/ranges.hpp"
#include "drhmm/recursion/recursion.hpp"
#include "drhmm/recursion/wide.hpp"
#include "drhmm/system/interruption.hpp"

namespace drhmm {

namespace detail {

// The pieces of a sequence in double.
template <class Operator>
class Pieces {
 public:
  // is_kept: whether a backward pass follows
  Pieces(const ChainFacts& facts, const Operator& op, const Evidence& evidence, const Answers& answers,
         const StretchGroup& group, Index piece, bool is_kept)
      : recursion(facts, op, evidence, answers, group, &edges_,
                  is_kept ? std::min(piece, rounded(group.n_steps())) : kBlock),
        n_frames_(group.n_steps()),
        piece_(piece),
        is_kept_(is_kept) {}

  Recursion<double, Operator> recursion;

  Index stride() const { return recursion.stride(); }

  // m: the message before piece k -> that of its last frame. Adds the log likelihood of the piece to gain.
  bool forward(Index k, std::vector<double>& m, double& gain, bool is_filtered = false) {
    check_interruption();
    const double before = k == 0 ? recursion.level_of_start() : recursion.level_of(m.data());
    for (Index first = k * piece_; first < end(k); first += kBlock) {
      const Index count = std::min(kBlock, end(k) - first), place = is_kept_ ? first - k * piece_ : 0;
      if (!recursion.forward(first, count, place, m.data())) return false;
      if (is_filtered) recursion.write_filtered(first, count, place);
    }
    gain += recursion.level_of(m.data()) - before;
    return true;
  }

  // b: the backward message at the end of piece k -> that of the frame before it, whose forward message is `before`.
  void backward(Index k, std::vector<double>& b, const std::vector<double>& before) {
    for (Index first = (end(k) - 1) / kBlock * kBlock; first >= k * piece_; first -= kBlock) {
      const Index place = first - k * piece_;
      const double* earlier = k > 0 ? before.data() : nullptr;
      if (place > 0) earlier = recursion.messages + (place - 1) * stride();
      recursion.backward(first, std::min(kBlock, end(k) - first), place, b.data(), earlier, true);
    }
  }

 private:
  static Index rounded(Index n) { return (n + kBlock - 1) / kBlock * kBlock; }
  Index end(Index k) const { return std::min((k + 1) * piece_, n_frames_); }

  Edges edges_;
  Index n_frames_, piece_;
  bool is_kept_;
};

}  // namespace detail

template <class Operator>
class SequenceRecursion {
 public:
  using MakeWide = std::function<std::unique_ptr<WideSteps>()>;

  // answers.log_likelihoods: of this sequence only
  SequenceRecursion(Pass pass, const ChainFacts& facts, const Operator& op, MakeWide make_wide,
                    const Evidence& evidence, const Answers& answers, const StretchGroup& group)
      : facts_(facts),
        make_wide_(std::move(make_wide)),
        evidence_(evidence),
        answers_(answers),
        group_(group),
        is_smoothed_(pass == Pass::smooth && answers.posteriors != nullptr),
        piece_(std::max<Index>(kRemembered / (op.template stride<double>() + op.n_columns()) / 64 * 64, 64)),
        n_pieces_((group.n_steps() + piece_ - 1) / piece_),
        narrow_(facts, op, evidence, answers, group, piece_, is_smoothed_),
        gains_(static_cast<std::size_t>(n_pieces_), 0.0) {}

  Status run() {
    const Status status = is_smoothed_ ? smooth() : filter();
    if (status.ok() && answers_.log_likelihoods != nullptr) {
      double total = 0;
      for (const double gain : gains_) total += gain;
      *answers_.log_likelihoods = total;
    }
    return status;
  }

 private:
  static constexpr Index kRemembered = Index{1} << 19;  // numbers; a sequence that needs more goes forward twice
  using Message = std::vector<double>;
  using WideMessage = std::vector<Scaled>;

  Message unknown() const {
    Message m(static_cast<std::size_t>(narrow_.stride()));
    narrow_.recursion.set_unknown(m.data());
    return m;
  }

  // No backward pass verifies floors: pieces with an entry at the floor are repeated in Scaled.
  Status filter() {
    const bool is_written = answers_.posteriors != nullptr;
    Message m = unknown();
    WideMessage wide;  // the message, unless it is empty
    for (Index k = 0; k < n_pieces_; ++k) {
      double& gain = gains_[static_cast<std::size_t>(k)];
      if (wide.empty() && !facts_.needs_scaled()) {
        const Message before = m;
        const bool is_possible = narrow_.forward(k, m, gain, is_written);
        if (!narrow_.recursion.at_floor() && !narrow_.recursion.is_hard(0)) {
          if (!is_possible) return narrow_.recursion.status();
          continue;
        }
        narrow_.recursion.forget_floors();
        m = before;
      }
      if (!wide_) make_wide();
      if (wide.empty()) wide = widened(m, wide_->stride());
      gain = 0;
      if (const Status status = wide_->forward(k, wide, gain, is_written); !status.ok()) return status;
      m = narrowed(wide, narrow_.stride());
      if (is_clean(m)) wide.clear();
    }
    return {};
  }

  Status smooth() {
    const Index last = n_pieces_ - 1;
    if (facts_.needs_scaled()) return smooth_in_scaled(0, last, unknown(), back_);
    Message m = unknown();
    for (Index k = 0; k <= last; ++k) {
      checkpoints_.push_back(m);
      const bool is_possible = narrow_.forward(k, m, gains_[static_cast<std::size_t>(k)]);
      if (!is_possible && !narrow_.recursion.is_hard(0)) return narrow_.recursion.status();
      if (narrow_.recursion.is_hard(0)) {  // no state was possible, or evidence or a gap does not fit in double
        back_ = unknown();
        return smooth_in_scaled(0, last, unknown(), back_);
      }
    }
    back_ = unknown();
    Index clean_end = last;  // answers up to this piece do not depend on later floors
    Message clean_back = back_;
    double unused = 0;
    for (Index k = last; k >= 0; --k) {
      const Message& before = checkpoints_[static_cast<std::size_t>(k)];
      if (k < last) {
        m = before;
        narrow_.forward(k, m, unused);
      }
      narrow_.backward(k, back_, before);
      if (narrow_.recursion.is_hard(0)) {
        while (!is_clean(checkpoints_[static_cast<std::size_t>(k)]) && k > 0) --k;
        narrow_.recursion.forget_floors();
        narrow_.recursion.forget_counts();
        back_ = clean_back;
        const Status status = smooth_in_scaled(k, clean_end, checkpoints_[static_cast<std::size_t>(k)], back_);
        if (!status.ok()) return status;
      }
      if (is_clean(back_)) {
        clean_end = k - 1;
        clean_back = back_;
        if (answers_.counts != nullptr) narrow_.recursion.accept_counts();
      }
    }
    return {};
  }

  // Smooths pieces first..last from the message `before` them; back: the backward message after -> before them.
  Status smooth_in_scaled(Index first, Index last, const Message& before, Message& back) {
    if (!wide_) make_wide();
    std::vector<WideMessage> checkpoints;
    WideMessage m = widened(before, wide_->stride());
    for (Index k = first; k <= last; ++k) {
      checkpoints.push_back(m);
      double& gain = gains_[static_cast<std::size_t>(k)] = 0;
      if (const Status status = wide_->forward(k, m, gain); !status.ok()) return status;
    }
    WideMessage b = widened(back.empty() ? unknown() : back, wide_->stride());
    double unused = 0;
    for (Index k = last; k >= first; --k) {
      const WideMessage& own = checkpoints[static_cast<std::size_t>(k - first)];
      if (k < last) {
        m = own;
        wide_->forward(k, m, unused);
      }
      wide_->backward(k, b, own);
    }
    if (answers_.counts != nullptr) wide_->add_counts();
    back = narrowed(b, narrow_.stride());
    return {};
  }

  void make_wide() {
    wide_ = std::make_unique<WidePieces>(make_wide_(), evidence_, answers_, group_[0].from, group_.n_steps(), piece_);
  }

  const ChainFacts& facts_;
  MakeWide make_wide_;
  const Evidence evidence_;
  const Answers answers_;
  const StretchGroup& group_;
  bool is_smoothed_;
  Index piece_, n_pieces_;
  detail::Pieces<Operator> narrow_;
  std::unique_ptr<WidePieces> wide_;
  std::vector<double> gains_;
  std::vector<Message> checkpoints_;
  Message back_;
};

}  // namespace drhmm
