//===- MicroDepthwise8.cpp - Depthwise convolution of integer images ------===//
// SPDX-License-Identifier: Apache-2.0
//
// A launch tile first rewrites the input rows of some output rows to scratch, with their padding, and then sums tiles
// of output positions from there. There are three forms of a row in scratch:
// - With VNNI it becomes windows of 16 channels x 4 neighbouring columns, one for every second column. A kernel row of
//   up to three taps is then one vpdpbusd per output, with weights that are shifted by one column for outputs that
//   start at an odd column. With dilation, the columns of each residue form a separate row.
// - Without VNNI it becomes f32, in which sums of fewer than 2^24 / (255 * 128) products are exact.
// - A row of a 16-bit image becomes i32, whose lower halves are multiplied (pmaddwd) by weights with zero upper halves.
// Rows in scratch are as far apart as the largest width needs.
#include "codegen/X86/ConvLoops.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;

namespace tessera::x86 {
namespace {

class Depthwise8 {
public:
  Depthwise8(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), s(op), extraKinds(extras), words(s.kind == TileKind::S16),
        windows(packingOf(op).getOrder() == PackedOrder::windows), isSigned(s.kind != TileKind::U8),
        blocks(ceilDiv(s.c, kBlock)), columnsPerTile(packingOf(op).getRows()) {
    plan();
  }
  void emit();

private:
  void plan();
  void emitBlock(Value image, Value block, Value rowBegin, Value rowEnd, int64_t tail);
  void prepareRows(Value firstRow, Value rowsIn);
  void prepareWindows(Value from, Value to);
  void prepareLanes(Value from, Value to);
  void fillRow(Value to);
  void emitRow(Value row, Value scratchRow, int64_t tail);
  void emitTile(Value row, Value scratchRow, Value column, int64_t width, int64_t tail);
  SmallVector<Value> sumWindows(Value from, int64_t width);
  SmallVector<Value> sumLanes(Value from, int64_t width);
  Value multiplyAdd(Value value, Value weight, Value sum);
  /// Returns the type of one position in scratch without windows: 32 bits per channel.
  VectorType laneType() {
    Type element = words ? Type(kb.b.getI32Type()) : kb.b.getF32Type();
    return VectorType::get({static_cast<int64_t>(targetOf(kb).lanes(32))}, element);
  }
  Value lanesOf(int64_t value) {
    VectorType vector = laneType();
    return words ? Value(arith::ConstantOp::create(kb.b, DenseElementsAttr::get(vector, static_cast<int32_t>(value))))
                 : kb.floatConstant(vector, static_cast<double>(value));
  }
  int64_t padValue() { return static_cast<int64_t>(op.getPadValue()); }
  Value splatBytes(int8_t byte, int64_t count) {
    auto type = VectorType::get({count}, kb.b.getI8Type());
    return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, byte));
  }

  device::ConvOp op;
  KernelBuilder &kb;
  ConvShape s;
  ArrayRef<TileExtra> extraKinds;
  bool words; ///< 16-bit images
  bool windows, isSigned;
  int64_t blocks, columnsPerTile;

  /// The sizes of a row in scratch.
  struct RowSize {
    Dim width;             ///< positions with the padding
    Dim windowsPerResidue; ///< 0 without windows
  };
  /// Returns the sizes of a row that |columns| outputs read.
  RowSize rowSizeOf(Dim columns) const;
  Dim bytesOf(RowSize row) const;
  /// Returns the positions of the input in a row.
  Dim inside() const { return max(0, min(s.w, used.width - s.padLeft)); }

  DepthwiseWindows shape; ///< windows per kernel row
  RowSize used{0, 0};
  int64_t pitch = 0;             ///< bytes from row to row in scratch
  int64_t rowsTogether = 1;      ///< output rows whose input is prepared together
  int64_t windowsPerResidue = 0; ///< windows from residue to residue
  int64_t stagingBytes = 0;      ///< bytes of a padded input row, staged before the rows in scratch

  // State of the current block.
  Value x, w, y, bias;
  SmallVector<Value> extras;
};

Depthwise8::RowSize Depthwise8::rowSizeOf(Dim columns) const {
  Dim reach = (columns - 1) * s.strideW;
  if (!windows) {
    return {reach + (s.kw - 1) * s.dilationW + 1, 0};
  }
  // The last window starts at the last output's even column; further ones follow at distances of four. With dilation,
  // each residue of the columns is a separate row.
  Dim last = floorDiv(floorDiv(reach, s.dilationW), 2) + 2 * (std::max(shape.count[0], shape.count[1]) - 1);
  return {(2 * last + 4) * s.dilationW, last + 1};
}

