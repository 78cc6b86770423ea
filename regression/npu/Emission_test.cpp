//===- Emission_test.cpp - Single ops on the NPU against the reference ----===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/ConvolutionText.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::npu;

TEST_F(Emission, ConvolutionsWithRequantisation) {
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(check(Convolution(70).text("i8", "", requantise("%v", between(-128, 127)))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does everything
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
  EXPECT_EQ(programs, 0u); // the output stage does everything
}

/// Returns (%e - zero) * scale for an integer %e.
static std::string dequantised(const char *element, int zero) {
  return formatv("    %e0 = arith.extsi %e : {0} to i32\n    %ez = arith.constant {1} : i32\n    %e1 = arith.subi %e0, "
                 "%ez : i32\n    %e2 = arith.sitofp %e1 : i32 to f32\n    %es = arith.constant 0.037 : f32\n    %e3 = "
                 "arith.mulf %e2, %es : f32\n    %t = arith.addf %e3, %v : f32\n",
                 element, zero);
}

TEST_F(Emission, ConvolutionsOfSixteenBits) {
  for (int round = 0; round < 6; ++round) {
    ASSERT_EQ(check(Convolution(70).wide().text("i16", "", requantise16("%v"))), "");
    ASSERT_EQ(check(Convolution(40).wide().text("i8", "i16", "\n" + dequantised("i16", 0) + requantise("%t", -3))), "");
    ASSERT_EQ(check(Convolution(40).text("i16", "i8", "\n" + dequantised("i8", -128) + requantise16("%t"))), "");
    ASSERT_EQ(check(Convolution(40).wide().text("f32", "", "\n    device.yield %v : f32")), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does everything
  ASSERT_EQ(check(Convolution(40).wide().text(
                "i16", "i16", "\n" + dequantised("i16", 0) + "    %p = math.absf %t : f32" + requantise16("%p"))),
            "");
  EXPECT_GT(programs, 0u);
  Convolution first(8); // kernel rows become channels
  first.x = {2, 3, 161, 130}, first.w = {40, 3, 7, 5}, first.groups = 1, first.dilation = 1, first.stride = 2;
  first.padding = 4, first.y = {2, 40, 82, 67};
  ASSERT_EQ(check(std::move(first).wide().text("i16", "", requantise16("%v"))), "");
  EXPECT_GT(fills, 0u);
}

TEST_F(Emission, OtherOpsOfSixteenBits) {
  std::string x = typeText({2, 37, 15, 14}, "i16"), y = typeText({2, 37, 8, 7}, "i16"), t = typeText({37, 1, 1}, "i8");
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n %y = device.pool max %x {{kernel = array<i64: 3, 3>, strides = "
                          "array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 0>, dilations = array<i64: 1, 1>} : ({0}) -> "
                          "{1}\n return %y : {1}\n}\n",
                          x, y)),
            "");
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %s: {2} {{top.name = \"s\"}) -> ({1} "
                          "{{top.name = \"y\"}) attributes {{device.exact} {{\n %y = device.map(%x, %s) {{\n ^bb0(%a: "
                          "i16, %e: i8):\n %a0 = arith.extsi %a : i16 to i32\n %v = arith.sitofp %a0 : i32 to f32\n"
                          "{3}{4}\n  } : ({0}, {2}) -> {1}\n return %y : {1}\n}\n",
                          x, x, t, dequantised("i8", 5), requantise16("%t"))),
            "");
  std::string sum = typeText({2, 37, 1, 1}, "i16");
  EXPECT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n %y = device.reduce sum %x prologue {{\n ^bb0(%a: i16):\n %b = arith.extsi "
                    "%a : i16 to i32\n device.yield %b : i32\n } epilogue {{\n ^bb0(%a: i32):\n %c = arith.sitofp "
                    "%a : i32 to f32\n %f = arith.constant 0.0047 : f32\n %d = arith.mulf %c, %f : f32{2}\n } {{axes "
                    "= array<i64: 2, 3>} : ({0}) -> {1}\n return %y : {1}\n}\n",
                    x, sum, requantise16("%d"))),
      "");
}

/// 12 lanes, 5 banks, no casts, and integer requantisation.
TEST_F(Emission, ChipsThatRequantiseInIntegers) {
  chips = {bmodel::npu::oddChip()};
  for (int round = 0; round < 8; ++round) {
    ASSERT_EQ(check(Convolution(50).fixedText("i8", requantiseFixed(between(-9, 9), -128, 127, "i8"))), "");
    ASSERT_EQ(check(Convolution(50).wide().fixedText("i16", requantiseFixed(0, -32767, 32767, "i16"))), "");
    ASSERT_EQ(check(Convolution(50).fixedText("i8", requantiseFixed(-128, -128, 99, "i8"))), "");
  }
  EXPECT_EQ(programs, 0u);
  // Epilogues that do not fit the integral output stage become programs on raw sums.
  std::string epilogue =
      "\n    %p = math.tanh %v : f32\n    %d = arith.constant 0.011 : f32\n    %o = arith.divf %p, %d : f32";
  ASSERT_EQ(check(Convolution(40).text("i8", "", epilogue + requantise("%o", 3))), "");
  EXPECT_GT(programs, 0u);
  for (const char *element : {"i8", "ui8", "i16"}) {
    std::string x = typeText({2, 37, 15, 14}, element), y = typeText({2, 37, 8, 7}, element);
    EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                            "{{device.exact} {{\n %y = device.pool max %x {{kernel = array<i64: 3, 3>, strides = "
                            "array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 0>, dilations = array<i64: 1, 1>} : ({0}) -> "
                            "{1}\n return %y : {1}\n}\n",
                            x, y)),
              "");
  }
}

TEST_F(Emission, RequantisationOfAnotherChipIsRejected) {
  std::string text = Convolution(20).fixedText("i8", requantiseFixed(0, -128, 127, "i8"));
  for (const bmodel::npu::Chip &chip :
       {bmodel::npu::chipNamed("npu-base"), bmodel::npu::changedEdge({"requantise=tflite"})}) {
    chips = {chip};
    std::string message = check(text);
    EXPECT_NE(message.find("of whole numbers beyond 2^24"), std::string::npos) << message;
  }
}

