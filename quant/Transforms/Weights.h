//===- Weights.h - Constants of convolutions and matmuls to i8 --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Builders.h"
#include "quant/Transforms/LearnedWeights.h"

namespace tessera::quant {

/// |bias / (scale of x * scale of w)| stays below: the rest of the accumulator's 32 bits is for the products.
inline constexpr double kMaxBias = 1 << 28;

/// Of i16 values on either side of zero.
inline constexpr int64_t kMostLevels = 32767;

/// Which output channel each element of a weight belongs to: (linear / inner) % count.
struct Channels {
  int64_t count = 1, inner = 1;

  /// visit(element, channel) for `elements` of them in their order; without a division for each.
  template <typename Visit>
  void forEach(int64_t elements, Visit visit) const {
    for (int64_t i = 0; i < elements;) {
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t end = i + inner; i < end; ++i) {
          visit(i, c);
        }
      }
    }
  }
};

/// Of a weight whose dim `dim` is that of output channels (weightOf).
Channels channelsOf(mlir::RankedTensorType type, int64_t dim);

/// Whether weight and bias of a product can be read and hold no NaN and no infinity.
bool hasFiniteWeights(mlir::Operation *op);

/// The most levels of an i16 input of values up to `magnitude` with which no sum of a product, with its bias, can leave
/// 32 bits: by the weights that it has, or, where others may take their place (`anyWeights`), by 127 for each.
int64_t mostLevels(mlir::Operation *op, double magnitude, bool anyWeights);

/// Replaces the weight of a product by `dequantize(i8 constant)`: symmetric, one scale per output channel, values in
/// [-127, 127], rounded so that the sums of kernels and channels stay. A channel whose bias is huge against its weights
/// gets a larger scale (kMaxBias). With `learned` these integers and scales are taken, and its bias is added; channels
/// that need the larger scale are rounded as without.
void quantizeWeight(mlir::OpBuilder &builder, mlir::Operation *op, double inputScale,
                    const std::optional<LearnedWeight> &learned = std::nullopt);

/// Adds to the bias of a product, one value for each of its channels; it gets a bias if it has none.
void addToBias(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<float> delta);

/// Along the dim of weightOf(op).
int64_t countChannels(mlir::Operation *op);

} // namespace tessera::quant
