//===- FewQueries.cpp - Attention of few rows over a cache ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/FewQueries.h"

#include "codegen/Kernels/MathApprox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

FewQueries::FewQueries(const kernels::AttentionShape &shape)
    : s(shape), kb(shape.kb), lanes(targetOf(kb).lanes(32)), sums(targetOf(kb).hasMasks() ? 24 : 12),
      vector(VectorType::get({lanes}, kb.b.getF32Type())) {
  constexpr int64_t kMostHeads = 32; // each four heads have code of their own
  size_t rank = s.q.sizes.size();
  if (rank > 2 && s.q.sizes[rank - 3].isKnown() && s.k.sizes[rank - 3].is(1) && s.v.sizes[rank - 3].is(1) &&
      s.q.sizes[rank - 3].value() <= kMostHeads) {
    heads = s.q.sizes[rank - 3].value();
  }
}

bool FewQueries::canServe(const kernels::AttentionShape &shape) {
  constexpr int64_t kMostFeatures = 256;
  bool isFloat = shape.kb.operandType(0).getElementType().isF32();
  return !shape.keys.isKnown() && isFloat && shape.depth % kBlock == 0 && shape.depth <= kMostFeatures &&
         shape.features % kBlock == 0 && shape.features <= kMostFeatures;
}

//--- rows ---

/// Emits the parts of the group that share registers, up to four heads each, for each of |count| rows.
void FewQueries::forTiles(Value count, function_ref<void(Value row, int64_t head, int64_t heads)> body) const {
  const int64_t tiles = llvm::divideCeil(heads, 4);
  kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      int64_t head = tile * heads / tiles;
      body(row, head, (tile + 1) * heads / tiles - head);
    }
  });
}

/// Emits blocks of keys that stay in L1 for all rows.
void FewQueries::forKeys(function_ref<void(Value begin, Value end)> body) const {
  constexpr int64_t kKeysInCache = 64;
  kb.forLoop(kb.constant(0), kb.index(s.keys), kKeysInCache,
             [&](Value begin) { body(begin, kb.min(kb.add(begin, kKeysInCache), kb.index(s.keys))); });
}

FewQueries::Rows FewQueries::rowsOf(const kernels::AttentionShape::Matrices &matrices, Value base, Value row,
                                    int64_t head, int64_t heads) const {
  Rows rows;
  for (int64_t i = head; i < head + heads; ++i) {
    Value offset = kb.mul(row, matrices.strides.end()[-2]);
    rows.push_back(floats(base, i ? kb.add(offset, kb.index(matrices.strides.end()[-3] * i)) : offset));
  }
  return rows;
}

FewQueries::Rows FewQueries::numberedRows(Value base, int64_t stride, Value row, int64_t head, int64_t heads) const {
  Rows rows;
  for (int64_t i = head; i < head + heads; ++i) {
    rows.push_back(floats(base, kb.add(kb.mul(row, this->heads * stride), i * stride)));
  }
  return rows;
}

/// Returns vector |part| of a row of |element|s as f32.
Value FewQueries::loadPart(Type element, Value row, int64_t part) const {
  return kb.loadElements(element, unsigned(lanes), row, kb.constant(part * lanes));
}

//--- q k^T ---

/// Adds the halves of each group of |group| lanes, which belong to one sum; fits those of two vectors into one. A
/// single vector is repeated.
SmallVector<Value> FewQueries::addHalves(ArrayRef<Value> vectors, int64_t group) const {
  SmallVector<int64_t> low, high;
  for (int64_t at = 0; at < 2 * lanes; at += group) {
    for (int64_t i = 0; i < group / 2; ++i) {
      low.push_back(at + i), high.push_back(at + group / 2 + i);
    }
  }
  SmallVector<Value> added;
  for (size_t i = 0; i < vectors.size(); i += 2) {
    Value a = vectors[i], b = vectors[std::min(i + 1, vectors.size() - 1)];
    added.push_back(arith::AddFOp::create(kb.b, vector::ShuffleOp::create(kb.b, a, b, low),
                                          vector::ShuffleOp::create(kb.b, a, b, high)));
  }
  return added;
}

