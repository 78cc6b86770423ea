//===- Quantize.h - From a float Top function to integers -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/CalibrationTable.h"
#include "quant/Transforms/Equalize.h"
#include "quant/Transforms/QuantizeTable.h"

namespace tessera::quant {

/// An op that is not in 8 bits.
struct KeptOp {
  std::string name; ///< of its ONNX nodes, or of its tensor
  std::string op;   ///< "top.conv"
  std::string reason;
  int64_t products = 0; ///< its multiplications, for convolutions and matmuls
};

/// An op that makes float values on Top, as it was decided: what a search for the cheapest precisions chooses from.
struct DecidedOp {
  std::string name; ///< what a quantise table calls it
  std::string op;   ///< "top.conv"
  Precision precision = Precision::F32;
  bool moves = false;   ///< only moves values, in whatever type they have
  int64_t products = 0; ///< multiplications of a convolution or matmul
  int64_t weights = 0;  ///< elements of its constants
  int64_t reads = 0;    ///< elements of its other operands
  int64_t writes = 0;   ///< elements of its results
};

/// A tensor that is i8 or i16 now: real = scale * (q - zeroPoint).
struct QuantizedTensor {
  std::string name; ///< of the float tensor that it stands for; its quantize has the name from now on
  float scale;
  int8_t zeroPoint;
};

/// What the user is told.
struct QuantizeReport {
  int64_t integerOps = 0;                      ///< run on integers, or in the epilogue of one that does
  int64_t narrowOps = 0;                       ///< hold weights and stored results in f16 or bf16
  int64_t products = 0, integerProducts = 0;   ///< multiplications of convolutions and matmuls: all, in integers
  int64_t narrowProducts = 0;                  ///< of f16 or bf16
  int64_t weightOps = 0, weightProducts = 0;   ///< with integer weights, computing in float
  int64_t wideProducts = 0;                    ///< of these, those of i16
  int64_t secondProducts = 0;                  ///< of these, those with the second term of a weight
  std::vector<KeptOp> kept, wide;              ///< that stay float, that read i16; in program order
  std::vector<DecidedOp> ops;                  ///< all of them, in program order
  int64_t learnedWeights = 0;                  ///< products whose weights run_calibration chose
  int64_t splitWeights = 0;                    ///< products whose weights have two terms
  std::vector<QuantizedTensor> tensors;        ///< with a name
  TensorFactors factors;                       ///< tensors hold these parts of what the model's have under their name
  std::vector<std::string> floatInputsOutputs; ///< that were asked for as integers and stay f32: which, and why
};

/// Fails where a table names a tensor or an op that the function does not have. To be called before anything that drops
/// tensors (top-widen-floats), after top::nameEveryTensor.
llvm::Error checkTables(mlir::func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices);

/// Products that share a scale in W4, unless told otherwise.
inline constexpr int64_t kGroupSize = 32;

/// What is asked for beside the tables.
struct QuantizeOptions {
  Precision precision = Precision::INT8; ///< of ops that the quantise table does not name
  int64_t groupSize = kGroupSize;        ///< of W4, a multiple of 16
  /// Weights of two terms become two products; else they stay the floats that these stand for (Undo.h).
  bool splitWeights = true;
};

/// Inserts pairs of quantize and dequantize, or of casts (see `top-quantize` in Passes.td). Tensors must have names
/// (top::nameEveryTensor). `table` may be empty where nothing is to be INT8. Weights that the table's own
/// file holds are taken from there. `progress`: ops done, of all, in each round over them.
llvm::Expected<QuantizeReport> quantizeFunction(
    mlir::func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
    const QuantizeOptions &options, llvm::function_ref<void(size_t, size_t)> progress = [](size_t, size_t) {});

} // namespace tessera::quant
