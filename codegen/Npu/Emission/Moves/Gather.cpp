//===- Gather.cpp - Gathers on the NPU ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"

#include "top_dialect/IR/Constants.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

/// Whole numbers up to here are exact in f32.
constexpr int64_t kExact = int64_t(1) << 24;

/// Returns the program that brings an index into the range of |rows| rows: negative indices count from the end, and
/// indices out of range are clamped. An i64 index is given as two i32, the low half in register 0 and the high half in
/// register 1. Comparisons and sums beyond 2^24 are rounded, which does not move them across the bounds.
Instructions clampIndex(int64_t rows, bool wide) {
  auto number = [](uint8_t to, float value) {
    return bmodel::npu::Instruction{Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(value)};
  };
  constexpr uint8_t low = 0, high = 1, zero = 4, count = 5, last = 6, isNegative = 7, index = 8, other = 9, fits = 10;
  Instructions result = {number(zero, 0),
                         number(count, float(rows)),
                         number(last, float(rows - 1)),
                         {Op::less, isNegative, low, zero, 0},
                         {Op::add, index, low, count, 0},
                         {Op::select, index, isNegative, index, low}};
  if (wide) { // the low half is the whole index if the high half repeats its sign
    result.push_back({Op::neg, fits, isNegative, 0, 0});
    result.push_back({Op::equal, fits, high, fits, 0});
    result.push_back({Op::less, other, high, zero, 0});
    result.push_back({Op::select, other, other, zero, last});
    result.push_back({Op::select, index, fits, index, other});
  }
  result.push_back({Op::maximum, index, index, zero, 0});
  result.push_back({Op::minimum, index, index, last, 0});
  return result;
}

/// Returns the clamped values of constant indices.
std::vector<int32_t> clampKnown(const top::TensorData &data, bool wide, int64_t rows) {
  std::vector<int32_t> result;
  for (size_t at = 0; at < data.bytes.size(); at += wide ? 8 : 4) {
    int32_t narrow;
    int64_t index;
    std::memcpy(&narrow, data.bytes.data() + at, sizeof narrow);
    index = narrow;
    if (wide) {
      std::memcpy(&index, data.bytes.data() + at, sizeof index);
    }
    result.push_back(int32_t(std::clamp<int64_t>(index < 0 ? index + rows : index, 0, rows - 1)));
  }
  return result;
}

/// Indices into |rows| rows: constant ones are clamped already; others are i32 operands, for i64 the two halves.
struct GatherIndices {
  std::optional<TileView> known;
  SmallVector<TileView> halves;
};

llvm::Expected<GatherIndices> placeIndices(device::GatherOp op, int64_t rows, EmissionContext &context) {
  int64_t count = npu::typeOf(op.getIndices()).getNumElements();
  bool wide = npu::typeOf(op.getIndices()).getElementType().isInteger(64);
  GatherIndices result;
  if (std::optional<top::TensorData> data = top::getConstantData(op.getIndices())) {
    std::vector<int32_t> clamped = clampKnown(*data, wide, rows);
    ArrayRef<char> bytes(reinterpret_cast<const char *>(clamped.data()), clamped.size() * 4);
    result.known.emplace();
    result.known->shape = {{1, uint32_t(count), 1, 1}};
    result.known->tensor = {.offset = context.stream.addConstant(bytes),
                            .strides = {0, 4, 0, 0},
                            .region = Region::constants,
                            .type = Type::i32};
    return result;
  }
  for (int64_t half = 0; half < (wide ? 2 : 1); ++half) {
    llvm::Expected<TileView> placed =
        context.operands.placeOutside(op.getIndices(), {1, count, 1, 1}, {0, wide ? 2 : 1, 0, 0}, half, Type::i32);
    if (!placed) {
      return placed.takeError();
    }
    result.halves.push_back(*placed);
  }
  return result;
}

/// Emits a gather: the vector unit clamps the indices, and the DMA fetches the rows.
llvm::Error emitGather(device::GatherOp op, EmissionContext &context) {
  const Chip &chip = context.chip;
  ArrayRef<int64_t> dims = npu::typeOf(op.getX()).getShape();
  int64_t rows = dims[op.getAxis()], count = npu::typeOf(op.getIndices()).getNumElements();
  int64_t outer = ShapedType::getNumElements(dims.take_front(op.getAxis()));
  int64_t inner = ShapedType::getNumElements(dims.drop_front(op.getAxis() + 1));
  if (rows > kExact) {
    return reject("gathers from more rows than the vector unit can count, 2^24");
  }
  llvm::Expected<TileView> x =
      context.operands.placeOutside(op.getX(), {outer, rows, 1, inner}, {rows * inner, inner, 0, 1});
  llvm::Expected<TileView> y =
      context.operands.place(op.getY(), {outer, count, 1, inner}, {count * inner, inner, 0, 1});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  llvm::Expected<GatherIndices> indices = placeIndices(op, rows, context);
  if (!indices) {
    return indices.takeError();
  }
  const Instructions program = clampIndex(rows, npu::typeOf(op.getIndices()).getElementType().isInteger(64));
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    TileView to = tileOf(*y, begin, size, chip);
    localBudget.lane = laneOf(to);
    TileView index;
    if (indices->known) {
      index = slice(*indices->known, 1, begin.dims[1], size.dims[1], chip);
    } else {
      SmallVector<TileView> operands;
      for (const TileView &half : indices->halves) {
        operands.push_back(load(slice(half, 1, begin.dims[1], size.dims[1], chip), localBudget, tile));
      }
      index = localBudget.allocate(operands[0].shape, Type::i32);
      compute(context.stream, program, index, operands, tile);
    }
    hw::gather_command gather;
    gather.y = to.tensor, gather.x = x->tensor, gather.index = index.tensor, gather.shape = to.shape;
    gather.rows = uint32_t(rows);
    tile.stores.push_back(hw::encode(gather));
    if (to.isLocal()) {
      store(to, to, tile);
    }
  };
  return context.tiler.append(y->shape, Shape{{0, chip.lanes, 0, 0}}, build);
}

struct GatherModel : EmissionInterface::ExternalModel<GatherModel, device::GatherOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitGather(cast<device::GatherOp>(op), context);
  }
};

} // namespace

void attachGatherModels(MLIRContext *context) { device::GatherOp::attachInterface<GatherModel>(*context); }

} // namespace tessera::npu
