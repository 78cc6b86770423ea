//===- QuantizeTable.h - NAME_qtable.json: precision per op -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera::quant {

/// What an op computes with, and what its weights and its result are held in. W8, W4: integer weights, f32 else.
/// DYNAMIC_INT8: matmuls in INT8 whose input is quantised at run time, f32 else.
enum class Precision { F32, INT8, INT16, BF16, F16, W8, W4, DYNAMIC_INT8 };

/// By its name in tables and on command lines; nothing for others.
std::optional<Precision> parsePrecision(llvm::StringRef name);
/// "F32, INT8, ..."
std::string precisionNames();

/// As tables and flags spell it.
llvm::StringRef toString(Precision precision);

/// Bits of an element of what an op makes, and of one of its weights.
struct Widths {
  unsigned activation, weight;
};
Widths widthsOf(Precision precision);

/// One line: the user, or a search, decided about an op.
struct Choice {
  std::string name; ///< of an ONNX node, or of a tensor that an op makes
  Precision precision = Precision::F32;
  std::string reason; ///< free text, may be empty
};

/// {"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "Conv_3", "type": "F32", "reason": "..."}]}
/// A "model" and a "tool" may stand beside. What has no line is decided by the quantiser.
struct QuantizeTable {
  /// Reads and checks a table. The error names file, op, value and what is allowed.
  static llvm::Expected<QuantizeTable> load(llvm::StringRef path);

  Precision standard = Precision::INT8; ///< of ops that have no line: INT8, or INT16
  std::string path;
  std::vector<Choice> choices;
};

} // namespace tessera::quant
