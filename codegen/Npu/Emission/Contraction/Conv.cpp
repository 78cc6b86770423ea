//===- Conv.cpp - Convolutions on the matrix unit -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/Decisions/FusedOps.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Vector/Intervals.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// Sets the window of a convolution, including its depth.
llvm::Error setWindow(Contraction &contraction, device::ConvOp op) {
  auto xType = cast<RankedTensorType>(op.getX().getType()), wType = cast<RankedTensorType>(op.getW().getType());
  unsigned axes = unsigned(xType.getRank()) - 2, rows = axes - 2;
  for (unsigned axis = 0; axis < axes; ++axis) {
    int64_t fields[] = {wType.getDimSize(2 + axis), op.getStrides()[axis], op.getDilations()[axis]};
    int64_t padding = op.getPads()[axis];
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) || std::abs(padding) > INT16_MAX ||
        xType.getDimSize(2 + axis) > UINT16_MAX) {
      return reject(
          "has a window beyond the limits of a command: kernel, stride and dilation 255, padding 32767, input 65535");
    }
    if (axis < rows) {
      contraction.depth = {uint32_t(fields[0]), uint32_t(fields[1]), uint32_t(fields[2]), int32_t(padding)};
      continue;
    }
    unsigned to = axis - rows;
    contraction.window.kernel[to] = uint8_t(fields[0]), contraction.window.step[to] = uint8_t(fields[1]);
    contraction.window.dilation[to] = uint8_t(fields[2]), contraction.window.padding[to] = int16_t(padding);
  }
  contraction.window.padValue = int16_t(op.getPadValue());
  if (contraction.isDepthwise() && contraction.depth.kernel * contraction.window.kernel[0] > 255) {
    return reject("has a depthwise kernel with more than 255 planes times rows, the limit of a command");
  }
  return llvm::Error::success();
}

/// Returns the weights in the order in which the matrix unit reads them. |rows|: kernel rows, or planes, that become
/// channels.
std::vector<char> orderOf(std::vector<char> weights, const Contraction &contraction, uint32_t channels, uint32_t rows,
                          uint32_t taps) {
  size_t size = hw::sizeOf(contraction.weights.type);
  if (contraction.isDepthwise()) {
    return weights;
  }
  if (rows > 1) {
    weights = foldRows(weights, contraction.y.dim(1), channels, rows, taps * size);
  }
  return orderWeights(std::move(weights), contraction.y.dim(1), channels * rows, taps, size);
}

/// Sets the weights and their shape. All schedules that are tried share the weights.
llvm::Error setWeights(Contraction &contraction, device::ConvOp op, int64_t volume,
                       const ContractionConstants &constants, EmissionContext &context) {
  uint32_t channels = uint32_t(npu::typeOf(op.getW()).getDimSize(1)), planes = contraction.depth.kernel;
  auto forms = op->getAttrOfType<ArrayAttr>(NpuDialect::kTapsAttr);
  if (!forms) {
    return reject("does not have npu.taps: run npu-choose-forms first");
  }
  llvm::Expected<Im2col> im2col = im2colOf(cast<TapsAttr>(forms[size_t(volume)]), contraction);
  if (!im2col) {
    return im2col.takeError();
  }
  contraction.im2col = *im2col;
  bool fusedOps = bool(contraction.im2col);
  uint32_t outputs = contraction.y.dim(1), rows = fusedOps ? contraction.window.kernel[0] : planes;
  uint32_t taps = contraction.window.kernel[0] * contraction.window.kernel[1] / (fusedOps ? rows : 1);
  auto &records = context.stream.constants.weights;
  auto [known, isNew] = records.try_emplace({op.getOperation(), fusedOps, volume});
  if (isNew) {
    llvm::Expected<std::vector<char>> weights = constants.weights(contraction.weights.type);
    if (!weights) {
      records.erase(known);
      return weights.takeError();
    }
    contraction.weights.ordered = orderOf(std::move(*weights), contraction, channels, rows, taps);
  }
  // The channels of a tap lie one after another, so columns that become channels do not change the order.
  uint32_t columns = contraction.im2col.columns;
  contraction.weights.record = &known->second;
  contraction.weights.shape = Shape{{1, outputs, taps / columns, channels * rows * columns}};
  if (contraction.isDepthwise()) {
    contraction.weights.shape.dims[2] = planes * contraction.window.kernel[0],
    contraction.weights.shape.dims[3] = contraction.window.kernel[1];
  }
  return llvm::Error::success();
}

ContractionConstants constantsOf(device::ConvOp op) {
  ArrayRef<int64_t> dims = npu::typeOf(op.getW()).getShape();
  return {op.getW(), op.getBias(), op.getScales(), device::WeightScales::ofConv(dims, op.getWeightGroup())};
}

