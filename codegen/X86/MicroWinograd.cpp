//===- MicroWinograd.cpp - Winograd convolution F(m x m, 3 x 3) -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each launch tile takes some output tiles through three steps in its scratch, which fits L2: the input transform to V
// [point][C / 16][tiles][16], one matmul per point to P [point][OC / 16][tiles][16], and the output transform with bias
// and epilogue. A point is one of the (m + 2)^2 transformed positions. Packed weights are already transformed:
// [point][panel][C][16 panelBlocks].
//===----------------------------------------------------------------------===//
#include "codegen/X86/WinogradPlan.h"
#include "codegen/X86/WinogradTransforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// The work of a launch tile.
struct Part {
  Value image, panelBegin, panelEnd;
  Value firstRow, rows; ///< rows of the grid, the first and the last possibly in part
  Value begin, count;   ///< output tiles of the image, in row-major order
};

/// The output tiles of a launch tile in one row of the grid.
struct GridRow {
  Value row;         ///< index in the image
  Value slot;        ///< index in the launch tile of column 0, which may belong to the launch tile before
  Value columnBegin; ///< first column
  Value columnEnd;   ///< end of the columns
};

/// An output tile of a block of channels.
struct OutputTile {
  Value image, block, row, column;     ///< row and column of the grid
  std::optional<int64_t> validColumns; ///< columns that belong to the result; nullopt: a check at run time decides
  int64_t channels;                    ///< channels of the block that exist

  // Addresses of the first position.
  Value to{}, bias{};
  SmallVector<Value> extras{};
};

/// The columns of a window of the input that are inside the image.
enum class Inside {
  all,     ///< all columns
  known,   ///< as follows from the index of the window's first column, a constant
  checked, ///< a check at run time decides
};

class Winograd {
public:
  Winograd(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), p(op, targetOf(kb)), s(p.s), m(p.m), window(p.window), extraKinds(extras),
        lanes(targetOf(kb).lanes(32)), vector(VectorType::get({lanes}, kb.b.getF32Type())),
        tiles(kb, plain, {}, Bias::None) {}
  void emit();

private:
  using Bias = TileFunctions::Bias;
  Part partOf(Value tile);
  void forGridRows(const Part &part, function_ref<void(const GridRow &)> body);
  void transformInput(const Part &part);
  void transformInputRow(Value plane, const GridRow &row, Value slot);
  void transformInputTile(Value plane, Value firstRow, Value column, Inside inside, int64_t knownColumn, Value to);
  Value positionOrZeros(Value row, Value column, int64_t x, Inside inside, int64_t knownColumn);
  void multiply(const Part &part);
  void multiplyPanels(const Part &part, std::optional<int64_t> count);
  void multiplyPanel(Value point, Value panel, Value slot, bool last, Value count, std::optional<int64_t> knownCount);
  void transformOutput(const Part &part);
  void placeOutputTile(OutputTile &tile);
  void transformOutputTile(Value from, OutputTile tile);
  void storeOutputRow(const OutputTile &tile, int64_t y, int64_t part, ArrayRef<Value> sums, Value bias);

  device::ConvOp op;
  KernelBuilder &kb;
  const WinogradPlan p;
  const ConvShape &s;
  const int64_t m, window;
  ArrayRef<TileExtra> extraKinds;
  const int64_t lanes; ///< of a vector
  const VectorType vector;
  Region plain;
  TileFunctions tiles;
};

Part Winograd::partOf(Value tile) {
  Part part;
  Value panelPart = kb.rem(tile, p.panelParts), rest = kb.div(tile, p.panelParts);
  Value gridPart = kb.rem(rest, p.parts());
  part.image = kb.div(rest, p.parts());
  if (p.open) {
    part.begin = kb.mul(gridPart, p.most);
    part.count = kb.min(kb.constant(p.most), kb.sub(kb.index(p.tilesH * p.tilesW), part.begin));
    part.firstRow = kb.div(part.begin, p.tilesW);
    Value endRow = kb.div(kb.add(kb.add(part.begin, part.count), p.tilesW - 1), p.tilesW);
    part.rows = kb.sub(endRow, part.firstRow);
  } else {
    part.firstRow = kb.mul(gridPart, p.rowsPerPart);
    part.rows = kb.min(kb.constant(p.rowsPerPart), kb.sub(kb.index(p.tilesH), part.firstRow));
    part.count = kb.mul(part.rows, p.tilesW);
  }
  part.panelBegin = kb.mul(panelPart, p.panelsPerPart);
  part.panelEnd = kb.min(kb.constant(p.panels.count), kb.add(part.panelBegin, p.panelsPerPart));
  return part;
}

