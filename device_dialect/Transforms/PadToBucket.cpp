//===- PadToBucket.cpp - Functions of fixed sizes for a range of sizes ----===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/PadToBucket.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/PaddingRules.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopConstOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;

namespace tessera::device {
namespace {

using Replace = llvm::function_ref<Dim(top::SizeSymbolAttr)>;

Type replaceIn(Type type, Replace replace) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !Shape(tensor).isKnown() ? substitute(tensor, replace) : type;
}

bool isOpenType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !Shape(tensor).isKnown();
}

class BucketPadder {
public:
  BucketPadder(func::FuncOp function, const Bucket &bucket)
      : function(function), bucket(bucket), builder(function.getContext()) {}

  void run() {
    narrowSymbols();
    findDependents();
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
      builder.setInsertionPoint(&op);
      if (op.hasTrait<OpTrait::IsTerminator>()) {
        keep(&op);
      } else if (hasOpenSizes(&op)) {
        visit(&op);
      }
    }
    for (Operation *op : llvm::reverse(replaced.getArrayRef())) {
      op->erase();
    }
    hoistPreparation();
  }

private:
  /// A value with the sizes of the bucket.
  struct Padded {
    Value value;
    SmallVector<Filling> fillings; ///< by dim
  };

  void narrowSymbols();
  void findDependents();
  void hoistPreparation();
  void visit(Operation *op);
  void keep(Operation *op);
  bool tryPadding(Operation *op, std::string &reason);
  bool tryAppending(CopyOp op);
  Operation *clonePadded(Operation *op, const PaddingRule &rule);
  bool fitsBucket(Type type) const;
  RankedTensorType paddedType(Value value) const {
    return cast<RankedTensorType>(
        replaceIn(value.getType(), [&](top::SizeSymbolAttr symbol) { return sizeOf(symbol); }));
  }
  Dim sizeOf(top::SizeSymbolAttr symbol) const { return symbol.getMax(); }
  Filling fillingOf(Value value, unsigned dim) const;
  Value getPadded(Value value, ArrayRef<PaddingRule::Need> needs);
  Value pad(Value value, double filling);
  Value cut(Value value);
  Value fill(Value value, ArrayRef<PaddingRule::Need> needs);
  Value scalarConstant(Type type, double value);
  Value frontOf(ArrayRef<Dim> sizes, Type element, double inside, double outside, ArrayRef<Dim> largest = {});
  Value frontAlong(unsigned dim, Dim size, RankedTensorType type);
  Value firstInside(Location loc, RankedTensorType type, ArrayRef<Value> masks, ArrayRef<Value> values,
                    Value otherwise);

  func::FuncOp function;
  const Bucket &bucket;
  OpBuilder builder;
  llvm::DenseMap<Value, Padded> padded;   ///< by value of the original function
  llvm::DenseMap<Value, Value> cutValues; ///< results of replaced ops with their real sizes
  llvm::SetVector<Operation *> replaced;
  llvm::DenseSet<Operation *> dependsOnInputs;
};

void BucketPadder::narrowSymbols() {
  auto narrow = [&](top::SizeSymbolAttr symbol) {
    SizeRange range = bucket.lookup(symbol);
    return Dim::symbol(symbol.getContext(), symbol.getName(), range.min, range.max,
                       std::clamp(symbol.getLikely(), range.min, range.max));
  };
  for (BlockArgument argument : function.getArguments()) {
    argument.setType(replaceIn(argument.getType(), narrow));
  }
  function.walk([&](Operation *op) { top::replaceSymbols(op, narrow); });
  function.setType(FunctionType::get(function.getContext(), function.getBody().front().getArgumentTypes(),
                                     function.getBody().front().getTerminator()->getOperandTypes()));
}

/// Moves what does not depend on the inputs to the beginning, so that the host computes it before the chip starts.
void BucketPadder::hoistPreparation() {
  findDependents();
  Block &block = function.getBody().front();
  Operation *first = &block.front();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!dependsOnInputs.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>()) {
      &op == first ? void(first = op.getNextNode()) : op.moveBefore(first);
    }
  }
}

