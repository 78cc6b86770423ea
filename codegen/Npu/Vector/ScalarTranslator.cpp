//===- ScalarTranslator.cpp - Scalar regions as instructions --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Vector/ScalarTranslator.h"

#include "device_dialect/IR/ScalarPatterns.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kExact = 1 << 24; // whole numbers up to here are exact in f32
constexpr Interval kAnything = {-kInfinity, kInfinity}, kTruth = {0, 1};

llvm::Error reject(Operation *op, const llvm::Twine &why) {
  return llvm::createStringError("'" + op->getName().getStringRef() + "' " + why);
}

/// Returns the instruction that is equivalent to the op, with the same operands.
std::optional<Op> plainOp(Operation *op) {
  return llvm::StringSwitch<std::optional<Op>>(op->getName().getStringRef())
      .Cases({"arith.addf", "arith.addi"}, Op::add)
      .Cases({"arith.subf", "arith.subi"}, Op::sub)
      .Cases({"arith.mulf", "arith.muli"}, Op::mul)
      .Case("arith.divf", Op::div)
      .Cases({"arith.maximumf", "arith.maxsi"}, Op::maximum)
      .Cases({"arith.minimumf", "arith.minsi"}, Op::minimum)
      .Case("arith.negf", Op::neg)
      .Case("math.absf", Op::abs)
      .Case("math.floor", Op::floor)
      .Case("math.ceil", Op::ceil)
      .Case("math.roundeven", Op::roundEven)
      .Case("math.trunc", Op::truncate)
      .Case("math.copysign", Op::copySign)
      .Case("math.sqrt", Op::sqrt)
      .Case("math.exp", Op::exp)
      .Case("math.log", Op::log)
      .Case("math.tanh", Op::tanh)
      .Case("math.erf", Op::erf)
      .Default(std::nullopt);
}

/// Returns the range of a result, given those of its operands.
Interval resultOf(Op op, Interval a, Interval b) {
  auto rounded = [&](double (*round)(double)) { return Interval{round(a.low), round(a.high)}; };
  double products[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  bool isFinite = llvm::all_of(products, [](double each) { return std::isfinite(each); });
  switch (op) {
  case Op::add:
    return {a.low + b.low, a.high + b.high};
  case Op::sub:
    return {a.low - b.high, a.high - b.low};
  case Op::mul:
    return isFinite ? Interval{*llvm::min_element(products), *llvm::max_element(products)} : kAnything;
  case Op::maximum:
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  case Op::minimum:
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  case Op::neg:
    return {-a.high, -a.low};
  case Op::roundEven:
    return rounded(std::nearbyint);
  case Op::floor:
    return rounded(std::floor);
  case Op::ceil:
    return rounded(std::ceil);
  case Op::truncate:
    return rounded(std::trunc);
  default:
    return kAnything;
  }
}

} // namespace

static bool isTruth(Op op) { return op == Op::less || op == Op::lessEqual || op == Op::equal; }

unsigned ScalarTranslator::add(Op op, ArrayRef<unsigned> operands, Interval interval) {
  bool rounds = isTruth(op) || op == Op::roundEven || op == Op::floor || op == Op::ceil || op == Op::truncate;
  bool keepsWhole = op == Op::add || op == Op::sub || op == Op::mul || op == Op::maximum || op == Op::minimum ||
                    op == Op::neg || op == Op::abs;
  bool isWhole =
      rounds || (keepsWhole && llvm::all_of(operands, [&](unsigned operand) { return nodes[operand].isWhole; }));
  nodes.push_back({op, SmallVector<unsigned, 3>(operands), 0, interval, false, isWhole, mayBeMinusZero(op, operands),
                   mayBeNaN(op, operands)});
  return nodes.size() - 1;
}

/// Returns |from|, or 0 if |from| is NaN, as the conversion to an integer does.
unsigned ScalarTranslator::numberOrZero(unsigned from) {
  if (!nodes[from].mayBeNaN) {
    return from;
  }
  Interval interval = nodes[from].interval;
  unsigned isNumber = add(Op::equal, {from, from}, kTruth);
  unsigned number =
      add(Op::select, {isNumber, from, constant(0)}, {std::min(interval.low, 0.0), std::max(interval.high, 0.0)});
  nodes[number].mayBeNaN = false, nodes[number].isWhole = nodes[from].isWhole;
  return number;
}

