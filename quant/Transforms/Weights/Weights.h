//===- Weights.h - Weights of convolutions and matmuls to i8 ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTS_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTS_H

#include "mlir/IR/Builders.h"
#include "quant/Transforms/Tables/LearnedWeights.h"

namespace tessera::quant {

/// Limit of |bias / (scale of x * scale of w)|. The rest of the 32-bit accumulator is for the sum of products.
inline constexpr double kMaxBias = 1 << 28;

/// Number of i16 levels on either side of zero.
inline constexpr int64_t kMaxInt16 = 32767;

/// Maps elements of a weight to output channels: the channel of element i is (i / inner) % count.
struct Channels {
  int64_t count = 1, inner = 1;

  /// Calls visit(element, channel) for `elements` elements in memory order, without a division per element.
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

/// Returns the channels of a weight of a given type whose output channels are dim `dim` (see weightOf).
Channels channelsOf(mlir::RankedTensorType type, int64_t dim);

/// Checks that a value is an f32 constant without NaN and infinity.
bool isFinite(mlir::Value constant);

/// Checks that the weight and bias of a contraction are f32 constants without NaN and infinity.
bool hasFiniteWeights(mlir::Operation *op);

/// Returns the largest number of levels of an i16 input of `op` such that no sum, bias included, overflows 32 bits.
/// `magnitude` is the largest input value. The limit depends on the present weights or, if they may be replaced
/// (`anyWeights`), assumes 127 for each weight.
int64_t largestQmax(mlir::Operation *op, double magnitude, bool anyWeights);

/// Replaces the weight of a contraction by `dequantize(i8 constant)`: symmetric, one scale per output channel, values
/// in [-127, 127], rounded so that the sums of kernels and channels are preserved. A channel with a bias that is huge
/// compared with its weights gets a larger scale (kMaxBias). `learned` replaces integers and scales and adds to the
/// bias; channels that need the larger scale are rounded as without it.
void quantizeWeight(mlir::OpBuilder &builder, mlir::Operation *op, double inputScale,
                    const std::optional<LearnedWeight> &learned = std::nullopt);

/// Adds one value per channel to the bias of a contraction, or creates the bias.
void addToBias(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<float> delta);

/// Returns the size of the channel dim of weightOf(op).
int64_t countChannels(mlir::Operation *op);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTS_H
