// SPDX-License-Identifier: Apache-2.0
//===- FeedBack.cpp - GPTQ: rounding weights with error feedback ----------===//
#include "quant/Calibration/FeedBack.h"

#include "quant/Calibration/MultiplyAdd.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace tessera::quant {

FeedBack::FeedBack(const float *moments, int64_t depth, float damping)
    : depth(depth), stride(padded(depth)), order(size_t(depth)), factor(size_t(depth * stride)), pivots(size_t(depth)) {
  if (!(damping > 0) || !std::isfinite(damping) ||
      !std::all_of(moments, moments + depth * depth, [](float v) { return std::isfinite(v); })) {
    throw std::invalid_argument("moments must be finite and damping positive");
  }
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(moments[a * depth + a], b) < std::pair(moments[b * depth + b], a); // ties by descending index
  });
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      factor[size_t(i * stride + j)] = moments[order[size_t(i)] * depth + order[size_t(j)]];
    }
    factor[size_t(i * stride + i)] += damping;
  }
  factorise(damping);
}

/// Computes the Cholesky factor, one panel of columns at a time.
void FeedBack::factorise(float damping) {
  std::vector<float> panel(size_t(kPanel * stride)); // the columns of the panel, stored as rows
  for (int64_t begin = 0; begin < depth; begin += kPanel) {
    const int64_t end = std::min(begin + kPanel, depth);
    for (int64_t j = begin; j < end; ++j) {
      const float *top = &factor[size_t(j * stride)];
      float *column = &panel[size_t((j - begin) * stride)];
      for (int64_t i = j; i < depth; ++i) {
        const float *row = &factor[size_t(i * stride)];
        float value = row[j];
        for (int64_t k = begin; k < j; ++k) {
          value -= row[k] * top[k];
        }
        column[i] = value;
      }
      // The exact value is at least the damping, which was added to a sum of squares; rounding errors may make it
      // smaller.
      const float pivot = std::sqrt(std::max(column[j], damping));
      for (int64_t i = j; i < depth; ++i) {
        column[i] = factor[size_t(i * stride + j)] = i == j ? pivot : column[i] / pivot;
      }
      pivots[size_t(j)] = pivot;
    }
    for (int64_t i = end; i < depth; i += kPanel) {
      const int64_t height = std::min(kPanel, depth - i);
      multiplyAdd(&panel[size_t(i)], stride, &panel[size_t(end)], stride, end - begin, -1.0f,
                  &factor[size_t(i * stride + end)], stride, height, i + height - end);
    }
  }
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      factor[size_t(i * stride + j)] /= pivots[size_t(j)];
    }
  }
}

namespace {

/// One weight of every row.
struct Column {
  const float *weights, *scales;
  const float *causes; ///< the error that the weights rounded so far leave for this one to compensate
  float *errors;
  float *integers;
};

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void
roundColumn(const Column &column, int64_t rows, float lowest, float highest, bool clipFirst) {
  constexpr float kRound = 12582912.0f; // 1.5 * 2^23: rounds smaller values to the nearest integer
  for (int64_t n = 0; n < rows; ++n) {
    const float scale = column.scales[n];
    float weight = column.weights[n];
    weight = clipFirst ? std::min(std::max(weight, lowest * scale), highest * scale) : weight;
    float steps = (weight - column.causes[n]) / scale;
    steps = std::min(std::max(steps, lowest), highest);
    steps = steps + kRound - kRound;
    column.integers[n] = steps;
    column.errors[n] = steps * scale - weight;
  }
}

} // namespace

void FeedBack::addCauses(const std::vector<float> &errors, int64_t width, int64_t begin, int64_t end, int64_t column,
                         int64_t columns, float *causes) const {
  if (begin < end) {
    multiplyAdd(&factor[size_t(begin * stride + column)], stride, &errors[size_t(begin * width)], width, end - begin,
                1.0f, causes, width, columns, width);
  }
}

