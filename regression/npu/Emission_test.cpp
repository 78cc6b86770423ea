//===- Emission_test.cpp - Single ops on the NPU against the reference ----===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/NpuRunner.h"

#include "bmodel_format/test/TestChip.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace tessera;
using llvm::formatv;

namespace {

using Dims = std::vector<int64_t>;

std::mt19937 generator(5);
int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

std::string typeText(const Dims &dims, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t dim : dims) {
    text += std::to_string(dim) + "x";
  }
  return text + element + ">";
}

/// Where the weights of the functions below are.
MLIRContext &testContext() {
  static MLIRContext *context = [] {
    auto *created = new MLIRContext();
    created->loadDialect<func::FuncDialect, top::TopDialect, device::DeviceDialect>();
    return created;
  }();
  return *context;
}

Type elementOf(int8_t) { return IntegerType::get(&testContext(), 8); }
Type elementOf(int32_t) { return IntegerType::get(&testContext(), 32); }
Type elementOf(float) { return Float32Type::get(&testContext()); }

template <typename T>
std::string constantText(const Dims &dims, const std::string &element, llvm::function_ref<T()> draw) {
  std::vector<char> bytes;
  for (int64_t i = 0; i < ShapedType::getNumElements(dims); ++i) {
    T value = draw();
    auto *raw = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
  top::WeightStore &store = testContext().getLoadedDialect<top::TopDialect>()->getWeightStore();
  return "top.weight \"" + store.add("c", elementOf(T()), dims, std::move(bytes)) + "\" : " + typeText(dims, element);
}

std::string weightsText(const Dims &dims) {
  return constantText<int8_t>(dims, "i8", [] { return int8_t(between(-127, 127)); });
}
std::string biasText(int64_t channels) {
  return constantText<int32_t>({channels}, "i32", [] { return int32_t(between(-20000, 20000)); });
}
std::string factorText(const Dims &dims) {
  return constantText<float>(dims, "f32", [] { return float(between(1, 1000)) * 1e-5f; });
}

/// rne(%v) + zero between the bounds of i8, as quantised models have it.
std::string requantise(const std::string &value, int64_t zero, int64_t low = -128, int64_t high = 127) {
  return formatv(R"(
    %q0 = math.roundeven {0} : f32
    %z = arith.constant {1}.0 : f32
    %q1 = arith.addf %q0, %z : f32
    %lo = arith.constant {2}.0 : f32
    %q2 = arith.maximumf %q1, %lo : f32
    %hi = arith.constant {3}.0 : f32
    %q3 = arith.minimumf %q2, %hi : f32
    %q4 = arith.fptosi %q3 : f32 to i32
    %q = arith.trunci %q4 : i32 to i8
    device.yield %q : i8)",
                 value, zero, low, high);
}

/// Runs a function's text on every chip; "" or what is wrong. Arguments hold random numbers of their types.
class Emission : public testing::Test {
protected:
  std::string check(const std::string &text) {
    std::string messages;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "; "; });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      return messages + text;
    }
    PassManager passes(&context);
    passes.nest<func::FuncOp>().addPass(device::createAssignAddressesPass());
    if (failed(passes.run(*module))) {
      return messages;
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    top::TensorMap inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      inputs.emplace(function.getArgAttrOfType<StringAttr>(i, "top.name").str(),
                     randomTensor(cast<RankedTensorType>(function.getArgumentTypes()[i])));
    }
    for (const char *name : {"npu-edge", "npu-base", "npu-pro"}) {
      npu::RunResult result = npu::checkOnNpu(function, bmodel::npu::chipNamed(name), inputs, 2);
      if (!result.fault.empty()) {
        return std::string(name) + ": " + result.fault + " (" + messages + ")\n" + text;
      }
      commands = std::max(commands, result.commands), programs += result.programs;
    }
    return "";
  }

  MLIRContext &context = testContext();
  size_t commands = 0, programs = 0; ///< commands: of the chip that needs most

private:
  static top::HostTensor randomTensor(RankedTensorType type) {
    top::HostTensor tensor(type);
    llvm::MutableArrayRef<char> bytes = tensor.getBytes();
    if (type.getElementType().isF32()) {
      for (size_t i = 0; i < bytes.size() / 4; ++i) {
        float value = float(between(-4000, 4000)) * 1e-3f;
        memcpy(bytes.data() + 4 * i, &value, 4);
      }
      return tensor;
    }
    for (char &byte : bytes) {
      byte = char(between(-128, 127));
    }
    return tensor;
  }
};

