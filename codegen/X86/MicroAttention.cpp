//===- MicroAttention.cpp - Attention on register tiles -------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A launch tile is a range of rows of q with one k and v. It packs k transposed into panels and then iterates over its
// rows, one register tile at a time: scores = q k^T, softmax without the final factor, y = scores v, and y times the
// factor. Few rows over an open number of keys read k and v as they are. For bf16, an element of the packed matrices
// and of q is a pair: two channels of q and k, two keys of v. The powers that softmax computes are rounded to bf16.
// With AMX, both contractions multiply chunks of the same number of bytes of K, so the tiles are configured only once.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/FewQueries.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/QueryTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Coefficients of the polynomial for 2^x on [-1/2, 1/2] with the least relative error (9e-8) that is 1 at 0.
constexpr double kPowerOfTwo[] = {1.326472614e-03, 9.671512739e-03, 5.550733747e-02,
                                  2.402224208e-01, 6.931469776e-01, 1.000000000e+00};

/// Returns the bytes of K that AMX tiles multiply at a time, which divide the rows of q and of the softmax results; 0
/// if vector instructions multiply.
int64_t chunkOf(const AttentionShape &shape) {
  int64_t bytes = shape.depth * 2;
  bool isBf16 = shape.kb.operandType(0).getElementType().isBF16();
  if (!isBf16 || !hasAmxRows(shape) || bytes % (kMostChunk / 2)) {
    return 0;
  }
  return bytes % kMostChunk ? kMostChunk / 2 : kMostChunk;
}

class MicroAttention {
public:
  explicit MicroAttention(const AttentionShape &shape)
      : kb(shape.kb), s(shape), pairs(kb.operandType(0).getElementType().isBF16()), chunk(chunkOf(shape)),
        depth(pairs ? shape.depth / 2 : shape.depth), keySteps(stepsOfKeys()),
        panelBlocks(targetOf(kb).hasMasks() ? 2 : 1), lanes(2 * targetOf(kb).lanes(32)),
        mostKeysPadded(llvm::alignTo(maxOf(s.keys), panelBlocks * kBlock)),
        // With a stride of whole pages, all rows would share the same cache sets.
        scoreStride(llvm::alignTo(mostKeysPadded, lanes) + kBlock), featuresPadded(llvm::alignTo(s.features, kBlock)),
        rows(s, chunk ? kAmxTileRows : maxTileRows(targetOf(kb), panelBlocks)), direct(s),
        isDirect(FewQueries::canServe(s)), isNarrow(!pairs && !kb.operandType(1).getElementType().isF32()),
        tiles(kb, noEpilogue, {}, TileFunctions::Bias::None) {}

  void emit();

private:
  Dim stepsOfKeys() const {
    Dim steps = pairs ? tessera::ceilDiv(s.keys, 2) : s.keys;
    return chunk ? Dim(llvm::alignTo(steps.value(), chunk / 4)) : steps;
  }
  void packKeys(Value from);
  void packValues(Value from);
  void packPairs(Value from);
  void widen(Value from, Type element, int64_t length, int64_t stride);
  Value rowOfFeatures(Value from, Value key, int64_t first, Type type);
  Value visibleKeys(Value first, Value count);
  SmallVector<Value> overKeys(ArrayRef<Value> carried,
                              function_ref<SmallVector<Value>(Value i, Value mask, ValueRange old)> body);
  void emitRows(Value first, Value count);
  void emitFewRows();
  int64_t scoreRows() const {
    return isDirect ? std::max(rows.mostRows(), direct.group() * FewQueries::kMostRows) : rows.mostRows();
  }
  void multiply(Value a, int64_t aStride, Dim steps, Value b, int64_t bStride, int64_t blocks, Value c, int64_t cStride,
                int64_t tailLanes, int64_t count, Value openSteps = {});
  Value score(Value row, Value base, Value i, Value mask);
  Value expOfNegative(Value x);
  void softmax(Value row, Value base, Value factor);
  void multiplyValues(Value row, int64_t count, Value y);
  void scaleResult(Value to, Value factor);
  Value floats(Value base, Value elements) { return kb.element(kb.b.getF32Type(), base, elements); }
  Value floats(Value base, int64_t elements) { return floats(base, kb.constant(elements)); }
  Value matrix(unsigned operand, const AttentionShape::Matrices &matrices) {
    return kb.element(kb.operandType(operand).getElementType(), kb.operand(operand), s.matrixBase(matrices, at));
  }
  VectorType vectorType() { return VectorType::get({int64_t(lanes)}, kb.b.getF32Type()); }