TEST_F(Emission, TypesThatTheChipLacksAreNamed) {
  chips = {bmodel::npu::changedEdge({R"(types=["int8", "f32"])"})};
  std::string message = check(Convolution(8).wide().text("i8", "", requantise("%v", 3)));
  EXPECT_NE(message.find("computes with int16, which the chip does not"), std::string::npos) << message;
  EXPECT_EQ(check(Convolution(8).text("i8", "", requantise("%v", 3))), "");
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
  EXPECT_EQ(programs, 0u); // the output stage does everything
}

static const char *const kSilu = R"(
    %one = arith.constant 1.0 : f32
    %n = arith.negf %v : f32
    %p = math.exp %n : f32
    %s1 = arith.addf %p, %one : f32
    %s2 = arith.divf %one, %s1 : f32
    %silu = arith.mulf %v, %s2 : f32)";

TEST_F(Emission, ConvolutionsWithSumsBehindFunctions) {
  const char *divide = "\n    %d = arith.constant 0.043 : f32\n    %o = arith.divf %t, %d : f32";
  for (int round = 0; round < 4; ++round) {
    std::string sum = dequantised("i8", 5); // %t = ... + %v
    sum.replace(sum.rfind("%v"), 2, "%silu");
    ASSERT_EQ(check(Convolution(50).text("i8", "i8", kSilu + ("\n" + sum) + divide + requantise("%o", 11))), "");
    ASSERT_EQ(check(Convolution(50).text("i16", "i8",
                                         kSilu + ("\n" + sum) + divide + requantise("%o", 0, -32767, 32767, "i16"))),
              "");
    std::string rectified =
        "\n    %zero = arith.constant 0.0 : f32\n    %silu = arith.maximumf %v, %zero : f32\n" + sum;
    ASSERT_EQ(check(Convolution(50).text("i8", "i8", rectified + divide + requantise("%o", -4, -100, 90))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does everything
}

TEST_F(Emission, ConvolutionsWithOtherFunctions) {
  const char *const constants = R"(
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %slope = arith.constant 0.2 : f32
    %sixth = arith.constant 0.166666672 : f32
    %root = arith.constant 0.707106769 : f32
    %d = arith.constant 0.0111 : f32)";
  const char *functions[] = {R"(
    %l = arith.mulf %v, %sixth : f32
    %m = arith.addf %l, %half : f32
    %n = arith.maximumf %m, %zero : f32
    %o = arith.minimumf %n, %one : f32
    %t = arith.mulf %v, %o : f32)",
                             R"(
    %l = arith.mulf %v, %slope : f32
    %m = arith.addf %l, %half : f32
    %n = arith.maximumf %m, %zero : f32
    %t = arith.minimumf %n, %one : f32)",
                             R"(
    %l = arith.mulf %v, %slope : f32
    %m = arith.cmpf olt, %v, %zero : f32
    %t = arith.select %m, %l, %v : f32)",
                             R"(
    %l = arith.mulf %v, %root : f32
    %m = math.erf %l : f32
    %n = arith.addf %m, %one : f32
    %o = arith.mulf %v, %half : f32
    %t = arith.mulf %o, %n : f32)"};
  for (const char *function : functions) {
    std::string start = std::string(constants) + function;
    for (int round = 0; round < 2; ++round) {
      std::string divide = "\n    %u = arith.divf %t, %d : f32";
      ASSERT_EQ(check(Convolution(40).text("i8", "", start + divide + requantise("%u", -3))), "");
      ASSERT_EQ(check(Convolution(40).text("f32", "", start + "\n    device.yield %t : f32")), "");
    }
  }
  EXPECT_EQ(programs, 0u); // the output stage does everything
  // Like a hard swish, but with another slope.
  std::string other = std::string(constants) + functions[0];
  other.replace(other.find("0.166666672"), 11, "0.25");
  ASSERT_EQ(check(Convolution(40).text("f32", "", other + "\n    device.yield %t : f32")), "");
  EXPECT_GT(programs, 0u);
}

TEST_F(Emission, ConvolutionsWithGains) {
  for (int round = 0; round < 4; ++round) {
    Convolution convolution(50);
    auto with = [&](const std::string &epilogue) {
      std::string text = convolution.text("i8", "", epilogue), type = typeText({convolution.w[0], 1, 1}, "f32");
      auto replace = [&](const std::string &from, const std::string &to) {
        text.replace(text.find(from), from.size(), to);
      };
      replace("  %f = ", "  %g = " + factorText({convolution.w[0], 1, 1}) + "\n  %f = ");
      replace("extras(%f)", "extras(%f, %g)"), replace("%s: f32)", "%s: f32, %g0: f32)");
      replace(type + ") -> ", type + ", " + type + ") -> ");
      return text;
    };
    std::string gain = "\n    %t = arith.mulf %silu, %g0 : f32\n    %d = arith.constant 0.00043 : f32\n    %o = "
                       "arith.divf %t, %d : f32";
    ASSERT_EQ(check(with(kSilu + gain + requantise("%o", 11))), "");
    std::string rectified = "\n    %zero = arith.constant 0.0 : f32\n    %silu = arith.maximumf %v, %zero : f32\n";
    ASSERT_EQ(check(with(rectified + gain + requantise("%o", 3))), "");
  }
  EXPECT_EQ(programs, 0u); // the output stage does everything
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

TEST_F(Emission, LargeGroupsAreCut) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 4096; // the weights of a group need more
  Convolution convolution(8);
  convolution.x = {2, 240, 5, 6}, convolution.w = {384, 80, 3, 3}, convolution.groups = 3;
  convolution.stride = convolution.dilation = convolution.padding = 1, convolution.y = {2, 384, 5, 6};
  EXPECT_EQ(check(convolution.text("i8", "i8", "\n" + dequantised("i8", 3) + requantise("%t", -3))), "");
  EXPECT_GT(commands, 12u);
}

TEST_F(Emission, KernelRowsOfFewChannelsAreFolded) {
  for (int64_t dilation : {1, 2}) {
    Convolution convolution(8);
    convolution.x = {2, 3, 161, 130}, convolution.w = {40, 3, 7, 5}, convolution.groups = 1;
    convolution.stride = 2, convolution.dilation = dilation, convolution.padding = 4;
    convolution.y = {2, 40, (161 + 8 - 6 * dilation - 1) / 2 + 1, (130 + 8 - 4 * dilation - 1) / 2 + 1};
    ASSERT_EQ(check(convolution.text("i8", "", requantise("%v", 3))), "");
  }
  EXPECT_GT(fills, 0u); // rows of padding
}

