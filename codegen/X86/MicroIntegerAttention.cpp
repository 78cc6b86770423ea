//===- MicroIntegerAttention.cpp - Attention of bytes on register tiles ---===//
// SPDX-License-Identifier: Apache-2.0
//
// A launch tile is a range of rows of q with one k and v. It packs k and v with four numbers of a sum per K step: as
// bytes for VNNI and AMX, else as 16-bit words. Then it iterates over its rows, one register tile at a time: sums q k,
// softmax powers rounded to bytes, sums of powers times v, and the results. VNNI multiplies q + 128; 128 times the sums
// of k is subtracted again. AMX multiplies q as it is; its sums have whole chunks of 64 numbers, padded with zeros in k
// and v.
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Requantise.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Transpose.h"
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/QueryTiles.h"
#include "codegen/X86/RoundedPower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

class MicroIntegerAttention {
public:
  explicit MicroIntegerAttention(const AttentionShape &shape)
      : kb(shape.kb), s(shape), vnni(targetOf(kb).vnni), chunk(hasAmxRows(shape) ? kMostChunk : 0),
        flips(vnni && !chunk), step(vnni ? PackedStep::i8x4 : PackedStep::i16x4), stepBytes(stepBytesOfB(step)),
        panelBlocks(targetOf(kb).hasMasks() ? 2 : 1), lanes(2 * targetOf(kb).lanes(32)),
        depthSteps(stepsOf(s.depth).value()), keySteps(stepsOf(s.keys)),
        keysPadded(tessera::ceilDiv(s.keys, panelBlocks * kBlock) * (panelBlocks * kBlock)),
        featuresPadded(llvm::alignTo(s.features, panelBlocks * kBlock)),
        // With a stride of whole pages, all rows would share the same cache sets.
        scoreStride(llvm::alignTo(maxOf(keysPadded), lanes) + kBlock),
        powerStride(llvm::alignTo(maxOf(s.keys), lanes) + 64),
        rows(s, chunk ? kAmxTileRows : maxTileRows(targetOf(kb), panelBlocks)),
        tiles(kb, noEpilogue, {}, TileFunctions::Bias::None) {}

  void emit();

private:
  Dim stepsOf(Dim numbers) const {
    Dim steps = tessera::ceilDiv(numbers, 4);
    return chunk ? Dim(llvm::alignTo(steps.value(), chunk / 4)) : steps;
  }
  void layOutScratch();
  void packKeys(Value from);
  void packValues(Value from);
  void storeStep(Value bytes, Value to, Value index);
  void correct();
  void emitRows(Value first, Value count);
  void copyQueries(Value first, Value count);
  void multiply(TileKind kind, Value a, int64_t aStride, Dim steps, Value b, int64_t columns, Value c, int64_t cStride,
                int64_t count);
  Value score(Value row, Value base, Value i, Value mask);
  void softmax(Value row, Value base, Value to, Value factor);
  void exactPowers(Value base, Value best, Value to, Value factor);
  Value nearPowers(Value base, Value best, Value to, Value factor);
  void storeRow(Value row, Value from, Value factor);
  Value words(Value base, Value index) { return kb.element(kb.b.getI32Type(), base, index); }
  Value words(Value base, int64_t index) { return words(base, kb.constant(index)); }
  VectorType floats() { return VectorType::get({int64_t(lanes)}, kb.b.getF32Type()); }
  VectorType integers() { return VectorType::get({int64_t(lanes)}, kb.b.getI32Type()); }
  void clear(Value to, Dim bytes, int8_t value = 0) {
    Value byte = LLVM::ConstantOp::create(kb.b, kb.b.getI8Type(), kb.b.getI8IntegerAttr(value));
    LLVM::MemsetOp::create(kb.b, to, byte, kb.index(bytes), /*isVolatile=*/false);
  }

