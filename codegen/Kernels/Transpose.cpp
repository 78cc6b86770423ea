//===- Transpose.cpp - Copies of strided rectangles -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Transpose.h"

#include "codegen/Kernels/Interleave.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {

constexpr int64_t kElementsPerTile = 16384;

/// Returns the integer type of an element's size; copies use it so that no bit changes and f16 needs no conversion.
static Type storageType(KernelBuilder &kb, Type elementType) {
  return kb.b.getIntegerType(8 * device::elementBytes(elementType));
}

namespace {
/// Copies blocks of L x L elements through registers. Needs known sizes of two dims: in the source, rows are contiguous
/// along one dim of the nest (the "column" dim), in the result along the innermost dim.
class TransposeEmitter {
public:
  TransposeEmitter(KernelBuilder &kb, const LoopNest &nest, unsigned columnDim, Value from, Value to, Type storage)
      : kb(kb), nest(nest), columnDim(columnDim), from(from), to(to), storage(storage) {
    side = storage.getIntOrFloatBitWidth() > 32 ? 8 : 16;
    for (unsigned d = 0; d + 1 < nest.dims.size(); ++d) {
      if (d != columnDim) {
        outer.push_back(nest.dims[d]);
        space.push_back(nest.dims[d].size);
      }
    }
    // The dim with more blocks becomes the loop within a position, in runs of kRun blocks.
    alongInner = innerSize() >= columnSize();
    space.push_back(blocksOf(alongInner ? column() : inner()));
    runs = llvm::divideCeil(blocksOf(alongInner ? inner() : column()), kRun);
    space.push_back(runs);
    positions = multiply(space);
    int64_t elements = std::min<int64_t>(innerSize(), side) * std::min<int64_t>(columnSize(), side) *
                       std::min<int64_t>(kRun, blocksOf(alongInner ? inner() : column()));
    perTile = itemsPerTile(kb, positions, elements, kElementsPerTile);
  }

  Dim tiles() const { return ceilDiv(positions, perTile); }
  int64_t blockSide() const { return side; }

  void emitTile(Value tile) {
    Value first = kb.mul(tile, perTile);
    kb.forLoop(first, kb.min(kb.add(first, perTile), kb.index(positions)), 1, [&](Value position) {
      SmallVector<Value> at = delinearize(kb, position, space);
      Value run = at.pop_back_val(), block = at.pop_back_val();
      Value source = kb.index(nest.bases[0]), target = kb.index(nest.bases[1]);
      for (auto [dim, index] : llvm::zip_equal(outer, at)) {
        source = kb.add(source, kb.mul(index, dim.strides[0]));
        target = kb.add(target, kb.mul(index, dim.strides[1]));
      }
      byTail(block, alongInner ? column() : inner(),
             [&](int64_t fixedCount) { emitRun(source, target, block, run, fixedCount); });
    });
  }

private:
  static constexpr int64_t kRun = 16;

  const NestDim &inner() const { return nest.dims.back(); }
  const NestDim &column() const { return nest.dims[columnDim]; }
  int64_t innerSize() const { return inner().size.value(); }
  int64_t columnSize() const { return column().size.value(); }
  int64_t blocksOf(const NestDim &dim) const { return llvm::divideCeil(dim.size.value(), side); }

  /// Emits |body| for a whole block and separately for a smaller last block of |dim|, because sizes are static.
  void byTail(Value block, const NestDim &dim, function_ref<void(int64_t)> body) {
    int64_t whole = dim.size.value() / side, tail = dim.size.value() % side;
    if (whole) {
      tail ? kb.ifThen(kb.less(block, kb.constant(whole)), [&] { body(side); }) : body(side);
    }
    if (tail) {
      whole ? kb.ifThen(kb.less(kb.constant(whole - 1), block), [&] { body(tail); }) : body(tail);
    }
  }

  void emitRun(Value source, Value target, Value fixedBlock, Value run, int64_t fixedCount) {
    const NestDim &moving = alongInner ? inner() : column();
    int64_t whole = moving.size.value() / side, tail = moving.size.value() % side;
    auto at = [&](Value block, int64_t count) {
      Value innerBlock = alongInner ? block : fixedBlock, columnBlock = alongInner ? fixedBlock : block;
      auto offset = [&](Value base, unsigned t) {
        base = kb.add(base, kb.mul(kb.mul(innerBlock, side), inner().strides[t]));
        return kb.add(base, kb.mul(kb.mul(columnBlock, side), column().strides[t]));
      };
      emitBlock(offset(source, 0), offset(target, 1), alongInner ? count : fixedCount, alongInner ? fixedCount : count);
    };
    Value first = kb.mul(run, kRun), last = kb.min(kb.add(first, kRun), kb.constant(whole));
    kb.forLoop(first, last, 1, [&](Value block) { at(block, side); });
    if (tail) {
      Value isLast = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, run, kb.constant(runs - 1));
      kb.ifThen(isLast, [&] { at(kb.constant(whole), tail); });
    }
  }

