//===- EmitWindows.cpp - Pools and reductions of the NPU ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether the region gives its argument, an integer perhaps widened, or does not exist.
bool isIdentity(mlir::Region &region) {
  if (region.empty()) {
    return true;
  }
  Value value = region.front().getTerminator()->getOperand(0);
  if (auto widen = value.getDefiningOp<arith::ExtSIOp>()) {
    value = widen.getIn();
  } else if (auto widen = value.getDefiningOp<arith::ExtUIOp>()) {
    value = widen.getIn();
  }
  return value == region.front().getArgument(0);
}

/// Along one dim: how many taps of a window count, for every place of it.
std::vector<int64_t> tapsAlong(device::PoolOp op, unsigned axis, int64_t size, int64_t places) {
  std::vector<int64_t> taps;
  for (int64_t at = 0; at < places; ++at) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < op.getKernel()[axis]; ++tap) {
      int64_t position = at * op.getStrides()[axis] - op.getPads()[axis] + tap * op.getDilations()[axis];
      count += op.getCountIncludePad() ? position < size + op.getPads()[2 + axis] : position >= 0 && position < size;
    }
    taps.push_back(count);
  }
  return taps;
}

/// What the sums of a mean are divided by, the same for all images and channels.
Place placeCounts(device::PoolOp op, const Place &y, Stream &stream) {
  RankedTensorType xType = typeOf(op.getX());
  std::vector<float> counts;
  std::vector<int64_t> columns = tapsAlong(op, 1, xType.getDimSize(3), y.dim(3));
  for (int64_t rows : tapsAlong(op, 0, xType.getDimSize(2), y.dim(2))) {
    for (int64_t column : columns) {
      counts.push_back(float(rows * column));
    }
  }
  Place made;
  made.shape = y.shape;
  made.tensor = {.offset = stream.addConstant({reinterpret_cast<const char *>(counts.data()), counts.size() * 4}),
                 .strides = {0, 0, int32_t(4 * y.dim(3)), 4},
                 .region = Region::constants,
                 .type = Type::f32};
  return made;
}

} // namespace

llvm::Error Emitter::emitPool(device::PoolOp op) {
  RankedTensorType xType = typeOf(op.getX()), yType = typeOf(op.getY());
  bool isMean = op.getKind() == device::PoolKind::avg;
  if (xType.getRank() != 4 || !op.getExtras().empty() || !op.getEpilogue().empty() ||
      xType.getElementType() != yType.getElementType() || (isMean && !xType.getElementType().isF32())) {
    return refuse("is a mean of narrow floats, a pool with an epilogue or of three dims, which is not emitted yet");
  }
  auto strides = [](ArrayRef<int64_t> s) { return SmallVector<int64_t>{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; };
  llvm::Expected<Place> x = place(op.getX(), xType.getShape(), strides(xType.getShape()));
  llvm::Expected<Place> y = place(op.getY(), yType.getShape(), strides(yType.getShape()));
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  std::optional<Place> counts;
  if (isMean) {
    counts = placeCounts(op, *y, stream);
  }
  const Instructions divide = {{hw::Op::div, 4, 0, 1, 0}};
  hw::Window window;
  for (int axis = 0; axis < 2; ++axis) {
    int64_t fields[] = {op.getKernel()[axis], op.getStrides()[axis], op.getDilations()[axis]};
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) || xType.getDimSize(2 + axis) > UINT16_MAX) {
      return refuse("has a window that a command cannot hold");
    }
    window.kernel[axis] = uint8_t(fields[0]), window.step[axis] = uint8_t(fields[1]);
    window.dilation[axis] = uint8_t(fields[2]), window.padding[axis] = int16_t(op.getPads()[axis]);
  }
  auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
    Rows rows = rowsOf(window, x->dim(2), begin.dims[2], size.dims[2]);
    Place from = slice(slice(slice(*x, 0, begin.dims[0], size.dims[0], chip), 1, begin.dims[1], size.dims[1], chip), 2,
                       rows.begin, rows.size, chip);
    Place local = load(from, area, tile), to = *y;
    for (unsigned dim = 0; dim < 4; ++dim) {
      to = slice(to, dim, begin.dims[dim], size.dims[dim], chip);
    }
    Place result = area.allocate(to.shape, to.tensor.type);
    hw::pool_command pool;
    pool.y = result.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.window = window;
    pool.window.padding[0] = rows.padding, pool.largest = !isMean;
    pool.rows = uint16_t(local.dim(2)), pool.columns = uint16_t(local.dim(3));
    tile.computes.push_back(hw::encode(pool));
    if (counts) {
      Place part = slice(slice(slice(*counts, 0, 0, size.dims[0], chip), 1, 0, size.dims[1], chip), 2, begin.dims[2],
                         size.dims[2], chip);
      compute(stream, divide, result, {result, load(part, area, tile)}, tile);
    }
    store(result, to, tile);
    return !area.isFull();
  };
  return appendTiles(stream, y->shape, Shape{{1, chip.lanes, 1, 0}}, 0, build);
}

