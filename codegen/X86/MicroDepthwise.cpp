//===- MicroDepthwise.cpp - Depthwise convolution on channel blocks -------===//
// SPDX-License-Identifier: Apache-2.0
//
// One vector holds the channels of a block at one position; a register tile is a run of positions of an output row. The
// weights are [C / 16][KH * KW][16]. Taps on padding are not computed: the loop over kernel rows is cut at run time,
// and the tiles at the left and right border are emitted separately, so their kernel columns are cut at compile time.
// If the width is known at run time only, positions at these borders are tiles of their own, with loops over kernel
// columns.
//===----------------------------------------------------------------------===//
#include "codegen/X86/MicroShape.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

class Depthwise {
public:
  Depthwise(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), s(op), extraKinds(extras), most(packingOf(op).getRows()), blocks(ceilDiv(s.c, kBlock)) {}
  void emit();

private:
  void emitBlock(Value image, Value block, Value rowBegin, Value rowEnd);
  void emitRow(Value row);
  /// The positions along one dim whose window lies inside the input: [begin, end).
  struct Interior {
    Dim begin, end;
  };
  Interior interiorOf(Dim input, Dim output, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) const;
  /// An output row: |input| is the byte where the window of its column 0 would begin without padding on the left.
  struct Row {
    Value index, input, start;
    Interior interior; ///< rows of which no kernel row is cut
    bool unroll;       ///< kernel rows are unrolled in the interior
  };
  void emitColumns(const Row &row);
  void emitOpenColumns(const Row &row);
  void emitBorder(const Row &row, Value column);
  void emitRun(const Row &row, Value begin, Value end, int64_t width);
  void emitTile(Value input, Value position, int64_t width, std::optional<int64_t> first, bool allRows);
  SmallVector<Value> addKernelRow(Value row, Value weights, Value firstLane, ValueRange before,
                                  std::optional<int64_t> first);
  void store(ArrayRef<Value> sums, Value position, int64_t part);
  bool inside(int64_t column, int64_t tap) const {
    int64_t x = column * s.strideW + tap * s.dilationW - s.padLeft;
    return x >= 0 && x < s.w.value();
  }

  int64_t xBlock() const { return kBlock * s.xBytes; } ///< bytes of one position of x
  int64_t wBlock() const { return kBlock * device::elementBytes(s.wElement); }

  device::ConvOp op;
  KernelBuilder &kb;
  ConvShape s;
  ArrayRef<TileExtra> extraKinds;
  int64_t most; ///< positions of the largest register tile
  int64_t blocks;

  // State of the current block.
  Value x, w, y, bias;
  SmallVector<Value> extras;
  SmallVector<Value> channels; ///< mask of the existing channels, per vector of the block; empty if all exist
  Value tapBegin, tapEnd;      ///< kernel rows inside the input
  Value columnBegin,
      columnEnd; ///< kernel columns inside the input; null if all are, or if they are cut at compile time
};

void Depthwise::emit() {
  // At least some 5 us.
  constexpr int64_t kTapsPerTile = 10'000;
  forRowsOfBlocks(kb, s, blocks, kTapsPerTile, [&](Value image, Value block, Value rowBegin, Value rowEnd) {
    emitBlock(image, block, rowBegin, rowEnd);
  });
}

void Depthwise::emitBlock(Value image, Value block, Value rowBegin, Value rowEnd) {
  Value plane = kb.add(kb.mul(image, blocks), block);
  x = byteOffset(kb, kb.operand(0), kb.mul(plane, s.h * s.w * xBlock()));
  y = byteOffset(kb, kb.result(), kb.mul(plane, s.oh * s.ow * kBlock * s.yBytes));
  w = byteOffset(kb, kb.operand(1), kb.mul(block, s.kh * s.kw * wBlock()));
  Value channel = kb.mul(block, kBlockBytes);
  bias = op.getBias() ? byteOffset(kb, kb.operand(2), channel) : Value();
  extras.clear();
  for (auto [index, extra] : llvm::enumerate(extraKinds)) {
    Value pointer = kb.operand((bias ? 3 : 2) + index);
    Value element = extra.kind == ExtraKind::Full ? kb.mul(plane, s.oh * s.ow * kBlock) : kb.mul(block, kBlock);
    extras.push_back(extra.kind == ExtraKind::Scalar ? pointer
                                                     : byteOffset(kb, pointer, kb.mul(element, extra.elementBytes)));
  }
  channels.clear();
  if (s.c % kBlock) {
    int64_t lanes = targetOf(kb).lanes(32);
    for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
      Value first = kb.add(kb.mul(block, kBlock), part * lanes);
      channels.push_back(kb.maskBelow(lanes, kb.sub(kb.constant(s.c), first)));
    }
  }
  kb.forLoop(rowBegin, rowEnd, 1, [&](Value row) { emitRow(row); });
}

