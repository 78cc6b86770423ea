//===- UpdateStates.cpp - States that are written in place ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A state that grows is appended to in its own memory, and a scatter into a state writes into it. Such a state has no
// result any more.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/CacheMatrices.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_UPDATESTATESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {

Value wholeMatrices(OpBuilder &builder, Value matrices, RankedTensorType type) {
  auto front = withoutReshapes(matrices).getDefiningOp<CopyOp>();
  auto insert = front && front.getSources().size() == 1 ? front.getSources()[0].getDefiningOp<InsertOp>() : InsertOp();
  if (!insert) {
    return {};
  }
  RankedTensorType state = typeOf(insert.getY()), taken = typeOf(front.getY());
  int64_t rank = type.getRank(), axis = state.getRank() - 2;
  bool areRows = int64_t(insert.getAxis()) == axis && rank >= 2 &&
                 sameSize(Shape(type)[rank - 2], Shape(taken)[axis]) &&
                 sameSize(Shape(type)[rank - 1], Shape(taken)[axis + 1]);
  Attribute all = identityPiece(taken);
  if (!areRows || front.getFill() || front.getPieces() != builder.getArrayAttr(all)) {
    return {};
  }
  SmallVector<Dim> sizes = Shape(type).dims();
  sizes[rank - 2] = Shape(state)[axis];
  RankedTensorType whole = tensorType(sizes, state.getElementType());
  return whole == state ? insert.getY() : ReshapeOp::create(builder, front.getLoc(), whole, insert.getY()).getY();
}

namespace {

/// Returns |type| with dim |axis| of size |size|.
RankedTensorType withSize(RankedTensorType type, int64_t axis, Dim size) {
  SmallVector<Dim> sizes = Shape(type).dims();
  sizes[axis] = size;
  return tensorType(sizes, type.getElementType());
}

/// Returns a copy of the first |size| indices of |from| along |axis|.
Value takeFront(OpBuilder &builder, Location loc, Value from, int64_t axis, Dim size) {
  RankedTensorType type = withSize(typeOf(from), axis, size);
  Attribute piece = identityPiece(type);
  return CopyOp::create(builder, loc, type, from, builder.getArrayAttr(piece), FloatAttr()).getY();
}

/// A state that grows, while its concatenation becomes an insertion.
class GrowingState {
public:
  GrowingState(func::FuncOp function, const top::State &state, const top::Growth &growth)
      : argument(function.getArgument(state.argument)), growth(growth), axis(growth.axis),
        whole(withSize(typeOf(argument), axis, growth.space())) {}

  /// Returns false if |concat| does not append to the state.
  bool replace(CopyOp concat, Value result) {
    if (!concat || concat.getY() != result || !appends(concat)) {
      return false;
    }
    OpBuilder builder(concat);
    Value updates = newIndices(builder, concat);
    auto insert =
        InsertOp::create(builder, concat.getLoc(), whole, argument, updates, axis, growth.before.expression());
    auto present = takeFront(builder, concat.getLoc(), insert.getY(), axis, growth.after).getDefiningOp<CopyOp>();
    top::copyNames(concat, present);
    result.replaceAllUsesWith(present.getY());
    concat.erase();
    argument.setType(whole);
    if (!argument.hasOneUse()) { // the others read the earlier indices, before the insertion
      builder.setInsertionPointToStart(argument.getOwner());
      Value before = takeFront(builder, argument.getLoc(), argument, axis, growth.before);
      argument.replaceUsesWithIf(
          before, [&](OpOperand &use) { return use.getOwner() != insert && use.getOwner() != before.getDefiningOp(); });
    }
    return true;
  }

private:
  /// Returns true if |concat| is the state's indices, followed along the axis by others.
  bool appends(CopyOp concat) {
    bool isFirst = false;
    for (Attribute attribute : concat.getPieces()) {
      SymbolicPiece piece(cast<PieceAttr>(attribute));
      if (concat.getSources()[piece.source] == argument) {
        bool isWhole = cast<PieceAttr>(attribute) == renumbered(identityPiece(typeOf(argument)), piece.source);
        if (isFirst || !isWhole) {
          return false;
        }
        isFirst = true;
      } else if (piece.dstSteps[axis] != 1) {
        return false;
      }
    }
    return isFirst && !concat.getFill();
  }