TEST_F(Emission, KernelColumnsOfFewChannelsAreFolded) {
  for (int64_t stride : {1, 2}) {
    for (int64_t padding : {0, 3}) { // up to whole rows and columns of padding
      Convolution convolution(8);
      int64_t dilation = padding ? 2 : 1, outputs = 200; // with this many outputs, folding pays on every chip
      convolution.x = {2, stride, 70, 90}, convolution.w = {outputs, stride, 3, 5}, convolution.groups = 1;
      convolution.stride = stride, convolution.dilation = dilation, convolution.padding = padding;
      convolution.y = {2, outputs, (70 + 2 * padding - 2 * dilation - 1) / stride + 1,
                       (90 + 2 * padding - 4 * dilation - 1) / stride + 1};
      pointwise = 0;
      ASSERT_EQ(check(convolution.text("i8", "", requantise("%v", 3))), "");
      EXPECT_GT(pointwise, 0u);
    }
  }
}

TEST_F(Emission, KernelColumnsAreFoldedBesidePaddingOnOneSide) {
  for (const char *pads : {"0, 3, 0, 0", "0, 0, 0, 3"}) {
    Convolution convolution(8);
    convolution.x = {2, 1, 70, 90}, convolution.w = {200, 1, 3, 5}, convolution.y = {2, 200, 68, 89};
    convolution.groups = convolution.stride = convolution.dilation = 1, convolution.padding = 0;
    convolution.padValue = 7;
    std::string text = convolution.text("i8", "", requantise("%v", 3)), none = "pads = array<i64: 0, 0, 0, 0>";
    pointwise = 0;
    ASSERT_EQ(check(text.replace(text.find(none), none.size(), std::string("pads = array<i64: ") + pads + ">")), "");
    EXPECT_GT(pointwise, 0u);
  }
}

/// A different order of the sums would round them differently.
TEST_F(Emission, KernelColumnsOfFloatsAreNotFolded) {
  Convolution convolution(8);
  convolution.x = {1, 1, 70, 90}, convolution.w = {200, 1, 3, 5}, convolution.groups = 1;
  convolution.xElement = convolution.wElement = "f32";
  convolution.stride = convolution.dilation = convolution.padding = 1, convolution.y = {1, 200, 70, 88};
  wholeNumbers = true, chips.erase(chips.begin()); // the first chip does not multiply floats
  EXPECT_EQ(check(convolution.floatText("f32", "", "    device.yield %v : f32")), "");
  EXPECT_EQ(pointwise, 0u);
}

/// A cut through the rows of planes of a few bytes would load whole bursts for each row.
TEST_F(Emission, SmallPlanesAreCutByChannels) {
  chips.resize(1);
  Dims dims = {1, 1024, 14, 14};
  ASSERT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n  %y = device.pool max %x {{kernel = array<i64: 3, 3>, strides = array<i64: "
                    "1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>} : ({0}) -> {0}\n  return "
                    "%y : {0}\n}\n",
                    typeText(dims, "i8"))),
      "");
  const auto &input = last.all.traffic[int(bmodel::npu::Purpose::input)];
  EXPECT_EQ(input.asked, uint64_t(1024 * 14 * 14));
  EXPECT_LT(double(input.moved), 1.1 * double(input.asked));
}

TEST_F(Emission, StoresAndComputationOverlap) {
  chips.erase(chips.begin(), chips.begin() + 2);
  std::string steps = "    %v0 = arith.sitofp %a : i8 to f32\n";
  for (int i = 0; i < 11; ++i) { // the vector unit takes about as long as the DMA
    steps += formatv("    %v{0} = math.tanh %v{1} : f32\n", i + 1, i).str();
  }
  ASSERT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %y = device.map(%x) {{\n  ^bb0(%a: i8):\n{2}    device.yield %v11 : "
                          "f32\n  } : ({0}) -> {1}\n  return %y : {1}\n}\n",
                          typeText({1, 64, 128, 128}, "i8"), typeText({1, 64, 128, 128}, "f32"), steps)),
            "");
  EXPECT_LT(last.cycles, 1.3 * std::max(last.all.busy[0], last.all.busy[1]));
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

/// The second matrix is constant or an argument, with one or several batches; either matrix may be transposed.
TEST_F(Emission, MatrixProductsOfTensors) {
  struct {
    Dims a, b, y;
    bool transA, transB, known;
  } shapes[] = {{{2, 3, 17, 40}, {2, 3, 40, 9}, {2, 3, 17, 9}, false, false, false},
                {{5, 40, 17}, {1, 70, 40}, {5, 17, 70}, true, true, false},
                {{1, 33, 5}, {3, 5, 65}, {3, 33, 65}, false, false, true},
                {{40, 3}, {40, 100}, {3, 100}, true, false, true},
                {{3, 7, 300}, {2, 1, 90, 300}, {2, 3, 7, 90}, false, true, false},
                {{700, 500}, {500, 600}, {700, 600}, false, false, false}}; // split into tiles
  for (const auto &each : shapes) {
    int64_t outputs = each.y.back();
    std::string b = each.known ? "\n  %b = " + weightsText(each.b) : "", bType = typeText(each.b, "i8");
    std::string text = formatv(
        "func.func @main(%a: {0} {{top.name = \"a\"}{9}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
        "{{{2}\n  %c = {3}\n  %f = {4}\n  %y = device.matmul %a, %b bias %c extras(%f) epilogue "
        "{{\n  ^bb0(%i: i32, %s: f32):\n    %v0 = arith.sitofp %i : i32 to f32\n    %v = arith.mulf %v0, %s : "
        "f32\n    device.yield %v : f32\n  } {{transA = {10}, transB = {5}} : ({0}, {6}, {7}, {8}) -> {1}\n  return %y "
        ": {1}\n}\n",
        typeText(each.a, "i8"), typeText(each.y, "f32"), b, biasText(outputs), factorText({outputs}),
        each.transB ? "true" : "false", bType, typeText({outputs}, "i32"), typeText({outputs}, "f32"),
        each.known ? "" : ", %b: " + bType + " {top.name = \"b\"}", each.transA ? "true" : "false");
    ASSERT_EQ(check(text), "");
  }
}

