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
/// Copies blocks of L x L elements through registers. In the source, rows are contiguous along one dim of the nest (the
/// "column" dim), in the result along the innermost dim. The size of one of the two dims may be open.
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
    // The dim with more blocks, or with an open size, becomes the loop within a position, in runs of kRun blocks.
    Dim innerSize = inner().size, columnSize = column().size;
    alongInner = columnSize.isKnown() && (!innerSize.isKnown() || innerSize.value() >= columnSize.value());
    space.push_back(ceilDiv(fixed().size, side));
    Dim blocks = ceilDiv(moving().size, side);
    runs = ceilDiv(blocks, kRun);
    space.push_back(runs);
    positions = multiply(space);
    int64_t elements = std::min<int64_t>(likelyOf(innerSize), side) * std::min<int64_t>(likelyOf(columnSize), side) *
                       std::min<int64_t>(kRun, likelyOf(blocks));
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
      byTail(block, fixed().size.value(), [&](int64_t count) { emitRun(source, target, block, run, count); });
    });
  }

private:
  static constexpr int64_t kRun = 16;

  const NestDim &inner() const { return nest.dims.back(); }
  const NestDim &column() const { return nest.dims[columnDim]; }
  const NestDim &moving() const { return alongInner ? inner() : column(); }
  const NestDim &fixed() const { return alongInner ? column() : inner(); }

  /// The number of rows or columns of a block: |number|, or |value|, which is less than the side.
  struct Count {
    int64_t number;
    Value value = {};
  };

  /// Emits |body| for a whole block and separately for a smaller last block of a dim of |size| elements.
  void byTail(Value block, int64_t size, function_ref<void(int64_t)> body) {
    int64_t whole = size / side, tail = size % side;
    if (whole) {
      tail ? kb.ifThen(kb.less(block, kb.constant(whole)), [&] { body(side); }) : body(side);
    }
    if (tail) {
      whole ? kb.ifThen(kb.less(kb.constant(whole - 1), block), [&] { body(tail); }) : body(tail);
    }
  }

  void emitRun(Value source, Value target, Value fixedBlock, Value run, int64_t fixedCount) {
    Dim whole = floorDiv(moving().size, side);
    auto at = [&](Value block, Count count) {
      Value innerBlock = alongInner ? block : fixedBlock, columnBlock = alongInner ? fixedBlock : block;
      auto offset = [&](Value base, unsigned t) {
        base = kb.add(base, kb.mul(kb.mul(innerBlock, side), inner().strides[t]));
        return kb.add(base, kb.mul(kb.mul(columnBlock, side), column().strides[t]));
      };
      Count other{fixedCount};
      emitBlock(offset(source, 0), offset(target, 1), alongInner ? count : other, alongInner ? other : count);
    };
    Value first = kb.mul(run, kRun), last = kb.min(kb.add(first, kRun), kb.index(whole));
    kb.forLoop(first, last, 1, [&](Value block) { at(block, {side}); });
    if (isMultipleOf(moving().size, side)) {
      return;
    }
    const bool isOpen = !moving().size.isKnown();
    Count tail{isOpen ? 0 : moving().size.value() % side};
    Value isLast = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, run, kb.index(runs - 1));
    if (isOpen) {
      tail.value = kb.sub(kb.index(moving().size), kb.mul(kb.index(whole), side));
      isLast = arith::AndIOp::create(kb.b, isLast, kb.less(kb.constant(0), tail.value));
    }
    kb.ifThen(isLast, [&] { at(kb.index(whole), tail); });
  }

  /// Transposes |rows| rows of the source (along the innermost dim of the nest) of |columns| elements each.
  void emitBlock(Value source, Value target, Count rows, Count columns) {
    auto vectorType = VectorType::get({side}, storage);
    Value loadMask = lanesBelow(columns);
    SmallVector<Value> vectors;
    for (int64_t r = 0; r < side; ++r) {
      vectors.push_back(rows.value || r < rows.number
                            ? kb.loadElements(storage, side, from, kb.add(source, r * inner().strides[0]),
                                              maskWhere(r, rows, loadMask))
                            : kb.zero(vectorType));
    }
    transpose(vectors);
    bool pad = nest.paddedLanes && rows.number < side;
    Value storeMask = pad ? Value() : lanesBelow(rows);
    for (int64_t c = 0; c < (columns.value ? side : columns.number); ++c) {
      kb.storeElements(storage, vectors[c], to, kb.add(target, c * column().strides[1]),
                       maskWhere(c, columns, storeMask));
    }
  }

  /// Returns the mask of |count| lanes; null if these are all.
  Value lanesBelow(Count count) {
    if (count.value) {
      return kb.maskBelow(side, count.value);
    }
    return count.number < side ? staticMask(count.number) : Value();
  }

  /// Returns |mask| if index |i| is below |count|, otherwise a mask without lanes.
  Value maskWhere(int64_t i, Count count, Value mask) {
    if (!count.value) {
      return mask;
    }
    Value isBelow = kb.splat(kb.less(kb.constant(i), count.value), side);
    return mask ? Value(arith::AndIOp::create(kb.b, mask, isBelow)) : isBelow;
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
  int64_t side, perTile = 1;
  Dim positions = 1, runs = 1;
  bool alongInner;
  SmallVector<NestDim> outer;
  SmallVector<Dim> space;
};

/// Returns the dim along which the source is contiguous, if it is not the innermost dim, one of the two has a known
/// size, and the rows are long enough for a transposition to pay.
std::optional<unsigned> transposedDim(const LoopNest &nest) {
  const NestDim &inner = nest.dims.back();
  if (!inner.strides[1].is(1) || inner.strides[0].is(1) || inner.strides[0].is(0) ||
      (nest.paddedLanes && !inner.size.isKnown())) {
    return std::nullopt;
  }
  for (unsigned d = 0; d + 1 < nest.dims.size(); ++d) {
    const NestDim &dim = nest.dims[d];
    if (dim.strides[0].is(1) && (dim.size.isKnown() || inner.size.isKnown()) && likelyOf(dim.size) >= 4 &&
        (likelyOf(inner.size) >= 4 || nest.paddedLanes)) {
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
