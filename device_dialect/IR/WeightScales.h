//===- WeightScales.h - Integer weights of float contractions ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_WEIGHTSCALES_H
#define TESSERA_DEVICE_DIALECT_IR_WEIGHTSCALES_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include <vector>

namespace tessera::device {

/// Relates the logical weights of a conv [channels, depth, taps...] or matmul [depth, channels] (transposed: [channels,
/// depth]) to their scales [ceil(depth / group), channels].
struct WeightScales {
  int64_t channels, depth, taps, group;
  bool depthFirst;

  /// |shape|: dims of the weights; |transposed|: the flag of a matmul.
  static WeightScales ofConv(llvm::ArrayRef<int64_t> shape, int64_t group) {
    int64_t taps = 1;
    for (int64_t dim : shape.drop_front(2)) {
      taps *= dim;
    }
    return {shape[0], shape[1], taps, group, false};
  }
  static WeightScales ofMatMul(llvm::ArrayRef<int64_t> shape, int64_t group, bool transposed) {
    int64_t rows = shape[shape.size() - 2], columns = shape.back();
    return transposed ? WeightScales{rows, columns, 1, group, false} : WeightScales{columns, rows, 1, group, true};
  }

  int64_t groups() const { return (depth + group - 1) / group; }
  /// Returns the index of the scale for the weight at row-major index |i|.
  int64_t scaleOf(int64_t i) const {
    int64_t step = depthFirst ? i / channels : i / taps % depth, channel = depthFirst ? i % channels : i / taps / depth;
    return step / group * channels + channel;
  }

  /// Returns the weights as floats.
  std::vector<float> apply(llvm::ArrayRef<int8_t> weights, llvm::ArrayRef<float> scales) const {
    std::vector<float> result(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      result[i] = static_cast<float>(weights[i]) * scales[scaleOf(static_cast<int64_t>(i))];
    }
    return result;
  }
};

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_WEIGHTSCALES_H
