//===- LoopNest.cpp - Strided loops over tensors in memory ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/LoopNest.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {

Strides::Strides(RankedTensorType type) {
  if (device::BlockedAttr layout = device::getBlockedLayout(type)) {
    block = layout.getBlock();
  }
  dims.assign(type.getRank(), 0);
  Dim stride = block ? block : 1;
  for (int64_t d = type.getRank(); d-- > 0;) {
    dims[d] = stride;
    Dim size = Shape(type)[d];
    stride *= block && d == 1 ? ceilDiv(size, block) : size;
  }
}

unsigned channelLanes(const KernelBuilder &kb, RankedTensorType blocked) {
  constexpr int64_t kLanesOfThread = 4;
  int64_t block = Strides(blocked).block;
  return unsigned(kb.target.tileIsThread ? std::min(block, kLanesOfThread) : block);
}

Dim paddedChannels(RankedTensorType type) {
  int64_t block = Strides(type).block;
  Dim channels = Shape(type)[1];
  return block ? ceilDiv(channels, block) * block : channels;
}

Value Strides::offset(KernelBuilder &kb, ValueRange indices) const {
  Value sum = kb.constant(0);
  for (auto [d, index] : llvm::enumerate(indices)) {
    if (block && d == 1) {
      sum = kb.add(sum, kb.add(kb.mul(kb.div(index, block), dims[d]), kb.rem(index, block)));
    } else {
      sum = kb.add(sum, kb.mul(index, dims[d]));
    }
  }
  return sum;
}

Dim LoopNest::size() const {
  return multiply(llvm::map_to_vector(dims, [](const NestDim &dim) { return dim.size; }));
}

void LoopNest::simplify() {
  SmallVector<NestDim> joined;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    bool isPadded = paddedLanes && i + 1 == dims.size();
    if (dim.size.is(1) && !isPadded) {
      continue;
    }
    bool contiguous = !joined.empty() && !isPadded;
    if (contiguous) {
      for (auto [outer, inner] : llvm::zip_equal(joined.back().strides, dim.strides)) {
        contiguous &= sameSize(outer, inner * dim.size);
      }
    }
    if (contiguous) {
      joined.back().size *= dim.size;
      joined.back().strides = dim.strides;
    } else {
      joined.push_back(dim);
    }
  }
  if (joined.empty()) {
    joined.push_back({1, SmallVector<Dim, 4>(bases.size(), Dim(0))});
    joined.back().strides.back() = 1;
  }
  dims = std::move(joined);
}

//===----------------------------------------------------------------------===//
// Elementwise nests
//===----------------------------------------------------------------------===//

/// Returns the stride of |type| along dim |d| of a result of rank |rank|; 0 if |type| broadcasts along it.
static Dim broadcastStride(RankedTensorType type, const Strides &strides, int64_t d, int64_t rank) {
  int64_t own = d - (rank - type.getRank());
  return own < 0 || Shape(type)[own].is(1) ? Dim(0) : strides.dims[own];
}

bool broadcastsProvably(ArrayRef<RankedTensorType> operands, RankedTensorType result) {
  return llvm::all_of(operands, [&](RankedTensorType type) {
    int64_t missing = result.getRank() - type.getRank();
    return llvm::all_of(llvm::seq<int64_t>(0, type.getRank()), [&](int64_t d) {
      return Shape(type)[d].is(1) || sameSize(Shape(type)[d], Shape(result)[d + missing]);
    });
  });
}

