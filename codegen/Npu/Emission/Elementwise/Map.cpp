//===- Map.cpp - Element-wise programs on the vector unit -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Elementwise/ElementwiseParts.h"
#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Vector/Intervals.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

llvm::Error emitMap(device::MapOp op, EmissionContext &context) {
  const Chip &chip = context.chip;
  if (op.getInputs().empty() || op.getInputs().size() > hw::kMapOperands) {
    return reject("must have 1 to 4 operands");
  }
  SmallVector<Value> values = {op.getY()};
  SmallVector<Interval> intervals;
  for (Value input : op.getInputs()) {
    values.push_back(input);
    intervals.push_back(intervalOf(input));
  }
  llvm::Expected<Instructions> program = programOf(op.getBody(), intervals, npu::typeOf(op.getY()).getElementType());
  if (!program) {
    return program.takeError();
  }
  hw::InstructionCounts counts = hw::countsOf(program->data(), program->size());
  auto parts = placeParts(values, counts.plain + double(counts.slow) * chip.functionCycles, context);
  if (!parts) {
    return parts.takeError();
  }
  for (ArrayRef<TileView> part : *parts) {
    auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
      SmallVector<TileView> operands;
      for (const TileView &each : part) {
        operands.push_back(tileOf(each, begin, size, chip));
      }
      localBudget.lane = laneOf(operands);
      TileView to = operands.front();
      operands.erase(operands.begin());
      for (auto [value, operand] : llvm::zip_equal(op.getInputs(), operands)) {
        operand =
            isWide(value) ? loadWide(operand, context.stream, localBudget, tile) : load(operand, localBudget, tile);
      }
      bool widens = isWide(op.getY());
      TileView y = widens ? resultOfWide(to, localBudget) : resultOf(to, localBudget);
      compute(context.stream, *program, y, operands, tile);
      if (widens) {
        storeWide(y, to, context.stream, tile);
      } else {
        store(y, to, tile);
      }
    };
    if (llvm::Error error = context.tiler.append(part.front().shape, elementwiseGranule(chip), build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

struct MapModel : EmissionInterface::ExternalModel<MapModel, device::MapOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const { return emitMap(cast<device::MapOp>(op), context); }
  bool runsInSlices(Operation *) const { return true; }
};

} // namespace

void attachMapModels(MLIRContext *context) { device::MapOp::attachInterface<MapModel>(*context); }

} // namespace tessera::npu