/// A convolution in one of the forms that models have.
struct Convolution {
  Dims x, w, y;
  int64_t groups = 1, stride, dilation, padding, padValue = between(-128, 127);

  explicit Convolution(int64_t mostChannels) {
    int64_t kernel = between(1, 3);
    stride = between(1, 2), dilation = between(1, 2), padding = between(0, kernel - 1);
    int64_t kind = between(0, 3), channels = between(1, mostChannels);
    groups = kind == 0 ? channels : kind == 1 ? 2 : 1; // depthwise, grouped, dense
    channels = kind == 1 ? 2 * channels : channels;
    int64_t outputs = kind == 0 ? channels : groups * between(1, mostChannels / groups);
    x = {between(1, 2), channels, between(7, 20), between(7, 20)};
    w = {outputs, channels / groups, kernel, kernel};
    y = {x[0], outputs, outputDim(x[2], kernel), outputDim(x[3], kernel)};
  }

  std::string text(const std::string &element, const std::string &extraTypes, const std::string &epilogue) const {
    bool residual = !extraTypes.empty();
    std::string xType = typeText(x, "i8"), yType = typeText(y, element), rType = typeText(y, extraTypes);
    std::string fType = typeText({w[0], 1, 1}, "f32");
    return formatv("func.func @main(%x: {0} {{top.name = \"x\"}{1}) -> ({2} {{top.name = \"y\"}) attributes "
                   "{{device.exact} {{\n  %w = {3}\n  %b = {4}\n  %f = {5}\n",
                   xType, residual ? ", %r: " + rType + " {top.name = \"r\"}" : "", yType, weightsText(w),
                   biasText(w[0]), factorText({w[0], 1, 1}))
               .str() +
           formatv(
               "  %y = device.conv %x, %w bias %b extras(%f{0}) epilogue {{\n  ^bb0(%a: i32, %s: f32{1}):\n    %v0 = "
               "arith.sitofp %a : i32 to f32\n    %v = arith.mulf %v0, %s : f32{2}\n  } {{strides = array<i64: {3}, "
               "{3}>, dilations = array<i64: {4}, {4}>, pads = array<i64: {5}, {5}, {5}, {5}>, groups = {6} : i64, "
               "padValue = {7} : i64} : ({8}, {9}, {10}, {11}{12}) -> {13}\n  return %y : {13}\n}\n",
               residual ? ", %r" : "", residual ? ", %e: " + extraTypes : "", epilogue, stride, dilation, padding,
               groups, padValue, xType, typeText(w, "i8"), typeText({w[0]}, "i32"), fType, residual ? ", " + rType : "",
               yType)
               .str();
  }

private:
  int64_t outputDim(int64_t size, int64_t kernel) const {
    return (size + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  }
};

} // namespace

