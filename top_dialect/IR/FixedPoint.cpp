//===- FixedPoint.cpp - Fixed-point scaling as arith ops ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/FixedPoint.h"

#include "mlir/IR/BuiltinTypes.h"
#include <limits>

using namespace mlir;

namespace tessera::top::detail {

/// Returns |element|, or vectors of it if |like| is a vector.
static Type typeLike(Value like, Type element) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(vector.clone(element)) : element;
}

Long Long::extend(OpBuilder &builder, Location loc, Value integer) {
  Type type = typeLike(integer, builder.getI64Type());
  return {&builder, loc,
          type == integer.getType() ? integer : arith::ExtSIOp::create(builder, loc, type, integer).getResult()};
}

Long Long::lit(int64_t number) const {
  TypedAttr attribute = builder->getI64IntegerAttr(number);
  if (auto vector = dyn_cast<VectorType>(value.getType())) {
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  }
  return {builder, loc, arith::ConstantOp::create(*builder, loc, attribute)};
}

Long Long::isGreater(Long other) const {
  Value greater = arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::sgt, value, other.value);
  return {builder, loc, arith::ExtUIOp::create(*builder, loc, value.getType(), greater)};
}

Value Long::narrow(Type element) const {
  return arith::TruncIOp::create(*builder, loc, typeLike(value, element), value);
}

Long scaleOnce(Long sum, Long mantissa, Long shift) {
  return (sum * mantissa + (sum.lit(1) << (shift - sum.lit(1)))) >> shift;
}

Long scaleTwice(Long sum, Long mantissa, Long shift) {
  Long zero = sum.lit(0), one = sum.lit(1), rest = shift - sum.lit(31);
  Long right = rest.make<arith::MaxSIOp>(zero), left = (zero - rest).make<arith::MaxSIOp>(zero);
  Long shifted = (sum << left).clamp(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  Long rounded = (shifted * mantissa + sum.lit(int64_t(1) << 30)) >> sum.lit(31);
  Long mask = (one << right) - one, threshold = (mask >> one) + zero.isGreater(rounded);
  return (rounded >> right) + (rounded & mask).isGreater(threshold);
}

} // namespace tessera::top::detail
