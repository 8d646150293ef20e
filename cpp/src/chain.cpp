// The engines of a chain: one for each kind of operator, and fixed sizes for few states.
#include "drhmm/chain/chain.hpp"

#include <algorithm>
#include <utility>

#include "drhmm/chain/sparse.hpp"
#include "drhmm/chain/stages.hpp"
#include "drhmm/paths/best_path.hpp"
#include "drhmm/paths/segmentation.hpp"
#include "drhmm/recursion/live.hpp"
#include "drhmm/recursion/live_steps.hpp"
#include "drhmm/recursion/stretches.hpp"

namespace drhmm {

namespace {

// Everything that depends on the kind of the operator.
class ChainEngine : public GroupRunner {
 public:
  virtual Status sequence(Pass pass, const Evidence& evidence, const Answers& answers,
                          const StretchGroup& group) const = 0;
  virtual Status path(const Evidence& evidence, Index begin, Index n_frames, GapPaths& gaps, std::int64_t* path,
                      double* log_probability) const = 0;
  virtual LiveEngine live() const = 0;
  virtual RowMatrix transmat() const = 0;  // (states, states)
};

// Quick: the operator of groups and of whole sequences in double; General: that of everything else.
// make_logs: makes what best paths need when they are first asked for: an operator with logarithms, or StayRules.
template <class Quick, class General, class MakeLogs>
class ChainEngineOf final : public ChainEngine {
 public:
  ChainEngineOf(const ChainFacts& facts, Quick quick, General general, MakeLogs make_logs)
      : facts_(facts), quick_(std::move(quick)), general_(std::move(general)), make_logs_(std::move(make_logs)) {}

  // Several stretches fill the lanes of a register; many states do that alone.
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
    if constexpr (Quick::kStates > 0 && Quick::kStates <= 4) {
      return SequenceRecursion<Quick, General>(facts_, quick_, general_, evidence, answers, group).run(pass);
    } else {
      return SequenceRecursion<General, General>(facts_, general_, general_, evidence, answers, group).run(pass);
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
    return {facts_.needs_scaled(), quick_.n_states(), std::make_unique<LiveStepsOf<double, General>>(facts_, general_),
            std::make_unique<LiveStepsOf<Scaled, General>>(facts_, general_)};
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

}  // namespace

class Chain::Parts {
 public:
  // transmat (S, S), startprob (S)
  Parts(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob, Way way) : n_columns_(startprob.size()) {
    facts_.way = way;
    const RowMatrix a = transmat;
    facts_.start = startprob;
    facts_.bits = smallest_in_bits(a.data(), a.size());
    set_facts(a.minCoeff());
    const Index n = n_columns_, n_possible = (a.array() > 0).count();
    if (n > 8 && 4 * n_possible <= n * n) {
      make(Sparse(a, false), Sparse(a, false), [a] { return Sparse(a, true); });
    } else {
      switch (n) {
        case 2:
          make_dense<2>(a);
          break;
        case 3:
          make_dense<3>(a);
          break;
        case 4:
          make_dense<4>(a);
          break;
        case 5:
          make_dense<5>(a);
          break;
        case 6:
          make_dense<6>(a);
          break;
        case 7:
          make_dense<7>(a);
          break;
        case 8:
          make_dense<8>(a);
          break;
        default:
          make_dense<0>(a);
          break;
      }
    }
    set_powers(a);
  }