  KernelBuilder &kb;
  AttentionShape s;
  bool vnni;
  int64_t chunk; ///< bytes of K that AMX tiles multiply at a time; 0: vector instructions multiply
  bool flips;    ///< q is multiplied as q + 128
  PackedStep step;
  int64_t stepBytes; ///< bytes of one K step of a block of columns
  int64_t panelBlocks;
  unsigned lanes;
  int64_t depthSteps;
  Dim keySteps, keysPadded;
  int64_t featuresPadded, scoreStride, powerStride;
  QueryTiles rows;
  Region noEpilogue;
  TileFunctions tiles;
  // State of the current launch tile.
  SmallVector<Value> at;  ///< batch indices
  Value query, result;    ///< offsets of the matrices, in elements
  Value keys, values;     ///< scratch: panels
  Value raw, corrections; ///< scratch: keys as bytes, before widening to words; 128 times the sum of each key
  Value queries, scores, powers, sums, factors; ///< scratch: data of the rows of one register tile
};

void MicroIntegerAttention::layOutScratch() {
  int64_t most = rows.mostRows(), mostKeys = maxOf(keysPadded), bytes = 0;
  auto take = [&](int64_t size) {
    Value place = byteOffset(kb, kb.scratch(), bytes);
    bytes += llvm::alignTo(size, 64);
    return place;
  };
  keys = take(mostKeys / kBlock * depthSteps * stepBytes);
  values = take(featuresPadded / kBlock * maxOf(keySteps) * stepBytes);
  raw = vnni ? keys : take(mostKeys * depthSteps * 4);
  corrections = take(mostKeys * 4 + 64);
  queries = take(most * depthSteps * 4);
  scores = take(most * scoreStride * 4);
  powers = take(most * powerStride);
  sums = take(most * featuresPadded * 4 + 64);
  factors = take(most * 4);
  kb.setScratchBytes(bytes);
}

void MicroIntegerAttention::emit() {
  SmallVector<Dim> space = rows.space();
  layOutScratch();
  kb.forTiles(kernels::multiply(space), [&](Value tile) {
    if (chunk) {
      emitTileConfig(kb, std::min(s.queries.value(), kWindowRows), chunk);
    }
    at = delinearize(kb, tile, space);
    Value part = at.pop_back_val();
    query = s.matrixBase(s.q, at), result = s.matrixBase(s.y, at);
    packKeys(byteOffset(kb, kb.operand(1), s.matrixBase(s.k, at)));
    packValues(byteOffset(kb, kb.operand(2), s.matrixBase(s.v, at)));
    if (flips) {
      correct();
    }
    rows.forGroups(part, [&](Value first, Value count) { emitRows(first, count); });
    if (chunk) {
      emitTileRelease(kb);
    }
  });
}

/// Stores one K step of a block whose bytes are given as i32 |bytes|: unchanged, or as words, even bytes before odd
/// ones.
void MicroIntegerAttention::storeStep(Value bytes, Value to, Value index) {
  Value place = byteOffset(kb, to, kb.mul(index, stepBytes));
  if (vnni) {
    return kb.store(bytes, place, kb.constant(0));
  }
  auto halves = VectorType::get({2 * kBlock}, kb.b.getI16Type());
  Value pairs = vector::BitCastOp::create(kb.b, halves, bytes);
  Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(halves, int16_t(8)));
  Value even = arith::ShRSIOp::create(kb.b, arith::ShLIOp::create(kb.b, pairs, eight), eight);
  kb.store(even, place, kb.constant(0));
  kb.store(arith::ShRSIOp::create(kb.b, pairs, eight), byteOffset(kb, place, kBlockBytes), kb.constant(0));
}

