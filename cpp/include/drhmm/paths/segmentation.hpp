// The most probable states with durations: the best segmentation, summed over the stages in its segments. (The most
// probable path of stages is something else, and far less probable than its segments.)
//
// A known state has two rows of stays: those that were seen to begin, and those at the start of a sequence or after the
// unknown. A row stores the score of beginning a stay at each step. The score of a stay is that, plus the gain of its
// age.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "drhmm/chain/chain.hpp"
#include "drhmm/chain/values.hpp"
#include "drhmm/recursion/evidence.hpp"
#include "drhmm/system/interruption.hpp"

namespace drhmm {

// States with durations.
struct StayRules {
  StageRules stages;
  Vector start;  // (C) start probabilities of columns
};

namespace detail {

// One row of stays in a state. The last age includes all older stays.
class Stays {
 public:
  // ends: the probabilities that a stay of age 1, 2, .. ends; known: that it is not interrupted
  Stays(Index state, const std::vector<double>& ends, double known, Index n_steps)
      : state_(state),
        n_young_(static_cast<Index>(ends.size()) - 1),
        leave_old_(std::log(known * ends.back())),
        go_on_old_(std::log(known * (1 - ends.back()))),
        gains_(ends.size()),
        gains_and_end_(ends.size()),
        begins_(static_cast<std::size_t>(n_steps), kNever) {
    double gain = 0;
    for (std::size_t age = 0; age < ends.size(); ++age) {  // the oldest first, as in begins_
      gains_[ends.size() - 1 - age] = gain;
      gains_and_end_[ends.size() - 1 - age] = gain + std::log(known * ends[age]);
      gain += std::log(known * (1 - ends[age]));
    }
  }

  struct Best {
    double score = kNever;
    Index since = 0;
  };

  Index state() const { return state_; }
  bool is_possible() const {
    if (old_.score > kNever) return true;
    for (Index t = now_; t >= first_young(); --t) {
      if (begins_[at(t)] + gains_[at(t + n_young_ - now_)] > kNever) return true;
    }
    return false;
  }
  Best best_to_leave() const { return best(gains_and_end_, leave_old_); }
  Best best_to_interrupt() const { return best(gains_, 0); }

