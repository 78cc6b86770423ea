//===- Handlers_test.cpp - Tests of the handler table: one handler per operator and opset --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include <gtest/gtest.h>

using namespace tessera::top::onnx_import;

namespace {

void first(NodeImporter &) {}
void second(NodeImporter &) {}

TEST(Handlers, VersionsOfAnOperatorLieSideBySide) {
  const HandlerEntry one[] = {{"", "Twist", first}, {"com.example", "Twist", first}};
  const HandlerEntry other[] = {{"", "Twist", second, 13}};
  llvm::Expected<HandlerTable> table = makeHandlerTable({one, other});
  ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
  EXPECT_EQ((*table)[std::make_pair(llvm::StringRef(""), llvm::StringRef("Twist"))].size(), 2u);
}

TEST(Handlers, TwoForTheSameOperatorAreAnError) {
  const HandlerEntry one[] = {{"", "Twist", first, 7}};
  const HandlerEntry other[] = {{"", "Turn", first}, {"", "Twist", second, 7}};
  llvm::Expected<HandlerTable> table = makeHandlerTable({one, other});
  ASSERT_FALSE(bool(table));
  EXPECT_EQ(llvm::toString(table.takeError()),
            "the importer's tables name two handlers for ai.onnx.Twist from opset 7 on: only one of them can be right");
}

TEST(Handlers, TheImportersOwnTablesAreFreeOfThat) { EXPECT_NE(findHandler("", "Softsign", 13), nullptr); }

} // namespace
