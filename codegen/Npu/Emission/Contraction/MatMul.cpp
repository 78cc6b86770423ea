//===- MatMul.cpp - Matmuls on the matrix unit ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A matmul is executed as a convolution of an image with one column: rows of a are the image's rows, columns of a its
// channels. A constant second matrix holds the weights of a single convolution over all leading dims. Otherwise each
// index of the batch dims is a convolution, whose second matrix is loaded into local memory as weights are.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/Emission/Contraction/RowsOnLanesMatmul.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"

#include "device_dialect/Transforms/Addresses.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

llvm::Expected<TileView> placeColumns(const StridedView &seen, int64_t columns, int64_t rows, OperandPlacer &operands) {
  return operands.place(seen.value, {1, columns, rows, 1},
                        {0, *seen.strideOf(1, columns), *seen.strideOf(columns, rows), 1}, seen.offset);
}

/// Places an operand of the epilogue. All leading dims count as rows; the operand must broadcast over all of them or
/// none.
llvm::Expected<TileView> placeExtraOf(Value value, int64_t rows, int64_t outputs, EmissionContext &context) {
  RankedTensorType type = npu::typeOf(value);
  int64_t count = type.getNumElements(), last = type.getRank() ? type.getShape().back() : 1;
  StridedView seen = context.fusedOps.viewOf(value); // a vector may be a complete, fused result
  if (count == 1 || (last == outputs && count == outputs)) {
    return context.operands.place(seen.value, {1, outputs, rows, 1},
                                  {0, count == 1 ? 0 : *seen.strideOf(1, outputs), 0, 0}, seen.offset);
  }
  if (last == 1 && count == rows) {
    return context.operands.place(seen.value, {1, outputs, rows, 1}, {0, 0, *seen.strideOf(1, rows), 0}, seen.offset);
  }
  if (count != rows * outputs) {
    return reject("has an epilogue that broadcasts over some of the leading dims, which is not supported yet");
  }
  return placeColumns(seen, outputs, rows, context.operands);
}

/// Sets the weights and their shape. All schedules that are tried share the weights.
llvm::Error setWeights(Contraction &contraction, device::MatMulOp op, int64_t inner,
                       const ContractionConstants &constants, CommandStream &stream) {
  int64_t outputs = contraction.y.dim(1);
  auto &records = stream.constants.weights;
  auto [known, isNew] = records.try_emplace({op.getOperation(), false, 0});
  if (isNew) {
    llvm::Expected<std::vector<char>> weights = constants.weights(contraction.weights.type);
    if (!weights) {
      records.erase(known);
      return weights.takeError();
    }
    // The matrix unit reads one row per output. Weights with outputs as columns are transposed, as if rows were taps.
    contraction.weights.ordered =
        op.getTransB() ? std::move(*weights)
                       : orderWeights(std::move(*weights), 1, inner, outputs, hw::sizeOf(contraction.weights.type));
  }
  contraction.weights.record = &known->second,
  contraction.weights.shape = Shape{{1, uint32_t(outputs), 1, uint32_t(inner)}};
  return llvm::Error::success();
}

/// Emits a matmul by constant weights.
llvm::Error emitByWeights(device::MatMulOp op, EmissionContext &context) {
  RankedTensorType bType = npu::typeOf(op.getB()), yType = npu::typeOf(op.getY());
  int64_t inner = npu::typeOf(op.getA()).getShape().back(), outputs = yType.getShape().back();
  int64_t rows = yType.getNumElements() / outputs;
  if (rows > UINT16_MAX) {
    return reject("has more than 65535 rows, the limit of a command");
  }
  const FusedOps &fusedOps = context.fusedOps;
  const FusedOps::FusedConsumers *consumers = fusedOps.consumersOf(op);
  llvm::Expected<TileView> x = placeColumns(fusedOps.viewOf(op.getA()), inner, rows, context.operands);
  llvm::Expected<TileView> y = placeColumns(consumers ? consumers->targets.front() : fusedOps.viewOf(op.getY()),
                                            outputs, rows, context.operands);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Contraction contraction;
  contraction.x = *x, contraction.y = *y;
  auto placeExtra = [&](Value value) { return placeExtraOf(value, rows, outputs, context); };
  if (llvm::Error error = setEpilogue(contraction, op.getEpilogue(), op.getExtras(), yType.getElementType(),
                                      context.stream, placeExtra)) {
    return error;
  }
  const ContractionConstants constants{
      op.getB(), op.getBias(), op.getScales(),
      device::WeightScales::ofMatMul(bType.getShape(), op.getWeightGroup(), op.getTransB())};
  if (llvm::Error error = constants.setParameters(contraction)) {
    return error;
  }
  if (llvm::Error error = setWeights(contraction, op, inner, constants, context.stream)) {
    return error;
  }
  return appendContraction(contraction, context.tiler);
}

