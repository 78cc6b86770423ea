//===- SumKeepingRounding.h - To the nearest, but sums stay -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

/// Of a function that is compiled a second time with wider vectors. Not with fused multiply-adds, which round once
/// where two operations round twice: the same weights give the same integers on every machine.
#if defined(__x86_64__)
#define TESSERA_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TESSERA_WIDE_VECTORS
#endif

namespace tessera::quant {

/// Rounds weights (in units of their scales) so that sums of them keep their value. A kernel meets inputs of much the
/// same mean at all its taps, and behind a rectifier all means are positive: what the rounding errors add up to is an
/// offset of the output, which nothing averages out. The fewest roundings that mend the sums are turned around, those
/// nearest to a tie first, so that the errors themselves hardly grow.
class SumKeepingRounding {
public:
  /// Integers within [lowest, highest].
  SumKeepingRounding(int lowest, int highest) : lowest(lowest), highest(highest) {}
  SumKeepingRounding(llvm::SmallVector<double> exact, int lowest, int highest);

  /// Begins anew, with other weights; each divided by |scale|.
  void round(llvm::ArrayRef<float> weights, float scale);

  /// Makes the sum over `elements` right to half a step; their order changes.
  void mend(llvm::MutableArrayRef<int64_t> elements);
  /// That of each of `count` runs of elements that follow each other.
  void mendRuns(int64_t length, int64_t count);

  llvm::ArrayRef<int8_t> get() const { return integers; }

private:
  double error(int64_t i) const { return integers[i] - exact[i]; }
  void roundExact();

  llvm::SmallVector<double> exact;
  int lowest, highest;
  std::vector<int8_t> integers;
  llvm::SmallVector<int64_t> run; ///< of mendRuns(); kept for the next one
};

} // namespace tessera::quant
