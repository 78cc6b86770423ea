//===- DeviceBlockOpsDefs.cpp - Definitions and verifiers of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceBlockOps.h"

#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/BlockQuantization.h"
#include "top_dialect/IR/Sizes.h"

using namespace mlir;
using namespace tessera::device;
using tessera::ceilDiv;
using tessera::countElements;
using tessera::Dim;
using tessera::Shape;
using tessera::toText;
using tessera::typeOf;
using verify::agree;
namespace top = tessera::top;

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceBlockOps.cpp.inc"

Region &BlockMatMulOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange BlockMatMulOp::getEpilogueOperands() { return getExtras(); }
void BlockMatMulOp::setEpilogueOperands(ValueRange operands) { getExtrasMutable().assign(operands); }
Type BlockMatMulOp::getAccumulatorType() { return Float32Type::get(getContext()); }
bool BlockMatMulOp::canReadExtra(Value extra) { return verify::fitsMatMul(extra, getY()); }

ArrayRef<int64_t> BlockMatMulOp::getWeightShape() { return verify::weightShape(getPackingAttr(), getW()); }

/// Verifies scales or mins: one f32 for each block and column.
static LogicalResult verifyOfBlocks(BlockMatMulOp op, Value values, ArrayRef<Dim> expected, StringRef name) {
  if (!values) {
    return success();
  }
  if (Type element = typeOf(values).getElementType(); !element.isF32()) { // block_matmul_c5
    return op.emitOpError() << name << " are " << element << ", allowed f32 (block_matmul_c5)";
  }
  return verify::dims(op, values, expected, name, "block_matmul_c4");
}

LogicalResult BlockMatMulOp::verify() {
  Shape x = getX(), w = getPacking() ? Shape(getWeightShape()) : Shape(getW());
  if (x.rank() < 2 || w.rank() != 2) { // block_matmul_c1
    return emitOpError() << "ranks of x and w are " << x.rank() << ", " << w.rank()
                         << ", allowed 2 or more and 2 (block_matmul_c1)";
  }
  if (!agree(x.back(), w[0])) { // block_matmul_c2
    return emitOpError() << "x has K = " << toText(x.back()) << ", w has K = " << toText(w[0]) << " (block_matmul_c2)";
  }
  const auto block = static_cast<int64_t>(getBlock());
  if (block < 1 || block > top::kMostOfBlock) { // block_matmul_c3
    return emitOpError() << "block is " << block << ", allowed 1 to " << top::kMostOfBlock << " (block_matmul_c3)";
  }
  const bool isPacked = getPacking().has_value();
  if (isPacked ? getScales() || getMins() : !getScales()) { // block_matmul_c4
    return emitOpError() << (isPacked ? "has scales or mins beside packed weights, which contain them"
                                      : "has no scales, allowed only with packed weights")
                         << " (block_matmul_c4)";
  }
  Type weights = typeOf(getW()).getElementType();
  if (!typeOf(getX()).getElementType().isF32() || !weights.isSignlessInteger(8)) { // block_matmul_c5
    return emitOpError() << "multiplies " << typeOf(getX()).getElementType() << " and " << weights
                         << ", allowed f32 and i8 (block_matmul_c5)";
  }
  const Dim perBlock[] = {ceilDiv(w[0], block), w[1]};
  SmallVector<Dim> expected(x.dims());
  expected.back() = w[1];
  return success(succeeded(verifyOfBlocks(*this, getScales(), perBlock, "scales")) &&
                 succeeded(verifyOfBlocks(*this, getMins(), perBlock, "mins")) &&
                 succeeded(verify::dims(*this, getY(), expected, "result", "block_matmul_c6")) &&
                 succeeded(verify::epilogue(*this, "block_matmul_c7")) &&
                 (!isPacked || succeeded(getPackingAttr().verifyWeights(*this, typeOf(getW()))))); // block_matmul_c8
}

int64_t BlockMatMulOp::countFlops() { return 2 * countMacs(); }
int64_t BlockMatMulOp::countMacs() {
  Dim results = countElements(getY());
  return results.isUnknown() ? 0 : getWeightShape()[0] * likelyOf(results);
}
