//===- MicroMatMul.cpp - Matmuls on register tiles ------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A (row-major or transposed) is read in place. B is read as panels [N / 16 blocks][K][16 blocks]: a constant is packed
// at compile time; an activation is packed to scratch by each launch tile, for the columns that it computes, or read in
// place if the matmul has so few rows that one register tile holds them all. 8-bit (16-bit) A takes four (two) elements
// of K per step with packed weights; if K is not a multiple of that, the rows are first copied to scratch, so that no
// step reads beyond the operand.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Transpose.h"
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/MicroShape.h"
#include "codegen/X86/Transforms/AmxTiles.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

class MatMul {
public:
  MatMul(device::MatMulOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras);
  void emit();

private:
  Value batchOffset(Value batch, ArrayRef<int64_t> dims, int64_t matrix);
  void packPanel(Value matrix, Value panel, Value to, bool last);
  void packTurned(Value matrix, Value panel, Value to, bool last);
  void packBytes(Value matrix, Value panel, Value to, int64_t blocks);
  Value stepOfBytes(Value matrix, Value step, Value column, Value mask, int64_t count);
  void storeStep(Value step, Value to, Value index, int64_t block, int64_t blocks);
  void setApart();
  void copyRows(Value matrix, Value firstRow, Value lastRow);
  void emitPanels(Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd);
  void emitPanel(Value panel, Value rowBegin, Value rowEnd, bool last);
  void emitTiles(Value begin, Value end, int64_t rows, bool last);

  device::MatMulOp op;
  KernelBuilder &kb;
  ArrayRef<TileExtra> extraKinds;
  bool packed;
  TileKind kind;
  Type aElement, bElement, yElement;
  int64_t aBytes, yBytes; ///< bytes of an element
  bool widens;            ///< A is f16 or bf16, multiplied as f32
  TileWeights weights;
  int64_t chunk;          ///< bytes of K that AMX tiles multiply at a time; 0: vector instructions multiply
  int64_t steps;          ///< K steps
  bool inPlace;           ///< whole blocks of columns of an activation B are read in place
  bool flipped;           ///< A is copied as A + 128
  bool halves;            ///< i16 rows of A are copied as all low bytes followed by all high bytes
  bool apart = false;     ///< rows of A would share cache sets and are copied with another stride
  bool copied;            ///< the rows of A are copied to scratch
  int64_t rowsOffset = 0; ///< offset of these rows in scratch, behind a panel
  SmallVector<int64_t> batchDims, batchA, batchB;
  int64_t batch = 1, m, k, n;
  int64_t panelBlocks, columnBlocks, panels, lastBlocks;
  int64_t rowBytes, stepBytes; ///< strides of A between rows and between K steps
  std::unique_ptr<EvenSplit> rows;
  WorkSplit work;
  int64_t prefetchLines = 0;
  std::unique_ptr<TileFunctions> tiles;
  TileFunctions::Pointers base;
  Value partBegin;
  Value firstRow; ///< first row of the copy in scratch

  int64_t bBytes() const {
    bool plain = kind == TileKind::F32 && weights.stepBytes == kBlockBytes;
    return plain ? n * k * 4 : columnBlocks * weights.panels.bytesOfBlock();
  }
  /// Returns the rows of an AMX tile register. A smaller matmul must not read further rows. With halves, a tile has one
  /// window for the low and one for the high bytes.
  int64_t windowRows() const { return halves ? rows->length(0) : std::min(m, kWindowRows); }
  /// Returns true if register tiles read B from a panel in scratch.
  bool panelInScratch() const { return (!packed && !(inPlace && n % kBlock == 0)) || weights.copied; }
  /// Returns the first row of row tile |piece|.
  Value rowOf(Value piece) { return kb.add(kb.mul(piece, rows->size), kb.min(piece, kb.constant(rows->wide))); }
};

