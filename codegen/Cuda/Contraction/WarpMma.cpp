//===- WarpMma.cpp - The multiplications of a warp ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/WarpMma.h"

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

WarpTile::WarpTile(TileAttr tile, const TiledContraction &contraction)
    : fragmentsM(tile.getRows() / tile.getWarpRows() / kFragmentRows),
      fragmentsN(tile.getColumns() / tile.getWarpColumns() / kFragmentColumns), usedM(fragmentsM), usedN(fragmentsN) {
  constexpr int64_t kMostJoined = 4;
  if (const int64_t rows = maxOf(contraction.rows); tile.getWarpRows() == 1 && rows <= tile.getRows()) {
    usedM = llvm::divideCeil(rows, kFragmentRows);
  }
  if (tile.getWarpColumns() == 1 && contraction.columns <= tile.getColumns()) {
    usedN = llvm::divideCeil(contraction.columns, kFragmentColumns);
  }
  for (int64_t first = 0; first < fragmentsN;) {
    int64_t end = first < usedN ? usedN : fragmentsN, count = kMostJoined;
    while (count > end - first) {
      count /= 2;
    }
    groups.push_back({first, count});
    first += count;
  }
}

Value WarpTile::columnAt(BlockBuilder &b, Value row) const {
  Value fragment = b.div(row, kFragmentColumns), column = b.rem(row, kFragmentColumns);
  auto placeIn = [&](int64_t count, Value first, Value next) {
    Value place = b.add(b.mul(b.div(column, 2), 2 * count), b.add(b.mul(next, 2), b.rem(column, 2)));
    return b.add(b.mul(first, kFragmentColumns), place);
  };
  int64_t count = groups.front().count;
  if (llvm::all_of(groups, [&](const Group &group) { return group.count == count; })) {
    return placeIn(count, b.mul(b.div(fragment, count), count), b.rem(fragment, count));
  }
  Value place; // the warp has all columns
  for (const Group &group : groups) {
    Value own = placeIn(group.count, b.constant(group.first), b.add(fragment, -group.first));
    place = place ? Value(arith::SelectOp::create(b.kb.b, b.less(fragment, group.first), place, own)) : own;
  }
  return place;
}

SmallVector<Value> WarpMma::multiply(Value base, ValueRange sums, int64_t bytes) {
  kernels::KernelBuilder &kb = b.kb;
  int64_t own = units(), whole = bytes / unitBytes, rest = bytes % unitBytes, warps = tile.getWarpK();
  Values next(sums);
  for (int64_t unit = 0; unit < own && unit < whole; ++unit) {
    // Only the first of the warps along K may have this unit.
    int64_t having = std::min<int64_t>(warps, llvm::divideCeil(whole - unit, own));
    auto add = [&] { return addUnit(base, unit, next, unitBytes); };
    next = having == warps ? add() : kb.ifElseAll(b.less(at.k, having), add, next);
  }
  if (rest) {
    auto add = [&] { return addUnit(base, whole % own, next, rest); };
    next = warps == 1 ? add() : kb.ifElseAll(b.equal(at.k, whole / own), add, next);
  }
  return next;
}

namespace {

/// Multiplies by mma.sync.
class OnTensorCores final : public WarpMma {
public:
  OnTensorCores(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at, SharedTile tileA,
                SharedTile tileB, Type elementA, Type elementB);

private:
  Values addUnit(Value base, int64_t unit, ValueRange sums, int64_t bytes) override;
  std::array<Value, 4> load(Value address);

