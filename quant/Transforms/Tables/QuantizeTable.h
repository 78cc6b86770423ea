//===- QuantizeTable.h - NAME_qtable.json: precision per op -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_TABLES_QUANTIZETABLE_H
#define TESSERA_QUANT_TRANSFORMS_TABLES_QUANTIZETABLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera::quant {

/// The type in which an op computes and in which its weights and results are held. W8 and W4 have integer weights and
/// otherwise f32. W8A8 and W4A8 are the same except that matmuls quantise blocks of their inputs at run time.
/// DYNAMIC_INT8 quantises the inputs of INT8 matmuls at run time and is otherwise f32.
enum class Precision { F32, INT8, INT16, BF16, F16, W8, W4, W8A8, W4A8, DYNAMIC_INT8 };

/// Returns true for the precisions of which only the weights are stored as integers.
inline bool isOfWeights(Precision precision) {
  return precision == Precision::W8 || precision == Precision::W4 || precision == Precision::W8A8 ||
         precision == Precision::W4A8;
}
/// Returns true for W8A8 and W4A8.
inline bool quantizesBlocks(Precision precision) {
  return precision == Precision::W8A8 || precision == Precision::W4A8;
}
/// Returns true for W4 and W4A8.
inline bool hasFourBits(Precision precision) { return precision == Precision::W4 || precision == Precision::W4A8; }

/// Returns the precision with a given name in tables and on command lines; nothing for unknown names.
std::optional<Precision> parsePrecision(llvm::StringRef name);
/// Returns "F32, INT8, ...", for messages.
std::string precisionNames();

/// Returns the name that tables and flags use.
llvm::StringRef toString(Precision precision);

/// Bits per element of an op's result and of its weights.
struct Widths {
  unsigned activation, weight;
};
Widths widthsOf(Precision precision);

/// One line of the table: the precision that the user or a search chose for an op.
struct Choice {
  std::string name; ///< name of an ONNX node, or of a tensor that an op computes
  Precision precision = Precision::F32;
  std::string reason; ///< free text, may be empty
};

/// {"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "Conv_3", "type": "F32", "reason": "..."}]}
/// The keys "model" and "tool" are allowed. The quantiser decides about ops without a line.
struct QuantizeTable {
  /// Reads and checks a table. Errors name the file, the op, the value and the allowed values.
  static llvm::Expected<QuantizeTable> load(llvm::StringRef path);

  std::string path;
  std::vector<Choice> choices;
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_TABLES_QUANTIZETABLE_H
