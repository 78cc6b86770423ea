//===- PoolVolumes.cpp - Pools over three dims ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The planes of a volume are processed as the images of a tensor of four dims. Values that other ops write and read
// plane by plane can therefore stay in local memory.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/PoolVolumes.h"

#include "codegen/Npu/Contraction/OutputStage.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// The window within a plane, and the window over planes, in which planes are rows.
struct VolumeWindows {
  hw::Window planes, window;
};

llvm::Expected<VolumeWindows> windowsOf(device::PoolOp op) {
  VolumeWindows result;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t fields[] = {op.getKernel()[axis], op.getStrides()[axis], op.getDilations()[axis]};
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) ||
        npu::typeOf(op.getX()).getDimSize(2 + axis) > UINT16_MAX) {
      return reject("has a window beyond the limits of a command: kernel, stride and dilation 255, input 65535");
    }
    hw::Window &to = axis ? result.window : result.planes;
    int at = std::max(axis - 1, 0);
    to.kernel[at] = uint8_t(fields[0]), to.step[at] = uint8_t(fields[1]), to.dilation[at] = uint8_t(fields[2]);
    to.padding[at] = int16_t(op.getPads()[axis]);
  }
  return result;
}

/// Appends the maximum of |from| over a window.
void pool(const TileView &to, const Shape &shape, const TileView &from, const hw::Window &over, const Chip &chip,
          Tile &tile) {
  hw::pool_command command;
  command.y = to.tensor, command.x = from.tensor, command.shape = shape, command.window = over;
  command.largest = 1, command.output = keepIntegers(from.tensor.type, chip.requantise);
  command.rows = uint16_t(from.dim(2)), command.columns = uint16_t(from.dim(3));
  tile.computes.push_back(hw::encode(command));
}

/// Returns true if the rows of a plane are contiguous.
bool isOneRow(const TileView &place) {
  return place.dim(2) == 1 || place.dim(3) == 1 ||
         place.tensor.strides[2] == int64_t(place.dim(3)) * place.tensor.strides[3];
}

/// Returns planes, each contiguous, as rows of an image.
TileView asRows(TileView place) {
  place.tensor.strides[3] = place.tensor.strides[place.dim(3) == 1 ? 2 : 3]; // of columns, or of rows
  place.shape = {{1, place.dim(1), place.dim(0), place.dim(2) * place.dim(3)}};
  place.tensor.strides[2] = place.tensor.strides[0], place.tensor.strides[0] = 0;
  return place;
}

llvm::Error emitVolume(device::PoolOp op, int64_t volume, const VolumeWindows &windows, const Instructions &program,
                       EmissionContext &context) {
  const Chip &chip = context.chip;
  llvm::Expected<TileView> x = context.operands.placeImages(op.getX(), volume);
  llvm::Expected<TileView> y = context.operands.placeImages(op.getY(), volume);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    Rows seen = rowsOf(windows.planes, x->dim(0), begin.dims[0], size.dims[0]);
    Rows rows = rowsOf(windows.window, x->dim(2), begin.dims[2], size.dims[2]);
    TileView from = slice(slice(slice(*x, 0, seen.begin, seen.size, chip), 1, begin.dims[1], size.dims[1], chip), 2,
                          rows.begin, rows.size, chip);
    TileView to = tileOf(*y, begin, size, chip);
    localBudget.lane = laneOf({to, from});
    TileView local = load(from, localBudget, tile), result = resultOf(to, localBudget);
    TileView each = localBudget.allocate(Shape{{seen.size, size.dims[1], size.dims[2], size.dims[3]}}, x->tensor.type);
    bool isInPlace = program.empty() && isOneRow(result);
    TileView largest = isInPlace ? result : localBudget.allocate(to.shape, x->tensor.type);
    hw::Window inPlane = windows.window, over = windows.planes;
    inPlane.padding[0] = rows.padding, over.padding[0] = seen.padding;
    pool(each, each.shape, local, inPlane, chip, tile);
    TileView all = asRows(largest);
    pool(all, all.shape, asRows(each), over, chip, tile);
    if (!program.empty()) {
      compute(context.stream, program, result, largest, tile);
    }
    program.empty() && !isInPlace ? storeToo(largest, to, tile) : store(result, to, tile);
  };
  return context.tiler.append(y->shape, Shape{{1, chip.lanes, 1, 0}}, build);
}

} // namespace

llvm::Error emitPoolOfVolumes(device::PoolOp op, EmissionContext &context) {
  RankedTensorType xType = npu::typeOf(op.getX()), yType = npu::typeOf(op.getY());
  if (op.getKind() != device::PoolKind::max || !op.getExtras().empty()) {
    return reject("is a mean over three dims, whose order of sums the chip does not support, or has epilogue operands");
  }
  llvm::Expected<Instructions> program =
      programOf(op.getEpilogue(), intervalOf(xType.getElementType()), yType.getElementType());
  if (!program) {
    return program.takeError();
  }
  llvm::Expected<VolumeWindows> windows = windowsOf(op);
  if (!windows) {
    return windows.takeError();
  }
  if (yType.getDimSize(3) * yType.getDimSize(4) > UINT16_MAX) {
    return reject("has planes larger than the row that a command can hold");
  }
  for (int64_t volume = 0; volume < xType.getDimSize(0); ++volume) {
    if (llvm::Error error = emitVolume(op, volume, *windows, *program, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
