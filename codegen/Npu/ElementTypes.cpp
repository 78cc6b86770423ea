//===- ElementTypes.cpp - Element types of the NPU ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ElementTypes.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tessera::npu {
using bmodel::npu::Type;

std::optional<Type> typeOf(mlir::Type element) {
  if (element.isF32()) {
    return Type::f32;
  }
  if (element.isF16() || element.isBF16()) {
    return element.isF16() ? Type::f16 : Type::bf16;
  }
  if (element.isUnsignedInteger(8) || element.isInteger(1)) {
    return Type::u8; // i1 is stored as a byte, 0 or 1
  }
  return element.isSignlessInteger(8)    ? std::optional(Type::i8)
         : element.isSignlessInteger(16) ? std::optional(Type::i16)
         : element.isSignlessInteger(32) ? std::optional(Type::i32)
                                         : std::nullopt;
}

} // namespace tessera::npu
