//===- RowsEmission_test.cpp - Norms, attention, softmax on the NPU -------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera::npu;
using llvm::formatv;

namespace {

std::string floatsText(const Dims &dims) {
  return constantText<float>(dims, "f32", [] { return float(between(-2000, 2000)) * 1e-3f; });
}

/// A function of one op: arguments a0, a1 ... of f32.
std::string functionText(const std::vector<Dims> &arguments, const Dims &y, const std::string &body) {
  std::string text = "func.func @main(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    text += formatv("{0}%a{1}: {2} {{top.name = \"a{1}\"}", i ? ", " : "", i, typeText(arguments[i], "f32"));
  }
  return text + formatv(") -> ({0} {{top.name = \"y\"}) attributes {{device.exact} {{\n{1}\n  return %y : {0}\n}\n",
                        typeText(y, "f32"), body)
                    .str();
}

std::string normText(const Dims &dims, int64_t axis, bool scale, bool bias, bool rms) {
  Dims parameter(dims.begin() + axis, dims.end());
  std::string body, names, types = typeText(dims, "f32");
  for (auto [name, has] : {std::pair("scale", scale), std::pair("bias", bias)}) {
    if (has) {
      body += formatv("  %{0} = {1}\n", name, floatsText(parameter));
      names += formatv(" {0} %{0}", name), types += ", " + typeText(parameter, "f32");
    }
  }
  body += formatv("  %y = device.norm %a0{0} {{axis = {1} : i64, epsilon = 1.0e-5 : f64, rms = {2}} : ({3}) -> {4}",
                  names, axis, rms ? "true" : "false", types, typeText(dims, "f32"));
  return functionText({dims}, dims, body);
}

struct Attention {
  Dims q, k, v, mask;
};

std::string attentionText(const Attention &a) {
  Dims y = a.q;
  y.back() = a.v.back();
  std::vector<Dims> arguments = {a.q, a.k, a.v};
  if (!a.mask.empty()) {
    arguments.push_back(a.mask);
  }
  std::string names, types;
  for (size_t i = 0; i < arguments.size(); ++i) {
    names += formatv("{0}%a{1}", i ? ", " : "", i), types += (i ? ", " : "") + typeText(arguments[i], "f32");
  }
  return functionText(arguments, y,
                      formatv("  %y = \"device.attention\"({0}) {{scale = 0.3 : f64} : ({1}) -> {2}", names, types,
                              typeText(y, "f32")));
}

} // namespace

TEST_F(Emission, NormsOfRows) {
  EXPECT_EQ(check(normText({1, 37, 48}, 2, true, true, false)), "");
  EXPECT_EQ(check(normText({70, 5, 3}, 1, true, false, false)), "");
  EXPECT_EQ(check(normText({3, 17}, 1, false, true, false)), "");
  EXPECT_EQ(check(normText({2, 3, 4, 65}, 3, false, false, false)), "");
  EXPECT_EQ(check(normText({1, 9, 64}, 2, true, false, true)), "");
  EXPECT_EQ(check(normText({33, 1}, 1, false, false, true)), "");
  EXPECT_EQ(check(normText({1}, 0, true, true, true)), "");
  EXPECT_EQ(check(normText({600, 777}, 1, true, true, false)), ""); // more rows than local memory holds
}

TEST_F(Emission, NormsOfRowsThatDoNotFitAreNamed) {
  std::string message = check(normText({2, 40000}, 1, true, true, false));
  EXPECT_NE(message.find("bytes of a lane for its smallest tile"), std::string::npos) << message;
}

TEST_F(Emission, Attention) {
  EXPECT_EQ(check(attentionText({{1, 1, 40, 12}, {1, 1, 40, 12}, {1, 1, 40, 12}, {}})), "");
  EXPECT_EQ(check(attentionText({{5, 3}, {7, 3}, {7, 9}, {}})), "");
  // Several heads at once where they have few queries; keys and values of one head for some; masks of all kinds.
  EXPECT_EQ(check(attentionText({{1, 8, 5, 8}, {1, 8, 11, 8}, {1, 8, 11, 8}, {1, 1, 5, 11}})), "");
  EXPECT_EQ(check(attentionText({{2, 4, 1, 8}, {2, 1, 17, 8}, {1, 4, 17, 3}, {1, 1, 1, 17}})), "");
  EXPECT_EQ(check(attentionText({{2, 3, 37, 5}, {1, 3, 37, 5}, {2, 1, 37, 6}, {3, 37, 1}})), "");
  EXPECT_EQ(check(attentionText({{3, 70, 6}, {3, 9, 6}, {3, 9, 6}, {3, 1, 9}})), "");
  EXPECT_EQ(check(attentionText({{65, 1, 4}, {65, 3, 4}, {65, 3, 4}, {3}})), "");
}