  KernelBuilder &kb;
  AttentionShape s;
  bool pairs;    ///< multiplies pairs of bf16
  int64_t chunk; ///< bytes of K that AMX tiles multiply at a time; 0: vector instructions multiply
  int64_t depth; ///< K steps of q k^T: one f32 or one pair each
  Dim keySteps;  ///< K steps of scores v
  int64_t panelBlocks;
  unsigned lanes;
  int64_t mostKeysPadded, scoreStride, featuresPadded;
  QueryTiles rows;
  FewQueries direct;
  bool isDirect; ///< few rows read k and v directly
  bool isNarrow; ///< q is f32, k and v are not
  Region noEpilogue;
  TileFunctions tiles;
  // State of the current launch tile.
  SmallVector<Value> at;                     ///< batch indices
  Value query, values, result;               ///< matrices
  Value packedKeys, packed, scores, factors; ///< scratch: panels of k, rows of v, scores of some rows and their factors
  Value visible;                             ///< number of keys that the current rows may see
};

void MicroAttention::emit() {
  SmallVector<Dim> space = rows.space();
  int64_t most = scoreRows();
  bool packsValues = pairs || isNarrow || s.features != featuresPadded;
  int64_t keyFloats = mostKeysPadded * depth, valueFloats = packsValues ? maxOf(keySteps) * featuresPadded : 0;
  if (isNarrow) { // k is widened there as well
    valueFloats = std::max(valueFloats, maxOf(s.keys) * depth);
  }
  kb.setScratchBytes(4 * (keyFloats + valueFloats + most * scoreStride + llvm::alignTo(most, kBlock)));
  packedKeys = kb.scratch();
  packed = floats(packedKeys, keyFloats);
  scores = floats(packed, valueFloats);
  factors = floats(scores, most * scoreStride);
  kb.forTiles(kernels::multiply(space), [&](Value tile) {
    if (chunk) {
      emitTileConfig(kb, std::min(s.queries.value(), kWindowRows), chunk);
    }
    at = delinearize(kb, tile, space);
    Value part = at.pop_back_val();
    query = matrix(0, s.q);
    values = matrix(2, s.v);
    result = floats(kb.result(), s.matrixBase(s.y, at));
    auto emitPart = [&] {
      if (isNarrow) {
        widen(matrix(1, s.k), kb.operandType(1).getElementType(), s.depth, s.depth);
        packKeys(packed);
        widen(values, kb.operandType(2).getElementType(), s.features, featuresPadded);
      } else {
        packKeys(matrix(1, s.k));
        packsValues ? pairs ? packPairs(values) : packValues(values) : void();
      }
      values = packsValues ? packed : values;
      rows.forGroups(part, [&](Value first, Value count) { emitRows(first, count); });
    };
    if (!isDirect) {
      emitPart();
    } else {
      Value isMany = kb.less(kb.constant(FewQueries::kMostRows), kb.index(s.queries));
      kb.ifThen(isMany, emitPart);
      // The tile of the first head computes the whole group.
      Value head = direct.group() > 1 ? at.back() : kb.constant(0),
            isFirst = kb.less(kb.add(head, part), kb.constant(1));
      kb.ifThen(kb.less(kb.index(s.queries), kb.constant(FewQueries::kMostRows + 1)),
                [&] { kb.ifThen(isFirst, [&] { emitFewRows(); }); });
    }
    if (chunk) {
      emitTileRelease(kb);
    }
  });
}

