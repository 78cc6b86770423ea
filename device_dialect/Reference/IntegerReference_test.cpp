//===- IntegerReference_test.cpp - Integer contractions against loops -----===//
// SPDX-License-Identifier: Apache-2.0
//
// Every engine's integers are compared with the reference, so the reference is compared with loops that share no code
// with it.
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "top_dialect/IR/TopInterfaces.h"
#include "top_dialect/Reference/Support.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace tessera;
using llvm::formatv;
using top::HostTensor;

namespace {

class IntegerReference : public testing::Test {
protected:
  IntegerReference() {
    context.loadDialect<func::FuncDialect, device::DeviceDialect, arith::ArithDialect, math::MathDialect>();
  }

  /// Parses a function with one device op and evaluates the op on `inputs`.
  HostTensor evaluate(const std::string &text, ArrayRef<HostTensor> inputs) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>("func.func private @main" + text, &context);
    EXPECT_TRUE(module) << text;
    HostTensor result;
    if (module) {
      module->walk([&](top::ReferenceInterface op) {
        std::vector<HostTensor> outputs;
        outputs.emplace_back(cast<RankedTensorType>(op->getResult(0).getType()));
        std::vector<const HostTensor *> pointers;
        for (const HostTensor &input : inputs) {
          pointers.push_back(&input);
        }
        EXPECT_TRUE(succeeded(op.evaluate(pointers, outputs)));
        result = outputs[0];
      });
    }
    return result;
  }

  HostTensor draw(StringRef element, ArrayRef<int64_t> shape, int64_t low, int64_t high) {
    HostTensor tensor(parseType(element, &context), shape);
    std::vector<int64_t> values(tensor.getNumElements());
    for (int64_t &value : values) {
      value = pick(low, high);
    }
    top::reference::write(values, tensor);
    return tensor;
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  MLIRContext context;
  std::mt19937 random{7};
};

std::string typeText(const HostTensor &tensor) {
  std::string text;
  llvm::raw_string_ostream(text) << tensor.getType();
  return text;
}

TEST_F(IntegerReference, Conv) {
  for (int trial = 0; trial < 60; ++trial) {
    bool isUnsigned = trial % 2;
    int64_t groups = pick(1, 3), c = groups * pick(1, 4), oc = groups * pick(1, 3), h = pick(1, 7), w = pick(1, 7);
    int64_t kh = pick(1, 3), kw = pick(1, 3), stride = pick(1, 2), dilation = pick(1, 2), top = pick(0, 2),
            left = pick(0, 2);
    int64_t oh = (h + top + 1 - (dilation * (kh - 1) + 1)), ow = (w + left + 2 - (dilation * (kw - 1) + 1));
    if (oh < 0 || ow < 0) {
      continue;
    }
    oh = oh / stride + 1, ow = ow / stride + 1;
    int64_t padValue = trial % 3 ? pick(isUnsigned ? 0 : -128, isUnsigned ? 255 : 127) : 0;
    HostTensor x = draw(isUnsigned ? "ui8" : "i8", {2, c, h, w}, isUnsigned ? 0 : -128, isUnsigned ? 255 : 127);
    HostTensor weights = draw("i8", {oc, c / groups, kh, kw}, -128, 127), bias = draw("i32", {oc}, -100000, 100000);
    HostTensor y(bias.getElementType(), {2, oc, oh, ow});
    std::string text = formatv(
        "(%x: {0}, %w: {1}, %b: {2}) -> {3} {{ %y = device.conv %x, %w bias %b {{strides = array<i64: {4}, {4}>, "
        "pads = array<i64: {5}, {6}, 1, 2>, dilations = array<i64: {7}, {7}>, groups = {8} : i64, padValue = {9} : "
        "i64} : "
        "({0}, {1}, {2}) -> {3} return %y : {3} }",
        typeText(x), typeText(weights), typeText(bias), typeText(y), stride, top, left, dilation, groups, padValue);
    std::vector<int64_t> actual = top::reference::read<int64_t>(evaluate(text, {x, weights, bias}));
    std::vector<int64_t> xs = top::reference::read<int64_t>(x), ws = top::reference::read<int64_t>(weights);
    std::vector<int64_t> bs = top::reference::read<int64_t>(bias);
    size_t at = 0;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t o = 0; o < oc; ++o) {
        for (int64_t i = 0; i < oh; ++i) {
          for (int64_t j = 0; j < ow; ++j, ++at) {
            int64_t sum = bs[o];
            for (int64_t k = 0; k < c / groups * kh * kw; ++k) {
              int64_t ic = k / (kh * kw), row = i * stride - top + k / kw % kh * dilation,
                      column = j * stride - left + k % kw * dilation;
              bool inside = row >= 0 && row < h && column >= 0 && column < w;
              int64_t channel = o / (oc / groups) * (c / groups) + ic;
              sum += ws[o * (c / groups * kh * kw) + k] *
                     (inside ? xs[((n * c + channel) * h + row) * w + column] : padValue);
            }
            ASSERT_EQ(actual[at], sum) << text << " element " << at;
          }
        }
      }
    }
  }
}

