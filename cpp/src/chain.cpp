// The engines of a chain: one for each kind of operator, and fixed sizes for few states.
#include "drhmm/chain/chain.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "drhmm/chain/sparse.hpp"
#include "drhmm/chain/stages.hpp"
#include "drhmm/paths/best_path.hpp"
#include "drhmm/paths/segmentation.hpp"
#include "drhmm/recursion/live_on_recursion.hpp"
#include "drhmm/recursion/stretches.hpp"
#include "drhmm/system/memory.hpp"

namespace drhmm {

// Everything that depends on the type of the operator.
class ChainEngine {
 public:
  virtual ~ChainEngine() = default;
  virtual Index width() const = 0;  // stretches of a group
  virtual void run_group(Pass pass, const Evidence& evidence, const Answers& answers, const StretchGroup& group,
                         Edges* edges, Index warm_up) const = 0;
  virtual Status sequence(Pass pass, const Evidence& evidence, const Answers& answers,
                          const StretchGroup& group) const = 0;
  virtual Status path(const Evidence& evidence, Index begin, Index n_frames, GapPaths& gaps, std::int64_t* path,
                      double* log_probability) const = 0;
  virtual LiveEngine live() const = 0;
  virtual RowMatrix transmat() const = 0;  // (states, states)
};

namespace {

// Quick: the operator for groups of stretches, and for whole sequences of up to three states; General: for the rest.
// make_logs: makes an operator with logarithms, or StayRules, for the first best path.
template <class Quick, class General, class MakeLogs>
class ChainEngineOf final : public ChainEngine {
 public:
  ChainEngineOf(const ChainFacts& facts, Quick quick, General general, MakeLogs make_logs)
      : facts_(facts), quick_(std::move(quick)), general_(std::move(general)), make_logs_(std::move(make_logs)) {}

  // Up to this many states, each lane of a register has its own stretch.
  static constexpr Index kMostInLanes = 64;

  Index width() const override { return quick_.n_states() <= kMostInLanes ? kLanes<double> : 1; }
  void run_group(Pass pass, const Evidence& evidence, const Answers& answers, const StretchGroup& group, Edges* edges,
                 Index warm_up) const override {
    if (width() > 1) {
      drhmm::run_group<Lanes<double>>(pass, facts_, quick_, evidence, answers, group, edges, warm_up);
    } else {
      drhmm::run_group<double>(pass, facts_, general_, evidence, answers, group, edges, warm_up);
    }
  }
  Status sequence(Pass pass, const Evidence& evidence, const Answers& answers,
                  const StretchGroup& group) const override {
    const auto make_wide = [this] { return std::make_unique<Wide<General>>(facts_, general_); };
    if constexpr (Quick::kStates > 0 && Quick::kStates <= 3) {
      return SequenceRecursion(pass, facts_, quick_, make_wide, evidence, answers, group).run();
    } else {
      return SequenceRecursion(pass, facts_, general_, make_wide, evidence, answers, group).run();
    }
  }
  Status path(const Evidence& evidence, Index begin, Index n_frames, GapPaths& gaps, std::int64_t* path,
              double* log_probability) const override {
    const Logs& logs = logs_.get(make_logs_);
    if constexpr (std::is_same_v<Logs, StayRules>) {
      return (void)gaps, best_path(logs, evidence, begin, n_frames, path, log_probability);
    } else {
      const Vector log_start = facts_.log_start(evidence.steps(begin) - 1);
      return best_path(logs, log_start, evidence, begin, n_frames, gaps, path, log_probability);
    }
  }
  LiveEngine live() const override {
    return {facts_.needs_scaled(), quick_.n_states(), std::make_unique<LiveStepsOf<General>>(facts_, general_),
            std::make_unique<Wide<General>>(facts_, general_)};
  }
  RowMatrix transmat() const override {
    const Index n = general_.n_states();
    const auto room = static_cast<std::size_t>(general_.template stride<double>());
    std::vector<double> unit(room), row(room);
    RowMatrix result(n, n);
    for (Index i = 0; i < n; ++i) {
      std::fill(unit.begin(), unit.end(), 0.0);
      unit[static_cast<std::size_t>(i)] = 1;
      general_.forward(unit.data(), row.data());
      std::copy_n(row.data(), n, result.data() + i * n);
    }
    return result;
  }

