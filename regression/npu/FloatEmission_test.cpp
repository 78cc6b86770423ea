//===- FloatEmission_test.cpp - Ops on floats of all widths on the NPU ----===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/ConvolutionText.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::npu;

/// Returns a yield of a value, converted to the element type.
static std::string narrowed(const std::string &value, const std::string &element) {
  return element == "f32"
             ? formatv("    device.yield {0} : f32", value).str()
             : formatv("    %n = arith.truncf {0} : f32 to {1}\n    device.yield %n : {1}", value, element).str();
}

TEST_F(Emission, ConvolutionsOfFloats) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  const char *types[][4] = {{"bf16", "bf16", "bf16", "bf16"}, {"f16", "f16", "f16", "f16"},
                            {"f32", "bf16", "bf16", "f32"},   {"bf16", "f32", "f32", "bf16"},
                            {"f32", "f32", "f32", "f32"},     {"f32", "f16", "f16", "f16"}};
  for (auto [x, w, y, r] : types) {
    for (int round = 0; round < 3; ++round) {
      Convolution convolution(60);
      convolution.xElement = x, convolution.wElement = w;
      std::string clamps =
          "    %c = arith.constant 0.0 : f32\n    %f = arith.constant 0.013 : f32\n    %s = arith.mulf "
          "%v, %f : f32\n    %t = arith.maximumf %s, %c : f32\n";
      ASSERT_EQ(check(convolution.floatText(y, "", clamps + narrowed("%t", y))), "");
      std::string widen = r == std::string("f32") ? "    %g = arith.negf %e : f32\n    %h = arith.negf %g : f32\n"
                                                  : formatv("    %h = arith.extf %e : {0} to f32\n", r).str();
      std::string sum = widen + "    %t = arith.addf %v, %h : f32\n";
      ASSERT_EQ(check(convolution.floatText(y, r, sum + narrowed("%t", y))), "");
    }
  }
}

TEST_F(Emission, EpiloguesOfFloatsAreTheStages) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  Convolution convolution(8);
  convolution.x = {2, 3, 161, 130}, convolution.w = {40, 3, 7, 5},
  convolution.groups = 1; // kernel rows become channels
  convolution.dilation = 1, convolution.stride = 2, convolution.padding = 4, convolution.y = {2, 40, 82, 67};
  convolution.xElement = "f32", convolution.wElement = "f16";
  ASSERT_EQ(check(convolution.floatText("f16", "f16",
                                        "    %h = arith.extf %e : f16 to f32\n    %t = arith.addf %h, %v : "
                                        "f32\n" +
                                            narrowed("%t", "f16"))),
            "");
  EXPECT_GT(fills, 0u);
  EXPECT_EQ(programs, 0u);
  convolution.wElement = "f32";
  ASSERT_EQ(check(convolution.floatText("f16", "", "    %t = math.absf %v : f32\n" + narrowed("%t", "f16"))), "");
  EXPECT_GT(programs, 0u);
}

TEST_F(Emission, MatrixProductsOfFloats) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  for (const char *element : {"bf16", "f16", "f32"}) {
    for (const char *transposed : {"false", "true"}) {
      int64_t rows = between(1, 40), inner = between(1, 90), outputs = between(1, 90);
      Dims a = {2, rows, inner}, b = *transposed == 't' ? Dims{outputs, inner} : Dims{inner, outputs};
      std::string y = typeText({2, rows, outputs}, element);
      std::string text = formatv(
          "func.func @main(%a: {0} {{top.name = \"a\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
          "{{\n  %b = {2}\n  %c = {3}\n  %y = device.matmul %a, %b bias %c epilogue {{\n  ^bb0(%v: f32):\n{4}\n  } "
          "{{transB = {5}} : ({0}, {6}, {7}) -> {1}\n  return %y : {1}\n}\n",
          typeText(a, element), y, wholeText(b, element), wholeText({outputs}, "f32"), narrowed("%v", element),
          transposed, typeText(b, element), typeText({outputs}, "f32"));
      ASSERT_EQ(check(text), "");
    }
  }
}

/// Returns scales that are powers of two: their products with whole numbers are exact in every order.
static std::string scalesText(const Dims &dims) {
  return constantText<float>(dims, "f32", [] { return std::ldexp(1.0f, int(between(-6, 2))); });
}

