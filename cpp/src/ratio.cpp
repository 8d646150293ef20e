// The members of a pool of ratios, and their sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "drhmm/ratio/pooled_ratio.hpp"
#include "drhmm/system/exponential.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

namespace {

constexpr Index kBlock = 256;  // frames that a thread evaluates at a time without a context
constexpr double kFarthest = 1e100;

// The strongest evidence of a Gaussian against a state without a floor, in nats: its density is never 0.
constexpr double kMostAgainst = 1000;

template <class Member>
bool uses(const Member& member) {
  return member.has_value() && member->scale != 0;
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Aligns parts of scratch memory to registers: the last digit of Eigen's logarithms depends on it.
Index aligned(Index n) { return (n + 7) / 8 * 8; }

void mark_missing(const char* missing, Index n, double* out, Index n_columns) {
  for (Index k = 0; k < n; ++k) {
    if (missing[k]) std::fill_n(out + k * n_columns, n_columns, std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace

template <class Real>
KernelExpansion<Real>::KernelExpansion(const ConstRows& centers, double sigma, const Eigen::Ref<const Matrix>& theta)
    : frame_size_(centers.cols()),
      n_states_(theta.cols()),
      n_centers_(centers.rows()),
      n_groups_((centers.rows() + kGroup - 1) / kGroup),
      n_registers_((centers.rows() + kTogether * kLanes<Real> - 1) / (kTogether * kLanes<Real>)*kTogether),
      gamma_(kLog2E / (2 * sigma * sigma)),
      origin_(centers.colwise().mean()),
      theta_(at(n_groups_ * n_states_ * kGroup), Real(0)),
      rows_(at(n_states_ * n_registers_ * kLanes<Real>), Real(0)) {
  // n centres, the last ones padding, in groups of a size.
  const auto packed = [&](Index n, Index size) {
    std::vector<Real> result(at(n * (frame_size_ + 1)), Real(0));
    for (Index b = 0; b < n; ++b) {
      Real* const own = result.data() + b / size * (frame_size_ + 1) * size + b % size;
      own[0] = Real(kNowhere);
      if (b >= n_centers_) continue;
      const Eigen::RowVectorXd shifted = centers.row(b) - origin_;
      own[0] = static_cast<Real>(-gamma_ * shifted.squaredNorm());
      for (Index j = 0; j < frame_size_; ++j) own[(j + 1) * size] = static_cast<Real>(2 * gamma_ * shifted[j]);
    }
    return result;
  };
  centers_ = packed(n_groups_ * kGroup, kGroup);
  columns_ = packed(n_registers_ * kLanes<Real>, kTogether * kLanes<Real>);
  for (Index b = 0; b < n_centers_; ++b) {
    for (Index s = 0; s < n_states_; ++s) {
      rows_[at(s * n_registers_ * kLanes<Real> + b)] = static_cast<Real>(theta(b, s));
      theta_[at(((b / kGroup) * n_states_ + s) * kGroup + b % kGroup)] = static_cast<Real>(theta(b, s));
    }
  }
}
template class KernelExpansion<double>;
template class KernelExpansion<float>;

ClassGaussians::ClassGaussians(Vector origin, const ConstRows& means, const ConstRows& whitening, Vector log_scales)
    : origin_(std::move(origin)),
      frame_size_(means.cols()),
      block_(whitening.cols()),
      n_groups_((means.cols() + kRows - 1) / kRows),
      packed_size_(0),
      log_scales_(std::move(log_scales)),
      offsets_(static_cast<std::size_t>(means.rows() * height()), 0.0) {
  for (Index group = 0; group < n_groups_; ++group) {
    packed_size_ += kRows * (width(group) - begin_of(group * kRows));
  }
  packed_.assign(static_cast<std::size_t>(means.rows() * packed_size_), 0.0);
  const Index d = frame_size_;
  for (Index i = 0; i < means.rows(); ++i) {
    const Vector mean = means.row(i).transpose() - origin_;
    double* packed = packed_.data() + i * packed_size_;
    for (Index group = 0; group < n_groups_; ++group) {
      const Index begin = begin_of(group * kRows);
      for (Index e = begin; e < width(group); ++e) {
        for (Index r = 0; r < kRows; ++r, ++packed) {
          const Index row = group * kRows + r;
          if (row >= d || e > row) continue;
          *packed = whitening(i * d + row, e - begin);
          offsets_[static_cast<std::size_t>(i * height() + row)] += *packed * mean[e];
        }
      }
    }
  }
}

double ScoreTable::log_e(double score) const {
  constexpr double kNearOne = 0.05;  // -log p below which 1 - p + p log p loses its digits
  const Index last = knots_.size() - 1;
  double l, p;  // l = -log p
  if (score > knots_[last]) {
    const double excess = (score - knots_[last]) / spread_;
    l = (shape_ > 0 ? std::log1p(shape_ * excess) / shape_ : excess) - std::log(pvalues_[last]);
    p = std::exp(-l);
  } else {
    p = pvalue(score, last);
    l = -std::log(p);
  }
  if (l > kNearOne) return std::log((1 - p - l * p) / (l * l)) + l;
  constexpr double kSeries[] = {-1. / 45360, 1. / 5760, -1. / 840, 1. / 144, -1. / 30, 1. / 8, -1. / 3, 1. / 2};
  double sum = 0;
  for (const double coefficient : kSeries) sum = sum * l + coefficient;
  return std::log(sum) + l;
}

double ScoreTable::pvalue(double score, Index last) const {
  if (!(score > knots_[0])) return pvalues_[0];
  const Index k = std::lower_bound(knots_.data(), knots_.data() + last, score) - knots_.data();
  const double share = (score - knots_[k - 1]) / (knots_[k] - knots_[k - 1]);
  return pvalues_[k - 1] + share * (pvalues_[k] - pvalues_[k - 1]);
}

NoveltyEvidence::NoveltyEvidence(ClassGaussians gaussians, const Vector& shares, Vector origin,
                                 const ConstRows& whitening, KernelExpansion<double> density,
                                 std::array<ScoreTable, kScores> tables, std::array<double, kScores> scales,
                                 double joint)
    : gaussians_(std::move(gaussians)),
      log_shares_(shares.array().log()),
      origin_(std::move(origin)),
      whitening_(whitening.triangularView<Eigen::Lower>()),
      density_(std::move(density)),
      tables_(std::move(tables)),
      scales_(scales),
      joint_(joint) {}

void NoveltyEvidence::scores(const double* frames, Index n, double* scratch, double* out) const {
  constexpr double kLeastDensity = 1e-300;  // smaller densities, far from all centres, count as this one
  const Index s = n_states(), d = frame_size();
  gaussians_.log_densities(frames, n, scratch + n * s, scratch);
  for (Index k = 0; k < n; ++k) out[kScores * k] = mixture_score(scratch + k * s);
  double *const white = scratch, *const densities = white + n * d;
  std::fill_n(white, n * d, 0.0);
  for (Index k = 0; k < n; ++k) {
    for (Index e = 0; e < d; ++e) {
      const double value = std::min(std::max(frames[k * d + e] - origin_[e], -kFarthest), kFarthest);
      for (Index j = e; j < d; ++j) white[k * d + j] += whitening_(j, e) * value;
    }
  }
  density_.sums(white, n, densities + n, densities);
  for (Index k = 0; k < n; ++k) {
    out[kScores * k + 1] = -std::log(densities[k] > kLeastDensity ? densities[k] : kLeastDensity);
  }
}

void NoveltyEvidence::log_evidence(const double* frames, Index n, double* scratch, double* out) const {
  scores(frames, n, scratch + kScores * n, scratch);
  for (Index k = 0; k < n; ++k) out[k] = log_evidence_at(scratch + kScores * k);
}

double NoveltyEvidence::log_evidence_at(const double* scores) const {
  constexpr double kLog2 = 0.6931471805599453;
  const double first = scales_[0] * tables_[0].log_e(scores[0]);
  const double second = scales_[1] * tables_[1].log_e(scores[1]);
  const double low = std::min(first, second), high = std::max(first, second);
  return joint_ * (high + std::log1p(std::exp(low - high)) - kLog2);
}

double NoveltyEvidence::mixture_score(const double* logs) const {
  double best = logs[0] + log_shares_[0], total = 0;
  for (Index i = 1; i < n_states(); ++i) best = std::max(best, logs[i] + log_shares_[i]);
  for (Index i = 0; i < n_states(); ++i) total += std::exp(logs[i] + log_shares_[i] - best);
  return -best - std::log(total);
}

RowMatrix NoveltyEvidence::scores_of(const ConstRows& frames, int n_threads) const {
  RowMatrix all(frames.rows(), kScores);
  parallel_for((frames.rows() + kBlock - 1) / kBlock, n_threads, [&](Index block) {
    const Index first = block * kBlock, count = std::min(kBlock, frames.rows() - first);
    std::vector<double> scratch(at(scratch_size(count)));
    scores(frames.data() + first * frame_size(), count, scratch.data(), all.data() + first * kScores);
  });
  return all;
}

Vector NoveltyEvidence::log_evidence_of(const ConstRows& frames, int n_threads) const {
  const RowMatrix scores = scores_of(frames, n_threads);
  Vector evidence(frames.rows());
  for (Index k = 0; k < frames.rows(); ++k) evidence[k] = log_evidence_at(scores.row(k).data());
  return evidence;
}

PooledRatio::PooledRatio(Framing framing, Vector prior, double least_ratio, double floor, Vector shift,
                         std::optional<PoolMember<KernelEstimate>> kernels,
                         std::optional<PoolMember<AdditiveTables>> additive,
                         std::optional<PoolMember<ClassGaussians>> gaussians,
                         std::shared_ptr<const NoveltyEvidence> novelty, std::shared_ptr<const NoveltyEvidence> trend,
                         std::optional<ContextMembers> context)
    : framing_(std::move(framing)),
      prior_(std::move(prior)),
      least_ratio_(least_ratio),
      log_least_density_ratio_(std::max(std::log(least_ratio), -kMostAgainst)),
      floor_(floor),
      shift_(std::move(shift)),
      kernels_(std::move(kernels)),
      additive_(std::move(additive)),
      gaussians_(std::move(gaussians)),
      novelty_(std::move(novelty)),
      trend_(std::move(trend)),
      context_(std::move(context)) {
  if (kernels_) {
    work_per_frame_ += kernels_->estimate.wide.n_centers() * (kernels_->estimate.wide.frame_size() + n_states());
  }
  if (uses(additive_)) work_per_frame_ += additive_->estimate.work_per_frame();
  if (uses(gaussians_)) work_per_frame_ += gaussians_->estimate.work_per_frame();
  if (novelty_) work_per_frame_ += (trend_ ? trend_ : novelty_)->work_per_frame();
  if (context_) work_per_frame_ += context_->context->work_per_frame() + context_->now.work_per_frame();
}

// The sum of the members (n, S), the values of one member (n, S), and the scratch memory of a member.
Index PooledRatio::scratch_size(Index n) const {
  Index size = 0;
  if (kernels_) size = kernels_->estimate.wide.scratch_size(n);
  if (uses(additive_)) size = std::max(size, additive_->estimate.scratch_size());
  if (uses(gaussians_)) size = std::max(size, std::max(gaussians_->estimate.scratch_size(n), n * (n_states() + 1)));
  for (const auto& judge : {novelty_, trend_}) {
    if (judge) size = std::max(size, judge->scratch_size(n) + aligned(n));
  }
  return aligned(size) + 2 * aligned(n * n_states()) + aligned(n * framing_.window_size());
}

// Calls use(first, count, frames, missing, scratch) for each block of frames. The features are never stored.
template <class Use>
void PooledRatio::for_each_block(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads,
                                 const Use& use) const {
  const FrameReader reader(framing_, samples, lengths);
  const Index size = context_ ? Context::kRows : kBlock;
  parallel_for((reader.n_frames() + size - 1) / size, n_threads, [&](Index block) {
    const Index first = block * size, count = std::min(size, reader.n_frames() - first);
    RowMatrix frames;
    std::vector<char> missing;
    Vector scratch = Vector::Zero(scratch_size(count));
    reader.read(first, count, frames, missing);
    use(first, count, frames.data(), missing.data(), scratch.data());
  });
}

void PooledRatio::estimates(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                            Rows out) const {
  for_each_block(samples, lengths, n_threads,
                 [&](Index first, Index count, const double* frames, const char* missing, double* scratch) {
                   double* const own = out.data() + first * n_states();
                   kernel_sums(without_means(frames, count, scratch), count, single, scratch, own);
                   mark_missing(missing, count, own, n_states());
                 });
}

// total (count, S) += the log ratios of the context at time steps first..first+count-1. values: scratch (count, S).
void PooledRatio::add_context(const ContextReader& reader, Index first, Index count, double* values,
                              double* total) const {
  const auto& [context, now, scale, both, ahead_scale] = *context_;
  const ContextRidge& ridge = both ? *both : now;
  const Index more = both ? ContextMembers::kAhead : 0, s = n_states();
  const Index all = std::min(count + more, reader.last_of(first + count - 1) + 1 - first);
  const Index stride = context->n_statistics() + kLanes<double>;
  RowMatrix estimates(all, ridge.n_states()), statistics;
  Eigen::ArrayXd scratch;
  std::vector<std::uint8_t> counts;
  reader.for_each_piece(first, all, [&](Index begin, Index n, const double* samples) {
    statistics.resize(n, stride);
    context->statistics(samples, n, scratch, statistics.data(), stride);
    context->counts(samples, n, counts);
    ridge.estimates(statistics.data(), stride, counts.data(), n, estimates.row(begin).data());
  });
  for (Index k = 0; k < count; ++k) std::copy_n(estimates.row(k).data(), s, values + k * s);
  add_logs(values, count, scale, total);
  for (Index k = 0; k < count && both; ++k) {
    std::copy_n(estimates.row(std::min(k + more, reader.last_of(first + k) - first)).data() + s, s, values + k * s);
  }
  if (both) add_logs(values, count, ahead_scale, total);
}

void PooledRatio::log_ratios(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                             Rows out) const {
  std::optional<ContextReader> reader;
  if (context_ && compares(out.cols())) reader.emplace(*context_->context, samples, lengths);
  for_each_block(samples, lengths, n_threads,
                 [&](Index first, Index count, const double* frames, const char* missing, double* total) {
                   if (reader) add_context(*reader, first, count, total + aligned(count * n_states()), total);
                   evidence(frames, missing, count, single, total, out.data() + first * out.cols(), out.cols());
                 });
}

void PooledRatio::frame_log_ratios(const double* frames, const char* missing, const double* features, Index n,
                                   double* scratch, double* out, Index n_columns) const {
  std::fill_n(scratch, n * n_states(), 0.0);
  if (context_ && compares(n_columns)) {
    double* const values = scratch + aligned(n * n_states());
    for (Index k = 0; k < n; ++k) {
      context_->now.estimates_of_one(features + k * context_->context->size(), values + k * n_states());
    }
    add_logs(values, n, context_->scale, scratch);
  }
  evidence(frames, missing, n, false, scratch, out, n_columns);
}

// The frames (n, D) without running means, in the last part of the scratch memory if there are any.
const double* PooledRatio::without_means(const double* frames, Index n, double* scratch) const {
  if (framing_.span == 0) return frames;
  double* const own = scratch + scratch_size(n) - aligned(n * framing_.window_size());
  for (Index k = 0; k < n; ++k) {
    std::copy_n(frames + k * framing_.frame_size(), framing_.window_size(), own + k * framing_.window_size());
  }
  return own;
}

// out (n) <- log w_* of frames (n, D): with their running means where these are complete, without them elsewhere.
void PooledRatio::log_novelty(const double* frames, const double* with_means, Index n, double* scratch,
                              double* out) const {
  const auto has_mean = [&](Index k) { return trend_ && !std::isnan(with_means[(k + 1) * framing_.frame_size() - 1]); };
  for (Index first = 0, end = 1; first < n; first = end++) {
    while (end < n && has_mean(end) == has_mean(first)) ++end;
    if (has_mean(first)) {
      trend_->log_evidence(with_means + first * framing_.frame_size(), end - first, scratch, out + first);
    } else {
      novelty_->log_evidence(frames + first * framing_.window_size(), end - first, scratch, out + first);
    }
  }
}

void PooledRatio::kernel_sums(const double* frames, Index n, bool single, double* scratch, double* values) const {
  if (!single) return kernels_->estimate.wide.sums(frames, n, scratch, values);
  std::vector<float> own(at(kernels_->estimate.single.scratch_size(n)));
  kernels_->estimate.single.sums(frames, n, own.data(), values);
}

// total (n, S) += kappa log max(q_i / prior_i, least_ratio) of posterior estimates q (n, S). Overwrites q.
void PooledRatio::add_logs(double* estimates, Index n, double scale, double* total) const {
  // Kernels underflow far from all centres. The remainder depends on the order of addition, so it counts as 0.
  constexpr double kLeastCertain = 1e-290;
  const double least = std::max(least_ratio_, kLeastCertain);
  const Index s = n_states();
  if (scale == 0) return;
  for (Index k = 0; k < n; ++k) {
    double* const row = estimates + k * s;
    bool none = true;
    for (Index i = 0; i < s; ++i) {
      const double ratio = row[i] / prior_[i];
      row[i] = ratio < least ? least_ratio_ : ratio;
      none = none && row[i] == 0;
    }
    if (none) std::fill_n(row, s, 1.0);  // every class estimates 0: no evidence, all w_ij = 1
  }
  const Eigen::Map<const Eigen::ArrayXd> ratios(estimates, n * s);
  Eigen::Map<Eigen::ArrayXd>(total, n * s) += scale * ratios.log();
}

// total (n, S) += kappa log q_i / p_i of the Gaussians, log q_i / p_i = log N_i - log sum_j p_j N_j.
void PooledRatio::add_densities(const double* frames, Index n, double* values, double* scratch, double* total) const {
  const Index s = n_states();
  gaussians_->estimate.log_densities(frames, n, scratch, values);
  double *const densities = scratch, *const sums = densities + n * s;
  for (Index k = 0; k < n; ++k) {
    const double best = *std::max_element(values + k * s, values + (k + 1) * s);
    for (Index i = k * s; i < (k + 1) * s; ++i) densities[i] = values[i] -= best;
  }
  exponentials(densities, n * s);
  for (Index k = 0; k < n; ++k) {
    sums[k] = 0;
    for (Index i = 0; i < s; ++i) sums[k] += prior_[i] * densities[k * s + i];
  }
  Eigen::Map<Eigen::ArrayXd> logs(sums, n);
  logs = logs.log();
  for (Index k = 0; k < n; ++k) {
    for (Index i = k * s; i < (k + 1) * s; ++i) {
      total[i] += gaussians_->scale * std::max(values[i] - sums[k], log_least_density_ratio_);
    }
  }
}

// out (n, columns) <- the evidence of the known states, and of the unknown if the kernels leave it. total: the log
// ratios of the context, (n, S), and scratch memory after them.
void PooledRatio::known(const double* frames, Index n, bool single, double* total, double* out, Index n_columns) const {
  const Index s = n_states(), d = framing_.window_size();
  double *const values = total + aligned(n * s), *const rest = values + aligned(n * s);
  if (kernels_ && (kernels_->scale != 0 || leaves_novelty(n_columns))) {
    kernel_sums(frames, n, single, rest, values);
    for (Index k = 0; k < n && leaves_novelty(n_columns); ++k) {
      const double q = 1 - std::accumulate(values + k * s, values + (k + 1) * s, 0.0);
      out[k * n_columns + s] = kernels_->scale * std::log(q < floor_ ? floor_ : (q > 1 ? 1 : q));
    }
    add_logs(values, n, kernels_->scale, total);
  }
  if (uses(additive_)) {
    for (Index k = 0; k < n; ++k) additive_->estimate.estimates(frames + k * d, rest, values + k * s);
    add_logs(values, n, additive_->scale, total);
  }
  if (uses(gaussians_)) add_densities(frames, n, values, rest, total);
  for (Index k = 0; k < n; ++k) {
    for (Index i = 0; i < s; ++i) out[k * n_columns + i] = total[k * s + i] + shift_[i];
  }
}

// out (n, columns) <- the evidence of frames (n, frame_size). total: as in `known`.
void PooledRatio::evidence(const double* with_means, const char* missing, Index n, bool single, double* total,
                           double* out, Index n_columns) const {
  const double* const frames = without_means(with_means, n, total);
  if (compares(n_columns)) {
    known(frames, n, single, total, out, n_columns);
  } else {
    std::fill_n(out, n * n_columns, 0.0);
  }
  if (n_columns > n_states()) {
    if (novelty_) log_novelty(frames, with_means, n, total + aligned(n), total);
    for (Index k = 0; k < n; ++k) {
      double* const row = out + k * n_columns;
      if (novelty_) beside_known(total[k], row);
      keep_within_reach(row);
    }
  }
  mark_missing(missing, n, out, n_columns);
}

// evidence (S + 1) <- that of the known states so that sum_i prior_i w_i = 1, and log w_*.
void PooledRatio::beside_known(double log_evidence, double* evidence) const {
  const Index s = n_states();
  const double best = *std::max_element(evidence, evidence + s);
  double total = 0;
  for (Index i = 0; i < s; ++i) total += prior_[i] * std::exp(evidence[i] - best);
  const double shift = best + std::log(total);
  for (Index i = 0; i < s; ++i) evidence[i] -= shift;
  evidence[s] = log_evidence;
}

// Limits the evidence between the unknown and the known states, so that double can hold the posteriors of the known
// states and their ratios. At a frame the unknown is at most e^230 times as likely as the best known state, at most
// e^280 times as likely as any, and at least e^-200 times as likely as the best. Then a known state at some frame
// costs at most e^280 there, e^200 where the chain must return through the unknown a frame later, and a few
// transitions, which python/drhmm/evidence/unknown.py limits. Beyond these limits no probability changes by more than
// e^-50. evidence (S + 1), the unknown last.
void PooledRatio::keep_within_reach(double* evidence) const {
  constexpr double kAboveBest = 230, kAboveAny = 280, kBelowBest = 200;
  double* const unknown = evidence + n_states();
  const double best = *std::max_element(evidence, unknown);
  if (*unknown > best + kAboveBest) *unknown = best + kAboveBest;
  if (*unknown < best - kBelowBest) *unknown = best - kBelowBest;
  for (double* known = evidence; known != unknown; ++known) {
    if (*known < *unknown - kAboveAny) *known = *unknown - kAboveAny;
  }
}

}  // namespace drhmm
