//===- ConvLoops.cpp - Loops of a convolution over register tiles ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/ConvLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::x86 {

ConvLoops::ConvLoops(KernelBuilder &kb, device::ConvOp op, const ConvGeometry &g, ArrayRef<TileExtra> extras,
                     ArrayRef<int32_t> offsets, CompleteShape complete)
    : kb(kb), hasBias(op.getBias() != nullptr), g(g), extras(extras), complete(std::move(complete)),
      functions(kb, op.getEpilogue(), extras, hasBias ? TileFunctions::Bias::First : TileFunctions::Bias::None,
                offsets) {}

ConvPart ConvLoops::partOf(Value tile) const {
  const WorkSplit &work = g.work;
  ConvPart part;
  Value rowPart = kb.rem(tile, g.rowParts()), rest = kb.div(tile, g.rowParts());
  Value panelPart = kb.rem(rest, work.panelParts);
  part.imageGroup = kb.div(rest, work.panelParts);
  part.group = kb.rem(part.imageGroup, g.s.groups), part.image = kb.div(part.imageGroup, g.s.groups);
  Dim rowSteps = g.tiling.rowSteps;
  if (rowSteps.isKnown()) {
    part.rowBegin = kb.div(kb.mul(rowPart, rowSteps), work.rowParts);
    part.rowEnd = kb.div(kb.mul(kb.add(rowPart, 1), rowSteps), work.rowParts);
  } else {
    part.rowBegin = kb.mul(rowPart, g.rowStepsOfPart());
    part.rowEnd = kb.min(kb.add(part.rowBegin, g.rowStepsOfPart()), kb.index(rowSteps));
  }
  part.panelBegin = kb.div(kb.mul(panelPart, g.panels.count), work.panelParts);
  part.panelEnd = kb.div(kb.mul(kb.add(panelPart, 1), g.panels.count), work.panelParts);
  return part;
}

void ConvLoops::emitInPlace(const ConvPart &part) {
  Value origin = kb.constant(0);
  Dim around = g.s.padTop * g.input.pitch + g.s.padLeft * g.input.positionBytes;
  Value image = kb.mul(part.imageGroup, g.input.planes * g.input.plane);
  Value a = byteOffset(kb, kb.operand(0), kb.sub(image, kb.index(around)));
  emitPanels(part, {part.rowBegin, part.rowEnd, origin}, pointersOf(part, a));
}

void ConvLoops::emitCopied(const ConvPart &part, function_ref<void(Value)> copy) {
  Value origin = kb.constant(0);
  if (!g.tiling.isOneRow()) {
    origin = part.rowBegin;
  }
  copy(kb.sub(kb.mul(origin, g.tiling.tileH * g.s.strideH), kb.constant(g.s.padTop)));
  emitPanels(part, {part.rowBegin, part.rowEnd, origin}, pointersOf(part, kb.scratch()));
}

void ConvLoops::emitFlat(const ConvPart &part, int64_t rowSteps, function_ref<void(Value, Value)> copy) {
  Value origin = kb.constant(0);
  TileFunctions::Pointers base = pointersOf(part, Value());
  kb.forLoop(part.rowBegin, part.rowEnd, rowSteps, [&](Value begin) {
    Value end = kb.min(kb.add(begin, rowSteps), part.rowEnd), first = positionOf(begin);
    copy(first, positionOf(end));
    base.a = byteOffset(kb, kb.scratch(), kb.mul(first, -g.input.positionBytes));
    emitPanels(part, {begin, end, origin}, base);
  });
}

/// Returns the first position of a row step of the flat row.
Value ConvLoops::positionOf(Value rowStep) const {
  const ConvTiling &tiling = g.tiling;
  if (!tiling.width.isKnown()) {
    return kb.min(kb.mul(rowStep, tiling.mostPositions), kb.index(tiling.width));
  }
  return kb.add(kb.mul(rowStep, tiling.columns.size), kb.min(rowStep, kb.constant(tiling.columns.wide)));
}

