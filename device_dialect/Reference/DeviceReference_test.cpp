//===- DeviceReference_test.cpp - Lowered ops against literal expectations ===//
// SPDX-License-Identifier: Apache-2.0
//
// The cases of the Top reference (functions that return pairs of actual and expected tensors) are lowered
// to the device dialect and evaluated again, as they are and after every pass that keeps the logical
// values: once with their constants, once with the constants turned into arguments, so that nothing folds.
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/Reference/Support.h"
#include "gtest/gtest.h"
#include <filesystem>

using namespace mlir;
using namespace tessera;
using top::HostTensor;

namespace {

bool isStatic(Type type) { return cast<RankedTensorType>(type).hasStaticShape(); }

/// What the lowering refuses by design: run-time dims, regions.
bool isRefused(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    bool dynamic = !llvm::all_of(op->getOperandTypes(), isStatic) || !llvm::all_of(op->getResultTypes(), isStatic);
    bool refused = isa<top::IfOp, top::LoopOp, top::NonZeroOp, top::RangeOp, top::ConstantOfShapeOp>(op);
    return !isa<func::FuncOp>(op) && (dynamic || refused) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Turns the constants that ops read into arguments; returns their values.
top::TensorMap freeConstants(func::FuncOp function) {
  top::TensorMap inputs;
  SmallVector<top::ConstantOp> constants;
  function.walk([&](top::ConstantOp constant) { constants.push_back(constant); });
  for (top::ConstantOp constant : constants) {
    auto isReturn = [](OpOperand &use) { return isa<func::ReturnOp>(use.getOwner()); };
    if (llvm::all_of(constant->getUses(), isReturn)) {
      continue;
    }
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, constant.getType(), {}, constant.getLoc());
    constant.getResult().replaceUsesWithIf(function.getArgument(index), [&](OpOperand &use) { return !isReturn(use); });
    std::optional<top::TensorData> data = top::getConstantData(constant);
    inputs.try_emplace("arg" + std::to_string(index), HostTensor(data->type, data->bytes));
  }
  return inputs;
}

class DeviceReference : public testing::Test {
protected:
  DeviceReference() { context.loadDialect<func::FuncDialect, top::TopDialect, device::DeviceDialect>(); }

  void lower(ModuleOp module, bool optimise) {
    PassManager passes(&context);
    OpPassManager &functions = passes.nest<func::FuncOp>();
    functions.addPass(device::createConvertTopToDevicePass());
    functions.addPass(device::createVerifyLoweredPass());
    if (optimise) {
      functions.addPass(device::createSimplifyCopiesPass());
      functions.addPass(device::createFuseEpiloguesPass());
      functions.addPass(device::createAssignLayoutsPass());
      functions.addPass(device::createVerifyLayoutsPass());
      functions.addPass(device::createAssignAddressesPass());
      functions.addPass(device::createVerifyAddressesPass());
    }
    ASSERT_TRUE(succeeded(passes.run(module)));
  }

  void check(func::FuncOp function, const top::TensorMap &inputs) {
    FailureOr<top::TensorMap> results = top::Evaluator().run(function, inputs);
    ASSERT_TRUE(succeeded(results));
    for (unsigned i = 0; i + 1 < function.getNumResults(); i += 2) {
      compare(results->at("result" + std::to_string(i)), results->at("result" + std::to_string(i + 1)));
    }
  }

  void compare(const HostTensor &actual, const HostTensor &expected) {
    ASSERT_EQ(actual.getShape(), expected.getShape());
    ASSERT_EQ(actual.getElementType(), expected.getElementType());
    Type type = actual.getElementType();
    if (!isa<FloatType>(type)) {
      EXPECT_EQ(actual.getBytes(), expected.getBytes());
      return;
    }
    // Single precision after every op, where Top rounds once.
    double bound = type.isF64() ? 1e-9 : type.isF32() ? 2e-5 : type.isF16() ? 4e-3 : 3e-2;
    std::vector<double> a = top::reference::read<double>(actual), e = top::reference::read<double>(expected);
    for (size_t i = 0; i < a.size(); ++i) {
      bool same = a[i] == e[i] || (a[i] != a[i] && e[i] != e[i]);
      EXPECT_TRUE(same || std::fabs(a[i] - e[i]) <= bound * std::max(1.0, std::fabs(e[i])))
          << "element " << i << ": " << a[i] << ", expected " << e[i];
      compared += 1;
    }
  }

  MLIRContext context;
  int compared = 0;
};

TEST_F(DeviceReference, EveryTopCase) {
  int cases = 0;
  for (auto [folded, optimise] :
       {std::pair(true, false), std::pair(false, false), std::pair(true, true), std::pair(false, true)}) {
    for (const auto &entry : std::filesystem::directory_iterator(TESSERA_TOP_CASES)) {
      OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(entry.path().string(), &context);
      ASSERT_TRUE(module) << entry.path();
      std::map<std::string, top::TensorMap> inputs;
      for (func::FuncOp function : llvm::make_early_inc_range(module->getOps<func::FuncOp>())) {
        if (isRefused(function)) {
          function.erase();
        } else if (!folded) {
          inputs[function.getName().str()] = freeConstants(function);
        }
      }
      SCOPED_TRACE(entry.path().string() + (folded ? ", constants" : ", arguments") + (optimise ? ", optimised" : ""));
      lower(*module, optimise);
      for (func::FuncOp function : module->getOps<func::FuncOp>()) {
        SCOPED_TRACE(function.getName().str());
        check(function, inputs[function.getName().str()]);
        ++cases;
      }
    }
  }
  // A test that compares nothing must fail.
  EXPECT_GT(cases, 100);
  EXPECT_GT(compared, 1000);
}

} // namespace