void BucketPadder::findDependents() {
  dependsOnInputs.clear();
  for (Operation &op : function.getBody().front()) {
    bool isDependent = llvm::any_of(op.getOperands(), [&](Value operand) {
      return isa<BlockArgument>(operand) || dependsOnInputs.contains(operand.getDefiningOp());
    });
    if (isDependent) {
      dependsOnInputs.insert(&op);
    }
  }
}

/// Returns true if no size of |type| exceeds the one it has for the largest symbols.
bool BucketPadder::fitsBucket(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || llvm::all_of(Shape(tensor).dims(), [&](Dim size) {
    if (size.isUnknown()) {
      return false;
    }
    Dim largest = substitute(size, [&](top::SizeSymbolAttr symbol) { return sizeOf(symbol); });
    return isNeverPositive(size - largest);
  });
}

Filling BucketPadder::fillingOf(Value value, unsigned dim) const {
  auto known = padded.find(value);
  return known == padded.end() ? Filling(0) : known->second.fillings[dim]; // it will be padded with 0
}

void BucketPadder::visit(Operation *op) {
  // The host computes what depends on sizes alone. Copies of constants do not depend on them in the end.
  bool usesInputs = dependsOnInputs.contains(op);
  std::string reason;
  auto copy = dyn_cast<CopyOp>(op);
  if ((copy && tryAppending(copy)) || ((usesInputs || isa<CopyOp, ReshapeOp>(op)) && tryPadding(op, reason))) {
    replaced.insert(op);
    return;
  }
  if (usesInputs) {
    op->setAttr(kUnpaddedAttr, builder.getStringAttr(reason));
  }
  keep(op);
}

/// Gives the operands of |op| their real sizes.
void BucketPadder::keep(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (replaced.contains(operand.get().getDefiningOp())) {
      operand.set(cut(operand.get()));
    }
  }
}

bool BucketPadder::tryPadding(Operation *op, std::string &reason) {
  if (!llvm::all_of(op->getOperandTypes(), [&](Type type) { return fitsBucket(type); }) ||
      !llvm::all_of(op->getResultTypes(), [&](Type type) { return fitsBucket(type); })) {
    reason = "has sizes that do not grow with those of the inputs";
    return false;
  }
  auto given = [&](unsigned operand, unsigned dim) { return fillingOf(op->getOperand(operand), dim); };
  PaddingRule rule = paddingRuleOf(op, given);
  if (!rule.rejection.empty()) {
    reason = rule.rejection;
    return false;
  }
  Operation *copy = clonePadded(op, rule);
  if (!copy) {
    reason = "cannot have the sizes of the bucket";
    return false;
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), copy->getResults())) {
    if (!isOpenType(result.getType())) {
      result.replaceAllUsesWith(value);
      continue;
    }
    padded[result] = {value, SmallVector<Filling>(Shape(value).rank())};
    for (const PaddingRule::Filled &filled : rule.filled) {
      if (filled.result == result.getResultNumber()) {
        padded[result].fillings[filled.dim] = filled.value;
      }
    }
  }
  return true;
}

/// A tensor of an open size, and fixed slices behind it along one dim of the result.
struct Append {
  Value front, back;
  SymbolicPiece slices; ///< the part of |back| that the copy reads, with the dims of the result in any order
  unsigned dim;
};

/// Returns true if |piece| covers all other dims of |y| than |dim|, and |dim| from |begin| on.
bool coversFrom(const SymbolicPiece &piece, Shape y, unsigned dim, Dim begin) {
  return llvm::all_of(llvm::seq(0u, unsigned(y.rank())), [&](unsigned d) {
    return piece.dstSteps[d] == 1 && sameSize(piece.dstOffsets[d], d == dim ? begin : Dim(0)) &&
           (d == dim || sameSize(piece.sizes[d], y[d]));
  });
}