Dim Depthwise8::bytesOf(RowSize row) const {
  return windows ? row.windowsPerResidue * s.dilationW * kBlockBytes : row.width * kBlockBytes;
}

void Depthwise8::plan() {
  shape = depthwiseWindows(s.kw, s.strideW);
  used = rowSizeOf(s.ow);
  RowSize largest = rowSizeOf(maxOf(s.ow));
  windowsPerResidue = largest.windowsPerResidue.value();
  stagingBytes = windows ? ceilDiv(largest.width.value() * kBlock, 64) * 64 : 0;
  pitch = bytesOf(largest).value();
  // Keep some 24 KiB of rows, which stay in L1, but share the rows of tall (dilated) windows among enough outputs.
  int64_t likely = std::max<int64_t>(1, likelyOf(bytesOf(used))), extra = (s.kh - 1) * s.dilationH + 1 - s.strideH;
  int64_t close = (24 * 1024 / likely - extra) / s.strideH,
          shared = ceilDiv(3 * std::max<int64_t>(extra, 0), s.strideH);
  int64_t most = (256 * 1024 / likely - extra) / s.strideH;
  rowsTogether = std::clamp<int64_t>(std::min(std::max(close, shared), most), 1, std::max<int64_t>(1, likelyOf(s.oh)));
  int64_t rowsIn = (rowsTogether - 1) * s.strideH + (s.kh - 1) * s.dilationH + 1;
  kb.setScratchBytes(stagingBytes + rowsIn * pitch);
}

void Depthwise8::emit() {
  // As for f32, but with less work per tap.
  constexpr int64_t kTapsPerTile = 20'000;
  forRowsOfBlocks(kb, s, blocks, kTapsPerTile, [&](Value image, Value block, Value rowBegin, Value rowEnd) {
    int64_t tail = s.c % kBlock;
    Value cut = kb.constant(tail ? blocks - 1 : blocks);
    if (!tail || blocks > 1) {
      kb.ifThen(kb.less(block, cut), [&] { emitBlock(image, block, rowBegin, rowEnd, kBlock); });
    }
    if (tail) {
      kb.ifThen(kb.less(kb.constant(blocks - 2), block), [&] { emitBlock(image, block, rowBegin, rowEnd, tail); });
    }
  });
}

void Depthwise8::emitBlock(Value image, Value block, Value rowBegin, Value rowEnd, int64_t tail) {
  Value plane = kb.add(kb.mul(image, blocks), block);
  Dim planeElements = s.oh * s.ow * kBlock;
  int64_t weights = windows ? windowBytesOfBlock(s.kh, s.kw, s.strideW) : s.kh * s.kw * kBlockBytes;
  x = byteOffset(kb, kb.operand(0), kb.mul(plane, s.h * s.w * kBlock * s.xBytes));
  y = byteOffset(kb, kb.result(), kb.mul(plane, planeElements * s.yBytes));
  w = byteOffset(kb, kb.operand(1), kb.mul(block, weights));
  bias = op.getBias() ? byteOffset(kb, kb.operand(2), kb.mul(block, kBlockBytes)) : Value();
  extras.clear();
  for (auto [index, extra] : llvm::enumerate(extraKinds)) {
    Value pointer = kb.operand((bias ? 3 : 2) + index);
    Value element = extra.kind == ExtraKind::Full ? kb.mul(plane, planeElements) : kb.mul(block, kBlock);
    extras.push_back(extra.kind == ExtraKind::Scalar ? pointer
                                                     : byteOffset(kb, pointer, kb.mul(element, extra.elementBytes)));
  }
  kb.forLoop(rowBegin, rowEnd, rowsTogether, [&](Value first) {
    Value last = kb.min(rowEnd, kb.add(first, rowsTogether));
    Value rowsIn = kb.add(kb.mul(kb.sub(last, first), s.strideH), (s.kh - 1) * s.dilationH + 1 - s.strideH);
    prepareRows(kb.sub(kb.mul(first, s.strideH), kb.constant(s.padTop)), rowsIn);
    kb.forLoop(first, last, 1, [&](Value row) {
      Value at = kb.mul(kb.sub(row, first), s.strideH * pitch);
      emitRow(row, byteOffset(kb, byteOffset(kb, kb.scratch(), stagingBytes), at), tail);
    });
  });
}

//===----------------------------------------------------------------------===//
// Rows with borders
//===----------------------------------------------------------------------===//