  // Continues all stays to the next step, where one with the score `entry` begins.
  void advance(double entry) {
    ++now_;
    begins_[at(now_)] = entry - evidence_;
    if (now_ > 0) old_.score += go_on_old_;
    const Index since = now_ - n_young_;
    if (since < 0) return;
    const double grown = begins_[at(since)] + gains_[0];
    const bool is_better = n_young_ > 0 ? !(old_.score > grown) : grown > old_.score;
    if (is_better) old_ = {grown, since};
  }
  void weigh(double weight) {
    if (weight > kNever) {
      evidence_ += weight;
    } else {
      old_.score = kNever;
      std::fill_n(begins_.begin() + first_young(), now_ + 1 - first_young(), kNever);
    }
  }
  // Adds the evidence so far to the scores: differences of large numbers would lose digits.
  void settle() {
    old_.score += evidence_;
    for (Index t = first_young(); t <= now_; ++t) begins_[at(t)] += evidence_;
    evidence_ = 0;
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Index first_young() const { return std::max<Index>(now_ + 1 - n_young_, 0); }

  // The stay with the best sum of its begin and the gain of its age; the latest of equal ones.
  Best best(const std::vector<double>& of_age, double of_old) const {
    constexpr Index kSome = 4 * kLanes<double>;
    const double* const begins = begins_.data();
    const auto added = [&](Index t) { return of_age.data() + (t + n_young_ - now_); };
    Best found{old_.score + of_old, old_.since};
    double most = found.score;
    Index where = -1, t = first_young();
    for (; t + kSome <= now_ + 1; t += kSome) {
      Lanes<double> some = load(begins + t) + load(added(t));
      for (Index k = t + kLanes<double>; k < t + kSome; k += kLanes<double>) {
        const Lanes<double> more = load(begins + k) + load(added(k));
        some = more > some ? more : some;
      }
      if (all_below(some, most)) continue;
      for (int l = 0; l < kLanes<double>; ++l) most = std::max(most, lane_of(some, l));
      where = t;
    }
    const auto look = [&](Index from, Index to) {
      for (Index k = from; k < to; ++k) {
        if (begins[k] + *added(k) >= found.score) found = {begins[k] + *added(k), k};
      }
    };
    if (where >= 0) look(where, where + kSome);
    look(t, now_ + 1);
    found.score += evidence_;
    return found;
  }

  Index state_, n_young_;                      // all ages but the last one
  double leave_old_, go_on_old_;               // of the last age
  std::vector<double> gains_, gains_and_end_;  // by age, without and with an end now; oldest first
  std::vector<double> begins_;                 // (steps) scores of stays that begin there, without evidence_
  double evidence_ = 0;                        // of all steps so far
  Best old_;                                   // the best stay of the last age
  Index now_ = -1;
};

class Segmentation {
 public:
  // n_steps: ages beyond it are never reached
  Segmentation(const StayRules& rules, Index n_steps)
      : n_known_(rules.stages.leaving.rows()), log_leaving_(rules.stages.leaving.array().log()) {
    const StageRules& stages = rules.stages;
    const double known = 1 - stages.rate;
    for (Index i = 0, first = 0; i < n_known_; first += stages.size[static_cast<std::size_t>(i)], ++i) {
      const Index size = stages.size[static_cast<std::size_t>(i)];
      const Vector stay = stages.stay.segment(first, size);
      Vector entered = Vector::Zero(size);
      entered[0] += 1 - stages.skip[i];
      entered[size - 1] += stages.skip[i];
      for (const Vector& entry : {entered, Vector(Vector::Constant(size, 1.0 / static_cast<double>(size)))}) {
        rows_.emplace_back(i, size == 1 ? std::vector<double>{stages.leave[i]} : hazards(stay, entry, n_steps), known,
                           n_steps);
      }
      log_back_.push_back(stages.has_unknown ? std::log(stages.back.segment(first, size).sum()) : kNever);
    }
    if (stages.has_unknown) rows_.emplace_back(n_known_, std::vector<double>{1 - stages.keep}, 1, n_steps);
    log_rate_ = std::log(stages.rate);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const bool is_seen_to_begin = r % 2 == 0 && rows_[r].state() < n_known_;
      rows_[r].advance(is_seen_to_begin ? kNever : std::log(rules.start[rows_[r].state()]));
    }
  }

  void advance() {
    const auto n_rows = static_cast<std::size_t>(2 * n_known_);
    const bool has_unknown = rows_.size() > n_rows;
    entries_.assign(rows_.size(), Entry());
    const auto offer = [&](std::size_t into, std::size_t from, double score, Index since) {
      if (score > entries_[into].score) entries_[into] = {score, {from, since}};
    };
    for (std::size_t from = 0; from < n_rows; ++from) {
      const Stays::Best leaving = rows_[from].best_to_leave();
      for (Index j = 0; j < n_known_; ++j) {
        const double score = leaving.score + log_leaving_(rows_[from].state(), j);
        offer(static_cast<std::size_t>(2 * j), from, score, leaving.since);
      }
      if (!has_unknown) continue;
      const Stays::Best stopped = rows_[from].best_to_interrupt();
      offer(n_rows, from, stopped.score + log_rate_, stopped.since);
    }
    if (has_unknown) {
      const Stays::Best unknown = rows_.back().best_to_interrupt();
      for (std::size_t j = 0; j < log_back_.size(); ++j) {
        offer(2 * j + 1, n_rows, unknown.score + log_back_[j], unknown.since);
      }
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      rows_[r].advance(entries_[r].score);
      origins_.push_back(entries_[r].origin);
    }
  }

  // plain (C): plain log ratios of a step. Returns false if no state is possible.
  bool weigh(const double* plain, double& total) {
    double pivot = kNever;
    for (const Stays& row : rows_) {
      if (plain[row.state()] > pivot && row.is_possible()) pivot = plain[row.state()];
    }
    if (pivot == kNever) return false;
    for (Stays& row : rows_) row.weigh(plain[row.state()] - pivot);
    total += pivot;
    return true;
  }