TEST_F(Emission, IntegerWeightsOfFloats) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  for (int64_t group : {128, 16}) { // one scale per output, or several
    int64_t rows = between(1, 40), outputs = between(1, 90), depth = 90, groups = (depth + group - 1) / group;
    std::string a = typeText({2, rows, depth}, "f32"), y = typeText({2, rows, outputs}, "f32");
    for (const char *epilogue :
         {"", " epilogue {\n  ^bb0(%v: f32):\n    %f = arith.constant 0.25 : f32\n    %t = arith.mulf "
              "%v, %f : f32\n    device.yield %t : f32\n  }"}) {
      for (const char *transposed : {"false", "true"}) {
        Dims b = *transposed == 't' ? Dims{outputs, depth} : Dims{depth, outputs};
        std::string text = formatv(
            "func.func @main(%a: {0} {{top.name = \"a\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} {{\n "
            " %b "
            "= {2}\n  %s = {3}\n  %c = {4}\n  %y = device.matmul %a, %b scales %s bias %c{5} {{transB = {6}, "
            "weightGroup = "
            "{7} : i64} : ({0}, {8}, {9}, {10}) -> {1}\n  return %y : {1}\n}\n",
            a, y, weightsText(b, 9), scalesText({groups, outputs}), wholeText({outputs}, "f32"), epilogue, transposed,
            group, typeText(b, "i8"), typeText({outputs}, "f32"), typeText({groups, outputs}, "f32"));
        ASSERT_EQ(check(text), "");
      }
    }
  }
  for (int round = 0; round < 8; ++round) {
    Convolution convolution(60);
    convolution.xElement = "f32", convolution.wElement = "i8";
    std::string text = convolution.floatText(
        "f32", "", round % 2 ? "    %t = math.absf %v : f32\n    device.yield %t : f32" : "    device.yield %v : f32");
    Dims scales = {1, convolution.w[0]};
    auto replace = [&](const std::string &from, const std::string &to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("  %y = ", "  %s = " + scalesText(scales) + "\n  %y = ");
    replace("%w bias", "%w scales %s bias"), replace("groups =", "weightGroup = 128 : i64, groups =");
    replace(") -> " + typeText(convolution.y, "f32") + "\n  return",
            ", " + typeText(scales, "f32") + ") -> " + typeText(convolution.y, "f32") + "\n  return");
    ASSERT_EQ(check(text), "");
  }
}

TEST_F(Emission, EpiloguesWithOneNumberARow) {
  int64_t rows = 24, inner = 17, outputs = 24; // as many rows as outputs, so that only the shape distinguishes rows
                                               // from columns
  std::string a = typeText({2, rows / 2, inner}, "i8"), y = typeText({2, rows / 2, outputs}, "f32");
  std::string r = typeText({2, rows / 2, 1}, "f32"), f = typeText({outputs}, "f32");
  EXPECT_EQ(check(formatv(
                "func.func @main(%a: {0} {{top.name = \"a\"}, %r: {1} {{top.name = \"r\"}) -> ({2} {{top.name = "
                "\"y\"}) attributes {{device.exact} {{\n  %b = {3}\n  %f = {4}\n  %y = device.matmul %a, %b "
                "extras(%f, %r) epilogue {{\n  ^bb0(%i: i32, %s: f32, %e: f32):\n    %v0 = arith.sitofp %i : i32 "
                "to f32\n    %v1 = arith.mulf %v0, %e : f32\n    %v = arith.mulf %v1, %s : f32\n    device.yield "
                "%v : f32\n  } {{transB = true} : ({0}, {5}, {6}, {1}) -> {2}\n  return %y : {2}\n}\n",
                a, r, y, weightsText({outputs, inner}), factorText({outputs}), typeText({outputs, inner}, "i8"), f)),
            "");
}