  /// Transposes |rows| rows of the source (along the innermost dim of the nest) of |columns| elements each.
  void emitBlock(Value source, Value target, int64_t rows, int64_t columns) {
    auto vectorType = VectorType::get({side}, storage);
    Value loadMask = columns < side ? staticMask(columns) : Value();
    SmallVector<Value> vectors;
    for (int64_t r = 0; r < side; ++r) {
      vectors.push_back(r < rows
                            ? kb.loadElements(storage, side, from, kb.add(source, r * inner().strides[0]), loadMask)
                            : kb.zero(vectorType));
    }
    transpose(vectors);
    bool pad = nest.paddedLanes && rows < side;
    Value storeMask = rows < side && !pad ? staticMask(rows) : Value();
    for (int64_t c = 0; c < columns; ++c) {
      kb.storeElements(storage, vectors[c], to, kb.add(target, c * column().strides[1]), storeMask);
    }
  }

  Value staticMask(int64_t active) {
    SmallVector<bool> lanes(side);
    std::fill(lanes.begin(), lanes.begin() + active, true);
    auto type = VectorType::get({side}, kb.b.getI1Type());
    return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, ArrayRef<bool>(lanes)));
  }

  /// Transposes |vectors| by log2(side) rounds of interleaving vector i with vector i + side / 2.
  void transpose(SmallVector<Value> &vectors) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < side; ++i) {
      low.push_back(i / 2 + i % 2 * side);
      high.push_back(side / 2 + i / 2 + i % 2 * side);
    }
    for (int64_t round = 1; round < side; round *= 2) {
      SmallVector<Value> next;
      for (int64_t i = 0; i < side / 2; ++i) {
        next.push_back(vector::ShuffleOp::create(kb.b, vectors[i], vectors[i + side / 2], low));
        next.push_back(vector::ShuffleOp::create(kb.b, vectors[i], vectors[i + side / 2], high));
      }
      vectors = std::move(next);
    }
  }

  KernelBuilder &kb;
  LoopNest nest;
  unsigned columnDim;
  Value from, to;
  Type storage;
  int64_t side, perTile = 1, runs = 1;
  Dim positions = 1;
  bool alongInner;
  SmallVector<NestDim> outer;
  SmallVector<Dim> space;
};

/// Returns the dim along which the source is contiguous, if it is not the innermost dim and the rows are long enough
/// for a transposition to pay.
std::optional<unsigned> transposedDim(const LoopNest &nest) {
  const NestDim &inner = nest.dims.back();
  if (!inner.strides[1].is(1) || inner.strides[0].is(1) || inner.strides[0].is(0) || !inner.size.isKnown()) {
    return std::nullopt;
  }
  for (unsigned d = 0; d + 1 < nest.dims.size(); ++d) {
    const NestDim &dim = nest.dims[d];
    if (dim.strides[0].is(1) && dim.size.isKnown() && dim.size.value() >= 4 &&
        (inner.size.value() >= 4 || nest.paddedLanes)) {
      return d;
    }
  }
  return std::nullopt;
}
} // namespace

TiledMove planMove(KernelBuilder &kb, const LoopNest &nest, Value from, Value to, Type elementType) {
  Type storage = storageType(kb, elementType);
  if (std::optional<TiledMove> move = planInterleave(kb, nest, from, to, storage)) {
    return *move;
  }
  if (std::optional<unsigned> dim = transposedDim(nest); dim && !kb.target.tileIsThread) {
    auto emitter = std::make_shared<TransposeEmitter>(kb, nest, *dim, from, to, storage);
    if (!nest.paddedLanes || emitter->blockSide() == nest.paddedLanes) {
      return {emitter->tiles(), [emitter](Value tile) { emitter->emitTile(tile); }};
    }
  }
  unsigned lanes = std::min(64u, 2 * kb.target.lanes(storage.getIntOrFloatBitWidth()));
  const LoopNest cut = cutForTiles(kb, nest, lanes);
  Tiling tiling = chooseTiling(kb, cut, kElementsPerTile);
  return {tiling.tiles(), [=, &kb](Value tile) {
            emitVectorTile(kb, cut, lanes, tiling, tile,
                           {[&](unsigned, Dim stride, const VectorStep &step) {
                              return loadLanes(kb, storage, from, stride, step, step.offsets[0]);
                            },
                            [](ValueRange values, const VectorStep &) { return values[0]; },
                            [&](Value value, Dim stride, const VectorStep &step) {
                              storeLanes(kb, storage, value, to, stride, step, step.offsets.back());
                            }});
          }};
}

TiledMove planFill(KernelBuilder &kb, const LoopNest &nest, Value value, Value to, Type elementType) {
  unsigned lanes = 2 * kb.target.lanes(32);
  const LoopNest cut = cutForTiles(kb, nest, lanes);
  Tiling tiling = chooseTiling(kb, cut, kElementsPerTile);
  return {tiling.tiles(), [=, &kb](Value tile) {
            emitVectorTile(kb, cut, lanes, tiling, tile,
                           {nullptr, [&](ValueRange, const VectorStep &step) { return kb.splat(value, step.lanes); },
                            [&](Value vector, Dim stride, const VectorStep &step) {
                              storeLanes(kb, elementType, vector, to, stride, step, step.offsets.back());
                            }});
          }};
}

} // namespace tessera::kernels
