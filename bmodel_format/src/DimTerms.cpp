// SPDX-License-Identifier: Apache-2.0
//===- DimTerms.cpp - Postfix expressions over dims -----------------------===//
#include "bmodel/dim_terms.h"

#include "bmodel/kernel_contract.h"

#include <cstddef>

using namespace bmodel;

static_assert(sizeof(bm_dim_term) == sizeof(DimTerm) && offsetof(bm_dim_term, op) == sizeof(int64_t) &&
              int(DimOp::Slot) == BM_DIM_PARAM && int(DimOp::Max) == BM_DIM_MAX && DimOp::MAX == DimOp::Max);

namespace {

bool isOperand(DimOp op) { return op == DimOp::Const || op == DimOp::Slot; }

/// Computes the floor or the ceiling of a / b, or the remainder of the floor, without products: they may overflow
/// although the result does not.
bool divide(DimOp op, int64_t a, int64_t b, int64_t &result) {
  if (b == 0 || b == -1) { // the quotient of INT64_MIN and -1 overflows, the remainder is defined
    result = 0;
    return b != 0 && (op == DimOp::Mod || !__builtin_sub_overflow(0, a, &result));
  }
  const int64_t rest = a % b;
  const bool isNegative = (a < 0) != (b < 0);
  result = op == DimOp::FloorDiv  ? a / b - (rest != 0 && isNegative)
           : op == DimOp::CeilDiv ? a / b + (rest != 0 && !isNegative)
                                  : rest + (rest != 0 && isNegative ? b : 0);
  return true;
}

/// Computes a op b; returns false if the result is undefined or overflows.
bool apply(DimOp op, int64_t a, int64_t b, int64_t &result) {
  switch (op) {
  case DimOp::Add:
    return !__builtin_add_overflow(a, b, &result);
  case DimOp::Sub:
    return !__builtin_sub_overflow(a, b, &result);
  case DimOp::Mul:
    return !__builtin_mul_overflow(a, b, &result);
  case DimOp::Min:
    result = a < b ? a : b;
    return true;
  case DimOp::Max:
    result = a > b ? a : b;
    return true;
  case DimOp::FloorDiv:
  case DimOp::CeilDiv:
  case DimOp::Mod:
    return divide(op, a, b, result);
  case DimOp::Const:
  case DimOp::Slot:
    break;
  }
  return false;
}

/// Every operation but Mod is monotonic in each operand while the other one is fixed (and a divisor keeps its sign), so
/// its extremes are at the corners of the ranges.
bool apply(DimOp op, DimRange a, DimRange b, DimRange &result) {
  const bool divides = op == DimOp::FloorDiv || op == DimOp::CeilDiv || op == DimOp::Mod;
  if (divides && b.min <= 0 && b.max >= 0) {
    return false;
  }
  if (op == DimOp::Mod) {
    result = b.min > 0 ? DimRange{0, b.max - 1} : DimRange{b.min + 1, 0};
    return true;
  }
  DimRange all = {INT64_MAX, INT64_MIN};
  for (const int64_t x : {a.min, a.max}) {
    for (const int64_t y : {b.min, b.max}) {
      int64_t corner;
      if (!apply(op, x, y, corner)) {
        return false;
      }
      all = {corner < all.min ? corner : all.min, corner > all.max ? corner : all.max};
    }
  }
  result = all;
  return true;
}

/// Runs the expression on values of type V; |load|(term) returns an operand.
template <typename V, typename Load>
bool run(const DimExpression &expression, Load load, V &result) {
  V stack[kMaxExpressionDepth];
  uint32_t top = 0;
  for (uint32_t i = 0; i < expression.size(); ++i) {
    const DimTerm term = expression[i];
    if (isOperand(term.op())) {
      stack[top++] = load(term);
    } else if (--top; !apply(term.op(), stack[top - 1], stack[top], stack[top - 1])) {
      return false;
    }
  }
  result = stack[0];
  return true;
}

} // namespace

const char *bmodel::findFault(const DimExpression &expression, uint64_t slots) {
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expression.size(); ++i) {
    const DimTerm term = expression[i];
    if (term.op() > DimOp::MAX) {
      return "has an unknown operation";
    }
    if (term.op() == DimOp::Slot && uint64_t(term.value()) >= slots) {
      return "refers to a dim that does not exist or does not precede it";
    }
    if (!isOperand(term.op()) && depth < 2) {
      return "lacks operands";
    }
    depth = isOperand(term.op()) ? depth + 1 : depth - 1;
    if (depth > kMaxExpressionDepth) {
      return "needs a stack of more than 32 values";
    }
  }
  return depth == 1 ? nullptr : "does not leave exactly one value";
}

int64_t bmodel::findUnknownSlot(const DimExpression &expression, const int64_t *values) {
  for (uint32_t i = 0; i < expression.size(); ++i) {
    const DimTerm term = expression[i];
    if (term.op() == DimOp::Slot && values[term.value()] < 0) {
      return term.value();
    }
  }
  return -1;
}

bool bmodel::evaluate(const DimExpression &expression, const int64_t *values, int64_t &result) {
  return run(
      expression, [&](const DimTerm &term) { return term.op() == DimOp::Const ? term.value() : values[term.value()]; },
      result);
}

bool bmodel::findRange(const DimExpression &expression, DimRange (*rangeOf)(const void *context, uint32_t slot),
                       const void *context, DimRange &result) {
  return run(
      expression,
      [&](const DimTerm &term) {
        return term.op() == DimOp::Const ? DimRange{term.value(), term.value()}
                                         : rangeOf(context, uint32_t(term.value()));
      },
      result);
}
