//===- RowsEmission_test.cpp - Norms, attention, softmax on the NPU -------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace tessera::npu;
using llvm::formatv;

namespace {

std::string floatsText(const Dims &dims) {
  return constantText<float>(dims, "f32", [] { return float(between(-2000, 2000)) * 1e-3f; });
}

/// Returns a function of one op with the arguments a0, a1 ... of |elements|, f32 by default.
std::string functionText(const std::vector<Dims> &arguments, const Dims &y, const std::string &body,
                         const std::vector<std::string> &elements = {}) {
  std::string text = "func.func @main(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    text += formatv("{0}%a{1}: {2} {{top.name = \"a{1}\"}", i ? ", " : "", i,
                    typeText(arguments[i], elements.empty() ? "f32" : elements[i]));
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
  bool ofBytes = false;
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
    std::string type = typeText(arguments[i], a.ofBytes && i < 3 ? "i8" : "f32");
    names += formatv("{0}%a{1}", i ? ", " : "", i), types += (i ? ", " : "") + type;
  }
  std::string attributes = a.ofBytes ? formatv("scale = {0:e6} : f64, levels = 255 : i64, valueScale = 0.03 : f64",
                                               1.0 / (4096.0 * double(a.q.back())))
                                           .str()
                                     : "scale = 0.3 : f64";
  std::string body =
      formatv("  %y = device.attention {0} {{{1}} : ({2}) -> {3}", names, attributes, types, typeText(y, "f32"));
  return a.ofBytes ? functionText(arguments, y, body, {"i8", "i8", "i8", "f32"}) : functionText(arguments, y, body);
}

Dims turned(const Dims &dims, const Dims &order) {
  Dims result;
  for (int64_t dim : order) {
    result.push_back(dims[size_t(dim)]);
  }
  return result;
}

/// Returns a copy that permutes all dims of its operand.
std::string turnText(const std::string &to, const std::string &from, const Dims &dims, const Dims &order,
                     const std::string &element) {
  Dims result = turned(dims, order);
  auto list = [](const Dims &values) {
    return formatv("[{0:$[, ]}]", llvm::make_range(values.begin(), values.end())).str();
  };
  Dims zeros(dims.size(), 0), ones(dims.size(), 1);
  return formatv("  %{0} = device.copy %{1} {{pieces = [#device.piece<source = 0, sizes = {2}, dst_offsets = {3}, "
                 "dst_steps = {4}, src_dims = {5}, src_offsets = {3}, src_steps = {4}>]} : ({6}) -> {7}\n",
                 to, from, list(result), list(zeros), list(ones), list(order), typeText(dims, element),
                 typeText(result, element));
}

/// Returns a map that quantises floats to bytes.
std::string bytesText(const std::string &to, const std::string &from, const Dims &dims) {
  return formatv("  %{0} = device.map(%{1}) {{\n  ^bb0(%in_a: f32):\n    %in_s = arith.constant 0.037 : f32\n"
                 "    %in_d = arith.divf %in_a, %in_s : f32\n    %in_r = math.roundeven %in_d : f32\n"
                 "    %in_l = arith.constant -128.0 : f32\n    %in_h = arith.constant 127.0 : f32\n"
                 "    %in_m = arith.maximumf %in_r, %in_l : f32\n    %in_n = arith.minimumf %in_m, %in_h : f32\n"
                 "    %in_i = arith.fptosi %in_n : f32 to i32\n    %in_b = arith.trunci %in_i : i32 to i8\n"
                 "    device.yield %in_b : i8\n  } : ({2}) -> {3}\n",
                 to, from, typeText(dims, "f32"), typeText(dims, "i8"));
}

/// Returns a map from bytes to floats, i.e. an op that reads a quantised value.
std::string floatsOfBytesText(const std::string &to, const std::string &from, const Dims &dims) {
  return formatv("  %{0} = device.map(%{1}) {{\n  ^bb0(%a: i8):\n    %f = arith.sitofp %a : i8 to f32\n"
                 "    device.yield %f : f32\n  } : ({2}) -> {3}\n",
                 to, from, typeText(dims, "i8"), typeText(dims, "f32"));
}

int64_t product(const Dims &dims) { return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>()); }

