//===- EmitWindows.cpp - Pools and reductions of the NPU ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/OutputStage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Whether the region gives its argument, perhaps widened, or does not exist.
bool isIdentity(mlir::Region &region) {
  if (region.empty()) {
    return true;
  }
  Value value = region.front().getTerminator()->getOperand(0);
  if (auto widen = value.getDefiningOp<arith::ExtSIOp>()) {
    value = widen.getIn();
  } else if (auto widen = value.getDefiningOp<arith::ExtUIOp>()) {
    value = widen.getIn();
  } else if (auto widen = value.getDefiningOp<arith::ExtFOp>()) {
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
  if (xType.getRank() == 5) {
    return emitPoolOfVolumes(op);
  }
  if (!op.getExtras().empty() || (isMean && isa<IntegerType>(xType.getElementType()))) {
    return refuse("is a mean of integers or a pool with further operands, which is not emitted yet");
  }
  llvm::Expected<Instructions> program =
      programOf(op.getEpilogue(), intervalOf(xType.getElementType()), yType.getElementType());
  if (!program) {
    return program.takeError();
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
    Place to = tileOf(*y, begin, size, chip);
    area.lane = laneOf({to, from});
    Place local = load(from, area, tile), result = resultOf(to, area);
    // Sums are f32; what a program works on has the room of its own.
    Type narrow = isMean ? Type::f32 : x->tensor.type;
    bool isOwn = !program->empty() || narrow != result.tensor.type;
    Place value = isOwn ? area.allocate(to.shape, narrow) : result;
    hw::pool_command pool;
    pool.y = value.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.window = window;
    pool.window.padding[0] = rows.padding, pool.largest = !isMean;
    pool.output = isMean ? Output() : keepIntegers(narrow, chip.requantise);
    pool.rows = uint16_t(local.dim(2)), pool.columns = uint16_t(local.dim(3));
    tile.computes.push_back(hw::encode(pool));
    if (counts) {
      Place part = slice(slice(slice(*counts, 0, 0, size.dims[0], chip), 1, 0, size.dims[1], chip), 2, begin.dims[2],
                         size.dims[2], chip);
      Place mean = program->empty() ? result : value;
      compute(stream, divide, mean, {value, load(part, area, tile)}, tile);
    }
    if (!program->empty()) {
      compute(stream, *program, result, value, tile);
    }
    store(result, to, tile);
  };
  return tiler.append(y->shape, Shape{{1, chip.lanes, 1, 0}}, build);
}

/// Sums of integers over the trailing dims are windows as large as a row, exact; the vector unit makes all others.
llvm::Error Emitter::emitReduce(device::ReduceOp op) {
  RankedTensorType xType = typeOf(op.getX()), yType = typeOf(op.getY());
  int64_t rank = xType.getRank(), first = op.getAxes().empty() ? rank : op.getAxes().front();
  bool trailing = first + int64_t(op.getAxes().size()) == rank;
  bool integers = isa<IntegerType>(xType.getElementType());
  int64_t size = 1;
  for (int64_t dim = first; dim < rank; ++dim) {
    size *= xType.getDimSize(dim);
  }
  bool sums = op.getKind() == device::ReduceKind::sum;
  if (integers && isa<IntegerType>(yType.getElementType()) && chip.requantise != "float") {
    return refuse("makes integers of a sum, which on this chip only products do");
  }
  int64_t rows = xType.getNumElements() / size, height = 1;
  while (integers && (size / height > 255 || size % height)) {
    ++height;
  }
  bool isWindow = trailing && integers && sums && height <= 255 && op.getExtras().empty();
  if (!isWindow || !isIdentity(op.getPrologue())) {
    return emitReduceRows(op, !isIdentity(op.getPrologue()));
  }
  int64_t width = size / height;
  llvm::Expected<Place> x = place(op.getX(), {1, rows, height, width}, {0, size, width, 1});
  llvm::Expected<Place> y = place(op.getY(), {1, rows, 1, 1}, {0, 1, 0, 0});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Interval interval = intervalOf(xType.getElementType());
  Interval sum = {interval.low * double(size), interval.high * double(size)};
  llvm::Expected<Instructions> program = programOf(op.getEpilogue(), sum, yType.getElementType());
  if (!program) {
    return program.takeError();
  }
  auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
    Place from = slice(*x, 1, begin.dims[1], part.dims[1], chip), to = slice(*y, 1, begin.dims[1], part.dims[1], chip);
    area.lane = laneOf({to, from});
    Place local = load(from, area, tile), result = resultOf(to, area);
    Place total = program->empty() ? result : area.allocate(to.shape, Type::i32);
    hw::pool_command pool;
    pool.y = total.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.output.flags = Output::raw;
    pool.window.kernel[0] = uint8_t(height), pool.window.kernel[1] = uint8_t(width);
    pool.rows = uint16_t(height), pool.columns = uint16_t(width);
    tile.computes.push_back(hw::encode(pool));
    if (!program->empty()) {
      compute(stream, *program, result, total, tile);
    }
    store(result, to, tile);
  };
  return tiler.append(Shape{{1, uint32_t(rows), 1, 1}}, Shape{{0, chip.lanes, 0, 0}}, build);
}

} // namespace tessera::npu