/// Packs packedKeys[panel][e][key] = from[first key of the panel + key][e]; missing keys are zero.
void MicroAttention::packKeys(Value from) {
  int64_t width = panelBlocks * kBlock;
  Dim whole = floorDiv(s.keys, width), tail = mod(s.keys, width);
  const KeyPanels panels{kb, width, depth, depth, depth, kb.b.getF32Type(), from, packedKeys};
  panels.packWhole(whole);
  auto packTail = [&] {
    Value zero = LLVM::ConstantOp::create(kb.b, kb.b.getI8Type(), kb.b.getI8IntegerAttr(0));
    LLVM::MemsetOp::create(kb.b, floats(packedKeys, kb.index(whole * (width * depth))), zero,
                           kb.constant(4 * width * depth), /*isVolatile=*/false);
    panels.packTail(whole, tail);
  };
  if (!tail.isKnown()) {
    kb.ifThen(kb.less(kb.constant(0), kb.index(tail)), packTail);
  } else if (!tail.is(0)) {
    packTail();
  }
}

/// Packs packed[key][feature] = from[key][feature], padded with zeros to whole blocks.
void MicroAttention::packValues(Value from) {
  auto block = VectorType::get({kBlock}, kb.b.getF32Type());
  kb.forLoop(0, s.keys, 1, [&](Value key) {
    for (int64_t first = 0; first < featuresPadded; first += kBlock) {
      int64_t count = std::min(kBlock, s.features - first);
      Value mask = count < kBlock ? kb.maskBelow(kBlock, kb.constant(count)) : Value();
      Value value = kb.loadElements(kb.b.getF32Type(), kBlock, from, kb.add(kb.mul(key, s.features), first), mask);
      if (mask) {
        value = keepActive(kb, mask, value, kb.zero(block));
      }
      kb.store(value, packed, kb.add(kb.mul(key, featuresPadded), first));
    }
  });
}

/// Stores the keys' rows of |length| |element|s at |from| to packed as f32, |stride| apart, padded with zeros.
void MicroAttention::widen(Value from, Type element, int64_t length, int64_t stride) {
  auto block = VectorType::get({kBlock}, kb.b.getF32Type());
  kb.forLoop(0, s.keys, 1, [&](Value key) {
    for (int64_t first = 0; first < length; first += kBlock) {
      int64_t count = std::min(kBlock, length - first);
      Value mask = count < kBlock ? kb.maskBelow(kBlock, kb.constant(count)) : Value();
      Value value = kb.loadElements(element, kBlock, from, kb.add(kb.mul(key, length), first), mask);
      value = mask ? keepActive(kb, mask, value, kb.zero(block)) : value;
      Value to = kb.add(kb.mul(key, stride), first);
      stride % kBlock ? kb.storeElements(kb.b.getF32Type(), value, packed, to, mask) : kb.store(value, packed, to);
    }
  });
}

/// Loads a block of row |key| of v as elements of |type|, from feature |first| on; missing features are zero.
Value MicroAttention::rowOfFeatures(Value from, Value key, int64_t first, Type type) {
  int64_t count = std::min(kBlock, s.features - first);
  auto vector = VectorType::get({kBlock}, type);
  Value at = kb.add(kb.mul(key, s.features), first);
  return count < kBlock ? kb.maskedLoad(vector, from, at, kb.maskBelow(kBlock, kb.constant(count)))
                        : kb.load(vector, from, at);
}