Depthwise::Interior Depthwise::interiorOf(Dim input, Dim output, int64_t kernel, int64_t stride, int64_t dilation,
                                          int64_t pad) const {
  Dim begin = min(output, ceilDiv(pad, stride));
  Dim last = input - 1 - (kernel - 1) * dilation + pad; // largest begin of a window, if the padding counts as input
  return {begin, max(begin, min(output, floorDiv(last, stride) + 1))};
}

void Depthwise::emitRow(Value row) {
  Value top = kb.sub(kb.mul(row, s.strideH), kb.constant(s.padTop));
  // Kernel row t reads input row top + t * dilation.
  Value missing = kb.max(kb.constant(0), kb.sub(kb.constant(0), top));
  Value room = kb.max(kb.constant(0), kb.sub(kb.index(s.h), top));
  tapBegin = kb.div(kb.add(missing, s.dilationH - 1), s.dilationH);
  tapEnd = kb.min(kb.constant(s.kh), kb.div(kb.add(room, s.dilationH - 1), s.dilationH));
  Interior interior = interiorOf(s.h, s.oh, s.kh, s.strideH, s.dilationH, s.padTop);
  bool unroll = s.kh <= 5 && !(interior.end - interior.begin).is(0);
  Row place{row, byteOffset(kb, x, kb.mul(top, s.w * xBlock())), kb.mul(row, s.ow), interior, unroll};
  s.w.isKnown() && s.ow.isKnown() ? emitColumns(place) : emitOpenColumns(place);
}

/// Emits the columns of a row of known width.
void Depthwise::emitColumns(const Row &row) {
  EvenSplit columns(s.ow.value(), most);
  auto needsNoBorder = [&](int64_t tile) {
    int64_t begin = columns.begin(tile), end = begin + columns.length(tile);
    return inside(begin, 0) && inside(end - 1, s.kw - 1);
  };
  for (int64_t tile = 0; tile < columns.pieces;) {
    int64_t width = columns.length(tile), begin = columns.begin(tile), end = tile;
    while (end < columns.pieces && columns.length(end) == width && needsNoBorder(end)) {
      ++end;
    }
    if (end == tile) {
      Value from = byteOffset(kb, row.input, (begin * s.strideW - s.padLeft) * xBlock());
      emitTile(from, kb.add(row.start, begin), width, begin, false);
      ++tile;
      continue;
    }
    emitRun(row, kb.constant(begin), kb.constant(begin + (end - tile) * width), width);
    tile = end;
  }
}

/// Emits the columns of a row whose width is known at run time only.
void Depthwise::emitOpenColumns(const Row &row) {
  Interior interior = interiorOf(s.w, s.ow, s.kw, s.strideW, s.dilationW, s.padLeft);
  Row narrow = row; // tiles narrower than the largest cover few positions; unrolling them would double their code
  narrow.unroll = false;
  forOpenTiles(kb, kb.index(interior.begin), kb.index(interior.end - interior.begin), most,
               [&](Value first, Value count, int64_t width) {
                 emitRun(width == most ? row : narrow, first, kb.add(first, kb.mul(count, width)), width);
               });
  // One loop covers both borders.
  Value left = kb.index(interior.begin);
  kb.forLoop(0, s.ow - (interior.end - interior.begin), 1, [&](Value index) {
    Value right = kb.add(index, kb.index(interior.end - interior.begin));
    emitBorder(row, arith::SelectOp::create(kb.b, kb.less(index, left), index, right));
  });
}

/// Emits a position whose window may cross the left and the right border.
void Depthwise::emitBorder(const Row &row, Value column) {
  Value left = kb.sub(kb.mul(column, s.strideW), kb.constant(s.padLeft)), zero = kb.constant(0);
  Value missing = kb.max(zero, kb.sub(zero, left)), room = kb.max(zero, kb.sub(kb.index(s.w), left));
  columnBegin = kb.div(kb.add(missing, s.dilationW - 1), s.dilationW);
  columnEnd = kb.min(kb.constant(s.kw), kb.div(kb.add(room, s.dilationW - 1), s.dilationW));
  emitTile(byteOffset(kb, row.input, kb.mul(left, xBlock())), kb.add(row.start, column), 1, std::nullopt, false);
  columnBegin = columnEnd = Value();
}

/// Emits the columns [begin, end) as tiles of |width| positions whose windows cross neither the left nor the right
/// border.
void Depthwise::emitRun(const Row &row, Value begin, Value end, int64_t width) {
  auto emitTiles = [&](bool allRows) {
    kb.forLoop(begin, end, width, [&](Value column) {
      Value from = kb.sub(kb.mul(column, s.strideW), kb.constant(s.padLeft));
      emitTile(byteOffset(kb, row.input, kb.mul(from, xBlock())), kb.add(row.start, column), width, std::nullopt,
               allRows);
    });
  };
  if (!row.unroll) {
    return emitTiles(false);
  }
  // The unsigned comparison also rejects rows above the interior.
  Value inner = kb.sub(row.index, kb.index(row.interior.begin));
  Value count = kb.index(row.interior.end - row.interior.begin);
  kb.ifThen(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, inner, count), [&] { emitTiles(true); });
  kb.ifThen(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::uge, inner, count), [&] { emitTiles(false); });
}