/// Matches a copy that joins an f32 tensor of an open size and few fixed slices, as decoders append new keys and values
/// to their caches.
std::optional<Append> matchAppend(CopyOp op) {
  constexpr int64_t kMostSlices = 8; // each costs a map
  Shape y = op.getY();
  std::optional<unsigned> dim;
  for (unsigned d = 0; d < y.rank(); ++d) {
    if (!y[d].isKnown()) {
      if (dim) {
        return std::nullopt;
      }
      dim = d;
    }
  }
  if (!dim || op.getPieces().size() != 2 || op.getFill() || !typeOf(op.getY()).getElementType().isF32()) {
    return std::nullopt;
  }
  const SymbolicPiece front(cast<PieceAttr>(op.getPieces()[0])), back(cast<PieceAttr>(op.getPieces()[1]));
  Value x = op.getSources()[front.source], more = op.getSources()[back.source];
  const bool isFixed = Shape(more).isKnown() && back.sizes[*dim].isKnown() && back.sizes[*dim].value() <= kMostSlices;
  if (!isFixed || Shape(x).rank() != y.rank() || !coversFrom(front, y, *dim, 0) ||
      !coversFrom(back, y, *dim, Shape(x)[*dim])) {
    return std::nullopt;
  }
  for (unsigned d = 0; d < y.rank(); ++d) {
    if (front.srcDims[d] != int64_t(d) || front.srcSteps[d] != 1 || !sameSize(front.srcOffsets[d], Dim(0)) ||
        !sameSize(front.sizes[d], Shape(x)[d])) {
      return std::nullopt;
    }
  }
  return Append{x, more, back, *dim};
}

/// Returns a tensor that holds 1 at the first |size| indices of |dim|, and 0 behind; it broadcasts to |type|.
Value BucketPadder::frontAlong(unsigned dim, Dim size, RankedTensorType type) {
  SmallVector<Dim> sizes(type.getRank(), 1), largest(type.getRank(), 1);
  sizes[dim] = size, largest[dim] = Shape(type)[dim];
  return frontOf(sizes, builder.getI1Type(), 1, 0, largest);
}

/// Returns the elements of the first of |values| whose mask is 1, else those of |otherwise|, or 0 if that is null.
Value BucketPadder::firstInside(Location loc, RankedTensorType type, ArrayRef<Value> masks, ArrayRef<Value> values,
                                Value otherwise) {
  SmallVector<Value> operands(masks);
  llvm::append_range(operands, values);
  if (otherwise) {
    operands.push_back(otherwise);
  }
  auto map = MapOp::create(builder, loc, type, operands);
  SmallVector<Type> scalars(masks.size(), builder.getI1Type());
  scalars.resize(operands.size(), type.getElementType());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&map.getBody(), {}, scalars, SmallVector<Location>(operands.size(), loc));
  Value result = otherwise ? Value(body->getArguments().back()) : scalarConstant(type.getElementType(), 0);
  for (size_t i = masks.size(); i-- > 0;) {
    result = arith::SelectOp::create(builder, loc, body->getArgument(i), body->getArgument(masks.size() + i), result);
  }
  YieldOp::create(builder, loc, result);
  return map.getY();
}

/// Replaces a copy that writes behind elements whose number is known at run time by maps: each new slice is selected
/// where a mask, which the host computes from the number, says so. The result is 0 behind its real elements.
bool BucketPadder::tryAppending(CopyOp op) {
  std::optional<Append> append = matchAppend(op);
  if (!append || !fitsBucket(op.getY().getType()) || !fitsBucket(append->front.getType())) {
    return false;
  }
  const unsigned dim = append->dim;
  RankedTensorType type = paddedType(op.getY());
  auto known = padded.find(append->front);
  Value front = known == padded.end() ? append->front : known->second.value;
  front = CopyOp::create(builder, op.getLoc(), type, front, builder.getArrayAttr({identityPiece(typeOf(front))}),
                         builder.getF64FloatAttr(0));
  const Dim begin = Shape(append->front)[dim];
  SmallVector<Value> values{front}, masks{frontAlong(dim, begin, type)};
  SmallVector<Dim> sizes(Shape(type).dims());
  sizes[dim] = 1;
  for (int64_t slice = 0, count = append->slices.sizes[dim].value(); slice < count; ++slice) {
    SymbolicPiece piece = append->slices;
    piece.source = 0, piece.sizes[dim] = 1, piece.dstOffsets[dim] = 0;
    if (int64_t from = piece.srcDims[dim]; from >= 0) {
      piece.srcOffsets[from] = piece.srcOffsets[from] + slice * piece.srcSteps[dim];
    }
    values.push_back(CopyOp::create(builder, op.getLoc(), tensorType(sizes, type.getElementType()), append->back,
                                    builder.getArrayAttr({piece.get(op.getContext())}), FloatAttr()));
    masks.push_back(frontAlong(dim, begin + (slice + 1), type));
  }
  Value result;
  for (size_t left = values.size(); left > 0;) { // a map of a chip has few operands
    const size_t count = result ? 1 : 2;
    left -= count;
    result =
        firstInside(op.getLoc(), type, ArrayRef(masks).slice(left, count), ArrayRef(values).slice(left, count), result);
  }
  padded[op.getY()] = {result, SmallVector<Filling>(type.getRank())};
  padded[op.getY()].fillings[dim] = 0;
  return true;
}