/// Without bias and factors, but with an addend that has one row per batch.
TEST_F(Emission, MatrixProductsOfTensorsPlusRows) {
  EXPECT_EQ(
      check("func.func @main(%a: tensor<3x5x8xi8> {top.name = \"a\"}, %b: tensor<3x8x6xi8> {top.name = \"b\"}, %r: "
            "tensor<3x1x6xi8> {top.name = \"r\"}) -> (tensor<3x5x6xi8> {top.name = \"y\"}) attributes "
            "{device.exact} {\n  %y = device.matmul %a, %b extras(%r) epilogue {\n  ^bb0(%i: i32, %s: i8):\n    "
            "%v0 = arith.sitofp %i : i32 to f32\n    %k = arith.constant 0.004 : f32\n    %v1 = arith.mulf %v0, %k "
            ": f32\n    %s1 = arith.sitofp %s : i8 to f32\n    %v = arith.addf %v1, %s1 : f32\n" +
            requantise("%v", 3) +
            "\n  } : (tensor<3x5x8xi8>, tensor<3x8x6xi8>, tensor<3x1x6xi8>) -> tensor<3x5x6xi8>\n  return %y : "
            "tensor<3x5x6xi8>\n}\n"),
      "");
}

/// Every batch has its own factors, as floats and as mantissas and shifts.
TEST_F(Emission, MatrixProductsOfTensorsByFactorsOfEachBatch) {
  for (Dims lead : {Dims{3, 1}, Dims{1, 1}}) {
    Dims factors = {3, lead[0], 1, 6}, a = {3, 3, 5, 8}, b = {3, 3, 8, 6}, y = {3, 3, 5, 6};
    auto text = [&](const std::string &extras, const std::string &arguments, const std::string &epilogue,
                    const std::string &extraTypes) {
      return formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %b: {1} {{top.name = \"b\"}) -> ({2} {{top.name = "
                     "\"y\"}) attributes {{device.exact} {{\n{3}  {4}{5}\n  } : ({0}, {1}, {6}) -> {2}\n  return %y : "
                     "{2}\n}\n",
                     typeText(a, "i8"), typeText(b, "i8"), typeText(y, "i8"), extras, arguments, epilogue, extraTypes)
          .str();
    };
    chips = {bmodel::npu::chipNamed("npu-edge"), bmodel::npu::chipNamed("npu-base")};
    EXPECT_EQ(check(text("  %f = " + factorText(factors) + "\n",
                         "%y = device.matmul %x, %b extras(%f) epilogue {\n  ^bb0(%i: i32, %s: f32):\n    %v0 = "
                         "arith.sitofp %i : i32 to f32\n    %v = arith.mulf %v0, %s : f32\n",
                         requantise("%v", 3), typeText(factors, "f32"))),
              "");
    auto numbers = [&](int64_t low, int64_t high) {
      return constantText<int32_t>(factors, "i32", [=] { return int32_t(between(low, high)); });
    };
    chips = {bmodel::npu::oddChip()};
    EXPECT_EQ(
        check(text("  %mantissas = " + numbers(int64_t(1) << 30, INT32_MAX) + "\n  %shifts = " + numbers(36, 42) + "\n",
                   "%y = device.matmul %x, %b extras(%mantissas, %shifts) epilogue {\n  ^bb0(%a: i32, %m: i32, "
                   "%t: i32):",
                   requantiseFixed(3, -128, 127, "i8"), typeText(factors, "i32") + ", " + typeText(factors, "i32"))),
        "");
  }
  EXPECT_EQ(programs, 0u);
}

TEST_F(Emission, MapsBroadcast) {
  struct {
    Dims y, a, b;
  } shapes[] = {{{2, 5, 7, 9}, {2, 5, 7, 9}, {5, 1, 1}},
                {{1000}, {1000}, {1}},
                {{3}, {3}, {3}},
                {{4, 6, 50}, {4, 1, 50}, {6, 1}},
                {{2, 70, 3}, {2, 70, 3}, {}},
                {{2, 3, 2, 5}, {3, 1, 5}, {2, 3, 2, 1}},
                {{2, 3, 4, 5, 6}, {2, 1, 4, 1, 6}, {3, 1, 5, 1}}}; // more dims than a command has
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

/// Comparisons produce truth values, which are stored, combined and used by selects.
TEST_F(Emission, TruthValues) {
  auto text = [](const std::string &body, const char *y) {
    return formatv("func.func @main(%a: tensor<3x40xf32> {{top.name = \"a\"}, %b: tensor<3x40xi8> {{top.name = \"b\"}, "
                   "%c: tensor<40xi1> {{top.name = \"c\"}) -> (tensor<3x40x{1}> {{top.name = \"y\"}) attributes "
                   "{{device.exact} {{\n  %y = device.map(%a, %b, %c) {{\n  ^bb0(%i: f32, %j: i8, %k: i1):\n{0}\n    "
                   "device.yield %r : {1}\n  } : (tensor<3x40xf32>, tensor<3x40xi8>, tensor<40xi1>) -> "
                   "tensor<3x40x{1}>\n  return %y : tensor<3x40x{1}>\n}\n",
                   body, y)
        .str();
  };
  for (const char *predicate : {"olt", "oge", "ult", "ugt", "ule", "uge", "une", "uno"}) {
    EXPECT_EQ(
        check(text(formatv("%f = arith.sitofp %j : i8 to f32\n%p = arith.cmpf {0}, %i, %f : f32\n%q = arith.andi %p, "
                           "%k : i1\n%t = arith.constant true\n%r = arith.xori %q, %t : i1",
                           predicate),
                   "i1")),
        "");
  }
  for (const char *predicate : {"eq", "ne", "slt", "sge"}) {
    EXPECT_EQ(
        check(text(formatv("%z = arith.constant 5 : i8\n%p = arith.cmpi {0}, %j, %z : i8\n%q = arith.ori %p, %k : "
                           "i1\n%g = arith.extui %q : i1 to i32\n%h = arith.extsi %k : i1 to i32\n%m = arith.addi "
                           "%g, %h : i32\n%r = arith.sitofp %m : i32 to f32",
                           predicate),
                   "f32")),
        "");
  }
  EXPECT_EQ(check(text("%z = arith.constant 0.0 : f32\n%r = arith.select %k, %i, %z : f32", "f32")), "");
  std::string message = check(text("%r = arith.trunci %j : i8 to i1", "i1"));
  EXPECT_NE(message.find("of numbers that may not fit its type"), std::string::npos) << message;
  message = check(text("%z = arith.constant 5 : i8\n%r = arith.cmpi ult, %j, %z : i8", "i1"));
  EXPECT_NE(message.find("compares numbers that may be negative as unsigned"), std::string::npos) << message;
  message = check(text("%z = arith.constant 5 : i8\n%r = arith.andi %j, %z : i8", "i8"));
  EXPECT_NE(message.find("on bits is not supported by the vector unit"), std::string::npos) << message;
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
  for (const char *dims : {"3x9x70", "67x9x7", "1x5x300"}) { // fewer and more channels than lanes
    int64_t channels = std::atoll(dims);
    std::string tables = constantText<int8_t>({channels, 256}, "i8", [] { return int8_t(between(-128, 127)); });
    EXPECT_EQ(
        check(formatv("func.func @main(%x: tensor<2x{0}xui8> {{top.name = \"x\"}) -> (tensor<2x{0}xi8> {{top.name = "
                      "\"y\"}) attributes {{device.exact} {{\n %t = {1}\n %y = \"device.lut\"(%x, %t) : "
                      "(tensor<2x{0}xui8>, tensor<{2}x256xi8>) -> tensor<2x{0}xi8>\n return %y : "
                      "tensor<2x{0}xi8>\n}\n",
                      dims, tables, channels)),
        "");
  }
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

/// Returns %result = a requantised convolution of %x, optionally with a residual.
static std::string convText(const std::string &result, const std::string &x, const Dims &xDims, int64_t outputs,
                            int64_t kernel, const std::string &residual = "") {
  Dims w = {outputs, xDims[1], kernel, kernel}, y = {xDims[0], outputs, xDims[2], xDims[3]};
  std::string r = residual.empty() ? "" : ", %" + residual, rType = residual.empty() ? "" : ", " + typeText(y, "i8");
  std::string sum = residual.empty() ? "" : R"(
    %e1 = arith.extsi %e : i8 to i32
    %e2 = arith.sitofp %e1 : i32 to f32
    %es = arith.constant 0.037 : f32
    %e3 = arith.mulf %e2, %es : f32
    %t = arith.addf %e3, %v : f32)";
  return formatv("  %w_{0} = {1}\n  %f_{0} = {2}\n", result, weightsText(w), factorText({outputs, 1, 1})).str() +
         formatv("  %{0} = device.conv %{1}, %w_{0} extras(%f_{0}{2}) epilogue {{\n  ^bb0(%a: i32, %s: f32{3}):\n"
                 "    %v0 = arith.sitofp %a : i32 to f32\n    %v = arith.mulf %v0, %s : f32{4}\n  } {{strides = "
                 "array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: {5}, {5}, {5}, {5}>, groups = 1 : "
                 "i64, padValue = 3 : i64} : ({6}, {7}, {8}{9}) -> {10}\n",
                 result, x, r, residual.empty() ? "" : ", %e: i8", sum + requantise(residual.empty() ? "%v" : "%t", 1),
                 kernel / 2, typeText(xDims, "i8"), typeText(w, "i8"), typeText({outputs, 1, 1}, "f32"), rType,
                 typeText(y, "i8"))
             .str();
}

/// A fork joined by a sum and by a concatenation whose parts begin in different lanes.
static std::string blockText(int64_t rows, int64_t columns) {
  Dims x = {1, 24, rows, columns}, a = {1, 40, rows, columns}, d = {1, 94, rows, columns};
  std::string y = typeText({1, 40, rows / 2, columns / 2}, "i8");
  auto piece = [&](int source, int64_t channels, int64_t at) {
    return formatv("#device.piece<source = {0}, sizes = [1, {1}, {2}, {3}], dst_offsets = [0, {4}, 0, 0], dst_steps = "
                   "[1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>",
                   source, channels, rows, columns, at)
        .str();
  };
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                 "{{device.exact} {{\n",
                 typeText(x, "i8"), y)
             .str() +
         convText("a0", "x", x, 40, 1) + convText("b0", "a0", a, 24, 3) + convText("c0", "a0", a, 70, 1) +
         formatv("  %d0 = device.copy %b0, %c0 {{pieces = [{0}, {1}]} : ({2}, {3}) -> {4}\n", piece(0, 24, 0),
                 piece(1, 70, 24), typeText(x, "i8"), typeText({1, 70, rows, columns}, "i8"), typeText(d, "i8"))
             .str() +
         convText("e0", "d0", d, 40, 1, "a0") +
         formatv(
             "  %y = device.pool max %e0 {{kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: "
             "0, 0, 0, 0>, dilations = array<i64: 1, 1>} : ({0}) -> {1}\n  return %y : {1}\n}\n",
             typeText(a, "i8"), y)
             .str();
}

static std::string listText(const Dims &list) {
  std::string text = "[";
  for (int64_t each : list) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(each);
  }
  return text + "]";
}