/// Returns true if AMX tiles compute a matmul of bytes whose B is an activation.
bool packsForTiles(device::MatMulOp op, const X86Target &target) {
  auto y = cast<RankedTensorType>(op.getY().getType());
  return target.amx && y.getDimSize(y.getRank() - 2) >= kFewestMatrixRows;
}

/// Returns the blocks of columns per tile if |op| reads its f32 activation B in place, which requires so few rows that
/// the registers hold all of them. Returns 0 if B is packed.
int64_t blocksInPlace(device::MatMulOp op, const X86Target &target) {
  constexpr int64_t kMostBlocks = 8;
  ArrayRef<int64_t> y = cast<RankedTensorType>(op.getY().getType()).getShape(), b = op.getWeightShape();
  int64_t columns = y.back(), rows = ShapedType::getNumElements(b.drop_back(2)) == 1
                                         ? ShapedType::getNumElements(y.drop_back())
                                         : y[y.size() - 2];
  bool reachable = columns < (int64_t(1) << 24); // 32-bit offsets reach from row to row
  if (op.getPacking() || op.getTransB() || !getElementTypeOrSelf(op.getB().getType()).isF32() ||
      tileKindOf(getElementTypeOrSelf(op.getA().getType())) != TileKind::F32 || columns < kBlock || !reachable) {
    return 0;
  }
  int64_t blocks = std::min(kMostBlocks, columns / kBlock);
  while (blocks > 0 && maxTileRows(target, blocks) < rows) {
    --blocks;
  }
  return blocks;
}

/// Returns the panels of a packed B, or those that each launch tile packs at run time: f32, or bytes if the chip can
/// multiply them with those of A, else 16-bit words.
Panels panelsOf(device::MatMulOp op, const X86Target &target) {
  if (PackingAttr packing = packingOf(op)) {
    return panelsOfMatMul(packing, op.getTransB());
  }
  ArrayRef<int64_t> shape = op.getWeightShape().take_back(2);
  int64_t columns = shape[op.getTransB() ? 0 : 1], depth = shape[op.getTransB() ? 1 : 0];
  int64_t blocks = std::min<int64_t>(ceilDiv(columns, kBlock), target.hasMasks() ? 2 : 1);
  if (int64_t few = blocksInPlace(op, target)) {
    blocks = few;
  }
  TileKind kind = *tileKindOf(getElementTypeOrSelf(op.getA().getType()));
  if (kind == TileKind::F32) {
    return panelsOfMatrix(PackedStep::f32, depth, columns, blocks);
  }
  bool tiles = packsForTiles(op, target), dots = tiles || (target.vnni && kind == TileKind::U8);
  Panels panels = panelsOfMatrix(dots ? PackedStep::i8x4 : PackedStep::i16x4, depth, columns, blocks);
  if (tiles) {
    KSplit chunks = chunksOfRow(panels.steps() * 4);
    panels.runs = {{chunks.count, chunks.chunk / 4}};
  }
  return panels;
}

