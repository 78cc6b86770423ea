//===- WarpProduct.cpp - What a warp multiplies ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/WarpProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::cuda {

WarpPlace::WarpPlace(BlockBuilder &b, TileAttr tile) {
  constexpr int64_t kWarp = 32;
  Value warp = b.div(b.thread(), kWarp);
  lane = b.rem(b.thread(), kWarp);
  column = b.rem(warp, tile.getWarpColumns());
  row = b.rem(b.div(warp, tile.getWarpColumns()), tile.getWarpRows());
  k = b.div(warp, tile.getWarpColumns() * tile.getWarpRows());
}

namespace {

/// By mma.sync.
class OnTensorCores final : public WarpProduct {
public:
  OnTensorCores(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA, SharedTile tileB, Type elementA,
                Type elementB);

  SmallVector<Value> multiply(Value base, ValueRange sums) override;

private:
  std::array<Value, 4> load(Value address);

  Type elementA, elementB;
  SmallVector<Value> fragmentA, fragmentB; ///< offsets in a stage of the first fragment, for each 32 bytes of K
};

/// Where this thread's part of ldmatrix lies: A's matrices are (rows 0-7, 8-15) of the first 16 bytes, then of the
/// second; B's are both halves of columns 0-7, then of 8-15.
OnTensorCores::OnTensorCores(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA, SharedTile tileB,
                             Type elementA, Type elementB)
    : WarpProduct(b, tile), elementA(elementA), elementB(elementB) {
  constexpr int64_t kFragmentBytes = 32;
  int64_t steps = tile.getKBytes() / tile.getWarpK() / kFragmentBytes;
  Value within = b.rem(at.lane, 8), matrix = b.div(at.lane, 8);
  Value low = b.rem(matrix, 2), high = b.div(matrix, 2);
  Value rowA = b.add(b.mul(at.row, warp.fragmentsM * kFragmentRows), b.add(b.mul(low, 8), within));
  Value rowB = b.add(b.mul(at.column, warp.fragmentsN * kFragmentColumns), b.add(b.mul(high, 8), within));
  for (int64_t step = 0; step < steps; ++step) {
    Value chunk = b.add(b.mul(at.k, steps * 2), 2 * step);
    fragmentA.push_back(tileA.offset(b, rowA, b.add(chunk, high)));
    fragmentB.push_back(b.add(tileB.offset(b, rowB, b.add(chunk, low)), tileA.bytes()));
  }
}

std::array<Value, 4> OnTensorCores::load(Value address) {
  std::array<Value, 4> words = b.loadMatrices(address);
  if (elementA.isF32()) {
    llvm::for_each(words, [&](Value &word) { word = b.roundToTf32(word); });
  }
  return words;
}

SmallVector<Value> OnTensorCores::multiply(Value base, ValueRange sums) {
  SmallVector<Value> next(sums);
  for (auto [offsetA, offsetB] : llvm::zip_equal(fragmentA, fragmentB)) {
    SmallVector<std::array<Value, 4>> left, right;
    Value baseA = b.at(base, offsetA), baseB = b.at(base, offsetB);
    for (int64_t m = 0; m < warp.fragmentsM; ++m) {
      left.push_back(load(b.at(baseA, b.constant(m * kFragmentRows * tile.getKBytes()))));
    }
    for (int64_t n = 0; n < warp.fragmentsN; n += 2) {
      right.push_back(load(b.at(baseB, b.constant(n * kFragmentColumns * tile.getKBytes()))));
    }
    for (int64_t m = 0; m < warp.fragmentsM; ++m) {
      for (int64_t n = 0; n < warp.fragmentsN; ++n) {
        const std::array<Value, 4> &pair = right[n / 2];
        std::array<Value, 2> column{pair[n % 2 * 2], pair[n % 2 * 2 + 1]};
        std::array<Value, 4> old;
        std::copy_n(next.begin() + warp.sumIndex(m, n, 0), 4, old.begin());
        llvm::copy(b.multiply(elementA, elementB, left[m], column, old), next.begin() + warp.sumIndex(m, n, 0));
      }
    }
  }
  return next;
}

/// By fused multiply-adds of f32. Eight rows of A that a warp reads at once share no bank, nor do four columns of B;
/// threads of one row or column read the same bytes.
class OnCores final : public WarpProduct {
public:
  OnCores(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA, SharedTile tileB);