 private:
  const ChainFacts& facts_;
  Quick quick_;
  General general_;
  MakeLogs make_logs_;
  using Logs = decltype(std::declval<MakeLogs>()());
  Lazy<Logs> logs_;
};

template <class Operator, class MakeLogs>
std::unique_ptr<ChainEngine> engine(const ChainFacts& facts, const Operator& op, MakeLogs make_logs) {
  return std::make_unique<ChainEngineOf<Operator, Operator, MakeLogs>>(facts, op, op, std::move(make_logs));
}

template <int N>
std::unique_ptr<ChainEngine> dense_engine(const ChainFacts& facts, const RowMatrix& a) {
  auto make_logs = [a] { return Dense<(N > 4 ? 0 : N)>(a.array().log()); };
  using Engine = ChainEngineOf<Dense<N>, Dense<0>, decltype(make_logs)>;
  return std::make_unique<Engine>(facts, Dense<N>(a), Dense<0>(a), std::move(make_logs));
}

std::unique_ptr<ChainEngine> engine_of(const ChainFacts& facts, const RowMatrix& a) {
  const Index n = a.rows(), n_possible = (a.array() > 0).count();
  if (n > 8 && 4 * n_possible <= n * n) {
    return engine(facts, Sparse(a, false), [a] { return Sparse(a, true); });
  }
  constexpr std::unique_ptr<ChainEngine> (*kFixed[])(const ChainFacts&, const RowMatrix&) = {
      dense_engine<2>, dense_engine<3>, dense_engine<4>, dense_engine<5>,
      dense_engine<6>, dense_engine<7>, dense_engine<8>};
  return n >= 2 && n <= 8 ? kFixed[n - 2](facts, a) : dense_engine<0>(facts, a);
}

void set_transitions(ChainFacts& facts, const RowMatrix& a) {
  constexpr double kMixing = 0x1p-20;
  facts.bits = smallest_in_bits(a.data(), a.size());
  facts.is_mixing = a.minCoeff() >= kMixing && !(facts.start.array() > 0 && facts.start.array() < kMixing).any();
  facts.can_start_anywhere = facts.start.minCoeff() > 0;
  if ((facts.start.array() > 0).any()) {
    facts.bits = std::max(facts.bits, smallest_in_bits(facts.start.data(), facts.start.size()));
  }
  facts.powers = std::make_unique<Powers<double>>(a, facts.is_mixing);
  facts.scaled_powers = std::make_unique<Powers<Scaled>>(a, facts.is_mixing);
}

// Steps after which the chain without evidence has forgotten its state to the last digit: with
// d = 1 - sum_j min_i (A^n)_ij (Dobrushin), differences shrink by d in n steps. At most kLongest: with evidence chains
// forget faster, or stretches disagree at edges. 0 if a state cannot be reached from another in kLongest steps.
Index steps_to_forget(const ChainFacts& facts) {
  constexpr Index kLongest = 512;
  for (Index k = 0; Index{1} << k <= kLongest; ++k) {
    const auto& squares = facts.powers->reach(std::int64_t{1} << k);
    if (static_cast<std::size_t>(k) >= squares.of.size()) return 0;
    const NumberMatrix<double>& power = squares.of[static_cast<std::size_t>(k)]->matrix;
    if (!(power.minCoeff() > 0)) continue;
    const double d = std::clamp(1 - power.colwise().minCoeff().sum(), 0x1p-52, 1 - 0x1p-52);
    const double steps = std::ceil(-36.0 / std::log(d)) * static_cast<double>(Index{1} << k);
    if (facts.is_mixing || d < 0.95 || Index{1} << k == kLongest) {
      return steps < kLongest ? (static_cast<Index>(steps) + kFramesOfLines - 1) / kFramesOfLines * kFramesOfLines
                              : kLongest;
    }
  }
  return 0;
}

// Calls one(k) for every sequence that is not done; returns the first failure.
template <class One>
SequenceStatus for_each_sequence(const SequenceStarts& starts, int n_threads, const std::vector<char>& done,
                                 const One& one) {
  std::vector<Status> statuses(static_cast<std::size_t>(starts.n_sequences()));
  if (!done.empty() && std::all_of(done.begin(), done.end(), [](char is_done) { return is_done != 0; })) return {};
  parallel_for(starts.n_sequences(), n_threads, [&](Index k) {
    if (done.empty() || done[static_cast<std::size_t>(k)] == 0) statuses[static_cast<std::size_t>(k)] = one(k);
  });
  for (std::size_t k = 0; k < statuses.size(); ++k) {
    if (!statuses[k].ok()) return {statuses[k], static_cast<Index>(k)};
  }
  return {};
}

}  // namespace

Chain::Chain(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob, Way way)
    : n_columns_(startprob.size()), facts_(std::make_unique<ChainFacts>()) {
  const RowMatrix a = transmat;
  facts_->way = way;
  facts_->start = startprob;
  set_transitions(*facts_, a);
  engine_ = engine_of(*facts_, a);
}

Chain::Chain(const StageRules& rules, const Eigen::Map<const Vector>& startprob, Way way)
    : n_columns_(startprob.size()), facts_(std::make_unique<ChainFacts>()) {
  const Index n_stages = rules.stay.size();
  facts_->way = way;
  facts_->start = Vector::Zero(n_stages + (rules.has_unknown ? 1 : 0));
  Index stage = 0;
  for (Index i = 0; i < rules.leaving.rows(); ++i) {
    const Index size = rules.size[static_cast<std::size_t>(i)];
    facts_->start.segment(stage, size).setConstant(startprob[i] / static_cast<double>(size));
    stage += size;
  }
  if (rules.has_unknown) facts_->start[n_stages] = startprob[startprob.size() - 1];
  const StayRules stays{rules, startprob};
  engine_ = engine(*facts_, Stages(rules), [stays] { return stays; });
  set_transitions(*facts_, engine_->transmat());
}

Chain::~Chain() = default;

Index Chain::n_states() const { return facts_->start.size(); }

LiveEngine Chain::live() const { return engine_->live(); }

Index Chain::work_to_reach(std::int64_t dt) const { return dt > 1 ? facts_->powers->work_to_reach(dt) : 0; }

// Whether each sequence was done in stretches; empty if no sequence was.
std::vector<char> Chain::in_stretches(Pass pass, const Evidence& evidence, const SequenceStarts& starts, int n_threads,
                                      const Answers& answers) const {
  constexpr Index kFewest = 256;  // frames; fewer are not worth the checks
  const bool is_forced = facts_->way == Way::lanes;
  if (facts_->way == Way::alone || facts_->needs_scaled()) return {};
  if ((starts.n_frames() < kFewest && !is_forced) || n_states() < 2) return {};
  const Index warm_up = steps_to_forget(*facts_);
  if (warm_up == 0) return {};
  const auto run_group = [&](const Answers& own, const StretchGroup& group, Edges* edges) {
    engine_->run_group(pass, evidence, own, group, edges, warm_up);
  };
  const bool is_smoothed = pass == Pass::smooth && answers.posteriors != nullptr;
  return drhmm::in_stretches(run_group, engine_->width(), warm_up, is_forced, is_smoothed, n_columns_, starts,
                             n_threads, answers);
}

SequenceStatus Chain::infer(Pass pass, const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                            const Answers& answers) const {
  const SequenceStarts starts(lengths);
  const std::vector<char> done = in_stretches(pass, evidence, starts, n_threads, answers);
  std::vector<RowMatrix> counts(answers.counts == nullptr || !done.empty() ? 0 : lengths.size());
  const SequenceStatus status = for_each_sequence(starts, n_threads, done, [&](Index k) {
    const Stretch whole{starts.start(k), starts.start(k), starts.start(k + 1), starts.start(k + 1)};
    Answers own = answers;
    if (answers.counts != nullptr) {
      counts[static_cast<std::size_t>(k)].setZero(n_columns_, n_columns_);
      own.counts = counts[static_cast<std::size_t>(k)].data();
    }
    if (answers.log_likelihoods != nullptr) own.log_likelihoods += k;
    Status one = engine_->sequence(pass, evidence, own, StretchGroup(starts, &whole, 1));
    if (!one.ok()) one.frame -= starts.start(k);
    return one;
  });
  for (const RowMatrix& own : counts) Rows(answers.counts, n_columns_, n_columns_) += own;
  return status;
}

SequenceStatus Chain::best_path(const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                                std::int64_t* path, double* log_probabilities) const {
  const SequenceStarts starts(lengths);
  GapPaths gaps(*facts_->powers, *facts_->scaled_powers);
  return for_each_sequence(starts, n_threads, {}, [&](Index k) {
    const Index begin = starts.start(k);
    return engine_->path(evidence, begin, starts.start(k + 1) - begin, gaps, path,
                         log_probabilities == nullptr ? nullptr : log_probabilities + k);
  });
}

SequenceStatus Chain::fixed_lag(const Evidence& evidence, const std::vector<Index>& lengths, Index lag, int n_threads,
                                double* posteriors) const {
  const SequenceStarts starts(lengths);
  return for_each_sequence(starts, n_threads, {}, [&](Index k) {
    const LiveEngine engine = engine_->live();
    const Index begin = starts.start(k), n_frames = starts.start(k + 1) - begin, own_lag = std::min(lag, n_frames - 1);
    LiveSequence sequence(n_columns_, own_lag);
    const Index between_checks = std::max<Index>(kFramesBetweenChecks / (own_lag + 1), 1);
    std::vector<double> unused(static_cast<std::size_t>(n_columns_));
    Status status;
    for (Index t = 0; t < n_frames && status.ok(); ++t) {
      if (t % between_checks == 0) check_interruption();
      const Index frame = begin + t;
      double* const out = t >= own_lag ? posteriors + (frame - own_lag) * n_columns_ : unused.data();
      bool has_answer = false;
      status = sequence.propose(engine, evidence.row(frame), evidence.steps(frame), out, has_answer);
      if (status.ok()) {
        sequence.commit(engine);
      } else {
        status.frame = t;
      }
    }
    for (Index back = own_lag - 1; back >= 0 && status.ok(); --back) {
      if (back % between_checks == 0) check_interruption();
      status = sequence.posterior(engine, back, posteriors + (begin + n_frames - 1 - back) * n_columns_);
    }
    return status;
  });
}

}  // namespace drhmm
