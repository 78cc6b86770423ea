//===- RowMatMul.cpp - Matmuls of contiguous rows -------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Lanes are neighbouring terms of a sum, so nothing is packed: both operands are read in place. A tile of rows by rows
// shares its loads; sums are added across lanes at the end.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/RowMatMul.h"

#include "codegen/Kernels/BatchedMatrix.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/RowContraction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/Exact.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

struct Sizes {
  explicit Sizes(device::MatMulOp op) {
    auto a = cast<RankedTensorType>(op.getA().getType()), y = cast<RankedTensorType>(op.getY().getType());
    rows = Shape(y)[y.getRank() - 2].value(), columns = Shape(y).back().value();
    depth = Shape(a)[a.getRank() - (op.getTransA() ? 2 : 1)].value();
  }
  int64_t rows, columns, depth;
};

/// Returns true if the right operand is one column and the left one consists of rows. The lanes of a result vector are
/// then rows.
bool isByVector(device::MatMulOp op) {
  Sizes sizes(op);
  return sizes.columns == 1 && sizes.rows > 1 && !op.getTransA();
}

class RowMatMul {
public:
  RowMatMul(KernelBuilder &kb, device::MatMulOp op)
      : kb(kb), op(op), y(kb.resultType()), epilogue(kb, cast<device::EpilogueInterface>(*op)), sizes(op),
        byVector(isByVector(op)), leftRows(byVector ? 1 : sizes.rows),
        rightRows(byVector ? sizes.rows : sizes.columns) {
    tile.depth = sizes.depth, tile.lanes = kb.target.lanes(32);
    chooseTile();
  }

  void emit() {
    SmallVector<int64_t> space(Shape(y).dropBack(2).values());
    space.append({int64_t(llvm::divideCeil(rightRows, tile.right)), int64_t(llvm::divideCeil(leftRows, tile.left))});
    // A tile of one row is bound by memory, so it gets its own thread at less work than a compute-bound tile.
    int64_t work = tile.left * tile.right * tile.depth, workPerTile = tile.left == 1 ? 65536 : 262144;
    forItems(kb, ShapedType::getNumElements(space), work, workPerTile,
             [&](Value item) { emitTile(delinearize(kb, item, space)); });
  }

private:
  /// Chooses the tile with the most multiplications per load that fits the registers; one register holds a vector of a
  /// right row and one stays free.
  void chooseTile() {
    int64_t registers = kb.target.masks ? 32 : 16, best = 0;
    for (int64_t left = 1; left <= std::min<int64_t>(leftRows, 5); ++left) {
      int64_t most = (registers - left - 2) / left;
      int64_t right = kernels::rightRows(rightRows, tile.lanes, most), gain = 1000 * left * right / (left + right);
      if (gain > best) {
        best = gain, tile.left = left, tile.right = right;
      }
    }
  }

  void emitTile(SmallVector<Value> indices) {
    Value left = kb.mul(indices.pop_back_val(), tile.left), right = kb.mul(indices.pop_back_val(), tile.right);
    BatchedMatrix a = matrixAt(kb, kb.operandType(0), y.getRank(), indices, op.getTransA());
    BatchedMatrix b = matrixAt(kb, kb.operandType(1), y.getRank(), indices, op.getTransB());
    if (byVector) { // the single column is a row
      std::swap(a, b), a.rowStride = 0;
    } else {
      b.rowStride = b.columnStride;
    }
    SmallVector<Value> lefts = rowOffsets(a, left, leftRows, tile.left);
    SmallVector<Value> rights = rowOffsets(b, right, rightRows, tile.right);
    SmallVector<Value> sums = emitRowContraction(
        kb, kb.b.getF32Type(), tile,
        [&](int64_t row, Value i, Value mask) { return loadRow(byVector ? 1 : 0, kb.add(lefts[row], i), mask); },
        [&](int64_t row, Value i, Value mask) { return loadRow(byVector ? 0 : 1, kb.add(rights[row], i), mask); });
    Value mask = rightRows % tile.right ? kb.maskBelow(tile.right, kb.sub(kb.constant(rightRows), right)) : Value();
    for (int64_t row = 0; row < tile.left; ++row) {
      store(sums[row], indices, kb.add(left, row), right, mask);
    }
  }

  /// Returns the offsets of |count| rows of |matrix| from |first| on. Rows beyond the last one repeat the last row and
  /// are not stored.
  SmallVector<Value> rowOffsets(const BatchedMatrix &matrix, Value first, int64_t rows, int64_t count) {
    SmallVector<Value> offsets;
    for (int64_t row = 0; row < count; ++row) {
      Value at = kb.add(first, row);
      at = rows % count ? kb.min(at, kb.constant(rows - 1)) : at;
      offsets.push_back(kb.add(matrix.base, kb.mul(at, matrix.rowStride)));
    }
    return offsets;
  }

  Value loadRow(unsigned operand, Value offset, Value mask) {
    return kb.loadElements(kb.operandType(operand).getElementType(), tile.lanes, kb.operand(operand), offset, mask);
  }

  void store(Value sums, ArrayRef<Value> batch, Value left, Value right, Value mask) {
    auto storeRow = [&] {
      SmallVector<Value> where(batch);
      where.append({byVector ? right : left, byVector ? kb.constant(0) : right});
      int64_t laneDim = y.getRank() - (byVector ? 2 : 1);
      epilogue.store(op.getBias() ? biased(sums, right, mask) : sums, where, laneDim, mask);
    };
    leftRows % tile.left ? kb.ifThen(kb.less(left, kb.constant(leftRows)), storeRow) : storeRow();
  }

  Value biased(Value sums, Value right, Value mask) {
    Type type = cast<RankedTensorType>(op.getBias().getType()).getElementType();
    VectorStep step{{}, mask, unsigned(tile.right)};
    Value bias = loadLanes(kb, type, kb.operand(2), byVector ? 0 : 1, step, byVector ? kb.constant(0) : right);
    return arith::AddFOp::create(kb.b, sums, bias);
  }

  KernelBuilder &kb;
  device::MatMulOp op;
  RankedTensorType y;
  EpilogueStore epilogue;
  Sizes sizes;
  bool byVector;
  int64_t leftRows, rightRows;
  RowTile tile;
};

} // namespace

bool isRowMatMul(device::MatMulOp op) {
  constexpr int64_t kMostRows = 32, kDepthPerRow = 10; // with fewer terms, sums across lanes cost more than packing
  Sizes sizes(op);
  if (op.getPacking() || op.getScales() || device::isOrderedContraction(op)) {
    return false;
  }
  bool fewRows = op.getTransB() && !op.getTransA() && sizes.rows <= kMostRows;
  return isByVector(op) || (fewRows && kDepthPerRow * sizes.rows <= sizes.depth);
}

void emitRowMatMul(KernelBuilder &kb, device::MatMulOp op) { RowMatMul(kb, op).emit(); }

} // namespace tessera::kernels
