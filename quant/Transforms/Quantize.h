//===- Quantize.h - Quantisation of a float Top function --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_QUANTIZE_H
#define TESSERA_QUANT_TRANSFORMS_QUANTIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/Equalize/Equalize.h"
#include "quant/Transforms/Tables/CalibrationTable.h"
#include "quant/Transforms/Tables/LearnedWeights.h"
#include "quant/Transforms/Tables/QuantizeTable.h"

namespace mlir {
class PassManager;
} // namespace mlir

namespace tessera::quant {

/// An op that does not run in 8 bits.
struct FloatOp {
  std::string name; ///< name of its ONNX node, or of its tensor
  std::string op;   ///< "top.conv"
  std::string reason;
  int64_t macs = 0; ///< number of multiplications; 0 except for convolutions and matmuls
};

/// An op with float results on Top and its precision. A search for the cheapest precisions chooses among these ops.
struct DecidedOp {
  std::string name; ///< name in a quantise table
  std::string op;   ///< "top.conv"
  Precision precision = Precision::F32;
  bool moves = false;  ///< only moves values, independently of their type
  int64_t macs = 0;    ///< number of multiplications of a convolution or matmul
  int64_t weights = 0; ///< number of elements of its constants
  int64_t reads = 0;   ///< number of elements of its other operands
  int64_t writes = 0;  ///< number of elements of its results
};

/// A tensor that became i8 or i16: real = scale * (q - zeroPoint).
struct QuantizedTensor {
  std::string name; ///< name of the float tensor, which its quantize has taken over
  float scale;
  int8_t zeroPoint;
};

/// Summary of a quantisation for the user.
struct QuantizeReport {
  int64_t integerOps = 0;                      ///< ops that run on integers, or in the epilogue of such an op
  int64_t narrowOps = 0;                       ///< ops whose weights and stored results are f16 or bf16
  int64_t macs = 0, integerMacs = 0;           ///< multiplications of convolutions and matmuls: all, and in integers
  int64_t narrowMacs = 0;                      ///< multiplications in f16 or bf16
  int64_t weightOps = 0, weightMacs = 0;       ///< ops that compute in float with integer weights
  int64_t wideMacs = 0;                        ///< part of integerMacs that reads i16
  int64_t residualMacs = 0;                    ///< part of integerMacs for the second term of weights
  std::vector<FloatOp> kept, wide;             ///< ops that stay float, ops that read i16; in program order
  std::vector<DecidedOp> ops;                  ///< all ops, in program order
  int64_t learnedWeights = 0;                  ///< number of ops whose weights run_calibration chose
  int64_t splitWeights = 0;                    ///< number of ops whose weights have two terms
  std::vector<QuantizedTensor> tensors;        ///< quantised tensors with a name
  TensorFactors factors;                       ///< factors by which tensors were divided, compared with the tensor of
                                               ///< the same name in the model
  std::vector<std::string> floatInputsOutputs; ///< inputs and outputs that stay f32 on a request for integers, with the
                                               ///< reason
};

/// Fails if a table names a tensor or an op that the function does not have. Call this after top::nameEveryTensor and
/// before any pass that drops tensors (top-widen-floats).
llvm::Error checkTables(mlir::func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices);

/// Default number of weights along the sum that share a scale in W4.
inline constexpr int64_t kGroupSize = 32;

/// Options of quantizeFunction.
struct QuantizeOptions {
  Precision precision = Precision::INT8; ///< for ops that the quantise table does not name
  int64_t groupSize = kGroupSize;        ///< for W4; a multiple of 16
  /// Split weights with two terms into two contractions. Otherwise they stay the float values of the two terms
  /// (StripQDQ.h).
  bool splitWeights = true;
};

/// Rewrites a function whose ops have precisions (AssignPrecision.h): inserts pairs of quantize and dequantize, or of
/// casts, and rounds weights (see `apply-precision` in Passes.td). `table` may be empty if no op is INT8. `learned`:
/// the weights in the table's weight file, which replace those of the model. `progress` is called with the number of
/// ops done and the total, in each pass over the ops. Fails if an op cannot have its precision.
llvm::Expected<QuantizeReport> applyPrecision(mlir::func::FuncOp function, const CalibrationTable &table,
                                              const QuantizeOptions &options,
                                              const std::optional<LearnedWeights> &learned,
                                              llvm::function_ref<void(size_t, size_t)> progress);

/// Runs the passes `assign-precision` and `apply-precision` on the module of `function`. Tensors must have names
/// (top::nameEveryTensor). `prepare` may add instrumentation.
llvm::Expected<QuantizeReport> quantizeFunction(
    mlir::func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
    const QuantizeOptions &options, llvm::function_ref<void(size_t, size_t)> progress = [](size_t, size_t) {},
    llvm::function_ref<void(mlir::PassManager &)> prepare = [](mlir::PassManager &) {});

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_QUANTIZE_H
