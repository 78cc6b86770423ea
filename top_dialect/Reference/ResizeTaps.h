//===- ResizeTaps.h - Which input positions a resize weighs together ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Every interpolation of top.resize is separable: per dim one list of weighted input positions for each
// output position. The reference sums over these lists, the device lowering makes tables of them.
#pragma once

#include "top_dialect/IR/TopShapeOps.h"

#include <vector>

namespace tessera::top {

struct ResizeTap {
  int64_t position; // inside the input
  double weight;
};

/// What one output position of one dim is made of.
struct ResizeTaps {
  llvm::SmallVector<ResizeTap, 4> taps; // at least one
  bool outside = false;                 // tf_crop_and_resize: beyond the input, gives the extrapolation value
};

/// The taps of every output position of dim `dim`, which has `inSize` positions in x and `outSize` in y.
std::vector<ResizeTaps> resizeTaps(ResizeOp op, unsigned dim, int64_t inSize, int64_t outSize);

/// True for a dim that maps onto itself: same size and scale, and not cropped.
bool keepsDim(ResizeOp op, unsigned dim, int64_t inSize, int64_t outSize);

} // namespace tessera::top
