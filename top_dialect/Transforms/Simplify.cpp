//===- Simplify.cpp - Removes and simplifies trivial ops ------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Folders handle what one op shows by itself (x + 0, reshape to the same dims). The rules here create new ops or look
// at several.
//===----------------------------------------------------------------------===//
#include "top_dialect/Transforms/Simplify.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

namespace tessera::top {
using namespace mlir;

/// Index vectors up to this length are analysed; in practice, longer ones are not slices.
static constexpr int64_t kMaxIndices = 4096;

static bool allEqual(ArrayRef<int64_t> values, int64_t to) {
  return llvm::all_of(values, [=](int64_t value) { return value == to; });
}

static Value simplifyPow(PowOp op, RewriterBase &rewriter) {
  std::optional<double> exponent = getScalar(op.getB());
  Value x = op.getA();
  if (!exponent || x.getType() != op.getType() || !isa<FloatType>(typeOf(x).getElementType())) {
    return {};
  }
  if (*exponent == 1) {
    return x;
  }
  if (*exponent == 2) {
    return MulOp::create(rewriter, op.getLoc(), op.getType(), x, x);
  }
  if (*exponent == 0.5) {
    return SqrtOp::create(rewriter, op.getLoc(), op.getType(), x);
  }
  if (*exponent == -0.5) {
    return RsqrtOp::create(rewriter, op.getLoc(), op.getType(), x);
  }
  if (*exponent == -1) {
    return ReciprocalOp::create(rewriter, op.getLoc(), op.getType(), x);
  }
  return {};
}

static Value simplifyClip(ClipOp op) {
  bool unbounded = op.getLo().convertToDouble() == -HUGE_VAL && op.getHi().convertToDouble() == HUGE_VAL;
  return unbounded ? op.getX() : Value();
}

/// Turns a reduction over dims of size 1 into a reshape, for kinds that return a single element unchanged.
static Value simplifyReduce(ReduceOp op, RewriterBase &rewriter) {
  switch (op.getKind()) {
  case ReduceKind::sum:
  case ReduceKind::mean:
  case ReduceKind::max:
  case ReduceKind::min:
  case ReduceKind::prod:
    break;
  default:
    return {};
  }
  RankedTensorType type = typeOf(op.getX());
  bool trivial = llvm::all_of(op.getAxes(), [&](int64_t axis) { return type.getDimSize(axis) == 1; });
  return trivial && Shape(type).isDetermined() ? createReshape(rewriter, op.getLoc(), op.getX(), op.getY()) : Value();
}

/// Turns a gather of consecutive rows, whose position or number is an open size, into a slice, e.g. the rows of a
/// rotary embedding for the tokens of a sequence. They are then constants as in a network of fixed sizes.
static Value simplifyRange(GatherOp op, RewriterBase &rewriter) {
  auto reshape = op.getIndices().getDefiningOp<ReshapeOp>();
  auto range = (reshape ? Value(reshape.getX()) : Value(op.getIndices())).getDefiningOp<SliceOp>();
  if (!range || Shape(range.getY()).rank() != 1 || range.getSteps()[0] != 1 || !dependsOnSizes(range)) {
    return {};
  }
  std::optional<SmallVector<int64_t>> numbers = getConstantInts(range.getX());
  if (!numbers || numbers->empty()) {
    return {};
  }
  for (size_t i = 1; i < numbers->size(); ++i) {
    if ((*numbers)[i] != (*numbers)[0] + static_cast<int64_t>(i)) {
      return {};
    }
  }
  SmallVector<Dim> starts(Shape(op.getX()).rank(), 0), sizes = Shape(op.getX()).dims();
  Dim start = sizeAt(range, kStartDimsAttr, range.getStarts(), 0) + numbers->front(), rows = sizes[op.getAxis()];
  starts[op.getAxis()] = start, sizes[op.getAxis()] = Shape(range.getY())[0];
  bool isDetermined = Shape(op.getX()).isDetermined() && Shape(op.getY()).isDetermined();
  if (!isDetermined || minOf(start) < 0 || !detail::isAtMost(start + sizes[op.getAxis()], rows)) {
    return {};
  }
  SmallVector<int64_t> steps(starts.size(), 1);
  return createReshape(rewriter, op.getLoc(), createSlice(rewriter, op.getLoc(), op.getX(), starts, sizes, steps),
                       op.getY());
}

/// Turns a gather with evenly spaced constant indices into a slice.
static Value simplifyGather(GatherOp op, RewriterBase &rewriter) {
  if (Value slice = simplifyRange(op, rewriter)) {
    return slice;
  }
  RankedTensorType type = typeOf(op.getX());
  RankedTensorType indexType = typeOf(op.getIndices());
  if (!Shape(type).isDetermined() || !Shape(type)[op.getAxis()].isKnown() || !indexType.hasStaticShape() ||
      indexType.getNumElements() == 0 || indexType.getNumElements() > kMaxIndices) {
    return {};
  }
  std::optional<SmallVector<int64_t>> indices = getConstantInts(op.getIndices());
  if (!indices) {
    return {};
  }
  int64_t axis = op.getAxis(), dim = type.getDimSize(axis);
  for (int64_t &index : *indices) {
    index = index < 0 ? index + dim : index;
    if (index < 0 || index >= dim) {
      return {};
    }
  }
  int64_t step = indices->size() > 1 ? (*indices)[1] - (*indices)[0] : 1;
  for (size_t i = 1; i < indices->size(); ++i) {
    if (step == 0 || (*indices)[i] - (*indices)[i - 1] != step) {
      return {};
    }
  }
  SmallVector<int64_t> steps(type.getRank(), 1);
  SmallVector<Dim> starts(type.getRank(), 0), sizes = Shape(type).dims();
  starts[axis] = indices->front();
  sizes[axis] = static_cast<int64_t>(indices->size());
  steps[axis] = step;
  Value slice = createSlice(rewriter, op.getLoc(), op.getX(), starts, sizes, steps);
  return createReshape(rewriter, op.getLoc(), slice, op.getY());
}

/// Simplifies a slice of a concatenation that takes elements of one operand only.
static Value sliceOfConcat(SliceOp op, ConcatOp concat, RewriterBase &rewriter) {
  int64_t axis = concat.getAxis();
  int64_t first = op.getStarts()[axis], last = first + (op.getSizes()[axis] - 1) * op.getSteps()[axis];
  int64_t low = std::min(first, last), high = std::max(first, last), begin = 0;
  for (Value input : concat.getInputs()) {
    int64_t end = begin + typeOf(input).getDimSize(axis);
    if (low >= begin && high < end) {
      SmallVector<int64_t> starts(op.getStarts());
      starts[axis] -= begin;
      return SliceOp::create(rewriter, op.getLoc(), op.getType(), input, starts, op.getSizes(), op.getSteps());
    }
    begin = end;
  }
  return {};
}

static Value sliceOfSlice(SliceOp op, SliceOp inner, RewriterBase &rewriter) {
  SmallVector<int64_t> steps;
  SmallVector<Dim> starts;
  for (int64_t d = 0, rank = op.getStarts().size(); d < rank; ++d) {
    starts.push_back(inner.getStarts()[d] + op.getStarts()[d] * inner.getSteps()[d]);
    steps.push_back(inner.getSteps()[d] * op.getSteps()[d]);
  }
  return createSlice(rewriter, op.getLoc(), inner.getX(), starts, Shape(op.getY()).dims(), steps);
}

static Value simplifySlice(SliceOp op, RewriterBase &rewriter) {
  Operation *def = op.getX().getDefiningOp();
  if (!def || llvm::is_contained(op.getSizes(), 0)) {
    return {};
  }
  if (auto shape = dyn_cast<ShapeOp>(def); shape && op.getSteps()[0] == 1) {
    int64_t start = shape.getStart() + op.getStarts()[0];
    return ShapeOp::create(rewriter, op.getLoc(), op.getType(), shape.getX(), start, start + op.getSizes()[0]);
  }
  auto inner = dyn_cast<SliceOp>(def);
  if (inner && Shape(op.getY()).isDetermined() && !op->hasAttr(kStartDimsAttr) && !inner->hasAttr(kStartDimsAttr)) {
    return sliceOfSlice(op, inner, rewriter);
  }
  bool isStatic =
      !dependsOnSizes(op) && typeOf(op.getX()).hasStaticShape() && typeOf(op.getY()).hasStaticShape() &&
      llvm::all_of(def->getOperandTypes(), [](Type type) { return cast<RankedTensorType>(type).hasStaticShape(); });
  if (!isStatic) {
    return {};
  }
  auto concat = dyn_cast<ConcatOp>(def);
  return concat ? sliceOfConcat(op, concat, rewriter) : Value();
}

/// Replaces a run-time shape whose value is known by attributes.
template <typename Op>
static Value fixShape(Op op, RewriterBase &rewriter) {
  RankedTensorType type = typeOf(op.getY());
  if (!op.getDynShape() || !type.hasStaticShape()) {
    return {};
  }
  return Op::create(rewriter, op.getLoc(), type, op.getX(), Value(), type.getShape());
}

/// Simplifies reshape(transpose(reshape(x))) if the reshapes merge and split leading dims that the transpose keeps in
/// front: the dims are split directly.
static Value moveWithoutMerging(ReshapeOp op, RewriterBase &rewriter) {
  auto transpose = Value(op.getX()).getDefiningOp<TransposeOp>();
  auto merge = transpose ? Value(transpose.getX()).getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!merge || !transpose->hasOneUse() || !typeOf(merge.getY()).hasStaticShape() ||
      !typeOf(op.getY()).hasStaticShape()) {
    return {};
  }
  ArrayRef<int64_t> merged = dimsOf(merge.getY()), result = dimsOf(op.getY()), perm = transpose.getPerm();
  int64_t staying = 0, rank = int64_t(perm.size());
  while (staying < rank && perm[staying] == staying) {
    ++staying;
  }
  int64_t moving = rank - staying, leading = int64_t(result.size()) - moving;
  if (leading <= staying || result.take_back(moving) != dimsOf(transpose.getY()).take_back(moving)) {
    return {};
  }
  SmallVector<int64_t> dims(result.take_front(leading)), order;
  llvm::append_range(dims, merged.take_back(moving));
  for (int64_t d = 0; d < leading + moving; ++d) {
    order.push_back(d < leading ? d : perm[d - leading + staying] - staying + leading);
  }
  Value split = createReshape(rewriter, op.getLoc(), merge.getX(), dims);
  return createTranspose(rewriter, op.getLoc(), split, order);
}