/// Heads that share keys (grouped queries), and lanes that have queries, batches or blocks of queries.
TEST_F(Emission, AttentionOfManyHeads) {
  EXPECT_EQ(check(attentionText({{1, 4, 2, 64, 8}, {1, 4, 1, 64, 8}, {1, 4, 1, 64, 8}, {1, 1, 1, 64, 64}})), "");
  EXPECT_EQ(check(attentionText({{1, 8, 64, 16}, {1, 8, 128, 16}, {1, 8, 128, 24}, {}})), "");
  EXPECT_EQ(check(attentionText({{12, 64, 32}, {12, 100, 32}, {12, 100, 32}, {12, 64, 100}})), "");
  EXPECT_EQ(check(attentionText({{1, 4, 2, 48, 20}, {1, 4, 1, 90, 20}, {1, 4, 1, 90, 20}, {4, 1, 48, 90}})), "");
  EXPECT_EQ(check(attentionText({{4, 2, 1, 8}, {4, 1, 33, 8}, {4, 1, 33, 8}, {4, 2, 1, 33}})), "");
  EXPECT_EQ(check(attentionText({{3, 2, 4, 8}, {3, 1, 11, 8}, {3, 1, 11, 8}, {4, 11}})), "");
  EXPECT_EQ(check(attentionText({{2, 3, 64, 5}, {2, 1, 70, 5}, {1, 3, 70, 5}, {2, 1, 1, 70}})), "");
  EXPECT_EQ(check(attentionText({{16, 32, 64}, {16, 400, 64}, {16, 400, 64}, {32, 400}})), ""); // cut several ways
}

TEST_F(Emission, AttentionOverManyKeysComesInChunks) {
  EXPECT_EQ(check(attentionText({{1, 300, 33}, {1, 1500, 33}, {1, 1500, 20}, {}})), "");
  EXPECT_EQ(check(attentionText({{2, 50, 96}, {2, 700, 96}, {2, 700, 96}, {50, 700}})), "");
}

TEST_F(Emission, AttentionOverTooManyKeysIsNamed) {
  std::string message = check(attentionText({{1, 3, 4}, {1, 60000, 4}, {1, 60000, 4}, {}}));
  EXPECT_NE(message.find("bytes of a lane for all scores of a query"), std::string::npos) << message;
}

namespace {

/// Reduces x; |prologue| and |epilogue| of %v, which they leave in %r, may be empty.
std::string reduceText(const std::string &kind, const Dims &x, const std::vector<int64_t> &axes,
                       const std::string &prologue = "", const std::string &epilogue = "", bool withExtra = false) {
  Dims y = x;
  std::string list;
  for (int64_t axis : axes) {
    y[axis] = 1, list += (list.empty() ? "" : ", ") + std::to_string(axis);
  }
  std::string xType = typeText(x, "f32"), yType = typeText(y, "f32"), body = "%y = device.reduce " + kind + " %a0";
  body += withExtra ? " extras(%a1)" : "";
  body += prologue.empty() ? "" : " prologue {\n^bb0(%v: f32):\n" + prologue + "device.yield %r : f32\n}";
  body += epilogue.empty() ? ""
                           : std::string(" epilogue {\n^bb0(%v: f32") + (withExtra ? ", %e: f32" : "") + "):\n" +
                                 epilogue + "device.yield %r : f32\n}";
  body += formatv(" {{axes = array<i64: {0}>} : ({1}{2}) -> {3}", list, xType, withExtra ? ", " + yType : "", yType);
  return functionText(withExtra ? std::vector<Dims>{x, y} : std::vector<Dims>{x}, y, body);
}

/// Sums or largest of bytes, as integers or as floats.
std::string reduceBytes(const Dims &x, const std::vector<int64_t> &axes, bool largest) {
  Dims y = x;
  std::string list;
  for (int64_t axis : axes) {
    y[axis] = 1, list += (list.empty() ? "" : ", ") + std::to_string(axis);
  }
  const char *widen = " prologue {\n^bb0(%v: i8):\n%r = arith.extsi %v : i8 to i32\ndevice.yield %r : i32\n} epilogue "
                      "{\n^bb0(%v: i32):\n%f = arith.sitofp %v : i32 to f32\n%k = arith.constant 0.37 : f32\n%r = "
                      "arith.mulf %f, %k : f32\ndevice.yield %r : f32\n}";
  std::string yType = typeText(y, largest ? "i8" : "f32");
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
                 "{{\n%y = device.reduce {2} %x{3} {{axes = array<i64: {4}>} : ({0}) -> {1}\nreturn %y : {1}\n}\n",
                 typeText(x, "i8"), yType, largest ? "max" : "sum", largest ? "" : widen, list);
}

} // namespace