/// Packs packed[key / 2][feature] = the bf16 of two keys, with zeros up to whole blocks and behind the last key.
void MicroAttention::packPairs(Value from) {
  auto wide = VectorType::get({kBlock}, kb.b.getI32Type());
  auto pack = [&](Value pair, bool isWhole) {
    for (int64_t first = 0; first < featuresPadded; first += kBlock) {
      auto row = [&](int64_t of) -> Value {
        Value half = rowOfFeatures(from, kb.add(kb.mul(pair, 2), of), first, kb.b.getI16Type());
        return arith::ExtUIOp::create(kb.b, wide, half);
      };
      Value value = row(0);
      if (isWhole) {
        Value bits = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(wide, int32_t(16)));
        value = arith::OrIOp::create(kb.b, value, arith::ShLIOp::create(kb.b, row(1), bits));
      }
      kb.store(value, packed, kb.add(kb.mul(pair, featuresPadded), first));
    }
  };
  Dim wholePairs = floorDiv(s.keys, 2), pairsOfKeys = tessera::ceilDiv(s.keys, 2);
  kb.forLoop(0, wholePairs, 1, [&](Value pair) { pack(pair, true); });
  kb.forLoop(wholePairs, pairsOfKeys, 1, [&](Value pair) { pack(pair, false); });
  kb.forLoop(pairsOfKeys * featuresPadded, keySteps * featuresPadded, kBlock,
             [&](Value at) { kb.store(kb.zero(wide), packed, at); });
}

/// Computes c [count, blocks * 16] = a [count, steps] * b [steps, blocks * 16]. Strides count 32-bit numbers. Only
/// |tailLanes| columns of the last block are written. |openSteps|: |steps| that are known at run time.
void MicroAttention::multiply(Value a, int64_t aStride, Dim steps, Value b, int64_t bStride, int64_t blocks, Value c,
                              int64_t cStride, int64_t tailLanes, int64_t count, Value openSteps) {
  TileShape shape;
  shape.kind = pairs ? TileKind::BF16 : TileKind::F32;
  shape.step = pairs ? PackedStep::bf16x2 : PackedStep::f32;
  shape.blocks = blocks;
  shape.panelRowBytes = 4 * bStride;
  shape.groupBytes = 4 * kBlock;
  setSteps(shape, steps);
  if (chunk) {
    shape.groups = {{1, steps.value()}};
    shape.chunk = chunk, shape.rowStride = aStride * 4, shape.windowRows = std::min(s.queries.value(), kWindowRows);
  }
  TileResult to;
  to.blocked = false;
  to.tailLanes = tailLanes;
  for (int64_t row = 0; row < count; ++row) {
    shape.rows.push_back(row * aStride * 4);
    to.rows.push_back(row * cStride);
  }
  tiles.call(shape, to, {a, b, c, {}, {}, {}, shape.openSteps ? openSteps : Value(), {}, {}});
}

/// Returns the number of keys up to the last one that the mask shows to some of |count| rows from |first| on, rounded
/// up to whole panels. The powers of the keys behind it are zero.
Value MicroAttention::visibleKeys(Value first, Value count) {
  Value keys = kb.index(s.keys), width = kb.constant(panelBlocks * kBlock);
  if (!s.isMasked || s.keys.isKnown()) {
    return keys;
  }
  Value hidden = kb.floatConstant(vectorType(), -std::numeric_limits<double>::infinity());
  Value end = kb.forLoop(kb.constant(0), count, 1, width, [&](Value row, ValueRange most) {
    return overRow(kb, s.keys, lanes, most[0], [&](Value i, Value active, ValueRange old) {
      Value mask = keepActive(kb, active, s.loadMask(at, kb.add(first, row), i, lanes, active), hidden);
      Value isVisible = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::UNE, mask, hidden);
      Value any = vector::ReductionOp::create(kb.b, vector::CombiningKind::OR, isVisible);
      Value last = arith::SelectOp::create(kb.b, any, kb.add(i, lanes), old[0]);
      return SmallVector<Value>{kb.max(old[0], last)};
    });
  })[0];
  return kb.min(keys, kb.mul(kb.div(kb.add(end, panelBlocks * kBlock - 1), panelBlocks * kBlock), width));
}