/// Returns the dims of a tensor that broadcasts to `from`, for a view of `from` as `to`, which differs only in dims of
/// size 1. Returns nothing if `to` differs otherwise.
static std::optional<SmallVector<int64_t>> seenAs(ArrayRef<int64_t> dims, ArrayRef<int64_t> from,
                                                  ArrayRef<int64_t> to) {
  SmallVector<int64_t> padded(from.size() - dims.size(), 1), wide, result;
  llvm::append_range(padded, dims);
  for (auto [dim, size] : llvm::zip_equal(padded, from)) {
    if (size != 1) {
      wide.push_back(dim);
    }
  }
  auto isWide = [](int64_t size) { return size != 1; };
  if (!llvm::equal(llvm::make_filter_range(from, isWide), llvm::make_filter_range(to, isWide))) {
    return std::nullopt;
  }
  size_t next = 0;
  for (int64_t size : to) {
    result.push_back(size == 1 ? 1 : wide[next++]);
  }
  return result;
}

/// Simplifies reshape(reshape(x) + y) if the reshapes only insert and remove dims of size 1: y is reshaped instead.
static Value addWithoutView(ReshapeOp op, RewriterBase &rewriter) {
  auto add = Value(op.getX()).getDefiningOp<AddOp>();
  if (!add || !add->hasOneUse() || !typeOf(op.getY()).hasStaticShape()) {
    return {};
  }
  for (auto [viewed, added] :
       {std::pair<Value, Value>(add.getA(), add.getB()), std::pair<Value, Value>(add.getB(), add.getA())}) {
    auto view = viewed.getDefiningOp<ReshapeOp>();
    if (!view || !sameType(view.getX(), op) || !sameType(viewed, add) || !typeOf(added).hasStaticShape()) {
      continue;
    }
    if (auto dims = seenAs(dimsOf(added), dimsOf(viewed), dimsOf(op.getY()))) {
      Value reshaped = createReshape(rewriter, op.getLoc(), added, *dims);
      return AddOp::create(rewriter, op.getLoc(), op.getType(), view.getX(), reshaped);
    }
  }
  return {};
}