/// Returns the pointers to the operands of the group and image of |part|; A is at |a|.
TileFunctions::Pointers ConvLoops::pointersOf(const ConvPart &part, Value a) const {
  Dim outImage = g.s.ocBlocks() * g.s.oh * g.s.ow * kBlock;
  unsigned firstExtra = hasBias ? 3 : 2;
  TileFunctions::Pointers base;
  base.a = a;
  base.b = byteOffset(kb, kb.operand(1), kb.mul(part.group, g.s.ocBlocks() * g.weights.panels.bytesOfBlock()));
  base.c = byteOffset(kb, kb.result(), kb.mul(part.imageGroup, outImage * g.s.yBytes));
  if (hasBias) {
    base.bias = byteOffset(kb, kb.operand(2), kb.mul(part.group, g.s.groupOc() * 4));
  }
  for (auto [index, extra] : llvm::enumerate(extras)) {
    Value pointer = kb.operand(firstExtra + index);
    bool full = extra.kind == ExtraKind::Full, column = extra.kind == ExtraKind::Column;
    base.extras.push_back(full     ? byteOffset(kb, pointer, kb.mul(part.imageGroup, outImage * extra.elementBytes))
                          : column ? byteOffset(kb, pointer, kb.mul(part.group, g.s.groupOc() * extra.elementBytes))
                                   : pointer);
  }
  return base;
}

/// Emits all panels of |rows|.
void ConvLoops::emitPanels(const ConvPart &part, const Rows &rows, const TileFunctions::Pointers &base) {
  // The last panel may be narrower or end inside a block, so it has separate tile functions.
  bool special = g.panels.lastBlocks != g.panels.blocks || g.s.groupOc() % kBlock;
  Value fullEnd = special ? kb.min(part.panelEnd, kb.constant(g.panels.count - 1)) : part.panelEnd;
  if (!special || g.panels.count > 1) {
    kb.forLoop(part.panelBegin, fullEnd, 1, [&](Value panel) { emitPanel({part, rows, base, false}, panel); });
  }
  if (special) {
    kb.forLoop(kb.max(part.panelBegin, kb.constant(g.panels.count - 1)), part.panelEnd, 1,
               [&](Value panel) { emitPanel({part, rows, base, true}, panel); });
  }
}

/// Moves the pointers of a group of an image to its |panel|. Widens the panel first if register tiles cannot.
void ConvLoops::movePointers(TileFunctions::Pointers &base, Value panel, bool last) {
  int64_t blocks = g.panels.blocks;
  Dim outPlane = g.s.oh * g.s.ow * kBlock;
  int64_t panelBytes = blocks * g.weights.panels.bytesOfBlock();
  base.b = byteOffset(kb, base.b, kb.mul(panel, panelBytes));
  if (g.weights.copied) {
    Value widened = byteOffset(kb, kb.scratch(), g.input.copyBytes);
    g.weights.copyPanel(kb, base.b, widened, last ? g.panels.lastBlocks : blocks);
    base.b = widened;
  }
  base.c = byteOffset(kb, base.c, kb.mul(panel, blocks * outPlane * g.s.yBytes));
  if (base.bias) {
    base.bias = byteOffset(kb, base.bias, kb.mul(panel, blocks * kBlockBytes));
  }
  for (auto [extra, pointer] : llvm::zip_equal(extras, base.extras)) {
    if (extra.kind == ExtraKind::Full) {
      pointer = byteOffset(kb, pointer, kb.mul(panel, blocks * outPlane * extra.elementBytes));
    } else if (extra.kind == ExtraKind::Column) {
      pointer = byteOffset(kb, pointer, kb.mul(panel, blocks * kBlock * extra.elementBytes));
    }
  }
  base.prefetch = g.prefetchLines ? byteOffset(kb, base.b, panelBytes) : Value();
}

void ConvLoops::emitPanel(Panel panel, Value index) {
  movePointers(panel.base, index, panel.last);
  Value begin = panel.rows.begin, end = panel.rows.end;
  const ConvTiling &tiling = g.tiling;
  if (tiling.isOneRow()) {
    Tiles row{kb.constant(0), 1, tiling.columns, 0, 0, {}};
    if (tiling.width.isKnown()) {
      return emitRow(panel, row, begin, end);
    }
    Value first = positionOf(begin);
    return emitOpenRow(panel, row, first, kb.sub(positionOf(end), first));
  }
  if (!tiling.height.isKnown()) {
    return emitRows(panel, begin, end, 1);
  }
  int64_t height = tiling.height.value(), tileH = tiling.tileH, fullSteps = height / tileH, rest = height % tileH;
  Value fullEnd = rest ? kb.min(end, kb.constant(fullSteps)) : end;
  emitRows(panel, begin, fullEnd, tileH);
  if (rest) {
    emitRows(panel, kb.max(begin, kb.constant(fullSteps)), end, rest);
  }
}

