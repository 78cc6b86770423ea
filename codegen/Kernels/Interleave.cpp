//===- Interleave.cpp - Between planes and packed pixels ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Interleave.h"

#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kElementsPerTile = 16384, kMostPlanes = 4;

/// Moves a vector of each plane to as many vectors of packed pixels, or back, by shuffles in registers.
class InterleaveEmitter {
public:
  /// |pixel|, |plane|: the dims of |nest| along which a plane is contiguous, and from plane to plane. |packs|: the
  /// result is packed, else the source is.
  InterleaveEmitter(KernelBuilder &kb, const LoopNest &nest, unsigned pixel, unsigned plane, bool packs, Value from,
                    Value to, Type storage)
      : kb(kb), nest(nest), pixels(nest.dims[pixel]), planes(nest.dims[plane]), packs(packs), from(from), to(to),
        storage(storage), lanes(storage.getIntOrFloatBitWidth() > 32 ? 8 : 16) {
    for (unsigned d = 0; d < nest.dims.size(); ++d) {
      if (d != pixel && d != plane) {
        outer.push_back(nest.dims[d]);
        space.push_back(nest.dims[d].size);
      }
    }
    blocks = llvm::divideCeil(pixels.size.value(), lanes), planeCount = planes.size.value();
    space.push_back(int64_t(llvm::divideCeil(blocks, kRun)));
    perTile = itemsPerTile(kb, multiply(space), planeCount * lanes * std::min(blocks, kRun), kElementsPerTile);
  }

  Dim tiles() const { return ceilDiv(multiply(space), perTile); }

  void emitTile(Value tile) {
    Value first = kb.mul(tile, perTile);
    kb.forLoop(first, kb.min(kb.add(first, perTile), kb.index(multiply(space))), 1, [&](Value position) {
      SmallVector<Value> at = delinearize(kb, position, space);
      Value run = at.pop_back_val(), source = kb.index(nest.bases[0]), target = kb.index(nest.bases[1]);
      for (auto [dim, index] : llvm::zip_equal(outer, at)) {
        source = kb.add(source, kb.mul(index, dim.strides[0]));
        target = kb.add(target, kb.mul(index, dim.strides[1]));
      }
      emitRun(source, target, kb.mul(run, kRun));
    });
  }

private:
  static constexpr int64_t kRun = 64; ///< blocks of pixels that are an item

  /// Blocks [|first|, |first| + kRun) as far as there are any; the last one may be smaller.
  void emitRun(Value source, Value target, Value first) {
    int64_t whole = pixels.size.value() / lanes, tail = pixels.size.value() % lanes;
    auto at = [&](Value block, int64_t count) {
      Value pixel = kb.mul(block, lanes);
      emitBlock(kb.add(source, kb.mul(pixel, pixels.strides[0])), kb.add(target, kb.mul(pixel, pixels.strides[1])),
                count);
    };
    Value last = kb.add(first, kRun);
    kb.forLoop(first, kb.min(last, kb.constant(whole)), 1, [&](Value block) { at(block, lanes); });
    if (tail) {
      kb.ifThen(kb.less(kb.constant(whole), last), [&] { at(kb.constant(whole), tail); });
    }
  }

  /// |count| pixels.
  void emitBlock(Value source, Value target, int64_t count) {
    SmallVector<Value> loaded, stored;
    for (int64_t v = 0; v < planeCount; ++v) {
      loaded.push_back(kb.loadElements(storage, lanes, from, offsetOf(source, 0, v, !packs), mask(v, !packs, count)));
    }
    for (int64_t v = 0; v < planeCount; ++v) {
      SmallVector<std::pair<int64_t, int64_t>> origins; // vector and lane of each lane
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t packed = packs ? v * lanes + lane : lane * planeCount + v;
        origins.push_back(packs ? std::pair(packed % planeCount, packed / planeCount)
                                : std::pair(packed / lanes, packed % lanes));
      }
      stored.push_back(pick(loaded, origins));
    }
    for (int64_t v = 0; v < planeCount; ++v) {
      kb.storeElements(storage, stored[v], to, offsetOf(target, 1, v, packs), mask(v, packs, count));
    }
  }

  /// Where the |v|th vector of a block of tensor |t| begins.
  Value offsetOf(Value base, unsigned t, int64_t v, bool isPacked) {
    return kb.add(base, isPacked ? Dim(v * lanes) : v * planes.strides[t]);
  }

  /// The lanes of the |v|th vector that |count| pixels fill; null: all.
  Value mask(int64_t v, bool isPacked, int64_t count) {
    int64_t filled = isPacked ? std::clamp<int64_t>(count * planeCount - v * lanes, 0, lanes) : count;
    return filled == lanes ? Value() : kb.maskBelow(lanes, kb.constant(filled));
  }

  /// A vector whose lanes are those of |origins|, put together from one vector after the other.
  Value pick(ArrayRef<Value> vectors, ArrayRef<std::pair<int64_t, int64_t>> origins) {
    Value result = vectors[0];
    for (int64_t next = 1; next < int64_t(vectors.size()); ++next) {
      SmallVector<int64_t> order;
      for (auto [lane, origin] : llvm::enumerate(origins)) {
        auto [vector, from] = origin;
        bool isPlaced = vector < next && next > 1; // by a shuffle before this one
        order.push_back(vector == next ? lanes + from : isPlaced || vector > next ? int64_t(lane) : from);
      }
      result = vector::ShuffleOp::create(kb.b, result, vectors[next], order);
    }
    return result;
  }

  KernelBuilder &kb;
  LoopNest nest;
  NestDim pixels, planes;
  bool packs;
  Value from, to;
  Type storage;
  int64_t lanes, blocks, planeCount, perTile;
  SmallVector<NestDim> outer;
  SmallVector<Dim> space;
};

} // namespace

std::optional<TiledMove> planInterleave(KernelBuilder &kb, const LoopNest &nest, Value from, Value to, Type storage) {
  if (kb.target.tileIsThread || nest.paddedLanes) {
    return std::nullopt;
  }
  // The packed tensor has planes one apart and pixels as many apart as there are planes; the other one has pixels one
  // apart.
  for (unsigned plane = 0; plane < nest.dims.size(); ++plane) {
    for (unsigned pixel = 0; pixel < nest.dims.size(); ++pixel) {
      const NestDim &c = nest.dims[plane], &p = nest.dims[pixel];
      if (plane == pixel || !c.size.isKnown() || !p.size.isKnown() || c.size.value() < 2 ||
          c.size.value() > kMostPlanes || p.size.value() < 16) {
        continue;
      }
      for (unsigned packed : {0u, 1u}) {
        if (c.strides[packed].is(1) && sameSize(p.strides[packed], c.size) && p.strides[1 - packed].is(1)) {
          auto emitter = std::make_shared<InterleaveEmitter>(kb, nest, pixel, plane, packed == 1, from, to, storage);
          return TiledMove{emitter->tiles(), [emitter](Value tile) { emitter->emitTile(tile); }};
        }
      }
    }
  }
  return std::nullopt;
}

} // namespace tessera::kernels