static Value simplifyReshape(ReshapeOp op, RewriterBase &rewriter) {
  Value result = fixShape(op, rewriter);
  result = result ? result : moveWithoutMerging(op, rewriter);
  return result ? result : addWithoutView(op, rewriter);
}

/// Crops a kernel that reaches beyond the input (ceilMode) in dims with a single window and no padding.
template <typename Pool>
static Value endWindows(Pool op, RewriterBase &rewriter) {
  ArrayRef<int64_t> input = typeOf(op.getX()).getShape().drop_front(2);
  ArrayRef<int64_t> output = typeOf(op.getResult()).getShape().drop_front(2);
  SmallVector<int64_t> kernel(op.getKernel());
  for (size_t d = 0; d < kernel.size(); ++d) {
    bool isPlain = op.getPads()[d] == 0 && op.getPads()[d + kernel.size()] == 0 && op.getDilations()[d] == 1;
    if (isPlain && output[d] == 1 && !ShapedType::isDynamic(input[d])) {
      kernel[d] = std::min(kernel[d], input[d]);
    }
  }
  if (ArrayRef(kernel) == op.getKernel()) {
    return {};
  }
  auto result = cast<Pool>(rewriter.clone(*op));
  result.setKernel(kernel);
  return result.getResult();
}

/// Removes operands without elements from a concatenation.
static Value dropEmpty(ConcatOp op, RewriterBase &rewriter) {
  auto hasElements = [](Value input) {
    return llvm::none_of(Shape(input).dims(), [](Dim size) { return size.is(0); });
  };
  SmallVector<Value> inputs(llvm::make_filter_range(op.getInputs(), hasElements));
  bool drops = !inputs.empty() && inputs.size() < op.getInputs().size();
  return drops ? ConcatOp::create(rewriter, op.getLoc(), op.getType(), inputs, op.getAxis()).getResult() : Value();
}

