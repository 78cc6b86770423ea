//===- Requantise.cpp - From f32 to 8- and 16-bit integers ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Requantise.h"

#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/ScalarPatterns.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {

Value splatLike(KernelBuilder &kb, Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = IntegerAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type)) {
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  }
  return arith::ConstantOp::create(kb.b, attribute);
}

Value emitIntrinsic(KernelBuilder &kb, StringRef name, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(kb.b, type, kb.b.getStringAttr(name), operands).getResult(0);
}

/// Returns the smaller (or larger) of |value| and |bound|, with the NaN behaviour of minps and maxps.
static Value clampOnce(KernelBuilder &kb, Value value, int64_t bound, bool smallest) {
  Value limit = kb.floatConstant(value.getType(), bound);
  auto predicate = smallest ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGT;
  return arith::SelectOp::create(kb.b, arith::CmpFOp::create(kb.b, predicate, value, limit), value, limit);
}

static Type integersLike(KernelBuilder &kb, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), kb.b.getI32Type())) : kb.b.getI32Type();
}

/// Rounds to nearest even, the default mode of the control register.
static Value roundToInteger(KernelBuilder &kb, Value value) {
  Type integers = integersLike(kb, value.getType());
  if (kb.target.hasLrint) {
    return emitIntrinsic(kb, "llvm.lrint", integers, value);
  }
  return arith::FPToSIOp::create(kb.b, integers, math::RoundEvenOp::create(kb.b, value));
}

/// Returns true if argument |argument| of an op's region may be NaN: not if it was an integer or is a constant.
static bool argumentMayBeNaN(BlockArgument argument) {
  Operation *op = argument.getOwner()->getParentOp();
  unsigned index = argument.getArgNumber();
  if (auto product = dyn_cast<device::EpilogueInterface>(op)) {
    return index == 0 || !top::isConstant(product.getEpilogueOperands()[index - 1]);
  }
  return index >= op->getNumOperands() || !top::isConstant(op->getOperand(index));
}

bool mayBeNaN(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    return argumentMayBeNaN(argument);
  }
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return !number || !number.getValue().isFinite();
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    return false;
  }
  if (auto divide = dyn_cast<arith::DivFOp>(op)) {
    if (Value x = device::matchSigmoid(divide)) {
      return mayBeNaN(x);
    }
    auto by = divide.getRhs().getDefiningOp<arith::ConstantOp>();
    auto number = by ? dyn_cast<FloatAttr>(by.getValue()) : FloatAttr();
    return !number || number.getValue().isZero() || mayBeNaN(divide.getLhs()) || mayBeNaN(divide.getRhs());
  }
  return !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::NegFOp,
              math::RoundEvenOp, math::AbsFOp, math::TanhOp, math::ErfOp>(op) ||
         llvm::any_of(op->getOperands(), mayBeNaN);
}

/// Returns the requantisation that is the only use of |quotient|.
static std::optional<Requantise> requantisationOf(Value quotient) {
  Value value = quotient;
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (user->getNumResults() != 1) {
      break;
    }
    value = user->getResult(0);
    std::optional<Requantise> end = isa<arith::TruncIOp>(user) ? matchRequantise(value) : std::nullopt;
    if (end) {
      return end->value == quotient ? end : std::nullopt;
    }
  }
  return std::nullopt;
}

Value withoutZeroClamp(arith::DivFOp divide) {
  auto clamp = divide.getLhs().getDefiningOp<arith::MaximumFOp>();
  FloatAttr divisor;
  if (!clamp || !matchPattern(clamp.getRhs(), m_AnyZeroFloat()) ||
      !matchPattern(divide.getRhs(), m_Constant(&divisor)) || !(divisor.getValueAsDouble() > 0)) {
    return divide.getLhs();
  }
  std::optional<Requantise> end = requantisationOf(divide);
  return end && end->low >= end->zero ? clamp.getLhs() : divide.getLhs();
}

/// Returns |integer|, which is |value| rounded without the zero point; if |value| is NaN, the number that gives 0 after
/// adding the zero point (numerics.md).
static Value integerOfNaN(KernelBuilder &kb, const Requantise &end, Value value, Value integer) {
  if (!mayBeNaN(end.value)) {
    return integer;
  }
  Value isNumber = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::ORD, value, value);
  return arith::SelectOp::create(kb.b, isNumber, integer, splatLike(kb, integer.getType(), -end.zero));
}

Value emitRounded(KernelBuilder &kb, const Requantise &end, Value value, bool clampsLow) {
  Value clamped = clampsLow ? clampOnce(kb, value, end.low - end.zero, false) : value;
  clamped = clampOnce(kb, clamped, end.high - end.zero, true);
  return integerOfNaN(kb, end, value, roundToInteger(kb, clamped));
}

Value emitRequantise(KernelBuilder &kb, const Requantise &end, Value value) {
  Value integer = emitRounded(kb, end, value);
  if (end.zero) {
    integer = arith::AddIOp::create(kb.b, integer, splatLike(kb, integer.getType(), end.zero));
  }
  auto vector = dyn_cast<VectorType>(integer.getType());
  return arith::TruncIOp::create(kb.b, vector ? Type(VectorType::get(vector.getShape(), end.type)) : end.type, integer);
}

} // namespace tessera::kernels