static SmallVector<LoopNest> blockedNests(ArrayRef<RankedTensorType> tensors, ArrayRef<Strides> strides,
                                          int64_t block) {
  RankedTensorType result = tensors.back();
  int64_t rank = result.getRank(), channels = Shape(result)[1].value();
  auto dimOf = [&](Dim size, auto stride) {
    NestDim dim{size, {}};
    for (unsigned t = 0; t < tensors.size(); ++t) {
      dim.strides.push_back(stride(t));
    }
    return dim;
  };
  auto plain = [&](int64_t d) {
    return dimOf(Shape(result)[d], [&](unsigned t) { return broadcastStride(tensors[t], strides[t], d, rank); });
  };
  // From block to block, a row-major tensor advances by `block` channels; within a block, the lanes of a blocked tensor
  // have stride 1.
  auto blockStride = [&](unsigned t) {
    Dim stride = broadcastStride(tensors[t], strides[t], 1, rank);
    return strides[t].block ? stride : stride * block;
  };
  auto laneStride = [&](unsigned t) {
    Dim stride = broadcastStride(tensors[t], strides[t], 1, rank);
    // The result's lanes are distinct even if it has one channel; an operand's single channel broadcasts.
    bool isResult = t + 1 == tensors.size();
    return strides[t].block ? Dim(isResult || !stride.is(0)) : stride;
  };
  auto nestOf = [&](int64_t firstBlock, int64_t blocks, int64_t lanes) {
    LoopNest nest;
    NestDim lane = dimOf(lanes, laneStride);
    nest.dims = {plain(0), dimOf(blocks, blockStride)};
    if (!strides.back().block) {
      nest.dims.push_back(lane);
    }
    for (int64_t d = 2; d < rank; ++d) {
      nest.dims.push_back(plain(d));
    }
    if (strides.back().block) {
      nest.dims.push_back(lane);
      nest.paddedLanes = lanes < block ? block : 0;
    }
    for (unsigned t = 0; t < tensors.size(); ++t) {
      nest.bases.push_back(firstBlock * blockStride(t));
    }
    nest.simplify();
    return nest;
  };
  SmallVector<LoopNest> nests;
  if (channels >= block) {
    nests.push_back(nestOf(0, channels / block, block));
  }
  if (channels % block) {
    nests.push_back(nestOf(channels / block, 1, channels % block));
  }
  return nests;
}

