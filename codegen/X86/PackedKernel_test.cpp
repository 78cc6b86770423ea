//===- PackedKernel_test.cpp - Contractions with packed weights -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops pass through layout assignment and weight packing; then their kernels are compared with the reference evaluation
// of the logical op. Integers must agree bit for bit on every variant; each result is computed by one call and again
// tile by tile. TESSERA_QUANT_CASES=N runs N random cases per family instead of the default few.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelHarness.h"

#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

/// How the epilogue turns sums into results.
enum class Result {
  Requantised,
  Residual,
  Float,
  Sums,
  Gelu,
  GeluTanh,
  Silu,
  ResidualGelu,
  ResidualGeluTanh,
  ResidualSilu
};

bool hasGate(Result result) { return result >= Result::Gelu; }
bool hasResidual(Result result) { return result == Result::Residual || result >= Result::ResidualGelu; }

/// Returns the text of an activation %q0 of the sums %f and the residual %rd, divided by a scale. The sums are
/// multiplied by a constant, because a factor from an operand could be NaN.
std::string gate(Result result) {
  std::string text = "%shrink = arith.constant 1.0e-4 : f32 %one = arith.constant 1.0 : f32 "
                     "%half = arith.constant 0.5 : f32 %so = arith.constant 0.0234 : f32 ";
  text += hasResidual(result) ? "%shrunk = arith.mulf %f, %shrink : f32 %v = arith.addf %shrunk, %rd : f32 "
                              : "%v = arith.mulf %f, %shrink : f32 ";
  if (result == Result::Silu || result == Result::ResidualSilu) {
    return text + "%neg = arith.negf %v : f32 %power = math.exp %neg : f32 %down = arith.addf %one, %power : f32 "
                  "%share = arith.divf %one, %down : f32 %act = arith.mulf %v, %share : f32 %q0 = arith.divf %act, %so "
                  ": f32 ";
  }
  text +=
      result == Result::Gelu || result == Result::ResidualGelu
          ? "%root = arith.constant 0.707106769 : f32 %inner = arith.mulf %v, %root : f32 %curve = math.erf %inner : "
            "f32 "
          : "%root = arith.constant 0.797884583 : f32 %small = arith.constant 0.044715 : f32 %square = arith.mulf "
            "%v, %v : f32 %cube = arith.mulf %square, %v : f32 %part = arith.mulf %small, %cube : f32 %whole = "
            "arith.addf %v, %part : f32 %inner = arith.mulf %root, %whole : f32 %curve = math.tanh %inner : f32 ";
  return text + "%lift = arith.addf %one, %curve : f32 %own = arith.mulf %half, %v : f32 %act = arith.mulf %own, %lift "
                ": f32 %q0 = arith.divf %act, %so : f32 ";
}

/// Returns the element type of the integer residual of results of type |y|.
std::string residualElement(const std::string &y) { return y == "i16" ? "i16" : "i8"; }

/// Largest magnitude of i16 results, an odd number.
constexpr int64_t kLevels = 29001;

/// Returns the epilogue of an op with sums %acc, factors %e and residual %d; |y| is the result's element type.
std::string epilogue(Result result, const std::string &y, int64_t zero, bool relu) {
  if (result == Result::Sums) {
    return "";
  }
  std::string text = "%f = arith.sitofp %acc : i32 to f32 %p = arith.mulf %f, %e : f32 ";
  if (result == Result::Float) {
    return text + "device.yield %p : f32";
  }
  std::string value = "%p";
  if (hasResidual(result)) {
    // The residual has zero point 3.
    text += "%t = arith.constant 3 : i32 %rw = arith.extsi %d : " + residualElement(y) +
            " to i32 %rs = arith.subi %rw, %t : i32 %rf = "
            "arith.sitofp %rs : i32 to f32 "
            "%k = arith.constant 0.0371 : f32 %rd = arith.mulf %rf, %k : f32 ";
  }
  if (result == Result::Residual) {
    text += "%sum = arith.addf %p, %rd : f32 "
            "%zs = arith.constant 0.0 : f32 %act = arith.maximumf %sum, %zs : f32 %so = arith.constant 0.21 : f32 %q0 "
            "= arith.divf %act, %so : f32 ";
    value = "%q0";
  }
  if (hasGate(result)) {
    text += gate(result), value = "%q0", relu = false;
  }
  bool isUnsigned = y == "ui8", words = y == "i16";
  int64_t low = relu ? zero : isUnsigned ? 0 : words ? -kLevels : -128, high = isUnsigned ? 255 : words ? kLevels : 127;
  std::string stored = words ? "i16" : "i8";
  return text +
         formatv(
             "%n = math.roundeven {0} : f32 %z = arith.constant {1}.0 : f32 %s = arith.addf %n, %z : f32 "
             "%lo = arith.constant {2}.0 : f32 %a = arith.maximumf %s, %lo : f32 %hi = arith.constant {3}.0 : f32 "
             "%u = arith.minimumf %a, %hi : f32 %i = arith.fptosi %u : f32 to i32 %q = arith.trunci %i : i32 to {4} "
             "device.yield %q : {4}",
             value, zero, low, high, stored)
             .str();
}

