//===- MicroWinograd.cpp - Winograd convolution F(m x m, 3 x 3) -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each launch tile takes some rows of output tiles through three steps in its scratch, which fits L2: the input
// transform to V [point][C / 16][tiles][16], one matmul per point to P [point][OC / 16][tiles][16], and the output
// transform with bias and epilogue. A point is one of the (m + 2)^2 transformed positions. Packed weights are already
// transformed: [point][panel][C][16 panelBlocks].
//===----------------------------------------------------------------------===//
#include "codegen/X86/MicroShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Vector arithmetic with constants for the transforms.
class VectorMath {
public:
  VectorMath(KernelBuilder &kb, VectorType type) : kb(kb), type(type) {}
  Value add(Value x, Value y) { return arith::AddFOp::create(kb.b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(kb.b, x, y); }
  Value scale(double factor, Value x) { return arith::MulFOp::create(kb.b, constant(factor), x); }
  /// Returns factor * x + y.
  Value addScaled(Value y, double factor, Value x) {
    return targetOf(kb).hasFma() ? Value(vector::FMAOp::create(kb.b, constant(factor), x, y))
                                 : add(y, scale(factor, x));
  }

private:
  Value constant(double value) { return kb.floatConstant(type, value); }
  KernelBuilder &kb;
  VectorType type;
};

using Line = SmallVector<Value, 6>;

/// Computes one dimension of the input transform: B^T times a line of m + 2 values.
Line inputTransform(VectorMath &v, int64_t m, ArrayRef<Value> d) {
  if (m == 2) {
    return {v.sub(d[0], d[2]), v.add(d[1], d[2]), v.sub(d[2], d[1]), v.sub(d[1], d[3])};
  }
  Value even = v.addScaled(d[4], -4, d[2]), odd = v.addScaled(d[3], -4, d[1]);
  Value high = v.sub(d[4], d[2]), low = v.sub(d[3], d[1]);
  return {v.addScaled(v.addScaled(d[4], -5, d[2]), 4, d[0]),
          v.add(even, odd),
          v.sub(even, odd),
          v.addScaled(high, 2, low),
          v.addScaled(high, -2, low),
          v.addScaled(v.addScaled(d[5], -5, d[3]), 4, d[1])};
}

/// Computes one dimension of the output transform: A^T times a line of m + 2 values.
Line outputTransform(VectorMath &v, int64_t m, ArrayRef<Value> p) {
  if (m == 2) {
    return {v.add(v.add(p[0], p[1]), p[2]), v.sub(v.sub(p[1], p[2]), p[3])};
  }
  Value sum = v.add(p[1], p[2]), difference = v.sub(p[1], p[2]);
  Value farSum = v.add(p[3], p[4]), farDifference = v.sub(p[3], p[4]);
  return {v.add(v.add(p[0], sum), farSum), v.addScaled(difference, 2, farDifference), v.addScaled(sum, 4, farSum),
          v.add(v.addScaled(difference, 8, farDifference), p[5])};
}

class Winograd {
public:
  Winograd(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras);
  void emit();

private:
  void planWork();
  void transformInput(Value image, Value tileRow, Value tileRows);
  void transformInputTile(Value plane, Value firstRow, Value column, std::optional<int64_t> knownColumn, Value to);
  void multiply(Value panelBegin, Value panelEnd, Value tileCount);
  void multiplyPanel(Value point, Value panel, Value slot, int64_t rows, bool last);
  void transformOutput(Value image, Value tileRow, Value tileRows, Value blockBegin, Value blockEnd);
  void transformOutputTile(Value from, Value image, Value block, Value tileRow, Value tileColumn, int64_t validColumns,
                           int64_t tail);

