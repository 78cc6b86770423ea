//===- EmitElements.cpp - Maps, tables and softmax of the NPU -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Intervals.h"
#include "codegen/Npu/Nest.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Instruction;
using bmodel::npu::Type;
namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
mlir::Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// Any dim may be cut; channels to whole lanes.
Shape anyCut(const Chip &chip) { return {{1, chip.lanes, 1, 1}}; }

} // namespace

/// Values of [1, 1, rows, columns] with the rows over lanes, as attention of one head has them.
static SmallVector<View> rowViewsOf(ArrayRef<ArrayRef<int64_t>> shapes) {
  Nest nest = broadcastNest(shapes);
  SmallVector<View> views;
  for (const auto &strides : nest.strides) {
    views.push_back({{1, nest.sizes[2], 1, nest.sizes[3]}, {0, strides[2], 0, strides[3]}});
  }
  return views;
}

/// Values as n, c, h, w of a tensor of four dims, as planes of a single volume, as rows over lanes of a tensor of three
/// dims, or as columns over lanes of one of two; nothing of others.
static std::optional<SmallVector<View>> viewsOf(ArrayRef<Value> values) {
  SmallVector<ArrayRef<int64_t>> shapes;
  bool isOfRows = false;
  for (Value value : values) {
    shapes.push_back(shapeOf(value));
    isOfRows = isOfRows || isa_and_nonnull<device::AttentionOp>(value.getDefiningOp());
  }
  size_t rank = shapes[0].size();
  if (rank == 4 && isOfRows && shapes[0][0] == 1 && shapes[0][1] == 1) {
    return rowViewsOf(shapes);
  }
  Nest nest = broadcastNest(shapes);
  bool isOne = rank > 0 && shapes[0][0] == 1;
  if (rank != 2 && rank != 4 && (rank < 3 || rank > 5 || !isOne)) {
    return std::nullopt;
  }
  SmallVector<View> views(values.size(), View{{1, 1, 1, 1}, {0, 0, 0, 0}});
  constexpr int kColumns[] = {2, 1}, kRows[] = {0, 1, 3}, kImages[] = {0, 1, 2, 3}, kPlanes[] = {0, 1, 0, 2, 3};
  const int *dims = rank == 2 ? kColumns : rank == 3 ? kRows : rank == 4 ? kImages : kPlanes;
  for (size_t dim = rank % 2; dim < rank; ++dim) { // the first of an odd number of dims is 1
    for (auto [view, strides] : llvm::zip(views, nest.strides)) {
      int to = dims[dim];
      view.sizes[to] = nest.sizes[dim], view.strides[to] = strides[dim];
    }
  }
  return views;
}

/// Whether computing over the channels as they lie costs less than what it spares of moving values outside the chip.
static bool paysOverChannels(ArrayRef<Value> values, const View &view, double cyclesEach, const Chip &chip) {
  double count = double(cast<RankedTensorType>(values[0].getType()).getNumElements()), bytes = 0;
  double lane = double(view.sizes[0] * view.sizes[2] * view.sizes[3] * llvm::divideCeil(view.sizes[1], chip.lanes));
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    bytes += double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  }
  return (lane - count / chip.lanes) * cyclesEach * 4 / chip.vectorBytes < bytes / chip.ddrBytesPerCycle();
}

llvm::Expected<SmallVector<SmallVector<Place>>> Emitter::placeParts(ArrayRef<Value> values, double cyclesEach) {
  std::optional<SmallVector<View>> views = viewsOf(values);
  if (views && paysOverChannels(values, views->front(), cyclesEach, chip)) {
    bool stays = tiler.surveys;
    for (auto [value, view] : llvm::zip(values, *views)) {
      Access access = value.getDefiningOp() == current ? Access::write : Access::read;
      stays = stays || plan.find(value, view, 0, access) || sliceOf(value);
    }
    if (stays) {
      SmallVector<SmallVector<Place>> made(1);
      for (auto [value, view] : llvm::zip(values, *views)) {
        llvm::Expected<Place> placed = place(value, view.sizes, view.strides);
        if (!placed) {
          return placed.takeError();
        }
        made.back().push_back(*placed);
      }
      return made;
    }
  }
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value value : values) {
    shapes.push_back(shapeOf(value));
  }
  Nest nest = broadcastNest(shapes).simplified();
  if (nest.sizes.empty()) {
    nest.sizes = {1};
    nest.strides.assign(values.size(), {1});
  }
  SmallVector<Part> parts = partsOf(nest, chip.lanes);
  SmallVector<SmallVector<Place>> made;
  for (const Part &part : parts) {
    made.emplace_back();
    for (auto [index, value] : llvm::enumerate(values)) {
      llvm::Expected<Place> placed = place(value, part.sizes, part.strides[index], part.offsets[index]);
      if (!placed) {
        return placed.takeError();
      }
      made.back().push_back(*placed);
    }
  }
  return made;
}

