//===- MicroMatMul.cpp - Matmuls on register tiles ------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A (row-major or transposed) is read in place. B is read as panels [N / 16 blocks][K][16 blocks]: a constant is packed
// at compile time; an activation is packed to scratch by each launch tile, for the columns that it computes, or read in
// place if the matmul has so few rows that one register tile holds them all. 8-bit (16-bit) A takes four (two) elements
// of K per step with packed weights; if K is not a multiple of that, the rows are first copied to scratch, so that no
// step reads beyond the operand.
//===----------------------------------------------------------------------===//
#include "codegen/X86/ActivationPanels.h"
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/Micro.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

TileFunctions::Bias biasOf(device::MatMulOp op) {
  return !op.getBias()                      ? TileFunctions::Bias::None
         : device::isOrderedContraction(op) ? TileFunctions::Bias::Last
                                            : TileFunctions::Bias::First;
}

class MatMul {
public:
  MatMul(device::MatMulOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), extras(extras), g(op, targetOf(kb), extras), activation(op, kb, g),
        tiles(kb, op.getEpilogue(), extras, biasOf(op)) {}

  void emit();

private:
  /// A launch tile: row tiles and panels of one matmul of the batch.
  struct Part {
    Value rowBegin, rowEnd, panelBegin, panelEnd;
    Value firstRow; ///< first row of the copy in scratch
  };
  /// A panel: whether it is the last one, and how register tiles read it.
  struct PanelForm {
    bool last;
    const TileWeights &weights;
  };
  Part partOf(Value tile, Value &index);
  int64_t yBytes() { return device::elementBytes(getElementTypeOrSelf(op.getY().getType())); }
  Value batchOffset(Value batch, ArrayRef<Dim> dims, Dim matrix);
  /// Returns the first row of row tile |piece|.
  Value rowOf(Value piece) {
    const EvenSplit &split = g.rows.tiles;
    return g.dims.m.isKnown() ? kb.add(kb.mul(piece, split.size), kb.min(piece, kb.constant(split.wide)))
                              : kb.min(kb.mul(piece, g.rows.mostRows), kb.index(g.dims.m));
  }
  TileFunctions::Pointers pointersOf(Part &part, Value index);
  void copyRows(Value matrix, Value firstRow, Value lastRow);
  void copyRow(Value from, Value to);
  void emitPanels(const Part &part, const TileFunctions::Pointers &base);
  void emitPanel(const Part &part, TileFunctions::Pointers base, Value panel, bool last);
  void emitOpenTiles(const Part &part, const TileFunctions::Pointers &base, bool last);
  Value copyForManyTiles(Value panel, Value tiles, bool last);
  Value placePanel(Value matrix, Value panel, bool last);
  /// |rowOfTile| returns the first row of a register tile.
  void emitTiles(const Part &part, const TileFunctions::Pointers &base, Value begin, Value end, int64_t rows,
                 PanelForm panel, function_ref<Value(Value tile)> rowOfTile);
  TileShape tileShape(int64_t rows, PanelForm panel);
  TileResult resultOf(int64_t rows, bool last);

  device::MatMulOp op;
  KernelBuilder &kb;
  ArrayRef<TileExtra> extras;
  const MatMulGeometry g;
  ActivationPanels activation;
  TileFunctions tiles;
};

/// Returns the element offset of the operand's matrix for batch |index| of the result.
Value MatMul::batchOffset(Value index, ArrayRef<Dim> dims, Dim matrix) {
  Value offset = kb.constant(0);
  Dim stride = matrix;
  for (int64_t d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
    if (!dims[d].is(1)) {
      Value position = d == 0 ? index : kb.rem(index, g.dims.batchDims[d]);
      offset = kb.add(offset, kb.mul(position, stride));
      stride *= dims[d];
    }
    index = kb.div(index, g.dims.batchDims[d]);
  }
  return offset;
}