  // Subtracts the best score from all scores, and adds it to the total.
  void rescale(double& total) {
    double most = kNever;
    for (const Stays& row : rows_) most = std::max(most, row.best_to_interrupt().score);
    if (most == kNever) return;
    for (Stays& row : rows_) {
      row.weigh(-most);
      row.settle();
    }
    total += most;
  }

  // Calls use(state, begin) for the segments of the best path, last one first; returns its score.
  template <class Use>
  double trace(const Use& use) const {
    Entry best;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const Stays::Best own = rows_[r].best_to_interrupt();
      if (own.score > best.score) best = {own.score, {r, own.since}};
    }
    for (Origin origin = best.origin;;) {
      use(rows_[origin.row].state(), origin.since);
      if (origin.since == 0) return best.score;
      origin = origins_[static_cast<std::size_t>(origin.since - 1) * rows_.size() + origin.row];
    }
  }

 private:
  // The row and the begin of a segment.
  struct Origin {
    std::size_t row = 0;
    Index since = 0;
  };
  struct Entry {
    double score = kNever;
    Origin origin;
  };

  // Probabilities that a stay of age 1, 2, .. ends; constant once longer stays are rare.
  static std::vector<double> hazards(const Vector& stay, const Vector& entry, Index longest) {
    constexpr double kRare = 1e-12;
    const Index n = stay.size();
    std::vector<double> ends;
    Vector stages = entry;
    while (static_cast<Index>(ends.size()) < longest) {
      ends.push_back(stages[n - 1] * (1 - stay[n - 1]) / stages.sum());
      for (Index u = n - 1; u > 0; --u) stages[u] = stages[u] * stay[u] + stages[u - 1] * (1 - stay[u - 1]);
      stages[0] *= stay[0];
      if (stages.sum() < kRare) break;
    }
    return ends;
  }

  Index n_known_;
  RowMatrix log_leaving_;         // (known, known)
  std::vector<double> log_back_;  // (known) from the unknown
  double log_rate_ = kNever;      // to the unknown
  std::vector<Stays> rows_;       // two of each known state, and the unknown
  std::vector<Origin> origins_;   // (steps - 1, rows)
  std::vector<Entry> entries_;    // (rows) of the step that is being taken
};

}  // namespace detail

// path (T): the columns of the best segmentation. A gap is that many steps without evidence, at most kLongestGap.
// log_probability (or null) <- that of the path and its evidence.
inline Status best_path(const StayRules& rules, const Evidence& evidence, Index begin, Index n_frames,
                        std::int64_t* path, double* log_probability) {
  constexpr std::int64_t kLongestGap = 10'000;
  constexpr Index kSteps = 64;  // steps between rescalings of scores
  std::vector<Index> step_of(static_cast<std::size_t>(n_frames));
  Index n_steps = 0;
  for (Index t = 0; t < n_frames; ++t) {
    n_steps += std::min(evidence.steps(begin + t), kLongestGap);
    step_of[static_cast<std::size_t>(t)] = n_steps - 1;
  }
  detail::Segmentation segmentation(rules, n_steps);
  std::vector<double> plain(static_cast<std::size_t>(evidence.n_columns));
  double total = 0;
  for (Index t = 0, step = 0; t < n_frames; ++t) {
    for (; step <= step_of[static_cast<std::size_t>(t)]; ++step) {
      if (step % kFramesBetweenChecks == 0) check_interruption();
      if (step > 0) segmentation.advance();
      if (step % kSteps == 0) segmentation.rescale(total);
    }
    std::copy_n(evidence.row(begin + t), evidence.n_columns, plain.data());
    make_plain(plain.data(), evidence.n_columns);
    for (Index c = 0; c < evidence.n_columns; ++c) {
      if (plain[static_cast<std::size_t>(c)] != plain[static_cast<std::size_t>(c)]) return {Outcome::partial_nan, t, c};
    }
    if (!segmentation.weigh(plain.data(), total)) return {Outcome::impossible, t, -1};
  }
  Index t = n_frames - 1;
  total += segmentation.trace([&](Index state, Index first) {
    for (; t >= 0 && step_of[static_cast<std::size_t>(t)] >= first; --t) path[begin + t] = state;
  });
  if (log_probability != nullptr) *log_probability = total;
  return {};
}

}  // namespace drhmm
