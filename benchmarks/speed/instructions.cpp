// One hot path of the core, a given number of times, for counting its instructions:
//   drhmm_instructions PATH REPEATS
// prints how many units (frames, kernel values, ...) one repeat has.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "drhmm/chain/chain.hpp"
#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/ratio/pooled_ratio.hpp"
#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/stream/streams.hpp"

using namespace drhmm;

namespace {

RowMatrix normal(Index n, Index d, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution;
  return RowMatrix::NullaryExpr(n, d, [&] { return distribution(generator); });
}

struct Problem {
  RowMatrix log_ratios, transmat, posteriors;
  Vector startprob;

  Problem(Index n_frames, Index n_states)
      : log_ratios(normal(n_frames, n_states, 0)),
        transmat(RowMatrix::Constant(n_states, n_states, 0.1 / static_cast<double>(n_states - 1))),
        posteriors(n_frames, n_states),
        startprob(Vector::Constant(n_states, 1.0 / static_cast<double>(n_states))) {
    transmat.diagonal().setConstant(0.9);
  }
  std::shared_ptr<const Chain> chain() const {
    return std::make_shared<Chain>(ConstRows(transmat.data(), transmat.rows(), transmat.cols()),
                                   Eigen::Map<const Vector>(startprob.data(), startprob.size()));
  }
  Evidence evidence() const { return {log_ratios.data(), log_ratios.cols()}; }
};

struct Kernels {
  RowMatrix samples = normal(1000, 10, 1), centers = normal(300, 10, 2);
  ConstRows places{centers.data(), 300, 10};
  Matrix theta = normal(300, 3, 3);
  PooledRatio ratio{Framing{Vector::Zero(10), Vector::Ones(10), 1},
                    Vector::Constant(3, 1.0 / 3),
                    0.03,
                    0.01,
                    Vector::Zero(3),
                    PoolMember<KernelEstimate>{{{places, 2.0, theta}, {places, 2.0, theta}}, 1.0},
                    {},
                    {}};
};

using Work = std::function<Index(int)>;

Index recursion(int repeats, Index n_states, Pass pass) {
  Problem problem(20000, n_states);
  const auto chain = problem.chain();
  for (int k = 0; k < repeats; ++k) chain->infer(pass, problem.evidence(), {20000}, 1, {problem.posteriors.data()});
  return 20000;
}

Index best_path(int repeats) {
  const Problem problem(20000, 3);
  const auto chain = problem.chain();
  std::vector<std::int64_t> path(20000);
  for (int k = 0; k < repeats; ++k) chain->best_path(problem.evidence(), {20000}, 1, path.data(), nullptr);
  return 20000;
}

Index kernel_values(int repeats, bool single) {
  const Kernels kernels;
  RowMatrix out(1000, 3);
  for (int k = 0; k < repeats; ++k) {
    kernels.ratio.log_ratios(ConstRows(kernels.samples.data(), 1000, 10), {1000}, 1, single, Rows(out.data(), 1000, 3));
  }
  return 1000 * 300;
}

Index streamed(int repeats) {
  const Kernels kernels;
  Streams streams(kernels.ratio.framing(), Problem(1, 3).chain(), 3, 0);
  const Index row = streams.add();
  const std::int64_t dt = 1;
  double answer[3];
  for (int k = 0; k < repeats; ++k) {
    for (Index t = 0; t < 1000; ++t) {
      streams.advance({1, &row, kernels.samples.row(t).data(), &dt}, kernels.ratio, 1, answer);
    }
  }
  return 1000;
}

Index grid(int repeats) {
  const RowMatrix frames = normal(1500, 10, 4), targets = RowMatrix::Identity(3, 3).replicate(500, 1);
  const Vector weights = Vector::Ones(1500);
  std::vector<double> loss(9 * 5), estimates(9 * 1500 * 3);
  const CrossValidation search(ConstRows(frames.data(), 1500, 10), ConstRows(targets.data(), 1500, 3),
                               Eigen::Map<const Vector>(weights.data(), 1500), {300, 300, 300, 300, 300},
                               {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1});
  for (int k = 0; k < repeats; ++k) {
    search.run(ConstRows(frames.data(), 300, 10), {2.0}, 1, loss.data(), estimates.data());
  }
  return 45;
}

const std::map<std::string, Work> kPaths = {
    {"smooth-2", [](int n) { return recursion(n, 2, Pass::smooth); }},
    {"smooth-3", [](int n) { return recursion(n, 3, Pass::smooth); }},
    {"smooth-16", [](int n) { return recursion(n, 16, Pass::smooth); }},
    {"smooth-64", [](int n) { return recursion(n, 64, Pass::smooth); }},
    {"filter-3", [](int n) { return recursion(n, 3, Pass::filter); }},
    {"viterbi-3", best_path},
    {"kernels", [](int n) { return kernel_values(n, false); }},
    {"kernels-float32", [](int n) { return kernel_values(n, true); }},
    {"stream", streamed},
    {"grid", grid},
};

}  // namespace

int main(int argc, char** argv) {
  const auto path = argc == 3 ? kPaths.find(argv[1]) : kPaths.end();
  if (path == kPaths.end()) {
    for (const auto& [name, work] : kPaths) std::puts(name.c_str());
    return 2;
  }
  std::printf("%ld\n", static_cast<long>(path->second(std::atoi(argv[2]))));
  return 0;
}
