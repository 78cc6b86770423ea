// SPDX-License-Identifier: Apache-2.0
//===- Ranges.cpp - The error that a quantisation range causes ------------===//
#include "quant/Calibration/Ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#pragma clang fp contract(off)

namespace tessera::quant {
namespace {

constexpr int64_t kLanes = 8;
constexpr double kRound = 6755399441055744.0; // 1.5 * 2^52: rounds smaller values to the nearest integer

} // namespace

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) double
squaredError(const Bins &bins, double low, double high, int64_t steps) {
  const double scale = std::max((high - low) / double(steps), std::numeric_limits<double>::min());
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= bins.size; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = bins.centres[i + lane];
      double kept = value < low ? low : value;
      kept = kept > high ? high : kept;
      const double error = value - (kept / scale + kRound - kRound) * scale;
      sums[lane] += error * error * bins.counts[i + lane];
    }
  }
  for (; i < bins.size; ++i) {
    const double value = bins.centres[i], kept = std::min(std::max(value, low), high);
    const double error = value - (kept / scale + kRound - kRound) * scale;
    sums[i % kLanes] += error * error * bins.counts[i];
  }
  return std::accumulate(sums, sums + kLanes, 0.0);
}

double divergence(const std::vector<double> &histogram, int64_t end, int64_t levels) {
  const double clipped = std::accumulate(histogram.begin() + end, histogram.end(), 0.0);
  const double all = std::accumulate(histogram.begin(), histogram.begin() + end, clipped);
  // Spread each level's values evenly over its non-empty bins.
  std::vector<double> spread(static_cast<size_t>(end));
  double total = 0;
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t first = level * end / levels, last = (level + 1) * end / levels;
    double sum = 0;
    int64_t filled = 0;
    for (int64_t i = first; i < last; ++i) {
      sum += histogram[size_t(i)];
      filled += histogram[size_t(i)] > 0;
    }
    for (int64_t i = first; i < last; ++i) {
      spread[size_t(i)] = histogram[size_t(i)] > 0 ? sum / double(filled) : 0;
      total += spread[size_t(i)];
    }
  }
  if (total == 0) {
    return std::numeric_limits<double>::infinity();
  }
  double result = 0;
  for (int64_t i = 0; i < end; ++i) {
    const double p = (histogram[size_t(i)] + (i == end - 1 ? clipped : 0)) / all;
    if (p > 0) {
      // Clipped values may fall on an empty level, which would divide by zero. Use a tiny probability, as the original
      // algorithm does.
      result += p * std::log(p / std::max(spread[size_t(i)] / total, 1e-12));
    }
  }
  return result;
}

} // namespace tessera::quant
