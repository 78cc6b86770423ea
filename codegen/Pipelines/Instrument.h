//===- Instrument.h - Top tensors in a .bmodel ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_INSTRUMENT_H
#define TESSERA_CODEGEN_PIPELINES_INSTRUMENT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace tessera::codegen {

/// A float tensor of the Top function, with the tensor of the .bmodel that holds its values.
struct InstrumentedTensor {
  std::string name;        ///< ONNX or derived name (top::nameEveryTensor); inputs: their ONNX name
  std::string op;          ///< "top.conv", ...; "input"
  std::string source;      ///< ONNX name of the model's tensor with the same elements (a reshape does not have a tensor
                           ///< itself)
  bool isConstant = false; ///< equal in every run; |source| is empty
  bool isRepeated = false; ///< a branch or a loop computes it: a run does so any number of times
  bool isInteger = true;   ///< INT8 may store it as integers: the effect of its range on the outputs is worth measuring
  std::string gate;        ///< name of the nearest tensor through which all its effects reach the outputs; may be empty
  std::vector<int64_t> shape;     ///< with each symbolic size at its likely value
  std::vector<std::string> sizes; ///< the sizes as text; empty if all of them are numbers
};

/// Returns the float inputs and results of Top ops of a function with named tensors, in program order. Only inputs have
/// sources. isInteger is false for tensors that INT8 certainly does not store as integers.
std::vector<InstrumentedTensor> listInstrumented(mlir::func::FuncOp function);

/// Returns the names of the float inputs and results of Top ops of a function, also of those in branches and loops.
std::vector<std::string> listFloatNames(mlir::func::FuncOp function);

/// Returns, for each output that a sigmoid computed (possibly reshaped or transposed afterwards), the name of the
/// sigmoid's input. Probabilities may saturate at 0 or 1 in f32; logits still distinguish models.
std::vector<std::pair<std::string, std::string>> listLogits(mlir::func::FuncOp function);

/// Gives every non-constant value of the function a unique tensor name: its own or that of its ONNX nodes. The names
/// are deterministic.
void nameEveryLayer(mlir::func::FuncOp function);

/// Fills in the sources from the lowered function. The source stays empty for a tensor that does not exist after
/// lowering.
void findSources(mlir::func::FuncOp function, std::vector<InstrumentedTensor> &instrumented);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_INSTRUMENT_H
