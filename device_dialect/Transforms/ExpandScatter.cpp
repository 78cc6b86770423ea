//===- ExpandScatter.cpp - Scatters of one slice as selects ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_EXPANDSCATTERPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

using Dims = SmallVector<int64_t>;

/// Largest number of rows for which f32 represents positions, and their differences from the number of rows, exactly.
constexpr int64_t kMostRows = (int64_t(1) << 24) - 2;

/// A scatter that writes once along one axis for each index of the other dims: in those dims, indices and updates have
/// the size of x or 1; along the axis they have one element.
struct SingleWrite {
  int64_t axis;
  int64_t column;        ///< column of the index tuple
  Dims indices, updates; ///< dims to which indices and updates are reshaped
};

std::optional<SingleWrite> matchElements(ScatterOp op) {
  ArrayRef<int64_t> x = typeOf(op.getX()).getShape(), given = typeOf(op.getIndices()).getShape();
  int64_t axis = op.getAxis();
  for (size_t dim = 0; dim < x.size(); ++dim) {
    if (given[dim] != (int64_t(dim) == axis ? 1 : x[dim])) {
      return std::nullopt;
    }
  }
  return SingleWrite{axis, 0, Dims(given), Dims(given)};
}

std::optional<SingleWrite> matchTuple(ScatterOp op) {
  ArrayRef<int64_t> x = typeOf(op.getX()).getShape(), given = typeOf(op.getIndices()).getShape();
  int64_t columns = given.back();
  if (typeOf(op.getIndices()).getNumElements() != columns || columns == 0) {
    return std::nullopt; // more than one tuple
  }
  SingleWrite result{columns - 1, columns - 1, Dims(x.size(), 1), Dims(x)};
  unsigned counting = 0;
  for (int64_t column = 0; column < columns; ++column) {
    if (x[column] != 1) { // any index into a dim of one element is clamped to it
      result.axis = result.column = column, ++counting;
    }
  }
  result.updates[result.axis] = 1;
  return counting <= 1 ? std::optional(result) : std::nullopt;
}

std::optional<SingleWrite> match(ScatterOp op) {
  RankedTensorType x = typeOf(op.getX());
  Type element = x.getElementType();
  bool isWide = isa<IntegerType>(element) && element.getIntOrFloatBitWidth() > 16;
  if (op.getReduction() != "none" || isWide || !Shape(x).isKnown() || !Shape(op.getIndices()).isKnown() ||
      top::getConstantData(op.getIndices())) {
    return std::nullopt;
  }
  std::optional<SingleWrite> result = op.getNd() ? matchTuple(op) : matchElements(op);
  return result && x.getDimSize(result->axis) <= kMostRows ? result : std::nullopt;
}

/// Emits an i1: the index selects |position| directly, counted from the end, or as the nearest position to an index out
/// of range. The index is only compared, never used in arithmetic, so it may be any number.
Value emitIsMeant(OpBuilder &builder, Location loc, Value index, Value position, int64_t rows) {
  using Predicate = arith::CmpIPredicate;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(index.getType(), value));
  };
  auto is = [&](Predicate predicate, Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  };
  auto both = [&](Value a, Value b) -> Value { return arith::AndIOp::create(builder, loc, a, b); };
  auto either = [&](Value a, Value b) -> Value { return arith::OrIOp::create(builder, loc, a, b); };
  Value count = number(rows), last = number(rows - 1);
  Value before = both(is(Predicate::slt, index, number(-rows)), is(Predicate::eq, position, number(0)));
  Value behind = both(is(Predicate::sgt, index, last), is(Predicate::eq, position, last));
  Value fromEnd = arith::SubIOp::create(builder, loc, position, count);
  return either(either(is(Predicate::eq, index, position), is(Predicate::eq, index, fromEnd)), either(before, behind));
}

/// Returns constant positions along the axis, in the indices' element type.
Value positionsOf(OpBuilder &builder, ScatterOp op, const SingleWrite &write) {
  Dims dims(typeOf(op.getX()).getRank(), 1);
  int64_t rows = dims[size_t(write.axis)] = typeOf(op.getX()).getDimSize(write.axis);
  auto type = RankedTensorType::get(dims, typeOf(op.getIndices()).getElementType());
  std::vector<char> bytes;
  for (int64_t row = 0; row < rows; ++row) {
    auto *raw = reinterpret_cast<const char *>(&row); // little endian: an i32 is the leading bytes
    bytes.insert(bytes.end(), raw, raw + type.getElementTypeBitWidth() / 8);
  }
  return top::createConstant(builder, op.getLoc(), type, std::move(bytes), "positions");
}

Value reshaped(OpBuilder &builder, Value value, ArrayRef<int64_t> dims) {
  RankedTensorType type = typeOf(value);
  return sameSizes(type, dims)
             ? value
             : ReshapeOp::create(builder, value.getLoc(), RankedTensorType::get(dims, type.getElementType()), value)
                   .getY();
}

/// Returns the index of the tuple entry that varies.
Value indexOf(OpBuilder &builder, ScatterOp op, const SingleWrite &write) {
  if (!op.getNd()) {
    return op.getIndices();
  }
  int64_t columns = typeOf(op.getIndices()).getShape().back();
  Value tuple = reshaped(builder, op.getIndices(), columns);
  if (columns > 1) {
    Piece piece = Piece::identity(0, 1);
    piece.srcOffsets[0] = write.column;
    auto type = RankedTensorType::get({1}, typeOf(tuple).getElementType());
    tuple = CopyOp::create(builder, op.getLoc(), type, tuple, builder.getArrayAttr(piece.get(builder.getContext())),
                           FloatAttr());
  }
  return reshaped(builder, tuple, write.indices);
}

void expand(ScatterOp op, const SingleWrite &write) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value index = indexOf(builder, op, write), positions = positionsOf(builder, op, write);
  Value updates = reshaped(builder, op.getUpdates(), write.updates);
  SmallVector<Value> inputs = {op.getX(), updates, index, positions};
  auto map = MapOp::create(builder, loc, op.getY().getType(), inputs);
  Block &body = map.getBody().emplaceBlock();
  for (Value input : inputs) {
    body.addArgument(typeOf(input).getElementType(), loc);
  }
  builder.setInsertionPointToStart(&body);
  int64_t rows = typeOf(op.getX()).getDimSize(write.axis);
  Value isMeant = emitIsMeant(builder, loc, body.getArgument(2), body.getArgument(3), rows);
  Value chosen = arith::SelectOp::create(builder, loc, isMeant, body.getArgument(1), body.getArgument(0));
  YieldOp::create(builder, loc, chosen);
  map->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op.getY().replaceAllUsesWith(map.getY());
  op.erase();
}

struct ExpandScatterPass : impl::ExpandScatterPassBase<ExpandScatterPass> {
  void runOnOperation() override {
    getOperation().walk([](ScatterOp op) {
      if (std::optional<SingleWrite> write = match(op)) {
        expand(op, *write);
      }
    });
  }
};

} // namespace

} // namespace tessera::device