/// Returns the text of an op over x and w with a |bias| and, as extras, the epilogue's |factors| and |residual|; empty
/// ones are omitted.
std::string opText(const std::string &name, const std::string &x, const std::string &w, const std::string &bias,
                   const std::string &factors, const std::string &residual, const std::string &y,
                   const std::string &body, const std::string &attributes) {
  std::string extras, arguments, types, block = "%acc: i32", element = y.find("xi16>") != y.npos ? "i16" : "i8";
  if (!body.empty()) {
    extras = " extras(%m", arguments = ", %m: " + factors, types = ", " + factors, block += ", %e: f32";
    if (!residual.empty()) {
      extras += ", %r", arguments += ", %r: " + residual, types += ", " + residual,
          block += ", %d: " + residualElement(element);
    }
    extras += ") epilogue { ^bb0(" + block + "): " + body + " }";
  }
  std::string operands = "%x, %w";
  if (!bias.empty()) {
    operands += " bias %b", arguments = ", %b: " + bias + arguments, types = ", " + bias + types;
  }
  return formatv(
             "(%x: {0}, %w: {1}{2}) -> {3} {{ %y = device.{4} {5}{6} {{ {7} } : ({0}, {1}{8}) -> {3} return %y : {3} }",
             x, w, arguments, y, name, operands, extras, attributes, types)
      .str();
}

/// Returns the largest magnitude of i16 with which no sum of |depth| products and a bias of the tests overflows.
int64_t levelsOf(int64_t depth) { return std::min<int64_t>(32767, (INT32_MAX - 3000) / (128 * depth)); }

/// Returns the attribute that states the bound of sums of |depth| products, or "" if |x| does not need one.
std::string boundOf(const std::string &x, int64_t depth) {
  return x == "i16" ? formatv(", sumBound = {0} : i64", levelsOf(depth) * 128 * depth + 3000).str() : "";
}

int64_t zeroOf(const std::string &y) { return y == "i16" ? 0 : y[0] == 'u' ? 7 : -9; }

struct ConvCase {
  int64_t n, c, h, w, oc, kh, kw, stride, dilation, pad, groups;
  const char *x = "ui8", *y = "ui8";
  Result result = Result::Requantised;
  int64_t padValue = 0;
  bool relu = true;
  bool bias = true;
};

std::string convText(const ConvCase &s) {
  auto out = [&](int64_t size, int64_t kernel) {
    return (size + 2 * s.pad - s.dilation * (kernel - 1) - 1) / s.stride + 1;
  };
  int64_t oh = out(s.h, s.kh), ow = out(s.w, s.kw);
  std::string yElement = s.result == Result::Float ? "f32" : s.result == Result::Sums ? "i32" : s.y;
  std::string y = tensorText({s.n, s.oc, oh, ow}, yElement);
  std::string attributes = formatv(
      "strides = array<i64: {0}, {0}>, pads = array<i64: {1}, {1}, {1}, {1}>, dilations = array<i64: {2}, {2}>, "
      "groups = {3} : i64",
      s.stride, s.pad, s.dilation, s.groups);
  attributes += boundOf(s.x, s.c / s.groups * s.kh * s.kw);
  if (s.padValue) {
    attributes += formatv(", padValue = {0} : i64", s.padValue).str();
  }
  int64_t zero = zeroOf(s.y);
  return opText("conv", tensorText({s.n, s.c, s.h, s.w}, s.x), tensorText({s.oc, s.c / s.groups, s.kh, s.kw}, "i8"),
                s.bias ? tensorText({s.oc}, "i32") : "", tensorText({s.oc, 1, 1}, "f32"),
                hasResidual(s.result) ? tensorText({s.n, s.oc, oh, ow}, residualElement(s.y)) : "", y,
                epilogue(s.result, s.y, zero, s.relu), attributes);
}