unsigned ScalarTranslator::constant(float value) {
  auto [known, isNew] = constants.try_emplace(llvm::bit_cast<uint32_t>(value), nodes.size());
  if (isNew) {
    nodes.push_back({Op::constant,
                     {},
                     value,
                     {value, value},
                     false,
                     std::trunc(value) == value,
                     std::signbit(value),
                     std::isnan(value)});
  }
  return known->second;
}

llvm::Error ScalarTranslator::translateConstant(arith::ConstantOp op) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()); number && op.getType().isF32()) {
    places[op] = constant(number.getValue().convertToFloat());
    return llvm::Error::success();
  }
  auto number = dyn_cast<IntegerAttr>(op.getValue());
  if (!number || std::fabs(double(number.getValue().getSExtValue())) > kExact) {
    return reject(op, "is neither an f32 nor a whole number up to 2^24");
  }
  bool isTruth = op.getType().isInteger(1);
  places[op] = constant(isTruth ? float(number.getValue().getZExtValue()) : float(number.getValue().getSExtValue()));
  return llvm::Error::success();
}

/// Translates a comparison to 1 (true) or 0. The instructions `less`, `lessEqual` and `equal` give 0 if an operand is
/// NaN.
llvm::Error ScalarTranslator::translateCompare(arith::CmpFOp op) {
  using arith::CmpFPredicate;
  unsigned a = places[op.getLhs()], b = places[op.getRhs()];
  auto negated = [&](unsigned node) { return add(Op::sub, {constant(1), node}, kTruth); };
  switch (op.getPredicate()) {
  case CmpFPredicate::OLT:
    places[op] = add(Op::less, {a, b}, kTruth);
    break;
  case CmpFPredicate::OGT:
    places[op] = add(Op::less, {b, a}, kTruth);
    break;
  case CmpFPredicate::OLE:
    places[op] = add(Op::lessEqual, {a, b}, kTruth);
    break;
  case CmpFPredicate::OGE:
    places[op] = add(Op::lessEqual, {b, a}, kTruth);
    break;
  case CmpFPredicate::OEQ:
    places[op] = add(Op::equal, {a, b}, kTruth);
    break;
  case CmpFPredicate::UNE:
    places[op] = negated(add(Op::equal, {a, b}, kTruth));
    break;
  case CmpFPredicate::ULT:
    places[op] = negated(add(Op::lessEqual, {b, a}, kTruth));
    break;
  case CmpFPredicate::UGT:
    places[op] = negated(add(Op::lessEqual, {a, b}, kTruth));
    break;
  case CmpFPredicate::ULE:
    places[op] = negated(add(Op::less, {b, a}, kTruth));
    break;
  case CmpFPredicate::UGE:
    places[op] = negated(add(Op::less, {a, b}, kTruth));
    break;
  case CmpFPredicate::UNO:
    places[op] = negated(add(Op::mul, {add(Op::equal, {a, a}, kTruth), add(Op::equal, {b, b}, kTruth)}, kTruth));
    break;
  default:
    return reject(op, "has a predicate that the vector unit does not support");
  }
  return llvm::Error::success();
}