TEST_F(Emission, PoolsMapsAndSumsOfNarrowFloats) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  for (const char *element : {"bf16", "f16"}) {
    std::string x = typeText({2, 37, 16, 14}, element), y = typeText({2, 37, 8, 7}, element);
    auto pool = [&](const char *kind, const std::string &epilogue) {
      return check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                           "{{device.exact} {{\n %y = device.pool {2} %x {4} {{kernel = array<i64: 2, 2>, strides = "
                           "array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : ({0}) "
                           "-> {1}\n return %y : {1}\n}\n",
                           x, y, kind, element, epilogue));
    };
    EXPECT_EQ(pool("max", ""), "");
    EXPECT_EQ(pool("avg", "epilogue {\n ^bb0(%v: f32):\n" + narrowed("%v", element) + "\n }"), "");
    EXPECT_EQ(pool("avg", "epilogue {\n ^bb0(%v: f32):\n %t = math.absf %v : f32\n" + narrowed("%t", element) + "\n }"),
              "");
    EXPECT_EQ(
        check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %s: {2} {{top.name = \"s\"}) -> ({1} "
                      "{{top.name = \"y\"}) attributes {{device.exact} {{\n %y = device.map(%x, %s) {{\n ^bb0(%a: "
                      "{3}, %b: f32):\n %c = arith.extf %a : {3} to f32\n %d = arith.divf %c, %b : f32\n %e = "
                      "arith.truncf %d : f32 to {3}\n %f = arith.extf %e : {3} to f32\n %g = arith.mulf %f, %b : "
                      "f32\n{4}\n } : ({0}, {2}) -> {1}\n return %y : {1}\n}\n",
                      x, x, typeText({37, 1, 1}, "f32"), element, narrowed("%g", element))),
        "");
    EXPECT_EQ(
        check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                      "{{device.exact} {{\n %y = device.reduce sum %x prologue {{\n ^bb0(%a: {2}):\n %b = arith.extf "
                      "%a : {2} to f32\n device.yield %b : f32\n } epilogue {{\n ^bb0(%v: f32):\n{3}\n } {{axes = "
                      "array<i64: 2, 3>} : ({0}) -> {1}\n return %y : {1}\n}\n",
                      x, typeText({2, 37, 1, 1}, element), element, narrowed("%v", element))),
        "");
  }
}

/// Rounds and widens a value again: the result that is stored must have lost the digits.
TEST_F(Emission, MapsRoundToNarrowFloatsAndBack) {
  for (const char *narrow : {"bf16", "f16"}) {
    std::string x = typeText({1, 37, 5, 7}, "f32");
    EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
                            "{{device.exact} {{\n %y = device.map(%x) {{\n ^bb0(%a: f32):\n %b = arith.mulf %a, %a : "
                            "f32\n %c = arith.truncf %b : f32 to {1}\n %d = arith.extf %c : {1} to f32\n device.yield "
                            "%d : f32\n } : ({0}) -> {0}\n return %y : {0}\n}\n",
                            x, narrow)),
              "");
  }
}

/// If the result is an integer, a division by a constant becomes two multiplications. This must hold for ordinary and
/// subnormal numbers and for infinity, for which two factors could yield NaN. Other divisions are kept.
TEST_F(Emission, DivisionsByConstantsKeepTheirBits) {
  for (const char *divisor : {"0.0196078438", "-3.3", "0.25", "1.0e-30", "7.0e+20", "0.0117647061"}) {
    for (const char *factor : {"1.0", "2.5", "3.0e+38", "1.0e-38"}) {
      std::string x = typeText({1, 37, 5, 7}, "f32"), y = typeText({1, 37, 5, 7}, "i8");
      std::string quotient =
          formatv(" %f = arith.constant {0} : f32\n %m = arith.mulf %a, %f : f32\n %d = arith.constant "
                  "{1} : f32\n %q = arith.divf %m, %d : f32\n",
                  factor, divisor);
      std::string bounded = " %r = math.roundeven %q : f32\n %z = arith.constant -7.0 : f32\n %s = arith.addf %r, %z : "
                            "f32\n %l = arith.constant -128.0 : f32\n %h = arith.constant 127.0 : f32\n %t = "
                            "arith.maximumf %s, %l : f32\n %u = arith.minimumf %t, %h : f32\n %v = arith.fptosi %u : "
                            "f32 to i32\n %i = arith.trunci %v : i32 to i8\n device.yield %i : i8\n";
      auto map = [&](const std::string &body, const std::string &type) {
        return check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                             "{{device.exact} {{\n %y = device.map(%x) {{\n ^bb0(%a: f32):\n{2} } : ({0}) -> {1}\n "
                             "return %y : {1}\n}\n",
                             x, type, body));
      };
      EXPECT_EQ(map(quotient + bounded, y), "") << divisor << " " << factor;
      EXPECT_EQ(map(quotient + " device.yield %q : f32\n", x), "") << divisor << " " << factor;
    }
  }
}

