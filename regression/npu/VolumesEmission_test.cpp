//===- VolumesEmission_test.cpp - Three spatial dims on the NPU -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/ConvolutionText.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::npu;

namespace {

/// A window over three dims with separate parameters for each.
struct Window3 {
  Dims kernel, stride, dilation, begin, end;

  explicit Window3(int64_t mostKernel = 3, int64_t mostDilation = 2) {
    for (int axis = 0; axis < 3; ++axis) {
      kernel.push_back(between(1, mostKernel)), stride.push_back(between(1, 2));
      dilation.push_back(between(1, mostDilation));
      begin.push_back(between(0, kernel.back() - 1)), end.push_back(between(0, kernel.back() - 1));
    }
  }

  Dims results(const Dims &x) const {
    Dims result;
    for (size_t axis = 0; axis < 3; ++axis) {
      int64_t seen = x[2 + axis] + begin[axis] + end[axis] - (kernel[axis] - 1) * dilation[axis];
      result.push_back((seen - 1) / stride[axis] + 1);
    }
    return result;
  }

  std::string text() const {
    auto list = [](const char *name, const Dims &numbers) {
      std::string text = std::string(name) + " = array<i64: ";
      for (size_t i = 0; i < numbers.size(); ++i) {
        text += (i ? ", " : "") + std::to_string(numbers[i]);
      }
      return text + ">";
    };
    Dims pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    return list("strides", stride) + ", " + list("dilations", dilation) + ", " + list("pads", pads);
  }
  std::string kernelText() const {
    return formatv("kernel = array<i64: {0}, {1}, {2}>", kernel[0], kernel[1], kernel[2]).str();
  }
};

Dims joined(Dims front, const Dims &back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

/// A quantised convolution with a residual; |kind| 0: depthwise, 1: two groups, 2: dense.
std::string convolution(int kind, int64_t mostChannels) {
  Window3 window;
  int64_t channels = between(1, mostChannels) * (kind == 1 ? 2 : 1);
  int64_t groups = kind == 0 ? channels : kind == 1 ? 2 : 1;
  int64_t outputs = kind == 0 ? channels : groups * between(1, mostChannels / 2);
  Dims x = {between(1, 2), channels, between(5, 9), between(5, 12), between(5, 12)};
  Dims w = joined({outputs, channels / groups}, window.kernel), y = joined({x[0], outputs}, window.results(x));
  std::string xType = typeText(x, "i8"), yType = typeText(y, "i8"), fType = typeText({outputs, 1, 1, 1}, "f32");
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %r: {1} {{top.name = \"r\"}) -> ({1} {{top.name = "
                 "\"y\"}) attributes {{device.exact} {{\n  %w = {2}\n  %b = {3}\n  %f = {4}\n",
                 xType, yType, weightsText(w), biasText(outputs), factorText({outputs, 1, 1, 1}))
             .str() +
         formatv("  %y = device.conv %x, %w bias %b extras(%f, %r) epilogue {{\n  ^bb0(%a: i32, %s: f32, %e: i8):\n"
                 "    %v0 = arith.sitofp %a : i32 to f32\n    %v = arith.mulf %v0, %s : f32\n"
                 "    %e0 = arith.extsi %e : i8 to i32\n    %ez = arith.constant 5 : i32\n    %e1 = arith.subi %e0, "
                 "%ez : i32\n    %e2 = arith.sitofp %e1 : i32 to f32\n    %es = arith.constant 0.037 : f32\n    %e3 = "
                 "arith.mulf %e2, %es : f32\n    %o = arith.addf %e3, %v : f32{0}\n  } {{{1}, groups = {2} "
                 ": i64, padValue = {3} : i64} : ({4}, {5}, {6}, {7}, {8}) -> {8}\n  return %y : {8}\n}\n",
                 requantise("%o", between(-128, 127)), window.text(), groups, between(-128, 127), xType,
                 typeText(w, "i8"), typeText({outputs}, "i32"), fType, yType)
             .str();
}

std::string pool(const char *kind, const std::string &element, const Window3 &window, const Dims &x,
                 const std::string &more = "") {
  Dims y = joined({x[0], x[1]}, window.results(x));
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
                 "{{\n  %y = device.pool {2} %x {3} {{{4}, {5}} : ({0}) -> {1}\n  return %y : {1}\n}\n",
                 typeText(x, element), typeText(y, element), kind, more, window.kernelText(), window.text())
      .str();
}

} // namespace

TEST_F(Emission, ConvolutionsOfVolumes) {
  for (int round = 0; round < 5; ++round) {
    for (int kind = 0; kind < 3; ++kind) {
      ASSERT_EQ(check(convolution(kind, kind ? 24 : 70)), "");
    }
  }
  EXPECT_EQ(programs, 0u); // every tap is in the sum of a single command
  EXPECT_GT(fills, 0u);
}

TEST_F(Emission, ConvolutionsOfFloatVolumes) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  for (const char *element : {"f32", "bf16"}) {
    Window3 window;
    Dims x = {2, 5, 6, 9, 8}, w = joined({37, 5}, window.kernel), y = joined({2, 37}, window.results(x));
    ASSERT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                            "{{device.exact} {{\n  %w = {2}\n  %y = device.conv %x, %w {{{3}, groups = 1 : i64} : "
                            "({0}, {4}) -> {1}\n  return %y : {1}\n}\n",
                            typeText(x, element), typeText(y, "f32"), wholeText(w, element), window.text(),
                            typeText(w, element))),
              "");
  }
}

