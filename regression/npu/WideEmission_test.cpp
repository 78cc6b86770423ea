//===- WideEmission_test.cpp - Integers of 64 bits on the NPU -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera::npu;
using llvm::formatv;

namespace {

/// Returns y = body(x, z); the operands may have any dims that broadcast.
std::string mapText(const Dims &x, const std::string &a, const Dims &z, const std::string &b, const Dims &y,
                    const std::string &result, const std::string &body) {
  return formatv("func.func @main(%x: {0} {{top.name = \"x\"}, %z: {1} {{top.name = \"z\"}) -> ({2} {{top.name = "
                 "\"y\"}) attributes {{device.exact} {{\n  %y = device.map(%x, %z) {{\n  ^bb0(%a: {3}, %b: {4}):\n{5}"
                 "    device.yield %r : {6}\n  } : ({0}, {1}) -> {2}\n  return %y : {2}\n}\n",
                 typeText(x, a), typeText(z, b), typeText(y, result), a, b, body, result);
}

constexpr const char *kIsPad = "    %c = arith.constant 1 : i64\n    %t = arith.cmpi eq, %a, %c : i64\n"
                               "    %o = arith.constant -3.4e38 : f32\n    %r = arith.select %t, %o, %b : f32\n";
constexpr const char *kLessThanLength = "    %c = arith.extsi %b : i8 to i64\n    %r = arith.cmpi slt, %a, %c : i64\n";
constexpr const char *kAsFloat = "    %c = arith.sitofp %a : i64 to f32\n    %r = arith.subf %b, %c : f32\n";
constexpr const char *kMasked = "    %c = arith.constant 0 : i64\n    %t = arith.cmpi ne, %a, %c : i64\n"
                                "    %r = arith.andi %t, %b : i1\n";
constexpr const char *kPosition = "    %t = arith.extui %b : i1 to i64\n    %z0 = arith.constant 0 : i64\n"
                                  "    %n = arith.cmpi slt, %a, %z0 : i64\n    %m = arith.constant -70000 : i64\n"
                                  "    %s = arith.select %n, %m, %t : i64\n    %c = arith.constant 7 : i64\n"
                                  "    %r = arith.muli %s, %c : i64\n";

} // namespace

/// Tensors of all ranks, rows that broadcast, and single elements.
TEST_F(Emission, MapsReadWideIntegers) {
  const std::pair<Dims, Dims> kShapes[] = {
      {{1, 1, 1, 16}, {1, 4, 16, 16}},   {{1, 300}, {1, 300}}, {{2, 1, 9, 1}, {2, 5, 9, 33}},
      {{1, 7, 1}, {1, 7, 40}},           {{1}, {40}},          {{3, 40, 70}, {3, 40, 70}},
      {{2, 3, 1, 4, 1}, {2, 3, 5, 4, 6}}};
  for (const auto &[x, y] : kShapes) {
    EXPECT_EQ(check(mapText(x, "i64", y, "f32", y, "f32", kIsPad)), "");
    EXPECT_EQ(check(mapText(x, "i64", y, "i8", y, "i1", kLessThanLength)), "");
    EXPECT_EQ(check(mapText(x, "i64", y, "f32", y, "f32", kAsFloat)), "");
    EXPECT_EQ(check(mapText(x, "i64", y, "i1", y, "i1", kMasked)), "");
    EXPECT_EQ(check(mapText(y, "i64", x, "i1", y, "i1", kMasked)), "");
  }
}

TEST_F(Emission, MapsMakeWideIntegers) {
  for (const Dims &y : {Dims{1, 300}, {40, 70}, {1, 3, 9, 33}, {5}, {2, 3, 5, 4, 6}}) {
    EXPECT_EQ(check(mapText(y, "i64", y, "i1", y, "i64", kPosition)), "");
  }
}

