//===- ReferenceOps_test.cpp - Every op against literal expectations ---===//
// SPDX-License-Identifier: Apache-2.0
//
// The cases are in test/*.mlir: functions without arguments that return pairs (actual, expected).
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/Reference/Support.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <set>

using namespace tessera::top;

namespace {

class ReferenceOps : public testing::Test {
protected:
  ReferenceOps() { context.loadDialect<TopDialect, mlir::func::FuncDialect>(); }

  std::vector<std::filesystem::path> caseFiles() {
    std::vector<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(TESSERA_TEST_DIR)) {
      if (entry.path().extension() == ".mlir") {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::filesystem::path &file) {
    return mlir::parseSourceFile<mlir::ModuleOp>(file.string(), &context);
  }

  mlir::MLIRContext context;
};

/// Returns the relative tolerance of a type: one rounding of the result after sufficiently exact arithmetic.
double tolerance(mlir::Type type) {
  return type.isF64() ? 1e-14 : type.isF32() ? 2e-7 : type.isF16() ? 1e-3 : type.isBF16() ? 8e-3 : 0;
}

void expectEqual(const HostTensor &actual, const HostTensor &expected, const std::string &what) {
  ASSERT_EQ(actual.getElementType(), expected.getElementType()) << what;
  ASSERT_EQ(actual.getShape(), expected.getShape()) << what;
  if (!llvm::isa<mlir::FloatType>(actual.getElementType())) {
    EXPECT_EQ(actual.getBytes(), expected.getBytes()) << what;
    return;
  }
  std::vector<double> a = reference::read<double>(actual), e = reference::read<double>(expected);
  double bound = tolerance(actual.getElementType());
  for (size_t i = 0; i < a.size(); ++i) {
    bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])) ||
                std::fabs(a[i] - e[i]) <= bound * std::max(1.0, std::fabs(e[i]));
    EXPECT_TRUE(same) << what << ": element " << i << " is " << a[i] << ", expected " << e[i];
  }
}

TEST_F(ReferenceOps, GiveTheExpectedValues) {
  int functions = 0;
  for (const auto &file : caseFiles()) {
    auto module = parse(file);
    ASSERT_TRUE(module) << file;
    for (auto function : module->getOps<mlir::func::FuncOp>()) {
      SCOPED_TRACE(function.getName().str());
      ++functions;
      auto results = Evaluator().run(function, {});
      ASSERT_TRUE(succeeded(results));
      unsigned count = function.getNumResults();
      ASSERT_TRUE(count > 0 && count % 2 == 0) << "compares nothing";
      for (unsigned i = 0; i < count; i += 2) {
        expectEqual(results->at("result" + std::to_string(i)), results->at("result" + std::to_string(i + 1)),
                    function.getName().str());
      }
    }
  }
  EXPECT_GT(functions, 200);
}

TEST_F(ReferenceOps, EveryOpHasACase) {
  std::set<llvm::StringRef> used;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  for (const auto &file : caseFiles()) {
    modules.push_back(parse(file));
    ASSERT_TRUE(modules.back()) << file;
    modules.back()->walk([&](mlir::Operation *op) { used.insert(op->getName().getStringRef()); });
  }
  for (mlir::RegisteredOperationName name :
       context.getRegisteredOperationsByDialect(TopDialect::getDialectNamespace())) {
    // A custom operator is computed by a library of the user (regression/test/test_custom_ops.py).
    if (name.hasInterface<ReferenceInterface>() && name.getStringRef() != CustomOp::getOperationName()) {
      EXPECT_TRUE(used.contains(name.getStringRef())) << name.getStringRef().str();
    }
  }
}

} // namespace