llvm::Error Emitter::emitMap(device::MapOp op) {
  if (op.getInputs().empty() || op.getInputs().size() > hw::kMapOperands) {
    return refuse("has no operand, or more than four");
  }
  SmallVector<Value> values = {op.getY()};
  SmallVector<Interval> intervals;
  for (Value input : op.getInputs()) {
    values.push_back(input);
    intervals.push_back(intervalOf(input));
  }
  llvm::Expected<Instructions> program = programOf(op.getBody(), intervals, elementOf(op.getY()));
  if (!program) {
    return program.takeError();
  }
  hw::InstructionCounts counts = hw::countsOf(program->data(), program->size());
  auto parts = placeParts(values, counts.plain + double(counts.slow) * chip.functionCycles);
  if (!parts) {
    return parts.takeError();
  }
  for (ArrayRef<Place> part : *parts) {
    auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
      SmallVector<Place> operands;
      for (const Place &each : part) {
        operands.push_back(tileOf(each, begin, size, chip));
      }
      area.lane = laneOf(operands);
      Place to = operands.front();
      operands.erase(operands.begin());
      for (Place &operand : operands) {
        operand = load(operand, area, tile);
      }
      Place y = resultOf(to, area);
      compute(stream, *program, y, operands, tile);
      store(y, to, tile);
    };
    if (llvm::Error error = tiler.append(part.front().shape, anyCut(chip), build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error Emitter::emitLut(device::LutOp op) {
  auto parts = placeParts({op.getY(), op.getX()}, 1);
  llvm::Expected<Place> table = place(op.getTable(), {1, 1, 1, 256}, {0, 0, 0, 1});
  if (!parts || !table) {
    return llvm::joinErrors(parts.takeError(), table.takeError());
  }
  for (ArrayRef<Place> part : *parts) {
    std::optional<Place> kept;
    auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
      Place to = tileOf(part[0], begin, size, chip), from = tileOf(part[1], begin, size, chip);
      area.lane = laneOf({to, from});
      Place x = load(from, area, tile); // one table a lane, whatever the number of channels in it
      Place local = loadPerLane(*table, begin, size.dims[1], chip, area, tile, kept), y = resultOf(to, area);
      hw::lut_command lut;
      lut.y = y.tensor, lut.x = x.tensor, lut.table = local.tensor, lut.shape = to.shape;
      tile.computes.push_back(hw::encode(lut));
      store(y, to, tile);
    };
    if (llvm::Error error = tiler.append(part[0].shape, anyCut(chip), build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Rows over lanes: what is divided by stands once a row.
llvm::Error Emitter::emitSoftmax(device::SoftmaxOp op) {
  ArrayRef<int64_t> dims = shapeOf(op.getX());
  auto axis = size_t(op.getAxis());
  int64_t size = dims[axis], rows = ShapedType::getNumElements(dims.take_front(axis)),
          inner = ShapedType::getNumElements(dims.drop_front(axis + 1));
  if (!elementOf(op.getX()).isF32()) {
    return refuse("is a softmax of narrow floats, which is not emitted yet");
  }
  if (inner != 1) {
    return emitSoftmaxRows(op);
  }
  llvm::Expected<Place> x = place(op.getX(), {1, rows, 1, size}, {0, size, 0, 1});
  llvm::Expected<Place> y = place(op.getY(), {1, rows, 1, size}, {0, size, 0, 1});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  using hw::Op;
  const Instructions powers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}};
  const Instructions one = {{Op::constant, 4, 0, 0, llvm::bit_cast<uint32_t>(1.0f)}, {Op::div, 4, 4, 0, 0}};
  const Instructions factor = op.getLog() ? Instructions{{Op::log, 4, 0, 0, 0}} : one;
  const Instructions scale = {{Op::mul, 4, 0, 1, 0}};
  const Instructions difference = {{Op::sub, 4, 0, 1, 0}, {Op::sub, 4, 4, 2, 0}};
  auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
    Place from = tileOf(*x, begin, part, chip), to = tileOf(*y, begin, part, chip);
    area.lane = laneOf({to, from});
    from = load(from, area, tile);
    Shape row = {{1, part.dims[1], 1, 1}};
    Place best = area.allocate(row, Type::f32), power = area.allocate(part, Type::f32),
          total = area.allocate(row, Type::f32), divisor = area.allocate(row, Type::f32), result = resultOf(to, area);
    auto repeated = [](Place place) {
      place.tensor.strides[3] = 0;
      return place;
    };
    auto reduce = [&](const Place &sums, const Place &of, uint8_t kind) {
      hw::reduce_command command;
      command.y = sums.tensor, command.x = of.tensor, command.shape = of.shape, command.kind = kind;
      tile.computes.push_back(hw::encode(command));
    };
    reduce(best, from, 1);
    compute(stream, powers, power, {from, repeated(best)}, tile);
    reduce(total, power, 0);
    compute(stream, factor, divisor, {total}, tile);
    if (op.getLog()) {
      compute(stream, difference, result, {from, repeated(best), repeated(divisor)}, tile);
    } else {
      compute(stream, scale, result, {power, repeated(divisor)}, tile);
    }
    store(result, to, tile);
  };
  return tiler.append(y->shape, Shape{{0, chip.lanes, 0, 0}}, build);
}

} // namespace tessera::npu