MatMul::MatMul(device::MatMulOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
    : op(op), kb(kb), extraKinds(extras), packed(op.getPacking().has_value()),
      kind(*tileKindOf(getElementTypeOrSelf(op.getA().getType()), packingOf(op))),
      aElement(getElementTypeOrSelf(op.getA().getType())), bElement(getElementTypeOrSelf(op.getB().getType())),
      yElement(getElementTypeOrSelf(op.getY().getType())), weights(targetOf(kb), panelsOf(op, targetOf(kb))) {
  ArrayRef<int64_t> a = cast<RankedTensorType>(op.getA().getType()).getShape();
  ArrayRef<int64_t> b = op.getWeightShape();
  ArrayRef<int64_t> y = cast<RankedTensorType>(op.getY().getType()).getShape();
  m = y[y.size() - 2], n = y.back();
  k = a[a.size() - (op.getTransA() ? 2 : 1)];
  batchDims.assign(y.begin(), y.end() - 2);
  auto pad = [&](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> dims(y.size() - shape.size(), 1);
    llvm::append_range(dims, shape.drop_back(2));
    return dims;
  };
  batchA = pad(a), batchB = pad(b);
  // With one matrix B for all of A, the batches are further rows of one matmul.
  if (ShapedType::getNumElements(batchB) == 1 && !op.getTransA() &&
      ShapedType::getNumElements(batchA) == ShapedType::getNumElements(batchDims) &&
      llvm::none_of(extras, [](const TileExtra &extra) { return extra.kind == ExtraKind::Row || extra.perMatrix; })) {
    m *= ShapedType::getNumElements(batchDims);
    batchDims.clear(), batchA.clear(), batchB.clear();
  }
  batch = ShapedType::getNumElements(batchDims);
  aBytes = device::elementBytes(aElement), yBytes = device::elementBytes(yElement);
  widens = kind == TileKind::F32 && aBytes < 4;
  inPlace = blocksInPlace(op, targetOf(kb)) != 0;
  steps = weights.panels.steps();
  chunk = packed                                                     ? packingOf(op).getChunk()
          : kind != TileKind::F32 && packsForTiles(op, targetOf(kb)) ? weights.panels.runs.front().size * 4
                                                                     : 0;
  // For VNNI, flip signed bytes once if several panels read them.
  flipped = kind == TileKind::S8 && packed && flipsBytes(packingOf(op)) && n >= 64;
  halves = kind == TileKind::S16 && chunk;
  copied = flipped || widens || halves || (kind != TileKind::F32 && k * aBytes % 4 != 0) ||
           (chunk && k * aBytes != steps * 4);
  stepBytes = op.getTransA() ? m * 4 : 4;
  // Row strides of both halves would often be whole pages, so that all rows share the same L1 sets.
  rowBytes = op.getTransA() ? 4 : halves ? steps * 8 + kBlockBytes : steps * 4;
  columnBlocks = weights.panels.blocks();
  panelBlocks = weights.panels.panelBlocks;
  panels = ceilDiv(columnBlocks, panelBlocks);
  lastBlocks = columnBlocks - (panels - 1) * panelBlocks;
  int64_t mostRows = packed ? packingOf(op).getRows() : chunk ? kAmxTileRows : maxTileRows(targetOf(kb), panelBlocks);
  rows = std::make_unique<EvenSplit>(m, mostRows);
  setApart();
}

/// Decides whether to copy A to a buffer with a padded row stride. If the stride of A is a multiple of the page size,
/// all rows of a tile map to the same L1 sets, which leaves no room for B. The copy pays off if enough columns read it.
void MatMul::setApart() {
  constexpr int64_t kPage = 4096, kFewRows = 5, kFewColumns = 192;
  apart = !op.getTransA() && !chunk && rowBytes % kPage == 0 && rows->size > kFewRows && n >= kFewColumns;
  if (apart) {
    copied = true, rowBytes += kBlockBytes;
  }
}

/// Returns the element offset of the operand's matrix for batch |index| of the result.
Value MatMul::batchOffset(Value index, ArrayRef<int64_t> dims, int64_t matrix) {
  Value offset = kb.constant(0);
  int64_t stride = matrix;
  for (int64_t d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
    if (dims[d] != 1) {
      Value position = d == 0 ? index : kb.rem(index, batchDims[d]);
      offset = kb.add(offset, kb.mul(position, stride));
      stride *= dims[d];
    }
    index = kb.div(index, batchDims[d]);
  }
  return offset;
}

/// Loads elements 4 |step| ... 4 |step| + 3 of K of the 16 columns from |column| on, as i32; only |count| of them
/// exist.
Value MatMul::stepOfBytes(Value matrix, Value step, Value column, Value mask, int64_t count) {
  auto words = VectorType::get({kBlock}, kb.b.getI32Type());
  if (op.getTransB()) {
    SmallVector<int64_t> offsets;
    for (int64_t lane = 0; lane < kBlock; ++lane) {
      offsets.push_back(lane * k / 4);
    }
    auto offsetType = VectorType::get({kBlock}, kb.b.getI64Type());
    Value apart = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(offsetType, ArrayRef<int64_t>(offsets)));
    return kb.gather(words, matrix, kb.add(kb.mul(column, k / 4), step), apart, mask);
  }
  auto bytes = VectorType::get({kBlock}, kb.b.getI8Type());
  SmallVector<Value> rows;
  for (int64_t i = 0; i < 4; ++i) {
    Value at = kb.add(kb.mul(kb.add(kb.mul(step, 4), i), n), column);
    rows.push_back(i < count ? kb.maskedLoad(bytes, matrix, at, mask) : kb.zero(bytes));
  }
  Value all = interleave(kb, interleave(kb, rows[0], rows[2]), interleave(kb, rows[1], rows[3]));
  return vector::BitCastOp::create(kb.b, words, all);
}

