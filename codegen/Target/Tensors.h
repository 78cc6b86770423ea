//===- Tensors.h - Tensors and steps of a .bmodel ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_TENSORS_H
#define TESSERA_CODEGEN_TARGET_TENSORS_H

#include "codegen/Target/TargetProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <optional>

namespace tessera::codegen {

/// Returns the file's element type; nothing if the file format does not have it.
std::optional<bmodel::DType> dtypeOf(mlir::Type type);

/// Returns name, type, shape, layout and stored size, without role and place; nothing if the file cannot store the
/// tensor. |dimOf| returns a symbolic size as a dimension; without it, all sizes must be numbers.
std::optional<bmodel::TensorDefT> describeTensor(mlir::RankedTensorType type, llvm::StringRef name,
                                                 llvm::function_ref<bmodel::Dim(Dim)> dimOf = {});

/// Returns a step that copies tensor |from| to |to|, both slots.
std::unique_ptr<bmodel::StepDefT> copyStep(uint32_t from, uint32_t to);

/// Sets the sizes of the workspace, which device-assign-addresses stored in |function|, in the |program| of its subnet.
void setWorkspaceSizes(mlir::func::FuncOp function, SubnetProgram &program);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_TENSORS_H
