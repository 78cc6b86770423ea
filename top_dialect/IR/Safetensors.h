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

#include <string>

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

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_SAFETENSORS_H
