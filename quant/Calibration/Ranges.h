// SPDX-License-Identifier: Apache-2.0
//===- Ranges.h - What a range does to a distribution -----------*- C++ -*-===//
//
// The sums over all bins that the searches of calibration/thresholds.py ask for, candidate by candidate. The same
// numbers on every machine: nothing is contracted, and sums have one order.
//
//===----------------------------------------------------------------------===//
#ifndef QUANT_CALIBRATION_RANGES_H
#define QUANT_CALIBRATION_RANGES_H

#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Bins of a distribution: their centres, and how many values each has.
struct Bins {
  const double *centres, *counts;
  int64_t size;
};

/// Summed squared error of rounding to the multiples of (high - low) / steps within [low, high].
double squaredError(const Bins &bins, double low, double high, int64_t steps);

/// KL divergence, from a histogram of bins of equal width, of its first `end` bins merged to `levels` levels and spread
/// again over those that are not empty; what lies beyond counts to the last. Infinite where nothing is left.
double divergence(const std::vector<double> &histogram, int64_t end, int64_t levels);

} // namespace tessera::quant

#endif // QUANT_CALIBRATION_RANGES_H
