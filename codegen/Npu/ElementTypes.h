//===- ElementTypes.h - Element types of the NPU ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_ELEMENTTYPES_H
#define TESSERA_CODEGEN_NPU_ELEMENTTYPES_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Types.h"
#include "top_dialect/IR/TensorTypes.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace tessera::npu {

/// Returns an error saying why an op cannot be emitted. The caller reports it at the op.
inline llvm::Error reject(const llvm::Twine &why) { return llvm::createStringError(why); }

using tessera::typeOf; // the overload for values, which the following declaration would hide

/// Returns the NPU's element type for |element|, or nothing if the NPU does not support it.
std::optional<bmodel::npu::Type> typeOf(mlir::Type element);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_ELEMENTTYPES_H
