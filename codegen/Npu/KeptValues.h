//===- KeptValues.h - What layers make, where people find it ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_KEPTVALUES_H
#define TESSERA_CODEGEN_NPU_KEPTVALUES_H

#include "bmodel/writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tessera::npu {
class ValuePlan;

/// A value of a function whose layers' results are kept (npu.kept), and where it is when the program has run.
struct KeptValue {
  mlir::Value value;
  int64_t memory = 0;           ///< as in device::Address
  uint64_t offset = 0;          ///< into it, in bytes
  std::vector<uint32_t> layers; ///< that write parts of it, in the order of the program
};

/// All that can be told apart: not what a fused op never has in one place, what leaves through other tensors alone, and
/// parts of a concatenation that no tensor of a file can begin at; the concatenation is there itself. In the order in
/// which they are complete. |plan|: has placed everything.
std::vector<KeptValue> keptValues(mlir::func::FuncOp function, const ValuePlan &plan);

/// A program that keeps values.
struct KeptIn {
  mlir::func::FuncOp function;
  llvm::ArrayRef<std::string> layers; ///< their names
  uint32_t stream = 0;                ///< its number among all of the model
};

/// Appends a tensor for each value that has a name (SubnetProgram::tensors), and what there is to tell of it: tensor,
/// op, stream, region and offset (as commands name them), layers and their ONNX nodes.
void addKept(llvm::ArrayRef<KeptValue> values, const KeptIn &program, std::vector<bmodel::TensorDefT> &tensors,
             llvm::json::Array &told);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_KEPTVALUES_H
