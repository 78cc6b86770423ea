//===- Equalize.h - Scales channels to similar ranges -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_EQUALIZE_EQUALIZE_H
#define TESSERA_QUANT_TRANSFORMS_EQUALIZE_EQUALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/Equalize/ChannelFlow.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tessera::quant {

/// Statistics of one tensor's channels over all samples.
struct ChannelStatistics {
  std::vector<float> low, high; ///< extremes; may be empty if no convolution or matmul reads the tensor
  std::vector<float> power;     ///< means of squares
};

/// The factors by which a tensor's channels were divided.
struct ChannelFactors {
  int64_t axis = 0;
  std::vector<float> factors;
};

/// Factors by the name of the tensor.
using TensorFactors = llvm::StringMap<ChannelFactors>;

/// Factors by the name of the tensor at which they start; tensors whose factors are all 1 are left out.
using OriginFactors = llvm::StringMap<std::vector<float>>;

/// The kinds of ops whose inputs may be scaled.
struct EqualizedKinds {
  bool convolutions = true; ///< cross-layer equalisation (Nagel et al. 2019)
  bool matmuls = true;      ///< SmoothQuant (Xiao et al. 2022)
};

/// The chosen factors and the noise that they are expected to save.
struct Equalization {
  OriginFactors origins;
  int64_t tensors = 0;          ///< number of scaled tensors that contractions read
  double before = 0, after = 0; ///< expected int8 noise: sums of squares relative to the power of each contraction's
                                ///< result
};

/// Chooses the factors with the least expected noise: powers, from 0 to 1/2, of each channel's share in the tensor's
/// range. Narrow channels gain, because they no longer use the coarse step of the wide ones; the weights that read them
/// share a scale as well, and lose.
Equalization chooseFactors(mlir::func::FuncOp function, const ChannelFlow &flow,
                           const llvm::StringMap<ChannelStatistics> &statistics, const EqualizedKinds &kinds);

/// Divides tensors by the factors that start at `origins` and multiplies the weights that read them. Outputs stay the
/// same except for rounding. Returns the factors of all tensors with a name. Fails if the factors do not match the
/// function.
llvm::Expected<TensorFactors> applyFactors(mlir::func::FuncOp function, const ChannelFlow &flow,
                                           const OriginFactors &origins);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_EQUALIZE_EQUALIZE_H