SmallVector<LoopNest> elementwiseNests(ArrayRef<RankedTensorType> operands, RankedTensorType result) {
  SmallVector<RankedTensorType> tensors(operands);
  tensors.push_back(result);
  SmallVector<Strides> strides;
  int64_t block = 0;
  for (RankedTensorType type : tensors) {
    strides.emplace_back(type);
    block = std::max(block, strides.back().block);
  }
  if (block) {
    return blockedNests(tensors, strides, block);
  }
  LoopNest nest;
  for (int64_t d = 0; d < result.getRank(); ++d) {
    NestDim dim{Shape(result)[d], {}};
    for (unsigned t = 0; t < tensors.size(); ++t) {
      dim.strides.push_back(broadcastStride(tensors[t], strides[t], d, result.getRank()));
    }
    nest.dims.push_back(dim);
  }
  nest.bases.assign(tensors.size(), Dim(0));
  nest.simplify();
  return {nest};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LoopNest cutForTiles(const KernelBuilder &kb, const LoopNest &nest, int64_t lanes) {
  LoopNest cut = nest;
  // Padded lanes are written by one vector store and cannot be split.
  if (!kb.target.tileIsThread || nest.dims.empty() || nest.size().is(0) || nest.paddedLanes) {
    return cut;
  }
  Dim size = nest.dims.back().size;
  int64_t kept = size.isKnown() ? std::min(size.value(), lanes) : lanes;
  while (kept > 1 && !isMultipleOf(size, kept)) {
    --kept;
  }
  NestDim outer = nest.dims.back();
  outer.size = floorDiv(size, kept);
  for (Dim &stride : outer.strides) {
    stride *= kept;
  }
  cut.dims.back().size = kept;
  cut.dims.insert(cut.dims.end() - 1, outer);
  return cut;
}

Tiling chooseTiling(const KernelBuilder &kb, const LoopNest &nest, int64_t elementsPerTile, unsigned keepDims) {
  // More tiles only cost time; a handful or fewer would leave threads idle.
  constexpr int64_t maxTiles = 256;
  int64_t wanted = std::clamp<int64_t>(llvm::divideCeil(likelyOf(nest.size()), elementsPerTile), 1, maxTiles);
  Tiling tiling;
  if (kb.target.tileIsThread && !nest.size().is(0)) {
    while (tiling.outerDims + keepDims < nest.dims.size()) {
      tiling.positions *= nest.dims[tiling.outerDims++].size;
    }
    return tiling;
  }
  if (wanted == 1) {
    return tiling;
  }
  while (likelyOf(tiling.positions) < wanted && tiling.outerDims + keepDims < nest.dims.size()) {
    tiling.positions *= nest.dims[tiling.outerDims++].size;
  }
  if (tiling.outerDims == 0 && keepDims == 1) {
    // A single dim is split at multiples of 64 elements, which is a whole number of cache lines for any element type.
    tiling.splitInner = true;
    tiling.positions = nest.dims[0].size;
    tiling.chunk = llvm::alignTo(llvm::divideCeil(likelyOf(tiling.positions), wanted), 64);
    return tiling;
  }
  int64_t positions = likelyOf(tiling.positions);
  tiling.chunk = llvm::divideCeil(positions, std::min(wanted, positions));
  return tiling;
}

void emitTileKinds(KernelBuilder &kb, ArrayRef<Dim> counts, ArrayRef<std::function<void(Value)>> bodies) {
  Dim total = 0;
  for (Dim count : counts) {
    total += count;
  }
  kb.setTiles(total);
  Dim first = 0;
  for (auto [count, body] : llvm::zip_equal(counts, bodies)) {
    Value lower = kb.max(kb.tileBegin(), kb.index(first));
    Value upper = kb.min(kb.tileEnd(), kb.index(first + count));
    kb.forLoop(lower, upper, 1, [&, start = first, &emit = body](Value tile) { emit(kb.sub(tile, kb.index(start))); });
    first += count;
  }
}

SmallVector<Value> delinearize(KernelBuilder &kb, Value i, ArrayRef<Dim> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    indices[d] = d == 0 ? i : kb.rem(i, sizes[d]);
    if (d > 0) {
      i = kb.div(i, sizes[d]);
    }
  }
  return indices;
}

//===----------------------------------------------------------------------===//
// Vectors along the innermost dim
//===----------------------------------------------------------------------===//

unsigned VectorStep::alignment(Type element) const {
  auto bytes = static_cast<unsigned>(lanes * device::elementBytes(element));
  return aligned && !mask && llvm::isPowerOf2_32(bytes) ? bytes : 0;
}

/// Returns the vector of i64 with |stride| times the lane number in each lane.
static Value laneOffsets(KernelBuilder &kb, unsigned lanes, Dim stride) {
  SmallVector<int64_t> numbers;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    numbers.push_back(stride.isKnown() ? lane * stride.value() : lane);
  }
  auto type = VectorType::get({int64_t(lanes)}, kb.b.getI64Type());
  Value offsets = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(numbers)));
  return stride.isKnown() ? offsets : Value(arith::MulIOp::create(kb.b, offsets, kb.splat(kb.index(stride), lanes)));
}

Value loadLanes(KernelBuilder &kb, Type elementType, Value base, Dim laneStride, const VectorStep &step, Value offset) {
  if (laneStride.is(1)) {
    return kb.loadElements(elementType, step.lanes, base, offset, step.mask, step.alignment(elementType));
  }
  if (laneStride.is(0)) {
    return kb.splat(kb.loadElements(elementType, 0, base, offset), step.lanes);
  }
  if (laneStride.is(2) && !step.mask && step.lanes % 2 == 0) {
    // Two overlapping runs cover every element and nothing beyond the last one; they are cheaper than a gather.
    int64_t lanes = step.lanes;
    Value low = kb.loadElements(elementType, lanes, base, offset);
    Value high = kb.loadElements(elementType, lanes, base, kb.add(offset, lanes - 1));
    SmallVector<int64_t> picks;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      picks.push_back(2 * lane < lanes ? 2 * lane : 2 * lane + 1);
    }
    return vector::ShuffleOp::create(kb.b, low, high, picks);
  }
  Value offsets = laneOffsets(kb, step.lanes, laneStride);
  return kb.gatherElements(elementType, step.lanes, base, offset, offsets, step.mask);
}

