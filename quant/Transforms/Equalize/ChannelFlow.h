//===- ChannelFlow.h - Which channels must be scaled together ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_EQUALIZE_CHANNELFLOW_H
#define TESSERA_QUANT_TRANSFORMS_EQUALIZE_CHANNELFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include <optional>

namespace tessera::quant {

/// A convolution or matmul whose weights can absorb factors of its input and output channels.
struct ContractionChannels {
  int64_t inputAxis, outputAxis;   ///< channel dims of operand 0 and of the result
  int64_t inputs, outputs, groups; ///< numbers of channels and of groups
  int64_t taps;                    ///< weights per pair of an input and an output channel
  bool inputFirst; ///< the weight layout is [inputs, outputs / groups, taps], else [outputs, inputs / groups, taps]

  /// Calls visit(element, input channel, output channel) for all weights in memory order, without a division per
  /// weight.
  template <typename Visit>
  void forEachWeight(Visit visit) const {
    const int64_t firsts = inputFirst ? inputs : outputs, seconds = (inputFirst ? outputs : inputs) / groups;
    for (int64_t first = 0, element = 0; first < firsts; ++first) {
      const int64_t begin = first / (firsts / groups) * seconds; // first channel of the group
      for (int64_t second = begin; second < begin + seconds; ++second) {
        for (int64_t end = element + taps; element < end; ++element) {
          visit(element, inputFirst ? first : second, inputFirst ? second : first);
        }
      }
    }
  }
};

/// Returns nothing for other ops, and for weights or biases that are not f32 constants.
std::optional<ContractionChannels> contractionChannels(mlir::Operation *op);

/// Finds which channels of which tensors can be scaled together. A channel may be divided by a positive factor where it
/// is computed and multiplied back by the weights that read it, if every op in between commutes with the scaling:
/// rectifiers, pools, additions of tensors with the same factors. Channels that must share a factor form a group. Group
/// 0 has the factor 1.
class ChannelFlow {
public:
  explicit ChannelFlow(mlir::func::FuncOp function);

  struct Channels {
    int64_t axis;
    llvm::SmallVector<int> groups; ///< group of each index along `axis`
  };

  /// Returns null for tensors without channel groups.
  const Channels *of(mlir::Value value) const;
  /// Returns the results at which factors start, in program order. Convolutions, matmuls and norms absorb the factors
  /// into their constants; elementwise ops need an extra multiplication.
  llvm::ArrayRef<mlir::Value> origins() const { return begins; }
  /// Returns the number of groups, group 0 included.
  int groups() const { return count; }

private:
  void visit(mlir::Operation *op);
  void visitContraction(mlir::Operation *op, const ContractionChannels &contraction);
  void visitElementwise(mlir::Operation *op);
  /// Returns false if `op` does not move channels, or does so in a way that factors cannot follow.
  bool passMove(mlir::Operation *op);
  /// Starts a new group for each channel of `result` along `axis`.
  void begin(mlir::Value result, int64_t axis);
  /// Gives `result` the groups of `from`, along the dim `axis` of `result`.
  void pass(mlir::Value from, mlir::Value result, int64_t axis);
  /// Requires equal factors for the corresponding channels of `a` and `b`.
  void unite(mlir::Value a, mlir::Value b);
  /// Requires the factor 1 for all channels of `value`.
  void fix(mlir::Value value);
  void fixOperands(mlir::Operation *op);

  int count = 1; ///< group 0 is the group with factor 1
  llvm::EquivalenceClasses<int> same;
  llvm::DenseMap<mlir::Value, Channels> known;
  llvm::SmallVector<mlir::Value> begins;
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_EQUALIZE_CHANNELFLOW_H