/// Uses integers of every size that f32 represents, the midpoints between two of them, and the neighbours of both.
TEST_F(Emission, WideIntegersAreRoundedOnce) {
  std::vector<int64_t> numbers = {0, 1, -1, INT64_MIN, INT64_MAX, INT64_MIN + 1};
  for (int bits = 15; bits < 63; ++bits) {
    for (int64_t step : {bits - 24, bits - 23, bits - 22}) {
      for (int64_t few : {-1, 0, 1}) {
        int64_t unit = step < 0 ? 1 : int64_t(1) << step;
        for (int64_t times : {0, 1, 2, 3, 5}) {
          numbers.push_back((int64_t(1) << bits) + times * unit + few);
          numbers.push_back(-numbers.back());
        }
      }
    }
  }
  for (int i = 0; i < 4000; ++i) {
    numbers.push_back(int64_t(generator()) << 32 >> between(0, 40) | int64_t(generator() & between(0, 0xffffffff)));
  }
  size_t next = 0;
  Dims dims{int64_t(numbers.size())};
  std::string constant = constantText<int64_t>(dims, "i64", [&] { return numbers[next++]; });
  EXPECT_EQ(check(formatv("func.func @main(%z: {0} {{top.name = \"z\"}) -> ({0} {{top.name = \"y\"}) attributes "
                          "{{device.exact} {{\n  %x = {1}\n  %y = device.map(%x, %z) {{\n  ^bb0(%a: i64, %b: f32):\n"
                          "    %c = arith.sitofp %a : i64 to f32\n    %d = arith.constant 0.0 : f32\n    %e = "
                          "arith.mulf %b, %d : f32\n    %r = arith.addf %c, %e : f32\n    device.yield %r : f32\n  } : "
                          "({2}, {0}) -> {0}\n  return %y : {0}\n}\n",
                          typeText(dims, "f32"), constant, typeText(dims, "i64"))),
            "");
}