/// Packs keys[panel][step][key][4] = from[first key of the panel + key][4 step ...]; missing numbers are zero.
void MicroIntegerAttention::packKeys(Value from) {
  int64_t width = panelBlocks * kBlock, stride = s.k.rowStride();
  Dim whole = floorDiv(s.keys, width), tail = mod(s.keys, width);
  if (!sameSize(s.keys, keysPadded) || s.depth != depthSteps * 4) {
    clear(raw, keysPadded * (depthSteps * 4));
  }
  if (s.depth % 4 == 0 && s.k.begin(4)) {
    const KeyPanels panels{kb, width, s.depth / 4, depthSteps, stride / 4, kb.b.getI32Type(), from, raw};
    panels.packWhole(whole);
    panels.packTail(whole, tail);
  } else {
    Type byte = kb.b.getI8Type();
    kb.forLoop(0, s.keys, 1, [&](Value key) {
      Value panel = kb.mul(kb.div(key, width), width * depthSteps * 4), column = kb.mul(kb.rem(key, width), 4);
      kb.forLoop(0, s.depth, 1, [&](Value e) {
        Value to = kb.add(kb.add(panel, column), kb.add(kb.mul(kb.div(e, 4), width * 4), kb.rem(e, 4)));
        kb.store(kb.load(byte, from, kb.add(kb.mul(key, stride), e)), raw, to);
      });
    });
  }
  if (!vnni) {
    auto block = VectorType::get({kBlock}, kb.b.getI32Type());
    kb.forLoop(0, floorDiv(keysPadded, kBlock) * depthSteps, 1,
               [&](Value i) { storeStep(kb.load(block, raw, kb.mul(i, kBlock)), keys, i); });
  }
}

/// Packs values[panel][step][feature][4] = from[4 step ...][first feature of the panel + feature]; missing ones are
/// zero.
void MicroIntegerAttention::packValues(Value from) {
  auto bytes = VectorType::get({kBlock}, kb.b.getI8Type()), block = VectorType::get({kBlock}, kb.b.getI32Type());
  for (int64_t first = 0; first < featuresPadded; first += kBlock) {
    int64_t count = std::clamp<int64_t>(s.features - first, 0, kBlock), panel = first / kBlock / panelBlocks;
    auto pack = [&](Value at, Dim rowsOfStep) {
      SmallVector<Value> four;
      for (int64_t i = 0; i < 4; ++i) {
        Value offset = kb.add(kb.mul(kb.add(kb.mul(at, 4), i), s.v.rowStride()), first);
        Value mask = count < kBlock ? kb.maskBelow(kBlock, kb.constant(count)) : Value();
        if (!rowsOfStep.isKnown()) { // row i exists if there are more than i
          Value lanesLeft = kb.mul(kb.sub(kb.index(rowsOfStep), kb.constant(i)), kBlock);
          mask = kb.maskBelow(kBlock, kb.min(lanesLeft, kb.constant(count)));
        }
        bool exists = count && (!rowsOfStep.isKnown() || i < rowsOfStep.value());
        four.push_back(!exists ? kb.zero(bytes)
                       : mask  ? kb.maskedLoad(bytes, from, offset, mask)
                               : kb.load(bytes, from, offset));
      }
      Value all = interleave(kb, interleave(kb, four[0], four[2]), interleave(kb, four[1], four[3]));
      Value index = kb.add(kb.mul(at, panelBlocks), keySteps * (panel * panelBlocks) + first / kBlock % panelBlocks);
      storeStep(vector::BitCastOp::create(kb.b, block, all), values, index);
    };
    Dim whole = floorDiv(s.keys, 4), steps = tessera::ceilDiv(s.keys, 4);
    kb.forLoop(0, whole, 1, [&](Value at) { pack(at, 4); });
    kb.forLoop(whole, steps, 1, [&](Value at) { pack(at, mod(s.keys, 4)); });
    kb.forLoop(steps, keySteps, 1, [&](Value at) { pack(at, 0); });
  }
}

/// Computes 128 times the sum of each key, by multiplying with a row of 128.
void MicroIntegerAttention::correct() {
  clear(queries, depthSteps * 4, int8_t(-128));
  int64_t width = panelBlocks * kBlock;
  kb.forLoop(0, floorDiv(keysPadded, width), 1, [&](Value panel) {
    multiply(TileKind::U8, queries, 0, depthSteps,
             byteOffset(kb, keys, kb.mul(panel, panelBlocks * depthSteps * stepBytes)), panelBlocks,
             words(corrections, kb.mul(panel, width)), 0, 1);
  });
}