/// Returns launch tile |tile| and sets |index| to the index of its matmul.
MatMul::Part MatMul::partOf(Value tile, Value &index) {
  const WorkSplit &work = g.work;
  int64_t panels = g.columns.panels.count;
  Part part;
  Value rowPart = kb.rem(tile, g.rowParts()), rest = kb.div(tile, g.rowParts());
  Value panelPart = kb.rem(rest, work.panelParts);
  index = kb.div(rest, work.panelParts);
  part.rowBegin = kb.div(kb.mul(rowPart, g.pieces()), g.rowParts());
  part.rowEnd = kb.div(kb.mul(kb.add(rowPart, 1), g.pieces()), g.rowParts());
  part.panelBegin = kb.div(kb.mul(panelPart, panels), work.panelParts);
  part.panelEnd = kb.div(kb.mul(kb.add(panelPart, 1), panels), work.panelParts);
  return part;
}

/// Returns the pointers to the operands of matmul |index|. Copies the rows of A for |part| if needed.
TileFunctions::Pointers MatMul::pointersOf(Part &part, Value index) {
  Dim m = g.dims.m;
  int64_t k = g.dims.k, n = g.dims.n;
  TileFunctions::Pointers base;
  int64_t bBytes = device::elementBytes(getElementTypeOrSelf(op.getB().getType()));
  base.a = byteOffset(kb, kb.operand(0), kb.mul(batchOffset(index, g.dims.batchA, m * k), g.rows.elementBytes));
  base.b = byteOffset(kb, kb.operand(1), kb.mul(batchOffset(index, g.dims.batchB, n * k), bBytes));
  if (g.rows.copy != RowCopy::none) {
    part.firstRow = rowOf(part.rowBegin);
    copyRows(base.a, part.firstRow, rowOf(part.rowEnd));
    base.a = byteOffset(kb, kb.scratch(), g.copyAt);
  }
  base.c = byteOffset(kb, kb.result(), kb.mul(index, m * n * yBytes()));
  if (op.getBias()) {
    base.bias = kb.operand(2);
  }
  unsigned firstExtra = op.getBias() ? 3 : 2;
  for (auto [position, extra] : llvm::enumerate(extras)) {
    Value pointer = kb.operand(firstExtra + position);
    Dim matrix = extra.kind == ExtraKind::Full ? m * n : extra.kind == ExtraKind::Row ? m : extra.perMatrix ? n : 0;
    base.extras.push_back(byteOffset(kb, pointer, kb.mul(index, matrix * extra.elementBytes)));
  }
  return base;
}

void MatMul::emit() {
  if (g.scratchBytes) {
    kb.setScratchBytes(g.scratchBytes);
  }
  kb.forTiles(g.dims.batch * g.rowParts() * g.work.panelParts, [&](Value tile) {
    if (g.columns.chunk) {
      emitTileConfig(kb, g.windowRows(), g.columns.chunk);
    }
    Value index;
    Part part = partOf(tile, index);
    TileFunctions::Pointers base = pointersOf(part, index);
    emitPanels(part, base);
    if (g.columns.chunk) {
      emitTileRelease(kb);
    }
  });
}

/// Copies the rows [first, last) of A to scratch.
void MatMul::copyRows(Value matrix, Value first, Value last) {
  kb.forLoop(first, last, 1, [&](Value row) {
    Value copy = byteOffset(kb, kb.scratch(), g.copyAt);
    Value to = byteOffset(kb, copy, kb.mul(kb.sub(row, first), g.rows.rowBytes));
    copyRow(byteOffset(kb, matrix, kb.mul(row, g.dims.k * g.rows.elementBytes)), to);
  });
}