/// Returns %n = the normalised rows of %a0.
std::string normOfRowsText(const Dims &dims) {
  return formatv("  %n = device.norm %a0 {{axis = {0} : i64, epsilon = 1.0e-5 : f64, rms = false} : ({1}) -> {1}\n",
                 dims.size() - 1, typeText(dims, "f32"));
}

/// Returns: channels last, a norm over them, quantisation, channels first.
std::string turnedNormText(const Dims &dims, bool rms) {
  Dims rows = turned(dims, {0, 2, 3, 1});
  std::string body = turnText("t", "a0", dims, {0, 2, 3, 1}, "f32");
  body += formatv("  %scale = {0}\n  %n = device.norm %t scale %scale {{axis = 3 : i64, epsilon = 1.0e-5 : f64, "
                  "rms = {1}} : ({2}, {3}) -> {2}\n",
                  floatsText({rows[3]}), rms ? "true" : "false", typeText(rows, "f32"), typeText({rows[3]}, "f32"));
  body += bytesText("b", "n", rows) + turnText("u", "b", rows, {0, 3, 1, 2}, "i8") + floatsOfBytesText("y", "u", dims);
  return functionText({dims}, dims, body);
}

/// Attention whose heads are adjacent in rows of [batches, rows, heads, features]; the result has the same layout, in
/// bytes.
std::string headsText(const Dims &q, int64_t keys, const Dims &mask) {
  Dims k = q, order = {0, 2, 1, 3};
  k[1] = keys;
  Dims heads = turned(q, order), keyHeads = turned(k, order);
  std::string body = turnText("q", "a0", q, order, "f32") + turnText("k", "a1", k, order, "f32") +
                     turnText("v", "a2", k, order, "f32");
  std::string types = typeText(heads, "f32") + ", " + typeText(keyHeads, "f32") + ", " + typeText(keyHeads, "f32");
  std::vector<Dims> arguments = {q, k, k};
  if (!mask.empty()) {
    arguments.push_back(mask), types += ", " + typeText(mask, "f32");
  }
  body += formatv("  %z = device.attention %q, %k, %v{0} {{scale = 0.3 : f64} : ({1}) -> {2}\n",
                  mask.empty() ? "" : ", %a3", types, typeText(heads, "f32"));
  body += bytesText("b", "z", heads) + turnText("u", "b", heads, order, "i8") + floatsOfBytesText("y", "u", q);
  return functionText(arguments, q, body);
}

/// Returns a matmul that requantises its sums to bytes and adds another value to them.
std::string productText(const std::string &to, const std::string &x, const Dims &dims, int64_t columns,
                        const std::string &added) {
  Dims y = dims;
  y.back() = columns;
  Dims weights = {dims.back(), columns};
  std::string extras = added.empty() ? "" : formatv(" extras(%{0})", added).str();
  return formatv(
      "  %{0}_w = {1}\n  %{0} = device.matmul %{2}, %{0}_w{3} epilogue {{\n  ^bb0(%in_s: i32{4}):\n"
      "    %in_f = arith.sitofp %in_s : i32 to f32\n    %in_c = arith.constant 0.003 : f32\n"
      "    %in_m = arith.mulf %in_f, %in_c : f32\n{5}    %in_r = math.roundeven %in_v : f32\n"
      "    %in_l = arith.constant -128.0 : f32\n    %in_h = arith.constant 127.0 : f32\n"
      "    %in_x = arith.maximumf %in_r, %in_l : f32\n    %in_n = arith.minimumf %in_x, %in_h : f32\n"
      "    %in_i = arith.fptosi %in_n : f32 to i32\n    %in_b = arith.trunci %in_i : i32 to i8\n"
      "    device.yield %in_b : i8\n  } : ({6}, {7}{8}) -> {9}\n",
      to, constantText<int8_t>(weights, "i8", [] { return int8_t(between(-127, 127)); }), x, extras,
      added.empty() ? "" : ", %in_e: i8",
      added.empty() ? "    %in_o = arith.constant 0.0 : f32\n    %in_v = arith.addf %in_m, %in_o : f32\n"
                    : "    %in_o = arith.sitofp %in_e : i8 to f32\n    %in_v = arith.addf %in_m, %in_o : f32\n",
      typeText(dims, "i8"), typeText(weights, "i8"), added.empty() ? "" : ", " + typeText(y, "i8"), typeText(y, "i8"));
}

} // namespace