/// Computes c [count, blocks * 16] = a [count, steps] * b [steps, blocks * 16]; strides: bytes of a, 32-bit words of c.
void MicroIntegerAttention::multiply(TileKind kind, Value a, int64_t aStride, Dim steps, Value b, int64_t blocks,
                                     Value c, int64_t cStride, int64_t count) {
  TileShape shape;
  shape.kind = kind, shape.step = step, shape.blocks = blocks;
  shape.panelRowBytes = blocks * stepBytes, shape.groupBytes = 4 * kBlock;
  setSteps(shape, steps);
  if (chunk) {
    shape.groups = {{1, steps.value()}};
    shape.chunk = chunk, shape.rowStride = aStride, shape.windowRows = std::min(s.queries.value(), kWindowRows);
  }
  TileResult to;
  to.blocked = false;
  for (int64_t row = 0; row < count; ++row) {
    shape.rows.push_back(row * aStride);
    to.rows.push_back(row * cStride);
  }
  tiles.call(shape, to, {a, b, c, {}, {}, {}, shape.openSteps ? kb.index(steps) : Value(), {}, {}});
}

/// Copies |count| rows of q to scratch, contiguously; for VNNI as q + 128.
void MicroIntegerAttention::copyQueries(Value first, Value count) {
  kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
    Value from = byteOffset(kb, kb.operand(0), kb.add(query, kb.mul(kb.add(first, row), s.q.rowStride())));
    Value to = byteOffset(kb, queries, kb.mul(row, depthSteps * 4));
    if (flips) {
      flipBytes(kb, from, to, kb.constant(s.depth));
    } else {
      LLVM::MemcpyOp::create(kb.b, to, from, kb.constant(s.depth), /*isVolatile=*/false);
    }
  });
}

void MicroIntegerAttention::emitRows(Value first, Value count) {
  int64_t width = panelBlocks * kBlock;
  copyQueries(first, count);
  rows.forTiles(count, [&](Value row, int64_t rowsOfTile) {
    kb.forLoop(0, floorDiv(keysPadded, width), 1, [&](Value panel) {
      multiply(flips ? TileKind::U8 : TileKind::S8, byteOffset(kb, queries, kb.mul(row, depthSteps * 4)),
               depthSteps * 4, depthSteps, byteOffset(kb, keys, kb.mul(panel, panelBlocks * depthSteps * stepBytes)),
               panelBlocks, words(scores, kb.add(kb.mul(row, scoreStride), kb.mul(panel, width))), scoreStride,
               rowsOfTile);
    });
  });
  kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
    softmax(kb.add(first, row), kb.mul(row, scoreStride), byteOffset(kb, powers, kb.mul(row, powerStride)),
            words(factors, row));
  });
  rows.forTiles(count, [&](Value row, int64_t rowsOfTile) {
    kb.forLoop(0, featuresPadded / width, 1, [&](Value panel) {
      multiply(TileKind::U8, byteOffset(kb, powers, kb.mul(row, powerStride)), powerStride, keySteps,
               byteOffset(kb, values, kb.mul(panel, keySteps * (panelBlocks * stepBytes))), panelBlocks,
               words(sums, kb.add(kb.mul(row, featuresPadded), kb.mul(panel, width))), featuresPadded, rowsOfTile);
    });
  });
  kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
    storeRow(kb.add(first, row), words(sums, kb.mul(row, featuresPadded)), words(factors, row));
  });
}

/// Returns the scores of keys |i|... of the row whose sums q k are at |base|.
Value MicroIntegerAttention::score(Value row, Value base, Value i, Value mask) {
  Value sum = kb.load(integers(), scores, kb.add(base, i));
  if (flips) {
    sum = arith::SubIOp::create(kb.b, sum, kb.load(integers(), corrections, i));
  }
  Value value = arith::MulFOp::create(kb.b, s.convert(sum, kb.b.getF32Type()), kb.floatConstant(floats(), s.scale));
  return s.isMasked ? Value(arith::AddFOp::create(kb.b, value, s.loadMask(at, row, i, lanes, mask))) : value;
}