void MatMul::copyRow(Value from, Value to) {
  int64_t bytes = g.dims.k * g.rows.elementBytes, stepBytes = g.steps() * 4;
  switch (g.rows.copy) {
  case RowCopy::widen:
    return widenFloats(kb, g.rows.element, from, to, kb.constant(g.dims.k));
  case RowCopy::halves:
    return splitWords(kb, from, to, g.dims.k, stepBytes);
  case RowCopy::flip:
    return flipBytes(kb, from, to, kb.constant(bytes));
  case RowCopy::none:
  case RowCopy::plain:
    break;
  }
  LLVM::MemcpyOp::create(kb.b, to, from, kb.constant(bytes), /*isVolatile=*/false);
  if (g.rows.kind == TileKind::BF16 && stepBytes != bytes) { // garbage times a zero weight may be NaN
    auto behind = VectorType::get({stepBytes - bytes}, kb.b.getI8Type());
    kb.store(kb.zero(behind), to, kb.constant(bytes), 1);
  }
}

/// Emits the panels and row tiles of |part|.
void MatMul::emitPanels(const Part &part, const TileFunctions::Pointers &base) {
  const PanelSplit &panels = g.columns.panels;
  bool special = panels.lastBlocks != panels.blocks || g.dims.n % kBlock;
  Value fullEnd = special ? kb.min(part.panelEnd, kb.constant(panels.count - 1)) : part.panelEnd;
  if (!special || panels.count > 1) {
    kb.forLoop(part.panelBegin, fullEnd, 1, [&](Value panel) { emitPanel(part, base, panel, false); });
  }
  if (special) {
    kb.forLoop(kb.max(part.panelBegin, kb.constant(panels.count - 1)), part.panelEnd, 1,
               [&](Value panel) { emitPanel(part, base, panel, true); });
  }
}

/// Returns the pointer to |panel| of the B at |matrix|. Packs or widens the panel first if register tiles cannot read
/// it there.
Value MatMul::placePanel(Value matrix, Value panel, bool last) {
  const auto &[packed, inPlace, chunk, weights, panels, copies] = g.columns;
  int64_t panelBytes = panels.blocks * weights.panels.bytesOfBlock();
  if (weights.copied) {
    weights.copyPanel(kb, byteOffset(kb, matrix, kb.mul(panel, panelBytes)), kb.scratch(),
                      last ? panels.lastBlocks : panels.blocks);
    return kb.scratch();
  }
  if (packed) {
    return byteOffset(kb, matrix, kb.mul(panel, panelBytes));
  }
  if (g.readsInPlace(last)) {
    return byteOffset(kb, matrix, kb.mul(panel, panels.blocks * kBlockBytes));
  }
  activation.pack(matrix, panel, kb.scratch(), last);
  return kb.scratch();
}

void MatMul::emitPanel(const Part &part, TileFunctions::Pointers base, Value panel, bool last) {
  const PanelSplit &panels = g.columns.panels;
  base.b = placePanel(base.b, panel, last);
  auto columns = [&](int64_t bytes) { return kb.mul(panel, panels.blocks * kBlock * bytes); };
  base.c = byteOffset(kb, base.c, columns(yBytes()));
  if (base.bias) {
    base.bias = byteOffset(kb, base.bias, columns(4));
  }
  for (auto [extra, pointer] : llvm::zip_equal(extras, base.extras)) {
    if (extra.kind == ExtraKind::Full || extra.kind == ExtraKind::Column) {
      pointer = byteOffset(kb, pointer, columns(extra.elementBytes));
    }
  }
  int64_t panelBytes = panels.blocks * g.columns.weights.panels.bytesOfBlock();
  base.prefetch = g.prefetchLines ? byteOffset(kb, base.b, panelBytes) : Value();
  if (!g.dims.m.isKnown()) {
    return emitOpenTiles(part, base, last);
  }
  const PanelForm form{last, g.columns.weights};
  const EvenSplit &split = g.rows.tiles;
  Value wide = kb.constant(split.wide);
  if (split.wide) {
    emitTiles(part, base, part.rowBegin, kb.min(part.rowEnd, wide), split.size + 1, form,
              [&](Value tile) { return kb.mul(tile, split.size + 1); });
  }
  if (split.wide < split.pieces) {
    emitTiles(part, base, kb.max(part.rowBegin, wide), part.rowEnd, split.size, form,
              [&](Value tile) { return kb.add(kb.mul(tile, split.size), split.wide); });
  }
}

