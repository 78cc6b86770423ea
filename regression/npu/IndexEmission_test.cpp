//===- IndexEmission_test.cpp - Gathers and interpolation on the NPU ------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera::npu;
using llvm::formatv;

namespace {

/// The resizing of one dim: |taps| neighbours per position, at regular or random positions.
struct Resized {
  size_t axis;
  int64_t to, taps;
  bool byChance = false;
};

std::string resizeText(const Dims &x, const std::vector<Resized> &axes, const std::string &element = "f32") {
  Dims y = x;
  std::string constants, names, types, list;
  for (const Resized &each : axes) {
    int64_t from = x[each.axis], next = 0;
    y[each.axis] = each.to;
    std::string indices = constantText<int32_t>({each.to, each.taps}, "i32", [&] {
      int64_t place = next / each.taps * from / each.to, tap = next++ % each.taps;
      return int32_t(each.byChance ? between(0, from - 1) : std::min(place + tap, from - 1));
    });
    std::string weights =
        constantText<float>({each.to, each.taps}, "f32", [] { return float(between(-100, 1000)) * 1e-3f; });
    constants += formatv("  %i{0} = {1}\n  %w{0} = {2}\n", each.axis, indices, weights);
    names += formatv(", %i{0}, %w{0}", each.axis);
    types += ", " + typeText({each.to, each.taps}, "i32") + ", " + typeText({each.to, each.taps}, "f32");
    list += (list.empty() ? "" : ", ") + std::to_string(each.axis);
  }
  return formatv(
      "func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
      "{{device.exact} {{\n{2}  %y = \"device.resize\"(%x{3}) {{axes = array<i64: {4}>} : ({0}{5}) -> {1}\n  "
      "return %y : {1}\n}\n",
      typeText(x, element), typeText(y, element), constants, names, list, types);
}

/// Returns a gather with indices of |element|, constant or as an argument.
std::string gatherText(const Dims &x, int64_t axis, const Dims &indices, const std::string &element, bool known,
                       const std::string &data = "f32") {
  Dims y(x.begin(), x.begin() + axis);
  y.insert(y.end(), indices.begin(), indices.end()), y.insert(y.end(), x.begin() + axis + 1, x.end());
  std::string constant =
      known ? "  %i = " + constantText<int32_t>(indices, "i32", [] { return int32_t(between(-20, 20)); }) + "\n" : "";
  std::string given = known ? "" : formatv(", %i: {0} {{top.name = \"i\"}", typeText(indices, element)).str();
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}{1}) -> ({2} {{top.name = \"y\"}) attributes "
                 "{{device.exact} {{\n{3}  %y = \"device.gather\"(%x, %i) {{axis = {4} : i64} : ({0}, {5}) -> {2}\n  "
                 "return %y : {2}\n}\n",
                 typeText(x, data), given, typeText(y, data), constant, axis, typeText(indices, element));
}

} // namespace

TEST_F(Emission, SlicesByIndex) {
  for (const char *element : {"i32", "i64"}) {
    EXPECT_EQ(check(gatherText({50, 64}, 0, {3, 7}, element, false)), "");
    EXPECT_EQ(check(gatherText({2, 3, 9, 5}, 2, {100}, element, false, "i8")), "");
    EXPECT_EQ(check(gatherText({40, 9}, 1, {1}, element, false)), "");
  }
  EXPECT_EQ(check(gatherText({11, 6}, 0, {300}, "i32", true)), "");
  EXPECT_EQ(check(gatherText({2, 13}, 1, {4, 2}, "i32", true, "i8")), "");
  std::string message = check(gatherText({16777217}, 0, {1}, "i32", false, "i8"));
  EXPECT_NE(message.find("gathers from more rows than"), std::string::npos) << message;
}

TEST_F(Emission, Interpolation) {
  EXPECT_EQ(check(resizeText({1, 37, 9, 7}, {{2, 18, 2}, {3, 14, 2}})), "");
  EXPECT_EQ(check(resizeText({2, 5, 9, 7}, {{2, 31, 3}, {3, 11, 3}})), "");
  EXPECT_EQ(check(resizeText({1, 70, 1, 1}, {{2, 33, 3}, {3, 33, 3}})), "");
  EXPECT_EQ(check(resizeText({1, 40, 17, 12}, {{2, 5, 4}, {3, 40, 1}})), ""); // smaller, and shifted with a weight
  EXPECT_EQ(check(resizeText({3, 19, 8}, {{2, 13, 2}})), "");
  EXPECT_EQ(check(resizeText({3, 19, 8}, {{1, 38, 2}})), "");
  EXPECT_EQ(check(resizeText({11}, {{0, 29, 2}})), "");
  EXPECT_EQ(check(resizeText({2, 3, 2, 6, 5}, {{3, 12, 2}, {4, 9, 2}})), "");
  EXPECT_EQ(check(resizeText({1, 33, 20, 15}, {{2, 25, 2, true}, {3, 31, 2, true}})), "");
}

TEST_F(Emission, InterpolationOfNarrowFloats) {
  chips = {bmodel::npu::chipNamed("npu-base"), bmodel::npu::chipNamed("npu-pro")};
  wholeNumbers = true;
  for (const char *element : {"bf16", "f16"}) {
    EXPECT_EQ(check(resizeText({1, 37, 9, 7}, {{2, 18, 2}, {3, 14, 2}}, element)), "");
    EXPECT_EQ(check(resizeText({2, 5, 9, 7}, {{2, 31, 3}, {3, 11, 1}}, element)), "");
    EXPECT_EQ(check(resizeText({2, 5, 9, 7}, {{2, 4, 1, true}}, element)), "");
  }
}

TEST_F(Emission, InterpolationThatDoesNotFitIsCut) {
  EXPECT_EQ(check(resizeText({1, 33, 33, 25}, {{2, 257, 2}, {3, 193, 2}})), "");
}

TEST_F(Emission, NearestByAnyFactor) {
  for (const char *element : {"i8", "f32"}) {
    EXPECT_EQ(check(resizeText({1, 37, 9, 7}, {{2, 13, 1}, {3, 17, 1}}, element)), "");
    EXPECT_EQ(check(resizeText({2, 5, 9, 7}, {{2, 4, 1, true}}, element)), "");
    EXPECT_EQ(check(resizeText({4, 9, 30}, {{1, 18, 1}, {2, 10, 1, true}}, element)), "");
  }
}

TEST_F(Emission, ResizesThatAreNotEmittedAreNamed) {
  std::string message = check(resizeText({1, 3, 4, 5}, {{1, 6, 2}, {3, 10, 2}}));
  EXPECT_NE(message.find("resizes other than the last two dims"), std::string::npos) << message;
  message = check(resizeText({1, 3, 4, 5}, {{3, 9, 1}}, "i32"));
  EXPECT_NE(message.find("interpolates integers, or resizes 32-bit integers"), std::string::npos) << message;
}