/// Stores K step |index| of |block|: as bytes, or as words with the even bytes before the odd ones.
void MatMul::storeStep(Value step, Value to, Value index, int64_t block, int64_t blocks) {
  Value at = kb.add(kb.mul(index, blocks * weights.tileStepBytes), block * weights.tileStepBytes);
  Value place = byteOffset(kb, to, at);
  if (weights.tileStep == PackedStep::i8x4) {
    return kb.store(step, place, kb.constant(0));
  }
  auto words = VectorType::get({2 * kBlock}, kb.b.getI16Type());
  Value pairs = vector::BitCastOp::create(kb.b, words, step);
  Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words, int16_t(8)));
  Value even = arith::ShRSIOp::create(kb.b, arith::ShLIOp::create(kb.b, pairs, eight), eight);
  kb.store(even, place, kb.constant(0));
  kb.store(arith::ShRSIOp::create(kb.b, pairs, eight), byteOffset(kb, place, kBlockBytes), kb.constant(0));
}

/// Packs a panel of bytes, see packPanel().
void MatMul::packBytes(Value matrix, Value panel, Value to, int64_t blocks) {
  auto words = VectorType::get({kBlock}, kb.b.getI32Type());
  for (int64_t block = 0; block < blocks; ++block) {
    Value column = kb.add(kb.mul(panel, panelBlocks * kBlock), block * kBlock);
    Value mask = kb.maskBelow(kBlock, kb.sub(kb.constant(n), column));
    kb.forLoop(0, k / 4, 1,
               [&](Value step) { storeStep(stepOfBytes(matrix, step, column, mask, 4), to, step, block, blocks); });
    if (int64_t rest = k % 4) {
      Value last = kb.constant(k / 4);
      storeStep(stepOfBytes(matrix, last, column, mask, rest), to, last, block, blocks);
    }
    kb.forLoop(ceilDiv(k, 4), steps, 1, [&](Value step) { storeStep(kb.zero(words), to, step, block, blocks); });
  }
}

/// Packs a panel of a transposed f32 B by transposing its rows of K in registers, see packPanel().
void MatMul::packTurned(Value matrix, Value panel, Value to, bool last) {
  int64_t blocks = last ? lastBlocks : panelBlocks;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t columns = last ? std::min(kBlock, n - ((panels - 1) * panelBlocks + block) * kBlock) : kBlock;
    Value column = kb.add(kb.mul(panel, panelBlocks * kBlock), block * kBlock);
    kernels::LoopNest nest{{{k, {1, blocks * kBlock}}, {columns, {k, 1}}}, {0, 0}, columns < kBlock ? kBlock : 0};
    kernels::TiledMove move = kernels::planMove(kb, nest, byteOffset(kb, matrix, kb.mul(column, k * 4)),
                                                byteOffset(kb, to, block * kBlockBytes), kb.b.getF32Type());
    kb.forLoop(0, move.tiles, 1, move.body);
  }
}