/// Translates a comparison of integers. Unsigned predicates require operands that are not negative. A register holds
/// the f32 nearest to an integer, which is on the same side of each whole number below 2^24. Therefore one of the
/// operands must be within this range.
llvm::Error ScalarTranslator::translateCompare(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  unsigned a = places[op.getLhs()], b = places[op.getRhs()];
  CmpIPredicate predicate = op.getPredicate();
  bool isEquality = predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne;
  bool isUnsigned = predicate >= CmpIPredicate::ult;
  bool isTruth = op.getLhs().getType().isInteger(1); // as a signed number it would be 0 or -1
  bool isExact = true, hasSmall = false;
  for (const Interval &each : {nodes[a].interval, nodes[b].interval}) {
    isExact = isExact && each.within(-kExact, kExact), hasSmall = hasSmall || each.within(1 - kExact, kExact - 1);
    if ((isUnsigned && each.low < 0) || (isTruth && !isUnsigned && !isEquality)) {
      return reject(op, "compares numbers that may be negative as unsigned");
    }
  }
  if (!isExact && !hasSmall) {
    return reject(op, "compares whole numbers beyond 2^24");
  }
  bool swaps = predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge || predicate == CmpIPredicate::ugt ||
               predicate == CmpIPredicate::uge;
  bool isStrict = predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sgt ||
                  predicate == CmpIPredicate::ult || predicate == CmpIPredicate::ugt;
  unsigned result = add(isEquality ? Op::equal
                        : isStrict ? Op::less
                                   : Op::lessEqual,
                        {swaps ? b : a, swaps ? a : b}, kTruth);
  places[op] = predicate == CmpIPredicate::ne ? add(Op::sub, {constant(1), result}, kTruth) : result;
  return llvm::Error::success();
}

/// Translates logic operations on truth values, which are 0 or 1.
llvm::Error ScalarTranslator::translateLogic(Operation *op) {
  unsigned a = places[op->getOperand(0)], b = places[op->getOperand(1)];
  if (!op->getResult(0).getType().isInteger(1)) {
    return reject(op, "on bits is not supported by the vector unit");
  }
  unsigned result = isa<arith::AndIOp>(op)  ? add(Op::mul, {a, b}, kTruth)
                    : isa<arith::OrIOp>(op) ? add(Op::maximum, {a, b}, kTruth)
                                            : add(Op::abs, add(Op::sub, {a, b}, {-1, 1}), kTruth);
  places[op->getResult(0)] = result;
  return llvm::Error::success();
}

/// Rounds a register to f16 or bf16. Other types need no rounding, because registers are f32.
unsigned ScalarTranslator::roundedTo(Type type, unsigned from) {
  if (!type.isF16() && !type.isBF16()) {
    return from;
  }
  auto nearest = [&](double bound) {
    APFloat number(bound);
    bool loses = false;
    number.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble(); // exact
  };
  Interval interval = nodes[from].interval;
  return add(type.isBF16() ? Op::roundBf16 : Op::roundF16, from, {nearest(interval.low), nearest(interval.high)});
}

/// Returns the float for an integer in a register. A zero loses its sign if the region depends on it.
unsigned ScalarTranslator::withoutSign(Operation *op, unsigned from) {
  bool converts = isa<arith::SIToFPOp, arith::UIToFPOp>(op);
  if (!converts || !nodes[from].isSigned || !device::showsSignOfZero(op->getResult(0))) {
    return from;
  }
  return add(Op::add, {from, constant(0)}, nodes[from].interval);
}