/// Rewrites |rowsIn| input rows to scratch, from |firstRow| on (may be negative).
void Depthwise8::prepareRows(Value firstRow, Value rowsIn) {
  if (windows) {
    // The padding of the staged row is the same for all rows.
    auto value = static_cast<int8_t>(padValue());
    Dim end = s.padLeft + inside();
    fillBytes(kb, kb.scratch(), min(s.padLeft, used.width) * kBlock, value);
    fillBytes(kb, byteOffset(kb, kb.scratch(), end * kBlock), (used.width - end) * kBlock, value);
  }
  kb.forLoop(kb.constant(0), rowsIn, 1, [&](Value i) {
    Value row = kb.add(firstRow, i), to = byteOffset(kb, kb.scratch(), kb.add(kb.mul(i, pitch), stagingBytes));
    // The unsigned comparison also catches rows above the image.
    Value outside = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::uge, row, kb.index(s.h));
    kb.ifThen(outside, [&] { fillRow(to); });
    Value within = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, row, kb.index(s.h));
    kb.ifThen(within, [&] {
      Value from = byteOffset(kb, x, kb.mul(row, s.w * kBlock * s.xBytes));
      windows ? prepareWindows(from, to) : prepareLanes(from, to);
    });
  });
}

void Depthwise8::fillRow(Value to) {
  if (windows) {
    Dim bytes = s.dilationW == 1 ? bytesOf(used) : Dim(pitch);
    return fillBytes(kb, to, bytes, static_cast<int8_t>(padValue() ^ (isSigned ? 0x80 : 0)));
  }
  Value padding = lanesOf(padValue());
  kb.forLoop(0, bytesOf(used), targetOf(kb).vectorBytes(),
             [&](Value at) { kb.store(padding, byteOffset(kb, to, at), kb.constant(0)); });
}

/// Writes the windows of a row. Window j of residue r holds, channel by channel, the columns (2j .. 2j + 3) * dilation
/// + r of the row; signed bytes are stored as value + 128.
void Depthwise8::prepareWindows(Value from, Value to) {
  if (!inside().is(0)) {
    LLVM::MemcpyOp::create(kb.b, byteOffset(kb, kb.scratch(), s.padLeft * kBlock), from, kb.index(inside() * kBlock),
                           /*isVolatile=*/false);
  }
  auto bytes = VectorType::get({64}, kb.b.getI8Type()), dwords = VectorType::get({16}, kb.b.getI32Type());
  SmallVector<int64_t> byColumn; // dword 4 q + p: channels 4 q .. 4 q + 3 of column p
  SmallVector<int8_t> byChannel; // transposes the 4 x 4 bytes of each 128-bit lane
  for (int64_t i = 0; i < 16; ++i) {
    byColumn.push_back(i % 4 * 4 + i / 4);
  }
  for (int64_t i = 0; i < 64; ++i) {
    byChannel.push_back(i % 4 * 4 + i % 16 / 4);
  }
  Value picks = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(bytes, ArrayRef(byChannel)));
  auto loadColumns = [&](Value from) -> Value {
    if (s.dilationW == 1) {
      return kb.load(dwords, from, kb.constant(0), 1);
    }
    auto position = VectorType::get({4}, kb.b.getI32Type());
    SmallVector<Value> parts;
    for (int64_t i = 0; i < 4; ++i) {
      parts.push_back(kb.load(position, byteOffset(kb, from, i * s.dilationW * kBlock), kb.constant(0), 1));
    }
    auto join = [&](Value low, Value high) -> Value {
      SmallVector<int64_t> all(2 * cast<VectorType>(low.getType()).getNumElements());
      std::iota(all.begin(), all.end(), 0);
      return vector::ShuffleOp::create(kb.b, low, high, all);
    };
    return join(join(parts[0], parts[1]), join(parts[2], parts[3]));
  };
  auto makeWindow = [&](Value from, Value to) {
    Value columns = loadColumns(from);
    Value gathered = vector::ShuffleOp::create(kb.b, columns, columns, byColumn);
    Value value = LLVM::CallIntrinsicOp::create(kb.b, bytes, kb.b.getStringAttr("llvm.x86.avx512.pshuf.b.512"),
                                                ValueRange{vector::BitCastOp::create(kb.b, bytes, gathered), picks})
                      .getResult(0);
    if (isSigned) {
      value = arith::XOrIOp::create(kb.b, value, splatBytes(-128, 64));
    }
    kb.store(value, to, kb.constant(0));
  };
  kb.forLoop(0, s.dilationW, 1, [&](Value residue) {
    Value fromResidue = byteOffset(kb, kb.scratch(), kb.mul(residue, kBlock));
    Value toResidue = byteOffset(kb, to, kb.mul(residue, windowsPerResidue * kBlockBytes));
    kb.forLoop(0, used.windowsPerResidue, 1, [&](Value j) {
      makeWindow(byteOffset(kb, fromResidue, kb.mul(j, 2 * s.dilationW * kBlock)),
                 byteOffset(kb, toResidue, kb.mul(j, kBlockBytes)));
    });
  });
}