void Winograd::forGridRows(const Part &part, function_ref<void(const GridRow &)> body) {
  kb.forLoop(kb.constant(0), part.rows, 1, [&](Value index) {
    Value row = kb.add(part.firstRow, index), zero = kb.constant(0);
    if (!p.open) {
      return body({row, kb.mul(index, p.tilesW), zero, kb.index(p.tilesW)});
    }
    Value before = kb.mul(row, p.tilesW), left = kb.sub(part.begin, before);
    body({row, kb.sub(before, part.begin), kb.max(zero, left), kb.min(kb.index(p.tilesW), kb.add(left, part.count))});
  });
}

void Winograd::emit() {
  kb.setScratchBytes(p.scratchBytes);
  kb.forTiles(s.images * p.parts() * p.panelParts, [&](Value tile) {
    Part part = partOf(tile);
    transformInput(part);
    multiply(part);
    transformOutput(part);
  });
}

//===----------------------------------------------------------------------===//
// Input transform
//===----------------------------------------------------------------------===//

void Winograd::transformInput(const Part &part) {
  // A line of zeros stands in for positions outside the image.
  Value zeros = byteOffset(kb, kb.scratch(), p.zeroOffset);
  for (int64_t i = 0; i < window * kBlock; i += lanes) {
    kb.store(kb.zero(vector), zeros, kb.constant(i));
  }
  int64_t xBlock = kBlock * s.xBytes; // bytes of a position
  Value source = byteOffset(kb, kb.operand(0), kb.mul(part.image, s.icBlocks() * s.h * s.w * xBlock));
  kb.forLoop(0, s.icBlocks(), 1, [&](Value block) {
    Value plane = byteOffset(kb, source, kb.mul(block, s.h * s.w * xBlock));
    forGridRows(part,
                [&](const GridRow &row) { transformInputRow(plane, row, kb.add(kb.mul(block, p.most), row.slot)); });
  });
}

/// Transforms the windows of one row of the grid. Those that cross the left or right border need more code.
void Winograd::transformInputRow(Value plane, const GridRow &row, Value slot) {
  Value firstRow = kb.sub(kb.mul(row.row, m), kb.constant(s.padTop));
  Value to = byteOffset(kb, kb.scratch(), kb.mul(slot, kBlockBytes));
  auto transformColumn = [&](Value index, Inside inside) {
    transformInputTile(plane, firstRow, kb.sub(kb.mul(index, m), kb.constant(s.padLeft)), inside, 0,
                       byteOffset(kb, to, kb.mul(index, kBlockBytes)));
  };
  auto transformColumns = [&](Value begin, Value end) {
    kb.forLoop(begin, end, 1, [&](Value index) { transformColumn(index, Inside::all); });
  };
  int64_t insideBegin = ceilDiv(s.padLeft, m);
  Dim insideEnd = max(floorDiv(s.w + s.padLeft - window, m) + 1, insideBegin);
  if (p.open) {
    Value left = kb.max(row.columnBegin, kb.min(row.columnEnd, kb.constant(insideBegin)));
    Value right = kb.max(left, kb.min(row.columnEnd, kb.index(insideEnd))), inside = kb.sub(right, left);
    transformColumns(left, right);
    // One loop covers both borders.
    kb.forLoop(row.columnBegin, kb.sub(row.columnEnd, inside), 1, [&](Value index) {
      Value isLeft = kb.less(index, left);
      transformColumn(arith::SelectOp::create(kb.b, isLeft, index, kb.add(index, inside)), Inside::checked);
    });
    return;
  }
  auto transformBorder = [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t column = tile * m - s.padLeft;
      transformInputTile(plane, firstRow, kb.constant(column), Inside::known, column,
                         byteOffset(kb, to, tile * kBlockBytes));
    }
  };
  int64_t columns = p.tilesW.value(), left = std::min(insideBegin, columns);
  int64_t right = std::clamp(insideEnd.value(), left, columns);
  transformBorder(0, left);
  if (left < right) {
    transformColumns(kb.constant(left), kb.constant(right));
  }
  transformBorder(right, columns);
}

/// Returns the address of column |x| of a window in |row|, or of zeros if it is outside the image; null if it is known
/// to be outside.
Value Winograd::positionOrZeros(Value row, Value column, int64_t x, Inside inside, int64_t knownColumn) {
  if (inside == Inside::known && (knownColumn + x < 0 || knownColumn + x >= s.w.value())) {
    return {};
  }
  Value at = byteOffset(kb, row, x * kBlock * s.xBytes);
  if (inside != Inside::checked) {
    return at;
  }
  // Unsigned: a negative column counts as beyond the last one.
  Value exists = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, kb.add(column, x), kb.index(s.w));
  return arith::SelectOp::create(kb.b, exists, at, byteOffset(kb, kb.scratch(), p.zeroOffset));
}

