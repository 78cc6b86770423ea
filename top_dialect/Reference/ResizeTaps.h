//===- ResizeTaps.h - Interpolation weights of resize ---------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Every interpolation of top.resize is separable: per dim, each output position has a list of weighted input positions.
// The reference sums over these lists; the device lowering turns them into tables.
#ifndef TESSERA_TOP_DIALECT_REFERENCE_RESIZETAPS_H
#define TESSERA_TOP_DIALECT_REFERENCE_RESIZETAPS_H

#include "top_dialect/IR/TopShapeOps.h"

#include <optional>
#include <vector>

namespace tessera::top {

/// An input position and its weight.
struct ResizeTap {
  int64_t position; // within the input
  double weight;
};

/// The weighted input positions of one output position along one dim.
struct ResizeTaps {
  llvm::SmallVector<ResizeTap, 4> taps; // at least one
  bool outside = false;                 // tf_crop_and_resize: outside the input, the result is the extrapolation value
};

/// Returns the taps of every output position of dim `dim`, whose size is `inSize` in x and `outSize` in y.
std::vector<ResizeTaps> resizeTaps(ResizeOp op, unsigned dim, int64_t inSize, int64_t outSize);

/// Checks that a dim is copied unchanged: same size, scale 1, not cropped.
bool keepsDim(ResizeOp op, unsigned dim, int64_t inSize, int64_t outSize);

/// Returns k if the resize repeats each element of dim `dim` k times, whatever the size, and does nothing else. Returns
/// none for other resizes, e.g. linear ones.
std::optional<int64_t> findRepetition(ResizeOp op, unsigned dim);

/// Returns true if every output position has two neighbouring taps with the weights 1 - f and f, where f is the
/// fraction of its coordinate. A run can compute them for any sizes.
bool hasNeighbouringTaps(ResizeOp op);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_REFERENCE_RESIZETAPS_H
