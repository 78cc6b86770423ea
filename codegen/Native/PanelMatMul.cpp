//===- PanelMatMul.cpp - Matmuls with panels of columns -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/BatchedMatrix.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Native/PanelTile.h"

#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::native {

using namespace kernels;

namespace {

constexpr int64_t kRowsOfPart = 128; ///< rows that read a panel after it was packed
constexpr int64_t kFewRows = 16;     ///< too few to transpose a panel for

class PanelMatMul {
public:
  PanelMatMul(KernelBuilder &kb, device::MatMulOp op)
      : kb(kb), op(op), a(kb.operandType(0)), b(kb.operandType(1)), y(kb.resultType()), shape(Shape(y).values()),
        depth(Shape(a).back().value()), sum(registerType(op.getAccumulatorType())),
        epilogue(kb, cast<device::EpilogueInterface>(*op)),
        tile(kb, a.getElementType(), b.getElementType(), sum, depth) {
    inPlace = b.getElementType().isF32() && !op.getTransB() && columns() % PanelTile::kColumns == 0;
  }

  void emit() {
    SmallVector<int64_t> space(shape.drop_back(2));
    space.push_back(llvm::divideCeil(rows(), kRowsOfPart));
    space.push_back(llvm::divideCeil(columns(), PanelTile::kColumns));
    if (!inPlace) {
      kb.setScratchBytes(tile.panelBytes());
    }
    int64_t work = std::min(rows(), kRowsOfPart) * PanelTile::kColumns * depth;
    forItems(kb, ShapedType::getNumElements(space), work, 262144,
             [&](Value item) { emitPanel(delinearize(kb, item, space)); });
  }

private:
  int64_t rows() const { return shape[shape.size() - 2]; }
  int64_t columns() const { return shape.back(); }

  void emitPanel(SmallVector<Value> indices) {
    Value column = kb.mul(indices.back(), PanelTile::kColumns),
          begin = kb.mul(indices[indices.size() - 2], kRowsOfPart);
    BatchedMatrix left = matrixAt(kb, a, y.getRank(), indices, /*transposed=*/false),
                  right = matrixAt(kb, b, y.getRank(), indices, op.getTransB());
    Value rest = kb.sub(kb.constant(columns()), column);
    Value mask = columns() % PanelTile::kColumns ? kb.maskBelow(PanelTile::kColumns, rest) : Value();
    Value panel = kb.scratch();
    if (inPlace) {
      panel = kb.element(b.getElementType(), kb.operand(1), kb.add(right.base, column));
    } else {
      pack(right, column, rest);
    }
    indices.back() = column;
    Value end = kb.min(kb.add(begin, kRowsOfPart), kb.constant(rows()));
    kb.forLoop(begin, end, std::min(rows(), PanelTile::kRows),
               [&](Value row) { emitRows(left, panel, row, indices, mask); });
  }

  /// Copies the columns from |column| on to scratch. Columns beyond the last one repeat it; their sums are not stored.
  void pack(const BatchedMatrix &matrix, Value column, Value rest) {
    Value whole = kb.less(kb.constant(PanelTile::kColumns - 1), rest);
    auto packVectors = [&] {
      kb.forLoop(kb.constant(0), kb.constant(depth), 1, [&](Value k) {
        Value from = kb.add(kb.add(matrix.base, kb.mul(k, matrix.rowStride)), column);
        tile.pack(kb.loadElements(b.getElementType(), PanelTile::kColumns, kb.operand(1), from),
                  kb.mul(k, PanelTile::kColumns));
      });
    };
    auto packElements = [&] {
      kb.forLoop(kb.constant(0), kb.constant(PanelTile::kColumns), 1, [&](Value i) {
        Value own = kb.min(kb.add(column, i), kb.constant(columns() - 1));
        Value first = kb.add(matrix.base, kb.mul(own, matrix.columnStride));
        kb.forLoop(kb.constant(0), kb.constant(depth), 1, [&](Value k) {
          Value from = kb.add(first, kb.mul(k, matrix.rowStride));
          tile.pack(kb.loadElements(b.getElementType(), 0, kb.operand(1), from),
                    kb.add(kb.mul(k, PanelTile::kColumns), i));
        });
      });
    };
    if (op.getTransB()) {
      return packElements();
    }
    kb.ifThen(whole, packVectors);
    kb.ifThen(kb.less(rest, kb.constant(PanelTile::kColumns)), packElements);
  }

  void emitRows(const BatchedMatrix &left, Value panel, Value row, ArrayRef<Value> indices, Value mask) {
    const int64_t count = std::min(rows(), PanelTile::kRows);
    SmallVector<Value> offsets;
    for (int64_t r = 0; r < count; ++r) { // rows beyond the last one repeat it and are not stored
      Value own = kb.min(kb.add(row, r), kb.constant(rows() - 1));
      offsets.push_back(kb.add(left.base, kb.mul(own, left.rowStride)));
    }
    // If the order of the sums is specified, the bias is added last.
    bool lastBias = device::isOrderedContraction(op) && op.getBias();
    Value zeros = kb.zero(VectorType::get({PanelTile::kColumns}, sum));
    Value start = op.getBias() ? bias(indices.back(), mask) : zeros;
    SmallVector<Value> sums = tile.multiply(kb.operand(0), offsets, panel, inPlace ? columns() : PanelTile::kColumns,
                                            SmallVector<Value>(count, lastBias ? zeros : start));
    for (auto [r, each] : llvm::enumerate(sums)) {
      Value at = kb.add(row, int64_t(r)), value = lastBias ? arith::AddFOp::create(kb.b, each, start) : each;
      auto store = [&] {
        SmallVector<Value> where(indices);
        where[where.size() - 2] = at;
        epilogue.store(value, where, y.getRank() - 1, mask);
      };
      rows() % count ? kb.ifThen(kb.less(at, kb.constant(rows())), store) : store();
    }
  }

  Value bias(Value column, Value mask) {
    Type type = kb.operandType(2).getElementType();
    return convertElement(kb, kb.loadElements(type, PanelTile::kColumns, kb.operand(2), column, mask), type, sum);
  }

  KernelBuilder &kb;
  device::MatMulOp op;
  RankedTensorType a, b, y;
  ArrayRef<int64_t> shape;
  int64_t depth;
  Type sum;
  EpilogueStore epilogue;
  PanelTile tile;
  bool inPlace = false;
};

} // namespace

bool emitPanelMatMul(KernelBuilder &kb, device::MatMulOp op) {
  if (!PanelTile::supports(kb, op.getAccumulatorType()) || op.getTransA() || op.getScales()) {
    return false;
  }
  if (op.getTransB() && Shape(op.getY()).dropBack().back().value() < kFewRows) {
    return false;
  }
  PanelMatMul(kb, op).emit();
  return true;
}

} // namespace tessera::native