void Depthwise8::prepareLanes(Value from, Value to) {
  int64_t lanes = targetOf(kb).lanes(32);
  auto narrow = VectorType::get({lanes}, kb.b.getIntegerType(8 * s.xBytes));
  auto wide = VectorType::get({lanes}, kb.b.getI32Type());
  Value padding = lanesOf(padValue());
  auto pad = [&](Dim begin, Dim end) {
    kb.forLoop(begin * kBlockBytes, end * kBlockBytes, targetOf(kb).vectorBytes(),
               [&](Value at) { kb.store(padding, byteOffset(kb, to, at), kb.constant(0)); });
  };
  pad(0, min(s.padLeft, used.width));
  kb.forLoop(0, inside() * kBlock, lanes, [&](Value element) {
    Value stored = kb.load(narrow, byteOffset(kb, from, kb.mul(element, s.xBytes)), kb.constant(0));
    Value integer =
        isSigned ? Value(arith::ExtSIOp::create(kb.b, wide, stored)) : arith::ExtUIOp::create(kb.b, wide, stored);
    Value at = kb.mul(kb.add(element, s.padLeft * kBlock), 4);
    Value lane = words ? integer : arith::SIToFPOp::create(kb.b, laneType(), integer);
    kb.store(lane, byteOffset(kb, to, at), kb.constant(0));
  });
  pad(s.padLeft + inside(), used.width);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void Depthwise8::emitRow(Value row, Value scratchRow, int64_t tail) {
  if (!s.ow.isKnown()) {
    return forOpenTiles(kb, kb.constant(0), kb.index(s.ow), columnsPerTile,
                        [&](Value first, Value count, int64_t width) {
                          kb.forLoop(first, kb.add(first, kb.mul(count, width)), width,
                                     [&](Value column) { emitTile(row, scratchRow, column, width, tail); });
                        });
  }
  int64_t columns = s.ow.value(), whole = columns / columnsPerTile * columnsPerTile;
  kb.forLoop(0, whole, columnsPerTile, [&](Value column) { emitTile(row, scratchRow, column, columnsPerTile, tail); });
  if (whole < columns) {
    emitTile(row, scratchRow, kb.constant(whole), columns - whole, tail);
  }
}

/// Emits |width| positions from |column| on, which is a multiple of columnsPerTile, or even if dilationW is 1.
void Depthwise8::emitTile(Value row, Value scratchRow, Value column, int64_t width, int64_t tail) {
  // Every second column of each residue has a window; a tile of 16 columns covers equally many columns of each residue.
  int64_t step = windows ? kBlockBytes / 2 * s.strideW / s.dilationW : kBlockBytes * s.strideW;
  Value from = byteOffset(kb, scratchRow, kb.mul(column, step));
  SmallVector<Value> sums = windows ? sumWindows(from, width) : sumLanes(from, width);
  Value element = kb.mul(kb.add(kb.mul(row, s.ow), column), kBlock);
  SmallVector<Value> bases;
  for (auto [extra, pointer] : llvm::zip_equal(extraKinds, extras)) {
    bases.push_back(extra.kind == ExtraKind::Full ? byteOffset(kb, pointer, kb.mul(element, extra.elementBytes))
                                                  : pointer);
  }
  emitPositions(kb, op.getEpilogue(), extraKinds, bases, sums, {}, byteOffset(kb, y, kb.mul(element, s.yBytes)),
                s.yElement, tail);
}

SmallVector<Value> Depthwise8::sumWindows(Value from, int64_t width) {
  auto vector = VectorType::get({16}, kb.b.getI32Type());
  auto bytes = VectorType::get({64}, kb.b.getI8Type());
  Value zero = kb.constant(0);
  SmallVector<Value> sums(width, bias ? kb.load(vector, bias, zero) : kb.zero(vector));
  int64_t rowBytes = windowBytesOfBlock(1, s.kw, s.strideW);
  for (int64_t ky = 0; ky < s.kh; ++ky) {
    Value row = byteOffset(kb, from, ky * s.dilationH * pitch), weights = byteOffset(kb, w, ky * rowBytes);
    llvm::DenseMap<int64_t, Value> loaded, factors;
    auto load = [&](llvm::DenseMap<int64_t, Value> &known, Value base, int64_t index) {
      Value &value = known[index];
      if (!value) {
        value = kb.load(bytes, byteOffset(kb, base, index * kBlockBytes), zero);
      }
      return value;
    };
    for (int64_t column = 0; column < width; ++column) {
      int64_t x = column * s.strideW, start = x / s.dilationW, phase = start % 2;
      int64_t first = x % s.dilationW * windowsPerResidue + start / 2;
      for (int64_t i = 0; i < shape.count[phase]; ++i) {
        Value window = load(loaded, row, first + 2 * i);
        Value factor = load(factors, weights, (phase ? shape.count[0] : 0) + i);
        sums[column] = LLVM::CallIntrinsicOp::create(kb.b, vector, kb.b.getStringAttr("llvm.x86.avx512.vpdpbusd.512"),
                                                     ValueRange{sums[column], window, factor})
                           .getResult(0);
      }
    }
  }
  return sums;
}

/// Returns sum + value * weight. Both forms are exact: floats hold integers below 2^24.
Value Depthwise8::multiplyAdd(Value value, Value weight, Value sum) {
  if (!words) {
    return targetOf(kb).hasFma() ? Value(vector::FMAOp::create(kb.b, value, weight, sum))
                                 : arith::AddFOp::create(kb.b, sum, arith::MulFOp::create(kb.b, value, weight));
  }
  int64_t bytes = targetOf(kb).vectorBytes();
  const char *name = bytes == 64   ? "llvm.x86.avx512.pmaddw.d.512"
                     : bytes == 32 ? "llvm.x86.avx2.pmadd.wd"
                                   : "llvm.x86.sse2.pmadd.wd";
  auto halves = VectorType::get({bytes / 2}, kb.b.getI16Type());
  Value product = LLVM::CallIntrinsicOp::create(kb.b, laneType(), kb.b.getStringAttr(name),
                                                ValueRange{vector::BitCastOp::create(kb.b, halves, value),
                                                           vector::BitCastOp::create(kb.b, halves, weight)})
                      .getResult(0);
  return arith::AddIOp::create(kb.b, sum, product);
}

SmallVector<Value> Depthwise8::sumLanes(Value from, int64_t width) {
  int64_t lanes = targetOf(kb).lanes(32), parts = vectorsPerBlock(targetOf(kb)), bytes = targetOf(kb).vectorBytes();
  VectorType vector = laneType(), integers = VectorType::get({lanes}, kb.b.getI32Type());
  Value zero = kb.constant(0);
  SmallVector<Value> totals(width * parts, kb.zero(vector));
  auto addKernelRow = [&](Value ky, ValueRange before) {
    SmallVector<Value> sums(before);
    Value row = byteOffset(kb, from, kb.mul(ky, s.dilationH * pitch)),
          weights = byteOffset(kb, w, kb.mul(ky, s.kw * kBlockBytes));
    for (int64_t tap = 0; tap < s.kw; ++tap) {
      for (int64_t part = 0; part < parts; ++part) {
        Value weight = kb.load(vector, byteOffset(kb, weights, tap * kBlockBytes + part * bytes), zero);
        for (int64_t column = 0; column < width; ++column) {
          int64_t at = (column * s.strideW + tap * s.dilationW) * kBlockBytes + part * bytes;
          Value value = kb.load(vector, byteOffset(kb, row, at), zero);
          Value &sum = sums[column * parts + part];
          sum = multiplyAdd(value, weight, sum);
        }
      }
    }
    return sums;
  };
  if (s.kh <= 5) {
    for (int64_t ky = 0; ky < s.kh; ++ky) {
      totals = addKernelRow(kb.constant(ky), totals);
    }
  } else {
    totals = kb.forLoop(kb.constant(0), kb.constant(s.kh), 1, totals, addKernelRow);
  }
  SmallVector<Value> sums;
  for (auto [index, value] : llvm::enumerate(totals)) {
    Value sum = words ? value : arith::FPToSIOp::create(kb.b, integers, value);
    if (bias) {
      sum = arith::AddIOp::create(kb.b, sum, kb.load(integers, byteOffset(kb, bias, index % parts * bytes), zero));
    }
    sums.push_back(sum);
  }
  return sums;
}

} // namespace

LogicalResult emitDepthwise8(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  Depthwise8(op, kb, extras).emit();
  return success();
}

} // namespace tessera::x86
