// SPDX-License-Identifier: Apache-2.0
//===- DimTerms_test.cpp - Tests of expressions over dims -----------------===//
#include "bmodel/contract_writer.h"
#include "bmodel/dim_terms.h"
#include "bmodel/writer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <random>

using namespace bmodel;

namespace {

using Terms = std::vector<DimTerm>;

DimExpression over(const Terms &terms) { return DimExpression(terms.data(), uint32_t(terms.size())); }

std::optional<int64_t> valueOf(const Terms &terms, std::vector<int64_t> values = {}) {
  int64_t result = 0;
  return evaluate(over(terms), values.data(), result) ? std::optional(result) : std::nullopt;
}

Terms binary(int64_t a, DimOp op, int64_t b) { return {constantTerm(a), constantTerm(b), opTerm(op)}; }

TEST(DimTerms, Operations) {
  EXPECT_EQ(valueOf({slotTerm(1), constantTerm(3), opTerm(DimOp::Sub)}, {7, 40}), 37);
  EXPECT_EQ(valueOf(binary(-7, DimOp::FloorDiv, 2)), -4);
  EXPECT_EQ(valueOf(binary(-7, DimOp::CeilDiv, 2)), -3);
  EXPECT_EQ(valueOf(binary(7, DimOp::CeilDiv, 2)), 4);
  EXPECT_EQ(valueOf(binary(-7, DimOp::Mod, 2)), 1);
  EXPECT_EQ(valueOf(binary(-7, DimOp::Mod, -2)), -1);
  EXPECT_EQ(valueOf(binary(7, DimOp::CeilDiv, -2)), -3);
  EXPECT_EQ(valueOf(binary(INT64_MIN, DimOp::Mod, -1)), 0);
  EXPECT_EQ(valueOf(binary(7, DimOp::CeilDiv, -1)), -7);
  // The quotient times the divisor would overflow.
  EXPECT_EQ(valueOf(binary(INT64_MIN + 1, DimOp::CeilDiv, INT64_MAX - 1)), -1);
  EXPECT_EQ(valueOf(binary(INT64_MIN + 1, DimOp::FloorDiv, INT64_MAX - 1)), -2);
  EXPECT_EQ(valueOf(binary(INT64_MIN + 1, DimOp::Mod, INT64_MAX - 1)), INT64_MAX - 2);
  EXPECT_EQ(valueOf(binary(5, DimOp::Min, 3)), 3);
  EXPECT_EQ(valueOf(binary(5, DimOp::Max, 3)), 5);
  EXPECT_EQ(valueOf(binary(5, DimOp::Mod, 0)), std::nullopt);
  EXPECT_EQ(valueOf(binary(INT64_MIN, DimOp::FloorDiv, -1)), std::nullopt);
  EXPECT_EQ(valueOf(binary(INT64_MAX, DimOp::Add, 1)), std::nullopt);
  EXPECT_EQ(valueOf(binary(INT64_MIN, DimOp::Sub, 1)), std::nullopt);
  EXPECT_EQ(valueOf(binary(INT64_MAX, DimOp::Mul, 2)), std::nullopt);
}

TEST(DimTerms, Structure) {
  EXPECT_EQ(findFault(over({slotTerm(2)}), 3), nullptr);
  EXPECT_STREQ(findFault(over({slotTerm(2)}), 2), "refers to a dim that does not exist or does not precede it");
  EXPECT_NE(findFault(over({DimTerm(-1, DimOp::Slot)}), 2), nullptr);
  EXPECT_NE(findFault(over({DimTerm(1, DimOp(10))}), 2), nullptr);
  EXPECT_NE(findFault(over({}), 2), nullptr);
  EXPECT_NE(findFault(over({constantTerm(1), constantTerm(1)}), 2), nullptr);
  EXPECT_NE(findFault(over({constantTerm(1), opTerm(DimOp::Add)}), 2), nullptr);
  Terms deep(32, constantTerm(1));
  deep.resize(63, opTerm(DimOp::Add));
  EXPECT_EQ(findFault(over(deep), 0), nullptr);
  EXPECT_EQ(valueOf(deep), 32);
  deep.insert(deep.begin(), constantTerm(1));
  deep.push_back(opTerm(DimOp::Add));
  EXPECT_STREQ(findFault(over(deep), 0), "needs a stack of more than 32 values");
}

TEST(DimTerms, UnknownSlots) {
  const Terms terms = {slotTerm(0), slotTerm(2), opTerm(DimOp::Add)};
  EXPECT_EQ(findUnknownSlot(over(terms), std::vector<int64_t>{0, -1, 5}.data()), -1);
  EXPECT_EQ(findUnknownSlot(over(terms), std::vector<int64_t>{0, 1, -1}.data()), 2);
}

/// Every value of a random expression is in the range that findRange computes, and no value is undefined.
TEST(DimTerms, RangesContainAllValues) {
  std::mt19937 random(7);
  auto below = [&](uint32_t limit) { return int64_t(random() % limit); };
  const DimRange ranges[] = {{0, 3}, {1, 5}, {2, 2}, {7, 9}};
  auto rangeOf = [](const void *all, uint32_t slot) { return static_cast<const DimRange *>(all)[slot]; };
  int bounded = 0;
  for (int round = 0; round < 2000; ++round) {
    Terms terms = {slotTerm(uint32_t(below(4)))};
    for (int i = 0; i < 4; ++i) {
      terms.push_back(below(2) ? slotTerm(uint32_t(below(4))) : constantTerm(below(9) - 4));
      terms.push_back(opTerm(DimOp(2 + below(8))));
    }
    ASSERT_EQ(findFault(over(terms), 4), nullptr);
    DimRange range;
    if (!findRange(over(terms), rangeOf, ranges, range)) {
      continue; // a divisor may be 0
    }
    ++bounded;
    for (int sample = 0; sample < 30; ++sample) {
      std::vector<int64_t> values;
      for (const DimRange &each : ranges) {
        values.push_back(each.min + below(uint32_t(each.max - each.min + 1)));
      }
      const std::optional<int64_t> value = valueOf(terms, values);
      ASSERT_TRUE(value && *value >= range.min && *value <= range.max) << "round " << round;
    }
  }
  EXPECT_GT(bounded, 1000);
}

TEST(DimTerms, RangesThatOverflowAreRejected) {
  const DimRange ranges[] = {{0, int64_t(1) << 40}};
  auto rangeOf = [](const void *all, uint32_t slot) { return static_cast<const DimRange *>(all)[slot]; };
  DimRange range;
  EXPECT_FALSE(findRange(over({slotTerm(0), slotTerm(0), opTerm(DimOp::Mul)}), rangeOf, ranges, range));
  EXPECT_FALSE(findRange(over({constantTerm(8), slotTerm(0), opTerm(DimOp::FloorDiv)}), rangeOf, ranges, range));
  EXPECT_TRUE(findRange(over({slotTerm(0), constantTerm(4), opTerm(DimOp::Mul)}), rangeOf, ranges, range));
  EXPECT_EQ(range.max, int64_t(1) << 42);
}

TEST(ContractWriter, KernelsWithoutDimsHaveVersion1) {
  ContractWriter writer;
  writer.symbol = "k", writer.tiles.value = 7, writer.alignment = 64;
  writer.arguments = {{{4096, {}}, BM_ARG_WRITE, 4}};
  const std::string bytes = writer.bytes();
  ASSERT_EQ(bytes.size(), sizeof(bm_kernel_contract) + sizeof(bm_kernel_arg) + 2);
  bm_kernel_contract head;
  memcpy(&head, bytes.data(), sizeof(head));
  EXPECT_EQ(head.version, 1u);
  EXPECT_EQ(head.tiles, 7u);
  EXPECT_EQ(bytes.substr(bytes.size() - 2), std::string("k\0", 2));
}

TEST(Writer, DerivedDimsWithTheSameTermsAreOneSlot) {
  StageDefT stage;
  const uint32_t h = addDim(stage, "h", {32, 1280}, 32, 320);
  const Terms half = {slotTerm(h), constantTerm(2), opTerm(DimOp::FloorDiv)};
  const uint32_t first = addDerivedDim(stage, "h/2", half, {16, 640});
  EXPECT_EQ(addDerivedDim(stage, "h/2", half, {16, 640}), first);
  EXPECT_NE(addDerivedDim(stage, "h/4", {slotTerm(h), constantTerm(4), opTerm(DimOp::FloorDiv)}, {8, 320}), first);
  const uint32_t x = addTensor(stage, "x", DType::F32, std::vector<Dim>{constantDim(3), slotDim(stage, first)});
  EXPECT_EQ(stage.tensors[x]->bytes, 4u * 3 * 640);
  EXPECT_EQ(stage.tensors[x]->shape[1].slot(), int32_t(first));
}

} // namespace
