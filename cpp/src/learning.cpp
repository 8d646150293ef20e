// Losses for learning scales.
#include <algorithm>
#include <cmath>
#include <limits>

#include "drhmm/learning/filtering_loss.hpp"
#include "drhmm/learning/smoothing_loss.hpp"
#include "drhmm/system/exponential.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

namespace {

// -sum_t log gamma_t(x_t) of one sequence over its frames of known state, by forward-backward in plain double, and its
// derivatives by reverse mode. Transitions P (S, S) and start (S) are weights that need not sum to 1; evidence is at
// most kMostAgainst nats against a state. kStates: the number of states, or 0 if it is known only at run time.
//
// gamma_t is the normalised product of the messages a_t and b_t and does not depend on their scales: messages are
// rescaled when they become small or large, and scales count as constants. With u_t = dL / d log a_t and its own part
// gamma_t(i) - [i = x_t],
//   u_{t-1}(i) += sum_j u_t(j) a_{t-1}(i) P_ij / (a_{t-1} P)_j,
// and b_t likewise with P transposed and time reversed.
template <int kStates>
class SmoothingLoss {
 public:
  static constexpr double kMostAgainst = 500;

  SmoothingLoss(const ConstRows& transitions, const Eigen::Map<const Vector>& start)
      : n_states_(start.size()),
        transitions_(transitions),
        transposed_(transitions.transpose()),
        start_(start),
        part_(static_cast<std::size_t>(2 * start.size())) {}

  // evidence (T, S), rows of NaN where a frame is missing; codes (T), negative where a frame is not judged.
  // If by_evidence (T, S) is not null, sets it to dL / d evidence, and adds dL / d log P to by_transitions (S, S) and
  // dL / d log start to by_start (S).
  double run(const double* evidence, const std::int64_t* codes, Index n_frames, double* by_evidence,
             double* by_transitions, double* by_start) {
    reserve(n_frames);
    make_weights(evidence, n_frames);
    forward(n_frames);
    backward(n_frames);
    const double loss = judge(codes, n_frames);
    if (by_evidence == nullptr) return loss;
    back_through_forward(n_frames, by_evidence, by_transitions, by_start);
    back_through_backward(n_frames, by_evidence, by_transitions);
    for (Index t = 0; t < n_frames; ++t) {
      if (std::isnan(evidence[t * size()])) std::fill_n(by_evidence + t * size(), size(), 0.0);
    }
    return loss;
  }

 private:
  // Messages are rescaled below this and above its inverse (powers of a chain make them grow), so that products of two
  // of them, and of weights, stay within double's range.
  static constexpr double kSmall = 0x1p-200;
  static constexpr double kLeast = std::numeric_limits<double>::min();
  static constexpr double kNothing = 0x1p-960;  // smaller sums count as 0: their inverses could overflow

  Index size() const { return kStates > 0 ? kStates : n_states_; }

  void reserve(Index n_frames) {
    const auto needed = static_cast<std::size_t>(n_frames * size());
    if (weights_.size() >= needed) return;
    for (std::vector<double>* values : {&weights_, &a_, &b_, &predicted_, &own_}) values->resize(needed);
  }

  void make_weights(const double* evidence, Index n_frames) {
    for (Index t = 0; t < n_frames; ++t) {
      const double* const row = evidence + t * size();
      double* const out = weights_.data() + t * size();
      double best = row[0];
      for (Index i = 1; i < size(); ++i) best = std::max(best, row[i]);
      for (Index i = 0; i < size(); ++i) out[i] = std::isnan(row[0]) ? 0 : std::max(row[i] - best, -kMostAgainst);
    }
    exponentials(weights_.data(), n_frames * size());
  }

  void rescale(double* message, double total) const {
    const double scale = 1 / std::max(total, kLeast);
    for (Index i = 0; i < size(); ++i) message[i] *= scale;
  }

  // a_t proportional to (a_{t-1} P) w_t, and predicted_t = a_{t-1} P.
  void forward(Index n_frames) {
    const double* const p = transitions_.data();
    for (Index t = 0; t < n_frames; ++t) {
      double* const predicted = predicted_.data() + t * size();
      double* const now = a_.data() + t * size();
      const double* const weights = weights_.data() + t * size();
      if (t == 0) {
        std::copy_n(start_.data(), size(), predicted);
      } else {
        const double* const before = now - size();
        for (Index j = 0; j < size(); ++j) predicted[j] = before[0] * p[j];
        for (Index i = 1; i < size(); ++i) {
          for (Index j = 0; j < size(); ++j) predicted[j] += before[i] * p[i * size() + j];
        }
      }
      double total = 0;
      for (Index j = 0; j < size(); ++j) total += now[j] = predicted[j] * weights[j];
      if (!(total > kSmall && total < 1 / kSmall)) rescale(now, total);
    }
  }

