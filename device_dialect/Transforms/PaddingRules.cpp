//===- PaddingRules.cpp - Which ops compute right results beside padding --===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/PaddingRules.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace tessera::device {

/// Calls |visit| with |size| for every value of the symbols from |next| on; stops if it returns false.
static bool forAllValues(Dim size, ArrayRef<top::SizeSymbolAttr> symbols, llvm::function_ref<bool(Dim)> visit) {
  if (symbols.empty()) {
    return visit(size);
  }
  top::SizeSymbolAttr first = symbols.front();
  for (int64_t value = first.getMin(); value <= first.getMax(); ++value) {
    auto replace = [&](top::SizeSymbolAttr symbol) {
      return symbol == first ? Dim(value)
                             : Dim::symbol(symbol.getContext(), symbol.getName(), symbol.getMin(), symbol.getMax(),
                                           symbol.getLikely());
    };
    if (!forAllValues(substitute(size, replace), symbols.drop_front(), visit)) {
      return false;
    }
  }
  return true;
}

bool isNeverPositive(Dim size) {
  constexpr int64_t kMaxValues = 4096;
  if (maxOf(size) <= 0) {
    return true;
  }
  llvm::SetVector<top::SizeSymbolAttr> symbols;
  collectSymbols(size, symbols);
  int64_t values = size.isUnknown() ? kMaxValues + 1 : 1;
  for (top::SizeSymbolAttr symbol : symbols) {
    values = values > kMaxValues ? values : values * std::min(symbol.getMax() - symbol.getMin() + 1, kMaxValues + 1);
  }
  return values <= kMaxValues && forAllValues(size, symbols.getArrayRef(), [](Dim value) { return maxOf(value) <= 0; });
}

namespace {

bool isOpen(Value value) { return !Shape(value).isKnown(); }

PaddingRule reject(const llvm::Twine &reason) {
  PaddingRule rule;
  rule.rejection = reason.str();
  return rule;
}

/// Returns true if |operand| broadcasts to |result| without padding that the result does not have: each dim of it is 1
/// or that of the result. The last |skipped| dims are not compared.
bool broadcasts(Value operand, Shape result, size_t skipped = 0) {
  Shape shape = operand;
  if (shape.rank() > result.rank()) {
    return false;
  }
  for (size_t d = 0; d + skipped < shape.rank(); ++d) {
    if (!shape[d].is(1) && !sameSize(shape[d], result[result.rank() - shape.rank() + d])) {
      return false;
    }
  }
  return true;
}

bool allBroadcast(ValueRange operands, Value result) {
  return llvm::all_of(operands, [&](Value operand) { return broadcasts(operand, result); });
}

bool allKnown(ValueRange operands) { return llvm::none_of(operands, isOpen); }

PaddingRule ofMap(MapOp op) {
  return allBroadcast(op.getInputs(), op.getY()) ? PaddingRule() : reject("broadcasts a size known at run time");
}

PaddingRule ofMatMul(MatMulOp op) {
  Shape a = op.getA(), b = op.getB(), y = op.getY();
  bool fits = a.rank() >= 2 && b.rank() >= 2 && broadcasts(op.getA(), y, 2) && broadcasts(op.getB(), y, 2) &&
              allBroadcast(op.getExtras(), op.getY()) && (!op.getBias() || broadcasts(op.getBias(), op.getY())) &&
              (!op.getScales() || !isOpen(op.getScales())) && !op.getPacking();
  if (!fits) {
    return reject("multiplies matrices that broadcast a size known at run time");
  }
  unsigned kOfA = a.rank() - (op.getTransA() ? 2 : 1), kOfB = b.rank() - (op.getTransB() ? 1 : 2);
  PaddingRule rule;
  if (!a[kOfA].isKnown()) {
    rule.needs = {{0, kOfA, 0}, {1, kOfB, 0}};
  }
  return rule;
}

/// A spatial dim of a convolution or pool.
struct WindowDim {
  Dim in, out;
  int64_t kernel, stride, dilation, begin;

