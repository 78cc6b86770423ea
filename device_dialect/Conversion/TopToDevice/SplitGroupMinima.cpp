//===- SplitGroupMinima.cpp - Weights whose groups have a scale and a minimum ---===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace tessera::device {
namespace {

/// Constant weights [N, K] = reshape(dequantize(q [N, groups, size]) + minima [N, groups, 1]).
struct GroupMinima {
  top::DequantizeOp integers;
  top::TensorData minima;
  int64_t channels, groups, size;

  static std::optional<GroupMinima> match(top::MatMulOp op) {
    auto reshape = op.getB().getDefiningOp<top::ReshapeOp>();
    auto sum = reshape ? reshape.getX().getDefiningOp<top::AddOp>() : top::AddOp();
    auto integers = sum ? sum.getA().getDefiningOp<top::DequantizeOp>() : top::DequantizeOp();
    std::optional<top::TensorData> minima = integers ? top::getConstantData(sum.getB()) : std::nullopt;
    if (!minima || !op.getTransB() || op.getTransA() || op.getRelu() || !top::isConstant(integers.getX())) {
      return std::nullopt;
    }
    ArrayRef<int64_t> dims = Lowering::dims(integers.getX()), weight = Lowering::dims(op.getB());
    if (dims.size() != 3 || weight.size() != 2 || weight[0] != dims[0] || !minima->type.getElementType().isF32() ||
        Shape(minima->type).values() != ArrayRef<int64_t>({dims[0], dims[1], 1})) {
      return std::nullopt;
    }
    return GroupMinima{integers, *minima, dims[0], dims[1], dims[2]};
  }
};

class MinimaSplitter {
public:
  explicit MinimaSplitter(PatternRewriter &rewriter) : rewriter(rewriter) {}

  void split(top::MatMulOp op) {
    std::optional<GroupMinima> weight = GroupMinima::match(op);
    if (!weight) {
      return;
    }
    rewriter.setInsertionPoint(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getY().getType());
    const int64_t size[] = {weight->channels, weight->groups * weight->size};
    Value scaled = top::ReshapeOp::create(rewriter, loc, RankedTensorType::get(size, type.getElementType()),
                                          weight->integers, Value(), rewriter.getDenseI64ArrayAttr(size));
    Value product = multiply(loc, type, op.getA(), scaled, Value());
    Value minima = top::createConstant(rewriter, loc,
                                       RankedTensorType::get({weight->channels, weight->groups}, type.getElementType()),
                                       weight->minima.bytes, "group_minima");
    Value rest = multiply(loc, type, sumsOf(op.getA(), *weight, loc), minima, op.getBias());
    auto sum = top::AddOp::create(rewriter, loc, type, product, rest);
    top::copyNames(op, sum);
    rewriter.replaceOp(op, sum);
  }

private:
  Value multiply(Location loc, Type type, Value a, Value b, Value bias) {
    return top::MatMulOp::create(rewriter, loc, type, a, b, bias, /*transA=*/false, /*transB=*/true, /*relu=*/false,
                                 llvm::APFloat(-1.0));
  }

  /// Returns the sums of the groups of |x| along the last dim. Products that read the same value share them.
  Value sumsOf(Value x, const GroupMinima &weight, Location loc) {
    Value &known = sums[{x, weight.size}];
    if (known) {
      return known;
    }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(x);
    Type element = Lowering::element(x);
    SmallVector<Dim> dims = Lowering::shape(x).dims();
    dims.back() = weight.groups;
    RankedTensorType reduced = tensorType(dims, element);
    dims.push_back(weight.size);
    top::SizeList list = top::makeSizeList(dims, rewriter.getContext());
    auto groups = top::ReshapeOp::create(rewriter, loc, tensorType(dims, element), x, Value(),
                                         rewriter.getDenseI64ArrayAttr(list.numbers));
    top::setDims(groups, top::kDimsAttr, list.dims);
    known = top::ReduceOp::create(rewriter, loc, reduced, groups, top::ReduceKind::sum,
                                  rewriter.getDenseI64ArrayAttr({int64_t(dims.size()) - 1}), /*keepDims=*/false);
    return known;
  }

  PatternRewriter &rewriter;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> sums;
};

} // namespace

void splitGroupMinima(PatternRewriter &rewriter, Operation *function) {
  SmallVector<top::MatMulOp> products;
  function->walk([&](top::MatMulOp op) { products.push_back(op); });
  MinimaSplitter splitter(rewriter);
  for (top::MatMulOp op : products) {
    splitter.split(op);
  }
}

} // namespace tessera::device