void FeedBack::round(const Rows &given, int8_t *integers, double *losses) const {
  // Weights are transposed here, so that the inner loops run over rows: all rows are rounded at once.
  const int64_t rows = given.rows, width = padded(rows), steps = (depth + given.run - 1) / given.run;
  std::vector<float> weights(size_t(depth * width)), scales(size_t(steps * width), 1.0f);
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = 0; i < depth; ++i) {
      weights[size_t(i * width + n)] = given.weights[n * depth + order[size_t(i)]];
    }
    for (int64_t s = 0; s < steps; ++s) {
      scales[size_t(s * width + n)] = given.scales[n * steps + s];
    }
  }
  std::vector<float> errors(size_t(depth * width)), causes(size_t(kPanel * width)), rounded(static_cast<size_t>(width));
  std::fill(losses, losses + rows, 0.0);
  for (int64_t begin = (depth - 1) / kPanel * kPanel; begin >= 0; begin -= kPanel) {
    const int64_t end = std::min(begin + kPanel, depth);
    std::fill(causes.begin(), causes.end(), 0.0f);
    addCauses(errors, width, end, depth, begin, end - begin, causes.data());
    for (int64_t i = end; i-- > begin;) {
      float *cause = &causes[size_t((i - begin) * width)];
      addCauses(errors, width, i + 1, end, i, 1, cause);
      float *error = &errors[size_t(i * width)];
      roundColumn({&weights[size_t(i * width)], &scales[size_t(order[size_t(i)] / given.run * width)], cause, error,
                   rounded.data()},
                  width, float(given.lowest), float(given.highest), given.clipFirst);
      for (int64_t n = 0; n < rows; ++n) {
        const double share = double(error[n] + cause[n]) * pivots[size_t(i)];
        losses[n] += share * share;
        integers[n * depth + order[size_t(i)]] = static_cast<int8_t>(rounded[size_t(n)]);
      }
    }
  }
}

namespace {

/// Computes values[n] -= factor * known[n].
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void
subtract(float *values, const float *known, float factor, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    values[n] -= factor * known[n];
  }
}

} // namespace

void FeedBack::solve(const float *right, int64_t rows, float *solution) const {
  // H = F P^2 F', where F (in `factor`) has a unit diagonal and P holds the pivots. Rows are transposed, as in round().
  const int64_t width = padded(rows);
  std::vector<float> values(size_t(depth * width));
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = 0; i < depth; ++i) {
      values[size_t(i * width + n)] = right[n * depth + order[size_t(i)]];
    }
  }
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      subtract(&values[size_t(i * width)], &values[size_t(j * width)], factor[size_t(i * stride + j)], rows);
    }
  }
  for (int64_t i = depth; i-- > 0;) {
    float *row = &values[size_t(i * width)];
    for (int64_t n = 0; n < rows; ++n) {
      row[n] /= pivots[size_t(i)] * pivots[size_t(i)];
    }
    for (int64_t j = i + 1; j < depth; ++j) {
      subtract(row, &values[size_t(j * width)], factor[size_t(j * stride + i)], rows);
    }
  }
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = 0; i < depth; ++i) {
      solution[n * depth + order[size_t(i)]] = values[size_t(i * width + n)];
    }
  }
}

void solveGroups(const float *moments, const float *damping, const float *right, int64_t groups, int64_t rows,
                 int64_t depth, float *solution) {
  for (int64_t group = 0; group < groups; ++group) {
    FeedBack(moments + group * depth * depth, depth, damping[group])
        .solve(right + group * rows * depth, rows, solution + group * rows * depth);
  }
}

void roundGroups(const Groups &given, int8_t *integers, double *losses) {
  const int64_t rows = given.ways * given.rows, depth = given.depth, steps = (depth + given.run - 1) / given.run;
  std::vector<float> weights(size_t(rows * depth)), scales(size_t(rows * steps));
  std::vector<int8_t> rounded(size_t(rows * depth));
  std::vector<double> costs(static_cast<size_t>(rows));
  for (int64_t group = 0; group < given.groups; ++group) {
    for (int64_t way = 0; way < given.ways; ++way) {
      const float *from = given.scales + (way * given.groups + group) * given.rows * steps;
      std::copy_n(from, given.rows * steps, scales.data() + way * given.rows * steps);
      std::copy_n(given.weights + group * given.rows * depth, given.rows * depth,
                  weights.data() + way * given.rows * depth);
    }
    const FeedBack feedBack(given.moments + group * depth * depth, depth, given.damping[group]);
    feedBack.round({weights.data(), scales.data(), rows, given.run, given.lowest, given.highest, given.clipFirst},
                   rounded.data(), costs.data());
    for (int64_t way = 0; way < given.ways; ++way) {
      const int64_t to = (way * given.groups + group) * given.rows;
      std::copy_n(rounded.data() + way * given.rows * depth, given.rows * depth, integers + to * depth);
      std::copy_n(costs.data() + way * given.rows, given.rows, losses + to);
    }
  }
}

} // namespace tessera::quant