static Value simplified(Operation *op, RewriterBase &rewriter) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](PowOp pow) { return simplifyPow(pow, rewriter); })
      .Case([&](ClipOp clip) { return simplifyClip(clip); })
      .Case([&](ReduceOp reduce) { return simplifyReduce(reduce, rewriter); })
      .Case([&](GatherOp gather) { return simplifyGather(gather, rewriter); })
      .Case([&](ConcatOp concat) { return dropEmpty(concat, rewriter); })
      .Case<ScatterNdOp, ScatterElementsOp>(
          [](auto scatter) { return isEmpty(scatter.getIndices()) ? Value(scatter.getX()) : Value(); })
      .Case([&](SliceOp slice) { return simplifySlice(slice, rewriter); })
      .Case([&](AvgPoolOp pool) { return endWindows(pool, rewriter); })
      .Case([&](MaxPoolOp pool) { return endWindows(pool, rewriter); })
      .Case([&](ReshapeOp reshape) { return simplifyReshape(reshape, rewriter); })
      .Case([&](PadOp pad) { return allEqual(pad.getPads(), 0) ? Value(pad.getX()) : Value(); })
      .Case([&](TileOp tile) { return allEqual(tile.getRepeats(), 1) ? Value(tile.getX()) : Value(); })
      .Case([&](ExpandOp expand) {
        return sameType(expand.getX(), expand) ? Value(expand.getX()) : fixShape(expand, rewriter);
      })
      .Default(Value());
}

/// Returns the operand to which the op's folder folds its only result, or null.
static Value folded(Operation *op) {
  SmallVector<Attribute> known;
  for (Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<ConstantOp>();
    known.push_back(constant ? constant.getValue() : Attribute());
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(known, results)) || results.size() != 1) {
    return {};
  }
  return dyn_cast<Value>(results.front());
}

bool simplify(Operation *op, RewriterBase &rewriter) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0) {
    return false;
  }
  Value operand = folded(op);
  if (operand) {
    replaceAndErase(rewriter, op, operand);
    return true;
  }
  Operation *before = op->getPrevNode();
  Value value = simplified(op, rewriter);
  if (!value || value == op->getResult(0)) {
    return false;
  }
  bool isNew = op->getPrevNode() != before;
  if (isNew) {
    replaceFused(rewriter, op, value.getDefiningOp());
  } else {
    replaceAndErase(rewriter, op, value);
  }
  return true;
}

} // namespace tessera::top