/// Iterates over the visible keys like overRow().
SmallVector<Value>
MicroAttention::overKeys(ArrayRef<Value> carried,
                         function_ref<SmallVector<Value>(Value i, Value mask, ValueRange old)> body) {
  if (s.keys.isKnown()) {
    return overRow(kb, s.keys, lanes, carried, body);
  }
  Value whole = kb.mul(kb.div(visible, lanes), lanes);
  SmallVector<Value> values =
      kb.forLoop(kb.constant(0), whole, lanes, carried, [&](Value i, ValueRange old) { return body(i, Value(), old); });
  return kb.ifElseAll(
      kb.less(whole, visible), [&] { return body(whole, kb.maskBelow(lanes, kb.sub(visible, whole)), values); },
      values);
}

void MicroAttention::emitRows(Value first, Value count) {
  int64_t width = panelBlocks * kBlock;
  visible = visibleKeys(first, count);
  Value a = floats(query, kb.mul(first, depth));
  rows.forTiles(count, [&](Value row, int64_t rowsOfTile) {
    kb.forLoop(kb.constant(0), kb.div(kb.add(visible, width - 1), width), 1, [&](Value panel) {
      Value to = kb.add(kb.mul(row, scoreStride), kb.mul(panel, width));
      multiply(floats(a, kb.mul(row, depth)), depth, depth, floats(packedKeys, kb.mul(panel, width * depth)), width,
               panelBlocks, floats(scores, to), scoreStride, kBlock, rowsOfTile);
    });
  });
  kb.forLoop(kb.constant(0), count, 1,
             [&](Value row) { softmax(kb.add(first, row), kb.mul(row, scoreStride), floats(factors, row)); });
  Value y = floats(result, kb.mul(first, s.features));
  rows.forTiles(count, [&](Value row, int64_t rowsOfTile) { multiplyValues(row, rowsOfTile, y); });
  kb.forLoop(kb.constant(0), count, 1,
             [&](Value row) { scaleResult(floats(y, kb.mul(row, s.features)), floats(factors, row)); });
}

/// Emits the few rows of a group of heads, from k and v as they are.
void MicroAttention::emitFewRows() {
  const int64_t group = direct.group();
  Value count = kb.index(s.queries);
  visible = kb.index(s.keys);
  auto forRows = [&](function_ref<void(Value row, Value number)> body) {
    kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
      kb.forLoop(kb.constant(0), kb.constant(group), 1, [&](Value head) {
        const SmallVector<Value> first = at;
        if (group > 1) {
          at.back() = head;
        }
        body(row, kb.add(kb.mul(row, group), head));
        at = first;
      });
    });
  };
  direct.multiplyKeys(query, count, matrix(1, s.k), scores, scoreStride);
  forRows([&](Value row, Value number) { softmax(row, kb.mul(number, scoreStride), floats(factors, number)); });
  direct.multiplyValues(scores, scoreStride, count, matrix(2, s.v), result);
  forRows([&](Value row, Value number) {
    Value to = kb.add(s.matrixBase(s.y, at), kb.mul(row, s.features));
    scaleResult(floats(kb.result(), to), floats(factors, number));
  });
}

/// Multiplies |count| rows of powers of the group, from |row| on, with v. |y|: the result of the group.
void MicroAttention::multiplyValues(Value row, int64_t count, Value y) {
  Value from = floats(scores, kb.mul(row, scoreStride)), to = kb.mul(row, s.features);
  Value steps = pairs ? kb.div(kb.add(visible, 1), 2) : visible;
  int64_t valueStride = featuresPadded; // equals the stride of v itself if v is not packed
  for (int64_t block = 0; block < featuresPadded / kBlock; block += panelBlocks) {
    int64_t blocks = std::min(panelBlocks, featuresPadded / kBlock - block);
    bool last = (block + blocks) * kBlock == featuresPadded;
    int64_t tail = last && s.features % kBlock ? s.features % kBlock : kBlock;
    multiply(from, scoreStride, keySteps, floats(values, block * kBlock), valueStride, blocks,
             floats(y, kb.add(to, block * kBlock)), s.features, tail, count, steps);
  }
}

