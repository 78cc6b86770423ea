//===- Safetensors.h - The header of safetensors files ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A file consists of the header's length (u64, little-endian), the header (a JSON object padded with spaces), and the
// bytes of the tensors.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_SAFETENSORS_H
#define TESSERA_TOP_DIALECT_IR_SAFETENSORS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace tessera::top {

/// Returns the format's name of an element type, or "". Signed integers are treated like signless ones.
llvm::StringRef safetensorsName(mlir::Type elementType);

/// Returns the element type of a given name, with signless integers unless unsigned; null for unknown names.
mlir::Type safetensorsType(mlir::MLIRContext *context, llvm::StringRef name);

/// Returns the position of an element type in a file whose tensors are all aligned to their elements: wider ones first.
size_t safetensorsRank(mlir::Type elementType);

/// Returns the header entry "name":{...} of a tensor. [begin, end) are byte offsets after the header; |type| is a name
/// from safetensorsName.
std::string safetensorsEntry(llvm::StringRef name, llvm::StringRef type, llvm::ArrayRef<int64_t> shape, uint64_t begin,
                             uint64_t end);

/// A tensor of a file.
struct SafetensorsTensor {
  std::string name;
  mlir::Type elementType;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<char> bytes;
};

/// Returns the tensors of the file |content|, whose bytes they refer to. Every tensor lies inside the file and has the
/// bytes of its shape.
llvm::Expected<std::vector<SafetensorsTensor>> parseSafetensors(mlir::MLIRContext *context, llvm::StringRef content);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_SAFETENSORS_H