/// Each batch has its own factors.
TEST_F(Emission, ConvolutionsOfVolumesByTheirFactors) {
  Dims x = {3, 5, 1, 6, 7}, w = {9, 5, 1, 3, 3}, y = {3, 9, 1, 4, 5}, factors = {3, 9, 1, 1, 1};
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %w = {2}\n  %f = {3}\n  %y = device.conv %x, %w extras(%f) epilogue "
                          "{{\n  ^bb0(%a: i32, %s: f32):\n    %v0 = arith.sitofp %a : i32 to f32\n    %v = arith.mulf "
                          "%v0, %s : f32{4}\n  } {{strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, "
                          "pads = array<i64: 0, 0, 0, 0, 0, 0>, groups = 1 : i64} : ({0}, {5}, {6}) -> {1}\n  return "
                          "%y : {1}\n}\n",
                          typeText(x, "i8"), typeText(y, "i8"), weightsText(w), factorText(factors),
                          requantise("%v", 3), typeText(w, "i8"), typeText(factors, "f32"))),
            "");
}

TEST_F(Emission, LargestOfVolumes) {
  for (const char *element : {"i8", "ui8", "i16", "f32"}) {
    Window3 window(3, 1);
    ASSERT_EQ(check(pool("max", element, window, {between(1, 2), between(1, 70), between(4, 9), 13, 12})), "");
  }
  EXPECT_EQ(programs, 0u);
  Window3 window(3, 1);
  ASSERT_EQ(check(pool("max", "i8", window, {1, 40, 6, 11, 9},
                       "epilogue {\n ^bb0(%a: i8):\n %c = arith.constant 3 : i8\n %m = arith.maxsi %a, %c : i8\n "
                       "device.yield %m : i8\n }")),
            "");
  EXPECT_GT(programs, 0u);
}

/// Planes of one column, whose stride differs from that of a row, remain in local memory for two readers.
TEST_F(Emission, LargestOfVolumesOfOneColumnStay) {
  std::string x = typeText({1, 8, 3, 5, 4}, "f32"), y = typeText({1, 8, 1, 4, 1}, "f32");
  ASSERT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n  %p = device.pool max %x {{kernel = array<i64: 3, 3, 3>, strides = "
                    "array<i64: 2, 1, 1>, pads = array<i64: 0, 1, 0, 1, 0, 1>, dilations = array<i64: 1, 1, 2>} : "
                    "({0}) -> {1}\n  %r = device.map(%p) {{\n  ^bb0(%a: f32):\n    %c = arith.constant 0.5 : f32\n"
                    "    %m = arith.maximumf %a, %c : f32\n    device.yield %m : f32\n  } : ({1}) -> {1}\n  %z = "
                    "device.map(%r, %p) {{\n  ^bb0(%a: f32, %b: f32):\n    %s = arith.addf %a, %b : f32\n    "
                    "device.yield %s : f32\n  } : ({1}, {1}) -> {1}\n  return %z : {1}\n}\n",
                    x, y)),
      "");
}

TEST_F(Emission, MeansOfVolumesAreRejected) {
  Window3 window(2, 1);
  window.kernel = {2, 2, 2}, window.begin = window.end = {0, 0, 0};
  std::string message = check(pool("avg", "f32", window, {1, 3, 6, 6, 6}));
  EXPECT_NE(message.find("is a mean over three dims"), std::string::npos) << message;
}

TEST_F(Emission, PlanesLargerThanARowOfACommandAreRejected) {
  Window3 window(1, 1);
  window.kernel = window.stride = {1, 1, 1}, window.begin = window.end = {0, 0, 0};
  EXPECT_EQ(check(pool("max", "i8", window, {1, 3, 2, 255, 257})), "");
  std::string message = check(pool("max", "i8", window, {1, 3, 2, 256, 256}));
  EXPECT_NE(message.find("has planes larger than the row that a command can hold"), std::string::npos) << message;
}

/// Values between two convolutions remain in local memory, including maps of the planes.
TEST_F(Emission, VolumesStay) {
  Dims x = {1, 16, 4, 10, 12};
  std::string type = typeText(x, "i8"), wide = typeText({16, 16, 3, 3, 3}, "i8");
  std::string text = "func.func @main(%v0: " + type + " {top.name = \"x\"}) -> (" + type +
                     " {top.name = \"y\"}) attributes {device.exact} {\n";
  for (int i = 0; i < 2; ++i) {
    text += formatv("  %w{0} = {1}\n  %y{0} = device.conv %v{0}, %w{0} epilogue {{\n  ^bb0(%a: i32):\n    %f = "
                    "arith.sitofp %a : i32 to f32\n    %s = arith.constant 0.004 : f32\n    %v = arith.mulf %f, %s : "
                    "f32{2}\n  } {{strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads = array<i64: "
                    "1, 1, 1, 1, 1, 1>, padValue = 3 : i64} : ({3}, {4}) -> {3}\n  %v{5} = device.map(%y{0}) {{\n  "
                    "^bb0(%a: i8):\n    %c = arith.constant 3 : i8\n    %m = arith.maxsi %a, %c : i8\n    device.yield "
                    "%m : i8\n  } : ({3}) -> {3}\n",
                    i, weightsText({16, 16, 3, 3, 3}), requantise("%v", 3), type, wide, i + 1)
                .str();
  }
  ASSERT_EQ(check(text + "  return %v2 : " + type + "\n}\n"), "");
  EXPECT_GT(intermediate[0], 0u);
  EXPECT_EQ(intermediate[1], 0u);
}