/// Packs the blocks of |panel| of the activation B at |matrix| to |to|; columns beyond N are zero.
void MatMul::packPanel(Value matrix, Value panel, Value to, bool last) {
  constexpr int64_t kFewSteps = 4; // too few to transpose in registers
  int64_t blocks = last ? lastBlocks : panelBlocks;
  if (kind != TileKind::F32) {
    return packBytes(matrix, panel, to, blocks);
  }
  if (op.getTransB() && bElement.isF32() && k >= kFewSteps) {
    return packTurned(matrix, panel, to, last);
  }
  int64_t lanes = targetOf(kb).lanes(32);
  for (int64_t part = 0; part < blocks * vectorsPerBlock(targetOf(kb)); ++part) {
    Value column = kb.add(kb.mul(panel, panelBlocks * kBlock), part * lanes);
    Value mask = kb.maskBelow(lanes, kb.sub(kb.constant(n), column));
    if (!op.getTransB()) {
      kb.forLoop(0, k, 1, [&](Value step) {
        Value value = kb.loadElements(bElement, lanes, matrix, kb.add(kb.mul(step, n), column), mask);
        kb.store(value, to, kb.add(kb.mul(step, blocks * kBlock), part * lanes));
      });
      continue;
    }
    SmallVector<int64_t> offsets;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      offsets.push_back(lane * k);
    }
    auto offsetType = VectorType::get({lanes}, kb.b.getI64Type());
    Value lanesApart = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(offsetType, ArrayRef<int64_t>(offsets)));
    kb.forLoop(0, k, 1, [&](Value step) {
      Value value = kb.gatherElements(bElement, lanes, matrix, kb.add(kb.mul(column, k), step), lanesApart, mask);
      kb.store(value, to, kb.add(kb.mul(step, blocks * kBlock), part * lanes));
    });
  }
}

void MatMul::emit() {
  int64_t flops = 2 * m * n * k / productsPerStep(weights.panels.step, chunk);
  int64_t readOfB = bBytes() * (packed || inPlace ? 1 : 3);
  work = apart ? splitCopiedWork(flops, rows->pieces, panels, m * rowBytes, readOfB, batch)
               : splitWork(flops, rows->pieces, panels, m * k * (widens ? 4 : aBytes), readOfB, batch);
  int64_t panelBytes = steps * panelBlocks * weights.tileStepBytes;
  int64_t tilesPerPanel = ceilDiv(rows->pieces, work.rowParts);
  if (packed && !panelInScratch() && bBytes() > 256 * 1024) {
    int64_t lines = weights.panels.bytesOfBlock() / kBlockBytes;
    prefetchLines = std::min<int64_t>(ceilDiv(lines * panelBlocks, tilesPerPanel), 2 * lines);
  }
  if (panelInScratch()) {
    rowsOffset = panelBytes;
    kb.setScratchBytes(panelBytes);
  }
  if (copied) {
    kb.setScratchBytes(rowsOffset + ceilDiv(rows->pieces, work.rowParts) * (rows->size + 1) * rowBytes);
  }
  auto bias = !op.getBias()                      ? TileFunctions::Bias::None
              : device::isOrderedContraction(op) ? TileFunctions::Bias::Last
                                                 : TileFunctions::Bias::First;
  tiles = std::make_unique<TileFunctions>(kb, op.getEpilogue(), extraKinds, bias);
  unsigned firstExtra = op.getBias() ? 3 : 2;
  kb.forTiles(batch * work.rowParts * work.panelParts, [&](Value tile) {
    if (chunk) {
      emitTileConfig(kb, windowRows(), chunk);
    }
    Value rowPart = kb.rem(tile, work.rowParts), rest = kb.div(tile, work.rowParts);
    Value panelPart = kb.rem(rest, work.panelParts), index = kb.div(rest, work.panelParts);
    Value rowBegin = kb.div(kb.mul(rowPart, rows->pieces), work.rowParts);
    Value rowEnd = kb.div(kb.mul(kb.add(rowPart, 1), rows->pieces), work.rowParts);
    Value panelBegin = kb.div(kb.mul(panelPart, panels), work.panelParts);
    Value panelEnd = kb.div(kb.mul(kb.add(panelPart, 1), panels), work.panelParts);
    base = {};
    partBegin = rowBegin;
    base.a = byteOffset(kb, kb.operand(0), kb.mul(batchOffset(index, batchA, m * k), aBytes));
    base.b = byteOffset(kb, kb.operand(1), kb.mul(batchOffset(index, batchB, n * k), device::elementBytes(bElement)));
    if (copied) {
      firstRow = rowOf(rowBegin);
      copyRows(base.a, firstRow, rowOf(rowEnd));
      base.a = byteOffset(kb, kb.scratch(), rowsOffset);
    }
    base.c = byteOffset(kb, kb.result(), kb.mul(index, m * n * yBytes));
    if (op.getBias()) {
      base.bias = kb.operand(2);
    }
    for (auto [position, extra] : llvm::enumerate(extraKinds)) {
      Value pointer = kb.operand(firstExtra + position);
      int64_t matrix = extra.kind == ExtraKind::Full  ? m * n
                       : extra.kind == ExtraKind::Row ? m
                       : extra.perMatrix              ? n
                                                      : 0;
      base.extras.push_back(byteOffset(kb, pointer, kb.mul(index, matrix * extra.elementBytes)));
    }
    emitPanels(panelBegin, panelEnd, rowBegin, rowEnd);
    if (chunk) {
      emitTileRelease(kb);
    }
  });
}

