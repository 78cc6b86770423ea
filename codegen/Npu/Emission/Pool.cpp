//===- Pool.cpp - Pools on the matrix unit --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/PoolVolumes.h"

#include "codegen/Npu/Contraction/OutputStage.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Returns for each position along one dim how many taps of its window count for the mean.
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

/// Places the divisors of a mean's sums, which are the same for all images and channels.
TileView placeCounts(device::PoolOp op, const TileView &y, CommandStream &stream) {
  RankedTensorType xType = npu::typeOf(op.getX());
  std::vector<float> counts;
  std::vector<int64_t> columns = tapsAlong(op, 1, xType.getDimSize(3), y.dim(3));
  for (int64_t rows : tapsAlong(op, 0, xType.getDimSize(2), y.dim(2))) {
    for (int64_t column : columns) {
      counts.push_back(float(rows * column));
    }
  }
  TileView result;
  result.shape = y.shape;
  result.tensor = {.offset = stream.addConstant({reinterpret_cast<const char *>(counts.data()), counts.size() * 4}),
                   .strides = {0, 0, int32_t(4 * y.dim(3)), 4},
                   .region = Region::constants,
                   .type = Type::f32};
  return result;
}

/// Returns the window over images, or an error if a command cannot hold it.
llvm::Expected<hw::Window> windowOf(device::PoolOp op) {
  hw::Window window;
  for (int axis = 0; axis < 2; ++axis) {
    int64_t fields[] = {op.getKernel()[axis], op.getStrides()[axis], op.getDilations()[axis]};
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) ||
        npu::typeOf(op.getX()).getDimSize(2 + axis) > UINT16_MAX) {
      return reject("has a window beyond the limits of a command: kernel, stride and dilation 255, input 65535");
    }
    window.kernel[axis] = uint8_t(fields[0]), window.step[axis] = uint8_t(fields[1]);
    window.dilation[axis] = uint8_t(fields[2]), window.padding[axis] = int16_t(op.getPads()[axis]);
  }
  return window;
}

llvm::Expected<TileView> placeImages(Value value, OperandPlacer &operands) {
  ArrayRef<int64_t> dims = npu::typeOf(value).getShape();
  return operands.place(value, dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1});
}

llvm::Error emitPool(device::PoolOp op, EmissionContext &context) {
  const Chip &chip = context.chip;
  CommandStream &stream = context.stream;
  RankedTensorType xType = npu::typeOf(op.getX()), yType = npu::typeOf(op.getY());
  if (xType.getRank() == 5) {
    return emitPoolOfVolumes(op, context);
  }
  bool isMean = op.getKind() == device::PoolKind::avg;
  if (!op.getExtras().empty() || (isMean && isa<IntegerType>(xType.getElementType()))) {
    return reject("is a mean of integers or a pool with epilogue operands, which is not supported yet");
  }
  llvm::Expected<Instructions> program =
      programOf(op.getEpilogue(), intervalOf(xType.getElementType()), yType.getElementType());
  if (!program) {
    return program.takeError();
  }
  llvm::Expected<TileView> x = placeImages(op.getX(), context.operands), y = placeImages(op.getY(), context.operands);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  std::optional<TileView> counts;
  if (isMean) {
    counts = placeCounts(op, *y, stream);
  }
  const Instructions divide = {{hw::Op::div, 4, 0, 1, 0}};
  llvm::Expected<hw::Window> window = windowOf(op);
  if (!window) {
    return window.takeError();
  }
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    Rows rows = rowsOf(*window, x->dim(2), begin.dims[2], size.dims[2]);
    TileView from = slice(slice(slice(*x, 0, begin.dims[0], size.dims[0], chip), 1, begin.dims[1], size.dims[1], chip),
                          2, rows.begin, rows.size, chip);
    TileView to = tileOf(*y, begin, size, chip);
    localBudget.lane = laneOf({to, from});
    TileView local = load(from, localBudget, tile), result = resultOf(to, localBudget);
    // Sums are f32. The operand of a program needs its own buffer.
    Type narrow = isMean ? Type::f32 : x->tensor.type;
    bool isOwn = !program->empty() || narrow != result.tensor.type;
    TileView value = isOwn ? localBudget.allocate(to.shape, narrow) : result;
    hw::pool_command pool;
    pool.y = value.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.window = *window;
    pool.window.padding[0] = rows.padding, pool.largest = !isMean;
    pool.output = isMean ? Output() : keepIntegers(narrow, chip.requantise);
    pool.rows = uint16_t(local.dim(2)), pool.columns = uint16_t(local.dim(3));
    tile.computes.push_back(hw::encode(pool));
    if (counts) {
      TileView part = slice(slice(slice(*counts, 0, 0, size.dims[0], chip), 1, 0, size.dims[1], chip), 2, begin.dims[2],
                            size.dims[2], chip);
      TileView mean = program->empty() ? result : value;
      compute(stream, divide, mean, {value, load(part, localBudget, tile)}, tile);
    }
    if (!program->empty()) {
      compute(stream, *program, result, value, tile);
    }
    store(result, to, tile);
  };
  return context.tiler.append(y->shape, Shape{{1, chip.lanes, 1, 0}}, build);
}

struct PoolModel : EmissionInterface::ExternalModel<PoolModel, device::PoolOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitPool(cast<device::PoolOp>(op), context);
  }
  bool storesImages(Operation *) const { return true; }
  bool runsInSlices(Operation *) const { return true; }
  RowRange rowsRead(Operation *op, Value, uint32_t size, RowRange y) const {
    auto pool = cast<device::PoolOp>(op);
    return rowsOfWindows(y, size, pool.getKernel()[0], pool.getStrides()[0], pool.getDilations()[0], pool.getPads()[0]);
  }
};

} // namespace

void attachPoolModels(MLIRContext *context) { device::PoolOp::attachInterface<PoolModel>(*context); }

} // namespace tessera::npu