/// Places x, or the operand of |map| if that is not null and computes x in the convolution.
llvm::Error placeX(Contraction &contraction, device::ConvOp op, device::MapOp map, int64_t volume,
                   EmissionContext &context) {
  llvm::Expected<TileView> from = context.operands.placeImages(map ? map.getInputs()[0] : op.getX(), volume);
  if (!from) {
    return from.takeError();
  }
  contraction.x = *from;
  if (!map) {
    return llvm::Error::success();
  }
  llvm::Expected<Instructions> program =
      programOf(map.getBody(), intervalOf(map.getInputs()[0]), npu::typeOf(op.getX()).getElementType());
  llvm::Error types = checkElementTypes(map, context.chip);
  if (!program || types) {
    return llvm::joinErrors(program.takeError(), std::move(types));
  }
  int32_t before = int32_t(hw::sizeOf(from->tensor.type));
  contraction.x.tensor.type = *npu::typeOf(npu::typeOf(op.getX()).getElementType());
  for (int32_t &stride : contraction.x.tensor.strides) {
    stride = stride / before * int32_t(hw::sizeOf(contraction.x.tensor.type));
  }
  contraction.mapped = MappedInput{*from, std::move(*program)};
  return llvm::Error::success();
}

/// Sets everything except the weights, for one volume (planes as images) or for all images. |map|: computes x in the
/// convolution; may be null.
llvm::Error setContraction(Contraction &contraction, device::ConvOp op, device::MapOp map, int64_t volume,
                           EmissionContext &context) {
  RankedTensorType yType = npu::typeOf(op.getY());
  if (llvm::Error error = placeX(contraction, op, map, volume, context)) {
    return error;
  }
  llvm::Expected<TileView> y = context.operands.placeImages(op.getY(), volume);
  if (!y) {
    return y.takeError();
  }
  contraction.y = *y;
  contraction.groups = uint32_t(op.getGroups());
  if (llvm::Error error = setWindow(contraction, op)) {
    return error;
  }
  auto placeExtra = [&](Value value) { return context.operands.placeBroadcastImages(value, yType.getShape(), volume); };
  if (llvm::Error error = setEpilogue(contraction, op.getEpilogue(), op.getExtras(), yType.getElementType(),
                                      context.stream, placeExtra)) {
    return error;
  }
  return constantsOf(op).setParameters(contraction);
}

llvm::Error emitVolume(device::ConvOp op, int64_t volume, EmissionContext &context) {
  Contraction contraction;
  if (llvm::Error error = setContraction(contraction, op, fusion::fusedInputMapOf(op), volume, context)) {
    return error;
  }
  if (llvm::Error error = setWeights(contraction, op, volume, constantsOf(op), context)) {
    return error;
  }
  return appendContraction(contraction, context.tiler);
}

int64_t volumesOf(device::ConvOp op) {
  RankedTensorType type = npu::typeOf(op.getX());
  return type.getRank() == 5 ? type.getDimSize(0) : 1;
}

/// Returns true if the convolution shall compute the map in front of it on the data that it loads, and fuses the map.
bool mapsInput(device::ConvOp conv, EmissionContext &context) {
  auto map = conv.getX().getDefiningOp<device::MapOp>();
  if (!map || fusion::getFused(map) || fusion::findMapReader(map) != conv) {
    return false;
  }
  Contraction contraction;
  if (llvm::Error error = setContraction(contraction, conv, map, 0, context)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  const Chip &chip = context.chip;
  if (!canMapInput(contraction, chip) || !usesIm2colUnmapped(contraction, chip) ||
      !(context.fusesInputs ? *context.fusesInputs : paysToMap(contraction, chip))) {
    return false;
  }
  map->setAttr(NpuDialect::kFusedAttr, FusedAttr::get(conv->getContext(), FusedInto::readers, -1));
  return true;
}

struct ConvModel : EmissionInterface::ExternalModel<ConvModel, device::ConvOp> {
  /// Leaves the attribute out if the convolution is not supported; emit reports the reason.
  void chooseForm(Operation *op, EmissionContext &context) const {
    auto conv = cast<device::ConvOp>(op);
    llvm::Error error = checkContraction(conv.getX(), conv.getW(), context.chip);
    SmallVector<Attribute> forms;
    for (int64_t volume = 0; !error && volume < volumesOf(conv); ++volume) {
      Contraction contraction;
      device::MapOp map = !error && mapsInput(conv, context) ? fusion::fusedInputMapOf(conv) : device::MapOp();
      error = setContraction(contraction, conv, map, volume, context);
      if (!error) {
        forms.push_back(chooseTaps(contraction, op->getContext(), context.chip));
      }
    }
    error ? llvm::consumeError(std::move(error))
          : op->setAttr(NpuDialect::kTapsAttr, ArrayAttr::get(op->getContext(), forms));
  }
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    auto conv = cast<device::ConvOp>(op);
    if (llvm::Error error = checkContraction(conv.getX(), conv.getW(), context.chip)) {
      return error;
    }
    for (int64_t volume = 0; volume < volumesOf(conv); ++volume) {
      if (llvm::Error error = emitVolume(conv, volume, context)) {
        return error;
      }
    }
    return llvm::Error::success();
  }
  bool storesImages(Operation *) const { return true; }
  bool runsInSlices(Operation *) const { return true; }
  RowRange rowsRead(Operation *op, Value operand, uint32_t size, RowRange y) const {
    auto conv = cast<device::ConvOp>(op);
    if (operand != conv.getX()) {
      return y; // an operand of the epilogue
    }
    int64_t kernel = npu::typeOf(conv.getW()).getDimSize(2);
    return rowsOfWindows(y, size, kernel, conv.getStrides()[0], conv.getDilations()[0], conv.getPads()[0]);
  }
};

} // namespace

void attachConvModels(MLIRContext *context) { device::ConvOp::attachInterface<ConvModel>(*context); }

} // namespace tessera::npu
