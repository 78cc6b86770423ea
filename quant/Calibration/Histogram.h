// SPDX-License-Identifier: Apache-2.0
//===- Histogram.h - Exact streaming statistics of one tensor ---*- C++ -*-===//
//
// One pass, no range to guess, and no order: observing the same values in any order, in any number
// of parts that are merged later, gives the same state bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef QUANT_CALIBRATION_HISTOGRAM_H
#define QUANT_CALIBRATION_HISTOGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Counts of float values by their 18 leading bits: sign, exponent and 9 bits of the mantissa, so a
/// bin is at most 1/512 of its value wide. Bin b holds the floats whose bit pattern >> kShift is b.
class Histogram {
public:
  static constexpr unsigned kShift = 14;
  static constexpr uint32_t kBins = 1u << (32 - kShift);
  static constexpr uint64_t kNone = UINT64_MAX;

  /// Takes 2 MiB of address space; memory is used for the pages of bins that are touched only.
  /// Throws std::bad_alloc.
  Histogram();
  ~Histogram();
  Histogram(Histogram &&other) noexcept;
  Histogram(const Histogram &) = delete;
  Histogram &operator=(const Histogram &) = delete;

  /// Adds |count| values of sample number |sample|. NaN and infinities are counted apart.
  void observe(const float *values, size_t count, uint64_t sample);

  /// Adds what |other| has seen.
  void merge(const Histogram &other);

  /// A bin that is not empty.
  struct Bin {
    uint32_t index;
    uint64_t count;
  };
  /// All of them, by index: zero and up, then negative zero and down.
  std::vector<Bin> bins() const;
  /// Adds |count| values to a bin whose index is below kBins.
  void addToBin(uint32_t index, uint64_t count) {
    counts[index] += count;
    isTouched[index / kPageBins] = true;
  }

  /// The extremes of the finite values as ordered integers; see orderedBits. Empty: lowest > highest.
  int32_t lowest = INT32_MAX, highest = INT32_MIN;
  uint64_t finite = 0, nan = 0, infinite = 0;
  uint64_t firstBadSample = kNone; ///< smallest number of a sample that had NaN or an infinity

  float min() const;
  float max() const;

private:
  void observeBlock(const float *values, size_t count, uint64_t sample);
  void observeWithBad(const float *values, size_t count, uint64_t sample);

  /// Those of one page: what was never touched need not be looked at, which would cost a page fault each.
  static constexpr uint32_t kPageBins = 4096 / sizeof(uint64_t);

  uint64_t *counts;
  std::array<bool, kBins / kPageBins> isTouched = {};
};

/// Rounds every value to the nearest of scale * (q - zeroPoint), q in [lowest, highest]; ties to even
/// q - zeroPoint. NaN becomes the end of the range: callers have warned before.
void fakeQuantise(float *values, size_t count, float scale, int zeroPoint, int lowest, int highest);

/// Sums over the places where both are finite, in one order: of (got - wanted)^2, and of wanted^2.
struct Distance {
  double noise = 0, power = 0;
};
Distance distance(const float *wanted, const float *got, size_t count);

} // namespace tessera::quant

#endif // QUANT_CALIBRATION_HISTOGRAM_H