/// Matmuls whose second matrix is loaded like weights, one for each index of the batch dims.
class BatchedContractions {
public:
  BatchedContractions(device::MatMulOp op, EmissionContext &context)
      : op(op), context(context), aDims(npu::typeOf(op.getA()).getShape()), bDims(npu::typeOf(op.getB()).getShape()),
        dims(npu::typeOf(op.getY()).getShape()), batch(dims.drop_back(2)), rows(dims[batch.size()]),
        outputs(dims.back()), inner(op.getTransA() ? aDims[aDims.size() - 2] : aDims.back()) {}

  llvm::Error emit();

private:
  llvm::Error emitOne(int64_t index, int64_t aBatch, int64_t bBatch);
  llvm::Expected<TileView> placeExtra(Value value, int64_t index);

  device::MatMulOp op;
  EmissionContext &context;
  ArrayRef<int64_t> aDims, bDims, dims, batch;
  int64_t rows, outputs, inner;
  std::vector<int32_t> bias;
};

llvm::Error BatchedContractions::emit() {
  if (op.getScales()) {
    return reject("multiplies transposed floats by scaled integers, which is not supported yet");
  }
  if (llvm::Error error = checkContraction(op.getA(), op.getB(), context.chip)) {
    return error;
  }
  if (rows > UINT16_MAX) {
    return reject("has more than 65535 rows, the limit of a command");
  }
  if (op.getBias()) {
    llvm::Expected<std::vector<int32_t>> values = constantValues<int32_t>(op.getBias(), "a bias");
    if (!values) {
      return values.takeError();
    }
    bias = std::move(*values);
  }
  SmallVector<int64_t> aBatches = batchesOf(aDims.drop_back(2), batch), bBatches = batchesOf(bDims.drop_back(2), batch);
  for (auto [index, aBatch, bBatch] : llvm::enumerate(aBatches, bBatches)) {
    if (llvm::Error error = emitOne(int64_t(index), aBatch, bBatch)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error BatchedContractions::emitOne(int64_t index, int64_t aBatch, int64_t bBatch) {
  OperandPlacer &operands = context.operands;
  auto [down, across] = op.getTransA() ? std::pair(int64_t(1), rows) : std::pair(inner, int64_t(1));
  llvm::Expected<TileView> x =
      operands.place(op.getA(), {1, inner, rows, 1}, {0, across, down, 1}, aBatch * rows * inner);
  llvm::Expected<TileView> y =
      operands.place(op.getY(), {1, outputs, rows, 1}, {0, 1, outputs, 1}, index * rows * outputs);
  int64_t byOutput = op.getTransB() ? inner : 1, byChannel = op.getTransB() ? 1 : outputs;
  llvm::Expected<TileView> w =
      operands.placeOutside(op.getB(), {1, outputs, 1, inner}, {0, byOutput, 0, byChannel}, bBatch * inner * outputs);
  if (!x || !y || !w) {
    return llvm::joinErrors(llvm::joinErrors(x.takeError(), y.takeError()), w.takeError());
  }
  uint64_t record = 0;
  Contraction contraction;
  contraction.x = *x, contraction.y = *y, contraction.weights.variable = *w, contraction.weights.type = w->tensor.type,
  contraction.epilogue.bias = bias;
  contraction.weights.record = &record, contraction.weights.shape = Shape{{1, uint32_t(outputs), 1, uint32_t(inner)}};
  auto place = [&](Value value) { return placeExtra(value, index); };
  if (llvm::Error error = setEpilogue(contraction, op.getEpilogue(), op.getExtras(),
                                      npu::typeOf(op.getY()).getElementType(), context.stream, place)) {
    return error;
  }
  return appendContraction(contraction, context.tiler);
}

/// Places the part of an epilogue operand that belongs to batch |index|.
llvm::Expected<TileView> BatchedContractions::placeExtra(Value value, int64_t index) {
  SmallVector<int64_t> strides = broadcastNest({dims, npu::typeOf(value).getShape()}).strides[1];
  int64_t offset = 0, left = index;
  for (size_t dim = batch.size(); dim-- > 0; left /= batch[dim]) {
    offset += left % batch[dim] * strides[dim];
  }
  return context.operands.place(value, {1, outputs, rows, 1}, {0, strides.back(), strides[batch.size()], 0}, offset);
}

struct MatMulModel : EmissionInterface::ExternalModel<MatMulModel, device::MatMulOp> {
  void chooseForm(Operation *op, EmissionContext &context) const {
    if (std::optional<int64_t> batches = chooseRowsOnLanes(cast<device::MatMulOp>(op), context)) {
      op->setAttr(NpuDialect::kRowsOnLanesAttr, Builder(op->getContext()).getI64IntegerAttr(*batches));
    }
  }
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    auto matmul = cast<device::MatMulOp>(op);
    if (op->hasAttr(NpuDialect::kRowsOnLanesAttr)) {
      return emitRowsOnLanesMatmul(matmul, context);
    }
    bool hasWeights = npu::typeOf(matmul.getB()).getRank() == 2 && device::getConstantRoot(matmul.getB());
    if (matmul.getTransA() || !hasWeights) {
      return BatchedContractions(matmul, context).emit();
    }
    llvm::Error error = checkContraction(matmul.getA(), matmul.getB(), context.chip);
    return error ? std::move(error) : emitByWeights(matmul, context);
  }
};

/// In matmuls by constant weights, all leading dims are rows. Maps behind them are already their epilogues.
struct MatMulFusion : RowFusionInterface::ExternalModel<MatMulFusion, device::MatMulOp> {
  bool worksOnRows(Operation *op) const {
    auto contraction = cast<device::MatMulOp>(op);
    return !contraction.getTransA() && npu::typeOf(contraction.getB()).getRank() == 2 &&
           device::getConstantRoot(contraction.getB());
  }
  bool canRead(Operation *op, OpOperand &use, const StridedView &view) const {
    auto contraction = cast<device::MatMulOp>(op);
    bool isExtra = llvm::is_contained(contraction.getExtras(), use.get());
    int64_t count = npu::typeOf(use.get()).getNumElements(), columns = columnsOf(contraction, use);
    bool isWhole = count == npu::typeOf(contraction.getY()).getNumElements();
    return (isExtra ? isWhole : use.get() == contraction.getA()) && fusion::hasEvenRows(view, count / columns, columns);
  }
  bool paysToRead(Operation *op, OpOperand &use, const StridedView &view, const Chip &chip) const {
    RankedTensorType type = npu::typeOf(use.get());
    int64_t columns = columnsOf(cast<device::MatMulOp>(op), use), rows = type.getNumElements() / columns;
    int64_t together = *view.strideOf(columns, rows) == 1 ? rows : *view.strideOf(1, columns) == 1 ? columns : 1;
    return together * (type.getElementTypeBitWidth() / 8) >= chip.burstBytes;
  }
  bool canStore(Operation *op, const StridedView &view) const {
    RankedTensorType type = npu::typeOf(op->getResult(0));
    return fusion::hasEvenRows(view, type.getNumElements() / type.getShape().back(), type.getShape().back());
  }

private:
  static int64_t columnsOf(device::MatMulOp contraction, OpOperand &use) {
    bool isExtra = llvm::is_contained(contraction.getExtras(), use.get());
    return npu::typeOf(isExtra ? contraction.getY() : contraction.getA()).getShape().back();
  }
};

} // namespace

void attachMatMulModels(MLIRContext *context) {
  device::MatMulOp::attachInterface<MatMulModel, MatMulFusion>(*context);
}

} // namespace tessera::npu
