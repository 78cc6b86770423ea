//===- MicroDepthwise.cpp - Depthwise convolution on channel blocks -------===//
// SPDX-License-Identifier: Apache-2.0
//
// One vector holds the channels of a block at one position; a register tile is a run of positions of an output row. The
// weights are [C / 16][KH * KW][16]. Taps on padding are not computed: the loop over kernel rows is cut at run time,
// and the tiles at the left and right border are emitted separately, so their kernel columns are cut at compile time.
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
      : op(op), kb(kb), s(op), extraKinds(extras), columns(s.ow, packingOf(op).getRows()),
        blocks(ceilDiv(s.c, kBlock)) {}
  void emit();

private:
  void emitBlock(Value image, Value block, Value rowBegin, Value rowEnd);
  void emitRow(Value row);
  void emitTile(Value input, Value position, int64_t width, std::optional<int64_t> first, bool allRows);
  bool inside(int64_t column, int64_t tap) const {
    int64_t x = column * s.strideW + tap * s.dilationW - s.padLeft;
    return x >= 0 && x < s.w;
  }
  bool needsNoBorder(int64_t tile) const {
    int64_t begin = columns.begin(tile), end = begin + columns.length(tile);
    return inside(begin, 0) && inside(end - 1, s.kw - 1);
  }

  int64_t xBlock() const { return kBlock * s.xBytes; } ///< bytes of one position of x
  int64_t wBlock() const { return kBlock * device::elementBytes(s.wElement); }

  device::ConvOp op;
  KernelBuilder &kb;
  ConvShape s;
  ArrayRef<TileExtra> extraKinds;
  EvenSplit columns;
  int64_t blocks;

  // State of the current block.
  Value x, w, y, bias;
  SmallVector<Value> extras;
  SmallVector<Value> channels; ///< mask of the existing channels, per vector of the block; empty if all exist
  Value tapBegin, tapEnd;      ///< kernel rows inside the input
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

void Depthwise::emitRow(Value row) {
  Value top = kb.sub(kb.mul(row, s.strideH), kb.constant(s.padTop));
  // Kernel row t reads input row top + t * dilation.
  Value missing = kb.max(kb.constant(0), kb.sub(kb.constant(0), top));
  Value room = kb.max(kb.constant(0), kb.sub(kb.constant(s.h), top));
  tapBegin = kb.div(kb.add(missing, s.dilationH - 1), s.dilationH);
  tapEnd = kb.min(kb.constant(s.kh), kb.div(kb.add(room, s.dilationH - 1), s.dilationH));
  // Rows in [interiorBegin, interiorEnd) have their window inside the input and need no cut.
  int64_t last = s.h - 1 - (s.kh - 1) * s.dilationH + s.padTop;
  int64_t interiorBegin = std::min(s.oh, ceilDiv(s.padTop, s.strideH));
  int64_t interiorEnd = last < 0 ? interiorBegin : std::clamp(last / s.strideH + 1, interiorBegin, s.oh);
  bool unroll = s.kh <= 5 && interiorBegin < interiorEnd;

  Value input = byteOffset(kb, x, kb.mul(top, s.w * xBlock()));
  Value rowStart = kb.mul(row, s.ow);
  for (int64_t tile = 0; tile < columns.pieces;) {
    int64_t width = columns.length(tile), begin = columns.begin(tile), end = tile;
    while (end < columns.pieces && columns.length(end) == width && needsNoBorder(end)) {
      ++end;
    }
    if (end == tile) {
      Value from = byteOffset(kb, input, (begin * s.strideW - s.padLeft) * xBlock());
      emitTile(from, kb.add(rowStart, begin), width, begin, false);
      ++tile;
      continue;
    }
    auto emitRun = [&](bool allRows) {
      kb.forLoop(begin, begin + (end - tile) * width, width, [&](Value column) {
        Value from = kb.sub(kb.mul(column, s.strideW), kb.constant(s.padLeft));
        emitTile(byteOffset(kb, input, kb.mul(from, xBlock())), kb.add(rowStart, column), width, std::nullopt, allRows);
      });
    };
    if (unroll) {
      // The unsigned comparison also rejects rows above the interior.
      Value inner = kb.sub(row, kb.constant(interiorBegin)), count = kb.constant(interiorEnd - interiorBegin);
      kb.ifThen(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, inner, count), [&] { emitRun(true); });
      kb.ifThen(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::uge, inner, count), [&] { emitRun(false); });
    } else {
      emitRun(false);
    }
    tile = end;
  }
}