  static Attribute renumbered(PieceAttr attribute, int64_t source) {
    SymbolicPiece piece(attribute);
    piece.source = source;
    return piece.get(attribute.getContext());
  }

  /// Returns what |concat| appends.
  Value newIndices(OpBuilder &builder, CopyOp concat) {
    SmallVector<Attribute> pieces;
    SmallVector<Value> sources;
    for (Attribute attribute : concat.getPieces()) {
      SymbolicPiece piece(cast<PieceAttr>(attribute));
      Value source = concat.getSources()[piece.source];
      if (source != argument) {
        piece.source = int64_t(sources.size());
        piece.dstOffsets[axis] = piece.dstOffsets[axis] - growth.before;
        sources.push_back(source);
        pieces.push_back(piece.get(builder.getContext()));
      }
    }
    RankedTensorType type = withSize(whole, axis, growth.after - growth.before);
    if (sources.size() == 1 && pieces.front() == identityPiece(type) && sources.front().getType() == type) {
      return sources.front();
    }
    return CopyOp::create(builder, concat.getLoc(), type, sources, builder.getArrayAttr(pieces), FloatAttr()).getY();
  }

  BlockArgument argument;
  const top::Growth &growth;
  int64_t axis;
  RankedTensorType whole;
};

/// Makes attention read keys and values where the states have them.
void readInPlace(AttentionOp op) {
  Dim keys = op.viewSizes(1).end()[-2];
  OpBuilder builder(op);
  if (op.getViews() || op.getKeys() || !keys.isSymbolic()) {
    return;
  }
  Value k = wholeMatrices(builder, op.getK(), typeOf(op.getK()));
  Value v = wholeMatrices(builder, op.getV(), typeOf(op.getV()));
  if (k && v) {
    op.getKMutable().set(k);
    op.getVMutable().set(v);
    op.setKeysAttr(keys.expression());
  }
}

/// Makes a scatter whose x is the state |argument| write into it. Returns false if |result| is not such a scatter.
bool scatterInPlace(BlockArgument argument, Value result) {
  auto scatter = result.getDefiningOp<ScatterOp>();
  if (!scatter || scatter.getX() != argument || !argument.hasOneUse()) {
    return false;
  }
  scatter.setInPlace(true);
  return true;
}

class UpdateStates : public impl::UpdateStatesPassBase<UpdateStates> {
public:
  using UpdateStatesPassBase::UpdateStatesPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    llvm::BitVector inPlace(function.getNumResults());
    Operation *end = function.getBody().front().getTerminator();
    for (const top::State &state : top::listStates(function)) {
      Value result = end->getOperand(state.result);
      std::optional<top::Growth> growth = top::getGrowth(function, state.argument);
      bool updates = growth ? GrowingState(function, state, *growth).replace(result.getDefiningOp<CopyOp>(), result)
                            : scatterInPlace(function.getArgument(state.argument), result);
      if (growth && !updates) {
        function.emitError("state '") << state.name
                                      << "' is not the first operand of the Concat that computes its value after a "
                                         "run, so it cannot grow: leave it an input and an output (--state)";
        return signalPassFailure();
      }
      if (updates) {
        inPlace.set(state.result);
        auto name = function.getResultAttrOfType<StringAttr>(state.result, top::TopDialect::kNameAttr);
        function.setArgAttr(state.argument, top::kInPlaceAttr, name ? name : StringAttr::get(&getContext()));
        ++numUpdated;
      }
    }
    end->eraseOperands(inPlace);
    (void)function.eraseResults(inPlace);
    function.setFunctionType(
        FunctionType::get(&getContext(), function.getBody().front().getArgumentTypes(), end->getOperandTypes()));
    function.walk([](AttentionOp op) { readInPlace(op); });
  }
};

} // namespace
} // namespace tessera::device