/// Computations on numbers that may exceed a register are rejected.
TEST_F(Emission, WideIntegersThatMayBeLargeAreRejected) {
  const Dims dims{4, 40};
  const std::pair<const char *, const char *> kRejected[] = {
      {"    %r = arith.addi %a, %b : i64\n", "of whole numbers beyond 2^24"},
      {"    %r = arith.maxsi %a, %b : i64\n", "of whole numbers beyond 2^24"},
      {"    %c = arith.constant 0 : i64\n    %t = arith.cmpi slt, %a, %c : i64\n    %r = arith.select %t, %a, %b : "
       "i64\n",
       "of numbers that may not fit its type"}};
  for (const auto &[body, why] : kRejected) {
    std::string message = check(mapText(dims, "i64", dims, "i64", dims, "i64", body));
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
  std::string message = check(mapText(dims, "i64", dims, "i64", dims, "i1", "    %r = arith.cmpi slt, %a, %b : i64\n"));
  EXPECT_NE(message.find("compares whole numbers beyond 2^24"), std::string::npos) << message;
  message = check(mapText(dims, "i32", dims, "i1", dims, "i32", "    %r = arith.select %b, %a, %a : i32\n"));
  EXPECT_NE(message.find("of numbers that may not fit its type"), std::string::npos) << message;
}

/// Along every axis, from either end, inclusive and exclusive; floats are added in the order of the axis.
TEST_F(Emission, RunningSums) {
  auto text = [](const Dims &x, int64_t axis, const char *element, const char *more) {
    return formatv(
               "func.func @main(%x: {0} {{top.name = \"x\"}) -> ({0} {{top.name = \"y\"}) attributes "
               "{{device.exact} {{\n  %y = \"device.cumsum\"(%x) {{axis = {1} : i64{2}} : ({0}) -> {0}\n  return %y "
               ": {0}\n}\n",
               typeText(x, element), axis, more)
        .str();
  };
  for (const char *more : {"", ", exclusive = true", ", reverse = true", ", exclusive = true, reverse = true"}) {
    for (int64_t axis = 0; axis < 4; ++axis) {
      EXPECT_EQ(check(text({2, 37, 9, 14}, axis, "f32", more)), "");
    }
    EXPECT_EQ(check(text({300}, 0, "f32", more)), "");
    EXPECT_EQ(check(text({1, 20, 640}, 1, "f32", more)), "");
  }
  EXPECT_EQ(check(text({1, 40, 4096}, 1, "f32", "")), ""); // in tiles
  signedZeros = true;
  EXPECT_EQ(check(text({3, 5, 7}, 1, "f32", "")), "");
  signedZeros = false;
  for (const char *element : {"i32", "i64"}) {
    std::string message = check(text({4, 8}, 1, element, ""));
    EXPECT_NE(message.find("computes running sums that may exceed 2^24"), std::string::npos) << message;
  }
  std::string message = check(text({2, 1025}, 1, "f32", ""));
  EXPECT_NE(message.find("elements; the maximum is 1024"), std::string::npos) << message;
}

/// Counts the positions that are not padding, as RoBERTa does.
TEST_F(Emission, RunningSumsOfMasks) {
  for (const Dims &dims : {Dims{1, 40}, {3, 128}, {2, 9, 5}}) {
    for (const char *element : {"i32", "i64"}) {
      std::string ids = typeText(dims, "i64"), sums = typeText(dims, element);
      EXPECT_EQ(check(formatv("func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes "
                              "{{device.exact} {{\n  %m = device.map(%x) {{\n  ^bb0(%a: i64):\n    %c = "
                              "arith.constant 1 : i64\n    %t = arith.cmpi ne, %a, %c : i64\n    %r = arith.extui %t : "
                              "i1 to {2}\n    device.yield %r : {2}\n  } : ({0}) -> {1}\n  %s = \"device.cumsum\"(%m) "
                              "{{axis = 1 : i64} : ({1}) -> {1}\n  %y = device.map(%s, %m) {{\n  ^bb0(%a: {2}, %b: "
                              "{2}):\n    %p = arith.muli %a, %b : {2}\n    %c = arith.constant 1 : {2}\n    %r = "
                              "arith.addi %p, %c : {2}\n    device.yield %r : {2}\n  } : ({1}, {1}) -> {1}\n  return "
                              "%y : {1}\n}\n",
                              ids, sums, element)),
                "");
    }
  }
}

/// Writes a row of a cache, or an element of each row, at an arbitrary index.
TEST_F(Emission, ScattersOfOneSlice) {
  auto text = [](const Dims &x, const Dims &i, const Dims &u, const std::string &attributes, const char *element,
                 const char *index) {
    std::string operands = formatv("{0}, {1}, {2}", typeText(x, element), typeText(i, index), typeText(u, element));
    return formatv(
               "func.func @main(%x: {0} {{top.name = \"x\"}, %i: {1} {{top.name = \"i\"}, %u: {2} {{top.name = "
               "\"u\"}) -> ({0} {{top.name = \"y\"}) attributes {{device.exact} {{\n  %y = \"device.scatter\"(%x, %i, "
               "%u) {{{3}} : ({4}) -> {0}\n  return %y : {0}\n}\n",
               typeText(x, element), typeText(i, index), typeText(u, element), attributes, operands)
        .str();
  };
  for (const char *index : {"i64", "i32"}) {
    for (const char *element : {"f32", "i8"}) {
      for (int seed = 0; seed < 8; ++seed) {
        EXPECT_EQ(check(text({1, 40, 24}, {1, 1, 2}, {1, 1, 24}, "nd = true", element, index)), "");
        EXPECT_EQ(check(text({40, 24}, {1, 1}, {1, 24}, "nd = true", element, index)), "");
      }
      EXPECT_EQ(check(text({1, 4, 40, 8}, {1, 4, 1, 8}, {1, 4, 1, 8}, "axis = 2 : i64", element, index)), "");
      EXPECT_EQ(check(text({30, 9}, {30, 1}, {30, 1}, "axis = 1 : i64", element, index)), "");
    }
  }
  std::string message = check(text({4, 40, 24}, {2, 2}, {2, 24}, "nd = true", "f32", "i64"));
  EXPECT_NE(message.find("is not supported on the NPU yet"), std::string::npos) << message;
}
