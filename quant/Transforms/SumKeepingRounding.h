//===- SumKeepingRounding.h - To the nearest, but sums stay -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

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

  /// Makes the sum over `elements`, which ascend, right to half a step.
  void mend(llvm::ArrayRef<int64_t> elements);
  /// That of each of `count` runs of elements that follow each other.
  void mendRuns(int64_t length, int64_t count);

  llvm::ArrayRef<int8_t> get() const { return integers; }

private:
  void roundExact();
  /// The same; `errors` are those of elementAt(place in them).
  template <typename ElementAt>
  void mendErrors(ElementAt elementAt);

  llvm::SmallVector<double> exact;
  int lowest, highest;
  std::vector<int8_t> integers;
  llvm::SmallVector<double> errors, scratch; ///< of the sum that is mended; kept for the next one
};

} // namespace tessera::quant