/// Returns options whose factors keep most results inside 8 bits and saturate some. |depth|: products per sum.
CheckOptions options(int64_t depth) {
  CheckOptions result;
  result.relative = 0, result.allBytes = true, result.indexRange = 3000;
  result.low = 1e-4, result.high = 0.03 / std::sqrt(double(depth));
  result.largest16 = levelsOf(depth);
  return result;
}

/// Checks the function text |body| with the attribute device.exact, as integer models are compiled.
void check(const std::string &body, int64_t depth) {
  std::string text = body;
  text.insert(text.find(" { %"), " attributes {device.exact}");
  llvm::SmallVector<X86Target> targets = targetsFor(text);
  for (const X86Target &target : targets) {
    EXPECT_EQ(checkPackedKernel(text, target, options(depth)), "")
        << target.name().str() << (target.vnni ? " vnni" : "") << "\n"
        << text;
  }
  for (const X86Target &target : openTargetsOf(targets, text)) {
    EXPECT_EQ(checkOpenPackedKernel(text, target, options(depth)), "") << target.name().str() << "\n" << text;
  }
}

void checkConv(const ConvCase &s) { check(convText(s), s.c / s.groups * s.kh * s.kw); }

constexpr const char *kElements[] = {"ui8", "i8", "i16"};

int64_t randomCases(int64_t usual) {
  const char *count = getenv("TESSERA_QUANT_CASES");
  return count ? atoll(count) : usual;
}

TEST(QuantConv, Types) {
  for (const char *x : {"ui8", "i8"}) {
    for (const char *y : {"ui8", "i8"}) {
      for (Result result : {Result::Requantised, Result::Residual, Result::Float, Result::Sums}) {
        checkConv({1, 32, 7, 9, 48, 1, 1, 1, 1, 0, 1, x, y, result});
        checkConv({2, 19, 6, 5, 37, 3, 3, 1, 1, 1, 1, x, y, result, 0, false});
      }
    }
  }
}

TEST(QuantConv, Words) {
  for (auto [x, y] : {std::pair("i16", "i16"), {"i16", "i8"}, {"i16", "ui8"}, {"i8", "i16"}, {"ui8", "i16"}}) {
    for (Result result : {Result::Requantised, Result::Residual, Result::Float, Result::Sums}) {
      checkConv({1, 32, 7, 9, 48, 1, 1, 1, 1, 0, 1, x, y, result});
      checkConv({2, 19, 6, 5, 37, 3, 3, 1, 1, 1, 1, x, y, result, 0, false});
    }
  }
  for (int64_t c : {1, 2, 3, 5, 15, 16, 17, 31, 33, 67}) {
    checkConv({1, c, 5, 6, 18, 3, 3, 1, 1, 1, 1, "i16", "i8"});
    checkConv({1, 20, 5, 6, c, 1, 1, 1, 1, 0, 1, "i16", "i16"});
  }
  checkConv({1, 3, 21, 23, 16, 7, 7, 2, 1, 3, 1, "i16", "ui8"});
  checkConv({1, 3, 13, 17, 24, 3, 3, 1, 2, 2, 1, "i16", "i8"});
  checkConv({1, 64, 7, 7, 64, 1, 1, 2, 1, 0, 1, "i16", "i16"});
  checkConv({1, 64, 8, 8, 64, 3, 3, 1, 1, 1, 2, "i16", "ui8"});
  checkConv({1, 24, 8, 8, 24, 3, 3, 1, 1, 1, 6, "i16", "ui8"}); // groups of four channels, which are merged
}

TEST(QuantConv, ChannelTails) {
  for (int64_t c : {1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 67}) {
    checkConv({1, c, 5, 6, 18, 3, 3, 1, 1, 1, 1, "ui8", "i8"});
    checkConv({1, 20, 5, 6, c, 1, 1, 1, 1, 0, 1, "i8", "ui8"});
  }
}