  Type elementA, elementB;
  SmallVector<Value> fragmentA, fragmentB; ///< offset of the first fragment in a stage, for each 32 bytes of K
};

/// Computes this thread's addresses for ldmatrix. A's matrices are rows 0-7 and 8-15 of the first 16 bytes, then of the
/// second 16; B's are both halves of columns 0-7, then of columns 8-15.
OnTensorCores::OnTensorCores(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at,
                             SharedTile tileA, SharedTile tileB, Type elementA, Type elementB)
    : WarpMma(b, tile, warp, at, /*unitBytes=*/32), elementA(elementA), elementB(elementB) {
  int64_t steps = units();
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

OnTensorCores::Values OnTensorCores::addUnit(Value base, int64_t unit, ValueRange sums, int64_t bytes) {
  Values next(sums);
  SmallVector<std::array<Value, 4>> left, right;
  Value baseA = b.at(base, fragmentA[unit]), baseB = b.at(base, fragmentB[unit]);
  for (int64_t m = 0; m < warp.usedM; ++m) {
    left.push_back(load(b.at(baseA, b.constant(m * kFragmentRows * tile.getKBytes()))));
  }
  for (int64_t n = 0; n < warp.usedN; n += 2) {
    right.push_back(load(b.at(baseB, b.constant(n * kFragmentColumns * tile.getKBytes()))));
  }
  // Half of the bytes are the matrices of the first 16 bytes.
  bool isHalf = bytes <= kChunk;
  for (int64_t m = 0; m < warp.usedM; ++m) {
    ArrayRef<Value> rows = ArrayRef(left[m]).take_front(isHalf ? 2 : 4);
    for (int64_t n = 0; n < warp.usedN; ++n) {
      ArrayRef<Value> columns = ArrayRef(right[n / 2]).slice(n % 2 * 2, isHalf ? 1 : 2);
      std::array<Value, 4> old;
      std::copy_n(next.begin() + warp.sumIndex(m, n, 0), 4, old.begin());
      llvm::copy(b.multiply(elementA, elementB, rows, columns, old), next.begin() + warp.sumIndex(m, n, 0));
    }
  }
  return next;
}

/// Multiplies by fused multiply-adds of f32. The eight rows of A that a warp reads at once do not share banks, nor do
/// the four columns of B; threads of the same row or column read the same bytes.
class OnCores final : public WarpMma {
public:
  OnCores(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at, SharedTile tileA,
          SharedTile tileB);

private:
  using Four = std::array<Value, 4>; ///< four neighbours along K

  Values addUnit(Value base, int64_t unit, ValueRange sums, int64_t bytes) override;
  Four load(Value base, Value offset, int64_t row);
  void addProducts(MutableArrayRef<Value> sums, int64_t m, int64_t half, const Four &row, ArrayRef<Four> columns);

  struct Chunk {
    Value row, columns[2]; ///< offsets of the thread's first row and first two columns in a stage
  };
  SmallVector<Chunk> chunks;
};

OnCores::OnCores(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at, SharedTile tileA,
                 SharedTile tileB)
    : WarpMma(b, tile, warp, at, /*unitBytes=*/kChunk) {
  int64_t count = units();
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

/// Loads from the row |row| rows below |offset|; |row| is a multiple of eight, after which the order of chunks repeats.
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

OnCores::Values OnCores::addUnit(Value base, int64_t unit, ValueRange sums, int64_t) {
  const Chunk &chunk = chunks[unit];
  Values next(sums);
  SmallVector<Four> columns;
  for (int64_t n = 0; n < warp.usedN; ++n) {
    for (Value offset : chunk.columns) {
      columns.push_back(load(base, offset, n * kFragmentColumns));
    }
  }
  for (int64_t m = 0; m < warp.usedM; ++m) {
    for (int64_t half = 0; half < 2; ++half) {
      addProducts(next, m, half, load(base, chunk.row, m * kFragmentRows + 8 * half), columns);
    }
  }
  return next;
}

} // namespace

std::unique_ptr<WarpMma> WarpMma::create(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at,
                                         SharedTile tileA, SharedTile tileB, Type elementA, Type elementB) {
  if (isOnTensorCores(b.kb.op(), tile)) {
    return std::make_unique<OnTensorCores>(b, tile, warp, at, tileA, tileB, elementA, elementB);
  }
  return std::make_unique<OnCores>(b, tile, warp, at, tileA, tileB);
}

} // namespace tessera::cuda