/// Over the trailing dims: rows over lanes. Sums of integers are windows as large as a row, exact; others are made by
/// the vector unit in the order that is specified for them.
llvm::Error Emitter::emitReduce(device::ReduceOp op) {
  RankedTensorType xType = typeOf(op.getX()), yType = typeOf(op.getY());
  int64_t rank = xType.getRank(), first = op.getAxes().empty() ? rank : op.getAxes().front();
  bool trailing = first + int64_t(op.getAxes().size()) == rank;
  bool integers = isa<IntegerType>(xType.getElementType());
  if (!trailing || !isIdentity(op.getPrologue()) || !op.getExtras().empty()) {
    return refuse(
        "reduces other than the trailing dims, or has operands or a function before, which is not emitted yet");
  }
  int64_t size = 1;
  for (int64_t dim = first; dim < rank; ++dim) {
    size *= xType.getDimSize(dim);
  }
  bool sums = op.getKind() == device::ReduceKind::sum;
  if (integers && (!sums || size > 255 * 255)) {
    return refuse("reduces integers other than by a sum of a few thousand, which is not emitted yet");
  }
  int64_t rows = xType.getNumElements() / size, height = 1;
  while (integers && (size / height > 255 || size % height)) {
    ++height;
  }
  if (height > 255) {
    return refuse("sums integers of a number that is no product of two below 256, which is not emitted yet");
  }
  int64_t width = size / height;
  llvm::Expected<Place> x = place(op.getX(), {1, rows, height, width}, {0, size, width, 1});
  llvm::Expected<Place> y = place(op.getY(), {1, rows, 1, 1}, {0, 1, 0, 0});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Instructions program;
  if (!op.getEpilogue().empty()) {
    Interval interval = intervalOf(xType.getElementType());
    Interval sum = integers ? Interval{interval.low * double(size), interval.high * double(size)} : interval;
    llvm::Expected<Instructions> made = programOf(op.getEpilogue(), sum, yType.getElementType());
    if (!made) {
      return made.takeError();
    }
    program = std::move(*made);
  }
  auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
    Place local = load(slice(*x, 1, begin.dims[1], part.dims[1], chip), area, tile);
    Place to = slice(*y, 1, begin.dims[1], part.dims[1], chip), result = area.allocate(to.shape, to.tensor.type);
    Place total = program.empty() ? result : area.allocate(to.shape, integers ? Type::i32 : Type::f32);
    if (integers) {
      hw::pool_command pool;
      pool.y = total.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.output.flags = Output::raw;
      pool.window.kernel[0] = uint8_t(height), pool.window.kernel[1] = uint8_t(width);
      pool.rows = uint16_t(height), pool.columns = uint16_t(width);
      tile.computes.push_back(hw::encode(pool));
    } else {
      hw::reduce_command reduce;
      reduce.y = total.tensor, reduce.x = local.tensor, reduce.shape = local.shape;
      reduce.kind = uint8_t(op.getKind());
      tile.computes.push_back(hw::encode(reduce));
    }
    if (!program.empty()) {
      compute(stream, program, result, total, tile);
    }
    store(result, to, tile);
    return !area.isFull();
  };
  return appendTiles(stream, Shape{{1, uint32_t(rows), 1, 1}}, Shape{{0, chip.lanes, 0, 0}}, 0, build);
}

} // namespace tessera::npu
