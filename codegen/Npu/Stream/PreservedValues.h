//===- PreservedValues.h - Layer results preserved for debugging --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_STREAM_PRESERVEDVALUES_H
#define TESSERA_CODEGEN_NPU_STREAM_PRESERVEDVALUES_H

#include "bmodel/writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tessera::npu {
class ValuePlan;

/// A value that is preserved for debugging (npu.preserved), and its location after the program has run.
struct PreservedValue {
  mlir::Value value;
  int64_t memory = 0;                ///< numbered as in device::Address
  uint64_t offset = 0;               ///< in bytes
  std::vector<uint32_t> layers = {}; ///< layers that write parts of the value, in program order
};

/// Returns all values that can be preserved, in the order in which they are complete. |plan| has placed everything.
/// Left out are values inside fused ops, values that are only stored directly, and parts of a concatenation whose
/// offset is not aligned for a tensor; the concatenation itself is included.
std::vector<PreservedValue> preservedValues(mlir::func::FuncOp function, const ValuePlan &plan);

/// A program whose layer results are preserved.
struct PreservedIn {
  mlir::func::FuncOp function;
  llvm::ArrayRef<std::string> layers; ///< names
  uint32_t stream = 0;                ///< number of the stream in the model
};

/// For each value that has a name, appends a tensor to |tensors| (SubnetProgram::tensors) and a description to the
/// list. The description lists tensor, op, stream, region and offset (as commands name them), layers and their ONNX
/// nodes.
void addPreserved(llvm::ArrayRef<PreservedValue> values, const PreservedIn &program,
                  std::vector<bmodel::TensorDefT> &tensors, llvm::json::Array &descriptions);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_PRESERVEDVALUES_H