/// Emits the row steps [begin, end), each of |rows| output rows.
void ConvLoops::emitRows(const Panel &panel, Value begin, Value end, int64_t rows) {
  const BorderSegments &segments = g.segments;
  for (auto [row, rowSegment] : llvm::enumerate(segments.rows)) {
    Value from = segments.skip ? kb.max(begin, kb.constant(rowSegment.begin)) : begin;
    Value to = segments.skip ? kb.min(end, kb.constant(rowSegment.end)) : end;
    kb.forLoop(from, to, 1, [&, row = row](Value step) {
      if (!g.tiling.width.isKnown()) {
        return emitOpenRow(panel, {step, rows, g.tiling.columns, 0, 0, {}}, kb.constant(0), kb.index(g.tiling.width));
      }
      int64_t before = 0;
      for (auto [column, segment] : llvm::enumerate(segments.columns)) {
        EvenSplit split(segment.length(), g.packing.getRows());
        emitRow(panel, {step, rows, split, segment.begin, before, {row, column}}, kb.constant(0),
                kb.constant(split.pieces));
        before += split.pieces;
      }
    });
  }
}

/// Emits the register tiles [begin, end) of |tiles|.
void ConvLoops::emitRow(const Panel &panel, const Tiles &tiles, Value begin, Value end) {
  const EvenSplit &split = tiles.split;
  Value wide = kb.constant(split.wide);
  if (split.wide) {
    emitTiles(panel, tiles, begin, kb.min(end, wide), split.size + 1);
  }
  if (split.wide < split.pieces) {
    emitTiles(panel, tiles, kb.max(begin, wide), end, split.size);
  }
}

/// Emits the register tiles of |positions| columns of |tiles| from column |first| on, both known at run time only.
void ConvLoops::emitOpenRow(const Panel &panel, const Tiles &tiles, Value first, Value positions) {
  forOpenTiles(kb, first, positions, g.tiling.mostPositions, [&](Value begin, Value count, int64_t width) {
    emitTiles(panel, tiles, kb.constant(0), count, width,
              [&](Value tile) { return kb.add(begin, kb.mul(tile, width)); });
  });
}

/// Returns where a register tile of |rows| x |width| positions stores its results.
TileResult ConvLoops::resultOf(int64_t rows, int64_t width, bool last) const {
  TileResult result;
  Dim blockStride = g.s.oh * g.s.ow * kBlock;
  result.openBlocks = !blockStride.isKnown();
  result.blockStride = result.openBlocks ? 0 : blockStride.value();
  result.elementBytes = g.s.yBytes;
  result.element = g.s.yElement;
  result.tailLanes = last && g.s.groupOc() % kBlock ? g.s.groupOc() % kBlock : kBlock;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      result.rows.push_back(((y ? y * g.tiling.width.value() : 0) + x) * kBlock);
    }
  }
  return result;
}

/// Emits the register tiles [begin, end) of |tiles|, all |width| positions wide.
void ConvLoops::emitTiles(const Panel &panel, const Tiles &tiles, Value begin, Value end, int64_t width) {
  bool narrow = width == tiles.split.size;
  emitTiles(panel, tiles, begin, end, width, [&](Value tile) {
    Value within = narrow ? kb.add(kb.mul(tile, width), tiles.split.wide) : kb.mul(tile, width);
    return kb.add(within, tiles.first);
  });
}

void ConvLoops::emitTiles(const Panel &panel, const Tiles &tiles, Value begin, Value end, int64_t width,
                          function_ref<Value(Value)> columnOf) {
  const ConvTiling &tiling = g.tiling;
  const TileFunctions::Pointers &base = panel.base;
  Value a =
      byteOffset(kb, base.a, kb.mul(kb.sub(tiles.step, panel.rows.origin), tiling.tileH * g.s.strideH * g.input.pitch));
  // The offset of the row in a channel block, in elements.
  Value c = kb.mul(tiles.step, tiling.tileH * tiling.width * kBlock);
  TileShape shape = g.tileShape(tiles.rows, width, panel.last ? g.panels.lastBlocks : g.panels.blocks);
  complete(shape, tiles.segment);
  TileResult result = resultOf(tiles.rows, width, panel.last);
  kb.forLoop(begin, end, 1, [&](Value tile) {
    Value column = columnOf(tile);
    TileFunctions::Pointers at = base;
    at.a = byteOffset(kb, a, kb.mul(column, tiling.stepW * g.input.positionBytes));
    Value element = kb.add(c, kb.mul(column, kBlock));
    at.c = byteOffset(kb, base.c, kb.mul(element, g.s.yBytes));
    for (auto [extra, pointer] : llvm::zip_equal(extras, at.extras)) {
      if (extra.kind == ExtraKind::Full) {
        pointer = byteOffset(kb, pointer, kb.mul(element, extra.elementBytes));
      }
    }
    if (result.openBlocks) {
      at.blockStride = kb.index(g.s.oh * g.s.ow * kBlock);
    }
    if (shape.openGroups) {
      at.groupStride = kb.index(g.input.plane);
    }
    if (g.prefetchLines) {
      // Each tile of the panel prefetches its share of the next panel.
      Value partBegin = panel.part.rowBegin, row = kb.mul(kb.sub(tiles.step, partBegin), g.tilesPerRow());
      Value index = tiling.isOneRow() ? kb.sub(tile, partBegin) : kb.add(kb.add(row, tile), tiles.before);
      at.prefetch = byteOffset(kb, base.prefetch, kb.mul(index, g.prefetchLines * 64));
    }
    functions.call(shape, result, at);
  });
}

