//===- FewQueries.cpp - Attention of few rows over a cache ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/FewQueries.h"

#include "codegen/Kernels/MathApprox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {

FewQueries::FewQueries(const kernels::AttentionShape &shape)
    : s(shape), kb(shape.kb), lanes(targetOf(kb).lanes(32)), vector(VectorType::get({lanes}, kb.b.getF32Type())) {}

bool FewQueries::canServe(const kernels::AttentionShape &shape) {
  constexpr int64_t kMostFeatures = 128; // their sums stay in registers
  return !shape.keys.isKnown() && shape.kb.operandType(0).getElementType().isF32() && shape.depth % kBlock == 0 &&
         shape.depth <= kMostFeatures && shape.features % kBlock == 0 && shape.features <= kMostFeatures;
}

Value FewQueries::loadPart(Value base, Value row, int64_t stride, int64_t part) const {
  return kb.load(vector, base, kb.add(kb.mul(row, stride), part * lanes));
}

/// Returns the products of the entries of |query| and a key, added up to one vector.
Value FewQueries::dot(ArrayRef<Value> query, Value keys, Value key) const {
  Value sum = kb.zero(vector);
  for (auto [part, factor] : llvm::enumerate(query)) {
    sum = emitMultiplyAdd(kb, factor, loadPart(keys, key, s.depth, int64_t(part)), sum);
  }
  return sum;
}

/// Returns a vector of the sums of all lanes of each of |vectors|. Each round adds the halves of the groups of lanes
/// that belong to one sum, and so fits the groups of two vectors into one.
Value FewQueries::sumsOfLanes(SmallVector<Value> vectors) const {
  for (int64_t group = lanes; group > 1; group /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t at = 0; at < 2 * lanes; at += group) {
      for (int64_t i = 0; i < group / 2; ++i) {
        low.push_back(at + i), high.push_back(at + group / 2 + i);
      }
    }
    SmallVector<Value> sums;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      Value a = vectors[i], b = vectors[i + 1];
      sums.push_back(arith::AddFOp::create(kb.b, vector::ShuffleOp::create(kb.b, a, b, low),
                                           vector::ShuffleOp::create(kb.b, a, b, high)));
    }
    vectors = std::move(sums);
  }
  return vectors.front();
}

void FewQueries::multiplyKeys(Value query, Value keys, Value scores) const {
  SmallVector<Value> parts;
  for (int64_t part = 0; part < s.depth / lanes; ++part) {
    parts.push_back(loadPart(query, kb.constant(0), 0, part));
  }
  auto storeScores = [&](Value first, function_ref<Value(int64_t)> keyAt) {
    SmallVector<Value> dots;
    for (int64_t i = 0; i < lanes; ++i) {
      dots.push_back(dot(parts, keys, keyAt(i)));
    }
    kb.store(sumsOfLanes(dots), scores, first);
  };
  Value count = kb.index(s.keys), whole = kb.mul(kb.div(count, lanes), lanes);
  kb.forLoop(kb.constant(0), whole, lanes,
             [&](Value first) { storeScores(first, [&](int64_t i) { return kb.add(first, i); }); });
  kb.ifThen(kb.less(whole, count), [&] { // lanes beyond the last key repeat it; their scores are not read
    storeScores(whole, [&](int64_t i) { return kb.min(kb.add(whole, i), kb.sub(count, kb.constant(1))); });
  });
}

void FewQueries::multiplyValues(Value powers, Value values, Value to) const {
  constexpr int64_t kKeysAtOnce = 2;
  const int64_t parts = s.features / lanes;
  auto addKeys = [&](Value from, Value end, int64_t keys, ValueRange sums) {
    return kb.forLoop(from, end, keys, sums, [&](Value first, ValueRange old) {
      SmallVector<Value> next(old);
      for (int64_t i = 0; i < keys; ++i) {
        Value key = kb.add(first, i), power = kb.splat(kb.load(kb.b.getF32Type(), powers, key), lanes);
        for (int64_t part = 0; part < parts; ++part) {
          Value &sum = next[i * parts + part];
          sum = emitMultiplyAdd(kb, power, loadPart(values, key, s.features, part), sum);
        }
      }
      return next;
    });
  };
  Value count = kb.index(s.keys), whole = kb.mul(kb.div(count, kKeysAtOnce), kKeysAtOnce);
  SmallVector<Value> sums(kKeysAtOnce * parts, kb.zero(vector));
  sums = addKeys(kb.constant(0), whole, kKeysAtOnce, sums);
  // The last of an odd number of keys is added where it would be with hidden keys after it, so these change no bit.
  SmallVector<Value> even = addKeys(whole, count, 1, ArrayRef(sums).take_front(parts));
  for (int64_t part = 0; part < parts; ++part) {
    kb.store(arith::AddFOp::create(kb.b, even[part], sums[parts + part]), to, kb.constant(part * lanes));
  }
}

} // namespace tessera::x86