TEST(QuantConv, Windows) {
  checkConv({1, 3, 21, 23, 16, 7, 7, 2, 1, 3, 1, "ui8", "ui8"});
  checkConv({1, 3, 21, 23, 16, 7, 7, 2, 1, 3, 1, "i8", "ui8", Result::Requantised, -128});
  checkConv({1, 3, 13, 17, 24, 3, 3, 2, 1, 1, 1, "i8", "i8"});
  checkConv({1, 3, 13, 17, 24, 3, 3, 1, 2, 2, 1, "ui8", "i8"});
  checkConv({1, 32, 13, 17, 24, 3, 3, 2, 2, 2, 1, "ui8", "i8"});
  checkConv({1, 64, 7, 7, 64, 1, 1, 2, 1, 0, 1, "ui8", "ui8"});
  checkConv({1, 64, 8, 8, 64, 3, 3, 1, 1, 1, 2, "i8", "ui8"});
  checkConv({1, 24, 8, 8, 24, 3, 3, 1, 1, 1, 6, "i8", "ui8"}); // groups of four channels, which are merged
}

/// Tests 1 x 1 kernels that AMX copies in strips: one tile, several tiles with a remainder, and a whole part per strip.
TEST(QuantConv, Strips) {
  std::mt19937 random(23);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0, count = randomCases(14); i < count; ++i) {
    ConvCase s{pick(1, 2), pick(70, 700), pick(6, 24), pick(6, 24), pick(17, 160), 1, 1, pick(1, 2), 1, 0, 1};
    s.x = kElements[pick(0, 2)], s.y = kElements[pick(0, 2)];
    s.result = pick(0, 1) ? Result::Requantised : Result::Residual, s.relu = pick(0, 1);
    checkConv(s);
  }
  checkConv({1, 1000, 9, 15, 330, 1, 1, 1, 1, 0, 1, "i8", "i8"}); // too many weights to read again per strip
}

TEST(QuantConv, Random) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0, count = randomCases(40); i < count; ++i) {
    ConvCase s{pick(1, 2), pick(1, 67), pick(3, 12), pick(3, 40), pick(1, 67),
               pick(1, 3), pick(1, 3),  pick(1, 2),  pick(1, 2),  pick(0, 2),
               1};
    s.x = kElements[pick(0, 2)], s.y = kElements[pick(0, 2)];
    s.result = static_cast<Result>(pick(0, 9)), s.relu = pick(0, 1), s.bias = pick(0, 3);
    s.h += 4, s.w += 4;
    s.padValue = std::string(s.x) == "i16" ? 0 : s.x[0] == 'u' ? pick(0, 255) : pick(-128, 127);
    checkConv(s);
  }
}

TEST(QuantDepthwise, Windows) {
  for (const char *x : kElements) {
    auto pad = [&](int64_t value) { return std::string(x) == "i16" ? 0 : value; };
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t kernel : {1, 2, 3, 5, 7}) {
        if (std::string(x) == "i16" && kernel != 2 + stride) {
          continue; // all kernel sizes take the same path
        }
        int64_t c = 16 * kernel + stride * 5;
        checkConv({1, c, 13, 37, c, kernel, kernel, stride, 1, kernel / 2, c, x, "ui8", Result::Requantised, pad(100)});
      }
    }
    checkConv({2, 32, 9, 16, 32, 3, 3, 1, 1, 1, 32, x, "i8", Result::Residual, pad(5)});
    for (int64_t dilation : {2, 3, 4, 8}) {
      for (int64_t kernel : {2, 3, 5}) {
        if (std::string(x) == "i16" && kernel != 3) {
          continue;
        }
        checkConv({1, 40, 19, 37, 40, kernel, kernel, 1, dilation, dilation * (kernel / 2), 40, x, "i8",
                   Result::Requantised, pad(9)});
      }
    }
    checkConv({1, 3, 9, 5, 3, 3, 3, 2, 1, 1, 3, x, "i8", Result::Float, pad(9)});
    checkConv({1, 17, 60, 60, 17, 3, 3, 1, 1, 1, 17, x, "i16", Result::Sums, pad(9)});
  }
}

TEST(QuantDepthwise, Random) {
  std::mt19937 random(11);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0, count = randomCases(20); i < count; ++i) {
    int64_t c = pick(2, 67);
    ConvCase s{pick(1, 2), c,          pick(9, 20), pick(9, 50), c, pick(1, 5),
               pick(1, 5), pick(1, 3), pick(1, 2),  pick(0, 2),  c};
    s.x = kElements[pick(0, 2)], s.y = kElements[pick(0, 2)];
    s.result = static_cast<Result>(pick(0, 9)), s.relu = pick(0, 1), s.bias = pick(0, 3);
    s.padValue = std::string(s.x) == "i16" ? 0 : s.x[0] == 'u' ? pick(0, 255) : pick(-128, 127);
    checkConv(s);
  }
}