TEST_F(Emission, ProductsOfRowsReadAndStoreChannelsFirst) {
  for (const Dims &dims : {Dims{1, 24, 9, 8}, {1, 96, 12, 12}, {2, 40, 4, 16}}) {
    Dims rows = turned(dims, {0, 2, 3, 1}), wide = rows, result = dims;
    wide[3] = result[1] = 40;
    std::string body = turnText("t", "a0", dims, {0, 2, 3, 1}, "i8") + productText("p", "t", rows, 40, "") +
                       turnText("u", "p", wide, {0, 3, 1, 2}, "i8") + productText("q", "p", wide, 40, "p") +
                       turnText("v", "q", wide, {0, 3, 1, 2}, "i8");
    body +=
        formatv("  %y = device.map(%u, %v) {{\n  ^bb0(%a: i8, %b: i8):\n    %f = arith.sitofp %a : i8 to f32\n"
                "    %g = arith.sitofp %b : i8 to f32\n    %h = arith.addf %f, %g : f32\n    device.yield %h : f32\n"
                "  } : ({0}, {0}) -> {1}\n",
                typeText(result, "i8"), typeText(result, "f32"));
    std::string text = functionText({dims}, result, body);
    size_t at = text.find(typeText(dims, "f32"));
    EXPECT_EQ(check(text.replace(at, typeText(dims, "f32").size(), typeText(dims, "i8"))), "");
    if (dims[0] == 1) { // otherwise rows of several images are not evenly spaced
      EXPECT_LE(intermediate[0], 6 * uint64_t(product(result))) << "more than results, stored, and what reads them";
    }
  }
}

/// The whole result is one row or one column: the added value must not be treated as a parameter of columns or rows.
TEST_F(Emission, ProductsOfARowAddWhatWasTurned) {
  for (auto [dims, columns] : {std::pair(Dims{1, 24}, 64), std::pair(Dims{64, 24}, 1)}) {
    Dims y = {dims[0], columns}, added = {columns, dims[0]};
    std::string body = bytesText("b", "a0", dims) + turnText("t", "a1", added, {1, 0}, "i8") +
                       productText("p", "b", dims, columns, "t") + floatsOfBytesText("y", "p", y);
    std::string text = functionText({dims, added}, y, body), floats = "%a1: " + typeText(added, "f32");
    text.replace(text.find(floats), floats.size(), "%a1: " + typeText(added, "i8"));
    EXPECT_EQ(check(text), "");
  }
}

TEST_F(Emission, NormsTurnAndQuantiseTheirRows) {
  for (const Dims &dims : {Dims{1, 24, 9, 7}, {1, 48, 20, 20}, {1, 100, 3, 11}}) {
    EXPECT_EQ(check(turnedNormText(dims, false)), "");
    EXPECT_LE(intermediate[0], 2 * uint64_t(product(dims))) << "more than bytes that are stored and loaded";
  }
  EXPECT_EQ(check(turnedNormText({1, 33, 5, 6}, true)), "");
  EXPECT_EQ(check(turnedNormText({2, 33, 5, 6}, false)), ""); // rows of two images are not evenly spaced
}

