//===- ScalarSpecials.cpp - Results that may be -0 or NaN -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Vector/ScalarTranslator.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;

bool ScalarTranslator::mayBeMinusZero(Op op, ArrayRef<unsigned> operands) const {
  auto isSigned = [&](unsigned operand) { return nodes[operand].isSigned; };
  switch (op) {
  case Op::less:
  case Op::lessEqual:
  case Op::equal:
  case Op::abs:
    return false;
  case Op::add:
  case Op::maximum:
    return llvm::all_of(operands, isSigned);
  case Op::sub:
    return isSigned(operands[0]);
  case Op::minimum:
    return llvm::any_of(operands, isSigned);
  case Op::select:
    return llvm::any_of(operands.drop_front(), isSigned);
  case Op::mul:
    return llvm::any_of(operands, [&](unsigned each) { return isSigned(each) || !(nodes[each].interval.low >= 0); });
  default:
    return true;
  }
}

bool ScalarTranslator::mayBeNaN(Op op, ArrayRef<unsigned> operands) const {
  bool any = llvm::any_of(operands, [&](unsigned operand) { return nodes[operand].mayBeNaN; });
  switch (op) {
  case Op::less:
  case Op::lessEqual:
  case Op::equal:
    return false;
  case Op::add:
  case Op::sub:
  case Op::mul:
  case Op::maximum:
  case Op::minimum:
  case Op::neg:
  case Op::abs:
  case Op::floor:
  case Op::ceil:
  case Op::roundEven:
  case Op::truncate:
  case Op::tanh:
  case Op::erf:
  case Op::sigmoid:
  case Op::select:
    return any;
  case Op::div:
    return any || nodes[operands[1]].op != Op::constant || nodes[operands[1]].constant == 0;
  default:
    return true;
  }
}

} // namespace tessera::npu
