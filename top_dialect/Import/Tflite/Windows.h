//===- Windows.h - Geometry of convolutions and pools -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_WINDOWS_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_WINDOWS_H

#include "top_dialect/Import/Tflite/OperatorImporter.h"

namespace tessera::top::tflite_import {

/// The geometry of a convolution over images, and the weights as Top expects them.
struct ConvolutionForm {
  Value weight; ///< [OC, I, H, W]; of a transposed convolution [C, OC, H, W]
  Ints strides, pads, dilations, outputPadding;
  int64_t groups = 1;
  tflite::ActivationFunctionType activation = tflite::ActivationFunctionType::NONE;
};

/// Read the geometry of an operator; nothing after an error.
std::optional<ConvolutionForm> convolutionForm(OperatorImporter &n);
std::optional<ConvolutionForm> depthwiseForm(OperatorImporter &n);
std::optional<ConvolutionForm> transposedForm(OperatorImporter &n);

/// The geometry of a pool over images.
struct PoolForm {
  Ints kernel, strides, pads; ///< pads: all begins, then all ends
  tflite::ActivationFunctionType activation = tflite::ActivationFunctionType::NONE;
};
std::optional<PoolForm> poolForm(OperatorImporter &n);

/// Returns x of a FULLY_CONNECTED with |depth| elements per row, as its result keeps or joins the other dims.
Value fullyConnectedRows(OperatorImporter &n, const tflite::FullyConnectedOptions &options, int64_t depth);

} // namespace tessera::top::tflite_import

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_WINDOWS_H
