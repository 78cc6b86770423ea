// SPDX-License-Identifier: Apache-2.0
//===- Ranges.h - The error that a quantisation range causes ----*- C++ -*-===//
//
// Sums over all bins of a histogram, which the searches in calibration/thresholds.py evaluate for each candidate range.
// The results are the same on every machine: no operation is contracted, and sums have a fixed order.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_QUANT_CALIBRATION_RANGES_H
#define TESSERA_QUANT_CALIBRATION_RANGES_H

#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Bins of a distribution: their centres and the number of values in each.
struct Bins {
  const double *centres, *counts;
  int64_t size;
};

/// Returns the summed squared error of rounding to multiples of (high - low) / steps within [low, high].
double squaredError(const Bins &bins, double low, double high, int64_t steps);

/// Returns the KL divergence between the first `end` bins of a histogram of equal-width bins and their quantised form:
/// the bins are merged to `levels` levels, and each level is spread evenly over its non-empty bins. Values beyond `end`
/// count towards the last bin. Returns infinity if the first `end` bins are empty.
double divergence(const std::vector<double> &histogram, int64_t end, int64_t levels);

} // namespace tessera::quant

#endif // TESSERA_QUANT_CALIBRATION_RANGES_H