/// The map after a norm reads a row, a number, and rows that are computed before or after the norm.
TEST_F(Emission, NormsComputeMapsOfOtherOperands) {
  Dims dims = {9, 40};
  std::string type = typeText(dims, "f32"), row = typeText({40}, "f32"), number = typeText({1}, "f32");
  for (const char *order : {"bn", "nb"}) {
    std::string body = formatv("  %row = {0}\n  %number = {1}\n", floatsText({40}), floatsText({1}));
    for (char each : std::string(order)) {
      body += each == 'b' ? bytesText("b", "a1", dims) : normOfRowsText(dims);
    }
    body += formatv("  %y = device.map(%n, %row, %number, %b) {{\n  ^bb0(%p: f32, %q: f32, %r: f32, %s: i8):\n"
                    "    %f = arith.sitofp %s : i8 to f32\n    %g = arith.mulf %p, %q : f32\n"
                    "    %h = arith.mulf %g, %r : f32\n    %i = arith.addf %h, %f : f32\n    device.yield %i : f32\n"
                    "  } : ({0}, {1}, {2}, {3}) -> {0}",
                    type, row, number, typeText(dims, "i8"));
    EXPECT_EQ(check(functionText({dims, dims}, dims, body)), "");
  }
}

/// Results of the model have their own places.
TEST_F(Emission, NormsWhoseTurnedRowsAreResults) {
  EXPECT_EQ(
      check(functionText({{9, 40}}, {40, 9}, normOfRowsText({9, 40}) + turnText("y", "n", {9, 40}, {1, 0}, "f32"))),
      "");
}

/// A copy that reverses rows is more than a permutation.
TEST_F(Emission, NormsWhoseRowsAreReversed) {
  Dims dims = {9, 40};
  std::string copy = turnText("r", "b", dims, {0, 1}, "i8"), from = "src_offsets = [0, 0]",
              steps = "src_steps = [1, 1]";
  copy.replace(copy.find(from), from.size(), "src_offsets = [8, 0]");
  copy.replace(copy.find(steps), steps.size(), "src_steps = [-1, 1]");
  EXPECT_EQ(
      check(functionText({dims}, dims,
                         normOfRowsText(dims) + bytesText("b", "n", dims) + copy + floatsOfBytesText("y", "r", dims))),
      "");
}

/// A lane holds two of these rows, but not three.
TEST_F(Emission, NormsOfLargeRowsLeaveMapsToOthers) {
  std::string type = typeText({9, 7000}, "f32");
  EXPECT_EQ(check(functionText({{9, 7000}, {9, 7000}}, {9, 7000},
                               normOfRowsText({9, 7000}) +
                                   formatv("  %y = device.map(%n, %a1) {{\n  ^bb0(%p: f32, %q: f32):\n"
                                           "    %g = arith.addf %p, %q : f32\n    device.yield %g : f32\n"
                                           "  } : ({0}, {0}) -> {0}",
                                           type)
                                       .str())),
            "");
}

/// Together with the following map, rows fill a lane to the last byte, which leaves no room for their sums.
TEST_F(Emission, NormsOfRowsThatFillALaneLeaveMapsToOthers) {
  for (int64_t lane : {64 << 10, 128 << 10, 256 << 10}) { // the lane size of each chip
    for (int64_t less : {0, 1, 16, 64}) {
      Dims two = {3, lane / 8 - less}, three = {3, lane / 12 - less};
      EXPECT_EQ(check(functionText({two}, two,
                                   normOfRowsText(two) + formatv("  %y = device.map(%n) {{\n  ^bb0(%p: f32):\n"
                                                                 "    %g = arith.mulf %p, %p : f32\n"
                                                                 "    device.yield %g : f32\n  } : ({0}) -> {0}",
                                                                 typeText(two, "f32"))
                                                             .str())),
                "");
      EXPECT_EQ(check(functionText({three, three}, three,
                                   normOfRowsText(three) + formatv("  %y = device.map(%n, %a1) {{\n"
                                                                   "  ^bb0(%p: f32, %q: f32):\n"
                                                                   "    %g = arith.addf %p, %q : f32\n"
                                                                   "    device.yield %g : f32\n  } : ({0}, {0}) -> {0}",
                                                                   typeText(three, "f32"))
                                                               .str())),
                "");
    }
  }
}