/// log1p is a logarithm, a division and two selects: of numbers of either sign (NaN below -1), and in softplus.
TEST_F(Emission, LogarithmsOfOneMore) {
  for (const char *argument :
       {"    %t = math.absf %a : f32\n", "    %t = arith.addf %a, %a : f32\n",
        "    %s = math.absf %a : f32\n    %n = arith.negf %s : f32\n    %t = math.exp %n : f32\n"}) {
    EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
                            "{{device.exact} {{\n  %y = device.map(%x) {{\n  ^bb0(%a: f32):\n{1}    %r = math.log1p "
                            "%t : f32\n    device.yield %r : f32\n  } : ({0}) -> {0}\n  return %y : {0}\n}",
                            typeText({3, 40, 70}, "f32"), argument)),
              "");
  }
}

/// A quantised NaN is the integer 0, even if the integer is only in registers before it becomes a float again.
TEST_F(Emission, NaNIsZeroBetweenQuantisations) {
  const char *body = R"(  ^bb0(%a: f32):
    %r = math.sqrt %a : f32
    %s = arith.constant 0.01 : f32
    %q = arith.divf %r, %s : f32
    %n = math.roundeven %q : f32
    %z = arith.constant 7.0 : f32
    %p = arith.addf %n, %z : f32
    %low = arith.constant -128.0 : f32
    %b = arith.maximumf %p, %low : f32
    %high = arith.constant 127.0 : f32
    %u = arith.minimumf %b, %high : f32
    %i = arith.fptosi %u : f32 to i32
    %t = arith.trunci %i : i32 to i8
    %w = arith.extsi %t : i8 to i32
    %c = arith.constant 7 : i32
    %d = arith.subi %w, %c : i32
    %f = arith.sitofp %d : i32 to f32
    %m = arith.mulf %f, %s : f32
    device.yield %m : f32
)";
  EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %y = device.map(%x) {{\n{1}  } : ({0}) -> {0}\n  return %y : {0}\n}",
                          typeText({3, 40, 70}, "f32"), body)),
            "");
}

/// Results are computed in f32 and stored in a narrower type; a map reads the stored value.
TEST_F(Emission, NormsAndAttentionMakeNarrowFloats) {
  chips.erase(chips.begin()); // npu-edge computes with neither bf16 nor f16
  const std::string x = typeText({1, 9, 32}, "f32");
  auto function = [&](const std::string &op, const std::string &operands, const std::string &narrow, bool isMapped) {
    std::string y = typeText({1, 9, 32}, narrow), result = isMapped ? x : y;
    std::string map = formatv(" %y = device.map(%x, %n) {{\n ^bb0(%a: f32, %b: {0}):\n %c = arith.extf %b : {0} to "
                              "f32\n %d = arith.subf %a, %c : f32\n device.yield %d : f32\n } : ({1}, {2}) -> {1}\n",
                              narrow, x, y);
    return "func.func @main(%x: " + x + " {top.name = \"x\"}) -> (" + result +
           " {top.name = \"y\"}) attributes {device.exact} {\n %n = device." + op + " : (" + operands + ") -> " + y +
           "\n" + (isMapped ? map + " return %y" : " return %n") + " : " + result + "\n}\n";
  };
  for (const char *narrow : {"bf16", "f16"}) {
    for (bool isMapped : {false, true}) {
      EXPECT_EQ(check(function("norm %x {axis = 2 : i64, epsilon = 1.0e-5 : f64}", x, narrow, isMapped)), "");
      std::string three = x + ", " + x + ", " + x;
      EXPECT_EQ(check(function("attention %x, %x, %x {scale = 0.25 : f64}", three, narrow, isMapped)), "");
    }
  }
}