/// Emits |width| positions whose first tap reads |input|. |first| is their first column if a border may cut kernel
/// columns, else absent. |allRows|: no kernel row is cut.
void Depthwise::emitTile(Value input, Value position, int64_t width, std::optional<int64_t> first, bool allRows) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto vector = VectorType::get({lanes}, kb.b.getF32Type());
  Value zero = kb.constant(0);
  for (int64_t part = 0; part < vectorsPerBlock(targetOf(kb)); ++part) {
    Value firstLane = kb.constant(part * lanes);
    SmallVector<Value> sums(width, bias ? kb.load(vector, bias, firstLane) : kb.zero(vector));
    auto addKernelRow = [&](Value tapRow, ValueRange before) {
      SmallVector<Value> sums(before);
      Value row = byteOffset(kb, input, kb.mul(tapRow, s.dilationH * s.w * xBlock()));
      Value weights = byteOffset(kb, w, kb.mul(tapRow, s.kw * wBlock()));
      for (int64_t tap = 0; tap < s.kw; ++tap) {
        Value weight = kb.loadElements(s.wElement, lanes, byteOffset(kb, weights, tap * wBlock()), firstLane);
        if (s.wElement.isInteger(8)) { // the epilogue applies their scales
          weight = arith::SIToFPOp::create(kb.b, vector, weight);
        }
        for (int64_t column = 0; column < width; ++column) {
          if (first && !inside(*first + column, tap)) {
            continue;
          }
          int64_t at = (column * s.strideW + tap * s.dilationW) * xBlock();
          Value value = kb.loadElements(s.xElement, lanes, byteOffset(kb, row, at), firstLane);
          sums[column] = targetOf(kb).hasFma()
                             ? Value(vector::FMAOp::create(kb.b, value, weight, sums[column]))
                             : arith::AddFOp::create(kb.b, sums[column], arith::MulFOp::create(kb.b, value, weight));
        }
      }
      return sums;
    };
    if (allRows) {
      for (int64_t tapRow = 0; tapRow < s.kh; ++tapRow) {
        sums = addKernelRow(kb.constant(tapRow), sums);
      }
    } else {
      sums = kb.forLoop(tapBegin, tapEnd, 1, sums, addKernelRow);
    }
    Value element = kb.mul(position, kBlock);
    Value to = byteOffset(kb, y, kb.mul(element, s.yBytes));
    SmallVector<Value> bases;
    for (auto [extra, pointer] : llvm::zip_equal(extraKinds, extras)) {
      bases.push_back(extra.kind == ExtraKind::Full ? byteOffset(kb, pointer, kb.mul(element, extra.elementBytes))
                                                    : pointer);
    }
    for (int64_t column = 0; column < width; ++column) {
      VectorPlace place{column * kBlock + part * lanes, part * lanes, 0};
      Value value = emitVectorEpilogue(kb, op.getEpilogue(), extraKinds, bases, sums[column], place);
      if (!channels.empty()) {
        value = kb.zeroOutside(channels[part], value);
      }
      kb.storeElements(s.yElement, value, byteOffset(kb, to, place.element * s.yBytes), zero);
    }
  }
}

} // namespace

LogicalResult emitDepthwise(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  Depthwise(op, kb, extras).emit();
  return success();
}

} // namespace tessera::x86
