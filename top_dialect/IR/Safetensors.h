//===- Safetensors.h - The header of safetensors files ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A file is the header's length (u64, little-endian), the header, a JSON object of entries padded with spaces, and the
// tensors' bytes.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_SAFETENSORS_H
#define TESSERA_TOP_DIALECT_IR_SAFETENSORS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace tessera::top {

/// The format's name of an element type; "" if it has none. Signed integers are as good as those without a sign.
llvm::StringRef safetensorsName(mlir::Type elementType);

/// The element type of that name, integers without a sign where they are not unsigned; null if there is none.
mlir::Type safetensorsType(mlir::MLIRContext *context, llvm::StringRef name);

/// Where tensors of the type stand in a file whose tensors are all aligned to their elements: wider ones first.
size_t safetensorsRank(mlir::Type elementType);

/// "name":{...} as it stands in the header: bytes [begin, end) behind the header, of elements of safetensorsName
/// |type|.
std::string safetensorsEntry(llvm::StringRef name, llvm::StringRef type, llvm::ArrayRef<int64_t> shape, uint64_t begin,
                             uint64_t end);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_SAFETENSORS_H
