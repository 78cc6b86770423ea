//===- SumKeepingRounding.h - Rounding that preserves sums ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_SUMKEEPINGROUNDING_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_SUMKEEPINGROUNDING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Rounds weights, in units of their scales, so that sums of weights are preserved. All taps of a kernel meet inputs
/// with about the same mean, which is positive after a rectifier. The sum of the rounding errors is therefore an offset
/// of the output that nothing averages out. To correct a sum, the fewest possible weights are rounded the other way,
/// those nearest to a tie first, so that individual errors hardly grow.
class SumKeepingRounding {
public:
  /// Rounds to integers within [lowest, highest].
  SumKeepingRounding(int lowest, int highest) : lowest(lowest), highest(highest) {}
  SumKeepingRounding(llvm::SmallVector<double> exact, int lowest, int highest);

  /// Starts over with other weights, each divided by |scale|.
  void round(llvm::ArrayRef<float> weights, float scale);

  /// Corrects the sum over `elements`, in ascending order, to within half a step.
  void mend(llvm::ArrayRef<int64_t> elements);
  /// Corrects the sum of each of `count` consecutive runs of `length` elements.
  void mendRuns(int64_t length, int64_t count);

  llvm::ArrayRef<int8_t> get() const { return integers; }

private:
  void roundExact();
  /// Corrects the sum of `errors`; errors[i] belongs to element elementAt(i).
  template <typename ElementAt>
  void mendErrors(ElementAt elementAt);

  llvm::SmallVector<double> exact;
  int lowest, highest;
  std::vector<int8_t> integers;
  llvm::SmallVector<double> errors, scratch; ///< buffers, kept to avoid reallocation
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_SUMKEEPINGROUNDING_H