  device::ConvOp op;
  KernelBuilder &kb;
  ConvShape s;
  int64_t tileRows; ///< most rows of a register tile
  TileWeights weights;
  ArrayRef<TileExtra> extraKinds;
  int64_t m, window, points;
  int64_t tilesH, tilesW, panelBlocks, panels, lastBlocks;
  int64_t rowsPerPart = 1; ///< tile rows of one launch tile
  int64_t panelParts = 1, panelsPerPart = 1;
  int64_t most = 0; ///< tiles of one launch tile
  int64_t inputPointBytes = 0, productPointBytes = 0, productOffset = 0, zeroOffset = 0, panelOffset = 0;
  Region plain;
  std::unique_ptr<TileFunctions> tiles;
};

Winograd::Winograd(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
    : op(op), kb(kb), s(op), tileRows(packingOf(op).getRows()), weights(targetOf(kb), panelsOfConv(packingOf(op), 1)),
      extraKinds(extras), m(packingOf(op).getOutputTile()), window(m + 2), points(window * window) {
  tilesH = ceilDiv(s.oh.value(), m), tilesW = ceilDiv(s.ow.value(), m);
  panelBlocks = weights.panels.panelBlocks;
  panels = ceilDiv(s.ocBlocks(), panelBlocks);
  lastBlocks = s.ocBlocks() - (panels - 1) * panelBlocks;
}

void Winograd::planWork() {
  // V and P of a launch tile stay in L2. With more output tiles per launch tile, the weights are read less often.
  constexpr int64_t kScratchBytes = 1200 * 1024, kWanted = 4;
  auto bytesPerTileRow = [&](int64_t parts) {
    int64_t outBlocks = ceilDiv(panels, parts) * panelBlocks;
    return points * tilesW * (s.icBlocks() + outBlocks) * kBlockBytes;
  };
  int64_t smallWork = s.flops() / s.n < 4'000'000;
  for (panelParts = 1;; ++panelParts) {
    rowsPerPart = std::clamp<int64_t>(kScratchBytes / bytesPerTileRow(panelParts), 1, tilesH);
    int64_t rowParts = ceilDiv(tilesH, rowsPerPart);
    rowsPerPart = ceilDiv(tilesH, rowParts);
    // Provide work for two threads or more if there is enough work.
    if (smallWork || panelParts >= panels || s.n * rowParts * panelParts >= 2) {
      break;
    }
  }
  // Splitting rows is better than splitting panels as long as a register tile stays full.
  int64_t fewestRows = ceilDiv(tileRows, tilesW);
  while (!smallWork && panelParts == 1 && rowsPerPart > fewestRows && s.n * ceilDiv(tilesH, rowsPerPart) < kWanted) {
    --rowsPerPart;
  }
  int64_t rowParts = ceilDiv(tilesH, rowsPerPart);
  rowsPerPart = ceilDiv(tilesH, rowParts);
  panelsPerPart = ceilDiv(panels, panelParts);
  panelParts = ceilDiv(panels, panelsPerPart);
  most = rowsPerPart * tilesW;
  // An odd number of cache lines between points keeps them in different cache sets.
  auto oddLines = [](int64_t lines) { return (lines | 1) * kBlockBytes; };
  inputPointBytes = oddLines(s.icBlocks() * most);
  productPointBytes = oddLines(panelsPerPart * panelBlocks * most);
  productOffset = points * inputPointBytes;
  zeroOffset = productOffset + points * productPointBytes;
  panelOffset = zeroOffset + window * kBlockBytes;
  kb.setScratchBytes(panelOffset + (weights.copied ? s.c * panelBlocks * kBlockBytes : 0));
}

void Winograd::emit() {
  planWork();
  tiles = std::make_unique<TileFunctions>(kb, plain, ArrayRef<TileExtra>(), TileFunctions::Bias::None);
  int64_t rowParts = ceilDiv(tilesH, rowsPerPart);
  kb.forTiles(s.images * rowParts * panelParts, [&](Value tile) {
    Value panelPart = kb.rem(tile, panelParts), rest = kb.div(tile, panelParts);
    Value rowPart = kb.rem(rest, rowParts), image = kb.div(rest, rowParts);
    Value tileRow = kb.mul(rowPart, rowsPerPart);
    Value tileRows = kb.min(kb.constant(rowsPerPart), kb.sub(kb.constant(tilesH), tileRow));
    Value panelBegin = kb.mul(panelPart, panelsPerPart);
    Value panelEnd = kb.min(kb.constant(panels), kb.add(panelBegin, panelsPerPart));
    transformInput(image, tileRow, tileRows);
    multiply(panelBegin, panelEnd, kb.mul(tileRows, tilesW));
    Value blockEnd = kb.min(kb.constant(s.ocBlocks()), kb.mul(panelEnd, panelBlocks));
    transformOutput(image, tileRow, tileRows, kb.mul(panelBegin, panelBlocks), blockEnd);
  });
}

void Winograd::transformInput(Value image, Value tileRow, Value tileRows) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto vector = VectorType::get({lanes}, kb.b.getF32Type());
  // A line of zeros stands in for the rows above and below the image.
  Value zeros = byteOffset(kb, kb.scratch(), zeroOffset);
  for (int64_t i = 0; i < window * kBlock; i += lanes) {
    kb.store(kb.zero(vector), zeros, kb.constant(i));
  }
  int64_t xBlock = kBlock * s.xBytes; // bytes of a position
  Value source = byteOffset(kb, kb.operand(0), kb.mul(image, s.icBlocks() * s.h * s.w * xBlock));
  kb.forLoop(0, s.icBlocks(), 1, [&](Value block) {
    Value plane = byteOffset(kb, source, kb.mul(block, s.h * s.w * xBlock));
    kb.forLoop(kb.constant(0), tileRows, 1, [&](Value row) {
      Value firstRow = kb.sub(kb.mul(kb.add(tileRow, row), m), kb.constant(s.padTop));
      Value slot = kb.add(kb.mul(block, most), kb.mul(row, tilesW));
      Value to = byteOffset(kb, kb.scratch(), kb.mul(slot, kBlockBytes));
      // A tile whose window crosses the left or right border is emitted with a constant column.
      auto crosses = [&](int64_t tile) {
        int64_t column = tile * m - s.padLeft;
        return column < 0 || column + window > s.w.value();
      };
      for (int64_t tile = 0; tile < tilesW;) {
        int64_t end = tile;
        while (end < tilesW && !crosses(end)) {
          ++end;
        }
        if (end == tile) {
          int64_t column = tile * m - s.padLeft;
          transformInputTile(plane, firstRow, kb.constant(column), column, byteOffset(kb, to, tile * kBlockBytes));
          ++tile;
          continue;
        }
        kb.forLoop(tile, end, 1, [&](Value index) {
          transformInputTile(plane, firstRow, kb.sub(kb.mul(index, m), kb.constant(s.padLeft)), std::nullopt,
                             byteOffset(kb, to, kb.mul(index, kBlockBytes)));
        });
        tile = end;
      }
    });
  });
}

void Winograd::transformInputTile(Value plane, Value firstRow, Value column, std::optional<int64_t> knownColumn,
                                  Value to) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto vector = VectorType::get({lanes}, kb.b.getF32Type());
  Value zero = kb.constant(0), zeros = byteOffset(kb, kb.scratch(), zeroOffset);
  int64_t xBlock = kBlock * s.xBytes;
  SmallVector<Value> rows;
  for (int64_t y = 0; y < window; ++y) {
    Value row = kb.add(firstRow, y);
    Value from = byteOffset(kb, plane, kb.mul(kb.add(kb.mul(row, s.w), column), xBlock));
    // Unsigned: a negative row counts as beyond the last one.
    Value inside = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, row, kb.index(s.h));
    rows.push_back(arith::SelectOp::create(kb.b, inside, from, zeros));
  }
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    VectorMath math(kb, vector);
    SmallVector<Line> half; // [column][row of the transform]
    for (int64_t x = 0; x < window; ++x) {
      bool inside = !knownColumn || (*knownColumn + x >= 0 && *knownColumn + x < s.w.value());
      Line line;
      for (int64_t y = 0; y < window; ++y) {
        line.push_back(
            inside ? kb.loadElements(s.xElement, lanes, byteOffset(kb, rows[y], x * xBlock), kb.constant(part * lanes))
                   : kb.zero(vector));
      }
      half.push_back(inside ? inputTransform(math, m, line) : line);
    }
    for (int64_t y = 0; y < window; ++y) {
      Line line;
      for (int64_t x = 0; x < window; ++x) {
        line.push_back(half[x][y]);
      }
      Line out = inputTransform(math, m, line);
      for (int64_t x = 0; x < window; ++x) {
        kb.store(out[x], byteOffset(kb, to, (y * window + x) * inputPointBytes + part * lanes * 4), zero);
      }
    }
  }
}