static std::string pieceText(const Dims &sizes, const Dims &to, const Dims &dims, const Dims &from, const Dims &steps) {
  return formatv("#device.piece<source = 0, sizes = {0}, dst_offsets = {1}, dst_steps = {2}, src_dims = {3}, "
                 "src_offsets = {4}, src_steps = {5}>",
                 listText(sizes), listText(to), listText(Dims(sizes.size(), 1)), listText(dims), listText(from),
                 listText(steps))
      .str();
}

TEST_F(Emission, CopiesOfSingleElementsGoThroughLocalMemory) {
  std::string x = typeText({1, 85, 300}, "f32"), y = typeText({1, 300, 85}, "f32");
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %y = device.copy %x {{pieces = [{2}]} : ({0}) -> {1}\n  return %y : "
                          "{1}\n}\n",
                          x, y, pieceText({1, 300, 85}, {0, 0, 0}, {0, 2, 1}, {0, 0, 0}, {1, 1, 1}))),
            "");
  EXPECT_EQ(commands, 1u); // contiguous on both sides, whatever the order
  EXPECT_EQ(
      check("func.func @main(%x: tensor<2x5xi8> {top.name = \"x\"}) -> (tensor<1x1xi8> {top.name = \"y\"}) attributes "
            "{device.exact} {\n  %y = device.copy %x {pieces = [" +
            pieceText({1, 1}, {0, 0}, {0, 1}, {1, 3}, {1, 1}) +
            "]} : (tensor<2x5xi8>) -> tensor<1x1xi8>\n  return %y : tensor<1x1xi8>\n}\n"),
      "");
  // A pixel shuffle, as in transposed convolutions, with more dims than a command has.
  std::string places = typeText({5, 2, 3, 7, 9}, "i8"), pixels = typeText({5, 7, 2, 9, 3}, "i8");
  EXPECT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n  %y = device.copy %x {{pieces = [{2}]} : ({0}) -> {1}\n  return %y : "
                    "{1}\n}\n",
                    places, pixels,
                    pieceText({5, 7, 2, 9, 3}, {0, 0, 0, 0, 0}, {0, 3, 1, 4, 2}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}))),
      "");
  EXPECT_EQ(commands, 2u);
  commands = 0;
  std::string pieces, picture = typeText({1, 3, 96, 128}, "i8"), quarters = typeText({1, 12, 48, 64}, "i8");
  for (int64_t i = 0; i < 4; ++i) {
    pieces +=
        (i ? ", " : "") + pieceText({1, 3, 48, 64}, {0, 3 * i, 0, 0}, {0, 1, 2, 3}, {0, 0, i % 2, i / 2}, {1, 1, 2, 2});
  }
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %y = device.copy %x {{pieces = [{2}]} : ({0}) -> {1}\n  return %y : "
                          "{1}\n}\n",
                          picture, quarters, pieces)),
            "");
  EXPECT_GT(commands, 4u);
}