TEST_F(Emission, ConvolutionsWithRequantisation) {
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(check(Convolution(70).text("i8", "", requantise("%v", between(-128, 127)))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does it all
}

TEST_F(Emission, ConvolutionsWithResiduals) {
  for (int round = 0; round < 8; ++round) {
    std::string epilogue = R"(
    %e0 = arith.extsi %e : i8 to i32
    %ez = arith.constant -7 : i32
    %e1 = arith.subi %e0, %ez : i32
    %e2 = arith.sitofp %e1 : i32 to f32
    %es = arith.constant 0.037 : f32
    %e3 = arith.mulf %e2, %es : f32
    %t = arith.addf %e3, %v : f32
    %zero = arith.constant 0.0 : f32
    %u = arith.maximumf %t, %zero : f32
    %d = arith.constant 0.61 : f32
    %o = arith.divf %u, %d : f32)";
    ASSERT_EQ(check(Convolution(50).text("i8", "i8", epilogue + requantise("%o", -128))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does it all
}

TEST_F(Emission, ConvolutionsWithSilu) {
  for (int round = 0; round < 4; ++round) {
    std::string epilogue = R"(
    %one = arith.constant 1.0 : f32
    %n = arith.negf %v : f32
    %p = math.exp %n : f32
    %s1 = arith.addf %p, %one : f32
    %s2 = arith.divf %one, %s1 : f32
    %t = arith.mulf %v, %s2 : f32
    %d = arith.constant 0.043 : f32
    %o = arith.divf %t, %d : f32)";
    ASSERT_EQ(check(Convolution(50).text("i8", "", epilogue + requantise("%o", 11))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does it all
}

TEST_F(Emission, ConvolutionsWithOtherEpiloguesRunPrograms) {
  for (int round = 0; round < 6; ++round) {
    std::string epilogue = R"(
    %t = arith.mulf %v, %e : f32
    %p = math.tanh %t : f32
    %u = arith.subf %p, %v : f32
    device.yield %u : f32)";
    ASSERT_EQ(check(Convolution(40).text("f32", "f32", epilogue)), "");
  }
  EXPECT_GT(programs, 0u);
}

TEST_F(Emission, LargeConvolutionsAreCut) {
  Convolution convolution(8);
  convolution.x = {1, 40, 150, 160}, convolution.w = {72, 40, 3, 3}, convolution.groups = 1;
  convolution.stride = convolution.dilation = convolution.padding = 1, convolution.y = {1, 72, 150, 160};
  std::string text = convolution.text("i8", "", requantise("%v", 3));
  EXPECT_EQ(check(text), "");
  EXPECT_GT(commands, 20u);
}

TEST_F(Emission, MatrixProducts) {
  for (int round = 0; round < 6; ++round) {
    int64_t rows = between(1, 40), inner = between(1, 90), outputs = between(1, 90);
    bool transposed = between(0, 1);
    Dims a = {2, rows, inner}, b = transposed ? Dims{outputs, inner} : Dims{inner, outputs}, y = {2, rows, outputs};
    std::string text = formatv(
        "func.func @main(%a: {0} {{top.name = \"a\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
        "{{\n  %b = {2}\n  %c = {3}\n  %f = {4}\n  %y = device.matmul %a, %b bias %c extras(%f) epilogue "
        "{{\n  ^bb0(%i: i32, %s: f32):\n    %v0 = arith.sitofp %i : i32 to f32\n    %v = arith.mulf %v0, %s : "
        "f32\n    device.yield %v : f32\n  } {{transB = {5}} : ({0}, {6}, {7}, {8}) -> {1}\n  return %y : "
        "{1}\n}\n",
        typeText(a, "i8"), typeText(y, "f32"), weightsText(b), biasText(outputs), factorText({outputs}),
        transposed ? "true" : "false", typeText(b, "i8"), typeText({outputs}, "i32"), typeText({outputs}, "f32"));
    ASSERT_EQ(check(text), "");
  }
}

TEST_F(Emission, MapsBroadcast) {
  struct {
    Dims y, a, b;
  } shapes[] = {
      {{2, 5, 7, 9}, {2, 5, 7, 9}, {5, 1, 1}}, {{1000}, {1000}, {1}},        {{3}, {3}, {3}},
      {{4, 6, 50}, {4, 1, 50}, {6, 1}},        {{2, 70, 3}, {2, 70, 3}, {}}, {{2, 3, 2, 5}, {3, 1, 5}, {2, 3, 2, 1}}};
  for (const auto &each : shapes) {
    std::string text = formatv(
        "func.func @main(%a: {0} {{top.name = \"a\"}, %b: {1} {{top.name = \"b\"}) -> ({2} {{top.name = \"y\"}) "
        "attributes {{device.exact} {{\n  %y = device.map(%a, %b) {{\n  ^bb0(%i: f32, %j: i8):\n    %k = arith.extsi "
        "%j "
        ": i8 to i32\n    %l = arith.sitofp %k : i32 to f32\n    %c = arith.cmpf olt, %i, %l : f32\n    %m = "
        "arith.select %c, %i, %l : f32\n    %n = arith.mulf %m, %i : f32{3}\n  } : ({0}, {1}) -> {2}\n  return %y : "
        "{2}\n}\n",
        typeText(each.a, "f32"), typeText(each.b, "i8"), typeText(each.y, "i8"), requantise("%n", 4));
    EXPECT_EQ(check(text), "");
  }
}

TEST_F(Emission, TablesSoftmaxPoolsAndSums) {
  auto table = constantText<int8_t>({256}, "i8", [] { return int8_t(between(-128, 127)); });
  EXPECT_EQ(
      check("func.func @main(%x: tensor<1x40x9x7xi8> {top.name = \"x\"}) -> (tensor<1x40x9x7xi8> {top.name = "
            "\"y\"}) attributes {device.exact} {\n %t = " +
            table +
            "\n %y = \"device.lut\"(%x, %t) : (tensor<1x40x9x7xi8>, tensor<256xi8>) -> tensor<1x40x9x7xi8>\n return %y "
            ": tensor<1x40x9x7xi8>\n}\n"),
      "");
  for (const char *log : {"false", "true"}) {
    EXPECT_EQ(
        check(formatv("func.func @main(%x: tensor<5x101xf32> {{top.name = \"x\"}) -> (tensor<5x101xf32> {{top.name "
                      "= \"y\"}) attributes {{device.exact} {{\n %y = \"device.softmax\"(%x) {{axis = 1 : i64, log = "
                      "{0}} : (tensor<5x101xf32>) -> tensor<5x101xf32>\n return %y : tensor<5x101xf32>\n}\n",
                      log)),
        "");
  }
  EXPECT_EQ(check("func.func @main(%x: tensor<2x37x15x14xi8> {top.name = \"x\"}) -> (tensor<2x37x8x7xi8> {top.name = "
                  "\"y\"}) attributes {device.exact} {\n %y = device.pool max %x {kernel = array<i64: 3, 3>, strides = "
                  "array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 0>, dilations = array<i64: 1, 1>} : "
                  "(tensor<2x37x15x14xi8>) -> tensor<2x37x8x7xi8>\n return %y : tensor<2x37x8x7xi8>\n}\n"),
            "");
  EXPECT_EQ(check("func.func @main(%x: tensor<2x37x6x7xi8> {top.name = \"x\"}) -> (tensor<2x37x1x1xi8> {top.name = "
                  "\"y\"}) attributes {device.exact} {\n %y = device.reduce sum %x prologue {\n ^bb0(%a: i8):\n %b = "
                  "arith.extsi %a : i8 to i32\n device.yield %b : i32\n } epilogue {\n ^bb0(%a: i32):\n %m = "
                  "arith.constant -300 : i32\n %b = arith.subi %a, %m : i32\n %c = arith.sitofp %b : i32 to f32\n %f = "
                  "arith.constant 0.0238 : f32\n %d = arith.mulf %c, %f : f32" +
                  requantise("%d", -3) +
                  "\n } {axes = array<i64: 2, 3>} : (tensor<2x37x6x7xi8>) -> tensor<2x37x1x1xi8>\n return %y : "
                  "tensor<2x37x1x1xi8>\n}\n"),
            "");
}

TEST_F(Emission, MeansAndLargestOfFloats) {
  for (const char *kind : {"avg", "max"}) {
    for (const char *padded : {"", ", countIncludePad = true"}) {
      std::string x = typeText({2, 37, 15, 14}, "f32"), y = typeText({2, 37, 8, 7}, "f32");
      EXPECT_EQ(
          check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                        "{{device.exact} {{\n %y = device.pool {2} %x {{kernel = array<i64: 3, 3>, strides = "
                        "array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 0>, dilations = array<i64: 1, 1>{3}} : ({0}) "
                        "-> {1}\n return %y : {1}\n}\n",
                        x, y, kind, padded)),
          "");
    }
  }
}

TEST_F(Emission, EnlargingByWholeFactors) {
  for (auto [rows, columns] : {std::pair(2, 2), std::pair(1, 3), std::pair(4, 1)}) {
    int64_t height = 13, width = 9;
    auto table = [&](int64_t size, int64_t factor) {
      int32_t next = 0;
      return constantText<int32_t>({size * factor, 1}, "i32", [&] { return int32_t(next++ / factor); });
    };
    auto weights = [&](int64_t size) { return constantText<float>({size, 1}, "f32", [] { return 1.0f; }); };
    std::string x = typeText({2, 37, height, width}, "i8"), y = typeText({2, 37, height * rows, width * columns}, "i8");
    std::string text = formatv(
        "func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} {{\n  %i "
        "= "
        "{2}\n  %v = {3}\n  %j = {4}\n  %w = {5}\n  %y = \"device.resize\"(%x, %i, %v, %j, %w) {{axes = array<i64: 2, "
        "3>} : ({0}, {6}, {7}, {8}, {9}) -> {1}\n  return %y : {1}\n}\n",
        x, y, table(height, rows), weights(height * rows), table(width, columns), weights(width * columns),
        typeText({height * rows, 1}, "i32"), typeText({height * rows, 1}, "f32"), typeText({width * columns, 1}, "i32"),
        typeText({width * columns, 1}, "f32"));
    EXPECT_EQ(check(text), "");
  }
}

TEST_F(Emission, WhatIsNotEmittedIsNamed) {
  std::string message = check(
      "func.func @main(%x: tensor<2x3xf32> {top.name = \"x\"}) -> (tensor<2x3xf32> {top.name = \"y\"}) attributes "
      "{device.exact} {\n %y = \"device.cumsum\"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>\n "
      "return %y : tensor<2x3xf32>\n}\n");
  EXPECT_NE(message.find("has no form on the NPU yet"), std::string::npos) << message;
}