void storeLanes(KernelBuilder &kb, Type elementType, Value value, Value base, Dim laneStride, const VectorStep &step,
                Value offset) {
  if (laneStride.is(1)) {
    return kb.storeElements(elementType, value, base, offset, step.mask, step.alignment(elementType));
  }
  for (unsigned lane = 0; lane < step.lanes; ++lane) {
    auto storeOne = [&] {
      Value element = vector::ExtractOp::create(kb.b, value, int64_t(lane));
      kb.storeElements(elementType, element, base, kb.add(offset, int64_t(lane) * laneStride));
    };
    if (!step.mask) {
      storeOne();
      continue;
    }
    kb.ifThen(vector::ExtractOp::create(kb.b, step.mask, int64_t(lane)), storeOne);
  }
}

namespace {
/// Emits the loops of one nest inside a tile.
class NestEmitter {
public:
  NestEmitter(KernelBuilder &kb, const LoopNest &nest, unsigned maxLanes, VectorBody body)
      : kb(kb), nest(nest), body(body), inner(nest.dims.back()) {
    reads = nest.bases.size() - 1;
    wholeInner = nest.paddedLanes || (inner.size.isKnown() && inner.size.value() <= maxLanes && nest.dims.size() > 1);
    lanes = nest.paddedLanes ? nest.paddedLanes : wholeInner ? llvm::PowerOf2Ceil(inner.size.value()) : maxLanes;
  }

  void emitTile(const Tiling &tiling, Value tile) {
    Value lower = kb.mul(tile, tiling.chunk);
    Value upper = kb.min(kb.add(lower, tiling.chunk), kb.index(tiling.positions));
    SmallVector<Value> offsets;
    for (Dim base : nest.bases) {
      offsets.push_back(kb.index(base));
    }
    if (tiling.splitInner) {
      return vectorLoop(offsets, lower, upper);
    }
    if (tiling.outerDims == 0) {
      return loops(0, offsets);
    }
    SmallVector<Dim> sizes;
    for (unsigned d = 0; d < tiling.outerDims; ++d) {
      sizes.push_back(nest.dims[d].size);
    }
    kb.forLoop(lower, upper, 1, [&](Value position) {
      SmallVector<Value> moved = offsets;
      for (auto [d, index] : llvm::enumerate(delinearize(kb, position, sizes))) {
        move(moved, nest.dims[d], index);
      }
      loops(tiling.outerDims, moved);
    });
  }

private:
  void move(SmallVector<Value> &offsets, const NestDim &dim, Value index) {
    for (auto [offset, stride] : llvm::zip_equal(offsets, dim.strides)) {
      offset = kb.add(offset, kb.mul(index, stride));
    }
  }

  /// Emits the loops over dims[d...]; the last one or two are vectorised.
  void loops(unsigned d, const SmallVector<Value> &offsets) {
    unsigned left = nest.dims.size() - d;
    if (wholeInner && left == 1) {
      return single(offsets);
    }
    if (wholeInner && left == 2) {
      return loopOverVectors(offsets, nest.dims[d]);
    }
    if (!wholeInner && left == 1) {
      return vectorLoop(offsets, kb.constant(0), kb.index(inner.size));
    }
    kb.forLoop(0, nest.dims[d].size, 1, [&](Value index) {
      SmallVector<Value> moved = offsets;
      move(moved, nest.dims[d], index);
      loops(d + 1, moved);
    });
  }

  VectorStep stepAt(const SmallVector<Value> &offsets, Value mask) {
    return {{offsets.begin(), offsets.end()}, mask, lanes};
  }

  Value staticMask(int64_t active) { return active < lanes ? kb.maskBelow(lanes, kb.constant(active)) : Value(); }