/// The operand has as many elements as the row but is a column, so the map's result is larger than the norm's.
TEST_F(Emission, NormsBroadcastBehind) {
  std::string row = typeText({1, 40}, "f32"), column = typeText({40, 1}, "f32");
  EXPECT_EQ(check(functionText({{1, 40}, {40, 1}}, {40, 40},
                               normOfRowsText({1, 40}) +
                                   formatv("  %y = device.map(%n, %a1) {{\n  ^bb0(%p: f32, %q: f32):\n"
                                           "    %g = arith.mulf %p, %q : f32\n    device.yield %g : f32\n"
                                           "  } : ({0}, {1}) -> {2}",
                                           row, column, typeText({40, 40}, "f32"))
                                       .str())),
            "");
}

/// Scale parameters are read from their own place, not with the layout of the rows.
TEST_F(Emission, NormsAreScaledByTheirTurnedRow) {
  std::string body = turnText("t", "a0", {24, 1}, {1, 0}, "f32");
  body += "  %r = device.reshape %t : (tensor<1x24xf32>) -> tensor<24xf32>\n"
          "  %y = device.norm %r scale %r {axis = 0 : i64, epsilon = 1.0e-5 : f64, rms = false} : (tensor<24xf32>, "
          "tensor<24xf32>) -> tensor<24xf32>";
  EXPECT_EQ(check(functionText({{24, 1}}, {24}, body)), "");
}

TEST_F(Emission, NormsStoreWhatSeveralRead) {
  Dims dims = {1, 6, 8, 40}, order = {0, 3, 1, 2};
  std::string body = normOfRowsText(dims);
  body += bytesText("b", "n", dims) + turnText("u", "b", dims, order, "i8") +
          turnText("v", "u", turned(dims, order), {0, 2, 3, 1}, "i8");
  body += formatv("  %y = device.map(%b, %v) {{\n  ^bb0(%p: i8, %q: i8):\n    %f = arith.sitofp %p : i8 to f32\n"
                  "    %g = arith.sitofp %q : i8 to f32\n    %h = arith.addf %f, %g : f32\n    device.yield %h : f32\n"
                  "  } : ({0}, {0}) -> {1}\n",
                  typeText(dims, "i8"), typeText(dims, "f32"));
  EXPECT_EQ(check(functionText({dims}, dims, body)), "");
}

TEST_F(Emission, AttentionReadsHeadsWhereTheyLie) {
  for (const Dims &q : {Dims{1, 40, 3, 16}, {5, 9, 2, 32}, {2, 70, 4, 24}, {40, 1, 2, 16}, {9, 49, 3, 32}}) {
    EXPECT_EQ(check(headsText(q, q[1], {})), "");
    EXPECT_LE(intermediate[0], 2 * uint64_t(product(q))) << "more than bytes that are stored and loaded";
  }
  EXPECT_EQ(check(headsText({6, 9, 2, 16}, 11, {1, 2, 9, 11})), "");
  EXPECT_EQ(check(headsText({6, 9, 2, 16}, 11, {6, 2, 9, 11})), "");
  EXPECT_EQ(check(headsText({16, 20, 3, 32}, 20, {1, 3, 20, 20})), ""); // as in windowed attention
  EXPECT_EQ(check(headsText({3, 48, 3, 16}, 48, {3, 1, 48, 48})), "");
  EXPECT_EQ(check(headsText({4, 30, 3, 5}, 30, {})), ""); // rows too short to read in place
}

TEST_F(Emission, NormsOfRows) {
  EXPECT_EQ(check(normText({1, 37, 48}, 2, true, true, false)), "");
  EXPECT_EQ(check(normText({70, 5, 3}, 1, true, false, false)), "");
  EXPECT_EQ(check(normText({3, 17}, 1, false, true, false)), "");
  EXPECT_EQ(check(normText({2, 3, 4, 65}, 3, false, false, false)), "");
  EXPECT_EQ(check(normText({1, 9, 64}, 2, true, false, true)), "");
  EXPECT_EQ(check(normText({33, 1}, 1, false, false, true)), "");
  EXPECT_EQ(check(normText({1}, 0, true, true, true)), "");
  EXPECT_EQ(check(normText({600, 777}, 1, true, true, false)), ""); // more rows than fit into local memory
}

