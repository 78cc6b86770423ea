//===- InputsOutputs.h - Integers and pixels at the model's interface --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_INPUTSOUTPUTS_H
#define TESSERA_QUANT_TRANSFORMS_INPUTSOUTPUTS_H

#include "quant/Transforms/Quantize.h"

namespace tessera::quant {

/// The types that a caller wants to pass and receive instead of f32.
struct InputsOutputs {
  bool quantInputs = false;  ///< inputs that integer ops read are passed as integers
  bool quantOutputs = false; ///< f32 outputs with a range are returned as integers
  std::string pixels;        ///< a format of fusePreprocess; empty if inputs are not pixels
};

/// Turns f32 inputs or outputs of a quantised function into integers and appends them to report.tensors. Those that
/// stay f32 are listed in report.floatInputsOutputs with the reason.
void exposeIntegers(mlir::func::FuncOp function, const CalibrationTable &table, const InputsOutputs &asked,
                    QuantizeReport &report);

/// Turns inputs with a pre-processing record into u8 pixels. Channel order, mean and scale become ops, and the record
/// keeps what the caller still has to do. `format` is packed ([N, H, W, C]) or planar ([N, C, H, W]), with the prefix
/// "rgb_" or "bgr_" if the channels are not in the model's order. Fails if no input has a record, or if a recorded
/// input does not have the shape of an image.
llvm::Error fusePreprocess(mlir::func::FuncOp function, llvm::StringRef format);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_INPUTSOUTPUTS_H