/// Computes P = V * U for every point and the panels [panelBegin, panelEnd).
void Winograd::multiply(Value panelBegin, Value panelEnd, Value tileCount) {
  auto run = [&](int64_t rows) {
    kb.forLoop(0, points, 1, [&](Value point) {
      kb.forLoop(panelBegin, lastBlocks == panelBlocks ? panelEnd : kb.min(panelEnd, kb.constant(panels - 1)), 1,
                 [&](Value panel) { multiplyPanel(point, panel, kb.sub(panel, panelBegin), rows, false); });
      if (lastBlocks != panelBlocks) {
        kb.forLoop(kb.max(panelBegin, kb.constant(panels - 1)), panelEnd, 1,
                   [&](Value panel) { multiplyPanel(point, panel, kb.sub(panel, panelBegin), rows, true); });
      }
    });
  };
  // The last launch tile may hold fewer tile rows.
  int64_t lastRows = tilesH - (ceilDiv(tilesH, rowsPerPart) - 1) * rowsPerPart;
  if (lastRows == rowsPerPart) {
    run(most);
    return;
  }
  Value full = kb.less(kb.constant(lastRows * tilesW), tileCount);
  kb.ifThen(full, [&] { run(most); });
  kb.ifThen(kb.less(tileCount, kb.constant(most)), [&] { run(lastRows * tilesW); });
}

