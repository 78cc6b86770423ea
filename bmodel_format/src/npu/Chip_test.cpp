// SPDX-License-Identifier: Apache-2.0
//===- Chip_test.cpp - Chip descriptions: valid, rejected, changed ---------===//
#include "bmodel/npu/chip.h"

#include "bmodel_format/test/TestChip.h"

#include <gtest/gtest.h>

using namespace bmodel::npu;

namespace {

std::string errorOf(const std::string &text) {
  Chip chip;
  std::string error;
  EXPECT_FALSE(parseChip(text, "c.json", chip, error));
  return error;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

} // namespace

TEST(Chip, BuiltInOnesHaveThePublishedShapes) {
  struct {
    const char *name;
    double tops, gbps;
    uint64_t local;
  } wanted[] = {
      {"npu-edge", 0.5, 4, 8 * 65536}, {"npu-base", 7.4, 32, 32 * 131072}, {"npu-pro", 32.8, 64, 64 * 262144}};
  for (const auto &each : wanted) {
    Chip chip;
    std::string error;
    ASSERT_TRUE(parseChip(chipText(each.name), each.name, chip, error)) << error;
    EXPECT_EQ(chip.name, each.name);
    EXPECT_NEAR(2e-3 * chip.lanes * chip.macsPerLane() * chip.clockGhz, each.tops, 0.05);
    EXPECT_EQ(chip.ddrGbps, each.gbps);
    EXPECT_EQ(chip.localBytes(), each.local);
    // Limits that real silicon does not fall below.
    EXPECT_GE(chip.issueCycles, 32u);
    EXPECT_GE(chip.dmaLatency, 200u);
    EXPECT_LE(chip.ddrEfficiency, 0.88);
    EXPECT_EQ(chip.burstBytes, 64u);
    EXPECT_GE(chip.depthwiseDivisor, 8u);
    EXPECT_GE(chip.int16Divisor, 2u);
    EXPECT_TRUE(chip.computes("int8"));
    EXPECT_EQ(chip.sources.size(), chipFields().size());
  }
}

TEST(Chip, DescribesItself) {
  for (const char *name : {"npu-edge", "npu-base", "npu-pro"}) {
    Chip chip, again;
    std::string error;
    ASSERT_TRUE(parseChip(chipText(name), name, chip, error)) << error;
    chip.clockGhz = 0.1 + 0.2; // needs all its digits
    ASSERT_TRUE(parseChip(describe(chip), name, again, error)) << error;
    EXPECT_EQ(describe(again), describe(chip));
    EXPECT_EQ(again.clockGhz, chip.clockGhz);
    EXPECT_EQ(valuesOf(again), valuesOf(chip));
  }
}

TEST(Chip, RejectsWhatIsNotWhole) {
  std::string text = chipText("npu-base");
  EXPECT_EQ(errorOf("[]"), "c.json: is not a JSON object");
  EXPECT_EQ(errorOf("{\n \"a\": 1,\n \"b\": 2,,\n}"), "c.json:3: is not valid JSON: near '2,,'");
  EXPECT_EQ(errorOf("{\n \"a\": 1,\n}").substr(0, 28), "c.json:3: is not valid JSON:");
  EXPECT_EQ(errorOf("{\n \"a\": nul\n}").substr(0, 28), "c.json:2: is not valid JSON:");
  const size_t lines = 1 + std::count(text.begin(), text.begin() + 200, '\n');
  EXPECT_EQ(errorOf(text.substr(0, 200)).rfind("c.json:" + std::to_string(lines) + ": is not valid JSON: ", 0), 0u)
      << errorOf(text.substr(0, 200));
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": 32", "\"lanez\": 32")), "c.json: lanes is missing: expected a number");
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": 32", "\"lanes\": 32, \"color\": 1")),
            "c.json: color is not a field of a chip");
  EXPECT_EQ(errorOf(replaced(text, "\"pixels\": 4", "\"pixels\": 4, \"x\": {}")),
            "c.json: matrix_unit.x is not a field of a chip");
}

TEST(Chip, RejectsValuesByFieldAndRange) {
  std::string text = chipText("npu-base");
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": 32", "\"lanes\": 0")), "c.json: lanes is 0, allowed are 1 to 1024");
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": 32", "\"lanes\": 3.5")),
            "c.json: lanes is 3.5, expected a whole number");
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": 32", "\"lanes\": \"32\"")),
            "c.json: lanes is \"32\", expected a whole number");
  EXPECT_EQ(errorOf(replaced(text, "\"efficiency\": 0.88", "\"efficiency\": 1.2")),
            "c.json: memories.ddr.efficiency is 1.2, allowed are 0.01 to 1");
  EXPECT_EQ(errorOf(replaced(text, "\"int16\"", "\"int4\"")),
            "c.json: types has 'int4'; allowed, each at most once, are int8,int16,bf16,f16,f32");
  EXPECT_EQ(errorOf(replaced(text, "\"requantise\": \"float\"", "\"requantise\": \"fast\"")),
            "c.json: requantise is \"fast\", allowed are float,fixed,tflite");
  EXPECT_EQ(errorOf(replaced(text, "\"banks\": 16", "\"banks\": 24")),
            "c.json: local_memory.bytes_per_lane is 131072, not a multiple of banks * port_bytes = 384");
  EXPECT_EQ(errorOf(replaced(text, "\"lanes\": \"BM1688\"", "\"lines\": \"BM1688\"")),
            "c.json: sources does not say where the value of 'lanes' comes from");
}

TEST(Chip, WhatIfChangesOneField) {
  std::string text = chipText("npu-base"), error;
  ASSERT_TRUE(setField(text, "memories.ddr.gbps=8", error)) << error;
  Chip changed, original;
  ASSERT_TRUE(parseChip(text, "", changed, error)) << error;
  ASSERT_TRUE(parseChip(chipText("npu-base"), "", original, error));
  EXPECT_EQ(changed.ddrGbps, 8);
  EXPECT_EQ(fingerprint(changed), fingerprint(original)); // only a speed differs
  ASSERT_TRUE(setField(text, "lanes=16", error));
  ASSERT_TRUE(parseChip(text, "", changed, error)) << error;
  EXPECT_NE(fingerprint(changed), fingerprint(original));
  ASSERT_TRUE(setField(text, "requantise=fixed", error));
  ASSERT_TRUE(parseChip(text, "", changed, error)) << error;
  EXPECT_EQ(changed.requantise, "fixed");

  EXPECT_FALSE(setField(text, "memories.ddr=8", error));
  EXPECT_FALSE(setField(text, "lanes", error));
  EXPECT_FALSE(setField(text, "ddr.speed=8", error));
  EXPECT_NE(error.find("memories.ddr.gbps"), std::string::npos) << error;
}

TEST(Chip, SchemaStandsBesideTheChips) {
  std::string schema = chipSchema();
  EXPECT_EQ(chipText("chip.schema"), schema) << "npu-describe schema > device_dialect/chips/chip.schema.json";
  for (const FieldInfo &field : chipFields()) {
    std::string last = field.path;
    last = last.substr(last.rfind('.') + 1);
    EXPECT_NE(schema.find("\"" + last + "\""), std::string::npos) << field.path;
    EXPECT_NE(schema.find(std::string("\"") + field.path + "\""), std::string::npos) << "source of " << field.path;
  }
}
