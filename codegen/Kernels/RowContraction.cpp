//===- RowContraction.cpp - Contractions of rows by rows ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/RowContraction.h"

#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::kernels {

/// Adds the two halves of each of |segments| segments of |first|; the sums for |second|, if any, follow those for
/// |first|.
static Value addHalves(KernelBuilder &kb, Value first, Value second, int64_t segments) {
  int64_t lanes = cast<VectorType>(first.getType()).getNumElements(), half = lanes / segments / 2;
  auto pick = [&](int64_t begin) {
    SmallVector<int64_t> order;
    for (int64_t source = 0; source < (second ? 2 : 1); ++source) {
      for (int64_t segment = 0; segment < segments; ++segment) {
        for (int64_t i = 0; i < half; ++i) {
          order.push_back(source * lanes + segment * 2 * half + begin + i);
        }
      }
    }
    return vector::ShuffleOp::create(kb.b, first, second ? second : first, order);
  };
  return arith::AddFOp::create(kb.b, pick(0), pick(half));
}

/// Returns, in one vector, the sum of the lanes of each of |vectors|, whose number is a power of two.
static Value sumsOfLanes(KernelBuilder &kb, SmallVector<Value> vectors) {
  int64_t count = vectors.size(), segments = 1;
  for (; vectors.size() > 1; segments *= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      next.push_back(addHalves(kb, vectors[i], vectors[i + 1], segments));
    }
    vectors = next;
  }
  Value sums = vectors.front();
  while (cast<VectorType>(sums.getType()).getNumElements() > count) {
    sums = addHalves(kb, sums, {}, count);
  }
  return sums;
}

SmallVector<Value> emitRowContraction(KernelBuilder &kb, Type element, const RowTile &tile, RowVectorFn left,
                                      RowVectorFn right) {
  auto type = VectorType::get({int64_t(tile.lanes)}, element);
  SmallVector<Value> sums(tile.left * tile.right, kb.zero(type));
  sums = overRow(kb, tile.depth, tile.lanes, sums, [&](Value i, Value mask, ValueRange old) {
    SmallVector<Value> factors, next;
    for (int64_t row = 0; row < tile.left; ++row) {
      factors.push_back(keepActive(kb, mask, left(row, i, mask), kb.zero(type)));
    }
    for (int64_t column = 0; column < tile.right; ++column) {
      Value factor = keepActive(kb, mask, right(column, i, mask), kb.zero(type));
      for (int64_t row = 0; row < tile.left; ++row) {
        next.push_back(emitMultiplyAdd(kb, factor, factors[row], old[column * tile.left + row]));
      }
    }
    return next;
  });
  SmallVector<Value> products;
  for (int64_t row = 0; row < tile.left; ++row) {
    SmallVector<Value> own;
    for (int64_t column = 0; column < tile.right; ++column) {
      own.push_back(sums[column * tile.left + row]);
    }
    products.push_back(sumsOfLanes(kb, own));
  }
  return products;
}

int64_t rightRows(int64_t count, unsigned lanes, int64_t most) {
  return int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(1, std::min({count, int64_t(lanes), most})))));
}

} // namespace tessera::kernels
