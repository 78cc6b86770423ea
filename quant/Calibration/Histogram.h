// SPDX-License-Identifier: Apache-2.0
//===- Histogram.h - Exact streaming statistics of one tensor ---*- C++ -*-===//
//
// A histogram needs a single pass, no range known in advance, and no particular order: observing the same values in any
// order, or in parts that are merged later, gives the same state bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_QUANT_CALIBRATION_HISTOGRAM_H
#define TESSERA_QUANT_CALIBRATION_HISTOGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Counts float values by their 18 leading bits: sign, exponent and 9 bits of the mantissa. A bin is therefore at most
/// 1/512 of its value wide. Bin b counts the floats whose bit pattern >> kShift is b.
class Histogram {
public:
  static constexpr unsigned kShift = 14;
  static constexpr uint32_t kBins = 1u << (32 - kShift);
  static constexpr uint64_t kNone = UINT64_MAX;

  /// Reserves 2 MiB of address space. Only pages with touched bins take memory. Throws std::bad_alloc.
  Histogram();
  ~Histogram();
  Histogram(Histogram &&other) noexcept;
  Histogram(const Histogram &) = delete;
  Histogram &operator=(const Histogram &) = delete;

  /// Adds |count| values of sample number |sample|. NaN and infinities are counted separately and in no bin.
  void observe(const float *values, size_t count, uint64_t sample);

  /// Adds the counts of |other|.
  void merge(const Histogram &other);

  /// Adds the values of |sample|, one sample of a tensor whose size varies, so that their counts add up to about
  /// kVotes: a large sample counts as much as a small one. No bin is lost.
  void mergeSample(const Histogram &sample);
  static constexpr uint64_t kVotes = uint64_t(1) << 24;

  /// A bin with a count above zero.
  struct Bin {
    uint32_t index;
    uint64_t count;
  };
  /// Returns all non-empty bins by index: zero and positive values first, then negative zero and negative values.
  std::vector<Bin> bins() const;
  /// Adds |count| values to a bin whose index is below kBins.
  void addToBin(uint32_t index, uint64_t count) {
    counts[index] += count;
    isTouched[index / kPageBins] = true;
  }

  /// The smallest and largest finite value as ordered integers; see orderedBits. lowest > highest if there is none.
  int32_t lowest = INT32_MAX, highest = INT32_MIN;
  uint64_t finite = 0, nan = 0, infinite = 0;
  uint64_t firstBadSample = kNone; ///< smallest number of a sample with a NaN or an infinity

  float min() const;
  float max() const;

private:
  void mergeScalars(const Histogram &other);
  void observeBlock(const float *values, size_t count, uint64_t sample);
  void observeWithBad(const float *values, size_t count, uint64_t sample);

  /// Number of bins per memory page. Pages never touched are skipped: reading one would cost a page fault.
  static constexpr uint32_t kPageBins = 4096 / sizeof(uint64_t);

  uint64_t *counts;
  std::array<bool, kBins / kPageBins> isTouched = {};
};

/// Rounds every value to the nearest scale * (q - zeroPoint) with q in [lowest, highest]; ties go to even q -
/// zeroPoint. NaN becomes an end of the range; callers warn about NaN beforehand.
void fakeQuantise(float *values, size_t count, float scale, int zeroPoint, int lowest, int highest);

/// Sums of squares over the positions at which both arrays are finite, added in a fixed order.
struct Distance {
  double noise = 0, power = 0; ///< sums of (got - wanted)^2 and of wanted^2
};
Distance distance(const float *wanted, const float *got, size_t count);

} // namespace tessera::quant

#endif // TESSERA_QUANT_CALIBRATION_HISTOGRAM_H