/// Returns the text of the same convolution in f32 with a ReLU.
std::string floatText(ConvCase s) {
  s.result = Result::Float, s.x = "f32";
  std::string text = convText(s);
  for (auto [from, to] : {std::pair("xi8>", "xf32>"),
                          {"xi32>", "xf32>"},
                          {"%acc: i32", "%acc: f32"},
                          {"%f = arith.sitofp %acc : i32 to f32 ", ""},
                          {"arith.mulf %f, %e", "arith.maximumf %acc, %e"}}) {
    for (size_t at; (at = text.find(from)) != std::string::npos;) {
      text.replace(at, strlen(from), to);
    }
  }
  return text;
}

/// With TESSERA_QUANT_BENCH=1, prints the GOP/s of one core next to those of f32.
TEST(QuantConv, Speed) {
  if (!getenv("TESSERA_QUANT_BENCH")) {
    GTEST_SKIP() << "set TESSERA_QUANT_BENCH to measure";
  }
  for (ConvCase s : {ConvCase{1, 3, 224, 224, 64, 7, 7, 2, 1, 3, 1},
                     {1, 64, 56, 56, 64, 1, 1, 1, 1, 0, 1},
                     {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1},
                     {1, 64, 56, 56, 256, 1, 1, 1, 1, 0, 1},
                     {1, 256, 56, 56, 64, 1, 1, 1, 1, 0, 1},
                     {1, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1},
                     {1, 128, 28, 28, 512, 1, 1, 1, 1, 0, 1},
                     {1, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1},
                     {1, 1024, 14, 14, 256, 1, 1, 1, 1, 0, 1},
                     {1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1},
                     {1, 512, 7, 7, 2048, 1, 1, 1, 1, 0, 1},
                     {1, 2048, 7, 7, 512, 1, 1, 1, 1, 0, 1},
                     {1, 32, 112, 112, 32, 3, 3, 1, 1, 1, 32},
                     {1, 144, 56, 56, 144, 3, 3, 1, 1, 1, 144},
                     {1, 144, 56, 56, 144, 3, 3, 2, 1, 1, 144},
                     {1, 384, 14, 14, 384, 3, 3, 1, 1, 1, 384},
                     {1, 960, 7, 7, 960, 3, 3, 1, 1, 1, 960}}) {
    double operations =
        2.0 * s.c / s.groups * s.kh * s.kw * s.oc * ((s.h - 1) / s.stride + 1) * ((s.w - 1) / s.stride + 1);
    std::string line = formatv("{0}x{1}x{2} -> {3}, {4}x{5}/{6}: f32", s.c, s.h, s.w, s.oc, s.kh, s.kw, s.stride).str();
    X86Target target = X86Target::native();
    double f32 = timePackedKernel(floatText(s), target);
    line += formatv(" {0,8:f1} us {1,7:f1}", f32 * 1e6, operations / f32 / 1e9).str();
    for (const char *x : kElements) {
      s.x = x;
      for (bool residual : {false, true}) {
        s.result = residual ? Result::Residual : Result::Requantised;
        double seconds = timePackedKernel(convText(s), target);
        line += formatv(" | {0}{1} {2,7:f1} us {3,7:f1} x{4:f2}", x, residual ? "+r" : "", seconds * 1e6,
                        operations / seconds / 1e9, seconds / f32)
                    .str();
        if (s.groups > 1 || s.c == 3) {
          break;
        }
      }
    }
    printf("%s\n", line.c_str());
  }
}

std::string matMulText(int64_t m, int64_t k, int64_t n, bool transposed, const char *x, const char *y, Result result) {
  std::string yElement = result == Result::Float ? "f32" : result == Result::Sums ? "i32" : y;
  return opText("matmul", tensorText({m, k}, x), transposed ? tensorText({n, k}, "i8") : tensorText({k, n}, "i8"),
                tensorText({n}, "i32"), tensorText({n}, "f32"),
                hasResidual(result) ? tensorText({m, n}, residualElement(y)) : "", tensorText({m, n}, yElement),
                epilogue(result, y, zeroOf(y), false),
                (transposed ? "transB = true" : "transB = false") + boundOf(x, k));
}