/// Clones |op| with padded operands and results. Returns null if the clone is not valid.
Operation *BucketPadder::clonePadded(Operation *op, const PaddingRule &rule) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    auto ofOperand = [&](const PaddingRule::Need &need) { return need.operand == operand.getOperandNumber(); };
    SmallVector<PaddingRule::Need> needs = llvm::filter_to_vector(rule.needs, ofOperand);
    operands.push_back(isOpenType(operand.get().getType()) ? getPadded(operand.get(), needs) : operand.get());
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  top::replaceSymbols(copy, [&](top::SizeSymbolAttr symbol) { return sizeOf(symbol); });
  if (llvm::any_of(op->getResultTypes(), isOpenType)) {
    copy->removeAttr(top::TopDialect::kOutputsAttr); // the tensors of these names have other sizes
  }
  if (rule.needsKeyMask) {
    auto attention = cast<AttentionOp>(op);
    Shape k = attention.getK();
    Value mask = frontOf({1, k[k.rank() - 2]}, builder.getF32Type(), 0, -std::numeric_limits<double>::infinity());
    cast<AttentionOp>(copy).getMaskMutable().assign(mask);
    mask.getDefiningOp()->moveBefore(copy);
    mask.getDefiningOp()->getOperand(0).getDefiningOp()->moveBefore(mask.getDefiningOp());
  }
  ScopedDiagnosticHandler silence(op->getContext(), [](Diagnostic &) { return success(); });
  if (failed(verify(copy))) {
    copy->erase();
    return nullptr;
  }
  return copy;
}

/// Returns |value| with the sizes of the bucket and the fillings that are needed.
Value BucketPadder::getPadded(Value value, ArrayRef<PaddingRule::Need> needs) {
  auto known = padded.find(value);
  if (known == padded.end()) {
    double filling = needs.empty() ? 0 : needs.front().value;
    known = padded.try_emplace(value, Padded{pad(value, filling), {}}).first;
    known->second.fillings.assign(Shape(value).rank(), filling);
  }
  SmallVector<PaddingRule::Need> missing = llvm::filter_to_vector(
      needs, [&](const PaddingRule::Need &need) { return known->second.fillings[need.dim] != Filling(need.value); });
  return missing.empty() ? known->second.value : fill(value, missing);
}

/// Returns a copy of |value|, which has its real sizes, that is padded with |filling|.
Value BucketPadder::pad(Value value, double filling) {
  auto piece = identityPiece(typeOf(value));
  return CopyOp::create(builder, value.getLoc(), paddedType(value), value, builder.getArrayAttr({piece}),
                        builder.getF64FloatAttr(filling));
}

/// Returns the result of a replaced op with its real sizes.
Value BucketPadder::cut(Value value) {
  Value &result = cutValues[value];
  if (!result) {
    OpBuilder::InsertionGuard guard(builder);
    Value from = padded.find(value)->second.value;
    Operation *origin = value.getDefiningOp();
    builder.setInsertionPointAfter(from.getDefiningOp());
    result = CopyOp::create(builder, value.getLoc(), typeOf(value), from,
                            builder.getArrayAttr({identityPiece(typeOf(value))}), FloatAttr());
    if (Attribute names = origin->getNumResults() == 1 ? origin->getAttr(top::TopDialect::kOutputsAttr) : Attribute()) {
      result.getDefiningOp()->setAttr(top::TopDialect::kOutputsAttr, names);
    }
  }
  return result;
}

