//===- BlockEmission_test.cpp - Matmuls of quantised rows on the NPU ------===//
// SPDX-License-Identifier: Apache-2.0
//
// To run more: TESSERA_NPU_BLOCKS=NUMBER npu_emission_test --gtest_filter='*RandomBlocks*'
//===----------------------------------------------------------------------===//
#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"
#include <limits>

using llvm::formatv;

namespace tessera::npu {
namespace {

/// A random block matmul as text: sizes with short last blocks and columns that do not fill the lanes.
struct BlockMatMulText {
  int64_t images, rows, depth, columns, block;
  bool hasMins;
  int epilogue; ///< 0: none; 1: a bias per column; 2: a residual, a bias and a magnitude; 3: a factor per row

  static BlockMatMulText draw() {
    auto pick = [](std::initializer_list<int64_t> of) { return *(of.begin() + between(0, int64_t(of.size()) - 1)); };
    return {.images = pick({1, 1, 2}),
            .rows = pick({1, 1, 1, 2, 3, 4, 7, 8, 17, 33, 64}),
            .depth = pick({1, 5, 16, 32, 33, 64, 96, 100, 172, 256, 301, 512}),
            .columns = pick({1, 3, 8, 31, 32, 33, 64, 70, 96, 130, 200, 257}),
            .block = pick({1, 4, 16, 32, 32, 32, 48, 64, 100, 128, 65536}),
            .hasMins = between(0, 1) == 1,
            .epilogue = int(between(0, 3))};
  }

  std::string text(int64_t lowestWeight, int64_t highestWeight) const {
    const int64_t blocks = (depth + block - 1) / block;
    const std::string x = typeText({images, rows, depth}, "f32"), y = typeText({images, rows, columns}, "f32"),
                      b = typeText({columns}, "f32"), f = typeText({images, rows, 1}, "f32"),
                      w = typeText({depth, columns}, "i8"), s = typeText({blocks, columns}, "f32");
    auto numbers = [](const Dims &dims) {
      return constantText<float>(dims, "f32", [] { return float(between(-9000, 9000)) * 1e-5f; });
    };
    auto weights = [&] { return int8_t(between(lowestWeight, highestWeight)); };
    std::string body = "  %w = " + constantText<int8_t>({depth, columns}, "i8", weights) +
                       "\n  %s = " + numbers({blocks, columns}) + "\n  %b = " + numbers({columns}) + "\n";
    body += hasMins ? "  %m = " + numbers({blocks, columns}) + "\n" : "";
    constexpr const char *kEpilogues[] = {
        "",
        " extras(%b) epilogue {\n  ^bb0(%v: f32, %c: f32):\n    %t = arith.addf %v, %c : f32\n    device.yield %t : "
        "f32\n  }",
        " extras(%b, %r) epilogue {\n  ^bb0(%v: f32, %c: f32, %d: f32):\n    %t = arith.addf %v, %c : f32\n    %u = "
        "arith.addf %d, %t : f32\n    %n = math.absf %u : f32\n    device.yield %n : f32\n  }",
        " extras(%f) epilogue {\n  ^bb0(%v: f32, %c: f32):\n    %t = arith.mulf %v, %c : f32\n    device.yield %t : "
        "f32\n  }"};
    const std::string types[] = {"", ", " + b, ", " + b + ", " + y, ", " + f};
    return formatv(
        "func.func @main(%x: {0} {{top.name = \"x\"}, %r: {1} {{top.name = \"r\"}, %f: {2} {{top.name = "
        "\"f\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} {{\n{3}  %y = device.block_matmul "
        "%x, %w scales %s{4}{5} {{block = {6} : i64} : ({0}, {7}, {8}{9}{10}) -> {1}\n  return %y : {1}\n}\n",
        x, y, f, body, hasMins ? " mins %m" : "", kEpilogues[epilogue], block, w, s, hasMins ? ", " + s : "",
        types[epilogue]);
  }
};

/// The built-in chips, and chips with so little local memory that rows and columns are cut.
std::vector<bmodel::npu::Chip> chipsOfBlocks() {
  std::vector<bmodel::npu::Chip> chips;
  for (const char *name : {"npu-edge", "npu-base", "npu-pro"}) {
    for (uint64_t bytes : {0, 8192, 16384}) {
      bmodel::npu::Chip &chip = chips.emplace_back(bmodel::npu::chipNamed(name));
      chip.laneBytes = bytes ? bytes : chip.laneBytes;
    }
  }
  return chips;
}

TEST_F(Emission, RandomBlocks) {
  const char *wanted = std::getenv("TESSERA_NPU_BLOCKS");
  const int rounds = wanted ? std::atoi(wanted) : 12;
  const std::vector<bmodel::npu::Chip> all = chipsOfBlocks();
  size_t large = 0;
  generator.seed(wanted ? unsigned(rounds) : 5);
  for (int round = 0; round < rounds; ++round) {
    chips = {all[size_t(round) % all.size()]};
    rareNumbers = round % 3 == 0;
    const bool areNibbles = round % 2;
    const std::string fault = check(BlockMatMulText::draw().text(areNibbles ? -8 : -128, areNibbles ? 7 : 127));
    const bool isTooLarge = fault.find("bytes of a lane for") != std::string::npos;
    large += isTooLarge;
    ASSERT_TRUE(fault.empty() || isTooLarge) << "round " << round << " " << fault;
  }
  EXPECT_LT(10 * large, size_t(rounds));
}

} // namespace
} // namespace tessera::npu