//===----------------------------------------------------------------------===//
// Copies of the input
//===----------------------------------------------------------------------===//

void fillBytes(KernelBuilder &kb, Value to, Dim bytes, int8_t value, int64_t at) {
  bytes = max(bytes, 0);
  if (!bytes.is(0)) {
    Value fill = LLVM::ConstantOp::create(kb.b, kb.b.getI8Type(), kb.b.getI8IntegerAttr(value));
    LLVM::MemsetOp::create(kb.b, byteOffset(kb, to, at), fill, kb.index(bytes), /*isVolatile=*/false);
  }
}

void copyPaddedRows(KernelBuilder &kb, const ConvGeometry &g, const ConvPart &part, Value firstRow,
                    function_ref<void(Value, Value, Value)> copyPositions, function_ref<void(Value, Dim)> fill) {
  const ConvInput &input = g.input;
  const ConvShape &s = g.s;
  int64_t rowsIn = input.plane.value() / input.pitch.value(), sourceBytes = g.sourceBytes();
  Dim width = input.positions, inside = max(0, min(s.w, width - s.padLeft)), right = width - s.padLeft - inside;
  Value source =
      byteOffset(kb, kb.operand(0), kb.mul(kb.add(kb.mul(part.image, s.groups), part.group), g.sourceGroup()));
  kb.forLoop(0, input.planes, 1, [&](Value plane) {
    Value from = byteOffset(kb, source, kb.mul(plane, g.sourcePlane()));
    Value to = byteOffset(kb, kb.scratch(), kb.mul(plane, input.plane));
    // Rows above, inside and below the image.
    Value rows = kb.constant(rowsIn);
    if (!g.tiling.rowSteps.isKnown() && !g.tiling.isOneRow()) { // the last part has fewer rows
      Value rest = kb.sub(kb.constant(g.rowStepsOfPart()), kb.sub(part.rowEnd, part.rowBegin));
      rows = kb.sub(rows, kb.mul(rest, s.strideH));
    }
    Value top = kb.min(rows, kb.max(kb.constant(0), kb.sub(kb.constant(0), firstRow)));
    Value bottom = kb.max(top, kb.min(rows, kb.sub(kb.index(s.h), firstRow)));
    auto fillRows = [&](Value begin, Value end) {
      kb.forLoop(begin, end, 1,
                 [&](Value row) { fill(byteOffset(kb, to, kb.mul(row, input.pitch)), width * input.positionBytes); });
    };
    if (!s.padded() && width.isKnown() && s.w.is(width.value())) {
      // Whole rows are contiguous in both places.
      copyPositions(byteOffset(kb, from, kb.mul(firstRow, s.w * sourceBytes)), to, kb.mul(bottom, s.w));
      return;
    }
    fillRows(kb.constant(0), top);
    kb.forLoop(top, bottom, 1, [&](Value row) {
      Value target = byteOffset(kb, to, kb.mul(row, input.pitch));
      fill(target, min(s.padLeft, width) * input.positionBytes);
      if (!inside.is(0)) {
        copyPositions(byteOffset(kb, from, kb.mul(kb.add(firstRow, row), s.w * sourceBytes)),
                      byteOffset(kb, target, s.padLeft * input.positionBytes), kb.index(inside));
      }
      fill(byteOffset(kb, target, (s.padLeft + inside) * input.positionBytes), right * input.positionBytes);
    });
    fillRows(bottom, rows);
  });
}

} // namespace tessera::x86
