//===- Depthwise.cpp - Depthwise convolutions -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Kernels/Depthwise.h"

#include "codegen/Cuda/Contraction/ColumnStore.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Window.h"
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::cuda {

bool isDepthwise(Operation *op) {
  auto conv = dyn_cast<device::ConvOp>(op);
  if (!conv || conv.getScales() || !top::isConstant(conv.getW()) || conv.getWeightShape()[1] != 1) {
    return false;
  }
  RankedTensorType x = typeOf(conv.getX());
  Type element = x.getElementType(), weights = typeOf(conv.getW()).getElementType();
  bool integers = element.isInteger(8) && weights.isInteger(8);
  bool floats = element == weights && device::isSummedInF32(element);
  Dim channels = Shape(x)[1];
  return (integers || floats) && channels.is(int64_t(conv.getGroups())) && channels.is(conv.getWeightShape()[0]);
}

namespace {

/// Emits the kernel. Each thread computes kLanes channels of one output position.
class DepthwiseEmitter {
public:
  static constexpr int64_t kLanes = 4;

  explicit DepthwiseEmitter(kernels::KernelBuilder &kb)
      : kb(kb), conv(cast<device::ConvOp>(kb.op())), b(kb, 1), columns(b), x(kb.operandType(0)), y(kb.resultType()),
        windows(kernels::windowDims(x, y, conv.getWeightShape().drop_front(2), conv.getStrides(), conv.getPads(),
                                    conv.getDilations())),
        sumType(VectorType::get({kLanes}, kernels::registerType(conv.getAccumulatorType()))) {
    block = device::getBlockedLayout(x).getBlock();
    channels = llvm::alignTo(Shape(x)[1].value(), block);
  }

  void emit() {
    Dim threads = Shape(y)[0] * countElements(Shape(y).dropFront(2)) * (channels / kLanes);
    int64_t groupsOfBlock = block / kLanes;
    kb.forTiles(threads, [&](Value tile) {
      // The thread number consists of, outermost first: image, block of channels, position, channels of the block.
      Value rest = b.fromIndex(tile);
      Value lane = b.mul(b.rem(rest, groupsOfBlock), kLanes);
      rest = b.div(rest, groupsOfBlock);
      SmallVector<Value> position;
      for (const kernels::WindowDim &dim : llvm::reverse(windows)) {
        position.insert(position.begin(), b.rem(rest, dim.output));
        rest = b.div(rest, dim.output);
      }
      Value blockIndex = b.rem(rest, channels / block), image = b.div(rest, channels / block);
      emitThread(image, b.add(b.mul(blockIndex, block), lane), position);
    });
  }

private:
  void emitThread(Value image, Value channel, ArrayRef<Value> position) {
    Value sums = kb.zero(sumType);
    int64_t taps = 1;
    for (const kernels::WindowDim &dim : windows) {
      taps *= dim.kernel;
    }
    Value start = startOf(image, channel);
    for (int64_t tap = 0; tap < taps; ++tap) {
      sums = addTap(sums, start, channel, position, tap);
    }
    SmallVector<Value> indices{b.toIndex(image), nullptr};
    llvm::append_range(indices, llvm::map_range(position, [&](Value p) { return b.toIndex(p); }));
    columns.store(indices, channel, sums, channels);
  }

  /// Returns the element offset of |channel| at position 0 of |image|.
  Value startOf(Value image, Value channel) {
    Dim positions = 1;
    for (const kernels::WindowDim &dim : windows) {
      positions *= dim.input;
    }
    Value blockStart = b.mul(b.div(channel, block), positions * block);
    return b.add(b.add(b.mul(image, positions * channels), blockStart), b.rem(channel, block));
  }

  Value addTap(Value sums, Value start, Value channel, ArrayRef<Value> position, int64_t tap) {
    Value offset = start, inside;
    Dim stride = block;
    int64_t rest = tap;
    for (size_t i = windows.size(); i-- > 0;) {
      const kernels::WindowDim &dim = windows[i];
      int64_t shift = rest % dim.kernel * dim.dilation - dim.padBegin;
      Value at = b.add(b.mul(position[i], dim.stride), shift);
      bool reachesOutside = shift < 0 || minOf(dim.input - (dim.output - 1) * dim.stride) <= shift;
      inside = reachesOutside ? b.both(inside, b.below(at, dim.input)) : inside;
      offset = b.add(offset, b.mul(at, stride));
      rest /= dim.kernel, stride *= dim.input;
    }
    Type element = x.getElementType(), weight = kb.operandType(1).getElementType(), sum = sumType.getElementType();
    // A tap outside the image reads the first element instead, which is then replaced by padding.
    Value safe = inside ? Value(arith::SelectOp::create(kb.b, inside, offset, start)) : offset;
    Value values = load(element, kb.operand(0), safe);
    if (inside) {
      Value padding = kb.zero(values.getType());
      if (conv.getPadValue()) {
        auto type = cast<VectorType>(values.getType());
        auto number = IntegerAttr::get(type.getElementType(), APInt(8, uint64_t(conv.getPadValue()), false, true));
        padding = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, Attribute(number)));
      }
      values = arith::SelectOp::create(kb.b, inside, values, padding);
    }
    Value weights = load(weight, kb.operand(1), b.add(channel, tap * channels));
    return kernels::emitMultiplyAdd(kb, kernels::convertElement(kb, values, element, sum),
                                    kernels::convertElement(kb, weights, weight, sum), sums);
  }

  Value load(Type element, Value base, Value index) {
    return kb.loadElements(element, kLanes, base, b.toIndex(index), nullptr,
                           unsigned(kLanes * device::elementBytes(element)));
  }

  kernels::KernelBuilder &kb;
  device::ConvOp conv;
  BlockBuilder b;
  ColumnStore columns;
  RankedTensorType x, y;
  SmallVector<kernels::WindowDim> windows;
  VectorType sumType;
  int64_t block, channels;
};

} // namespace

void emitDepthwise(kernels::KernelBuilder &kb) { DepthwiseEmitter(kb).emit(); }

} // namespace tessera::cuda