/// Emits the row tiles of |part|, whose number is symbolic, of the panel at |base|.
void MatMul::emitOpenTiles(const Part &part, const TileFunctions::Pointers &base, bool last) {
  Value begin = rowOf(part.rowBegin), total = kb.sub(rowOf(part.rowEnd), begin);
  forOpenTiles(kb, begin, total, g.rows.mostRows, [&](Value first, Value count, int64_t rows) {
    auto rowOfTile = [&](Value tile) { return kb.add(first, kb.mul(tile, rows)); };
    Value firstInPlace = kb.constant(0);
    if (g.columns.copies && rows == g.rows.mostRows) {
      TileFunctions::Pointers copy = base;
      copy.b = kb.scratch();
      firstInPlace = copyForManyTiles(base.b, count, last);
      emitTiles(part, copy, kb.constant(0), firstInPlace, rows, {last, *g.columns.copies}, rowOfTile);
    }
    emitTiles(part, base, firstInPlace, count, rows, {last, g.columns.weights}, rowOfTile);
  });
}

/// Copies the packed |panel| to scratch if enough row |tiles| read it. Returns the number of those that read the copy.
Value MatMul::copyForManyTiles(Value panel, Value tiles, bool last) {
  const PanelSplit &panels = g.columns.panels;
  Value isMany = kb.less(kb.constant(MatMulGeometry::kFewestPiecesOfCopies - 1), tiles);
  kb.ifThen(isMany,
            [&] { g.columns.copies->copyPanel(kb, panel, kb.scratch(), last ? panels.lastBlocks : panels.blocks); });
  return arith::SelectOp::create(kb.b, isMany, tiles, kb.constant(0));
}

/// Returns the register tile of |rows| rows of |panel|.
TileShape MatMul::tileShape(int64_t rows, PanelForm panel) {
  const MatMulColumns &columns = g.columns;
  const auto &[last, weights] = panel;
  TileShape shape;
  shape.kind = g.rows.copy == RowCopy::flip ? TileKind::U8 : g.rows.kind;
  shape.blocks = last ? columns.panels.lastBlocks : columns.panels.blocks;
  weights.describe(shape);
  shape.stepBytes = g.rows.stepBytes;
  shape.groupBytes = kBlock * g.rows.stepBytes;
  if (columns.chunk) {
    shape.groups = {{1, g.steps()}};
    shape.chunk = columns.chunk, shape.rowStride = g.rows.rowBytes, shape.windowRows = g.windowRows();
    shape.highAt = g.rows.copy == RowCopy::halves ? g.steps() * 4 : 0;
  }
  shape.prefetchLines = g.prefetchLines;
  shape.aheadBytes = streamAhead(shape.step, columns.packed ? g.bBytes() : 0);
  if (g.readsInPlace(last)) {
    shape.panelRowBytes = g.dims.n * 4;
    if (g.bBytes() >= 1 << 20) { // hardware does not prefetch a few lines per row
      constexpr int64_t kRowsAhead = 4;
      shape.aheadBytes = kRowsAhead * shape.panelRowBytes, shape.aheadLines = shape.blocks;
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    shape.rows.push_back(row * g.rows.rowBytes);
  }
  return shape;
}

/// Returns where a register tile of |rows| rows stores its results.
TileResult MatMul::resultOf(int64_t rows, bool last) {
  TileResult result;
  result.blocked = false;
  result.elementBytes = yBytes();
  result.element = getElementTypeOrSelf(op.getY().getType());
  result.tailLanes = last ? g.tailColumns() : kBlock;
  for (int64_t row = 0; row < rows; ++row) {
    result.rows.push_back(row * g.dims.n);
  }
  return result;
}

/// Emits the row tiles [begin, end), each of |count| rows.
void MatMul::emitTiles(const Part &part, const TileFunctions::Pointers &base, Value begin, Value end, int64_t count,
                       PanelForm panel, function_ref<Value(Value)> rowOfTile) {
  int64_t n = g.dims.n;
  TileShape shape = tileShape(count, panel);
  TileResult result = resultOf(count, panel.last);
  kb.forLoop(begin, end, 1, [&](Value tile) {
    Value row = rowOfTile(tile);
    TileFunctions::Pointers at = base;
    at.a = byteOffset(kb, base.a, kb.mul(part.firstRow ? kb.sub(row, part.firstRow) : row, g.rows.rowBytes));
    at.c = byteOffset(kb, base.c, kb.mul(row, n * result.elementBytes));
    for (auto [extra, pointer] : llvm::zip_equal(extras, at.extras)) {
      int64_t elements = extra.kind == ExtraKind::Full ? n : extra.kind == ExtraKind::Row ? extra.rowStride : 0;
      pointer = byteOffset(kb, pointer, kb.mul(row, elements * extra.elementBytes));
    }
    if (g.prefetchLines) {
      at.prefetch = byteOffset(kb, base.prefetch, kb.mul(kb.sub(tile, part.rowBegin), g.prefetchLines * 64));
    }
    tiles.call(shape, result, at);
  });
}

} // namespace

