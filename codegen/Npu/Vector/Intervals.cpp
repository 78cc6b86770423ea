//===- Intervals.cpp - Ranges of tensors' values --------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// 32- and 64-bit integers are exact in a register only up to 2^24. Their type does not guarantee this range, but often
// the op that computes them does.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Vector/Intervals.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"

#include <algorithm>

using namespace mlir;

namespace tessera::npu {
namespace {

/// Maximum number of ops to follow back.
constexpr unsigned kMostSteps = 4;

mlir::Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// Calls visit(index, number) for each element of an integer constant. Returns false if |value| is not one.
bool eachInteger(Value value, llvm::function_ref<void(int64_t, int64_t)> visit) {
  Value root = device::getConstantRoot(value);
  std::optional<top::TensorData> data = root ? top::getConstantData(root) : std::nullopt;
  auto integer = dyn_cast<IntegerType>(elementOf(value));
  constexpr unsigned kWidths[] = {8, 16, 32, 64};
  if (!data || !integer || !llvm::is_contained(kWidths, integer.getWidth())) {
    return false;
  }
  size_t size = integer.getWidth() / 8;
  for (size_t i = 0; i * size < data->bytes.size(); ++i) {
    uint64_t bits = 0;
    std::copy_n(data->bytes.data() + i * size, size, reinterpret_cast<char *>(&bits));
    unsigned shift = 64 - integer.getWidth();
    visit(int64_t(i), integer.isUnsigned() ? int64_t(bits) : int64_t(bits << shift) >> shift);
  }
  return true;
}

/// Returns the range of the dot products of values in |x| with the weights of each output. |together|: the weights of
/// an output lie one after another; otherwise they are |outputs| apart.
std::optional<Interval> sumsOf(Interval x, Value w, int64_t outputs, bool together) {
  int64_t inner = cast<RankedTensorType>(w.getType()).getNumElements() / std::max<int64_t>(outputs, 1);
  std::vector<Interval> sums(size_t(outputs), Interval{0, 0});
  bool known = eachInteger(w, [&](int64_t index, int64_t weight) {
    Interval &sum = sums[size_t(together ? index / inner : index % outputs)];
    double a = double(weight) * x.low, b = double(weight) * x.high;
    sum.low += std::min(a, b), sum.high += std::max(a, b);
  });
  if (!known || sums.empty()) {
    return std::nullopt;
  }
  Interval all = sums.front();
  for (const Interval &sum : sums) {
    all = {std::min(all.low, sum.low), std::max(all.high, sum.high)};
  }
  return all;
}

Interval follow(Value value, unsigned steps);

Interval withBias(Interval sums, Value bias) {
  if (!bias) {
    return sums;
  }
  Interval more = follow(bias, 0);
  return {sums.low + more.low, sums.high + more.high};
}

Interval follow(Value value, unsigned steps) {
  Interval result = intervalOf(elementOf(value));
  std::optional<Interval> known;
  if (!elementOf(value).isSignlessInteger(32) && !elementOf(value).isSignlessInteger(64)) {
    return result;
  }
  if (eachInteger(value, [&](int64_t, int64_t number) {
        double each = double(number);
        known = known ? Interval{std::min(known->low, each), std::max(known->high, each)} : Interval{each, each};
      })) {
    return known.value_or(result);
  }
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0) {
    return result;
  }
  if (auto reshape = dyn_cast<device::ReshapeOp>(op)) {
    return follow(reshape->getOperand(0), steps);
  }
  if (auto map = dyn_cast<device::MapOp>(op)) {
    SmallVector<Interval> arguments;
    for (Value input : map.getInputs()) {
      arguments.push_back(follow(input, steps - 1));
    }
    return boundsOf(map.getBody(), arguments).value_or(result);
  }
  if (auto sums = dyn_cast<device::CumSumOp>(op)) {
    Interval all = intervalOfRunningSums(sums);
    return all.within(result.low, result.high) ? all : result;
  }
  auto producer = dyn_cast<device::EpilogueInterface>(op);
  return producer && producer.getEpilogueRegion().empty() ? intervalOfSums(op) : result;
}

} // namespace

Interval intervalOfSums(Operation *op) {
  Interval all = intervalOf(IntegerType::get(op->getContext(), 32));
  std::optional<Interval> sums;
  Value bias;
  if (auto conv = dyn_cast<device::ConvOp>(op); conv && !conv.getPacking()) {
    Interval x = intervalOf(elementOf(conv.getX()));
    sums = sumsOf(x, conv.getW(), cast<RankedTensorType>(conv.getW().getType()).getDimSize(0), true);
    bias = conv.getBias();
  } else if (auto matmul = dyn_cast<device::MatMulOp>(op); matmul && !matmul.getPacking()) {
    auto b = cast<RankedTensorType>(matmul.getB().getType());
    if (b.getRank() == 2) {
      sums = sumsOf(intervalOf(elementOf(matmul.getA())), matmul.getB(), b.getDimSize(matmul.getTransB() ? 0 : 1),
                    matmul.getTransB());
    }
    bias = matmul.getBias();
  }
  if (!sums) {
    return all;
  }
  Interval result = withBias(*sums, bias);
  return result.within(all.low, all.high) ? result : all;
}

Interval intervalOfRunningSums(device::CumSumOp op) {
  Interval each = follow(op.getX(), kMostSteps - 1);
  double size = double(cast<RankedTensorType>(op.getX().getType()).getDimSize(int64_t(op.getAxis())));
  return {std::min(each.low * size, 0.0), std::max(each.high * size, 0.0)};
}

Interval intervalOf(Value value) { return follow(value, kMostSteps); }

} // namespace tessera::npu
