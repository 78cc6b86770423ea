//===- Tensors.h - Tensors and steps of a .bmodel ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_TENSORS_H
#define TESSERA_CODEGEN_TARGET_TENSORS_H

#include "bmodel/writer.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <optional>

namespace tessera::codegen {

/// The file's name of an element type; nothing where it has none.
std::optional<bmodel::DType> dtypeOf(mlir::Type type);

/// Name, type, shape, layout and stored size, without role and place; nothing where the file has no such tensor. Sizes
/// are constants: this is where a dim that is known at run time only would be asked for.
std::optional<bmodel::TensorDefT> describeTensor(mlir::RankedTensorType type, llvm::StringRef name);

/// Copies one tensor to another; both by slot.
std::unique_ptr<bmodel::StepDefT> copyStep(uint32_t from, uint32_t to);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_TENSORS_H