void Winograd::multiplyPanel(Value point, Value panel, Value slot, int64_t rows, bool last) {
  int64_t blocks = last ? lastBlocks : panelBlocks;
  TileFunctions::Pointers base;
  base.a = byteOffset(kb, kb.scratch(), kb.mul(point, inputPointBytes));
  base.b = byteOffset(kb, kb.operand(1),
                      kb.mul(kb.add(kb.mul(point, s.ocBlocks()), kb.mul(panel, panelBlocks)), s.c * weights.stepBytes));
  if (weights.copied) {
    Value widened = byteOffset(kb, kb.scratch(), panelOffset);
    weights.copyPanel(kb, base.b, widened, blocks);
    base.b = widened;
  }
  base.c = byteOffset(kb, byteOffset(kb, kb.scratch(), productOffset),
                      kb.add(kb.mul(point, productPointBytes), kb.mul(slot, panelBlocks * most * kBlockBytes)));
  EvenSplit split(rows, tileRows);
  // The next panel of a large layer comes from beyond L2, so prefetch it while this one is used.
  int64_t panelBytes = s.c * blocks * weights.stepBytes;
  int64_t prefetchLines = !weights.copied && points * s.c * s.ocBlocks() * weights.stepBytes > 512 * 1024
                              ? std::min(ceilDiv(panelBytes / 64, split.pieces), 2 * s.c)
                              : 0;
  auto emitTiles = [&](int64_t begin, int64_t end, int64_t height) {
    TileShape shape;
    TileResult result;
    shape.blocks = blocks;
    weights.describe(shape);
    shape.groupBytes = most * kBlockBytes;
    shape.prefetchLines = prefetchLines;
    result.blockStride = most * kBlock;
    for (int64_t row = 0; row < height; ++row) {
      shape.rows.push_back(row * kBlockBytes);
      result.rows.push_back(row * kBlock);
    }
    kb.forLoop(begin, end, 1, [&](Value tile) {
      Value row =
          kb.mul(height == split.size ? kb.add(kb.mul(tile, height), split.wide) : kb.mul(tile, height), kBlockBytes);
      TileFunctions::Pointers at = base;
      at.a = byteOffset(kb, base.a, row);
      at.c = byteOffset(kb, base.c, row);
      if (prefetchLines) {
        at.prefetch = byteOffset(kb, byteOffset(kb, base.b, panelBytes), kb.mul(tile, prefetchLines * 64));
      }
      tiles->call(shape, result, at);
    });
  };
  if (split.wide) {
    emitTiles(0, split.wide, split.size + 1);
  }
  emitTiles(split.wide, split.pieces, split.size);
}