/// Copies the rows [first, last) of A to scratch with a stride of |rowBytes|.
void MatMul::copyRows(Value matrix, Value first, Value last) {
  kb.forLoop(first, last, 1, [&](Value row) {
    Value to = byteOffset(kb, byteOffset(kb, kb.scratch(), rowsOffset), kb.mul(kb.sub(row, first), rowBytes)),
          from = byteOffset(kb, matrix, kb.mul(row, k * aBytes));
    if (widens) {
      widenFloats(kb, aElement, from, to, kb.constant(k));
    } else if (halves) {
      splitWords(kb, from, to, k, steps * 4);
    } else if (flipped) {
      flipBytes(kb, from, to, kb.constant(k * aBytes));
    } else {
      LLVM::MemcpyOp::create(kb.b, to, from, kb.constant(k * aBytes), /*isVolatile=*/false);
      if (kind == TileKind::BF16 && steps * 4 != k * aBytes) { // garbage times a zero weight may be NaN
        int64_t behind = steps * 4 - k * aBytes;
        kb.store(kb.zero(VectorType::get({behind}, kb.b.getI8Type())), to, kb.constant(k * aBytes), 1);
      }
    }
  });
}

/// Emits the panels [panelBegin, panelEnd) of the row tiles [rowBegin, rowEnd).
void MatMul::emitPanels(Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd) {
  bool special = lastBlocks != panelBlocks || n % kBlock;
  Value fullEnd = special ? kb.min(panelEnd, kb.constant(panels - 1)) : panelEnd;
  if (!special || panels > 1) {
    kb.forLoop(panelBegin, fullEnd, 1, [&](Value panel) { emitPanel(panel, rowBegin, rowEnd, false); });
  }
  if (special) {
    kb.forLoop(kb.max(panelBegin, kb.constant(panels - 1)), panelEnd, 1,
               [&](Value panel) { emitPanel(panel, rowBegin, rowEnd, true); });
  }
}

