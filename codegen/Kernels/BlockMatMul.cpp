//===- BlockMatMul.cpp - Matmuls of quantised rows and blocks of weights --===//
// SPDX-License-Identifier: Apache-2.0
//
// The loop kernel for machines without a micro-kernel. Each vector of columns quantises its row again, so that it needs
// no memory of its own; docs/numerics.md specifies the arithmetic.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/BlockMatMul.h"

#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceBlockOps.h"
#include "top_dialect/IR/BlockQuantization.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;

namespace tessera::kernels {

RowScale emitRowScale(KernelBuilder &kb, Value largestBits) {
  Type f32 = kb.b.getF32Type();
  auto bits = [&](float value) -> Value {
    return arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(llvm::bit_cast<int32_t>(value)));
  };
  auto number = [&](float value) { return kb.floatConstant(f32, value); };
  Value largest = arith::BitcastOp::create(kb.b, f32, largestBits);
  Value isFinite =
      arith::CmpIOp::create(kb.b, arith::CmpIPredicate::slt, largestBits, bits(std::numeric_limits<float>::infinity()));
  Value isLarge = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::sge, largestBits, bits(top::kSmallestOfBlock));
  Value isUsed = arith::AndIOp::create(kb.b, isFinite, isLarge);
  Value divisor = arith::SelectOp::create(kb.b, isUsed, largest, number(1));
  Value step = arith::DivFOp::create(kb.b, largest, number(top::kLargestOfRow));
  Value scale = arith::SelectOp::create(kb.b, isLarge, step, number(0));
  scale = arith::SelectOp::create(kb.b, isFinite, scale, number(std::numeric_limits<float>::quiet_NaN()));
  Value inverse = arith::DivFOp::create(kb.b, number(top::kLargestOfRow), divisor);
  return {scale, arith::SelectOp::create(kb.b, isUsed, inverse, number(0))};
}

Value emitMagnitudeBits(KernelBuilder &kb, Value x) {
  auto vector = dyn_cast<VectorType>(x.getType());
  Type i32 = kb.b.getI32Type(), type = vector ? Type(vector.clone(i32)) : i32;
  Attribute mask = kb.b.getI32IntegerAttr(std::numeric_limits<int32_t>::max());
  Value magnitude = arith::ConstantOp::create(
      kb.b, type, vector ? cast<TypedAttr>(DenseElementsAttr::get(vector.clone(i32), mask)) : cast<TypedAttr>(mask));
  return arith::AndIOp::create(kb.b, arith::BitcastOp::create(kb.b, type, x), magnitude);
}

Value emitQuantized(KernelBuilder &kb, Value x, Value inverse) {
  Type type = x.getType(), byte = kb.b.getI8Type(), word = kb.b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type)) {
    byte = vector.clone(byte), word = vector.clone(word);
  }
  Value scaled = arith::MulFOp::create(kb.b, x, inverse);
  Value rounded = arith::AddFOp::create(kb.b, scaled, kb.floatConstant(type, top::kRounding));
  return arith::TruncIOp::create(kb.b, byte, arith::BitcastOp::create(kb.b, word, rounded));
}

namespace {

class LoopBlockMatMul {
public:
  LoopBlockMatMul(KernelBuilder &kb, device::BlockMatMulOp op)
      : kb(kb), op(op), y(kb.resultType()), epilogue(kb, cast<device::EpilogueInterface>(*op)),
        depth(op.getWeightShape()[0]), columns(op.getWeightShape()[1]), block(static_cast<int64_t>(op.getBlock())),
        lanes(2 * kb.target.lanes(32)) {}