/// Tests AMX tiles with low and high bytes of rows that fill neither whole vectors nor whole chunks.
TEST(QuantMatMul, TailsOfWords) {
  for (auto [m, k, n] : {std::tuple(31, 131, 70), {16, 40, 64}, {18, 97, 33}}) {
    check(matMulText(m, k, n, false, "i16", "i8", Result::Requantised), k);
  }
}

TEST(QuantMatMul, Shapes) {
  for (int64_t k : {1, 3, 4, 17, 64, 131}) {
    for (int64_t n : {1, 15, 16, 33, 70}) {
      for (int64_t m : {1, 5, 31}) {
        auto result = static_cast<Result>((m + n + k) % 4);
        const char *x = (m + n) % 2 ? "i8" : "ui8", *y = k % 2 ? "ui8" : "i8";
        check(matMulText(m, k, n, n % 2, x, y, result), k);
        if (m > 1) { // includes two AMX tiles, of 16 and 15 rows
          check(matMulText(m, k, n, n % 2, "i16", kElements[(m + k) % 3], result), k);
        }
      }
    }
  }
}

TEST(QuantMatMul, Gates) {
  for (Result result : {Result::Gelu, Result::GeluTanh, Result::Silu, Result::ResidualGelu, Result::ResidualGeluTanh,
                        Result::ResidualSilu}) {
    check(matMulText(67, 64, 70, false, "i8", result == Result::Gelu ? "i8" : "ui8", result), 64);
    checkConv({1, 24, 9, 13, 44, 3, 3, 1, 1, 1, 1, "ui8", "i8", result});
    check(matMulText(5, 64, 33, false, "i8", "i16", result), 64);
  }
}

/// Tests rows of A that are whole pages apart, which the kernel copies so that they do not share cache sets.
TEST(QuantMatMul, RowsOfPages) {
  check(matMulText(42, 4096, 225, false, "ui8", "i8", Result::Requantised), 4096);
  check(matMulText(28, 4095, 224, true, "i8", "ui8", Result::Residual), 4095);
  check(matMulText(42, 2048, 225, true, "i16", "i8", Result::Float), 2048);
}

/// Returns the text of a matmul of two activations with dims |batch|; |factors| is the shape of the factors of the
/// sums.
std::string activationsText(std::vector<int64_t> batch, int64_t m, int64_t k, int64_t n, bool transposed, const char *x,
                            const char *y, Result result, std::vector<int64_t> factors) {
  auto matrices = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> shape = batch;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  };
  std::string yElement = result == Result::Float ? "f32" : result == Result::Sums ? "i32" : y;
  return opText("matmul", tensorText(matrices(m, k), x), tensorText(transposed ? matrices(n, k) : matrices(k, n), "i8"),
                "", tensorText(factors, "f32"),
                hasResidual(result) ? tensorText(matrices(m, n), residualElement(y)) : "",
                tensorText(matrices(m, n), yElement), epilogue(result, y, zeroOf(y), false),
                transposed ? "transB = true" : "transB = false");
}

void checkActivations(const std::string &text, int64_t depth) {
  for (const X86Target &target : targetsFor(text)) {
    EXPECT_EQ(checkKernel(text, target, options(depth)), "")
        << (target.amx ? "amx " : "") << target.name().str() << "\n"
        << text;
  }
}

TEST(QuantMatMul, Activations) {
  for (const char *x : {"ui8", "i8"}) {
    for (Result result : {Result::Requantised, Result::Residual, Result::Float, Result::Sums}) {
      checkActivations(activationsText({1, 3}, 19, 20, 35, true, x, "ui8", result, {1, 3, 1, 35}), 20);
      checkActivations(activationsText({1, 3}, 19, 21, 35, false, x, "i8", result, {1, 3, 19, 1}), 21);
    }
  }
  checkActivations(activationsText({}, 1, 64, 16, true, "ui8", "ui8", Result::Requantised, {16}), 64);
  checkActivations(activationsText({2}, 65, 197, 64, false, "ui8", "ui8", Result::Requantised, {1}), 197);
  checkActivations(activationsText({2}, 17, 4096, 195, false, "i8", "ui8", Result::Float, {1}), 4096);
  checkActivations(activationsText({2}, 3, 7, 1, false, "i8", "ui8", Result::Float, {2, 1, 1}), 7);
}