TEST_F(IntegerReference, MatMul) {
  for (int trial = 0; trial < 40; ++trial) {
    bool isUnsigned = trial % 2, transB = trial % 3 == 0;
    int64_t m = pick(1, 5), k = pick(1, 300), n = pick(1, 5);
    HostTensor a = draw(isUnsigned ? "ui8" : "i8", {m, k}, isUnsigned ? 200 : -128, isUnsigned ? 255 : -100);
    SmallVector<int64_t> bShape = transB ? SmallVector<int64_t>{n, k} : SmallVector<int64_t>{k, n};
    HostTensor b = draw("i8", bShape, -128, -100), bias = draw("i32", {n}, -100000, 100000);
    HostTensor y(bias.getElementType(), {m, n});
    std::string text = formatv("(%a: {0}, %b: {1}, %c: {2}) -> {3} {{ %y = device.matmul %a, %b bias %c {{transB = "
                               "{4}} : ({0}, {1}, {2}) -> {3} "
                               "return %y : {3} }",
                               typeText(a), typeText(b), typeText(bias), typeText(y), transB ? "true" : "false");
    std::vector<int64_t> actual = top::reference::read<int64_t>(evaluate(text, {a, b, bias}));
    std::vector<int64_t> as = top::reference::read<int64_t>(a), bs = top::reference::read<int64_t>(b);
    for (int64_t i = 0; i < m * n; ++i) {
      int64_t sum = top::reference::read<int64_t>(bias)[i % n];
      for (int64_t l = 0; l < k; ++l) {
        sum += as[i / n * k + l] * bs[transB ? i % n * k + l : l * n + i % n];
      }
      ASSERT_EQ(actual[i], sum) << text << " element " << i;
    }
  }
}

/// Tests requantisation in single precision: ties to even, saturation at both ends, an odd zero point.
TEST_F(IntegerReference, Requantise) {
  const char *text =
      R"((%a: tensor<1x8xi8>, %b: tensor<8x8xi8>, %c: tensor<8xi32>, %m: tensor<8xf32>) -> tensor<1x8xi8> {
    %y = device.matmul %a, %b bias %c extras(%m) epilogue {
    ^bb0(%acc: i32, %scale: f32):
      %f = arith.sitofp %acc : i32 to f32
      %s = arith.mulf %f, %scale : f32
      %r = math.roundeven %s : f32
      %zero = arith.constant 3.0 : f32
      %low = arith.constant -128.0 : f32
      %high = arith.constant 127.0 : f32
      %z = arith.addf %r, %zero : f32
      %l = arith.maximumf %z, %low : f32
      %h = arith.minimumf %l, %high : f32
      %i = arith.fptosi %h : f32 to i32
      %q = arith.trunci %i : i32 to i8
      device.yield %q : i8
    } : (tensor<1x8xi8>, tensor<8x8xi8>, tensor<8xi32>, tensor<8xf32>) -> tensor<1x8xi8>
    return %y : tensor<1x8xi8> })";
  HostTensor a = draw("i8", {1, 8}, 0, 0), b = draw("i8", {8, 8}, -128, 127), bias(parseType("i32", &context), {8});
  HostTensor scales(parseType("f32", &context), {8});
  top::reference::write<int64_t>({1, 3, 5, -1, -3, 1 << 30, -(1 << 30), 16777217}, bias);
  top::reference::write<double>({0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 1.0 / 262144}, scales);
  std::vector<int64_t> expected = {3, 5, 5, 3, 1, 127, -128, 67};
  EXPECT_EQ(top::reference::read<int64_t>(evaluate(text, {a, b, bias, scales})), expected);
}

} // namespace
