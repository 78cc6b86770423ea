//===- MatMul.cpp - Matmul kernels ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Handles any batch dims and element types; both operands are in logical order (not packed).
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/BatchedMatrix.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/MatMulThreads.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Emits a matmul in blocks of kRows rows by one vector of columns (two registers) that accumulate over K.
class GenericMatMul {
public:
  static constexpr int64_t kRows = 4;

  GenericMatMul(KernelBuilder &kb, device::MatMulOp op)
      : kb(kb), op(op), a(kb.operandType(0)), b(kb.operandType(1)), y(kb.resultType()),
        epilogue(kb, cast<device::EpilogueInterface>(*op)), accumulator(registerType(op.getAccumulatorType())) {
    int64_t rank = y.getRank();
    rows = Shape(y)[rank - 2];
    columns = Shape(y)[rank - 1];
    depth = Shape(a)[a.getRank() - (op.getTransA() ? 2 : 1)];
    lanes = 2 * kb.target.lanes(32);
  }

  void emit() {
    SmallVector<Dim> space = Shape(y).dropBack(2).dims();
    space.append({ceilDiv(rows, kRows), ceilDiv(columns, lanes)});
    forItems(kb, multiply(space), kRows * int64_t(lanes) * depth, 262144,
             [&](Value block) { emitBlock(delinearize(kb, block, space)); });
  }

private:
  void emitBlock(SmallVector<Value> indices) {
    Value row = kb.mul(indices[indices.size() - 2], kRows), column = kb.mul(indices.back(), lanes);
    BatchedMatrix left = matrixAt(kb, a, y.getRank(), indices, op.getTransA()),
                  right = matrixAt(kb, b, y.getRank(), indices, op.getTransB());
    Value mask = isMultipleOf(columns, lanes) ? Value() : kb.maskBelow(lanes, kb.sub(kb.index(columns), column));
    VectorStep step{{}, mask, lanes};
    // Rows beyond the last one repeat the last row and are not stored.
    SmallVector<Value> rowOffsets;
    for (int64_t r = 0; r < kRows; ++r) {
      Value clamped = kb.min(kb.add(row, r), kb.index(rows - 1));
      rowOffsets.push_back(kb.add(left.base, kb.mul(clamped, left.rowStride)));
    }
    Value columnOffset = kb.add(right.base, kb.mul(column, right.columnStride));
    // If the order of the sums is specified, the bias is added last.
    bool ordered = device::isOrderedContraction(op), lastBias = ordered && op.getBias();
    Value zeros = kb.zero(VectorType::get({int64_t(lanes)}, accumulator)), start = initial(column, step);
    SmallVector<Value> sums(kRows, lastBias ? zeros : start);
    sums = kb.forLoop(kb.constant(0), kb.index(depth), 1, sums, [&](Value k, ValueRange old) {
      Value offset = kb.add(columnOffset, kb.mul(k, right.rowStride));
      Value vector = loadLanes(kb, b.getElementType(), kb.operand(1), right.columnStride, step, offset);
      vector = scaled(convertElement(kb, vector, b.getElementType(), accumulator), k, column, step);
      SmallVector<Value> next;
      for (int64_t r = 0; r < kRows; ++r) {
        Value scalar =
            kb.loadElements(a.getElementType(), 0, kb.operand(0), kb.add(rowOffsets[r], kb.mul(k, left.columnStride)));
        scalar = convertElement(kb, scalar, a.getElementType(), accumulator);
        Value factor = kb.splat(scalar, lanes);
        next.push_back(ordered ? emitFma(kb, factor, vector, old[r]) : emitMultiplyAdd(kb, factor, vector, old[r]));
      }
      return next;
    });
    for (int64_t r = 0; r < kRows; ++r) {
      if (lastBias) {
        sums[r] = arith::AddFOp::create(kb.b, sums[r], start);
      }
      Value at = kb.add(row, r);
      auto store = [&] {
        SmallVector<Value> where(indices.begin(), indices.end() - 2);
        where.append({at, column});
        epilogue.store(sums[r], where, y.getRank() - 1, mask);
      };
      isMultipleOf(rows, kRows) ? store() : kb.ifThen(kb.less(at, kb.index(rows)), store);
    }
  }

  /// Multiplies the weights of row |k| by their scales, if they are integers in a float matmul.
  Value scaled(Value weights, Value k, Value column, const VectorStep &step) {
    if (!op.getScales()) {
      return weights;
    }
    Value row = kb.div(k, std::max<int64_t>(1, op.getWeightGroup()));
    Value scales = loadLanes(kb, cast<RankedTensorType>(op.getScales().getType()).getElementType(),
                             kb.operand(op->getNumOperands() - 1), 1, step, kb.add(kb.mul(row, columns), column));
    return arith::MulFOp::create(kb.b, weights, scales);
  }

  Value initial(Value column, const VectorStep &step) {
    if (!op.getBias()) {
      return kb.zero(VectorType::get({int64_t(lanes)}, accumulator));
    }
    Type type = cast<RankedTensorType>(op.getBias().getType()).getElementType();
    return convertElement(kb, loadLanes(kb, type, kb.operand(2), 1, step, column), type, accumulator);
  }

  KernelBuilder &kb;
  device::MatMulOp op;
  RankedTensorType a, b, y;
  EpilogueStore epilogue;
  Type accumulator;
  Dim rows = 1, columns = 1, depth = 1;
  unsigned lanes;
};

struct MatMulModel : KernelInterface::ExternalModel<MatMulModel, device::MatMulOp> {
  bool acceptsOpenSizes(Operation *op) const {
    auto matmul = cast<device::MatMulOp>(op);
    Shape a(matmul.getA()), b(matmul.getB()), y(matmul.getY());
    bool transA = matmul.getTransA(), transB = matmul.getTransB();
    auto isMatrixOf = [&](Shape x, Dim rows, Dim columns, bool transposed) {
      for (size_t d = 0; d + 2 < x.rank(); ++d) {
        if (!x[d].is(1) && !sameSize(x[d], y[d + y.rank() - x.rank()])) {
          return false;
        }
      }
      return sameSize(x[x.rank() - (transposed ? 1 : 2)], rows) &&
             sameSize(x[x.rank() - (transposed ? 2 : 1)], columns);
    };
    Dim depth = a[a.rank() - (transA ? 2 : 1)];
    return isMatrixOf(a, y[y.rank() - 2], depth, transA) && isMatrixOf(b, depth, y.back(), transB) &&
           broadcastsProvably(cast<device::EpilogueInterface>(op));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto matmul = cast<device::MatMulOp>(op);
    if (matmul.getPacking()) {
      return op->emitError("internal error: the loop kernel does not support packed weights");
    }
    if (kb.target.tileIsThread && isPlain(kb)) {
      emitMatMulByThreads(kb, matmul);
    } else {
      GenericMatMul(kb, matmul).emit();
    }
    return success();
  }

  /// Returns true if all tensors are row-major, not empty, and have elements of whole bytes.
  static bool isPlain(KernelBuilder &kb) {
    return llvm::all_of(
        ArrayRef<RankedTensorType>{kb.operandType(0), kb.operandType(1), kb.resultType()}, [](RankedTensorType type) {
          return !device::isBlocked(type) && !countElements(type).is(0) && type.getElementTypeBitWidth() >= 8;
        });
  }
};

} // namespace

void attachMatMulModels(MLIRContext *context) { device::MatMulOp::attachInterface<MatMulModel>(*context); }

} // namespace tessera::kernels