TEST_F(Emission, Attention) {
  EXPECT_EQ(check(attentionText({{1, 1, 40, 12}, {1, 1, 40, 12}, {1, 1, 40, 12}, {}})), "");
  EXPECT_EQ(check(attentionText({{5, 3}, {7, 3}, {7, 9}, {}})), "");
  // Several heads at once if they have few queries; some share keys and values; masks of all kinds.
  EXPECT_EQ(check(attentionText({{1, 8, 5, 8}, {1, 8, 11, 8}, {1, 8, 11, 8}, {1, 1, 5, 11}})), "");
  EXPECT_EQ(check(attentionText({{2, 4, 1, 8}, {2, 1, 17, 8}, {1, 4, 17, 3}, {1, 1, 1, 17}})), "");
  EXPECT_EQ(check(attentionText({{2, 3, 37, 5}, {1, 3, 37, 5}, {2, 1, 37, 6}, {3, 37, 1}})), "");
  EXPECT_EQ(check(attentionText({{3, 70, 6}, {3, 9, 6}, {3, 9, 6}, {3, 1, 9}})), "");
  EXPECT_EQ(check(attentionText({{65, 1, 4}, {65, 3, 4}, {65, 3, 4}, {3}})), "");
}

/// An op after the attention reads its result twice.
TEST_F(Emission, AttentionTimesItself) {
  std::string type = typeText({2, 2, 12, 16}, "f32");
  EXPECT_EQ(check(formatv("func.func @main(%q: {0} {{top.name = \"q\"}, %k: {0} {{top.name = \"k\"}, %v: {0} "
                          "{{top.name = \"v\"}) -> ({0} {{top.name = \"y\"}) attributes {{device.exact} {{\n %a = "
                          "device.attention %q, %k, %v {{scale = 0.25 : f64} : ({0}, {0}, {0}) -> {0}\n %y = "
                          "device.map(%a, %a) {{\n ^bb0(%b: f32, %c: f32):\n %d = arith.mulf %b, %c : f32\n "
                          "device.yield %d : f32\n } : ({0}, {0}) -> {0}\n return %y : {0}\n}\n",
                          type)),
            "");
}

/// Heads that share keys (grouped queries); lanes hold different queries, batches or blocks of queries.
TEST_F(Emission, AttentionOfManyHeads) {
  EXPECT_EQ(check(attentionText({{1, 4, 2, 64, 8}, {1, 4, 1, 64, 8}, {1, 4, 1, 64, 8}, {1, 1, 1, 64, 64}})), "");
  EXPECT_EQ(check(attentionText({{1, 8, 64, 16}, {1, 8, 128, 16}, {1, 8, 128, 24}, {}})), "");
  EXPECT_EQ(check(attentionText({{12, 64, 32}, {12, 100, 32}, {12, 100, 32}, {12, 64, 100}})), "");
  EXPECT_EQ(check(attentionText({{1, 4, 2, 48, 20}, {1, 4, 1, 90, 20}, {1, 4, 1, 90, 20}, {4, 1, 48, 90}})), "");
  EXPECT_EQ(check(attentionText({{4, 2, 1, 8}, {4, 1, 33, 8}, {4, 1, 33, 8}, {4, 2, 1, 33}})), "");
  EXPECT_EQ(check(attentionText({{3, 2, 4, 8}, {3, 1, 11, 8}, {3, 1, 11, 8}, {4, 11}})), "");
  EXPECT_EQ(check(attentionText({{2, 3, 64, 5}, {2, 1, 70, 5}, {1, 3, 70, 5}, {2, 1, 1, 70}})), "");
  EXPECT_EQ(check(attentionText({{16, 32, 64}, {16, 400, 64}, {16, 400, 64}, {32, 400}})), ""); // split in several ways
}

