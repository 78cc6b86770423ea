//===- Observe.h - Where a Top tensor's values are in a .bmodel -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_OBSERVE_H
#define TESSERA_CODEGEN_PIPELINES_OBSERVE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace tessera::codegen {

/// A float tensor of the Top function and the tensor of the .bmodel that holds its values.
struct ObservedTensor {
  std::string name;   ///< ONNX or derived name (top::nameEveryTensor); inputs: their ONNX name
  std::string op;     ///< "top.conv", ...; "input"
  std::string source; ///< ONNX name of the tensor of the model with the same elements (a reshape has none of its own)
  bool isConstant = false; ///< the same in every run; |source| is empty
  bool isInteger = true;   ///< INT8 may hold it in integers: what its range does to the outputs is worth a measurement
  std::string gate;        ///< name of the nearest tensor by which all that depends on it reaches the outputs, or empty
  std::vector<int64_t> shape;
};

/// The float inputs and results of Top ops of a function whose tensors are named, in program order; without
/// sources, but for inputs. Others than those that INT8 holds in integers are marked where that is certain.
std::vector<ObservedTensor> listObserved(mlir::func::FuncOp function);

/// For outputs that a sigmoid made, moved or not, the name of the tensor that it read: where probabilities are 0 or 1
/// in f32, logits still tell models apart.
std::vector<std::pair<std::string, std::string>> listLogits(mlir::func::FuncOp function);

/// Returns the outputs that no op computes: constants, and inputs that are handed on. Quantisation changes none of
/// them.
std::vector<std::string> listFixedOutputs(mlir::func::FuncOp function);

/// Gives every result of the function that is no constant a tensor name that no other one has: its own, or that of its
/// ONNX nodes. The same function always gets the same names.
void nameEveryLayer(mlir::func::FuncOp function);

/// Fills in the sources from the lowered function. A tensor that the lowering left no trace of keeps an empty source.
void findSources(mlir::func::FuncOp function, std::vector<ObservedTensor> &observed);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_OBSERVE_H