  SmallVector<Value> multiply(Value base, ValueRange sums) override;

private:
  using Four = std::array<Value, 4>; ///< neighbours along K

  Four load(Value base, Value offset, int64_t row);
  void addProducts(MutableArrayRef<Value> sums, int64_t m, int64_t half, const Four &row, ArrayRef<Four> columns);

  struct Chunk {
    Value row, columns[2]; ///< offsets in a stage of the thread's first row, and of its first two columns
  };
  SmallVector<Chunk> chunks;
};

OnCores::OnCores(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA, SharedTile tileB)
    : WarpProduct(b, tile) {
  int64_t count = tileA.chunks() / tile.getWarpK();
  Value row = b.add(b.mul(at.row, warp.fragmentsM * kFragmentRows), b.div(at.lane, 4));
  Value column = b.add(b.mul(at.column, warp.fragmentsN * kFragmentColumns), b.mul(b.rem(at.lane, 4), 2));
  for (int64_t i = 0; i < count; ++i) {
    Value chunk = b.add(b.mul(at.k, count), i);
    Chunk each{tileA.offset(b, row, chunk), {}};
    for (int64_t next = 0; next < 2; ++next) {
      each.columns[next] = b.add(tileB.offset(b, b.add(column, next), chunk), tileA.bytes());
    }
    chunks.push_back(each);
  }
}

/// |row| rows, a multiple of eight, below the one at |offset|: the order of chunks repeats with eight.
OnCores::Four OnCores::load(Value base, Value offset, int64_t row) {
  Value address = b.at(b.at(base, offset), b.constant(row * tile.getKBytes()));
  Value loaded = b.loadShared(VectorType::get({4}, b.kb.b.getF32Type()), address, kChunk);
  Four four;
  for (int64_t i = 0; i < 4; ++i) {
    four[i] = LLVM::ExtractElementOp::create(b.kb.b, loaded, b.constant(i));
  }
  return four;
}

void OnCores::addProducts(MutableArrayRef<Value> sums, int64_t m, int64_t half, const Four &row,
                          ArrayRef<Four> columns) {
  for (int64_t k = 0; k < 4; ++k) {
    for (auto [index, column] : llvm::enumerate(columns)) {
      Value &sum = sums[warp.sumIndex(m, int64_t(index) / 2, 2 * half + int64_t(index) % 2)];
      sum = math::FmaOp::create(b.kb.b, row[k], column[k], sum);
    }
  }
}

SmallVector<Value> OnCores::multiply(Value base, ValueRange sums) {
  SmallVector<Value> next(sums);
  for (const Chunk &chunk : chunks) {
    SmallVector<Four> columns;
    for (int64_t n = 0; n < warp.fragmentsN; ++n) {
      for (Value offset : chunk.columns) {
        columns.push_back(load(base, offset, n * kFragmentColumns));
      }
    }
    for (int64_t m = 0; m < warp.fragmentsM; ++m) {
      for (int64_t half = 0; half < 2; ++half) {
        addProducts(next, m, half, load(base, chunk.row, m * kFragmentRows + 8 * half), columns);
      }
    }
  }
  return next;
}

} // namespace

std::unique_ptr<WarpProduct> WarpProduct::create(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA,
                                                 SharedTile tileB, Type elementA, Type elementB) {
  if (isOnTensorCores(b.kb.op(), tile)) {
    return std::make_unique<OnTensorCores>(b, tile, at, tileA, tileB, elementA, elementB);
  }
  return std::make_unique<OnCores>(b, tile, at, tileA, tileB);
}

} // namespace tessera::cuda