TEST_F(Emission, FloatProductsNeedAUnitForThem) {
  chips = {bmodel::npu::chipNamed("npu-edge")};
  Convolution convolution(8);
  convolution.xElement = convolution.wElement = "f32";
  std::string message = check(convolution.floatText("f32", "", "    device.yield %v : f32"));
  EXPECT_NE(message.find("multiplies floats, which the chip's matrix unit does not"), std::string::npos) << message;
}

/// +0 is larger than -0 wherever a maximum or minimum selects one of them.
TEST_F(Emission, ZerosHaveSigns) {
  signedZeros = true;
  std::string x = typeText({2, 37, 15, 14}, "f32");
  auto checkOp = [&](const std::string &op, const Dims &y) {
    return check(
        formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %e: {0} {{top.name = \"e\"}) -> ({1} {{top.name = "
                "\"y\"}) attributes {{device.exact} {{\n  %y = {2} -> {1}\n  return %y : {1}\n}\n",
                x, typeText(y, "f32"), op));
  };
  EXPECT_EQ(
      checkOp("device.pool max %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, "
              "1, 0>, dilations = array<i64: 1, 1>} : (" +
                  x + ")",
              {2, 37, 8, 7}),
      "");
  for (const char *kind : {"max", "min"}) {
    const std::pair<const char *, Dims> reductions[] = {
        {"3", {2, 37, 15, 1}}, {"2, 3", {2, 37, 1, 1}}, {"1", {2, 1, 15, 14}}, {"0", {1, 37, 15, 14}}};
    for (const auto &[axes, y] : reductions) {
      EXPECT_EQ(checkOp(formatv("device.reduce {0} %x {{axes = array<i64: {1}>} : ({2})", kind, axes, x), y), "");
    }
    std::string extremum = formatv("arith.{0}imumf", kind);
    EXPECT_EQ(checkOp(formatv("device.map(%x, %e) {{\n ^bb0(%a: f32, %b: f32):\n %c = {0} %a, %b : f32\n device.yield "
                              "%c : f32\n } : ({1}, {1})",
                              extremum, x),
                      {2, 37, 15, 14}),
              "");
    for (const char *bound : {"0.0", "-0.0"}) {
      EXPECT_EQ(
          checkOp(formatv("device.map(%x) {{\n ^bb0(%a: f32):\n %z = arith.constant {0} : f32\n %c = {1} %a, %z : "
                          "f32\n device.yield %c : f32\n } : ({2})",
                          bound, extremum, x),
                  {2, 37, 15, 14}),
          "");
    }
  }
}

/// -0.3 rounds to an integer without a sign, and integer products do not have a -0, either.
TEST_F(Emission, IntegersThatBecomeFloatsHaveNoMinusZero) {
  auto checkMap = [&](const char *element, const std::string &body) {
    std::string x = typeText({2, 37, 15, 14}, element), y = typeText({2, 37, 15, 14}, "f32");
    return check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                         "{{device.exact} {{\n  %y = device.map(%x) {{\n ^bb0(%a: {2}):\n{3} device.yield %y : f32\n "
                         "} : ({0}) -> {1}\n  return %y : {1}\n}\n",
                         x, y, element, body));
  };
  const char *rounded =
      " %l = arith.constant -127.0 : f32\n %b = arith.maximumf %r, %l : f32\n %h = arith.constant 127.0 "
      ": f32\n %c = arith.minimumf %b, %h : f32\n %i = arith.fptosi %c : f32 to i32\n %q = "
      "arith.trunci %i : i32 to i8\n %w = arith.extsi %q : i8 to i32\n %f = arith.sitofp %w : i32 to "
      "f32\n %s = arith.constant 0.25 : f32\n %y = arith.mulf %f, %s : f32\n";
  for (const char *round :
       {" %r = math.roundeven %a : f32\n", " %r = math.ceil %a : f32\n", " %r = arith.addf %a, %a : f32\n"}) {
    EXPECT_EQ(checkMap("f32", std::string(round) + rounded), "");
  }
  EXPECT_EQ(checkMap("i8", " %i = arith.extsi %a : i8 to i32\n %m = arith.constant -3 : i32\n %p = arith.muli %i, %m : "
                           "i32\n %y = arith.sitofp %p : i32 to f32\n"),
            "");
}
