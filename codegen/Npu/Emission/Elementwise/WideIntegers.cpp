//===- WideIntegers.cpp - 64-bit integers on the NPU ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"

#include "codegen/Npu/Vector/Intervals.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using hw::Op;
using hw::Type;
namespace {

constexpr int32_t kBytes = 8;

/// Returns true if the elements of a row, with all of their parts, are contiguous in off-chip memory. Holds for single
/// elements.
bool isDense(const TileView &place) { return place.tensor.strides[3] == kBytes || place.dim(3) == 1; }

/// Returns the rows of a dense view as rows of parts.
TileView partsOfRows(TileView place) {
  int32_t size = int32_t(hw::sizeOf(place.tensor.type));
  place.shape.dims[3] *= uint32_t(kBytes / size);
  place.tensor.strides[3] = size;
  return place;
}

/// Returns the |k|-th part of each element. |rows| holds the parts of the rows of |of|.
TileView partOf(TileView rows, const TileView &of, uint32_t k) {
  rows.tensor.offset += k * hw::sizeOf(of.tensor.type);
  rows.tensor.strides[3] = kBytes;
  rows.shape = of.shape;
  return rows;
}

/// Returns the program that converts four parts of 16 bits, the lowest in register 0, to the nearest f32, rounded once.
/// The number is t * 2^39 + r * 2^16 + u, where t has 25 bits including the sign, r 23 and u 16. Up to 2^40, t and r
/// add up exactly, and u is added last. Beyond, half a unit in the last place is at least 2^16, so it only matters
/// whether u is 0; 2^15 represents any other value.
Instructions roundParts() {
  enum : uint8_t { u0, u1, u2, t, zero, number, negative, r, sticky, far, near, least };
  Instructions result;
  auto constant = [&](uint8_t to, float value) {
    result.push_back({Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(value)});
  };
  auto times = [&](uint8_t to, uint8_t from, float value) {
    constant(number, value);
    result.push_back({Op::mul, to, from, number, 0});
  };
  constant(zero, 0);
  for (uint8_t part : {u0, u1, u2}) { // parts are unsigned
    result.push_back({Op::less, negative, part, zero, 0});
    times(negative, negative, 0x1p16f);
    result.push_back({Op::add, part, part, negative, 0});
  }
  times(far, u2, 0x1p-7f);
  result.push_back({Op::floor, far, far, 0, 0});
  times(t, t, 512);
  result.push_back({Op::add, t, t, far, 0});
  times(far, far, 128);
  result.push_back({Op::sub, r, u2, far, 0});
  times(r, r, 0x1p16f);
  result.push_back({Op::add, r, r, u1, 0});
  times(r, r, 0x1p16f);
  result.push_back({Op::less, sticky, zero, u0, 0});
  times(sticky, sticky, 0x1p15f);
  constant(least, -2);
  result.push_back({Op::lessEqual, negative, least, t, 0});
  constant(least, 1);
  result.push_back({Op::lessEqual, least, t, least, 0});
  result.push_back({Op::mul, negative, negative, least, 0}); // 1 up to 2^40
  times(t, t, 0x1p39f);
  result.push_back({Op::add, far, r, sticky, 0});
  result.push_back({Op::add, far, t, far, 0});
  result.push_back({Op::add, near, t, r, 0});
  result.push_back({Op::add, near, near, u0, 0});
  result.push_back({Op::select, near, negative, near, far});
  return result;
}

} // namespace

bool isWide(Value value) { return npu::typeOf(value).getElementType().isSignlessInteger(64); }

llvm::Expected<TileView> placeWide(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset,
                                   EmissionContext &context) {
  bool isNarrow = context.operands.makes(value) || intervalOf(value).within(INT32_MIN, INT32_MAX);
  int64_t parts = isNarrow ? 2 : 4;
  SmallVector<int64_t> scaled;
  for (int64_t stride : strides) {
    scaled.push_back(stride * parts);
  }
  context.plan.keepOutside(value);
  return context.operands.placeOutside(value, sizes, scaled, offset * parts, isNarrow ? Type::i32 : Type::i16);
}

llvm::Expected<TileView> placeHalves(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset,
                                     EmissionContext &context) {
  context.plan.keepOutside(value);
  return context.operands.placeOutside(value, sizes, strides, offset, Type::i32);
}

TileView loadWide(const TileView &from, CommandStream &stream, LocalBudget &localBudget, Tile &tile) {
  TileView single = from; // elements that w repeats are loaded once
  single.shape.dims[3] = from.tensor.strides[3] ? from.dim(3) : 1;
  unsigned count = from.tensor.type == Type::i32 ? 1 : 4;
  SmallVector<TileView> parts;
  if (isDense(single)) {
    TileView rows = load(partsOfRows(single), localBudget, tile);
    for (unsigned k = 0; k < count; ++k) {
      parts.push_back(partOf(rows, single, k));
    }
  } else {
    for (unsigned k = 0; k < count; ++k) {
      TileView part = single;
      part.tensor.offset += k * hw::sizeOf(from.tensor.type);
      parts.push_back(load(part, localBudget, tile));
    }
  }
  TileView result = parts.front();
  if (count > 1) {
    for (int dim : {0, 2}) { // each number is computed once
      result.shape.dims[dim] = from.tensor.strides[dim] ? from.dim(unsigned(dim)) : 1;
    }
    result = localBudget.allocate(result.shape, Type::f32);
    compute(stream, roundParts(), result, parts, tile);
  }
  for (int dim : {0, 2, 3}) {
    bool repeats = from.dim(unsigned(dim)) > 1 && from.tensor.strides[dim] == 0;
    result.tensor.strides[dim] = repeats ? 0 : result.tensor.strides[dim];
  }
  result.shape = from.shape;
  return result;
}

TileView resultOfWide(const TileView &to, LocalBudget &localBudget) {
  Shape rows = to.shape;
  rows.dims[3] *= 2;
  return partOf(localBudget.allocate(rows, Type::i32), to, 0);
}

void storeWide(const TileView &local, const TileView &to, CommandStream &stream, Tile &tile) {
  TileView high = local;
  high.tensor.offset += 4;
  const Instructions sign = {{Op::constant, 1, 0, 0, 0}, {Op::less, 1, 0, 1, 0}, {Op::neg, 1, 1, 0, 0}};
  compute(stream, sign, high, {local}, tile);
  if (isDense(to)) {
    TileView rows = local;
    rows.tensor.strides[3] = 4;
    store(rows, partsOfRows(to), tile);
    return;
  }
  TileView above = to;
  above.tensor.offset += 4;
  store(local, to, tile);
  store(high, above, tile);
}

} // namespace tessera::npu
