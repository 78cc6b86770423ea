//===- RunTimeResize.h - Resizes by sizes that a run computes ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMERESIZE_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMERESIZE_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// How a resize interpolates.
struct Interpolation {
  ResizeMode mode;
  ResizeCoord coord;
  ResizeRound round;
  double cubic;         ///< the coefficient of mode cubic
  double extrapolation; ///< the value outside of x, for tf_crop_and_resize
  bool excludesOutside, antialias;
};

/// A dim that is resized to |size| elements. Values are vectors of one f64.
struct ResizedDim {
  int64_t axis;
  Dim size;
  mlir::Value scale;
  mlir::Value roiStart, roiEnd; ///< null: the whole dim
};

/// Resizes |dims| of |x|, one after another, by gathers at positions and with weights that ops compute. It serves sizes
/// for which the compiler cannot compute positions and weights. The arithmetic is that of resizeTaps().
mlir::Value resizeByOps(NodeImporter &n, mlir::Value x, llvm::ArrayRef<ResizedDim> dims,
                        const Interpolation &interpolation);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMERESIZE_H
