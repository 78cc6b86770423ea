//===- Softmax.cpp - Softmax on the vector unit ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/Rows/RowPieces.h"
#include "codegen/Npu/Emission/Rows/RowReduction.h"

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

/// Programs of a softmax, given a row x and its maximum: the powers of the differences, the number derived from the sum
/// of powers, and the result. The logarithm of a softmax is a difference from x; a softmax is a multiple of the powers.
struct SoftmaxPrograms {
  const Instructions powers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}};
  const Instructions inverse = {{Op::constant, 4, 0, 0, llvm::bit_cast<uint32_t>(1.0f)}, {Op::div, 4, 4, 0, 0}};
  const Instructions logarithm = {{Op::log, 4, 0, 0, 0}};
  const Instructions scale = {{Op::mul, 4, 0, 1, 0}};
  const Instructions scaledPowers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}, {Op::mul, 4, 4, 2, 0}};
  const Instructions larger = {{Op::maximum, 4, 0, 1, 0}};
  const Instructions difference = {{Op::sub, 4, 0, 1, 0}, {Op::sub, 4, 4, 2, 0}};
};

/// A softmax over rows that do not fit a lane. Rows are read three times: for the maximum, for the sum of powers, and
/// for the result, which computes the powers again.
class LongSoftmax {
public:
  LongSoftmax(const TileView &x, const TileView &y, bool isLog, CommandStream &stream)
      : x(x), y(y), isLog(isLog), stream(stream), chip(stream.chip),
        pieces(y.shape, sizeof(float) + sizeof(float) + bmodel::npu::sizeOf(y.tensor.type), stream) {}

  std::vector<Tile> make() {
    pieces.eachRows([&](RowPieces::Rows rows) { makeRows(rows); });
    return std::move(pieces.tiles);
  }

private:
  TileView largestOf(RowPieces::Rows rows) {
    TileView best = pieces.keep(rows, 1), ofPiece = pieces.keep(rows, 1);
    pieces.eachPiece(rows, [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
      bool isFirst = begin.dims[3] == 0;
      TileView from = load(tileOf(x, begin, part, chip), localBudget, tile);
      reduce(isFirst ? best : ofPiece, from, Reduction::largest, tile);
      if (!isFirst) {
        compute(stream, programs.larger, best, {best, ofPiece}, tile);
      }
    });
    return best;
  }

  void makeRows(RowPieces::Rows rows) {
    TileView best = largestOf(rows);
    auto powers = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
      TileView power = localBudget.allocate(part, Type::f32);
      compute(stream, programs.powers, power, {load(tileOf(x, begin, part, chip), localBudget, tile), repeated(best)},
              tile);
      return power;
    };
    TileView divisor = pieces.sum(rows, false, powers);
    compute(stream, isLog ? programs.logarithm : programs.inverse, divisor, {divisor}, pieces.tiles.back());
    pieces.eachPiece(rows, [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
      TileView from = load(tileOf(x, begin, part, chip), localBudget, tile), to = tileOf(y, begin, part, chip);
      TileView result = resultOf(to, localBudget);
      compute(stream, isLog ? programs.difference : programs.scaledPowers, result,
              {from, repeated(best), repeated(divisor)}, tile);
      store(result, to, tile);
    });
  }

  const SoftmaxPrograms programs;
  const TileView &x, &y;
  const bool isLog;
  CommandStream &stream;
  const Chip &chip;
  RowPieces pieces;
};

