//===- ConvToMatMul.cpp - Convolutions with non-constant weights ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/MoveBuilder.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_CONVTOMATMULPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;
using tessera::device::Piece;

namespace tessera::x86 {
namespace {

using Dims = SmallVector<int64_t>;

/// Rewrites a convolution as y [N, G, OC / G, P] = w [G, OC / G, K] times the windows [N, G, K, P] of all P results.
class OpenConv {
public:
  explicit OpenConv(device::ConvOp conv)
      : conv(conv), build(conv), x(Shape(conv.getX()).values()), w(Shape(conv.getW()).values()),
        y(Shape(conv.getY()).values()), groups(static_cast<int64_t>(conv.getGroups())) {}

  bool canReplace() {
    auto isTileFloat = [](Value value) {
      Type element = typeOf(value).getElementType();
      return element.isF32() || device::isNarrowFloat(element);
    };
    auto knows = [&](Value extra) { return sameSizes(extra, y) || isByChannel(extra); };
    bool isDepthwise = groups > 1 && w[1] == 1;
    return !top::isConstant(conv.getW()) && !isDepthwise && !conv.getScales() && isTileFloat(conv.getX()) &&
           isTileFloat(conv.getW()) && isTileFloat(conv.getY()) && llvm::all_of(conv.getExtras(), knows);
  }

  void replace() {
    int64_t steps = w[1] * w[2] * w[3], positions = y[2] * y[3];
    Dims dims{y[0], groups, y[1] / groups, positions};
    SmallVector<Value> extras;
    for (Value extra : conv.getExtras()) {
      extras.push_back(sameSizes(extra, y) ? build.reshape(extra, dims) : byRow(extra));
    }
    if (conv.getBias()) {
      extras.push_back(byRow(conv.getBias()));
    }
    auto type = RankedTensorType::get(dims, typeOf(conv.getY()).getElementType());
    auto product = device::MatMulOp::create(
        build.builder, conv.getLoc(), type, build.reshape(conv.getW(), {1, groups, w[0] / groups, steps}),
        windows(steps), Value(), extras, Value(), false, false, device::PackingInterface(), IntegerAttr(), 0);
    product.getEpilogue().takeBody(conv.getEpilogue());
    if (conv.getBias()) {
      addBias(product);
    }
    build.replaceResult(conv, build.reshape(product.getY(), y));
    conv.erase();
  }

private:
  /// Returns true if |extra| holds one value per channel, or a single value.
  bool isByChannel(Value extra) const {
    ArrayRef<int64_t> dims = Shape(extra).values();
    int64_t count = numElements(extra);
    bool channels = dims.size() >= 3 && dims[dims.size() - 3] == y[1];
    return count == 1 || (count == y[1] && channels);
  }

  /// Returns |extra|, which holds values per channel, as one value per row of the matmul, for every image.
  Value byRow(Value extra) {
    if (numElements(extra) == 1 && y[1] != 1) {
      return build.reshape(extra, {1, 1, 1, 1});
    }
    Dims rows{1, groups, y[1] / groups, 1};
    Value one = build.reshape(extra, rows);
    rows[0] = y[0];
    if (y[0] == 1) {
      return one;
    }
    Piece piece = Piece::identity(0, rows);
    piece.srcDims[0] = -1;
    return build.copy(one, piece, rows);
  }

  /// Returns the windows [N, G, C / G * KH * KW, OH * OW], with zeros outside the image.
  Value windows(int64_t steps) {
    Dims matrices{x[0], groups, steps, y[2] * y[3]};
    bool isPadded = llvm::any_of(conv.getPads(), [](int64_t pad) { return pad != 0; });
    if (w[2] == 1 && w[3] == 1 && !isPadded && y[2] == x[2] && y[3] == x[3]) {
      return build.reshape(conv.getX(), matrices);
    }
    Dims dims{x[0], x[1], w[2], w[3], y[2], y[3]};
    std::vector<Piece> pieces;
    int64_t covered = 0;
    for (int64_t tap = 0; tap < w[2] * w[3]; ++tap) {
      Piece piece = Piece::identity(0, dims);
      piece.srcDims = {0, 1, -1, -1, 2, 3};
      piece.srcOffsets = {0, 0, 0, 0};
      bool sees = true;
      for (size_t d = 0; d < 2; ++d) {
        int64_t index = d == 0 ? tap / w[3] : tap % w[3], stride = conv.getStrides()[d];
        int64_t at = index * conv.getDilations()[d] - conv.getPads()[d]; // input position of the first result
        int64_t first = at < 0 ? llvm::divideCeil(-at, stride) : 0;
        int64_t last = at > x[d + 2] - 1 ? -1 : std::min(y[d + 2] - 1, (x[d + 2] - 1 - at) / stride);
        sees &= first <= last;
        piece.sizes[d + 2] = 1, piece.dstOffsets[d + 2] = index;
        piece.sizes[d + 4] = last - first + 1, piece.dstOffsets[d + 4] = first;
        piece.srcOffsets[d + 2] = first * stride + at, piece.srcSteps[d + 4] = stride;
      }
      if (sees) {
        covered += piece.sizes[4] * piece.sizes[5];
        pieces.push_back(piece);
      }
    }
    bool whole = covered == w[2] * w[3] * y[2] * y[3];
    return build.reshape(
        build.copy(conv.getX(), pieces, dims, whole ? FloatAttr() : build.builder.getF64FloatAttr(0.0)), matrices);
  }

  /// Adds the bias, the last epilogue operand, at the beginning of the epilogue.
  void addBias(device::MatMulOp product) {
    Region &region = product.getEpilogue();
    OpBuilder builder(product);
    bool isEmpty = region.empty();
    Block &block = isEmpty ? region.emplaceBlock() : region.front();
    Type f32 = builder.getF32Type();
    if (isEmpty) {
      block.addArgument(f32, conv.getLoc());
    }
    Value sum = block.getArgument(0), bias = block.addArgument(f32, conv.getLoc());
    builder.setInsertionPointToStart(&block);
    auto added = arith::AddFOp::create(builder, conv.getLoc(), sum, bias);
    sum.replaceAllUsesExcept(added.getResult(), added);
    if (isEmpty) {
      device::YieldOp::create(builder, conv.getLoc(), added.getResult());
    }
  }

  device::ConvOp conv;
  MoveBuilder build;
  Dims x, w, y;
  int64_t groups;
};

class ConvToMatMul : public impl::ConvToMatMulPassBase<ConvToMatMul> {
public:
  using ConvToMatMulPassBase::ConvToMatMulPassBase;

  void runOnOperation() override {
    SmallVector<device::ConvOp> convs;
    getOperation().walk([&](device::ConvOp conv) { convs.push_back(conv); });
    for (device::ConvOp conv : convs) {
      bool isStatic = llvm::all_of(conv->getOperands(), [](Value value) { return Shape(value).isKnown(); });
      if (typeOf(conv.getX()).getRank() == 4 && isStatic && numElements(conv.getY()) > 0 &&
          numElements(conv.getX()) > 0 && OpenConv(conv).canReplace()) {
        OpenConv(conv).replace();
        ++numReplaced;
      }
    }
  }
};

} // namespace
} // namespace tessera::x86
