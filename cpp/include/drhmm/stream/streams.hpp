// Many live sequences on one model. Steps the windows, the evidence and the recursions of all of them together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "drhmm/features/context.hpp"
#include "drhmm/features/sample_window.hpp"
#include "drhmm/parallel.hpp"
#include "drhmm/ratio/pooled_ratio.hpp"
#include "drhmm/recursion/chain.hpp"

namespace drhmm {

// One frame for each of several rows: samples (k, d) and the steps since the last frame, dt (k).
struct RowSamples {
  std::vector<Index> rows;
  RowMatrix samples;
  std::vector<std::int64_t> dt;

  Index size() const { return static_cast<Index>(rows.size()); }
};

class Streams {
 public:
  struct Row {
    SampleWindow window;
    LiveSequence sequence;
    bool live;
    // Evidence for the unknown of the newest frame; NaN where there is none.
    double unknown = std::numeric_limits<double>::quiet_NaN();
    std::optional<ContextState> past;  // if the evidence looks at it
  };

  // If the chain has n_known + 1 columns, the last one is the unknown. context: what evidence sees of the past, or
  // null.
  Streams(Framing framing, std::shared_ptr<const Chain> chain, Index n_known, Index lag,
          std::shared_ptr<const Context> context = nullptr)
      : framing_(std::move(framing)),
        chain_(std::move(chain)),
        n_known_(n_known),
        lag_(lag),
        context_(std::move(context)) {
    engines_.push_back(chain_->live());
  }
  // A copy has its own scratch memory.
  Streams(const Streams& other) : Streams(other.framing_, other.chain_, other.n_known_, other.lag_, other.context_) {
    first_free_ = other.first_free_;
    rows_ = other.rows_;
  }
  Streams& operator=(Streams&&) = default;
  Streams(Streams&&) = default;

  const Framing& framing() const { return framing_; }
  const Chain& chain() const { return *chain_; }
  const Context* context() const { return context_.get(); }
  const LiveEngine& engine() const { return engines_[0]; }
  Index n_known() const { return n_known_; }
  Index lag() const { return lag_; }
  Index n_rows() const { return static_cast<Index>(rows_.size()); }
  Row& row(Index i) { return rows_[static_cast<std::size_t>(i)]; }
  const Row& row(Index i) const { return rows_[static_cast<std::size_t>(i)]; }

  // `add` remembers up to which row it found no retired one. This makes it start over.
  void look_for_retired_rows() { first_free_ = 0; }

  // A row for a new sequence: a retired one if there is one, else a new one.
  Index add() {
    for (; first_free_ < n_rows(); ++first_free_) {
      if (!row(first_free_).live) {
        row(first_free_).live = true;
        return first_free_++;
      }
    }
    rows_.push_back({SampleWindow(framing_), LiveSequence(chain_->n_columns(), lag_), true,
                     std::numeric_limits<double>::quiet_NaN(), std::nullopt});
    if (context_) rows_.back().past.emplace(*context_);
    return first_free_++;
  }

  void reset(Index i) {
    row(i).window.clear();
    row(i).sequence.clear();
    if (row(i).past) row(i).past->clear();
    row(i).unknown = std::numeric_limits<double>::quiet_NaN();
  }

  void retire(Index i) {
    reset(i);
    row(i).live = false;
    first_free_ = std::min(first_free_, i);
  }

  // Removes the rows that were added last. The others stay.
  void forget_rows_from(Index first) {
    rows_.erase(rows_.begin() + first, rows_.end());
    first_free_ = std::min(first_free_, first);
  }

  // frames (k, window * d) <- the frames of the samples. Missing ones are marked and filled with zeros.
  void frames(const RowSamples& step, RowMatrix& frames, std::vector<char>& missing) const {
    frames.resize(step.size(), framing_.frame_size());
    missing.resize(step.rows.size());
    for (Index k = 0; k < step.size(); ++k) {
      const auto place = static_cast<std::size_t>(k);
      const SampleWindow& window = row(step.rows[place]).window;
      missing[place] = !window.frame(framing_, step.samples.row(k).data(), step.dt[place], frames.row(k).data());
    }
  }

  // features (k, F) <- the context of the samples; nothing if evidence does not look at it. The rows stay as they are
  // until `advance`.
  void contexts(const RowSamples& step, RowMatrix& features) {
    if (!context_) return;
    features.resize(step.size(), context_->size());
    proposed_.clear();
    for (Index k = 0; k < step.size(); ++k) {
      const auto place = static_cast<std::size_t>(k);
      proposed_.push_back(*row(step.rows[place]).past);
      proposed_.back().push(*context_, step.samples.row(k).data(), step.dt[place]);
      proposed_.back().features(*context_, features.row(k).data());
    }
  }