/// Emits a softmax along the last dim. Rows are over the lanes, so each row needs a single divisor.
llvm::Error emitInRows(device::SoftmaxOp op, int64_t rows, int64_t size, EmissionContext &context) {
  const Chip &chip = context.chip;
  CommandStream &stream = context.stream;
  llvm::Expected<TileView> x = context.operands.place(op.getX(), {1, rows, 1, size}, {0, size, 0, 1});
  llvm::Expected<TileView> y = context.operands.place(op.getY(), {1, rows, 1, size}, {0, size, 0, 1});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  const SoftmaxPrograms programs;
  auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView from = tileOf(*x, begin, part, chip), to = tileOf(*y, begin, part, chip);
    localBudget.lane = laneOf({to, from});
    from = load(from, localBudget, tile);
    Shape row = {{1, part.dims[1], 1, 1}};
    TileView best = localBudget.allocate(row, Type::f32), power = localBudget.allocate(part, Type::f32),
             total = localBudget.allocate(row, Type::f32), divisor = localBudget.allocate(row, Type::f32),
             result = resultOf(to, localBudget);
    reduce(best, from, Reduction::largest, tile);
    compute(stream, programs.powers, power, {from, repeated(best)}, tile);
    reduce(total, power, Reduction::sum, tile);
    compute(stream, op.getLog() ? programs.logarithm : programs.inverse, divisor, {total}, tile);
    if (op.getLog()) {
      compute(stream, programs.difference, result, {from, repeated(best), repeated(divisor)}, tile);
    } else {
      compute(stream, programs.scale, result, {power, repeated(divisor)}, tile);
    }
    store(result, to, tile);
  };
  if (!rowsFit(y->shape, build, context)) {
    RowPieces::append(context.tiler, [&] { return LongSoftmax(*x, *y, op.getLog(), stream).make(); });
    return llvm::Error::success();
  }
  return context.tiler.append(y->shape, Shape{{0, chip.lanes, 0, 0}}, build);
}

/// Emits a softmax along another dim, combining rows one after another.
llvm::Error emitAcrossRows(device::SoftmaxOp op, const RowsView &view, EmissionContext &context) {
  const Chip &chip = context.chip;
  CommandStream &stream = context.stream;
  llvm::Expected<TileView> x = context.operands.place(op.getX(), view.sizes, view.x, view.offset);
  llvm::Expected<TileView> y = context.operands.place(op.getY(), view.sizes, view.x, view.offset);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  const SoftmaxPrograms programs;
  auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView from = tileOf(*x, begin, part, chip), to = tileOf(*y, begin, part, chip);
    localBudget.lane = laneOf({to, from});
    from = load(from, localBudget, tile);
    Shape row = part;
    row.dims[2] = 1;
    TileView best = localBudget.allocate(row, Type::f32), power = localBudget.allocate(part, Type::f32),
             total = localBudget.allocate(row, Type::f32), out = resultOf(to, localBudget);
    reduceRows(best, from, Reduction::largest, tile);
    compute(stream, programs.powers, power, {from, repeatedRow(best)}, tile);
    reduceRows(total, power, Reduction::sum, tile);
    compute(stream, op.getLog() ? programs.logarithm : programs.inverse, total, {total}, tile);
    if (op.getLog()) {
      compute(stream, programs.difference, out, {from, repeatedRow(best), repeatedRow(total)}, tile);
    } else {
      compute(stream, programs.scale, out, {power, repeatedRow(total)}, tile);
    }
    store(out, to, tile);
  };
  return context.tiler.append(y->shape, Shape{{1, chip.lanes, 0, 1}}, build);
}

llvm::Error emitSoftmax(device::SoftmaxOp op, EmissionContext &context) {
  RankedTensorType type = npu::typeOf(op.getX());
  if (!type.getElementType().isF32()) {
    return reject("is a softmax of a type other than f32, which is not supported yet");
  }
  ArrayRef<int64_t> dims = type.getShape(), behind = dims.drop_front(op.getAxis() + 1);
  if (ShapedType::getNumElements(behind) == 1) {
    int64_t size = dims[op.getAxis()];
    return emitInRows(op, type.getNumElements() / size, size, context);
  }
  for (const RowsView &view : rowsViews(*reducedExtent(dims, op.getAxis()), false, context.chip.lanes)) {
    if (llvm::Error error = emitAcrossRows(op, view, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

struct SoftmaxModel : EmissionInterface::ExternalModel<SoftmaxModel, device::SoftmaxOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitSoftmax(cast<device::SoftmaxOp>(op), context);
  }
};

} // namespace

void attachSoftmaxModels(MLIRContext *context) { device::SoftmaxOp::attachInterface<SoftmaxModel>(*context); }

} // namespace tessera::npu