TEST_F(Emission, ReductionsOverAnyRunOfDims) {
  const char *square = "%r = arith.mulf %v, %v : f32\n", *root = "%r = math.sqrt %v : f32\n",
             *plus = "%r = arith.addf %v, %e : f32\n";
  for (const char *kind : {"sum", "max", "min"}) {
    EXPECT_EQ(check(reduceText(kind, {1, 33, 9, 7}, {1})), "");
    EXPECT_EQ(check(reduceText(kind, {40, 19, 5}, {1})), "");
    EXPECT_EQ(check(reduceText(kind, {6, 70}, {0})), "");
    EXPECT_EQ(check(reduceText(kind, {2, 3, 4, 5}, {1, 2})), "");
    EXPECT_EQ(check(reduceText(kind, {5, 37}, {1})), "");
    EXPECT_EQ(check(reduceText(kind, {5, 37, 1}, {1})), ""); // of the same numbers, but one after another
    EXPECT_EQ(check(reduceText(kind, {2, 1, 5, 7}, {1, 2})), "");
    EXPECT_EQ(check(reduceText(kind, {3, 4}, {0, 1})), "");
  }
  EXPECT_EQ(check(reduceText("prod", {5, 37}, {1})), "");
  EXPECT_EQ(check(reduceText("sum", {3, 50, 20}, {2}, square, root)), "");
  EXPECT_EQ(check(reduceText("sum", {3, 50, 20}, {1}, square, root)), "");
  EXPECT_EQ(check(reduceText("max", {3, 50, 20}, {1}, square, plus, true)), "");
  EXPECT_EQ(check(reduceText("sum", {1, 700, 60, 60}, {1}, square)), ""); // in tiles
}

TEST_F(Emission, ReductionsOfBytes) {
  for (bool largest : {false, true}) {
    EXPECT_EQ(check(reduceBytes({1, 33, 9, 7}, {1}, largest)), "");
    EXPECT_EQ(check(reduceBytes({4, 9, 257}, {2}, largest)), ""); // no product of two below 256
    EXPECT_EQ(check(reduceBytes({2, 5, 8}, {2}, largest)), "");
  }
}

TEST_F(Emission, ReductionsThatAreNotEmittedAreNamed) {
  for (auto [text, part] : {std::pair(reduceText("sum", {3, 4, 5, 6}, {0, 2}), "with others between them"),
                            std::pair(reduceText("prod", {3, 4, 5}, {1}), "product over other than the last dims"),
                            std::pair(reduceText("sum", {3, 1, 5}, {0, 2}), "and others apart from them"),
                            std::pair(reduceBytes({200000, 2}, {0}, false), "beyond 2^24")}) {
    std::string message = check(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST_F(Emission, SoftmaxAlongAnyDim) {
  for (const char *log : {"false", "true"}) {
    for (auto [dims, axis] :
         {std::pair(Dims{1, 21, 17, 19}, 1), {Dims{70, 9, 4}, 1}, {Dims{6, 50}, 0}, {Dims{2, 3, 4, 1}, 2}}) {
      EXPECT_EQ(
          check(functionText({dims}, dims,
                             formatv("  %y = \"device.softmax\"(%a0) {{axis = {0} : i64, log = {1}} : ({2}) -> {2}",
                                     axis, log, typeText(dims, "f32")))),
          "");
    }
  }
  Dims large = {1, 150, 90, 90}; // in tiles
  EXPECT_EQ(check(functionText({large}, large,
                               formatv("  %y = \"device.softmax\"(%a0) {{axis = 1 : i64, log = false} : ({0}) -> {0}",
                                       typeText(large, "f32")))),
            "");
}
