//===- InputsOutputs.h - Inputs and outputs as integers and pixels -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Quantize.h"

namespace tessera::quant {

/// What a caller hands in and gets instead of f32.
struct InputsOutputs {
  bool quantInputs = false;  ///< inputs that integer ops read are given as integers
  bool quantOutputs = false; ///< f32 outputs that have a range are given back as integers
  std::string pixels;        ///< a format of fusePreprocess; empty: inputs are not pixels
};

/// Makes f32 inputs, or outputs, of a quantised function integers, and adds them to report.tensors. Those that stay f32
/// are named in report.floatInputsOutputs, with why.
void exposeIntegers(mlir::func::FuncOp function, const CalibrationTable &table, const InputsOutputs &asked,
                    QuantizeReport &report);

/// Makes u8 pixels the inputs that have a record of pre-processing; channel order, mean and scale become ops, and the
/// record says what is left to do. `format`: packed ([N, H, W, C]) or planar ([N, C, H, W]), with "rgb_" or "bgr_"
/// before it where the channels are not in the model's order. Fails where no input has a record, or one is not of
/// pictures.
llvm::Error fusePreprocess(mlir::func::FuncOp function, llvm::StringRef format);

} // namespace tessera::quant