/// Halves of a row are interleaved in the result: they are stored as whole rows.
TEST_F(Emission, InterleavedCopiesLeaveAsRows) {
  auto piece = [](int source, const std::string &sizes, int to, int from, int step) {
    return formatv("#device.piece<source = {0}, sizes = {1}, dst_offsets = [0, 0, {2}], dst_steps = [1, 1, {3}], "
                   "src_dims = [0, 1, 2], src_offsets = [0, 0, {4}], src_steps = [1, 1, {5}]>",
                   source, sizes, to, step, from, step)
        .str();
  };
  auto text = [&](const Dims &x, const Dims &y, const std::string &pieces) {
    return formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %z: {0} {{top.name = \"z\"}) -> ({1} {{top.name = "
                   "\"y\"}) attributes {{device.exact} {{\n  %y = device.copy %x, %z {{pieces = [{2}]} : ({0}, {0}) -> "
                   "{1}\n  return %y : {1}\n}\n",
                   typeText(x, "f32"), typeText(y, "f32"), pieces)
        .str();
  };
  // The halves of pairs change places, as in rotary embeddings.
  ASSERT_EQ(
      check(text({8, 64, 8}, {8, 64, 8}, piece(0, "[8, 64, 4]", 0, 1, 2) + ", " + piece(0, "[8, 64, 4]", 1, 0, 2))),
      "");
  EXPECT_EQ(written, 8u * 64 * 8 * 4); // each element alone would be a burst of 64 bytes
  // From two tensors, from three positions, and without the ends of rows.
  EXPECT_EQ(
      check(text({3, 37, 10}, {3, 37, 10}, piece(0, "[3, 37, 5]", 0, 1, 2) + ", " + piece(1, "[3, 37, 5]", 1, 0, 2))),
      "");
  EXPECT_EQ(check(text({2, 5, 12}, {2, 5, 12},
                       piece(0, "[2, 5, 4]", 2, 0, 3) + ", " + piece(1, "[2, 5, 4]", 0, 1, 3) + ", " +
                           piece(0, "[2, 5, 4]", 1, 2, 3))),
            "");
  EXPECT_EQ(
      check(text({1, 40, 9}, {1, 40, 8}, piece(0, "[1, 40, 4]", 0, 1, 2) + ", " + piece(0, "[1, 40, 4]", 1, 2, 2))),
      "");
  EXPECT_EQ(check(text({1, 1, 4099}, {1, 1, 4098},
                       piece(0, "[1, 1, 2049]", 0, 0, 2) + ", " + piece(0, "[1, 1, 2049]", 1, 1, 2))),
            "");
}

/// As many positions as a row has elements, but from different rows: they remain single elements.
TEST_F(Emission, InterleavedCopiesOfOtherRowsAreNotPutTogether) {
  std::string pieces, x = typeText({1, 40, 9}, "f32"), y = typeText({1, 40, 12}, "f32");
  for (int64_t i : {1, 2, 0}) {
    pieces +=
        formatv("{0}#device.piece<source = 0, sizes = [1, 40, 3], dst_offsets = [0, 0, {1}], dst_steps = [1, 1, 3], "
                "src_dims = [0, 1, 2], src_offsets = [0, 0, {2}], src_steps = [1, 1, 3]>",
                pieces.empty() ? "" : ", ", 2 * i, i)
            .str();
  }
  EXPECT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n  %y = device.copy %x {{fill = 3.0 : f64, pieces = [{2}]} : ({0}) -> {1}\n  "
                    "return %y : {1}\n}\n",
                    x, y, pieces)),
      "");
}

/// Copies every third row; the last one ends the tensor, so nothing after it may be read.
TEST_F(Emission, CopiesOfShortRowsStayInTheirTensor) {
  std::string x = typeText({1, 3 * 4806 - 2, 8}, "i8"), y = typeText({1, 4806, 2}, "i8");
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %y = device.copy %x {{pieces = [{2}]} : ({0}) -> {1}\n  return %y : "
                          "{1}\n}\n",
                          x, y, pieceText({1, 4806, 2}, {0, 0, 0}, {0, 1, 2}, {0, 0, 2}, {1, 3, 1}))),
            "");
}

/// Copies a part of each row, and rows of such parts; a DDR burst contains several of them.
TEST_F(Emission, CopiesOfShortRowsGoThroughLocalMemory) {
  for (int64_t rows : {4801, 40, 3}) {
    std::string x = typeText({1, rows, 4}, "f32"), half = typeText({1, rows, 2}, "f32");
    std::string second = pieceText({1, rows, 2}, {0, 0, 2}, {0, 1, 2}, {0, 0, 0}, {1, 1, 1});
    second.replace(second.find("source = 0"), 10, "source = 1");
    ASSERT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
                            "{{device.exact} {{\n  %a = device.copy %x {{pieces = [{2}]} : ({0}) -> {1}\n  %b = "
                            "device.map(%a) {{\n  ^bb0(%e: f32):\n    %n = arith.negf %e : f32\n    device.yield %n : "
                            "f32\n  } : ({1}) -> {1}\n  %y = device.copy %b, %a {{pieces = [{3}, {4}]} : ({1}, {1}) -> "
                            "{0}\n  return %y : {0}\n}\n",
                            x, half, pieceText({1, rows, 2}, {0, 0, 0}, {0, 1, 2}, {0, 0, 2}, {1, 1, 1}),
                            pieceText({1, rows, 2}, {0, 0, 0}, {0, 1, 2}, {0, 0, 0}, {1, 1, 1}), second)),
              "");
    const auto &output = last.all.traffic[int(bmodel::npu::Purpose::output)];
    EXPECT_EQ(output.asked, uint64_t(rows) * 16);
    if (rows > 1000) {
      EXPECT_LT(double(output.moved), 1.1 * double(output.asked));
    }
  }
}

