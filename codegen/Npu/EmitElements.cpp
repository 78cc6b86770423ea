//===- EmitElements.cpp - Maps, tables, softmax and copies of the NPU -----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Nest.h"

#include "device_dialect/IR/Pieces.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Instruction;
using bmodel::npu::Type;
namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
mlir::Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

Place tileOf(Place place, const Shape &begin, const Shape &size, const Chip &chip) {
  for (unsigned dim = 0; dim < 4; ++dim) {
    place = slice(place, dim, begin.dims[dim], size.dims[dim], chip);
  }
  return place;
}

/// Any dim may be cut; channels to whole lanes.
Shape anyCut(const Chip &chip) { return {{1, chip.lanes, 1, 1}}; }

} // namespace

llvm::Expected<llvm::SmallVector<llvm::SmallVector<Place>>> Emitter::placeParts(ArrayRef<Value> values) {
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
  if (parts.empty()) {
    return refuse("broadcasts over more than four dims, which is not emitted yet");
  }
  SmallVector<SmallVector<Place>> made;
  for (const Part &part : parts) {
    made.emplace_back();
    for (auto [index, value] : llvm::enumerate(values)) {
      llvm::Expected<Place> placed = place(value, part.sizes, part.strides[index]);
      if (!placed) {
        return placed.takeError();
      }
      placed->tensor.offset += part.offsets[index] * hw::sizeOf(placed->tensor.type);
      made.back().push_back(*placed);
    }
  }
  return made;
}

