// Many live sequences on one model. Steps the windows, the evidence and the recursions of all of them together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drhmm/chain/chain.hpp"
#include "drhmm/features/context.hpp"
#include "drhmm/features/sample_window.hpp"
#include "drhmm/ratio/pooled_ratio.hpp"
#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/stream/watch.hpp"

namespace drhmm {

// One frame for each of several rows, in memory of the caller.
struct RowSamples {
  Index n;
  const Index* rows;       // (n)
  const double* samples;   // (n, d)
  const std::int64_t* dt;  // (n) steps since the last frame
};

class Streams {
 public:
  struct Row {
    SampleWindow window;
    LiveSequence sequence;
    bool live;
    std::optional<ContextState> past;  // if the evidence uses it
    // The alarm, and the frames of the highest evidence in the current and in the ended alarm, (kWitnesses, D).
    Watch watch;
    std::vector<double> witnesses, ended_witnesses;
  };

  // If the chain has n_known + 1 columns, the last one is the unknown. context: features of the past for the evidence,
  // or null. levels: those of an alarm for the unknown, if any.
  Streams(Framing framing, std::shared_ptr<const Chain> chain, Index n_known, Index lag,
          std::shared_ptr<const Context> context = nullptr, std::optional<AlarmLevels> levels = std::nullopt)
      : framing_(std::move(framing)),
        chain_(std::move(chain)),
        n_known_(n_known),
        lag_(lag),
        context_(std::move(context)),
        levels_(levels) {
    blocks_.emplace_back(chain_->live());
  }
  // A copy has its own scratch memory.
  Streams(const Streams& other)
      : Streams(other.framing_, other.chain_, other.n_known_, other.lag_, other.context_, other.levels_) {
    first_free_ = other.first_free_;
    rows_ = other.rows_;
  }
  Streams& operator=(Streams&&) = default;
  Streams(Streams&&) = default;

  const Framing& framing() const { return framing_; }
  const Chain& chain() const { return *chain_; }
  const Context* context() const { return context_.get(); }
  const std::optional<AlarmLevels>& levels() const { return levels_; }
  const LiveEngine& engine() const { return blocks_[0].engine; }
  Index n_known() const { return n_known_; }
  Index lag() const { return lag_; }
  Index n_rows() const { return static_cast<Index>(rows_.size()); }
  Row& row(Index i) { return rows_[static_cast<std::size_t>(i)]; }
  const Row& row(Index i) const { return rows_[static_cast<std::size_t>(i)]; }

  // Makes `add` look for retired rows from the first row again.
  void look_for_retired_rows() { first_free_ = 0; }

  // A row for a new sequence: a retired one if there is one, else a new one.
  Index add();
  void reset(Index i);
  void retire(Index i);
  void forget_rows_from(Index first);

  // The frames of the samples, (n, window * d); missing ones are NaN.
  RowMatrix frames(const RowSamples& step) const;

  // Feeds every row its evidence (n, C) and answers p(x_t-lag | y_1..y_t) over the known states, answers (n, n_known);
  // NaN for rows that have no frame t - lag yet. Either all rows advance or none; reports the first failure.
  SequenceStatus advance(const RowSamples& step, const double* evidence, int n_threads, double* answers);
  SequenceStatus advance(const RowSamples& step, const PooledRatio& ratio, int n_threads, double* answers);

  // posterior (C) <- p(x_t-back | y_1..y_t) of one row.
  Status posterior(Index i, Index back, double* out) { return row(i).sequence.posterior(engine(), back, out); }

  // The approximate number of multiplications of a recursion step of n rows.
  Index work(Index n, std::int64_t longest_gap) const {
    return n * chain_->n_states() * chain_->n_states() * (lag_ + 1) + 10 * chain_->work_to_reach(longest_gap);
  }

 private:
  // Memory for a block of rows; only one thread at a time uses it.
  struct Block {
    LiveEngine engine;
    RowMatrix frames, features;  // (k, D), (k, F)
    std::vector<char> missing;   // (k)
    Vector scratch, posterior;   // of the ratio, (C)
    SequenceStatus failure;      // the first one in the block

    explicit Block(LiveEngine own) : engine(std::move(own)) {}
  };

  Index n_columns() const { return chain_->n_columns(); }
  bool among_known(const double* posterior, double* answer) const;
  void evaluate(Block& block, const RowSamples& part, const PooledRatio& ratio, ContextState* proposed, double* out);
  SequenceStatus propose(Block& block, const RowSamples& part, const double* evidence, double* answers);
  void commit(const RowSamples& step, const double* evidence);
  template <class Task>
  SequenceStatus for_each_block(const RowSamples& step, int n_threads, const Task& task);
  void watch(Row& row, double evidence, const double* sample, std::int64_t dt) const;

  Framing framing_;
  std::shared_ptr<const Chain> chain_;
  std::vector<Block> blocks_;
  Index n_known_;
  Index lag_;
  Index first_free_ = 0;
  std::vector<Row> rows_;
  std::shared_ptr<const Context> context_;
  std::optional<AlarmLevels> levels_;
  // Memory of a step.
  std::vector<double> evidence_;        // (n, C)
  std::vector<ContextState> proposed_;  // (n) the pasts that rows have after this step
};

}  // namespace drhmm