/// Stores the products of each of |queries| and |count| keys from |first| on. Keys beyond the last one repeat it; their
/// scores are not read.
void FewQueries::storeScores(ArrayRef<Value> queries, Value keys, Value first, int64_t count,
                             ArrayRef<Value> scores) const {
  const Type element = kb.operandType(1).getElementType(), f32 = kb.b.getF32Type();
  const size_t rows = queries.size();
  Value last = kb.sub(kb.index(s.keys), kb.constant(1));
  SmallVector<Value> keyRows;
  for (int64_t i = 0; i < count; ++i) {
    keyRows.push_back(kb.element(element, keys, kb.mul(kb.min(kb.add(first, i), last), s.depth)));
  }
  std::vector<SmallVector<Value>> dots(rows, SmallVector<Value>(count, kb.zero(vector)));
  for (int64_t part = 0; part < s.depth / lanes; ++part) {
    auto factors = llvm::map_to_vector(queries, [&](Value query) { return loadPart(f32, query, part); });
    for (auto [i, keyRow] : llvm::enumerate(keyRows)) {
      Value key = loadPart(element, keyRow, part);
      for (size_t row = 0; row < rows; ++row) {
        dots[row][i] = emitMultiplyAdd(kb, factors[row], key, dots[row][i]);
      }
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    SmallVector<Value> added = dots[row];
    for (int64_t group = lanes; group > 1; group /= 2) {
      added = addHalves(added, group);
    }
    Value products =
        vector::ShuffleOp::create(kb.b, added.front(), added.front(), llvm::to_vector(llvm::seq<int64_t>(0, count)));
    kb.store(products, scores[row], first);
  }
}

void FewQueries::multiplyKeys(Value queries, Value count, Value keys, Value scores, int64_t stride) const {
  forKeys([&](Value begin, Value end) {
    forTiles(count, [&](Value row, int64_t head, int64_t heads) {
      Rows of = rowsOf(s.q, queries, row, head, heads), to = numberedRows(scores, stride, row, head, heads);
      const int64_t keysAtOnce = std::min<int64_t>(lanes, llvm::bit_floor(uint64_t(sums / heads)));
      kb.forLoop(begin, end, keysAtOnce, [&](Value first) { storeScores(of, keys, first, keysAtOnce, to); });
    });
  });
}

//--- scores v ---

/// Adds the rows [|first|, |end|) of |values|, times the powers of each row, to the rows at |to|. Each element is one
/// sum in the order of the keys, so hidden keys, whose powers are zero, change no bit.
void FewQueries::addValues(ArrayRef<Value> powers, Value values, Value first, Value end, ArrayRef<Value> to) const {
  const Type element = kb.operandType(2).getElementType(), f32 = kb.b.getF32Type();
  const int64_t parts = s.features / lanes, rows = int64_t(powers.size());
  int64_t partsAtOnce = std::min(parts, sums / rows);
  while (parts % partsAtOnce) {
    --partsAtOnce;
  }
  for (int64_t begin = 0; begin < parts; begin += partsAtOnce) {
    SmallVector<Value> old;
    for (Value row : to) {
      for (int64_t part = begin; part < begin + partsAtOnce; ++part) {
        old.push_back(loadPart(f32, row, part));
      }
    }
    auto added = kb.forLoop(first, end, 1, old, [&](Value key, ValueRange carried) {
      SmallVector<Value> next(carried);
      auto factors = llvm::map_to_vector(powers, [&](Value row) { return kb.splat(kb.load(f32, row, key), lanes); });
      Value valueRow = kb.element(element, values, kb.mul(key, s.features));
      for (int64_t part = 0; part < partsAtOnce; ++part) {
        Value value = loadPart(element, valueRow, begin + part);
        for (int64_t row = 0; row < rows; ++row) {
          Value &sum = next[row * partsAtOnce + part];
          sum = emitMultiplyAdd(kb, factors[row], value, sum);
        }
      }
      return next;
    });
    for (auto [i, sum] : llvm::enumerate(added)) {
      kb.store(sum, to[i / partsAtOnce], kb.constant((begin + int64_t(i) % partsAtOnce) * lanes));
    }
  }
}

void FewQueries::multiplyValues(Value powers, int64_t stride, Value count, Value values, Value to) const {
  auto forResults = [&](function_ref<void(Value row, int64_t head, ArrayRef<Value> to)> body) {
    forTiles(count,
             [&](Value row, int64_t head, int64_t heads) { body(row, head, rowsOf(s.y, to, row, head, heads)); });
  };
  forResults([&](Value, int64_t, ArrayRef<Value> rows) {
    for (Value row : rows) {
      for (int64_t part = 0; part < s.features / lanes; ++part) {
        kb.store(kb.zero(vector), row, kb.constant(part * lanes));
      }
    }
  });
  forKeys([&](Value begin, Value end) {
    forResults([&](Value row, int64_t head, ArrayRef<Value> rows) {
      addValues(numberedRows(powers, stride, row, head, int64_t(rows.size())), values, begin, end, rows);
    });
  });
}

} // namespace tessera::x86