/// Padding, cropping and a transposed result of resident values; parts of %c do not begin at multiples of 64 bytes.
TEST_F(Emission, CopiesReadAndWriteWhatStays) {
  Dims x = {1, 24, 9, 7}, padded = {1, 24, 11, 9}, cropped = {1, 40, 8, 5};
  std::string p = typeText(padded, "i8"), a = typeText({1, 40, 11, 9}, "i8"), c = typeText(cropped, "i8"),
              y = typeText({1, 8, 5, 40}, "i8");
  std::string text =
      formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
              "{{\n",
              typeText(x, "i8"), y)
          .str() +
      convText("a0", "x", x, 24, 1) +
      formatv("  %p0 = device.copy %a0 {{fill = 3.0 : f64, pieces = [{0}]} : ({1}) -> {2}\n",
              pieceText(x, {0, 0, 1, 1}, {0, 1, 2, 3}, {0, 0, 0, 0}, {1, 1, 1, 1}), typeText(x, "i8"), p)
          .str() +
      convText("b0", "p0", padded, 40, 3) +
      formatv("  %c0 = device.copy %b0 {{pieces = [{0}]} : ({1}) -> {2}\n",
              pieceText(cropped, {0, 0, 0, 0}, {0, 1, 2, 3}, {0, 0, 2, 1}, {1, 1, 1, 1}), a, c)
          .str() +
      convText("d0", "c0", cropped, 40, 1) +
      formatv("  %y = device.copy %d0 {{pieces = [{0}]} : ({1}) -> {2}\n  return %y : {2}\n}\n",
              pieceText({1, 8, 5, 40}, {0, 0, 0, 0}, {0, 2, 3, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}), c, y)
          .str();
  EXPECT_EQ(check(text), "");
  EXPECT_GT(intermediate[0], 0u);
  EXPECT_EQ(intermediate[1], 0u);
}

/// Moves channels into pixels: |factor| rows and columns of each.
static std::string shuffleText(int64_t rows, int64_t columns, int64_t channels, int64_t factor) {
  Dims x = {1, 24, rows, columns}, wide = {1, channels, factor, factor, rows, columns},
       moved = {1, channels, rows, factor, columns, factor};
  int64_t outputs = channels * factor * factor;
  std::string y = typeText({1, channels, rows * factor, columns * factor}, "i8");
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
                 "{{\n",
                 typeText(x, "i8"), y)
             .str() +
         convText("a0", "x", x, outputs, 3) +
         formatv("  %r0 = device.reshape %a0 : ({0}) -> {1}\n  %c0 = device.copy %r0 {{pieces = [{2}]} : ({1}) -> {3}\n"
                 "  %y = device.reshape %c0 : ({3}) -> {4}\n  return %y : {4}\n}\n",
                 typeText({1, outputs, rows, columns}, "i8"), typeText(wide, "i8"),
                 pieceText(moved, Dims(6, 0), {0, 1, 4, 2, 5, 3}, Dims(6, 0), Dims(6, 1)), typeText(moved, "i8"), y)
             .str();
}

TEST_F(Emission, ResultsLeaveInTheirOrderAsTheyAreMade) {
  for (uint64_t bytes : {65536, 10240}) { // as a whole, and in tiles
    chips[0].laneBytes = bytes;
    for (auto [rows, columns, channels, factor] : {std::array{61, 64, 1, 3}, std::array{20, 64, 3, 2}}) {
      ASSERT_EQ(check(shuffleText(rows, columns, channels, factor)), "");
      EXPECT_EQ(intermediate[0], 0u);
    }
  }
  chips[0].laneBytes = 2048; // tiles split the groups that form rows and columns of the result
  ASSERT_EQ(check(shuffleText(8, 8, 12, 3)), "");
  // Two ops produce the moved data: 256 and 320 bytes of each pixel.
  Dims x = {1, 24, 8, 8};
  std::string a = typeText({1, 256, 8, 8}, "i8"), b = typeText({1, 320, 8, 8}, "i8"),
              c = typeText({1, 576, 8, 8}, "i8"), y = typeText({1, 8, 8, 576}, "i8");
  std::string parts = pieceText({1, 256, 8, 8}, Dims(4, 0), {0, 1, 2, 3}, Dims(4, 0), Dims(4, 1)) + ", " +
                      pieceText({1, 320, 8, 8}, {0, 256, 0, 0}, {0, 1, 2, 3}, Dims(4, 0), Dims(4, 1));
  parts.replace(parts.rfind("source = 0"), 10, "source = 1");
  ASSERT_EQ(
      check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                    "{{device.exact} {{\n",
                    typeText(x, "i8"), y)
                .str() +
            convText("a0", "x", x, 256, 1) + convText("b0", "x", x, 320, 3) +
            formatv("  %c0 = device.copy %a0, %b0 {{pieces = [{0}]} : ({1}, {2}) -> {3}\n  %y = device.copy %c0 "
                    "{{pieces = [{4}]} : ({3}) -> {5}\n  return %y : {5}\n}\n",
                    parts, a, b, c, pieceText({1, 8, 8, 576}, Dims(4, 0), {0, 2, 3, 1}, Dims(4, 0), Dims(4, 1)), y)
                .str()),
      "");
  EXPECT_EQ(intermediate[0], 0u);
}

/// Parts of a resident value may begin in any lane: a concatenation spread for a transposed convolution.
TEST_F(Emission, CopiesWriteToAnyLane) {
  std::string pieces;
  for (int64_t i = 0; i < 3; ++i) {
    std::string piece = pieceText({1, 20, 5, 4}, {0, 20 * i, 0, 0}, {0, 1, 2, 3}, {0, 0, 0, 0}, {1, 1, 1, 1});
    size_t at = piece.find("dst_steps = [1, 1, 1, 1]");
    ASSERT_NE(at, std::string::npos) << piece;
    pieces += (i ? ", " : "") + piece.replace(at, 24, "dst_steps = [1, 1, 2, 2]");
  }
  EXPECT_EQ(check("func.func @main(%x: tensor<1x20x5x4xi8> {top.name = \"x\"}) -> (tensor<1x60x9x7xi8> {top.name = "
                  "\"y\"}) attributes {device.exact} {\n %c = device.copy %x {fill = 3.0 : f64, pieces = [" +
                  pieces +
                  "]} : (tensor<1x20x5x4xi8>) -> tensor<1x60x9x7xi8>\n %y = device.map(%c) {\n ^bb0(%i: i8):\n %v0 = "
                  "arith.sitofp %i : i8 to f32\n %k = arith.constant 0.7 : f32\n %v = arith.mulf %v0, %k : f32" +
                  requantise("%v", 1) +
                  "\n } : (tensor<1x60x9x7xi8>) -> tensor<1x60x9x7xi8>\n return %y : tensor<1x60x9x7xi8>\n}\n"),
            "");
}

