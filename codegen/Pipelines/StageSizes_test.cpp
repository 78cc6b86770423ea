//===- StageSizes_test.cpp - Slots of symbolic sizes ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StageSizes.h"

#include "bmodel/dim_terms.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "top_dialect/IR/TopDialect.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace tessera::codegen {
namespace {

struct StageSizesTest : testing::Test {
  StageSizesTest() { context.loadDialect<func::FuncDialect, top::TopDialect>(); }

  /// Returns the only function of a module with these arguments.
  func::FuncOp parse(const std::string &arguments) {
    module = parseSourceString<ModuleOp>("func.func @main(" + arguments + ") { return }", &context);
    return *module->getOps<func::FuncOp>().begin();
  }

  /// Returns the value of every slot for |bound|, the values of the slots without terms in their order.
  std::vector<int64_t> evaluate(std::vector<int64_t> bound) const {
    std::vector<int64_t> values;
    for (const auto &dim : stage.dims) {
      int64_t value = 0;
      if (dim->terms.empty()) {
        value = bound.front(), bound.erase(bound.begin());
      } else {
        bmodel::DimExpression terms(dim->terms.data(), uint32_t(dim->terms.size()));
        EXPECT_TRUE(bmodel::evaluate(terms, values.data(), value));
      }
      values.push_back(value);
    }
    return values;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  bmodel::StageDefT stage;
  StageSizes sizes{stage};
};

TEST_F(StageSizesTest, AFactorIsTheDivisorOfTheSlotThatAnInputBinds) {
  func::FuncOp function = parse("%x: tensor<?x?xf32, #top.dims<[batch[1:8:2], 32*\"h/32\"[1:40]]>>");
  EXPECT_FALSE(llvm::errorToBool(sizes.bindInputs(function)));
  ASSERT_EQ(stage.dims.size(), 3u);
  EXPECT_EQ(stage.dims[0]->name, "batch");
  EXPECT_EQ(stage.dims[0]->likely, 2);
  EXPECT_EQ(stage.dims[1]->name, "h");
  EXPECT_EQ(stage.dims[1]->divisor, 32);
  EXPECT_EQ(stage.dims[1]->max, 1280);
  Shape x = function.getArgument(0);
  EXPECT_EQ(sizes.slotOf(x[0]), 0u);
  EXPECT_EQ(sizes.dimOf(x[1]).slot(), 1);
  EXPECT_EQ(sizes.dimOf(x[1]).value(), 1280);
  EXPECT_EQ(sizes.dimOf(7).slot(), -1);

  uint32_t slot = sizes.slotOf(x[0] * x[1] + floorDiv(x[1] - 1, 64));
  EXPECT_EQ(sizes.slotOf(x[0] * x[1] + floorDiv(x[1] - 1, 64)), slot);
  EXPECT_EQ(stage.dims.size(), size_t(slot) + 1);
  std::vector<int64_t> values = evaluate({3, 96});
  EXPECT_EQ(values[2], 3);
  EXPECT_EQ(values[slot], 3 * 96 + 95 / 64);
}

TEST_F(StageSizesTest, NoSlotHasANegativeMinimum) {
  func::FuncOp function = parse("%x: tensor<?xf32, #top.dims<[n[1:13]]>>");
  EXPECT_FALSE(llvm::errorToBool(sizes.bindInputs(function)));
  Dim n = Shape(function.getArgument(0))[0], size = floorDiv(n * 7, 8) - floorDiv(n, 2);
  EXPECT_LT(minOf(size), 0);
  EXPECT_EQ(stage.dims[sizes.slotOf(size)]->min, 0);
}

TEST_F(StageSizesTest, ASumIsDerivedFromInputsThatBindItsSymbols) {
  func::FuncOp function = parse("%total: tensor<?xf32, #top.dims<[past[0:9] + seq[1:4]]>>, "
                                "%x: tensor<?xf32, #top.dims<[seq[1:4]]>>, %y: tensor<?xf32, #top.dims<[past[0:9]]>>");
  EXPECT_FALSE(llvm::errorToBool(sizes.bindInputs(function)));
  EXPECT_EQ(stage.dims.size(), 2u);
  uint32_t total = sizes.slotOf(Shape(function.getArgument(0))[0]);
  EXPECT_EQ(evaluate({2, 5})[total], 7);
}

TEST_F(StageSizesTest, SymbolsThatInputsDoNotDetermineAreRejected) {
  func::FuncOp function = parse("%x: tensor<?xf32, #top.dims<[past[0:9] + seq[1:4]]>> {top.name = \"x\"}");
  EXPECT_EQ(llvm::toString(sizes.bindInputs(function)).substr(0, 33), "dim 0 of input 'x' is past + seq,");
}

} // namespace
} // namespace tessera::codegen