/// Emits |width| positions whose first tap reads |input|. |first| is their first column if a border may cut kernel
/// columns, else absent. |allRows|: no kernel row is cut.
void Depthwise::emitTile(Value input, Value position, int64_t width, std::optional<int64_t> first, bool allRows) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto vector = VectorType::get({lanes}, kb.b.getF32Type());
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    Value firstLane = kb.constant(part * lanes);
    SmallVector<Value> sums(width, bias ? kb.load(vector, bias, firstLane) : kb.zero(vector));
    auto addRow = [&](Value tapRow, ValueRange before) {
      Value row = byteOffset(kb, input, kb.mul(tapRow, s.dilationH * s.w * xBlock()));
      Value weights = byteOffset(kb, w, kb.mul(tapRow, s.kw * wBlock()));
      return addKernelRow(row, weights, firstLane, before, first);
    };
    if (allRows) {
      for (int64_t tapRow = 0; tapRow < s.kh; ++tapRow) {
        sums = addRow(kb.constant(tapRow), sums);
      }
    } else {
      sums = kb.forLoop(tapBegin, tapEnd, 1, sums, addRow);
    }
    store(sums, position, part);
  }
}

/// Returns the sums of neighbouring positions, from column |first| on if known, plus a kernel row, the first tap of
/// which reads |row| at the first position.
SmallVector<Value> Depthwise::addKernelRow(Value row, Value weights, Value firstLane, ValueRange before,
                                           std::optional<int64_t> first) {
  SmallVector<Value> sums(before);
  Type vector = sums.front().getType();
  int64_t lanes = targetOf(kb).lanes(32);
  auto weightAt = [&](Value from) {
    Value weight = kb.loadElements(s.wElement, lanes, from, firstLane);
    // The epilogue applies the scales of integers.
    return s.wElement.isInteger(8) ? Value(arith::SIToFPOp::create(kb.b, vector, weight)) : weight;
  };
  auto addTap = [&](Value from, Value weight, Value sum) {
    Value value = kb.loadElements(s.xElement, lanes, from, firstLane);
    return targetOf(kb).hasFma() ? Value(vector::FMAOp::create(kb.b, value, weight, sum))
                                 : arith::AddFOp::create(kb.b, sum, arith::MulFOp::create(kb.b, value, weight));
  };
  if (columnBegin) {
    return kb.forLoop(columnBegin, columnEnd, 1, sums, [&](Value tap, ValueRange before) {
      Value weight = weightAt(byteOffset(kb, weights, kb.mul(tap, wBlock())));
      return SmallVector<Value>{addTap(byteOffset(kb, row, kb.mul(tap, s.dilationW * xBlock())), weight, before[0])};
    });
  }
  for (int64_t tap = 0; tap < s.kw; ++tap) {
    Value weight = weightAt(byteOffset(kb, weights, tap * wBlock()));
    for (auto [column, sum] : llvm::enumerate(sums)) {
      if (!first || inside(*first + int64_t(column), tap)) {
        int64_t at = (int64_t(column) * s.strideW + tap * s.dilationW) * xBlock();
        sum = addTap(byteOffset(kb, row, at), weight, sum);
      }
    }
  }
  return sums;
}

/// Stores vector |part| of the blocks from |position| on.
void Depthwise::store(ArrayRef<Value> sums, Value position, int64_t part) {
  int64_t lanes = targetOf(kb).lanes(32);
  Value element = kb.mul(position, kBlock), to = byteOffset(kb, y, kb.mul(element, s.yBytes)), zero = kb.constant(0);
  SmallVector<Value> bases;
  for (auto [extra, pointer] : llvm::zip_equal(extraKinds, extras)) {
    bases.push_back(extra.kind == ExtraKind::Full ? byteOffset(kb, pointer, kb.mul(element, extra.elementBytes))
                                                  : pointer);
  }
  for (auto [column, sum] : llvm::enumerate(sums)) {
    VectorPlace place{int64_t(column) * kBlock + part * lanes, part * lanes, 0};
    Value value = emitVectorEpilogue(kb, op.getEpilogue(), extraKinds, bases, sum, place);
    if (!channels.empty()) {
      value = kb.zeroOutside(channels[part], value);
    }
    kb.storeElements(s.yElement, value, byteOffset(kb, to, place.element * s.yBytes), zero);
  }
}

} // namespace

LogicalResult emitDepthwise(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  Depthwise(op, kb, extras).emit();
  return success();
}

} // namespace tessera::x86