/// Returns the scores of keys |i|... of the row whose products q k^T are at |base|.
Value MicroAttention::score(Value row, Value base, Value i, Value mask) {
  Value scale = kb.floatConstant(vectorType(), s.scale);
  Value value = arith::MulFOp::create(kb.b, kb.load(vectorType(), scores, kb.add(base, i)), scale);
  return s.isMasked ? Value(arith::AddFOp::create(kb.b, value, s.loadMask(at, row, i, lanes, mask))) : value;
}

/// Computes e^x for x <= 0 as 2^(x log2(e)), with a relative error of 2e-7 per 10 of |x|; 0 below the normal numbers.
/// NaN stays NaN. Takes two thirds of the operations of the shared exp, whose last bits all engines agree on.
Value MicroAttention::expOfNegative(Value x) {
  auto number = [&](double value) { return kb.floatConstant(vectorType(), value); };
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the lowest bits.
  Value log2e = number(llvm::numbers::log2e), shift = number(0x1.8p23);
  Value shifted = emitMultiplyAdd(kb, x, log2e, shift);
  Value rest = emitMultiplyAdd(kb, x, log2e, arith::SubFOp::create(kb.b, shift, shifted));
  Value power = number(kPowerOfTwo[0]);
  for (double coefficient : ArrayRef(kPowerOfTwo).drop_front()) {
    power = emitMultiplyAdd(kb, power, rest, number(coefficient));
  }
  auto words = VectorType::get({int64_t(lanes)}, kb.b.getI32Type());
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words, value));
  };
  Value bits = arith::ShLIOp::create(kb.b, arith::BitcastOp::create(kb.b, words, shifted), word(23));
  Value whole = arith::BitcastOp::create(kb.b, vectorType(), arith::AddIOp::create(kb.b, bits, word(0x3f800000)));
  Value isTiny = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OLT, x, number(-87.0));
  return arith::SelectOp::create(kb.b, isTiny, kb.zero(vectorType()), arith::MulFOp::create(kb.b, power, whole));
}

/// Replaces the dot products of q and k at |base| by e^(score - maximum), packed from the row's start on; stores 1 /
/// sum to |factor|.
void MicroAttention::softmax(Value row, Value base, Value factor) {
  Type f32 = kb.b.getF32Type();
  Value lowest = lowestValue(kb, f32, vectorType(), false), zeros = kb.zero(vectorType());
  auto maximum = [&](Value a, Value b) { return emitExtremum(kb, f32, a, b, false); };
  Value best = overKeys(lowest, [&](Value i, Value mask, ValueRange old) {
    return SmallVector<Value>{maximum(old[0], keepActive(kb, mask, score(row, base, i, mask), lowest))};
  })[0];
  best = kb.splat(s.referenceOf(reduceLanes(kb, best, maximum)), lanes);
  Value total = overKeys(zeros, [&](Value i, Value mask, ValueRange old) {
    Value power = expOfNegative(arith::SubFOp::create(kb.b, score(row, base, i, mask), best));
    power = keepActive(kb, mask, power, zeros);
    if (pairs) { // bf16 take half the space, so no product is overwritten before it is read
      kb.storeElements(kb.b.getBF16Type(), power, scores, kb.add(kb.mul(base, 2), i));
    } else {
      kb.store(power, scores, kb.add(base, i));
    }
    return SmallVector<Value>{arith::AddFOp::create(kb.b, old[0], power)};
  })[0];
  total = reduceLanes(kb, total, [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); });
  kb.store(s.factorOf(total), factor, kb.constant(0));
}

void MicroAttention::scaleResult(Value to, Value factor) {
  Type f32 = kb.b.getF32Type();
  Value splat = kb.splat(kb.load(f32, factor, kb.constant(0)), lanes);
  overRow(kb, s.features, lanes, [&](Value i, Value mask) {
    Value value = kb.loadElements(f32, lanes, to, i, mask);
    kb.storeElements(f32, arith::MulFOp::create(kb.b, value, splat), to, i, mask);
  });
}

} // namespace

void emitMicroAttention(const AttentionShape &shape) { MicroAttention(shape).emit(); }

} // namespace tessera::x86