/// Returns true if other ops of the region compute with |integer|. A stored NaN becomes 0, but a register keeps it.
static bool isComputedWith(Value integer) {
  return llvm::any_of(integer.getUsers(), [](Operation *user) {
    return isa<arith::TruncIOp, arith::ExtSIOp, arith::ExtUIOp>(user) ? isComputedWith(user->getResult(0))
                                                                      : !user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Translates a conversion. Registers already hold integers as whole numbers, so the conversion must not be able to
/// change the value.
llvm::Error ScalarTranslator::translateConversion(Operation *op) {
  unsigned from = places[op->getOperand(0)];
  Interval interval = nodes[from].interval;
  Type source = op->getOperand(0).getType(), type = op->getResult(0).getType();
  unsigned bits = source.getIntOrFloatBitWidth(), width = type.getIntOrFloatBitWidth();
  bool fits = true;
  if (bits == 1 && isa<arith::ExtSIOp, arith::SIToFPOp>(op)) { // the single bit is the sign
    places[op->getResult(0)] = add(Op::sub, {constant(0), from}, {-1, 0});
    return llvm::Error::success();
  }
  if (width == 1) {
    fits = isa<arith::TruncIOp>(op) && interval.within(0, 1);
  } else if (isa<arith::ExtSIOp>(op)) {
    fits = interval.high < std::ldexp(1, bits - 1);
  } else if (isa<arith::ExtUIOp, arith::UIToFPOp>(op)) {
    fits = interval.low >= 0;
  } else if (isa<arith::TruncIOp, arith::FPToSIOp>(op)) {
    fits = interval.within(-std::ldexp(1, width - 1), std::ldexp(1, width) - 1) && interval.within(-kExact, kExact);
  }
  if (!fits) {
    return reject(op, "of numbers that may not fit its type");
  }
  if (isa<arith::FPToSIOp>(op) && isComputedWith(op->getResult(0))) {
    from = numberOrZero(from);
  }
  if (isa<arith::FPToSIOp>(op) && !nodes[from].isWhole) {
    places[op->getResult(0)] = add(Op::truncate, {from}, resultOf(Op::truncate, nodes[from].interval, {}));
    return llvm::Error::success();
  }
  places[op->getResult(0)] = withoutSign(op, from);
  return llvm::Error::success();
}

llvm::Error ScalarTranslator::translate(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    return translateConstant(constant);
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    return translateCompare(compare);
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    return translateCompare(compare);
  }
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op)) {
    return translateLogic(op);
  }
  if (isa<arith::ExtFOp>(op)) {
    places[op->getResult(0)] = places[op->getOperand(0)];
    return llvm::Error::success();
  }
  if (isa<arith::TruncFOp>(op)) {
    places[op->getResult(0)] = roundedTo(op->getResult(0).getType(), places[op->getOperand(0)]);
    return llvm::Error::success();
  }
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp>(op)) {
    if (llvm::Error error = translateConversion(op)) {
      return error;
    }
    if (isa<FloatType>(op->getResult(0).getType())) {
      places[op->getResult(0)] = roundedTo(op->getResult(0).getType(), places[op->getResult(0)]);
    }
    return llvm::Error::success();
  }
  SmallVector<unsigned> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(places[operand]);
  }
  if (isa<arith::SelectOp>(op)) {
    Interval a = nodes[operands[1]].interval, b = nodes[operands[2]].interval;
    places[op->getResult(0)] = add(Op::select, operands, {std::min(a.low, b.low), std::max(a.high, b.high)});
    return llvm::Error::success();
  }
  if (Value x = device::matchSigmoid(dyn_cast<arith::DivFOp>(op))) {
    places[op->getResult(0)] = add(Op::sigmoid, {places[x]}, {0, 1});
    return llvm::Error::success();
  }
  if (std::optional<unsigned> quotient = quotientOf(dyn_cast<arith::DivFOp>(op))) {
    places[op->getResult(0)] = *quotient;
    return llvm::Error::success();
  }
  std::optional<Op> known = plainOp(op);
  Type type = op->getResult(0).getType();
  if (!known || !(type.isF32() || isa<IntegerType>(type))) {
    return reject(op, "is not supported by the vector unit");
  }
  Interval interval = resultOf(*known, nodes[operands[0]].interval, nodes[operands.back()].interval);
  if (isa<IntegerType>(type) && !interval.within(-kExact, kExact)) {
    return reject(op, "of whole numbers beyond 2^24");
  }
  places[op->getResult(0)] = add(*known, operands, interval);
  return llvm::Error::success();
}

llvm::Expected<Interval> ScalarTranslator::bounds(Region &region, ArrayRef<Interval> arguments) {
  Block &block = region.front();
  for (auto [argument, interval] : llvm::zip_equal(block.getArguments(), arguments)) {
    places[argument] = nodes.size();
    bool isInteger = isa<IntegerType>(argument.getType());
    nodes.push_back({Op::constant, {}, 0, interval, true, isInteger, !isInteger, !isInteger});
  }
  for (Operation &op : block.without_terminator()) {
    if (llvm::Error error = translate(&op)) {
      return std::move(error);
    }
  }
  return nodes[places[block.getTerminator()->getOperand(0)]].interval;
}

} // namespace tessera::npu
