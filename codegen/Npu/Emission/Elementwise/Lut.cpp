//===- Lut.cpp - Tables on the vector unit --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Elementwise/ElementwiseParts.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// Emits a lookup with one table per channel; x and y are images.
llvm::Error emitPerChannel(device::LutOp op, EmissionContext &context) {
  const Chip &chip = context.chip;
  llvm::Expected<TileView> yImages = context.operands.placeImages(op.getY(), 0);
  llvm::Expected<TileView> xImages = context.operands.placeImages(op.getX(), 0);
  llvm::Expected<TileView> tables =
      context.operands.place(op.getTable(), {1, npu::typeOf(op.getY()).getDimSize(1), 1, 256}, {0, 256, 0, 1});
  if (!yImages || !xImages || !tables) {
    return llvm::joinErrors(llvm::joinErrors(yImages.takeError(), xImages.takeError()), tables.takeError());
  }
  std::optional<TileView> liveAcross;
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    TileView to = tileOf(*yImages, begin, size, chip), from = tileOf(*xImages, begin, size, chip);
    localBudget.lane = laneOf({to, from});
    TileView x = load(from, localBudget, tile);
    TileView table = tileOf(*tables, {{0, begin.dims[1], 0, 0}}, {{1, size.dims[1], 1, 256}}, chip);
    table = loadOnce(table, begin, localBudget, tile, liveAcross);
    TileView y = resultOf(to, localBudget);
    hw::lut_command lut;
    lut.y = y.tensor, lut.x = x.tensor, lut.table = table.tensor, lut.shape = to.shape;
    tile.computes.push_back(hw::encode(lut));
    store(y, to, tile);
  };
  return context.tiler.append(yImages->shape, elementwiseGranule(chip), build);
}

llvm::Error emitLut(device::LutOp op, EmissionContext &context) {
  if (op.hasTablePerChannel()) {
    return emitPerChannel(op, context);
  }
  const Chip &chip = context.chip;
  auto parts = placeParts({op.getY(), op.getX()}, 1, context);
  llvm::Expected<TileView> table = context.operands.place(op.getTable(), {1, 1, 1, 256}, {0, 0, 0, 1});
  if (!parts || !table) {
    return llvm::joinErrors(parts.takeError(), table.takeError());
  }
  for (ArrayRef<TileView> part : *parts) {
    std::optional<TileView> liveAcross;
    auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
      TileView to = tileOf(part[0], begin, size, chip), from = tileOf(part[1], begin, size, chip);
      localBudget.lane = laneOf({to, from});
      TileView x = load(from, localBudget, tile); // one table per lane, whatever the number of channels in it
      TileView local = loadPerLane(*table, begin, size.dims[1], chip, localBudget, tile, liveAcross),
               y = resultOf(to, localBudget);
      hw::lut_command lut;
      lut.y = y.tensor, lut.x = x.tensor, lut.table = local.tensor, lut.shape = to.shape;
      tile.computes.push_back(hw::encode(lut));
      store(y, to, tile);
    };
    if (llvm::Error error = context.tiler.append(part[0].shape, elementwiseGranule(chip), build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

struct LutModel : EmissionInterface::ExternalModel<LutModel, device::LutOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const { return emitLut(cast<device::LutOp>(op), context); }
  bool runsInSlices(Operation *) const { return true; }
};

} // namespace

void attachLutModels(MLIRContext *context) { device::LutOp::attachInterface<LutModel>(*context); }

} // namespace tessera::npu