/// Returns true if |op| multiplies two 8-bit activations that can be packed with four elements of K per step.
static bool multipliesBytes(device::MatMulOp op) {
  auto a = cast<RankedTensorType>(op.getA().getType()), b = cast<RankedTensorType>(op.getB().getType()),
       y = cast<RankedTensorType>(op.getY().getType());
  auto fits = [](RankedTensorType type) {
    return type.hasStaticShape() && type.getNumElements() > 0 && !device::isBlocked(type);
  };
  bool bytes =
      a.getElementType().isInteger(8) && b.getElementType().isSignlessInteger(8) && !op.getBias() && !op.getScales();
  unsigned unsupported = 0;
  return bytes && !op.getTransA() && llvm::all_of(ArrayRef{a, b, y}, fits) &&
         (!op.getTransB() || b.getShape().back() % 4 == 0) && device::isEpilogueElement(y.getElementType()) &&
         classifyExtras(op, op.getExtras(), y, unsupported).has_value();
}

bool hasMicroMatMul(device::MatMulOp op) {
  if (multipliesBytes(op)) {
    return true;
  }
  for (Value value : op->getOperands()) {
    auto type = cast<RankedTensorType>(value.getType());
    if (tileKindOf(type.getElementType()) != TileKind::F32 || !type.hasStaticShape() || type.getNumElements() == 0 ||
        device::isBlocked(type)) {
      return false;
    }
  }
  bool widens = !getElementTypeOrSelf(op.getA().getType()).isF32();
  if ((widens && op.getTransA()) || (op.getBias() && !getElementTypeOrSelf(op.getBias().getType()).isF32())) {
    return false;
  }
  auto y = cast<RankedTensorType>(op.getY().getType());
  unsigned unsupported = 0;
  return tileKindOf(y.getElementType()) == TileKind::F32 && !device::isBlocked(y) && y.getNumElements() > 0 &&
         classifyExtras(op, op.getExtras(), y, unsupported).has_value();
}

LogicalResult emitMicroMatMul(device::MatMulOp op, KernelBuilder &kb) {
  unsigned unsupported = 0;
  auto y = cast<RankedTensorType>(op.getY().getType());
  std::optional<SmallVector<TileExtra>> extras = classifyExtras(op, op.getExtras(), y, unsupported);
  if (!extras) {
    return op.emitOpError() << "matmul cannot read epilogue operand " << unsupported << " of type "
                            << op.getExtras()[unsupported].getType()
                            << "; allowed: the result's type, one value per column, one per row, one value";
  }
  if (op.getPacking() && failed(checkPacking(op, targetOf(kb)))) {
    return failure();
  }
  MatMul(op, kb, *extras).emit();
  return success();
}

} // namespace tessera::x86