  /// Loads the tensors that do not move along |dim|; the entries of the other tensors stay null.
  SmallVector<Value> loadInvariant(const SmallVector<Value> &offsets, const NestDim &dim, Value mask) {
    SmallVector<Value> values(reads);
    for (unsigned t = 0; t < reads; ++t) {
      if (dim.strides[t].is(0)) {
        values[t] = body.load(t, inner.strides[t], stepAt(offsets, mask));
      }
    }
    return values;
  }

  void computeAndStore(SmallVector<Value> values, const SmallVector<Value> &offsets, Value mask) {
    VectorStep step = stepAt(offsets, mask);
    for (unsigned t = 0; t < reads; ++t) {
      if (!values[t]) {
        values[t] = body.load(t, inner.strides[t], step);
      }
    }
    Value result = body.compute(values, step);
    if (nest.paddedLanes && mask) {
      result = arith::SelectOp::create(kb.b, mask, result, kb.zero(result.getType()));
      step.mask = nullptr;
    }
    body.store(result, inner.strides.back(), step);
  }

  /// Emits a nest without other loops whose innermost dim fits one vector.
  void single(const SmallVector<Value> &offsets) {
    computeAndStore(SmallVector<Value>(reads), offsets, staticMask(inner.size.value()));
  }

  /// Emits the loop over |dim| if the innermost dim fits one vector.
  void loopOverVectors(const SmallVector<Value> &offsets, const NestDim &dim) {
    Value mask = staticMask(inner.size.value());
    SmallVector<Value> invariant = loadInvariant(offsets, dim, mask);
    kb.forLoop(0, dim.size, 1, [&](Value index) {
      SmallVector<Value> moved = offsets;
      move(moved, dim, index);
      computeAndStore(invariant, moved, mask);
    });
  }

  /// Emits elements [lower, upper) of the innermost dim: whole vectors, then one masked vector.
  void vectorLoop(const SmallVector<Value> &offsets, Value lower, Value upper) {
    SmallVector<Value> invariant = loadInvariant(offsets, inner, nullptr);
    // |lower| is a multiple of the lanes, so the whole vectors end here.
    Value wholeEnd = kb.mul(kb.div(upper, lanes), lanes);
    auto at = [&](Value index) {
      SmallVector<Value> moved = offsets;
      move(moved, inner, index);
      return moved;
    };
    kb.forLoop(lower, wholeEnd, lanes, [&](Value index) { computeAndStore(invariant, at(index), nullptr); });
    Value rest = kb.sub(upper, wholeEnd);
    kb.ifThen(kb.less(kb.constant(0), rest),
              [&] { computeAndStore(invariant, at(wholeEnd), kb.maskBelow(lanes, rest)); });
  }

  KernelBuilder &kb;
  const LoopNest &nest;
  VectorBody body;
  const NestDim &inner;
  unsigned reads;
  bool wholeInner; ///< one vector covers the innermost dim
  unsigned lanes;
};
} // namespace

void emitVectorTile(KernelBuilder &kb, const LoopNest &nest, unsigned lanes, const Tiling &tiling, Value tile,
                    VectorBody body) {
  NestEmitter(kb, nest, lanes, body).emitTile(tiling, tile);
}

void emitVectorNests(KernelBuilder &kb, ArrayRef<LoopNest> nests, unsigned lanes, int64_t elementsPerTile,
                     VectorBody body) {
  SmallVector<Dim> counts;
  SmallVector<std::function<void(Value)>> bodies;
  for (const LoopNest &nest : nests) {
    const LoopNest cut = cutForTiles(kb, nest, lanes);
    Tiling tiling = chooseTiling(kb, cut, elementsPerTile);
    counts.push_back(tiling.tiles());
    bodies.push_back(
        [&kb, cut, lanes, body, tiling](Value tile) { emitVectorTile(kb, cut, lanes, tiling, tile, body); });
  }
  emitTileKinds(kb, counts, bodies);
}

} // namespace tessera::kernels