llvm::Error Emitter::emitMap(device::MapOp op) {
  if (op.getInputs().empty() || op.getInputs().size() > 4) {
    return refuse("has no operand, or more than four");
  }
  SmallVector<Value> values = {op.getY()};
  SmallVector<Interval> intervals;
  for (Value input : op.getInputs()) {
    values.push_back(input);
    intervals.push_back(intervalOf(elementOf(input)));
  }
  llvm::Expected<Instructions> program = programOf(op.getBody(), intervals, elementOf(op.getY()));
  if (!program) {
    return program.takeError();
  }
  auto parts = placeParts(values);
  if (!parts) {
    return parts.takeError();
  }
  for (ArrayRef<Place> part : *parts) {
    auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
      SmallVector<Place> operands;
      for (const Place &from : part.drop_front()) {
        operands.push_back(load(tileOf(from, begin, size, chip), area, tile));
      }
      Place to = tileOf(part.front(), begin, size, chip), y = area.allocate(to.shape, to.tensor.type);
      compute(stream, *program, y, operands, tile);
      store(y, to, tile);
      return !area.isFull();
    };
    if (llvm::Error error = appendTiles(stream, part.front().shape, anyCut(chip), 0, build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error Emitter::emitLut(device::LutOp op) {
  auto parts = placeParts({op.getY(), op.getX()});
  llvm::Expected<Place> table = place(op.getTable(), {1, 1, 1, 256}, {0, 0, 0, 1});
  if (!parts || !table) {
    return llvm::joinErrors(parts.takeError(), table.takeError());
  }
  for (ArrayRef<Place> part : *parts) {
    auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
      Place x = load(tileOf(part[1], begin, size, chip), area, tile);
      Place each = *table; // one table a lane, whatever the number of channels in it
      each.shape.dims[1] = std::min(size.dims[1], chip.lanes);
      Place local = load(each, area, tile);
      Place to = tileOf(part[0], begin, size, chip), y = area.allocate(to.shape, to.tensor.type);
      hw::lut_command lut;
      lut.y = y.tensor, lut.x = x.tensor, lut.table = local.tensor, lut.shape = to.shape;
      lut.table.strides[1] = 0;
      tile.computes.push_back(hw::encode(lut));
      store(y, to, tile);
      return !area.isFull();
    };
    if (llvm::Error error = appendTiles(stream, part[0].shape, anyCut(chip), 0, build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Rows over lanes: what is divided by stands once a row.
llvm::Error Emitter::emitSoftmax(device::SoftmaxOp op) {
  ArrayRef<int64_t> dims = shapeOf(op.getX());
  int64_t size = dims[op.getAxis()], inner = 1, rows = 1;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    (int64_t(index) < op.getAxis()   ? rows
     : int64_t(index) > op.getAxis() ? inner
                                     : size) *= int64_t(index) == op.getAxis() ? 1 : dim;
  }
  if (inner != 1 || !elementOf(op.getX()).isF32()) {
    return refuse("is a softmax along an inner dim or of narrow floats, which is not emitted yet");
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
    Place from = load(tileOf(*x, begin, part, chip), area, tile), to = tileOf(*y, begin, part, chip);
    Shape row = {{1, part.dims[1], 1, 1}};
    Place best = area.allocate(row, Type::f32), power = area.allocate(part, Type::f32),
          total = area.allocate(row, Type::f32), divisor = area.allocate(row, Type::f32),
          result = area.allocate(part, Type::f32);
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
    return !area.isFull();
  };
  return appendTiles(stream, y->shape, Shape{{0, chip.lanes, 0, 0}}, 0, build);
}

/// Moves outside the chip.
llvm::Error Emitter::emitCopy(device::CopyOp op) {
  ArrayRef<int64_t> dims = shapeOf(op.getY());
  Tile tile;
  if (op.getFill()) {
    llvm::Expected<Place> whole = place(op.getY(), {1, 1, 1, ShapedType::getNumElements(dims)}, {0, 0, 0, 1});
    if (!whole) {
      return whole.takeError();
    }
    hw::fill_command fill;
    double value = op.getFill()->convertToDouble();
    fill.y = whole->tensor, fill.shape = whole->shape;
    bool isFloat = hw::isFloat(whole->tensor.type);
    if (isFloat && whole->tensor.type != Type::f32 && value != 0) {
      return refuse("fills with a narrow float, which is not emitted yet");
    }
    fill.value = isFloat ? llvm::bit_cast<uint32_t>(float(value)) : uint32_t(int64_t(value));
    tile.stores.push_back(hw::encode(fill));
  }
  for (Attribute attribute : op.getPieces()) {
    auto piece = cast<device::PieceAttr>(attribute);
    Value source = op.getSources()[piece.getSource()];
    Nest from = broadcastNest({shapeOf(source)}), to = broadcastNest({dims});
    Nest nest;
    nest.sizes.assign(piece.getSizes().begin(), piece.getSizes().end());
    nest.strides.resize(2);
    int64_t offsets[2] = {0, 0};
    for (auto [s, offset] : llvm::enumerate(piece.getSrcOffsets())) {
      offsets[1] += offset * from.strides[0][s];
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t s = piece.getSrcDims()[d];
      offsets[0] += piece.getDstOffsets()[d] * to.strides[0][d];
      nest.strides[0].push_back(piece.getDstSteps()[d] * to.strides[0][d]);
      nest.strides[1].push_back(s < 0 ? 0 : piece.getSrcSteps()[d] * from.strides[0][s]);
    }
    nest = nest.simplified();
    if (nest.sizes.size() > 4) {
      return refuse("moves over more than four dims, which is not emitted yet");
    }
    int64_t sizes[4] = {1, 1, 1, 1}, strides[2][4] = {};
    for (size_t back = 0; back < nest.sizes.size(); ++back) {
      size_t dim = nest.sizes.size() - 1 - back;
      sizes[3 - back] = nest.sizes[dim];
      strides[0][3 - back] = nest.strides[0][dim], strides[1][3 - back] = nest.strides[1][dim];
    }
    llvm::Expected<Place> y = place(op.getY(), sizes, strides[0]), x = place(source, sizes, strides[1]);
    if (!x || !y) {
      return llvm::joinErrors(x.takeError(), y.takeError());
    }
    hw::copy_command copy;
    copy.y = y->tensor, copy.x = x->tensor, copy.shape = y->shape;
    copy.y.offset += offsets[0] * hw::sizeOf(y->tensor.type), copy.x.offset += offsets[1] * hw::sizeOf(x->tensor.type);
    bool isThere = copy.x.region == copy.y.region && copy.x.offset == copy.y.offset;
    if (!isThere) { // address assignment has put some parts where they belong
      tile.stores.push_back(hw::encode(copy));
    }
  }
  stream.append(tile, false);
  return llvm::Error::success();
}

} // namespace tessera::npu
