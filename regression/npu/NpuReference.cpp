//===- NpuReference.cpp - Reference of float convolutions on the NPU ------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/NpuReference.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/Reference/ScalarInterpreter.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>

using namespace mlir;
namespace ref = tessera::top::reference;

namespace tessera::npu {
namespace {

using top::HostTensor;

std::vector<float> floatsOf(const HostTensor &tensor) {
  std::vector<double> values = ref::read<double>(tensor);
  return {values.begin(), values.end()};
}

device::ConvOp floatConvolution(Operation &op) {
  auto conv = dyn_cast<device::ConvOp>(op);
  return conv && !conv.getScales() && !device::hasSpecifiedBits(conv) ? conv : device::ConvOp();
}

bool isDepthwise(device::ConvOp conv) {
  auto w = cast<RankedTensorType>(conv.getW().getType());
  return conv.getGroups() > 1 && w.getDimSize(1) == 1 && int64_t(conv.getGroups()) == w.getDimSize(0);
}

bool canFold(device::ConvOp conv) {
  auto w = cast<RankedTensorType>(conv.getW().getType());
  return w.getRank() == 4 && conv.getGroups() == 1 && w.getDimSize(2) > 1;
}

/// Adds |count| products of a (with distance |aStep|) and b to |sum|. Also compiled for processors with FMA, because a
/// function call per product would dominate the run time.
__attribute__((target_clones("default", "fma"))) float sumFused(const float *a, int64_t aStep, const float *b,
                                                                int64_t bStep, int64_t count, float sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum = std::fma(a[i * aStep], b[i * bStep], sum);
  }
  return sum;
}

float sumRounded(const float *a, int64_t aStep, const float *b, int64_t bStep, int64_t count, float sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum += a[i * aStep] * b[i * bStep];
  }
  return sum;
}

/// Computes a convolution tap by tap and, within each tap, channel by channel, with fused multiply-adds; depthwise
/// convolutions are not fused.
class Convolution {
public:
  Convolution(device::ConvOp conv, ArrayRef<const HostTensor *> inputs, bool folds)
      : x(floatsOf(*inputs[0])), w(floatsOf(*inputs[1])), xDims(inputs[0]->getShape()), wDims(inputs[1]->getShape()),
        strides(conv.getStrides()), dilations(conv.getDilations()), pads(conv.getPads()),
        groups(int64_t(conv.getGroups())), fuses(!isDepthwise(conv)) {
    bias = conv.getBias() ? floatsOf(*inputs[2]) : std::vector<float>();
    SmallVector<int64_t> kernel(wDims.drop_front(2));
    ref::forEachIndex(kernel, [&](ref::DimsRef tap) { taps.emplace_back(tap); });
    if (folds) { // columns outside, rows inside
      llvm::sort(taps, [](ref::DimsRef a, ref::DimsRef b) { return std::pair(a[1], a[0]) < std::pair(b[1], b[0]); });
    }
  }

  void run(HostTensor &y) {
    std::vector<double> sums;
    ref::forEachIndex(y.getShape(), [&](ref::DimsRef at) { sums.push_back(sumAt(at)); });
    ref::write(sums, y);
  }

private:
  float sumAt(ref::DimsRef at) const {
    int64_t channels = wDims[1], plane = ref::product(xDims.drop_front(2)), size = int64_t(taps.size());
    int64_t group = at[1] / (wDims[0] / groups);
    const float *from = &x[(at[0] * xDims[1] + group * channels) * plane], *weights = &w[at[1] * channels * size];
    ref::Dims steps = ref::rowMajorStrides(xDims.drop_front(2)), places = ref::rowMajorStrides(wDims.drop_front(2));
    float sum = 0;
    for (const ref::Dims &tap : taps) {
      std::optional<int64_t> offset = offsetOf(at.drop_front(2), tap, steps);
      const float *ofTap = weights + ref::dot(tap, places);
      if (offset) {
        const float *ofPlane = from + *offset;
        sum = fuses ? sumFused(ofPlane, plane, ofTap, size, channels, sum)
                    : sumRounded(ofPlane, plane, ofTap, size, channels, sum);
      }
    }
    return bias.empty() ? sum : sum + bias[at[1]];
  }

  /// Returns the offset of the element that a tap reads; nothing if it is outside.
  std::optional<int64_t> offsetOf(ref::DimsRef at, ref::DimsRef tap, ref::DimsRef steps) const {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      int64_t place = at[d] * strides[d] + tap[d] * dilations[d] - pads[d];
      if (place < 0 || place >= xDims[2 + d]) {
        return std::nullopt;
      }
      offset += place * steps[d];
    }
    return offset;
  }

  std::vector<float> x, w, bias;
  ref::DimsRef xDims, wDims, strides, dilations, pads;
  int64_t groups;
  bool fuses;
  std::vector<ref::Dims> taps;
};

LogicalResult evaluate(device::ConvOp conv, ArrayRef<const HostTensor *> inputs, bool folds, HostTensor &y) {
  HostTensor sums(conv.getAccumulatorType(), y.getShape());
  Convolution(conv, inputs, folds).run(sums);
  SmallVector<const HostTensor *> arguments{&sums};
  llvm::append_range(arguments, inputs.take_back(conv.getExtras().size()));
  return device::runScalarRegion(conv.getEpilogue(), arguments, y);
}

} // namespace

unsigned countFoldable(func::FuncOp function) {
  return unsigned(llvm::count_if(function.getBody().front(), [](Operation &op) {
    device::ConvOp conv = floatConvolution(op);
    return conv && canFold(conv);
  }));
}

FailureOr<top::TensorMap> evaluateAsNpu(func::FuncOp function, const top::TensorMap &inputs, uint64_t folded) {
  llvm::DenseMap<Value, HostTensor> tensors;
  auto nameOf = [](StringAttr name) { return name ? name.str() : std::string(); };
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    auto name = function.getArgAttrOfType<StringAttr>(unsigned(i), top::TopDialect::kNameAttr);
    tensors.try_emplace(argument, inputs.find(nameOf(name))->second);
  }
  unsigned foldable = 0;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (top::isConstant(op.getResult(0))) {
      auto data = top::getConstantData(op.getResult(0));
      tensors.try_emplace(op.getResult(0), HostTensor::borrow(data->type, data->bytes, data->owner));
      continue;
    }
    SmallVector<const HostTensor *> operands;
    for (Value operand : op.getOperands()) {
      operands.push_back(&tensors.find(operand)->second);
    }
    SmallVector<HostTensor> results;
    if (device::ConvOp conv = floatConvolution(op)) {
      bool folds = canFold(conv) && (folded >> foldable++ & 1);
      results.emplace_back(cast<RankedTensorType>(conv.getY().getType()));
      if (failed(evaluate(conv, operands, folds, results[0]))) {
        return failure();
      }
    } else if (failed(top::Evaluator().runOp(&op, operands, results))) {
      return failure();
    }
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results)) {
      tensors.insert_or_assign(value, std::move(tensor));
    }
  }
  top::TensorMap named;
  for (auto [i, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(unsigned(i), top::TopDialect::kNameAttr);
    named.insert_or_assign(nameOf(name), tensors.find(value)->second);
  }
  return named;
}

} // namespace tessera::npu
