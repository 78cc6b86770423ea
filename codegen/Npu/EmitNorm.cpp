//===- EmitNorm.cpp - Normalisation and softmax of the NPU ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

bmodel::npu::Instruction number(uint8_t to, double value) {
  return {Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(float(value))};
}

/// What a norm computes row by row, in the order of roundings that numerics_float.h and the reference have.
struct NormPrograms {
  Instructions mean, centre, factor, finish;

  NormPrograms(device::NormOp op, int64_t size) {
    mean = {number(4, double(size)), {Op::div, 4, 0, 4, 0}};
    centre = {{Op::sub, 4, 0, 1, 0}};
    factor = {number(4, double(size)), {Op::div, 4, 0, 4, 0},  number(5, op.getEpsilon().convertToDouble()),
              {Op::add, 4, 4, 5, 0},   {Op::sqrt, 4, 4, 0, 0}, number(5, 1),
              {Op::div, 4, 5, 4, 0}};
    finish = {{Op::mul, 4, 0, 1, 0}};
    if (op.getScale() && op.getBias()) {
      finish.push_back({Op::mulAdd, 4, 4, 2, 3});
    } else if (op.getScale() || op.getBias()) {
      finish.push_back({op.getScale() ? Op::mul : Op::add, 4, 4, 2, 0});
    }
  }
};

} // namespace

/// What the map behind a norm reads beside it: of each row a number, of all the same row, or one number.
llvm::Expected<SmallVector<Emitter::RowsOperand>> Emitter::placeOperands(const Folds::Tail &tail, int64_t rows,
                                                                         int64_t size) {
  SmallVector<RowsOperand> made;
  device::MapOp map = tail.map;
  for (Value input : map ? ValueRange(map.getInputs()) : ValueRange()) {
    if (input == tail.mapped) {
      made.push_back({std::nullopt, false});
      continue;
    }
    int64_t count = typeOf(input).getNumElements();
    bool hasRows = count == rows * size && count > 1;
    auto placed = hasRows ? place(input, {1, rows, 1, size}, {0, size, 0, 1})
                          : placeOutside(input, {1, rows, 1, size}, {0, 0, 0, count == 1 ? 0 : 1});
    if (!placed) {
      return placed.takeError();
    }
    made.push_back({*placed, hasRows});
  }
  return made;
}

llvm::Expected<SmallVector<Place>> Emitter::placeTargets(ArrayRef<Seen> targets, int64_t rows, int64_t size) {
  SmallVector<Place> made;
  for (const Seen &target : targets) {
    llvm::Expected<Place> placed = placeRows(target, rows, size);
    if (!placed) {
      return placed.takeError();
    }
    made.push_back(*placed);
  }
  return made;
}

/// Rows over lanes, each normalised by itself.
llvm::Error Emitter::emitNorm(device::NormOp op) {
  ArrayRef<int64_t> dims = typeOf(op.getX()).getShape();
  int64_t size = ShapedType::getNumElements(dims.drop_front(op.getAxis()));
  int64_t rows = ShapedType::getNumElements(dims) / size;
  Folds::Tail tail;
  if (const Folds::Tail *known = folds.tailOf(op)) {
    tail = *known;
  } else {
    tail.targets.push_back(folds.seen(op.getY()));
  }
  llvm::Expected<Place> x = placeRows(folds.seen(op.getX()), rows, size);
  llvm::Expected<SmallVector<Place>> targets = placeTargets(tail.targets, rows, size);
  llvm::Expected<SmallVector<RowsOperand>> mapped = placeOperands(tail, rows, size);
  if (!x || !targets || !mapped) {
    return llvm::joinErrors(llvm::joinErrors(x.takeError(), targets.takeError()), mapped.takeError());
  }
  SmallVector<Place> parameters; // scale, bias
  for (Value each : {op.getScale(), op.getBias()}) {
    if (each) {
      llvm::Expected<Place> placed = placeOutside(each, {1, rows, 1, size}, {0, 0, 0, 1});
      if (!placed) {
        return placed.takeError();
      }
      parameters.push_back(*placed);
    }
  }
  const NormPrograms programs(op, size);
  SmallVector<std::optional<Place>, 2> kept(2);
  SmallVector<std::optional<Place>, bmodel::npu::kMapOperands> keptOfMap(bmodel::npu::kMapOperands);
  auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
    Place from = tileOf(*x, begin, part, chip), to = tileOf(targets->front(), begin, part, chip);
    area.lane = laneOf({to, from});
    bool isOwn = !from.isLocal() && from.tensor.type == Type::f32; // what it is loaded to
    from = load(from, area, tile);
    Shape row = {{1, part.dims[1], 1, 1}};
    Place total = area.allocate(row, Type::f32), result = resultOf(to, area), centred = from;
    bool inResult = result.tensor.type == Type::f32;
    if (!op.getRms()) {
      reduce(total, from, Reduction::sum, tile);
      compute(stream, programs.mean, total, {total}, tile);
      centred = inResult ? result : isOwn ? from : area.allocate(part, Type::f32);
      compute(stream, programs.centre, centred, {from, repeated(total)}, tile);
    }
    reduce(total, centred, Reduction::squares, tile);
    compute(stream, programs.factor, total, {total}, tile);
    SmallVector<Place> operands = {centred, repeated(total)};
    for (auto [index, parameter] : llvm::enumerate(parameters)) {
      operands.push_back(loadPerLane(parameter, begin, part.dims[1], chip, area, tile, kept[index]));
    }
    bool ownsRows = isOwn || !op.getRms();
    Place normed = inResult || !tail.map ? result : ownsRows ? centred : area.allocate(part, Type::f32);
    compute(stream, programs.finish, normed, operands, tile);
    if (tail.map) {
      operands.clear();
      for (auto [index, each] : llvm::enumerate(*mapped)) {
        operands.push_back(!each.place ? normed
                           : each.hasRows
                               ? load(tileOf(*each.place, begin, part, chip), area, tile)
                               : loadPerLane(*each.place, begin, part.dims[1], chip, area, tile, keptOfMap[index]));
      }
      compute(stream, tail.program, result, operands, tile);
    }
    store(result, to, tile);
    for (const Place &other : llvm::drop_begin(*targets)) {
      storeToo(result, tileOf(other, begin, part, chip), tile);
    }
  };
  return tiler.append(targets->front().shape, Shape{{0, chip.lanes, 0, 0}}, build);
}

} // namespace tessera::npu
