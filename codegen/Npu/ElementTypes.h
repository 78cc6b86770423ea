//===- ElementTypes.h - Element types that the chip has ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_ELEMENTTYPES_H
#define TESSERA_CODEGEN_NPU_ELEMENTTYPES_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Types.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace tessera::npu {

/// Why an op cannot be emitted; it is reported at the op.
inline llvm::Error refuse(const llvm::Twine &why) { return llvm::createStringError(why); }

/// The chip's name of an element type; nothing where it has none.
std::optional<bmodel::npu::Type> typeOf(mlir::Type element);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_ELEMENTTYPES_H