  // States with durations; startprob (columns) is spread evenly over the stages of a state.
  Parts(const StageRules& rules, const Eigen::Map<const Vector>& startprob, Way way) : n_columns_(startprob.size()) {
    facts_.way = way;
    const Index n_stages = rules.stay.size();
    facts_.start = Vector::Zero(n_stages + (rules.has_unknown ? 1 : 0));
    Index stage = 0;
    for (Index i = 0; i < rules.leaving.rows(); ++i) {
      const Index size = rules.size[static_cast<std::size_t>(i)];
      facts_.start.segment(stage, size).setConstant(startprob[i] / static_cast<double>(size));
      stage += size;
    }
    if (rules.has_unknown) facts_.start[n_stages] = startprob[startprob.size() - 1];
    const StayRules stays{rules, startprob};
    make(Stages(rules), Stages(rules), [stays] { return stays; });
    const RowMatrix a = engine_->transmat();
    facts_.bits = smallest_in_bits(a.data(), a.size());
    set_facts(a.minCoeff());
    set_powers(a);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Index n_columns() const { return n_columns_; }
  Index n_states() const { return facts_.start.size(); }
  LiveEngine live() const { return engine_->live(); }

  // Filtered or smoothed posteriors of sequences that stand one after the other, and what else is wanted.
  SequenceStatus infer(Pass pass, const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                       const Answers& answers) const {
    const SequenceStarts starts(lengths);
    const std::vector<char> done = in_stretches_if_it_forgets(pass, evidence, starts, n_threads, answers);
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

  // path (N); log_probabilities (sequences) may be null.
  SequenceStatus best_path(const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                           std::int64_t* path, double* log_probabilities) const {
    const SequenceStarts starts(lengths);
    GapPaths gaps(*facts_.powers, *facts_.scaled_powers);
    return for_each_sequence(starts, n_threads, {}, [&](Index k) {
      const Index begin = starts.start(k);
      return engine_->path(evidence, begin, starts.start(k + 1) - begin, gaps, path,
                           log_probabilities == nullptr ? nullptr : log_probabilities + k);
    });
  }

  // posteriors (N, C): p(x_t | y_1..y_min(t+lag, T)). Work per frame grows with lag.
  SequenceStatus fixed_lag(const Evidence& evidence, const std::vector<Index>& lengths, Index lag, int n_threads,
                           double* posteriors) const {
    const SequenceStarts starts(lengths);
    return for_each_sequence(starts, n_threads, {}, [&](Index k) {
      const LiveEngine engine = engine_->live();
      const Index begin = starts.start(k), n_frames = starts.start(k + 1) - begin,
                  own_lag = std::min(lag, n_frames - 1);
      LiveSequence sequence(n_columns_, own_lag);
      std::vector<double> unused(static_cast<std::size_t>(n_columns_));
      Status status;
      for (Index t = 0; t < n_frames && status.ok(); ++t) {
        if (t % kFramesBetweenChecks == 0) check_interruption();
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
        status = sequence.posterior(engine, back, posteriors + (begin + n_frames - 1 - back) * n_columns_);
      }
      return status;
    });
  }

  Index work_to_reach(std::int64_t dt) const { return dt > 1 ? facts_.powers->work_to_reach(dt) : 0; }

 private:
  static constexpr double kMixing = 0x1p-20;

  void set_facts(double least) {
    facts_.is_mixing = least >= kMixing && !(facts_.start.array() > 0 && facts_.start.array() < kMixing).any();
    facts_.can_start_anywhere = facts_.start.minCoeff() > 0;
    if ((facts_.start.array() > 0).any()) {
      facts_.bits = std::max(facts_.bits, smallest_in_bits(facts_.start.data(), facts_.start.size()));
    }
  }
  void set_powers(const RowMatrix& a) {
    facts_.powers = std::make_unique<Powers<double>>(a, facts_.is_mixing);
    facts_.scaled_powers = std::make_unique<Powers<Scaled>>(a, facts_.is_mixing);
  }

  template <class Quick, class General, class MakeLogs>
  void make(Quick quick, General general, MakeLogs make_logs) {
    engine_ = std::make_unique<ChainEngineOf<Quick, General, MakeLogs>>(facts_, std::move(quick), std::move(general),
                                                                        std::move(make_logs));
  }
  template <int N>
  void make_dense(const RowMatrix& a) {
    make(Dense<N>(a), Dense<0>(a), [a] { return Dense<(N > 4 ? 0 : N)>(a.array().log()); });
  }

  std::vector<char> in_stretches_if_it_forgets(Pass pass, const Evidence& evidence, const SequenceStarts& starts,
                                               int n_threads, const Answers& answers) const {
    constexpr Index kFewest = 256;  // frames; for less it does not pay to find out
    const bool is_forced = facts_.way == Way::lanes;
    if (facts_.way == Way::alone || facts_.needs_scaled()) return {};
    if ((starts.n_frames() < kFewest && !is_forced) || n_states() < 2) return {};
    const Index warm_up = steps_to_forget();
    if (warm_up == 0) return {};
    return in_stretches(pass, *engine_, warm_up, is_forced, evidence, starts, n_threads, answers);
  }

  // Steps after which the chain without evidence has forgotten where it was, to the last digit: with
  // d = 1 - sum_j min_i (A^n)_ij (Dobrushin), differences shrink by d in n steps. Never more than kLongest: with
  // evidence chains forget faster than that, or else it will be seen. 0 if some state cannot be reached from another in
  // kLongest steps.
  Index steps_to_forget() const {
    constexpr Index kLongest = 512;
    for (Index k = 0; Index{1} << k <= kLongest; ++k) {
      const auto& squares = facts_.powers->reach(std::int64_t{1} << k);
      if (static_cast<std::size_t>(k) >= squares.of.size()) return 0;
      const NumberMatrix<double>& power = squares.of[static_cast<std::size_t>(k)]->matrix;
      if (!(power.minCoeff() > 0)) continue;
      const double d = std::clamp(1 - power.colwise().minCoeff().sum(), 0x1p-52, 1 - 0x1p-52);
      const double steps = std::ceil(-36.0 / std::log(d)) * static_cast<double>(Index{1} << k);
      if (facts_.is_mixing || d < 0.95 || Index{1} << k == kLongest) {
        return steps < kLongest ? (static_cast<Index>(steps) + kFramesOfLines - 1) / kFramesOfLines * kFramesOfLines
                                : kLongest;
      }
    }
    return 0;
  }

  // Calls one(k) for every sequence that is not done; reports the first that failed.
  template <class One>
  static SequenceStatus for_each_sequence(const SequenceStarts& starts, int n_threads, const std::vector<char>& done,
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

  Index n_columns_;
  ChainFacts facts_;
  std::unique_ptr<ChainEngine> engine_;
};

Chain::Chain(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob, Way way)
    : parts_(std::make_unique<Parts>(transmat, startprob, way)) {}
Chain::Chain(const StageRules& rules, const Eigen::Map<const Vector>& startprob, Way way)
    : parts_(std::make_unique<Parts>(rules, startprob, way)) {}
Chain::~Chain() = default;
Index Chain::n_columns() const { return parts_->n_columns(); }
Index Chain::n_states() const { return parts_->n_states(); }
LiveEngine Chain::live() const { return parts_->live(); }
SequenceStatus Chain::infer(Pass pass, const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                            const Answers& answers) const {
  return parts_->infer(pass, evidence, lengths, n_threads, answers);
}
SequenceStatus Chain::best_path(const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                                std::int64_t* path, double* log_probabilities) const {
  return parts_->best_path(evidence, lengths, n_threads, path, log_probabilities);
}
SequenceStatus Chain::fixed_lag(const Evidence& evidence, const std::vector<Index>& lengths, Index lag, int n_threads,
                                double* posteriors) const {
  return parts_->fixed_lag(evidence, lengths, lag, n_threads, posteriors);
}
Index Chain::work_to_reach(std::int64_t dt) const { return parts_->work_to_reach(dt); }

}  // namespace drhmm
