// Live sequences: their steps, and their state as plain numbers.
#include "drhmm/stream/streams.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "drhmm/stream/snapshot.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

Index Streams::add() {
  for (; first_free_ < n_rows(); ++first_free_) {
    if (!row(first_free_).live) {
      row(first_free_).live = true;
      return first_free_++;
    }
  }
  rows_.push_back({SampleWindow(framing_), LiveSequence(chain_->n_columns(), lag_), true, std::nullopt, {}, {}, {}});
  if (context_) rows_.back().past.emplace(*context_);
  return first_free_++;
}

void Streams::reset(Index i) {
  row(i).window.clear();
  row(i).sequence.clear();
  if (row(i).past) row(i).past->clear();
  row(i).watch = {};
}

void Streams::retire(Index i) {
  reset(i);
  row(i).live = false;
  first_free_ = std::min(first_free_, i);
}

void Streams::forget_rows_from(Index first) {
  rows_.erase(rows_.begin() + first, rows_.end());
  first_free_ = std::min(first_free_, first);
}

RowMatrix Streams::frames(const RowSamples& step) const {
  RowMatrix frames(step.n, framing_.frame_size());
  for (Index k = 0; k < step.n; ++k) {
    const SampleWindow& window = row(step.rows[k]).window;
    const double* const sample = step.samples + k * framing_.n_columns();
    if (!window.frame(framing_, sample, step.dt[k], frames.row(k).data())) {
      frames.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return frames;
}

// Calls task(block, part, first) for the rows from `first` on in each block, and returns the first failure.
template <class Task>
SequenceStatus Streams::for_each_block(const RowSamples& step, int n_threads, const Task& task) {
  constexpr Index kBlock = 128;
  const Index n_blocks = (step.n + kBlock - 1) / kBlock;
  while (static_cast<Index>(blocks_.size()) < n_blocks) blocks_.emplace_back(chain_->live());
  parallel_for(n_blocks, n_threads, [&](Index number) {
    Block& block = blocks_[static_cast<std::size_t>(number)];
    const Index first = number * kBlock;
    const RowSamples part{std::min(kBlock, step.n - first), step.rows + first,
                          step.samples + first * framing_.n_columns(), step.dt + first};
    block.failure = task(block, part, first);
    block.failure.sequence += first;
  });
  for (Index number = 0; number < n_blocks; ++number) {
    const SequenceStatus& failure = blocks_[static_cast<std::size_t>(number)].failure;
    if (!failure.status.ok()) return failure;
  }
  return {};
}

SequenceStatus Streams::advance(const RowSamples& step, const PooledRatio& ratio, int n_threads, double* answers) {
  evidence_.resize(static_cast<std::size_t>(step.n * n_columns()));
  while (context_ && static_cast<Index>(proposed_.size()) < step.n) proposed_.emplace_back(*context_);
  const auto task = [&](Block& block, const RowSamples& part, Index first) {
    double* const own = evidence_.data() + first * n_columns();
    evaluate(block, part, ratio, proposed_.data() + first, own);
    return propose(block, part, own, answers + first * n_known_);
  };
  const SequenceStatus status = for_each_block(step, n_threads, task);
  if (status.status.ok()) commit(step, evidence_.data());
  return status;
}

SequenceStatus Streams::advance(const RowSamples& step, const double* evidence, int n_threads, double* answers) {
  const auto task = [&](Block& block, const RowSamples& part, Index first) {
    return propose(block, part, evidence + first * n_columns(), answers + first * n_known_);
  };
  const SequenceStatus status = for_each_block(step, n_threads, task);
  if (status.status.ok()) commit(step, evidence);
  return status;
}

// evidence (k, C) <- that of the samples; proposed (k) <- the pasts after them, if the ratio has a context.
void Streams::evaluate(Block& block, const RowSamples& part, const PooledRatio& ratio, ContextState* proposed,
                       double* evidence) {
  block.frames.resize(part.n, framing_.frame_size());
  block.missing.resize(static_cast<std::size_t>(part.n));
  block.scratch.resize(ratio.scratch_size(part.n));
  if (context_) block.features.resize(part.n, context_->size());
  for (Index k = 0; k < part.n; ++k) {
    const Row& own = row(part.rows[k]);
    const double* const sample = part.samples + k * framing_.n_columns();
    const bool complete = own.window.frame(framing_, sample, part.dt[k], block.frames.row(k).data());
    block.missing[static_cast<std::size_t>(k)] = !complete;
    if (!context_) continue;
    proposed[k] = *own.past;
    proposed[k].push(*context_, sample, part.dt[k]);
    proposed[k].features(*context_, block.features.row(k).data());
  }
  ratio.frame_log_ratios(block.frames.data(), block.missing.data(), block.features.data(), part.n, block.scratch.data(),
                         evidence, n_columns());
}

// answers (k, n_known) <- the posteriors with the evidence (k, C). Returns the first failure.
SequenceStatus Streams::propose(Block& block, const RowSamples& part, const double* evidence, double* answers) {
  block.posterior.resize(n_columns());
  for (Index k = 0; k < part.n; ++k) {
    double* const answer = answers + k * n_known_;
    bool has_answer = false;
    Status status =
        row(part.rows[k])
            .sequence.propose(block.engine, evidence + k * n_columns(), part.dt[k], block.posterior.data(), has_answer);
    if (status.ok() && !has_answer) {
      std::fill_n(answer, n_known_, std::numeric_limits<double>::quiet_NaN());
    } else if (status.ok() && !among_known(block.posterior.data(), answer)) {
      status.outcome = Outcome::none_known;
    }
    if (!status.ok()) return {status, k};
  }
  return {};
}

// Adds the frames that were proposed.
void Streams::commit(const RowSamples& step, const double* evidence) {
  for (Index k = 0; k < step.n; ++k) {
    Row& target = row(step.rows[k]);
    const double* const sample = step.samples + k * framing_.n_columns();
    if (levels_) watch(target, evidence[k * n_columns() + n_known_], sample, step.dt[k]);
    target.window.push(framing_, sample, step.dt[k]);
    if (context_) std::swap(*target.past, proposed_[static_cast<std::size_t>(k)]);
    target.sequence.commit(engine());
  }
}

// Feeds evidence to the alarm, and keeps the frame if it is among the highest. Call it before the window moves on.
void Streams::watch(Row& row, double evidence, const double* sample, std::int64_t dt) const {
  const int place = row.watch.step(*levels_, evidence, dt);
  if (row.watch.ended.is_on()) std::swap(row.witnesses, row.ended_witnesses);
  if (place < 0) return;
  row.witnesses.resize(static_cast<std::size_t>(AlarmEpisode::kWitnesses * framing_.frame_size()));
  row.window.frame(framing_, sample, dt, row.witnesses.data() + place * framing_.frame_size());
}

// answer (n_known) <- posterior (S) given that the state is known; false if known states have too little probability.
bool Streams::among_known(const double* posterior, double* answer) const {
  constexpr double kSmallest = 1e-290;
  double known = 1;
  if (n_known_ < n_columns()) known = std::accumulate(posterior, posterior + n_known_, 0.0);
  for (Index i = 0; i < n_known_; ++i) answer[i] = posterior[i] / known;
  return known >= kSmallest;
}

Snapshot Snapshot::of(const Streams& streams) {
  Snapshot state(streams, streams.n_rows());
  for (Index i = 0; i < state.n_rows; ++i) state.set(i, streams.row(i), streams);
  return state;
}

namespace {

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

}  // namespace

Streams Snapshot::restored(const Streams& empty) const {
  constexpr std::int64_t kLongestGap = std::int64_t{1} << 53;
  Streams streams = empty;
  for (Index i = 0; i < n_rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    require(n_frames[row] >= 0 && n_frames[row] <= LiveSequence::kMostFrames && n_past[row] >= 0 &&
                n_past[row] < empty.framing().reach(),
            "a count is out of range");
    require(live[row] != 0 || n_frames[row] == 0, "a retired row has frames");
    const double* const end = past.data() + (i + 1) * past_size;
    require(std::none_of(end - n_past[row] * n_samples_columns, end, [](double value) { return std::isnan(value); }),
            "a sample of the window is NaN");
    streams.add();
    streams.row(i).live = live[row] != 0;
    streams.row(i).window.restore(past.data() + i * past_size, n_past[row]);
    if (empty.context() != nullptr) {
      const double *const own = context.data() + i * context_size, *const values = last.data() + i * last_size;
      const auto is_number = [](double value) { return std::isfinite(value); };
      require(n_context[row] >= 0 && n_context[row] <= empty.context()->history() &&
                  std::all_of(own, own + context_size, is_number) && std::all_of(values, values + last_size, is_number),
              "the context of a row is out of range");
      streams.row(i).past->restore(*empty.context(), own, n_context[row], values);
    }
    std::vector<LiveSequence::Kept> frames;
    for (Index k = 0; k < std::min<std::int64_t>(n_frames[row], kept); ++k) {
      LiveSequence::Kept frame;
      frame.dt = dt[static_cast<std::size_t>(i * kept + k)];
      require(frame.dt >= 1 && frame.dt <= kLongestGap, "a gap is out of range");
      const double* const log_ratios = evidence.data() + (i * kept + k) * n_columns;
      frame.evidence.assign(log_ratios, log_ratios + n_columns);
      bool has_largest = false;
      for (Index j = 0; j < n_states; ++j) {
        const auto place = static_cast<std::size_t>((i * kept + k) * n_states + j);
        const double m = mantissa[place];
        const std::int64_t e = exponent[place];
        const std::int64_t least = wide[row] != 0 ? -Scaled::kLargestExponent : -1074;
        require((m == 0 && e == 0) || (m >= 1 && m < 2 && e <= 0 && e >= least), "a message is out of range");
        has_largest = has_largest || (m > 0 && e == 0);
        frame.message.push_back(Scaled::from_parts(m, e));
      }
      require(has_largest, "a message has no likeliest state");
      frames.push_back(std::move(frame));
    }
    if (streams.levels()) restore_watch(i, streams);
    const Status status = streams.row(i).sequence.restore(streams.engine(), n_frames[row], wide[row] != 0, frames);
    require(status.ok(), "invalid evidence of a frame");
  }
  streams.look_for_retired_rows();
  return streams;
}

// Restores the alarm of row i. Throws if it is impossible.
void Snapshot::restore_watch(Index i, Streams& streams) const {
  constexpr int kWitnesses = AlarmEpisode::kWitnesses;
  const std::int64_t* const counts = watch_counts.data() + i * kWatchCounts;
  const Index size = streams.framing().frame_size();
  Streams::Row& row = streams.row(i);
  Watch& watch = row.watch;
  watch.total = sums[static_cast<std::size_t>(i)];
  watch.frame = n_frames[static_cast<std::size_t>(i)] - 1;
  watch.quiet = counts[0];
  watch.now.begin = counts[1];
  watch.now.last = counts[2];
  watch.now.cause = static_cast<int>(counts[3]);
  watch.clock = counts[4];
  watch.n_marks = counts[5];
  std::copy_n(counts + 6, Watch::kMarks, watch.marks.begin());
  const bool is_on = watch.now.is_on();
  const double* const frames = witnesses.data() + i * kWitnesses * size;
  const Index n_known = streams.framing().window_size();
  const auto is_number = [&](Index k) {
    return std::isfinite(frames[k]) || (k % size >= n_known && frames[k] != frames[k]);
  };
  bool is_possible = watch.total >= 0 && watch.total <= streams.levels()->sum + Watch::kMargin && watch.quiet >= 0 &&
                     watch.quiet <= Watch::kLongest && (is_on ? watch.now.begin <= watch.now.last : counts[1] == -1) &&
                     counts[3] >= 0 && counts[3] <= 2 && (counts[3] > 0) == is_on && watch.now.last <= watch.frame;
  for (Index k = 0; k < kWitnesses * size; ++k) is_possible = is_possible && is_number(k);
  is_possible = is_possible && watch.clock >= 0 && watch.clock <= Watch::kLongest && watch.n_marks >= 0 &&
                watch.n_marks <= watch.clock && watch.marks.front() >= 0 && watch.marks.back() <= watch.clock &&
                std::is_sorted(watch.marks.begin(), watch.marks.end());
  for (int k = 0; k < kWitnesses; ++k) {
    const auto place = static_cast<std::size_t>(i * kWitnesses + k), slot = static_cast<std::size_t>(k);
    if (witness_places[place] < 0 && !(is_on && k == 0)) continue;
    watch.now.places[slot] = witness_places[place];
    watch.now.scores[slot] = witness_scores[place];
    is_possible = is_possible && is_on && std::isfinite(witness_scores[place]) &&
                  witness_places[place] >= watch.now.begin && witness_places[place] <= watch.now.last;
  }
  require(is_possible, "the state of an alarm is impossible");
  if (is_on) row.witnesses.assign(frames, frames + kWitnesses * size);
}

void Snapshot::set_watch(Index i, const Streams::Row& from) {
  constexpr int kWitnesses = AlarmEpisode::kWitnesses;
  const AlarmEpisode& now = from.watch.now;
  sums[static_cast<std::size_t>(i)] = from.watch.total;
  const Watch& watch = from.watch;
  const std::array<std::int64_t, 6> counts{watch.quiet, now.begin, now.last, now.cause, watch.clock, watch.n_marks};
  const auto place = std::copy(counts.begin(), counts.end(), watch_counts.begin() + i * kWatchCounts);
  std::copy(watch.marks.begin(), watch.marks.end(), place);
  std::copy(now.places.begin(), now.places.end(), witness_places.begin() + i * kWitnesses);
  for (int k = 0; k < kWitnesses; ++k) {
    if (now.places[static_cast<std::size_t>(k)] < 0) continue;
    witness_scores[static_cast<std::size_t>(i * kWitnesses + k)] = now.scores[static_cast<std::size_t>(k)];
    const auto size = static_cast<std::ptrdiff_t>(from.witnesses.size()) / kWitnesses;
    std::copy_n(from.witnesses.begin() + k * size, size, witnesses.begin() + (i * kWitnesses + k) * size);
  }
}

void Snapshot::set(Index i, const Streams::Row& from, const Streams& streams) {
  const LiveEngine& engine = streams.engine();
  const auto row = static_cast<std::size_t>(i);
  live[row] = from.live ? 1 : 0;
  wide[row] = from.sequence.is_wide() ? 1 : 0;
  n_frames[row] = from.sequence.n_frames();
  n_past[row] = from.window.n_past();
  const auto n_used = static_cast<std::ptrdiff_t>(n_past[row] * n_samples_columns);
  std::copy(from.window.past().end() - n_used, from.window.past().end(), past.begin() + (i + 1) * past_size - n_used);
  if (from.past) {
    n_context[row] = from.past->n_samples();
    const std::vector<double> own = from.past->past(*streams.context());
    std::copy(own.begin(), own.end(), context.begin() + i * context_size);
    std::copy(from.past->last().begin(), from.past->last().end(), last.begin() + i * last_size);
  }
  if (streams.levels()) set_watch(i, from);
  for (Index k = 0; k < from.sequence.n_kept(); ++k) {
    const LiveSequence::Kept frame = from.sequence.kept(engine, from.sequence.n_kept() - 1 - k);
    dt[static_cast<std::size_t>(i * kept + k)] = frame.dt;
    std::copy(frame.evidence.begin(), frame.evidence.end(), evidence.begin() + (i * kept + k) * n_columns);
    for (Index j = 0; j < n_states; ++j) {
      const auto place = static_cast<std::size_t>((i * kept + k) * n_states + j);
      mantissa[place] = frame.message[static_cast<std::size_t>(j)].mantissa();
      exponent[place] = frame.message[static_cast<std::size_t>(j)].exponent();
    }
  }
}

}  // namespace drhmm
