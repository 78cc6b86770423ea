//===- CopyBeforeProducts.cpp - Copying rows before matmuls ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_COPYBEFOREPRODUCTSPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

/// Returns true if every row of a matmul depends only on the same row of its first operand; all other operands are
/// shared by all rows.
bool isOfRows(MatMulOp contraction) {
  int64_t columns = typeOf(contraction.getY()).getShape().back();
  return !contraction.getTransA() && !contraction.getPacking() && typeOf(contraction.getA()).getRank() >= 2 &&
         typeOf(contraction.getB()).getRank() == 2 && llvm::all_of(contraction.getExtras(), [&](Value extra) {
           int64_t count = typeOf(extra).getNumElements();
           return count == 1 || (count == columns && typeOf(extra).getShape().back() == columns);
         });
}

/// Returns true if a copy moves whole rows of |columns|.
bool movesRows(CopyOp copy, int64_t columns) {
  int64_t last = typeOf(copy.getY()).getRank() - 1;
  return copy.getSources().size() == 1 && !copy.getFill() && typeOf(copy.getY()).getShape().back() == columns &&
         typeOf(copy.getSources()[0]).getShape().back() == columns &&
         llvm::all_of(copy.getPieces().getAsRange<PieceAttr>(), [&](PieceAttr piece) {
           auto d = size_t(last);
           return piece.isKnown() && piece.getSizes()[d] == columns && piece.getDstOffsets()[d] == 0 &&
                  piece.getDstSteps()[d] == 1 && piece.getSrcDims()[d] == typeOf(copy.getSources()[0]).getRank() - 1 &&
                  piece.getSrcOffsets().back() == 0 && piece.getSrcSteps()[d] == 1;
         });
}

/// Returns the chain of row copies and reshapes after a matmul whose intermediate values have no other readers; empty
/// if it does not contain a copy.
SmallVector<Operation *> movesBehind(MatMulOp contraction) {
  int64_t columns = typeOf(contraction.getY()).getShape().back();
  SmallVector<Operation *> moves;
  for (Value value = contraction.getY(); value.hasOneUse(); value = moves.back()->getResult(0)) {
    Operation *user = *value.user_begin();
    auto reshape = dyn_cast<ReshapeOp>(user);
    auto copy = dyn_cast<CopyOp>(user);
    bool isOfRows =
        (reshape && typeOf(reshape.getY()).getRank() > 1 && typeOf(reshape.getY()).getShape().back() == columns) ||
        (copy && movesRows(copy, columns));
    if (user->getBlock() != contraction->getBlock() || !isOfRows) {
      break;
    }
    moves.push_back(user);
  }
  return llvm::any_of(moves, llvm::IsaPred<CopyOp>) ? moves : SmallVector<Operation *>();
}

RankedTensorType withColumns(Value like, int64_t columns, Type element) {
  SmallVector<int64_t> dims(typeOf(like).getShape());
  dims.back() = columns;
  return RankedTensorType::get(dims, element);
}

/// Applies the row copy or reshape |move| to |x|.
Value repeat(Operation *move, Value x, OpBuilder &builder) {
  int64_t columns = typeOf(x).getShape().back();
  RankedTensorType type = withColumns(move->getResult(0), columns, typeOf(x).getElementType());
  auto copy = dyn_cast<CopyOp>(move);
  if (!copy) {
    return ReshapeOp::create(builder, move->getLoc(), type, x).getY();
  }
  SmallVector<Attribute> pieces;
  for (auto attr : copy.getPieces().getAsRange<PieceAttr>()) {
    Piece piece(attr);
    piece.sizes.back() = columns;
    pieces.push_back(piece.get(builder.getContext()));
  }
  return CopyOp::create(builder, move->getLoc(), type, ValueRange(x), builder.getArrayAttr(pieces), FloatAttr()).getY();
}

class CopyBeforeProducts : public impl::CopyBeforeProductsPassBase<CopyBeforeProducts> {
public:
  using CopyBeforeProductsPassBase::CopyBeforeProductsPassBase;

  void runOnOperation() override {
    SmallVector<MatMulOp> products;
    getOperation().walk([&](MatMulOp contraction) { products.push_back(contraction); });
    for (MatMulOp contraction : products) {
      move(contraction);
    }
  }

private:
  void move(MatMulOp contraction) {
    if (!Shape(contraction.getA()).isKnown() || !Shape(contraction.getY()).isKnown()) {
      return;
    }
    SmallVector<Operation *> moves = isOfRows(contraction) ? movesBehind(contraction) : SmallVector<Operation *>();
    Value a = contraction.getA(), y = contraction.getY();
    int64_t before = typeOf(a).getShape().back() * typeOf(a).getElementTypeBitWidth();
    int64_t behind = typeOf(y).getShape().back() * typeOf(y).getElementTypeBitWidth();
    if (moves.empty() || before > behind) {
      return;
    }
    Value result = moves.back()->getResult(0);
    bool canHaveIt = llvm::all_of(contraction.getExtras(), [&](Value extra) { // extras must broadcast to the new result
      return typeOf(extra).getRank() <= typeOf(result).getRank();
    });
    bool repeatsRows = typeOf(result).getNumElements() > typeOf(y).getNumElements(); // rows would be multiplied more
                                                                                     // than once
    bool broadcasts = !sameSizes(Shape(a).dropBack(), Shape(y).dropBack());
    if (!canHaveIt || repeatsRows || broadcasts) {
      return;
    }
    OpBuilder builder(contraction);
    for (Operation *each : moves) {
      a = repeat(each, a, builder);
    }
    contraction.getAMutable().set(a);
    y.setType(cast<TypedValue<RankedTensorType>>(result).getType());
    if (StringRef name = top::getTensorName(result); !name.empty()) {
      top::setTensorNames(contraction, name);
    }
    result.replaceAllUsesWith(y);
    for (Operation *each : llvm::reverse(moves)) {
      each->erase();
    }
    ++numMoved;
  }
};

} // namespace
} // namespace tessera::device