/// In local memory each batch of the matmul is a channel and begins in a different lane.
TEST_F(Emission, PartsOfProductsOfSeveralBatches) {
  wholeNumbers = true;
  chips.erase(chips.begin()); // npu-edge does not multiply floats
  const char *text = "func.func @main(%a: tensor<4x40x16xf32> {{top.name = \"a\"}, %b: tensor<4x16x1xf32> {{top.name "
                     "= \"b\"}) -> (tensor<4x{1}xf32> {{top.name = \"y\"}) attributes {{device.exact} {{\n %p = "
                     "device.matmul %a, %b : (tensor<4x40x16xf32>, tensor<4x16x1xf32>) -> tensor<4x40x1xf32>\n %r = "
                     "device.reshape %p : (tensor<4x40x1xf32>) -> tensor<4x40xf32>\n %y = device.copy %r {{pieces = "
                     "[{0}]} : (tensor<4x40xf32>) -> tensor<4x{1}xf32>\n return %y : tensor<4x{1}xf32>\n}\n";
  for (auto [first, size] : {std::pair(8, 12), std::pair(0, 40), std::pair(39, 1), std::pair(0, 7)}) {
    EXPECT_EQ(check(formatv(text, pieceText({4, size}, {0, 0}, {0, 1}, {0, first}, {1, 1}), size)), "");
    EXPECT_EQ(first == 8 ? intermediate[1] : 0, 0u); // that part is read in local memory
  }
}

TEST_F(Emission, ValuesStayInLocalMemory) {
  ASSERT_EQ(check(blockText(16, 16)), "");
  EXPECT_GT(intermediate[0], 16u * 16 * (40 * 3 + 94 * 2 + 40 * 2));
  EXPECT_EQ(intermediate[1], 0u);
}

TEST_F(Emission, ValuesStayWhereSomeOfThemFit) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 8192, chips[0].lanes = chips[0].reduction = 16; // parts begin in the middle of the lanes
  ASSERT_EQ(check(blockText(32, 48)), "");
  EXPECT_LT(intermediate[1], intermediate[0]);
  EXPECT_GT(intermediate[1], 0u);
}

/// Consecutive windows, with the input added at the end: rows are needed repeatedly, and the shortcut waits for them.
static std::string chainText(int64_t rows, int64_t columns) {
  Dims x = {1, 24, rows, columns}, a = {1, 40, rows, columns};
  std::string y = typeText({1, 24, (rows + 1) / 2, (columns + 1) / 2}, "i8");
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                 "{{device.exact} {{\n",
                 typeText(x, "i8"), y)
             .str() +
         convText("s0", "x", x, 24, 1) + convText("a0", "s0", x, 40, 3) + convText("b0", "a0", a, 40, 5) +
         convText("c0", "b0", a, 24, 3, "s0") +
         formatv("  %y = device.pool max %c0 {{kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = "
                 "array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : ({0}) -> {1}\n  return %y : {1}\n}\n",
                 typeText(x, "i8"), y)
             .str();
}

TEST_F(Emission, ValuesStaySliceBySlice) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 40960; // no value of the chain fits completely
  for (auto [rows, columns] : {std::pair(96, 96), std::pair(131, 83), std::pair(200, 60)}) {
    ASSERT_EQ(check(chainText(rows, columns)), "");
    EXPECT_GT(groups, 0u) << rows;
    EXPECT_LT(intermediate[1], intermediate[0] / 2) << rows;
    groups = 0;
  }
}

/// Windows that skip rows: the input of each slice begins after that of the previous slice.
TEST_F(Emission, ValuesStaySliceBySliceWhereRowsAreSkipped) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 8192;
  for (int64_t images : {1, 3}) {
    Dims x = {images, 24, 97, 60};
    std::string y = typeText({images, 24, 25, 15}, "i8");
    EXPECT_EQ(
        check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                      "{{device.exact} {{\n",
                      typeText(x, "i8"), y)
                  .str() +
              convText("s0", "x", x, 24, 1) +
              formatv("  %y = device.pool max %s0 {{kernel = array<i64: 1, 2>, strides = array<i64: 4, 4>, pads = "
                      "array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : ({0}) -> {1}\n  return %y : {1}\n}\n",
                      typeText(x, "i8"), y)
                  .str()),
        "");
    EXPECT_GT(groups, 0u);
  }
}

TEST_F(Emission, PartsOfAConcatenationStaySliceBySlice) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 40960;
  for (auto [rows, columns] : {std::pair(96, 96), std::pair(130, 84)}) {
    groups = 0;
    ASSERT_EQ(check(blockText(rows, columns)), "");
    EXPECT_GT(groups, 0u) << rows;
    EXPECT_LT(intermediate[1], intermediate[0] / 2) << rows;
  }
  chips[0].lanes = chips[0].reduction = 16; // the second part begins in the middle of the lanes
  ASSERT_EQ(check(blockText(96, 96)), "");
}

TEST_F(Emission, WhereNothingFitsOpsGoOutside) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  chips[0].laneBytes = 4096;
  ASSERT_EQ(check(blockText(64, 64)), "");
  EXPECT_EQ(intermediate[1], intermediate[0]);
}

TEST_F(Emission, WhatIsNotEmittedIsNamed) {
  std::string message = check(
      "func.func @main(%x: tensor<2x3xf32> {top.name = \"x\"}) -> (tensor<2x1xi64> {top.name = \"y\"}) attributes "
      "{device.exact} {\n %y = \"device.arg_reduce\"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>\n "
      "return %y : tensor<2x1xi64>\n}\n");
  EXPECT_NE(message.find("is not supported on the NPU yet"), std::string::npos) << message;
}