/// Stores the rounded powers of the row whose sums are at |base|, and the factor of its row of the result.
void MicroIntegerAttention::softmax(Value row, Value base, Value to, Value factor) {
  Type f32 = kb.b.getF32Type();
  Value lowest = lowestValue(kb, f32, floats(), false);
  auto maximum = [&](Value a, Value b) { return emitExtremum(kb, f32, a, b, false); };
  Value best = overRow(kb, s.keys, lanes, lowest, [&](Value i, Value mask, ValueRange old) {
    Value value = score(row, base, i, mask);
    kb.store(value, scores, kb.add(base, i));
    return SmallVector<Value>{maximum(old[0], keepActive(kb, mask, value, lowest))};
  })[0];
  best = s.referenceOf(reduceLanes(kb, best, maximum));
  if (targetOf(kb).hasMasks()) {
    kb.ifThen(nearPowers(base, best, to, factor), [&] { exactPowers(base, best, to, factor); });
  } else {
    exactPowers(base, best, to, factor);
  }
}

/// Stores the rounded powers of the scores at |base| less |best| as bytes, and the factor, by the exact definition.
void MicroIntegerAttention::exactPowers(Value base, Value best, Value to, Value factor) {
  Value zeros = kb.zero(floats()), most = kb.splat(best, lanes);
  Value total = overRow(kb, s.keys, lanes, zeros, [&](Value i, Value mask, ValueRange old) {
    Value power = emitExpOfNegative(kb, arith::SubFOp::create(kb.b, kb.load(floats(), scores, kb.add(base, i)), most));
    power = keepActive(kb, mask, s.rounded(power), zeros);
    Value bytes = arith::TruncIOp::create(kb.b, VectorType::get({int64_t(lanes)}, kb.b.getI8Type()),
                                          s.convert(power, kb.b.getI32Type()));
    kb.store(bytes, to, i);
    return SmallVector<Value>{arith::AddFOp::create(kb.b, old[0], power)};
  })[0];
  total = reduceLanes(kb, total, [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); });
  kb.store(s.factorOf(total), factor, kb.constant(0));
}

/// As exactPowers(), but approximates the powers by a polynomial. Returns true (as i1) if a power lies so near the
/// middle of two integers that its byte may be wrong. NaN becomes 0.
Value MicroIntegerAttention::nearPowers(Value base, Value best, Value to, Value factor) {
  auto vector = VectorType::get({kBlock}, kb.b.getF32Type()), words = VectorType::get({kBlock}, kb.b.getI32Type());
  Value most = kb.splat(best, kBlock), zeros = kb.zero(vector);
  SmallVector<Value> all = overRow(
      kb, s.keys, kBlock, {kb.zero(words), zeros}, [&](Value i, Value mask, ValueRange old) -> SmallVector<Value> {
        Value score = kb.load(vector, scores, kb.add(base, i));
        Value power = emitNearPower(kb, arith::SubFOp::create(kb.b, score, most), s.levels);
        power = keepActive(kb, mask, power, zeros);
        Value integer = emitIntrinsic(kb, "llvm.lrint", words, power);
        kb.store(arith::TruncIOp::create(kb.b, VectorType::get({kBlock}, kb.b.getI8Type()), integer), to, i);
        return {arith::AddIOp::create(kb.b, old[0], integer), emitDistance(kb, power, old[1])};
      });
  Value total = reduceLanes(kb, all[0], [&](Value a, Value b) { return arith::AddIOp::create(kb.b, a, b); });
  kb.store(s.factorOf(s.convert(total, kb.b.getF32Type())), factor, kb.constant(0));
  Value zero = arith::ConstantOp::create(kb.b, kb.b.getI16IntegerAttr(0));
  return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, emitUnsure(kb, all[1], kPowerError), zero);
}

void MicroIntegerAttention::storeRow(Value row, Value from, Value factor) {
  Type f32 = kb.b.getF32Type();
  Value splat = kb.splat(kb.load(f32, factor, kb.constant(0)), lanes);
  Value base = kb.add(result, kb.mul(row, s.y.rowStride()));
  overRow(kb, s.features, lanes, [&](Value i, Value mask) {
    Value sum = s.convert(kb.load(integers(), from, i), f32);
    Value value = arith::MulFOp::create(kb.b, sum, splat);
    kb.storeElements(s.resultElement(), s.stored(value), kb.result(), kb.add(base, i), mask);
  });
}

} // namespace

void emitMicroIntegerAttention(const AttentionShape &shape) { MicroIntegerAttention(shape).emit(); }

} // namespace tessera::x86