/// Returns a tensor of the sizes of the bucket that holds |inside| where the indices are below |sizes|, and |outside|
/// elsewhere. |largest|: the sizes of the tensor, if these are not the largest ones of |sizes|.
Value BucketPadder::frontOf(ArrayRef<Dim> sizes, Type element, double inside, double outside, ArrayRef<Dim> largest) {
  SmallVector<Dim> ofBucket(largest);
  SymbolicPiece piece;
  for (Dim size : sizes) {
    if (largest.empty()) {
      ofBucket.push_back(substitute(size, [&](top::SizeSymbolAttr symbol) { return sizeOf(symbol); }));
    }
    piece.sizes.push_back(size), piece.dstOffsets.push_back(0), piece.dstSteps.push_back(1);
    piece.srcDims.push_back(-1), piece.srcSteps.push_back(1);
  }
  piece.srcOffsets.push_back(0);
  auto one = RankedTensorType::get({1}, element);
  auto content = isa<FloatType>(element)
                     ? DenseElementsAttr::get(one, builder.getFloatAttr(element, inside))
                     : DenseElementsAttr::get(one, builder.getIntegerAttr(element, int64_t(inside)));
  Location loc = function.getLoc();
  auto constant = top::ConstantOp::create(builder, loc, one, content);
  return CopyOp::create(builder, loc, tensorType(ofBucket, element), constant.getResult(),
                        builder.getArrayAttr({piece.get(builder.getContext())}), builder.getF64FloatAttr(outside));
}

Value BucketPadder::scalarConstant(Type type, double value) {
  TypedAttr attr;
  if (isa<FloatType>(type)) {
    attr = builder.getFloatAttr(type, value);
  } else { // the bits of an unsigned integer are those of a signless one
    attr = IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(), uint64_t(int64_t(value)), /*isSigned=*/false,
                                        /*implicitTrunc=*/true));
  }
  return arith::ConstantOp::create(builder, function.getLoc(), attr);
}

/// Returns |value|, which is padded, with the fillings that are needed; later ops use the result, too.
Value BucketPadder::fill(Value value, ArrayRef<PaddingRule::Need> needs) {
  Padded &known = padded.find(value)->second;
  SmallVector<Dim> front(Shape(value).rank(), 1);
  for (const PaddingRule::Need &need : needs) {
    front[need.dim] = Shape(value)[need.dim];
  }
  Value mask = frontOf(front, builder.getI1Type(), 1, 0);
  auto map = MapOp::create(builder, value.getLoc(), known.value.getType(), ValueRange{known.value, mask});
  Type scalar = typeOf(value).getElementType();
  scalar = scalar.isUnsignedInteger() ? builder.getIntegerType(scalar.getIntOrFloatBitWidth()) : scalar;
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&map.getBody(), {}, {scalar, builder.getI1Type()}, {value.getLoc(), value.getLoc()});
  // The vector units of chips have no constants of 16-bit floats.
  Type wide = isNarrowFloat(scalar) ? builder.getF32Type() : scalar;
  Value inside = body->getArgument(0);
  inside = wide == scalar ? inside : arith::ExtFOp::create(builder, value.getLoc(), wide, inside).getResult();
  Value outside = scalarConstant(wide, needs.front().value);
  Value select = arith::SelectOp::create(builder, value.getLoc(), body->getArgument(1), inside, outside);
  select = wide == scalar ? select : arith::TruncFOp::create(builder, value.getLoc(), scalar, select).getResult();
  YieldOp::create(builder, value.getLoc(), select);
  for (const PaddingRule::Need &need : needs) {
    known.fillings[need.dim] = need.value;
  }
  for (auto [dim, filling] : llvm::enumerate(known.fillings)) {
    bool isSet = llvm::any_of(needs, [&](const PaddingRule::Need &need) { return need.dim == dim; });
    filling = isSet || filling == Filling(needs.front().value) ? filling : std::nullopt;
  }
  return known.value = map.getY();
}

} // namespace

bool hasOpenSizes(Operation *op) {
  bool isOpen = llvm::any_of(op->getOperandTypes(), isOpenType) || llvm::any_of(op->getResultTypes(), isOpenType);
  op->getAttrDictionary().walk([&](top::SizeSymbolAttr) { isOpen = true; });
  return isOpen;
}

void padToBucket(func::FuncOp function, const Bucket &bucket) { BucketPadder(function, bucket).run(); }

} // namespace tessera::device