  /// Returns true if a window at the front of the result may read behind the real elements.
  bool readsPadding() const {
    return !in.isKnown() && !isNeverPositive((out - 1) * stride + dilation * (kernel - 1) - begin - in + 1);
  }
};

template <typename Op>
WindowDim windowOf(Op op, size_t i, int64_t kernel) {
  return {Shape(op.getX())[i + 2], Shape(op.getY())[i + 2], kernel,
          op.getStrides()[i],      op.getDilations()[i],    op.getPads()[i]};
}

PaddingRule ofConv(ConvOp op) {
  Shape x = op.getX();
  SmallVector<Value> fixed{op.getW()};
  for (Value each : {op.getBias(), op.getScales()}) {
    if (each) {
      fixed.push_back(each);
    }
  }
  if (!x[1].isKnown() || !allKnown(fixed) || op.getPacking() || !allBroadcast(op.getExtras(), op.getY())) {
    return reject("has weights or channels of a size known at run time");
  }
  PaddingRule rule;
  for (size_t i = 0; i + 2 < x.rank(); ++i) {
    if (windowOf(op, i, Shape(op.getW())[i + 2].value()).readsPadding()) {
      rule.needs.push_back({0, unsigned(i + 2), double(int64_t(op.getPadValue()))});
    }
  }
  return rule;
}

/// Returns the smallest (or largest) number of a type, which does not change a maximum (or minimum).
double extremeOf(Type element, bool smallest) {
  if (isa<FloatType>(element)) {
    return smallest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  APInt extreme = element.isUnsignedInteger()
                      ? (smallest ? APInt::getMinValue(bits) : APInt::getMaxValue(bits))
                      : (smallest ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
  return element.isUnsignedInteger() ? double(extreme.getZExtValue()) : double(extreme.getSExtValue());
}

/// Returns true if a double can hold the extremes of a type.
bool canHoldExtremes(Type element) { return isa<FloatType>(element) || element.getIntOrFloatBitWidth() <= 32; }

PaddingRule ofPool(PoolOp op) {
  Shape x = op.getX();
  Type element = getElementTypeOrSelf(op.getX());
  if (!x[1].isKnown() || !canHoldExtremes(element) || !allBroadcast(op.getExtras(), op.getY())) {
    return reject("pools channels of a size known at run time");
  }
  PaddingRule rule;
  for (size_t i = 0; i + 2 < x.rank(); ++i) {
    if (!windowOf(op, i, op.getKernel()[i]).readsPadding()) {
      continue;
    }
    if (op.getKind() == PoolKind::avg) {
      return reject("is a mean whose windows reach beyond the end of dim " + llvm::Twine(i + 2));
    }
    rule.needs.push_back({0, unsigned(i + 2), extremeOf(element, /*smallest=*/true)});
  }
  return rule;
}

/// Returns the value that a scalar region of one argument yields for |input|; none if it cannot be folded.
std::optional<double> evaluate(Region &region, double input) {
  Block &block = region.front();
  llvm::DenseMap<Value, Attribute> values;
  auto attributeOf = [](Type type, double number) -> Attribute {
    return isa<FloatType>(type) ? Attribute(FloatAttr::get(type, number)) : IntegerAttr::get(type, int64_t(number));
  };
  values[block.getArgument(0)] = attributeOf(block.getArgument(0).getType(), input);
  for (Operation &op : block.without_terminator()) {
    SmallVector<Attribute> operands = llvm::map_to_vector(op.getOperands(), [&](Value each) { return values[each]; });
    SmallVector<OpFoldResult> results;
    if (failed(op.fold(operands, results)) || results.size() != 1) {
      return std::nullopt;
    }
    auto same = dyn_cast<Value>(results[0]);
    values[op.getResult(0)] = same ? values[same] : cast<Attribute>(results[0]);
  }
  Attribute yielded = values[block.getTerminator()->getOperand(0)];
  if (auto number = dyn_cast_or_null<FloatAttr>(yielded)) {
    return number.getValueAsDouble();
  }
  auto number = dyn_cast_or_null<IntegerAttr>(yielded);
  return number ? std::optional(double(number.getValue().getSExtValue())) : std::nullopt;
}

/// Returns the value that does not change a reduction.
double identityOf(ReduceKind kind, Type element) {
  switch (kind) {
  case ReduceKind::sum:
    return 0;
  case ReduceKind::prod:
    return 1;
  case ReduceKind::max:
  case ReduceKind::min:
    return extremeOf(element, kind == ReduceKind::max);
  }
  llvm_unreachable("covered switch");
}

PaddingRule ofReduce(ReduceOp op) {
  Shape x = op.getX();
  Type element = getElementTypeOrSelf(op.getX());
  PaddingRule rule;
  for (int64_t axis : op.getAxes()) {
    if (x[axis].isKnown()) {
      continue;
    }
    bool isOfExtremes = op.getKind() == ReduceKind::max || op.getKind() == ReduceKind::min;
    if (isOfExtremes && !canHoldExtremes(element)) {
      return reject("finds an extreme of 64-bit integers along dim " + llvm::Twine(axis));
    }
    double identity = identityOf(op.getKind(), element);
    if (!op.getPrologue().empty() && evaluate(op.getPrologue(), identity) != identity) {
      return reject("reduces dim " + llvm::Twine(axis) + " after a computation that changes the padding");
    }
    rule.needs.push_back({0, unsigned(axis), identity});
  }
  return allBroadcast(op.getExtras(), op.getY()) ? rule : reject("broadcasts a size known at run time");
}

PaddingRule ofSoftmax(SoftmaxOp op) {
  Shape x = op.getX();
  PaddingRule rule;
  unsigned axis = op.getAxis();
  if (x[axis].isKnown()) {
    return rule;
  }
  rule.needs = {{0, axis, -std::numeric_limits<double>::infinity()}};
  // In rows that are padding themselves, the result may be NaN.
  bool hasPaddedRows =
      llvm::any_of(llvm::seq<size_t>(0, x.rank()), [&](size_t d) { return d != axis && !x[d].isKnown(); });
  if (!hasPaddedRows && !op.getLog()) {
    rule.filled = {{0, axis, 0}};
  }
  return rule;
}

PaddingRule ofNorm(NormOp op) {
  Shape x = op.getX();
  for (size_t d = op.getAxis(); d < x.rank(); ++d) {
    if (!x[d].isKnown()) {
      return reject("normalises over dim " + llvm::Twine(d));
    }
  }
  return PaddingRule();
}

PaddingRule ofAttention(AttentionOp op) {
  Shape q = op.getQ(), k = op.getK(), v = op.getV();
  size_t rank = q.rank();
  bool fits = !op.getViews() && k.rank() >= 2 && v.rank() >= 2 && q[rank - 1].isKnown() && v.back().isKnown() &&
              broadcasts(op.getK(), q, 2) && broadcasts(op.getV(), q, 2) &&
              allBroadcast(op.getEpilogueOperands(), op.getY());
  if (!fits) {
    return reject("attends to heads of a size known at run time");
  }
  unsigned keys = k.rank() - 2;
  bool hasOpenKeys = !k[keys].isKnown();
  PaddingRule rule;
  if (op.getMask()) {
    Shape mask = op.getMask();
    Dim scores[] = {q[rank - 2], k[keys]};
    for (auto [d, size] : llvm::enumerate(mask.dims())) {
      size_t fromEnd = mask.rank() - d;
      Dim expected = fromEnd <= 2 ? scores[2 - fromEnd] : fromEnd <= rank ? q[rank - fromEnd] : Dim(1);
      if (!sameSize(size, expected) && !(size.is(1) && !(hasOpenKeys && fromEnd == 1))) {
        return reject("has a mask that broadcasts a size known at run time");
      }
    }
    if (hasOpenKeys) {
      rule.needs = {{3, unsigned(mask.rank() - 1), -std::numeric_limits<double>::infinity()}};
    }
  } else {
    rule.needsKeyMask = hasOpenKeys;
  }
  if (hasOpenKeys && !op.isOfIntegers()) { // a factor of 0 does not hide NaN
    rule.needs.push_back({1, keys, 0});
    rule.needs.push_back({2, unsigned(v.rank() - 2), 0});
  }
  return rule;
}

/// Returns true if dim |d| of the result of a copy is filled with |value| beyond the end, where its pieces continue.
bool isFilledBehind(CopyOp op, unsigned d, double value, FillingOf fillingOf) {
  if (op.getFill() && op.getFillAttr().getValueAsDouble() != value) {
    return false;
  }
  return llvm::all_of(op.getPieces().getAsRange<PieceAttr>(), [&](PieceAttr attr) {
    SymbolicPiece piece(attr);
    int64_t from = piece.srcDims[d];
    bool isOnly = from >= 0 && llvm::count(piece.srcDims, from) == 1 && piece.srcSteps[d] == 1;
    Filling filling = isOnly ? fillingOf(unsigned(piece.source), unsigned(from)) : std::nullopt;
    // Where a piece starts within its source, its end is that of the source only if the sizes agree.
    return piece.sizes[d].isKnown() ||
           (filling == Filling(value) &&
            sameSize(piece.srcOffsets[from] + piece.sizes[d], Shape(op.getSources()[piece.source])[from]));
  });
}

PaddingRule ofCopy(CopyOp op, FillingOf fillingOf) {
  Shape y = op.getY();
  PaddingRule rule;
  for (PieceAttr attr : op.getPieces().getAsRange<PieceAttr>()) {
    SymbolicPiece piece(attr);
    auto isOffset = [](Dim offset) { return !offset.isKnown(); };
    if (llvm::any_of(piece.srcOffsets, isOffset) || llvm::any_of(piece.dstOffsets, isOffset)) {
      return reject("copies from or to a position known at run time");
    }
    for (size_t d = 0; d < y.rank(); ++d) {
      Dim end = piece.dstOffsets[d] + piece.sizes[d] * piece.dstSteps[d];
      if (piece.sizes[d].isKnown() || isNeverPositive(y[d] - end)) {
        continue; // what the piece writes behind its real elements is padding of the result
      }
      int64_t from = piece.srcDims[d];
      bool endsWithSource =
          from >= 0 && llvm::count(piece.srcDims, from) == 1 && piece.srcSteps[d] == 1 &&
          sameSize(piece.srcOffsets[from] + piece.sizes[d], Shape(op.getSources()[piece.source])[from]);
      if (!op.getFill() || !endsWithSource) {
        return reject("writes behind elements whose number is known at run time");
      }
      rule.needs.push_back({unsigned(piece.source), unsigned(from), op.getFillAttr().getValueAsDouble()});
    }
  }
  auto fillingThen = [&](unsigned operand, unsigned dim) -> Filling {
    for (const PaddingRule::Need &need : rule.needs) {
      if (need.operand == operand && need.dim == dim) {
        return need.value;
      }
    }
    return fillingOf(operand, dim);
  };
  for (unsigned d = 0; d < y.rank(); ++d) {
    for (double value : {0.0, op.getFill() ? op.getFillAttr().getValueAsDouble() : 0.0}) {
      if (!y[d].isKnown() && isFilledBehind(op, d, value, fillingThen)) {
        rule.filled.push_back({0, d, value});
        break;
      }
    }
  }
  return rule;
}

PaddingRule ofReshape(ReshapeOp op, FillingOf fillingOf) {
  Shape x = op.getX(), y = op.getY();
  PaddingRule rule;
  size_t i = 0, k = 0;
  while (i < x.rank() || k < y.rank()) {
    size_t beginX = i, beginY = k; // a group of dims with equal products
    Dim countX = i < x.rank() ? x[i++] : Dim(1), countY = k < y.rank() ? y[k++] : Dim(1);
    while (!sameSize(countX, countY)) {
      bool growX = i < x.rank() && (k == y.rank() || maxOf(countX) < maxOf(countY) ||
                                    (maxOf(countX) == maxOf(countY) && countX.isKnown() && !countY.isKnown()));
      if (!growX && k == y.rank()) {
        return reject("reshapes a size known at run time");
      }
      growX ? countX *= x[i++] : countY *= y[k++];
    }
    // Real elements stay at the front if only the outermost dim of the group is symbolic.
    auto outermost = [](Shape shape, size_t begin, size_t end) -> std::optional<size_t> {
      while (begin < end && shape[begin].is(1)) {
        ++begin;
      }
      for (size_t d = begin + 1; d < end; ++d) {
        if (!shape[d].isKnown()) {
          return std::nullopt;
        }
      }
      return begin;
    };
    if (countX.isKnown()) {
      continue;
    }
    std::optional<size_t> from = outermost(x, beginX, i), to = outermost(y, beginY, k);
    if (!from || !to || x[*from].isKnown() || y[*to].isKnown()) {
      return reject("merges or splits a dim of a size known at run time that is not the outermost");
    }
    if (Filling filling = fillingOf(0, unsigned(*from))) {
      rule.filled.push_back({0, unsigned(*to), *filling});
    }
  }
  return rule;
}

PaddingRule ofGather(GatherOp op, FillingOf fillingOf) {
  Shape x = op.getX();
  size_t axis = op.getAxis(), rank = Shape(op.getIndices()).rank();
  if (!x[axis].isKnown()) {
    return reject("picks from dim " + llvm::Twine(axis) + ", where indices may count from the end");
  }
  PaddingRule rule;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (Filling filling = d == axis || x[d].isKnown() ? std::nullopt : fillingOf(0, unsigned(d))) {
      rule.filled.push_back({0, unsigned(d < axis ? d : d + rank - 1), *filling});
    }
  }
  return rule;
}

/// Returns the rule of an op that computes along one axis.
template <typename Op>
PaddingRule alongAxis(Op op) {
  return Shape(op.getX())[size_t(op.getAxis())].isKnown()
             ? PaddingRule()
             : reject("computes along dim " + llvm::Twine(op.getAxis()) + ", whose size is known at run time");
}

PaddingRule ofResize(ResizeOp op) {
  Shape x = op.getX();
  bool known = llvm::all_of(op.getAxes(), [&](int64_t axis) { return x[axis].isKnown(); });
  return known && allKnown(op.getTables()) ? PaddingRule() : reject("resizes a dim of a size known at run time");
}

PaddingRule ofRecurrent(RecurrentOp op) {
  Shape x = op.getX();
  SmallVector<Value> weights{op.getR()};
  for (Value each : {op.getW(), op.getBias(), op.getPeephole()}) {
    if (each) {
      weights.push_back(each);
    }
  }
  if (!x[2].isKnown() || !allKnown(weights)) {
    return reject("has weights of a size known at run time");
  }
  bool isPrefix = op.getDirection() == "forward" && op.getYH().use_empty() && op.getYC().use_empty();
  return x[0].isKnown() || isPrefix ? PaddingRule() : reject("runs through steps whose number is known at run time");
}

} // namespace

PaddingRule paddingRuleOf(Operation *op, FillingOf fillingOf) {
  return llvm::TypeSwitch<Operation *, PaddingRule>(op)
      .Case([](MapOp each) { return ofMap(each); })
      .Case([](MatMulOp each) { return ofMatMul(each); })
      .Case([](ConvOp each) { return ofConv(each); })
      .Case([](PoolOp each) { return ofPool(each); })
      .Case([](ReduceOp each) { return ofReduce(each); })
      .Case([](SoftmaxOp each) { return ofSoftmax(each); })
      .Case([](NormOp each) { return ofNorm(each); })
      .Case([](AttentionOp each) { return ofAttention(each); })
      .Case([&](CopyOp each) { return ofCopy(each, fillingOf); })
      .Case([&](ReshapeOp each) { return ofReshape(each, fillingOf); })
      .Case([&](GatherOp each) { return ofGather(each, fillingOf); })
      .Case([](LutOp) { return PaddingRule(); })
      .Case([](ArgReduceOp each) { return alongAxis(each); })
      .Case([](TopKOp each) { return alongAxis(each); })
      .Case([](CumSumOp each) { return each.getReverse() ? alongAxis(each) : PaddingRule(); })
      .Case([](ResizeOp each) { return ofResize(each); })
      .Case([](RecurrentOp each) { return ofRecurrent(each); })
      .Default([](Operation *) { return reject("computes with sizes known at run time"); });
}

} // namespace tessera::device