void Winograd::transformInputTile(Value plane, Value firstRow, Value column, Inside inside, int64_t knownColumn,
                                  Value to) {
  int64_t xBlock = kBlock * s.xBytes;
  Value zero = kb.constant(0), zeros = byteOffset(kb, kb.scratch(), p.zeroOffset);
  SmallVector<Value> rows;
  for (int64_t y = 0; y < window; ++y) {
    Value row = kb.add(firstRow, y);
    Value from = byteOffset(kb, plane, kb.mul(kb.add(kb.mul(row, s.w), column), xBlock));
    // Unsigned: a negative row counts as beyond the last one.
    Value exists = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, row, kb.index(s.h));
    rows.push_back(arith::SelectOp::create(kb.b, exists, from, zeros));
  }
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    SmallVector<Line> half; // [column][row of the transform]
    for (int64_t x = 0; x < window; ++x) {
      Line line;
      for (int64_t y = 0; y < window; ++y) {
        Value at = positionOrZeros(rows[y], column, x, inside, knownColumn);
        line.push_back(at ? kb.loadElements(s.xElement, lanes, at, kb.constant(part * lanes)) : Value());
      }
      half.push_back(line[0] ? inputTransform(kb, m, line) : Line(window, kb.zero(vector)));
    }
    for (int64_t y = 0; y < window; ++y) {
      Line line;
      for (int64_t x = 0; x < window; ++x) {
        line.push_back(half[x][y]);
      }
      Line out = inputTransform(kb, m, line);
      for (int64_t x = 0; x < window; ++x) {
        kb.store(out[x], byteOffset(kb, to, (y * window + x) * p.inputPointBytes + part * lanes * 4), zero);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Computes P = V * U for every point and the panels of |part|.
void Winograd::multiply(const Part &part) {
  if (p.open) {
    return multiplyPanels(part, std::nullopt);
  }
  // The last launch tile may hold fewer rows of the grid.
  int64_t rows = p.tilesH.value(), lastRows = rows - (ceilDiv(rows, p.rowsPerPart) - 1) * p.rowsPerPart;
  if (lastRows == p.rowsPerPart) {
    return multiplyPanels(part, p.most);
  }
  int64_t fewer = lastRows * p.tilesW.value();
  Value full = kb.less(kb.constant(fewer), part.count);
  kb.ifThen(full, [&] { multiplyPanels(part, p.most); });
  kb.ifThen(kb.less(part.count, kb.constant(p.most)), [&] { multiplyPanels(part, fewer); });
}

/// |count|: the output tiles of |part|, if known.
void Winograd::multiplyPanels(const Part &part, std::optional<int64_t> count) {
  bool narrower = p.panels.lastBlocks != p.panels.blocks;
  Value lastPanel = kb.constant(p.panels.count - 1);
  kb.forLoop(0, p.points, 1, [&](Value point) {
    auto multiplyEach = [&](Value begin, Value end, bool last) {
      kb.forLoop(begin, end, 1, [&](Value panel) {
        multiplyPanel(point, panel, kb.sub(panel, part.panelBegin), last, part.count, count);
      });
    };
    multiplyEach(part.panelBegin, narrower ? kb.min(part.panelEnd, lastPanel) : part.panelEnd, false);
    if (narrower) {
      multiplyEach(kb.max(part.panelBegin, lastPanel), part.panelEnd, true);
    }
  });
}

/// |slot|: index of the panel in P. |knownCount|: the value of |count|, if known.
void Winograd::multiplyPanel(Value point, Value panel, Value slot, bool last, Value count,
                             std::optional<int64_t> knownCount) {
  int64_t blocks = last ? p.panels.lastBlocks : p.panels.blocks, stepBytes = p.weights.stepBytes;
  TileFunctions::Pointers base;
  base.a = byteOffset(kb, kb.scratch(), kb.mul(point, p.inputPointBytes));
  base.b = byteOffset(kb, kb.operand(1),
                      kb.mul(kb.add(kb.mul(point, s.ocBlocks()), kb.mul(panel, p.panels.blocks)), s.c * stepBytes));
  if (p.weights.copied) {
    Value widened = byteOffset(kb, kb.scratch(), p.panelOffset);
    p.weights.copyPanel(kb, base.b, widened, blocks);
    base.b = widened;
  }
  base.c = byteOffset(kb, byteOffset(kb, kb.scratch(), p.productOffset),
                      kb.add(kb.mul(point, p.productPointBytes), kb.mul(slot, p.panels.blocks * p.most * kBlockBytes)));
  EvenSplit split(knownCount.value_or(p.most), p.tileRows);
  // The next panel of a large layer comes from beyond L2, so prefetch it while this one is used.
  int64_t panelBytes = s.c * blocks * stepBytes;
  int64_t prefetchLines = !p.weights.copied && p.points * s.c * s.ocBlocks() * stepBytes > 512 * 1024
                              ? std::min(ceilDiv(panelBytes / 64, split.pieces), 2 * s.c)
                              : 0;
  auto callTile = [&](Value index, Value position, int64_t height) {
    TileShape shape;
    TileResult result;
    shape.blocks = blocks;
    p.weights.describe(shape);
    shape.groupBytes = p.most * kBlockBytes;
    shape.prefetchLines = prefetchLines;
    result.blockStride = p.most * kBlock;
    for (int64_t row = 0; row < height; ++row) {
      shape.rows.push_back(row * kBlockBytes);
      result.rows.push_back(row * kBlock);
    }
    TileFunctions::Pointers at = base;
    Value row = kb.mul(position, kBlockBytes);
    at.a = byteOffset(kb, base.a, row);
    at.c = byteOffset(kb, base.c, row);
    if (prefetchLines) {
      at.prefetch = byteOffset(kb, byteOffset(kb, base.b, panelBytes), kb.mul(index, prefetchLines * 64));
    }
    tiles.call(shape, result, at);
  };
  if (!knownCount) {
    forOpenTiles(kb, kb.constant(0), count, p.tileRows, [&](Value first, Value number, int64_t height) {
      kb.forLoop(kb.constant(0), number, 1,
                 [&](Value tile) { callTile(tile, kb.add(first, kb.mul(tile, height)), height); });
    });
    return;
  }
  auto callTiles = [&](int64_t begin, int64_t end, int64_t height) {
    kb.forLoop(begin, end, 1, [&](Value tile) {
      callTile(tile, height == split.size ? kb.add(kb.mul(tile, height), split.wide) : kb.mul(tile, height), height);
    });
  };
  if (split.wide) {
    callTiles(0, split.wide, split.size + 1);
  }
  callTiles(split.wide, split.pieces, split.size);
}

//===----------------------------------------------------------------------===//
// Output transform
//===----------------------------------------------------------------------===//

void Winograd::transformOutput(const Part &part) {
  Value blockBegin = kb.mul(part.panelBegin, p.panels.blocks);
  Value blockEnd = kb.min(kb.constant(s.ocBlocks()), kb.mul(part.panelEnd, p.panels.blocks));
  Dim whole = floorDiv(s.ow, m), rest = mod(s.ow, m);
  auto transformBlock = [&](Value block, int64_t tail) {
    Value slot = kb.sub(block, blockBegin);
    forGridRows(part, [&](const GridRow &row) {
      Value index = kb.add(kb.mul(slot, p.most), row.slot);
      Value from = byteOffset(kb, byteOffset(kb, kb.scratch(), p.productOffset), kb.mul(index, kBlockBytes));
      auto transformColumn = [&](Value column, std::optional<int64_t> valid) {
        transformOutputTile(byteOffset(kb, from, kb.mul(column, kBlockBytes)),
                            {part.image, block, row.row, column, valid, tail});
      };
      if (!p.open) {
        kb.forLoop(0, whole, 1, [&](Value column) { transformColumn(column, m); });
        if (!rest.is(0)) {
          transformColumn(kb.index(whole), rest.value());
        }
        return;
      }
      Value wholeEnd = kb.index(whole);
      kb.forLoop(row.columnBegin, kb.min(row.columnEnd, wholeEnd), 1,
                 [&](Value column) { transformColumn(column, m); });
      if (!isMultipleOf(s.ow, m)) {
        kb.forLoop(kb.max(row.columnBegin, wholeEnd), row.columnEnd, 1,
                   [&](Value column) { transformColumn(column, std::nullopt); });
      }
    });
  };
  int64_t tail = s.oc % kBlock, fullBlocks = s.oc / kBlock;
  kb.forLoop(blockBegin, tail ? kb.min(blockEnd, kb.constant(fullBlocks)) : blockEnd, 1,
             [&](Value block) { transformBlock(block, kBlock); });
  if (tail) {
    kb.forLoop(kb.max(blockBegin, kb.constant(fullBlocks)), blockEnd, 1,
               [&](Value block) { transformBlock(block, tail); });
  }
}

/// Sets the addresses of |tile|, of which the indices are set.
void Winograd::placeOutputTile(OutputTile &tile) {
  Value plane = kb.mul(kb.add(kb.mul(tile.image, s.ocBlocks()), tile.block), s.oh * s.ow);
  Value position = kb.add(kb.mul(kb.mul(tile.row, m), s.ow), kb.mul(tile.column, m));
  Value element = kb.mul(kb.add(plane, position), kBlock), channel = kb.mul(tile.block, kBlock);
  tile.to = byteOffset(kb, kb.result(), kb.mul(element, s.yBytes));
  for (auto [index, extra] : llvm::enumerate(extraKinds)) {
    Value pointer = kb.operand((op.getBias() ? 3 : 2) + index);
    tile.extras.push_back(extra.kind == ExtraKind::Full ? byteOffset(kb, pointer, kb.mul(element, extra.elementBytes))
                          : extra.kind == ExtraKind::Column
                              ? byteOffset(kb, pointer, kb.mul(channel, extra.elementBytes))
                              : pointer);
  }
  tile.bias = op.getBias() ? byteOffset(kb, kb.operand(2), kb.mul(channel, 4)) : Value();
}

/// Transforms the products at |from| to the positions of |tile|.
void Winograd::transformOutputTile(Value from, OutputTile tile) {
  placeOutputTile(tile);
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    int64_t offset = part * lanes * 4;
    Value zero = kb.constant(0);
    SmallVector<Line> half; // [column][row of the result]
    for (int64_t x = 0; x < window; ++x) {
      Line line;
      for (int64_t y = 0; y < window; ++y) {
        line.push_back(kb.load(vector, byteOffset(kb, from, (y * window + x) * p.productPointBytes + offset), zero));
      }
      half.push_back(outputTransform(kb, m, line));
    }
    Value bias = tile.bias ? kb.load(vector, byteOffset(kb, tile.bias, offset), zero) : Value();
    for (int64_t y = 0; y < m; ++y) {
      auto storeRow = [&] {
        Line line;
        for (int64_t x = 0; x < window; ++x) {
          line.push_back(half[x][y]);
        }
        storeOutputRow(tile, y, part, outputTransform(kb, m, line), bias);
      };
      // Rows beyond the result exist in the last row of the grid only.
      if (isMultipleOf(s.oh, m) || y == 0 || (s.oh.isKnown() && y < s.oh.value() % m)) {
        storeRow();
      } else {
        kb.ifThen(kb.less(kb.add(kb.mul(tile.row, m), y), kb.index(s.oh)), storeRow);
      }
    }
  }
}

/// Applies the epilogue to vector |part| of row |y| of |tile|. |bias|: null without one.
void Winograd::storeOutputRow(const OutputTile &tile, int64_t y, int64_t part, ArrayRef<Value> sums, Value bias) {
  // A symbolic width is part of the pointers, because offsets are constants.
  Dim before = y * s.ow * kBlock;
  Value to = tile.to;
  SmallVector<Value> extras = tile.extras;
  if (!before.isKnown()) {
    to = byteOffset(kb, to, before * s.yBytes);
    for (auto [pointer, extra] : llvm::zip_equal(extras, extraKinds)) {
      pointer = extra.kind == ExtraKind::Full ? byteOffset(kb, pointer, before * extra.elementBytes) : pointer;
    }
  }
  for (int64_t x = 0; x < tile.validColumns.value_or(m); ++x) {
    auto storePosition = [&] {
      VectorPlace place{(before.isKnown() ? before.value() : 0) + x * kBlock + part * lanes, part * lanes, 0};
      Value sum = bias ? Value(arith::AddFOp::create(kb.b, sums[x], bias)) : sums[x];
      Value value = emitVectorEpilogue(kb, op.getEpilogue(), extraKinds, extras, sum, place);
      storeBlockVector(kb, s.yElement, value, byteOffset(kb, to, place.element * s.yBytes), part, tile.channels);
    };
    // The first column of an output tile always exists.
    if (tile.validColumns || x == 0) {
      storePosition();
    } else {
      kb.ifThen(kb.less(kb.add(kb.mul(tile.column, m), x), kb.index(s.ow)), storePosition);
    }
  }
}

} // namespace

LogicalResult emitWinograd(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  Winograd(op, kb, extras).emit();
  return success();
}

} // namespace tessera::x86