void MatMul::emitPanel(Value panel, Value rowBegin, Value rowEnd, bool last) {
  TileFunctions::Pointers matrix = base;
  int64_t panelBytes = panelBlocks * weights.panels.bytesOfBlock();
  if (weights.copied) {
    weights.copyPanel(kb, byteOffset(kb, base.b, kb.mul(panel, panelBytes)), kb.scratch(),
                      last ? lastBlocks : panelBlocks);
    base.b = kb.scratch();
  } else if (packed) {
    base.b = byteOffset(kb, base.b, kb.mul(panel, panelBytes));
  } else if (inPlace && !(last && n % kBlock)) {
    base.b = byteOffset(kb, base.b, kb.mul(panel, panelBlocks * kBlockBytes));
  } else {
    packPanel(base.b, panel, kb.scratch(), last);
    base.b = kb.scratch();
  }
  auto columns = [&](int64_t bytes) { return kb.mul(panel, panelBlocks * kBlock * bytes); };
  base.c = byteOffset(kb, base.c, columns(yBytes));
  if (base.bias) {
    base.bias = byteOffset(kb, base.bias, columns(4));
  }
  for (auto [extra, pointer] : llvm::zip_equal(extraKinds, base.extras)) {
    if (extra.kind == ExtraKind::Full || extra.kind == ExtraKind::Column) {
      pointer = byteOffset(kb, pointer, columns(extra.elementBytes));
    }
  }
  base.prefetch = prefetchLines ? byteOffset(kb, base.b, panelBytes) : Value();
  Value wide = kb.constant(rows->wide);
  if (rows->wide) {
    emitTiles(rowBegin, kb.min(rowEnd, wide), rows->size + 1, last);
  }
  if (rows->wide < rows->pieces) {
    emitTiles(kb.max(rowBegin, wide), rowEnd, rows->size, last);
  }
  base = matrix;
}

/// Emits the row tiles [begin, end), each of |count| rows.
void MatMul::emitTiles(Value begin, Value end, int64_t count, bool last) {
  TileShape shape;
  shape.kind = flipped ? TileKind::U8 : kind;
  shape.blocks = last ? lastBlocks : panelBlocks;
  weights.describe(shape);
  bool ownRows = inPlace && !(last && n % kBlock);
  if (ownRows) {
    shape.panelRowBytes = n * 4;
  }
  shape.stepBytes = stepBytes;
  shape.groupBytes = kBlock * stepBytes;
  if (chunk) {
    shape.groups = {{1, steps}};
    shape.chunk = chunk, shape.rowStride = rowBytes, shape.windowRows = windowRows();
    shape.highAt = halves ? steps * 4 : 0;
  }
  shape.prefetchLines = prefetchLines;
  shape.aheadBytes = streamAhead(shape.step, packed ? bBytes() : 0);
  if (ownRows && bBytes() >= 1 << 20) { // hardware does not prefetch a few lines per row
    constexpr int64_t kRowsAhead = 4;
    shape.aheadBytes = kRowsAhead * shape.panelRowBytes, shape.aheadLines = shape.blocks;
  }
  TileResult result;
  result.blocked = false;
  result.elementBytes = yBytes;
  result.element = yElement;
  result.tailLanes = last && n % kBlock ? n % kBlock : kBlock;
  for (int64_t row = 0; row < count; ++row) {
    shape.rows.push_back(row * rowBytes);
    result.rows.push_back(row * n);
  }
  bool narrow = count == rows->size;
  kb.forLoop(begin, end, 1, [&](Value tile) {
    Value row = narrow ? kb.add(kb.mul(tile, rows->size), rows->wide) : kb.mul(tile, count);
    TileFunctions::Pointers at = base;
    at.a = byteOffset(kb, base.a, kb.mul(copied ? kb.sub(row, firstRow) : row, rowBytes));
    at.c = byteOffset(kb, base.c, kb.mul(row, n * yBytes));
    for (auto [extra, pointer] : llvm::zip_equal(extraKinds, at.extras)) {
      int64_t elements = extra.kind == ExtraKind::Full ? n : extra.kind == ExtraKind::Row ? extra.rowStride : 0;
      pointer = byteOffset(kb, pointer, kb.mul(row, elements * extra.elementBytes));
    }
    if (prefetchLines) {
      at.prefetch = byteOffset(kb, base.prefetch, kb.mul(kb.sub(tile, partBegin), prefetchLines * 64));
    }
    tiles->call(shape, result, at);
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
