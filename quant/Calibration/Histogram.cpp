// SPDX-License-Identifier: Apache-2.0
//===- Histogram.cpp - Exact streaming statistics of one tensor -----------===//
#include "quant/Calibration/Histogram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>
#include <sys/mman.h>
#include <utility>

namespace tessera::quant {
namespace {

constexpr size_t kBytes = Histogram::kBins * sizeof(uint64_t);
/// Number of values per block. Each block is read twice, for extremes and for counts, while it is in the L1 cache.
constexpr size_t kBlock = 2048;
constexpr uint32_t kInfinity = 0x7f800000, kMagnitude = 0x7fffffff;

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Maps bits of floats to integers in the same order. The compiler can vectorise the minimum of integers. Its own
/// inverse.
int32_t orderedBits(uint32_t bits) { return int32_t(bits) ^ int32_t(uint32_t(int32_t(bits) >> 31) & kMagnitude); }

float fromOrdered(int32_t ordered) {
  const uint32_t bits = uint32_t(orderedBits(uint32_t(ordered)));
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

} // namespace

Histogram::Histogram() {
  void *pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    throw std::bad_alloc();
  }
  // With huge pages, each histogram would take 2 MiB of memory as soon as it counts one value.
  madvise(pages, kBytes, MADV_NOHUGEPAGE);
  counts = static_cast<uint64_t *>(pages);
}

Histogram::~Histogram() {
  if (counts) {
    munmap(counts, kBytes);
  }
}

Histogram::Histogram(Histogram &&other) noexcept
    : lowest(other.lowest), highest(other.highest), finite(other.finite), nan(other.nan), infinite(other.infinite),
      firstBadSample(other.firstBadSample), counts(std::exchange(other.counts, nullptr)), isTouched(other.isTouched) {}

float Histogram::min() const { return finite ? fromOrdered(lowest) : 0.0f; }
float Histogram::max() const { return finite ? fromOrdered(highest) : 0.0f; }

void Histogram::observe(const float *values, size_t count, uint64_t sample) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    observeBlock(values + begin, std::min(kBlock, count - begin), sample);
  }
}

void Histogram::observeBlock(const float *values, size_t count, uint64_t sample) {
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (size_t i = 0; i < count; ++i) {
    const int32_t ordered = orderedBits(bitsOf(values[i]));
    low = std::min(low, ordered);
    high = std::max(high, ordered);
  }
  if (high >= orderedBits(kInfinity) || low <= orderedBits(kInfinity | ~kMagnitude)) {
    observeWithBad(values, count, sample);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    addToBin(bitsOf(values[i]) >> kShift, 1);
  }
  finite += count;
  lowest = std::min(lowest, low);
  highest = std::max(highest, high);
}

void Histogram::observeWithBad(const float *values, size_t count, uint64_t sample) {
  firstBadSample = std::min(firstBadSample, sample);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = bitsOf(values[i]);
    if ((bits & kMagnitude) >= kInfinity) {
      ++((bits & kMagnitude) > kInfinity ? nan : infinite);
      continue;
    }
    addToBin(bits >> kShift, 1);
    ++finite;
    lowest = std::min(lowest, orderedBits(bits));
    highest = std::max(highest, orderedBits(bits));
  }
}

void Histogram::merge(const Histogram &other) {
  for (const Bin &bin : other.bins()) {
    addToBin(bin.index, bin.count);
  }
  mergeScalars(other);
}

void Histogram::mergeSample(const Histogram &sample) {
  for (const Bin &bin : sample.bins()) {
    const double share = double(bin.count) / double(sample.finite);
    addToBin(bin.index, std::max<uint64_t>(1, std::llround(share * kVotes)));
  }
  mergeScalars(sample);
}

void Histogram::mergeScalars(const Histogram &other) {
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
  finite += other.finite;
  nan += other.nan;
  infinite += other.infinite;
  firstBadSample = std::min(firstBadSample, other.firstBadSample);
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> result;
  for (uint32_t page = 0; page < isTouched.size(); ++page) {
    for (uint32_t i = page * kPageBins; isTouched[page] && i < (page + 1) * kPageBins; ++i) {
      if (counts[i]) {
        result.push_back({i, counts[i]});
      }
    }
  }
  return result;
}

void fakeQuantise(float *values, size_t count, float scale, int zeroPoint, int lowest, int highest) {
  const float low = float(lowest - zeroPoint), high = float(highest - zeroPoint);
  // Adding and subtracting 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even.
  constexpr float kRound = 12582912.0f;
  for (size_t i = 0; i < count; ++i) {
    float scaled = values[i] / scale;
    scaled = scaled > low ? scaled : low;
    scaled = scaled < high ? scaled : high;
    values[i] = (scaled + kRound - kRound) * scale;
  }
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) Distance distance(const float *wanted,
                                                                                                const float *got,
                                                                                                size_t count) {
#pragma clang fp contract(off)
  constexpr size_t kLanes = 16;
  constexpr double kMost = 3.4e38; // larger magnitudes are infinities
  double noise[kLanes] = {}, power[kLanes] = {};
  for (size_t begin = 0; begin < count; begin += kLanes) {
    const size_t lanes = std::min(kLanes, count - begin);
    for (size_t lane = 0; lane < lanes; ++lane) {
      const double want = wanted[begin + lane], have = got[begin + lane], error = have - want;
      const bool usable = want >= -kMost && want <= kMost && have >= -kMost && have <= kMost;
      noise[lane] += usable ? error * error : 0.0;
      power[lane] += usable ? want * want : 0.0;
    }
  }
  return {std::accumulate(noise, noise + kLanes, 0.0), std::accumulate(power, power + kLanes, 0.0)};
}

} // namespace tessera::quant