TEST(QuantMatMul, RandomActivations) {
  std::mt19937 random(13);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0, count = randomCases(20); i < count; ++i) {
    int64_t batch = pick(1, 3), m = pick(1, 70), k = pick(1, 150), n = pick(1, 70), kind = pick(0, 3);
    bool transposed = pick(0, 1);
    k = transposed && pick(0, 3) ? (k + 3) / 4 * 4 : k;
    std::vector<int64_t> factors = kind == 0   ? std::vector<int64_t>{1}
                                   : kind == 1 ? std::vector<int64_t>{n}
                                   : kind == 2 ? std::vector<int64_t>{batch, 1, n}
                                               : std::vector<int64_t>{batch, m, 1};
    checkActivations(activationsText({batch}, m, k, n, transposed, kElements[pick(0, 1)], kElements[pick(0, 1)],
                                     static_cast<Result>(pick(0, 9)), factors),
                     k);
  }
}

/// Returns the text of a random recurrent op over input sums.
std::string recurrentText(std::mt19937 &random) {
  auto draw = [&](int64_t least, int64_t most) { return least + int64_t(random() % (most - least + 1)); };
  struct Kind {
    const char *name;
    int64_t gates, functions;
  };
  const Kind kind = std::array{Kind{"rnn", 1, 1}, Kind{"gru", 3, 2}, Kind{"lstm", 4, 3}}[random() % 3];
  const char *direction = std::array{"forward", "reverse", "bidirectional"}[random() % 3];
  const char *r = std::array{"f32", "f32", "f32", "f16", "bf16"}[random() % 5];
  int64_t d = direction[0] == 'b' ? 2 : 1, steps = draw(1, 5), batch = draw(1, random() % 3 ? 9 : 40),
          hidden = draw(1, random() % 2 ? 20 : 70), rows = kind.gates * hidden;
  static constexpr const char *kFunctions[] = {"Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign"};
  std::string activations;
  for (int64_t i = 0; i < d * kind.functions; ++i) {
    activations += formatv("{0}\"{1}\"", i ? ", " : "", kFunctions[random() % 5]);
  }
  std::string state = tensorText({d, batch, hidden}, r), x = tensorText({steps, batch, d * rows}, "f32"),
              y = tensorText({steps, d, batch, hidden}, r), arguments = "%x: " + x, operands = "%x, %r", types = x;
  auto add = [&](const char *word, const char *name, const std::string &type) {
    arguments += formatv(", %{0}: {1}", name, type), types += ", " + type;
    operands += *word ? formatv(" {0} %{1}", word, name).str() : "";
  };
  add("", "r", tensorText({d, rows, hidden}, r));
  random() % 2 ? add("bias", "b", tensorText({d, rows}, "f32")) : void();
  random() % 2 ? add("lens", "l", tensorText({batch}, random() % 2 ? "i32" : "i64")) : void();
  random() % 2 ? add("h", "h", state) : void();
  bool isLstm = kind.gates == 4;
  isLstm &&random() % 2 ? add("c", "c", state) : void();
  isLstm &&random() % 2 ? add("peephole", "p", tensorText({d, 3 * hidden}, "f32")) : void();
  return formatv(
             "({0}) -> ({1}, {2}, {2}) {{ %y, %yh, %yc = device.recurrent {3} {{kind = \"{4}\", direction = \"{5}\", "
             "hiddenSize = {6} : i64, activations = [{7}], clip = {8} : f64, linearBeforeReset = {9}} : ({10}) -> "
             "({1}, {2}, {2}) return %y, %yh, %yc : {1}, {2}, {2} }",
             arguments, y, state, operands, kind.name, direction, hidden, activations, random() % 4 ? "0.0" : "0.3",
             random() % 2 ? "true" : "false", types)
      .str();
}

TEST(PackedRecurrent, Random) {
  std::mt19937 random(5);
  CheckOptions small;
  small.low = -0.5, small.high = 0.5, small.relative = 3e-5;
  for (int64_t i = 0; i < randomCases(14); ++i) {
    std::string text = recurrentText(random);
    for (const X86Target &target : targetsFor(text)) {
      // Without FMA, no register tile supports 16-bit weights.
      if (target.hasFma() || text.find("16>") == text.npos) {
        EXPECT_EQ(checkPackedKernel(text, target, small), "") << target.name().str() << "\n" << text;
      }
    }
  }
}

} // namespace
