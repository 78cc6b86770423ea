//===- ChannelFlow.h - Which channels must be scaled together ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include <optional>

namespace tessera::quant {

/// A product whose input and output channels can be scaled in its weights.
struct ProductChannels {
  int64_t inputAxis, outputAxis;   ///< of operand 0 and of the result
  int64_t inputs, outputs, groups; ///< channels
  int64_t taps;                    ///< weights of one pair of channels
  bool inputFirst; ///< weights lie [inputs, outputs / groups, taps], else [outputs, inputs / groups, taps]

  /// visit(element, input channel, output channel) for the weights in their order; without a division for each.
  template <typename Visit>
  void forEachWeight(Visit visit) const {
    const int64_t firsts = inputFirst ? inputs : outputs, seconds = (inputFirst ? outputs : inputs) / groups;
    for (int64_t first = 0, element = 0; first < firsts; ++first) {
      const int64_t begin = first / (firsts / groups) * seconds; // of the group's channels
      for (int64_t second = begin; second < begin + seconds; ++second) {
        for (int64_t end = element + taps; element < end; ++element) {
          visit(element, inputFirst ? first : second, inputFirst ? second : first);
        }
      }
    }
  }
};

/// Nothing for other ops, and where weights or bias are not constants of f32.
std::optional<ProductChannels> productChannels(mlir::Operation *op);

/// A positive factor for each channel of a tensor can be divided out where the tensor is made, and multiplied back
/// where weights read it, if everything between lets it pass: rectifiers, pools, additions of tensors with the same
/// factors. This tells which channels of which tensors so have one factor: those of the same group. Group 0 has
/// factor 1.
class ChannelFlow {
public:
  explicit ChannelFlow(mlir::func::FuncOp function);

  struct Channels {
    int64_t axis;
    llvm::SmallVector<int> groups; ///< one for each index along `axis`
  };

  /// Null for tensors without factors.
  const Channels *of(mlir::Value value) const;
  /// Results at which factors begin, in program order: of products and norms, which take them into their constants, and
  /// of elementwise ops, which need a multiplication.
  llvm::ArrayRef<mlir::Value> origins() const { return begins; }
  int groups() const { return count; }

private:
  void visit(mlir::Operation *op);
  void visitProduct(mlir::Operation *op, const ProductChannels &product);
  void visitElementwise(mlir::Operation *op);
  bool passMove(mlir::Operation *op);
  void begin(mlir::Value result, int64_t axis);
  /// The result has the channels of `from`, along `axis`.
  void pass(mlir::Value from, mlir::Value result, int64_t axis);
  void unite(mlir::Value a, mlir::Value b);
  void fix(mlir::Value value);
  void fixOperands(mlir::Operation *op);

  int count = 1; ///< number 0 is the group of factor 1
  llvm::EquivalenceClasses<int> same;
  llvm::DenseMap<mlir::Value, Channels> known;
  llvm::SmallVector<mlir::Value> begins;
};

} // namespace tessera::quant