/// Both matmuls on the matrix unit, bit by bit; masks that the output stage adds, and other masks.
TEST_F(Emission, AttentionOfBytes) {
  for (const Attention &each : std::vector<Attention>{{{1, 1, 40, 12}, {1, 1, 40, 12}, {1, 1, 40, 12}, {}},
                                                      {{5, 3}, {7, 3}, {7, 9}, {}},
                                                      {{1, 8, 5, 8}, {1, 8, 11, 8}, {1, 8, 11, 8}, {1, 1, 5, 11}},
                                                      {{2, 4, 1, 8}, {2, 1, 17, 8}, {1, 4, 17, 3}, {1, 1, 1, 17}},
                                                      {{2, 3, 37, 5}, {1, 3, 37, 5}, {2, 1, 37, 6}, {3, 37, 1}},
                                                      {{3, 70, 6}, {3, 9, 6}, {3, 9, 6}, {3, 70, 9}},
                                                      {{65, 1, 4}, {65, 3, 4}, {65, 3, 4}, {3}},
                                                      {{4, 2, 49, 32}, {4, 2, 49, 32}, {4, 2, 49, 32}, {4, 1, 49, 49}},
                                                      {{1, 4, 2, 48, 20}, {1, 4, 1, 90, 20}, {1, 4, 1, 90, 20}, {}},
                                                      {{16, 32, 64}, {16, 400, 64}, {16, 400, 64}, {32, 400}}}) {
    Attention bytes = each;
    bytes.ofBytes = true;
    EXPECT_EQ(check(attentionText(bytes)), "");
  }
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

/// Reduces x. |prologue| and |epilogue| map %v to %r and may be empty.
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

/// Returns a sum or maximum of bytes, as integers or floats.
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
    EXPECT_EQ(check(reduceText(kind, {5, 37, 1}, {1})), ""); // the same numbers, one after another
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
    EXPECT_EQ(check(reduceBytes({4, 9, 257}, {2}, largest)), ""); // not a product of two numbers below 256
    EXPECT_EQ(check(reduceBytes({2, 5, 8}, {2}, largest)), "");
  }
}

TEST_F(Emission, ReductionsThatAreNotEmittedAreNamed) {
  for (auto [text, part] : {std::pair(reduceText("sum", {3, 4, 5, 6}, {0, 2}), "dims that are not adjacent"),
                            std::pair(reduceText("prod", {3, 4, 5}, {1}), "product over other than the last dims"),
                            std::pair(reduceText("sum", {3, 1, 5}, {0, 2}), "dims not adjacent to them"),
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

namespace {

/// More rows than lanes, each larger than a lane. Little work on a chip with small lanes that has as many lanes as the
/// widest chip.
const Dims kManyLongRows = {66, 1, 4500};
bmodel::npu::Chip chipOfSmallLanes() {
  return bmodel::npu::changedEdge({"name=small", "lanes=64", "local_memory.bytes_per_lane=16384"});
}

std::string softmaxText(const Dims &dims, bool log) {
  return functionText({dims}, dims,
                      formatv("  %y = \"device.softmax\"(%a0) {{axis = {0} : i64, log = {1}} : ({2}) -> {2}",
                              dims.size() - 1, log ? "true" : "false", typeText(dims, "f32")));
}

} // namespace

/// Rows that do not fit a lane are normalised slice by slice, with identical bits.
TEST_F(Emission, NormsOfRowsLargerThanALane) {
  for (const Dims &dims : {Dims{2, 70003}, {1, 3, 270, 258}}) {
    for (bool rms : {false, true}) {
      EXPECT_EQ(check(normText(dims, 1, true, !rms, rms)), "");
    }
  }
  chips = {chipOfSmallLanes()};
  for (bool rms : {false, true}) {
    EXPECT_EQ(check(normText(kManyLongRows, 1, false, false, rms)), "");
  }
}

/// Softmax of rows that do not fit a lane has the same bits as in one slice.
TEST_F(Emission, SoftmaxOfRowsLargerThanALane) {
  EXPECT_EQ(check(softmaxText({2, 70003}, false)), "");
  EXPECT_EQ(check(softmaxText({2, 70003}, true)), "");
  chips = {chipOfSmallLanes()};
  EXPECT_EQ(check(softmaxText(kManyLongRows, false)), "");
}
