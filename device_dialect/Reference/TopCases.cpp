//===- TopCases.cpp - The cases of Top's reference, lowered ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Reference/TopCases.h"

#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/Transforms/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/Reference/Support.h"
#include <filesystem>

using namespace mlir;

namespace tessera::device {

using top::HostTensor;

namespace {

bool isStatic(Type type) { return cast<RankedTensorType>(type).hasStaticShape(); }

/// Returns true for functions that the lowering rejects by design: run-time dims, regions.
bool isRejected(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    bool dynamic = !llvm::all_of(op->getOperandTypes(), isStatic) || !llvm::all_of(op->getResultTypes(), isStatic);
    bool rejected = isa<top::IfOp, top::LoopOp, top::NonZeroOp, top::RangeOp, top::ConstantOfShapeOp>(op);
    return !isa<func::FuncOp>(op) && (dynamic || rejected) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Replaces the constants that ops read by arguments; returns their values.
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

} // namespace

void TopCases::checkAll(const char *cases, bool folded, llvm::function_ref<void(OpPassManager &)> addPasses) {
  for (const auto &entry : std::filesystem::directory_iterator(cases)) {
    SCOPED_TRACE(entry.path().string() + (folded ? ", constants" : ", arguments"));
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(entry.path().string(), &context);
    ASSERT_TRUE(module);
    std::map<std::string, top::TensorMap> inputs;
    for (func::FuncOp function : llvm::make_early_inc_range(module->getOps<func::FuncOp>())) {
      if (isRejected(function)) {
        function.erase();
      } else if (!folded) {
        inputs[function.getName().str()] = freeConstants(function);
      }
    }
    PassManager passes(&context);
    OpPassManager &functions = passes.nest<func::FuncOp>();
    functions.addPass(createConvertTopToDevicePass());
    functions.addPass(createVerifyLoweredPass());
    addPasses(functions);
    ASSERT_TRUE(succeeded(passes.run(*module)));
    for (func::FuncOp function : module->getOps<func::FuncOp>()) {
      SCOPED_TRACE(function.getName().str());
      check(function, inputs[function.getName().str()]);
      ++checked;
    }
  }
}

void TopCases::check(func::FuncOp function, const top::TensorMap &inputs) {
  FailureOr<top::TensorMap> results = top::Evaluator().run(function, inputs);
  ASSERT_TRUE(succeeded(results));
  for (unsigned i = 0; i + 1 < function.getNumResults(); i += 2) {
    compare(results->at("result" + std::to_string(i)), results->at("result" + std::to_string(i + 1)));
  }
}

void TopCases::compare(const HostTensor &actual, const HostTensor &expected) {
  ASSERT_EQ(actual.getShape(), expected.getShape());
  ASSERT_EQ(actual.getElementType(), expected.getElementType());
  Type type = actual.getElementType();
  if (!isa<FloatType>(type)) {
    EXPECT_EQ(actual.getBytes(), expected.getBytes());
    return;
  }
  // Results are rounded to single precision after every op; Top rounds only once.
  double bound = type.isF64() ? 1e-9 : type.isF32() ? 2e-5 : type.isF16() ? 4e-3 : 3e-2;
  std::vector<double> a = top::reference::read<double>(actual), e = top::reference::read<double>(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    bool same = a[i] == e[i] || (a[i] != a[i] && e[i] != e[i]);
    EXPECT_TRUE(same || std::fabs(a[i] - e[i]) <= bound * std::max(1.0, std::fabs(e[i])))
        << "element " << i << ": " << a[i] << ", expected " << e[i];
    compared += 1;
  }
}

} // namespace tessera::device