void Winograd::transformOutput(Value image, Value tileRow, Value tileRows, Value blockBegin, Value blockEnd) {
  auto emitBlock = [&](Value block, int64_t tail) {
    Value slot = kb.sub(block, blockBegin);
    kb.forLoop(kb.constant(0), tileRows, 1, [&](Value row) {
      Value index = kb.add(kb.mul(slot, most), kb.mul(row, tilesW));
      Value from = byteOffset(kb, byteOffset(kb, kb.scratch(), productOffset), kb.mul(index, kBlockBytes));
      Value resultRow = kb.add(tileRow, row);
      int64_t whole = s.ow.value() / m;
      kb.forLoop(0, whole, 1, [&](Value column) {
        transformOutputTile(byteOffset(kb, from, kb.mul(column, kBlockBytes)), image, block, resultRow, column, m,
                            tail);
      });
      if (s.ow.value() % m) {
        transformOutputTile(byteOffset(kb, from, whole * kBlockBytes), image, block, resultRow, kb.constant(whole),
                            s.ow.value() % m, tail);
      }
    });
  };
  int64_t tail = s.oc % kBlock, fullBlocks = s.oc / kBlock;
  kb.forLoop(blockBegin, tail ? kb.min(blockEnd, kb.constant(fullBlocks)) : blockEnd, 1,
             [&](Value block) { emitBlock(block, kBlock); });
  if (tail) {
    kb.forLoop(kb.max(blockBegin, kb.constant(fullBlocks)), blockEnd, 1, [&](Value block) { emitBlock(block, tail); });
  }
}

void Winograd::transformOutputTile(Value from, Value image, Value block, Value tileRow, Value tileColumn,
                                   int64_t validColumns, int64_t tail) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto vector = VectorType::get({lanes}, kb.b.getF32Type());
  Value zero = kb.constant(0);
  Value row = kb.mul(tileRow, m);
  Value plane = kb.mul(kb.add(kb.mul(image, s.ocBlocks()), block), s.oh * s.ow);
  Value element = kb.mul(kb.add(plane, kb.add(kb.mul(row, s.ow), kb.mul(tileColumn, m))), kBlock);
  Value to = byteOffset(kb, kb.result(), kb.mul(element, s.yBytes)), channel = kb.mul(block, kBlock);
  SmallVector<Value> bases;
  for (auto [index, extra] : llvm::enumerate(extraKinds)) {
    Value pointer = kb.operand((op.getBias() ? 3 : 2) + index);
    bases.push_back(extra.kind == ExtraKind::Full     ? byteOffset(kb, pointer, kb.mul(element, extra.elementBytes))
                    : extra.kind == ExtraKind::Column ? byteOffset(kb, pointer, kb.mul(channel, extra.elementBytes))
                                                      : pointer);
  }
  Value bias = op.getBias() ? byteOffset(kb, kb.operand(2), kb.mul(channel, 4)) : Value();
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    VectorMath math(kb, vector);
    int64_t offset = part * lanes * 4;
    SmallVector<Line> half; // [column][row of the result]
    for (int64_t x = 0; x < window; ++x) {
      Line line;
      for (int64_t y = 0; y < window; ++y) {
        line.push_back(kb.load(vector, byteOffset(kb, from, (y * window + x) * productPointBytes + offset), zero));
      }
      half.push_back(outputTransform(math, m, line));
    }
    Value biasVector = bias ? kb.load(vector, byteOffset(kb, bias, offset), zero) : Value();
    for (int64_t y = 0; y < m; ++y) {
      auto emitRow = [&] {
        Line line;
        for (int64_t x = 0; x < window; ++x) {
          line.push_back(half[x][y]);
        }
        Line out = outputTransform(math, m, line);
        for (int64_t x = 0; x < validColumns; ++x) {
          VectorPlace place{(y * s.ow.value() + x) * kBlock + part * lanes, part * lanes, 0};
          Value sum = bias ? math.add(out[x], biasVector) : out[x];
          Value value = emitVectorEpilogue(kb, op.getEpilogue(), extraKinds, bases, sum, place);
          Value target = byteOffset(kb, to, place.element * s.yBytes);
          storeBlockVector(kb, s.yElement, value, target, part, tail);
        }
      };
      // Rows beyond the result exist in the last tile row only.
      if (s.oh.value() % m == 0 || y < s.oh.value() % m) {
        emitRow();
      } else {
        kb.ifThen(kb.less(kb.add(row, y), kb.index(s.oh)), emitRow);
      }
    }
  }
}

} // namespace

LogicalResult emitWinograd(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  Winograd(op, kb, extras).emit();
  return success();
}

} // namespace tessera::x86