  // Feeds every row its evidence (k, S) and answers p(x_t-lag | y_1..y_t) over the known states, answers (k, n_known);
  // NaN for rows that have no frame t - lag yet. Either all rows advance or none; reports the first failure.
  SequenceStatus advance(const RowSamples& step, const ConstRows& evidence, int n_threads, Rows answers) {
    constexpr Index kBlock = 256;
    const Index n_blocks = (step.size() + kBlock - 1) / kBlock;
    while (static_cast<Index>(engines_.size()) < n_blocks) engines_.push_back(chain_->live());
    std::vector<Status> statuses(step.rows.size());
    parallel_for(n_blocks, n_threads, [&](Index block) {
      const LiveEngine& engine = engines_[static_cast<std::size_t>(block)];
      Vector posterior(n_columns());
      for (Index k = block * kBlock; k < std::min((block + 1) * kBlock, step.size()); ++k) {
        const auto place = static_cast<std::size_t>(k);
        bool has_answer = false;
        statuses[place] =
            row(step.rows[place])
                .sequence.propose(engine, evidence.row(k).data(), step.dt[place], posterior.data(), has_answer);
        if (!statuses[place].ok()) continue;
        if (has_answer) {
          if (!among_known(posterior.data(), answers.row(k).data())) statuses[place].outcome = Outcome::none_known;
        } else {
          answers.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
        }
      }
    });
    for (std::size_t k = 0; k < statuses.size(); ++k) {
      if (!statuses[k].ok()) return {statuses[k], static_cast<Index>(k)};
    }
    for (Index k = 0; k < step.size(); ++k) {
      const auto place = static_cast<std::size_t>(k);
      Row& target = row(step.rows[place]);
      target.window.push(framing_, step.samples.row(k).data(), step.dt[place]);
      if (context_) std::swap(*target.past, proposed_[place]);
      target.sequence.commit(engine());
      if (n_known_ < n_columns()) target.unknown = evidence(k, n_known_);
    }
    return {};
  }

  // The same for the only row, whose sample (d) becomes evidence by the ratio: answer (n_known).
  Status advance_one(const PooledRatio& ratio, const double* sample, std::int64_t dt, double* answer,
                     bool& has_answer) {
    Row& only = row(0);
    frame_.resize(static_cast<std::size_t>(framing_.frame_size()));
    scratch_.resize(ratio.scratch_size());
    evidence_.resize(static_cast<std::size_t>(n_columns()));
    posterior_.resize(static_cast<std::size_t>(n_columns()));
    const bool complete = only.window.frame(framing_, sample, dt, frame_.data());
    if (context_) {
      if (proposed_.empty()) proposed_.emplace_back(*context_);
      proposed_[0] = *only.past;
      proposed_[0].push(*context_, sample, dt);
      features_.resize(static_cast<std::size_t>(context_->size()));
      proposed_[0].features(*context_, features_.data());
    }
    ratio.log_ratios_of_one(frame_.data(), !complete, features_.data(), scratch_.data(), evidence_.data(), n_columns());
    const Status status = only.sequence.propose(engine(), evidence_.data(), dt, posterior_.data(), has_answer);
    if (!status.ok()) return status;
    if (has_answer && !among_known(posterior_.data(), answer))
      return {Outcome::none_known, status.frame, status.column};
    only.window.push(framing_, sample, dt);
    if (context_) std::swap(*only.past, proposed_[0]);
    only.sequence.commit(engine());
    if (n_known_ < n_columns()) only.unknown = evidence_[static_cast<std::size_t>(n_known_)];
    return status;
  }

  // posterior (C) <- p(x_t-back | y_1..y_t) of one row.
  Status posterior(Index i, Index back, double* out) { return row(i).sequence.posterior(engine(), back, out); }

  // The approximate number of multiplications of a recursion step of n rows.
  Index work(Index n, std::int64_t longest_gap) const {
    return n * chain_->n_states() * chain_->n_states() * (lag_ + 1) + 10 * chain_->work_to_reach(longest_gap);
  }

 private:
  // answer (n_known) <- posterior (S), given that the state is a known one; false if their total is 0.
  bool among_known(const double* posterior, double* answer) const {
    constexpr double kSmallest = 1e-290;
    double known = 1;
    if (n_known_ < n_columns()) known = std::accumulate(posterior, posterior + n_known_, 0.0);
    for (Index i = 0; i < n_known_; ++i) answer[i] = posterior[i] / known;
    return known >= kSmallest;
  }

  Index n_columns() const { return chain_->n_columns(); }

  Framing framing_;
  std::shared_ptr<const Chain> chain_;
  std::vector<LiveEngine> engines_;  // one per block of rows; only one thread at a time uses an engine
  Index n_known_;
  Index lag_;
  Index first_free_ = 0;
  std::vector<Row> rows_;
  std::vector<double> frame_, features_, scratch_, evidence_, posterior_;  // memory of advance_one
  std::shared_ptr<const Context> context_;
  std::vector<ContextState> proposed_;  // the pasts that rows have after this step
};

// out (k, S) <- log ratios of frames (k, D) and of the features of their context (k, F), block by block.
inline void streamed_log_ratios(const PooledRatio& ratio, const RowMatrix& frames, const std::vector<char>& missing,
                                const RowMatrix& features, int n_threads, Rows out) {
  constexpr Index kBlock = 128;
  if (frames.rows() <= kBlock) {
    ratio.frame_log_ratios(frames, missing, features, 0, out);
    return;
  }
  parallel_for((frames.rows() + kBlock - 1) / kBlock, n_threads, [&](Index block) {
    const Index first = block * kBlock;
    const Index count = std::min(kBlock, frames.rows() - first);
    const auto begin = missing.begin() + first;
    const RowMatrix own = features.size() > 0 ? features.middleRows(first, count) : RowMatrix();
    ratio.frame_log_ratios(frames.middleRows(first, count), {begin, begin + count}, own, first, out);
  });
}

}  // namespace drhmm
