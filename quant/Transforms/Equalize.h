//===- Equalize.h - Channels of one tensor brought to like ranges -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/ChannelFlow.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tessera::quant {

/// Of one tensor's channels, over samples.
struct ChannelStatistics {
  std::vector<float> low, high; ///< extremes; may be empty for what no product reads
  std::vector<float> power;     ///< means of squares
};

/// What a tensor's channels were divided by.
struct ChannelFactors {
  int64_t axis = 0;
  std::vector<float> factors;
};

/// By the name of the tensor.
using TensorFactors = llvm::StringMap<ChannelFactors>;

/// Of tensors at which factors other than 1 begin, by name.
using OriginFactors = llvm::StringMap<std::vector<float>>;

/// Which products' inputs may be scaled.
struct EqualizedKinds {
  bool convolutions = true; ///< cross-layer equalisation (Nagel et al. 2019)
  bool matmuls = true;      ///< SmoothQuant (Xiao et al. 2022)
};

struct Equalization {
  OriginFactors origins;
  int64_t tensors = 0;          ///< whose channels products read scaled
  double before = 0, after = 0; ///< expected noise of int8: sums of squares, relative to each product's result
};

/// Factors with the least expected noise: of a tensor's channels, to the power of 0 to 3/4 of their ranges. Narrow
/// channels that share a step with wide ones gain; the weights that read them share a scale too, and lose.
Equalization chooseFactors(mlir::func::FuncOp function, const ChannelFlow &flow,
                           const llvm::StringMap<ChannelStatistics> &statistics, const EqualizedKinds &kinds);

/// Divides tensors by the factors that begin at `origins`, and multiplies the weights that read them: outputs stay the
/// same, but for roundings. Returns the factors of all tensors with a name. Fails where the factors do not fit the
/// function.
llvm::Expected<TensorFactors> applyFactors(mlir::func::FuncOp function, const ChannelFlow &flow,
                                           const OriginFactors &origins);

} // namespace tessera::quant
