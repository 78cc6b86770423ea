//===- DimRanges.h - Ranges of open dims ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_DIMRANGES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_DIMRANGES_H

#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace tessera::top {

/// The sizes that an open dim may have: multiples of `divisor` from `min` to `max`. Decisions that need one size use
/// `likely`.
struct DimRange {
  int64_t min = 1, max = 1, divisor = 1, likely = 1;
  /// Returns the range as the user writes it: "1..8", "32..1280:32~224", or "4".
  std::string format() const;
};

/// Ranges of open dims given by the user, by dim_param or, for dims without one, by INPUT.AXIS.
struct DimRanges {
  std::map<std::string, DimRange> byName;
  bool openAll = false; ///< the other open dims get default ranges
  bool isGiven() const { return openAll || !byName.empty(); }
  /// Parses "batch=1..8,h=32..1280:32,seq=1..2048~128,n=4" or "auto".
  static llvm::Expected<DimRanges> parse(llvm::StringRef text);
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_DIMRANGES_H