  void emit() {
    SmallVector<Dim> space = Shape(y).dropBack().dims();
    space.push_back(llvm::divideCeil(columns, lanes));
    forItems(kb, multiply(space), depth * int64_t(lanes), 262144,
             [&](Value item) { emitVector(kb.div(item, space.back()), delinearize(kb, item, space)); });
  }

private:
  /// Emits one vector of columns of |row|, at |indices| of all rows and vectors.
  void emitVector(Value row, SmallVector<Value> indices) {
    Value column = kb.mul(indices.back(), lanes);
    step = {{}, columns % lanes ? kb.maskBelow(lanes, kb.sub(kb.constant(columns), column)) : Value(), lanes};
    Value from = kb.mul(row, depth);
    SmallVector<Value> sums{kb.zero(vectorOf(kb.b.getF32Type()))};
    sums = kb.forLoop(kb.constant(0), kb.constant(llvm::divideCeil(depth, block)), 1, sums,
                      [&](Value g, ValueRange old) { return SmallVector<Value>{addBlock(g, from, column, old[0])}; });
    indices.back() = column;
    epilogue.store(sums[0], indices, y.getRank() - 1, step.mask);
  }

  Type vectorOf(Type element) { return kb.lanesOf(element, lanes); }
  Value load(unsigned operand, Value at) {
    return loadLanes(kb, kb.operandType(operand).getElementType(), kb.operand(operand), 1, step, at);
  }

  /// Returns |sum| plus the products of block |g|.
  Value addBlock(Value g, Value from, Value column, Value sum) {
    Type f32 = kb.b.getF32Type(), i32 = kb.b.getI32Type();
    Value begin = kb.mul(g, block), end = kb.min(kb.add(begin, block), kb.constant(depth));
    auto loadOfRow = [&](Value k) { return kb.load(f32, kb.operand(0), kb.add(from, k)); };
    Value largest = kb.forLoop(begin, end, 1, ValueRange{kb.zero(i32)}, [&](Value k, ValueRange old) {
      return SmallVector<Value>{arith::MaxSIOp::create(kb.b, old[0], emitMagnitudeBits(kb, loadOfRow(k)))};
    })[0];
    RowScale x = emitRowScale(kb, largest);
    SmallVector<Value> start{kb.zero(vectorOf(i32)), kb.zero(i32)};
    SmallVector<Value> integers = kb.forLoop(begin, end, 1, start, [&](Value k, ValueRange old) {
      Value q = arith::ExtSIOp::create(kb.b, i32, emitQuantized(kb, loadOfRow(k), x.inverse));
      Value w = load(1, kb.add(kb.mul(k, columns), column));
      w = arith::ExtSIOp::create(kb.b, vectorOf(i32), w);
      Value product = arith::MulIOp::create(kb.b, splat(q), w);
      return SmallVector<Value>{arith::AddIOp::create(kb.b, old[0], product), arith::AddIOp::create(kb.b, old[1], q)};
    });
    Value at = kb.add(kb.mul(g, columns), column);
    Value scaled = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, vectorOf(f32), integers[0]), load(2, at));
    sum = emitExactFma(kb, scaled, splat(x.scale), sum);
    if (op.getMins()) {
      Value weight = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, f32, integers[1]), x.scale);
      sum = emitExactFma(kb, load(3, at), splat(weight), sum);
    }
    return sum;
  }

  Value splat(Value scalar) { return isa<VectorType>(vectorOf(scalar.getType())) ? kb.splat(scalar, lanes) : scalar; }

  KernelBuilder &kb;
  device::BlockMatMulOp op;
  RankedTensorType y;
  EpilogueStore epilogue;
  const int64_t depth, columns, block;
  const unsigned lanes;
  VectorStep step;
};

struct BlockMatMulModel : KernelInterface::ExternalModel<BlockMatMulModel, device::BlockMatMulOp> {
  bool acceptsOpenSizes(Operation *op) const {
    Shape x(op->getOperand(0)), y(op->getResult(0));
    return x.back().isKnown() && y.back().isKnown() && sameSizes(x.dropBack(), y.dropBack()) &&
           broadcastsProvably(cast<device::EpilogueInterface>(op));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto matmul = cast<device::BlockMatMulOp>(op);
    if (matmul.getPacking()) {
      return op->emitError("internal error: the loop kernel does not support packed weights");
    }
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    LoopBlockMatMul(kb, matmul).emit();
    return success();
  }
};

} // namespace

void attachBlockMatMulModels(MLIRContext *context) {
  device::BlockMatMulOp::attachInterface<BlockMatMulModel>(*context);
}

} // namespace tessera::kernels