  // b_t proportional to P (w_{t+1} b_{t+1}).
  void backward(Index n_frames) {
    const double* const p = transposed_.data();
    std::fill_n(b_.data() + (n_frames - 1) * size(), size(), 1.0);
    for (Index t = n_frames - 2; t >= 0; --t) {
      double* const now = b_.data() + t * size();
      const double* const next = now + size();
      const double* const weights = weights_.data() + (t + 1) * size();
      for (Index i = 0; i < size(); ++i) now[i] = 0;
      for (Index j = 0; j < size(); ++j) {
        const double v = weights[j] * next[j];
        for (Index i = 0; i < size(); ++i) now[i] += v * p[j * size() + i];
      }
      double total = 0;
      for (Index i = 0; i < size(); ++i) total += now[i];
      if (!(total > kSmall && total < 1 / kSmall)) rescale(now, total);
    }
  }

  // The loss; own_ <- gamma_t(i) - [i = x_t] at frames that are judged, 0 elsewhere.
  double judge(const std::int64_t* codes, Index n_frames) {
    double loss = 0, product = 1;
    for (Index t = 0; t < n_frames; ++t) {
      double* const own = own_.data() + t * size();
      if (codes[t] < 0) {
        std::fill_n(own, size(), 0.0);
        continue;
      }
      const double* const a = a_.data() + t * size();
      const double* const b = b_.data() + t * size();
      double total = 0;
      for (Index i = 0; i < size(); ++i) total += own[i] = a[i] * b[i];
      const double scale = 1 / std::max(total, kLeast);
      for (Index i = 0; i < size(); ++i) own[i] *= scale;
      double& posterior = own[codes[t]];
      // Take one logarithm of a product of posteriors, of as many frames as fit in double.
      if (product < kSmall || posterior < kSmall) {
        loss -= std::log(product) + std::log(std::max(posterior, kLeast));
        product = 1;
      } else {
        product *= posterior;
      }
      posterior -= 1;
    }
    return loss - std::log(product);
  }

  // out (S) <- the sum of factors (S) times the rows of a matrix (S, S).
  void sum_of_rows(const double* matrix, const double* factors, double* out) const {
    std::fill_n(out, size(), 0.0);
    for (Index j = 0; j < size(); ++j) {
      for (Index i = 0; i < size(); ++i) out[i] += factors[j] * matrix[j * size() + i];
    }
  }

  // by_transitions (S, S) += P times the sum over t of left_t right_t+1^T; left, right (T, S).
  void add_products(const std::vector<double>& left, const std::vector<double>& right, Index n_frames,
                    double* by_transitions) const {
    using Frames = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
    if (n_frames < 2) return;
    const RowMatrix sums =
        Frames(left.data(), n_frames - 1, size()).transpose() * Frames(right.data() + size(), n_frames - 1, size());
    Eigen::Map<RowMatrix>(by_transitions, size(), size()).array() += transitions_.array() * sums.array();
  }

  // u_{t-1} = a_{t-1} (P r_t) with r_t(j) = u_t(j) / (a_{t-1} P)_j in place of predicted_t.
  void back_through_forward(Index n_frames, double* by_evidence, double* by_transitions, double* by_start) {
    double* const u = part_.data();
    std::fill_n(u, size(), 0.0);
    for (Index t = n_frames - 1; t >= 0; --t) {
      const double* const own = own_.data() + t * size();
      double* const relative = predicted_.data() + t * size();
      for (Index j = 0; j < size(); ++j) {
        u[j] += own[j];
        by_evidence[t * size() + j] = u[j];
        relative[j] = relative[j] > kNothing ? u[j] / relative[j] : 0;
      }
      if (t == 0) break;
      const double* const before = a_.data() + (t - 1) * size();
      sum_of_rows(transposed_.data(), relative, u);
      for (Index i = 0; i < size(); ++i) u[i] *= before[i];
    }
    for (Index i = 0; i < size(); ++i) by_start[i] += u[i];
    add_products(a_, predicted_, n_frames, by_transitions);
  }

  // The same with v_t = w_t b_t in place of w_t, and r_t(i) = u_t(i) / (P v_{t+1})_i in place of own_t.
  void back_through_backward(Index n_frames, double* by_evidence, double* by_transitions) {
    double* const u = part_.data();
    double* const sums = u + size();
    std::fill_n(u, size(), 0.0);
    for (Index t = 0; t + 1 < n_frames; ++t) {
      double* const relative = own_.data() + t * size();
      double* const v = weights_.data() + (t + 1) * size();
      for (Index j = 0; j < size(); ++j) v[j] *= b_[static_cast<std::size_t>((t + 1) * size() + j)];
      sum_of_rows(transposed_.data(), v, sums);
      for (Index i = 0; i < size(); ++i) relative[i] = sums[i] > kNothing ? (u[i] + relative[i]) / sums[i] : 0;
      sum_of_rows(transitions_.data(), relative, u);
      for (Index j = 0; j < size(); ++j) by_evidence[(t + 1) * size() + j] += u[j] *= v[j];
    }
    add_products(own_, weights_, n_frames, by_transitions);
  }

