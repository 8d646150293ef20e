// Exponentials, and frames and their context, read block by block.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "drhmm/features/context.hpp"
#include "drhmm/features/frames.hpp"
#include "drhmm/system/exponential.hpp"

namespace drhmm {

void many_exponentials(double* values, Index n) { exponentials(values, n); }

void FrameReader::read(Index first, Index count, RowMatrix& frames, std::vector<char>& missing) const {
  const Index d = framing_.n_columns();
  frames.setZero(count, framing_.frame_size());
  missing.assign(static_cast<std::size_t>(count), 0);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), first);
  for (Index k = 0; k < count; ++k) {
    const Index t = first + k;
    while (t >= *end) ++end;
    const Index begin = end == ends_.begin() ? 0 : *(end - 1);
    bool complete = t - begin + 1 >= framing_.window;
    for (Index lag = 0; lag < framing_.window && complete; ++lag) {
      const auto sample = samples_.row(t - framing_.window + 1 + lag);
      complete = !sample.array().isNaN().any();
      frames.row(k).segment(lag * d, d) =
          (sample - framing_.mean.transpose()).cwiseProduct(framing_.inverse_scale.transpose());
    }
    if (!complete) {
      frames.row(k).setZero();
      missing[static_cast<std::size_t>(k)] = 1;
    } else if (framing_.span > 0) {
      auto mean = frames.row(k).tail(d);
      for (Index s = std::max(begin, t - framing_.span + 1); s <= t; ++s) {
        mean += (samples_.row(s) - framing_.mean.transpose()).cwiseProduct(framing_.inverse_scale.transpose());
      }
      mean /= static_cast<double>(framing_.span);
      if (t - begin + 1 < framing_.span || mean.array().isNaN().any()) {
        mean.setConstant(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
}

template <class Use>
void Context::convolve(const double* samples, Index n, const Use& of_kernel) const {
  using Integers = Eigen::Array<std::int32_t, Eigen::Dynamic, 1>;
  constexpr Index kBefore = kReach - 1;
  const Index d = n_columns(), steps = n_steps(n), all_steps = kBefore + steps;
  Integers values(d * all_steps * kSegments);  // (d, steps, kSegments)
  for (Index s = 0; s < all_steps; ++s) {
    for (Index lane = 0; lane < kSegments; ++lane) {
      const double* const sample = samples + std::min(lane * steps + s - kBefore, n - 1) * d;
      for (Index j = 0; j < d; ++j) {
        values[(j * all_steps + s) * kSegments + lane] = static_cast<std::int32_t>(sample[j] * units_);
      }
    }
  }
  // Signed sums of columns, and the sums of nine of them, by registers; the first is at the place kBefore.
  Integers projections(all_steps * kSegments), sums(all_steps * kSegments);
  const auto at = [](Integers& numbers, Index s) { return numbers.data() + (s + kBefore) * kSegments; };
  const auto get = [&](Integers& numbers, Index s) { return load<std::int32_t>(at(numbers, s)); };
  // Adds the columns of a kernel, with their signs.
  const auto project = [&](Index kernel, Index earliest) {
    const Summed* column = summed_.data() + begins_[static_cast<std::size_t>(kernel)];
    const Summed* const end = summed_.data() + begins_[static_cast<std::size_t>(kernel) + 1];
    std::int32_t* const out = at(projections, earliest);
    const Index n_numbers = (steps - earliest) * kSegments;
    if (column == end) std::fill_n(out, n_numbers, 0);
    for (bool is_first = true; column != end; ++column, is_first = false) {
      const std::int32_t* const own = values.data() + (column->column * all_steps + kBefore + earliest) * kSegments;
      const auto flip = all<std::int32_t>(column->sign > 0 ? 0 : -1);  // -x = (x ^ -1) - -1
      for (Index k = 0; k < n_numbers; k += kSegments) {
        const auto value = (load(own + k) ^ flip) - flip;
        store<std::int32_t>(is_first ? value : load(out + k) + value, out + k);
      }
    }
  };
  Index kernel = 0;
  for (const Index spacing : kSpacing) {
    const Index first = 1 - kPooled, earliest = first - (kTaps - 1) * spacing;
    for (Index a = 0; a < kTaps; ++a) {
      for (Index b = a + 1; b < kTaps; ++b) {
        for (Index c = b + 1; c < kTaps; ++c, ++kernel) {
          project(kernel, earliest);
          auto use = of_kernel(kernel);
          const auto nine_at = [&](Index s, Lanes<std::int32_t> nine) {
            store<std::int32_t>(nine, at(sums, s));
            const auto tap = [&](Index number) { return get(projections, s - (kTaps - 1 - number) * spacing); };
            const Lanes<std::int32_t> three = tap(a) + tap(b) + tap(c);
            use(s, three + three + three, nine);
          };
          for (Index s = first; s < std::min(first + spacing, steps); ++s) {
            Lanes<std::int32_t> nine{};
            for (Index tap = 0; tap < kTaps; ++tap) nine += get(projections, s - tap * spacing);
            nine_at(s, nine);
          }
          for (Index s = first + spacing; s < steps; ++s) {
            nine_at(s, get(sums, s - spacing) + get(projections, s) - get(projections, s - kTaps * spacing));
          }
        }
      }
    }
  }
}

void Context::counts(const double* samples, Index n, std::vector<std::uint8_t>& counts) const {
  using Value = Lanes<std::int32_t>;
  const Index stride = count_stride(n);
  counts.resize(static_cast<std::size_t>(kKernels * stride));
  static_assert(kPooled == 5);
  convolve(samples, n, [&](Index kernel) {
    const Value threshold = all(thresholds_[static_cast<std::size_t>(kernel)]);
    std::uint8_t* const own = counts.data() + kernel * stride;
    // Whether the last outputs were above the bias, the newest first, and their count.
    return [threshold, own, above = std::array<Value, kPooled>{}, count = Value{}](Index s, const Value& thrice,
                                                                                   const Value& nine) mutable {
      count -= above[4];
      above = {thrice > nine + threshold ? all<std::int32_t>(1) : Value{}, above[0], above[1], above[2], above[3]};
      count += above[0];
      if (s >= 0) store_bytes(count, own + s * kSegments);
    };
  });
}

void Context::outputs(const double* samples, Index n, double* outputs) const {
  const Index steps = n_steps(n);
  convolve(samples, n, [&](Index kernel) {
    return [=](Index s, const auto& thrice, const auto& nine) {
      std::array<std::int32_t, kSegments> values;
      store<std::int32_t>(thrice - nine, values.data());
      for (Index k = s, lane = 0; s >= 0 && k < n; k += steps, ++lane) {
        outputs[k * kKernels + kernel] = values[static_cast<std::size_t>(lane)] / units_;
      }
    };
  });
}

void Context::statistics(const double* samples, Index n, Eigen::ArrayXd& scratch, double* out, Index stride) const {
  std::vector<double> kept;
  if (n_kept() < n_columns()) {
    const Index before = windows_.back();
    kept.resize(static_cast<std::size_t>((before + n) * n_kept() + kWidth));
    for (Index k = 0; k < before + n; ++k) {
      const double* const sample = samples + (k - before) * n_columns();
      for (Index j = 0; j < n_kept(); ++j) {
        kept[static_cast<std::size_t>(k * n_kept() + j)] = sample[j * n_columns() / n_kept()];
      }
    }
    samples = kept.data() + before * n_kept();
  }
  // Registers write beyond their row, over the next one.
  const Index d = n_kept(), row = d <= kWidth ? d : (d + kWidth - 1) / kWidth * kWidth;
  const Index size = (n * row + 2 * kWidth - 1) / kWidth * kWidth;
  if (scratch.size() < 3 * size) scratch.resize(3 * size);
  double *const means = scratch.data(), *const variances = means + size, *const changes = variances + size;
  // In ascending order, because registers write beyond their place.
  const auto write = [&](const double* values, Index step) {
    for (Index k = 0; k < n; ++k) {
      for (Index j = 0; j < d; j += kWidth) store<double>(load(values + k * step + j), out + k * stride + j);
    }
    out += d;
  };
  write(samples, d);
  for (const Index w : windows_) {
    const double length = static_cast<double>(w), share = 1 / length;
    for (Index j = 0; j < d; j += kWidth) {
      const double *now = samples + j, *before = now - w * d;
      const auto change_at = [d](const double* sample) { return -negative(load(sample) - load(sample - d)); };
      Lanes<double> sum{}, squares{}, change{};
      for (const double* earlier = now; earlier != before; earlier -= d) {
        const Lanes<double> value = load(earlier);
        sum += value;
        squares += value * value;
        change += change_at(earlier);
      }
      for (Index k = 0; k < n; ++k) {
        const Lanes<double> origin = load(now);
        if (k > 0) {
          const Lanes<double> gone = load(before);
          sum += origin - gone;
          squares += origin * origin - gone * gone;
          change += change_at(now) - change_at(before);
        }
        // Relative to the newest sample, so that the variance keeps its digits.
        const Lanes<double> mean = (sum - length * origin) * share;
        const Lanes<double> square = squares - origin * (2 * sum - length * origin);
        store<double>(origin + mean, means + k * row + j);
        store<double>(square * share - mean * mean, variances + k * row + j);
        store<double>(change * share, changes + k * row + j);
        now += d;
        before += d;
      }
    }
    write(means, row);
    // All logarithms at once, in whole registers: those of single numbers may differ in the last bit.
    if (kinds_ > 1) {
      scratch.segment(size, size) = (scratch.segment(size, size).max(0.0).sqrt() + kLeast).log();
      write(variances, row);
    }
    if (kinds_ > 2) {
      scratch.segment(2 * size, size) = (scratch.segment(2 * size, size) + kLeast).log();
      write(changes, row);
    }
  }
}

void ContextReader::read(Index first, Index count, RowMatrix& features, bool outputs) const {
  const Index width = outputs ? Context::kKernels : context_.size();
  features.resize(count, width);
  Eigen::ArrayXd scratch;
  std::vector<std::uint8_t> counts;
  for_each_piece(first, count, [&](Index begin, Index n, const double* samples) {
    double* const out = features.row(begin).data();
    if (outputs) return context_.outputs(samples, n, out);
    context_.statistics(samples, n, scratch, out, width);
    context_.counts(samples, n, counts);
    const Index steps = Context::n_steps(n);
    for (Index k = 0; k < n; ++k) {
      const std::uint8_t* own = counts.data() + k % steps * Context::kSegments + k / steps;
      double* const shares = out + k * width + context_.n_statistics();
      for (Index kernel = 0; kernel < Context::kKernels; ++kernel, own += Context::count_stride(n)) {
        shares[kernel] = *own * Context::kShare;
      }
    }
  });
}

void ContextReader::fill(Index begin, Index t, Index n, double* now) const {
  const Index d = context_.n_columns(), before = context_.history() - 1, start = std::max(begin, t - before);
  std::vector<double> last = remembered(begin, start);
  for (Index s = start; s < t + n; ++s) {
    double* const sample = now + (s - t) * d;
    context_.standardize(samples_.row(s).data(), last.data(), sample);
    std::copy_n(sample, d, last.begin());
  }
  for (Index s = start - 1; s >= t - before; --s) std::copy_n(now + (start - t) * d, d, now + (s - t) * d);
}

std::vector<double> ContextReader::remembered(Index begin, Index start) const {
  std::vector<double> values(static_cast<std::size_t>(context_.n_columns()), std::numeric_limits<double>::quiet_NaN());
  for (Index j = 0; j < context_.n_columns(); ++j) {
    for (Index t = start - 1; t >= begin; --t) {
      if (std::isnan(samples_(t, j))) continue;
      values[static_cast<std::size_t>(j)] = samples_(t, j);
      break;
    }
  }
  const std::vector<double> unknown(values.size(), 0.0);
  context_.standardize(values.data(), unknown.data(), values.data());
  return values;
}

}  // namespace drhmm