  Index n_states_;
  RowMatrix transitions_, transposed_;                     // (S, S)
  Vector start_;                                           // (S)
  std::vector<double> weights_, a_, b_, predicted_, own_;  // (T, S)
  std::vector<double> part_;                               // (2, S)
};

template <int kStates>
SmoothingGradient with(const ConstRows& evidence, const std::int64_t* codes, const std::vector<Index>& lengths,
                       const ConstRows& transitions, const Eigen::Map<const Vector>& start, int n_threads,
                       double* by_evidence) {
  constexpr Index kMostParts = 64;
  const Index s = evidence.cols(), n_sequences = static_cast<Index>(lengths.size());
  const Index n_parts = std::min(kMostParts, n_sequences);
  std::vector<Index> begins(lengths.size() + 1, 0);
  for (std::size_t k = 0; k < lengths.size(); ++k) begins[k + 1] = begins[k] + lengths[k];
  const SmoothingGradient nothing{0, RowMatrix::Zero(s, s), Vector::Zero(s)};
  std::vector<SmoothingGradient> parts(static_cast<std::size_t>(n_parts), nothing);
  parallel_for(n_parts, n_threads, [&](Index p) {
    SmoothingGradient& own = parts[static_cast<std::size_t>(p)];
    SmoothingLoss<kStates> sequence(transitions, start);
    for (Index k = p * n_sequences / n_parts; k < (p + 1) * n_sequences / n_parts; ++k) {
      check_interruption();
      const Index begin = begins[static_cast<std::size_t>(k)];
      own.loss += sequence.run(evidence.data() + begin * s, codes + begin, lengths[static_cast<std::size_t>(k)],
                               by_evidence == nullptr ? nullptr : by_evidence + begin * s, own.by_transitions.data(),
                               own.by_start.data());
    }
  });
  SmoothingGradient total = nothing;
  for (const SmoothingGradient& part : parts) {
    total.loss += part.loss;
    total.by_transitions += part.by_transitions;
    total.by_start += part.by_start;
  }
  return total;
}

}  // namespace

SmoothingGradient SmoothingGradient::of(const ConstRows& evidence, const std::int64_t* codes,
                                        const std::vector<Index>& lengths, const ConstRows& transitions,
                                        const Eigen::Map<const Vector>& start, int n_threads, double* by_evidence) {
  switch (start.size()) {
    case 2:
      return with<2>(evidence, codes, lengths, transitions, start, n_threads, by_evidence);
    case 3:
      return with<3>(evidence, codes, lengths, transitions, start, n_threads, by_evidence);
    case 4:
      return with<4>(evidence, codes, lengths, transitions, start, n_threads, by_evidence);
    default:
      return with<0>(evidence, codes, lengths, transitions, start, n_threads, by_evidence);
  }
}

double filtering_loss(const ConstRows& evidence, const std::int64_t* truth, const RowMatrix& transmat,
                      const Vector& startprob, double* by_evidence) {
  const Index n = evidence.rows(), s = evidence.cols();
  constexpr double tiny = 1e-150;
  RowMatrix weights(n, s), filtered(n, s);  // w_t, a_t
  Vector totals(n);                         // c_t
  Vector predicted = startprob;
  double loss = 0;
  for (Index t = 0; t < n; ++t) {
    if (t > 0) predicted.noalias() = transmat.transpose() * filtered.row(t - 1).transpose();
    const bool missing = evidence.row(t).array().isNaN().any();
    const double best = missing ? 0.0 : evidence.row(t).maxCoeff();
    for (Index i = 0; i < s; ++i) weights(t, i) = missing ? 1.0 : std::exp(evidence(t, i) - best);
    filtered.row(t) = weights.row(t).array() * predicted.transpose().array();
    totals[t] = std::max(filtered.row(t).sum(), tiny);
    filtered.row(t) /= totals[t];
    if (truth[t] >= 0) loss -= std::log(std::max(filtered(t, truth[t]), tiny));
  }
  if (by_evidence == nullptr) return loss;
  Vector later = Vector::Zero(s), gradient(s);  // d loss / d a_t from later frames
  for (Index t = n - 1; t >= 0; --t) {
    gradient = later;
    if (truth[t] >= 0) gradient[truth[t]] -= 1 / std::max(filtered(t, truth[t]), tiny);
    gradient.array() -= gradient.dot(filtered.row(t));
    if (!evidence.row(t).array().isNaN().any()) {
      for (Index i = 0; i < s; ++i) by_evidence[t * s + i] += filtered(t, i) * gradient[i];
    }
    gradient.array() *= weights.row(t).transpose().array() / totals[t];
    later.noalias() = transmat * gradient;
  }
  return loss;
}

}  // namespace drhmm
