//===- Passes.cpp - Quantisation passes on Top ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "quant/Transforms/InputsOutputs.h"
#include "quant/Transforms/Precision/AssignPrecision.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "top_dialect/IR/TensorNames.h"

using namespace mlir;

namespace tessera::quant {
#define GEN_PASS_DEF_ASSIGNPRECISIONPASS
#define GEN_PASS_DEF_APPLYPRECISIONPASS
#define GEN_PASS_DEF_FUSEPREPROCESSPASS
#include "quant/Transforms/Passes.h.inc"

namespace {

/// The inputs of the two passes, and their results for quantizeFunction.
struct Inputs {
  CalibrationTable table;
  QuantizeTable choices;
  QuantizeOptions options;
  std::optional<LearnedWeights> learned = {};
  QuantizeReport report = {};
  std::string error = {}; ///< of the pass that failed

  llvm::Error loadLearned(MLIRContext *context) {
    if (table.weightsPath().empty()) {
      return llvm::Error::success();
    }
    return assign(learned, LearnedWeights::load(context, table.weightsPath(), table.weightsHash()));
  }

  llvm::Error loadTables(const std::string &calibration, const std::string &quantize) {
    llvm::Error error =
        calibration.empty() ? llvm::Error::success() : assign(table, CalibrationTable::load(calibration));
    return error || quantize.empty() ? std::move(error) : assign(choices, QuantizeTable::load(quantize));
  }

  llvm::Error setGroupSize(int64_t size) {
    options.groupSize = size;
    return size < 16 || size % 16
               ? llvm::createStringError("group size " + llvm::Twine(size) + "; allowed: multiples of 16")
               : llvm::Error::success();
  }

  template <typename To, typename From>
  static llvm::Error assign(To &to, llvm::Expected<From> from) {
    if (from) {
      to = std::move(*from);
    }
    return from.takeError();
  }
};

/// A pass on @main. `given` and `main`: inputs and function of quantizeFunction, which also reports the error.
template <typename Base>
class FunctionPass : public Base {
public:
  using Base::Base;
  FunctionPass(func::FuncOp main, Inputs *given) : main(main), given(given) {}

protected:
  virtual llvm::Error run(func::FuncOp function) = 0;

  func::FuncOp main;
  Inputs *given = nullptr;

private:
  void runOnOperation() override {
    auto function = main ? main : this->getOperation().template lookupSymbol<func::FuncOp>("main");
    bool isUsable = function && llvm::hasSingleElement(function.getBody());
    if (llvm::Error error =
            isUsable ? run(function) : llvm::createStringError("the module has no function @main of one block")) {
      std::string text = llvm::toString(std::move(error));
      given ? void(given->error = text) : void(mlir::emitError(this->getOperation().getLoc()) << text);
      this->signalPassFailure();
    }
  }
};

struct AssignPrecisionPass : FunctionPass<impl::AssignPrecisionPassBase<AssignPrecisionPass>> {
  using FunctionPass::FunctionPass;

  llvm::Error run(func::FuncOp function) override {
    Inputs own;
    if (llvm::Error error = given ? llvm::Error::success() : load(function, own)) {
      return error;
    }
    const Inputs &inputs = given ? *given : own;
    return assignPrecision(function, inputs.table, inputs.choices, inputs.options, inputs.learned);
  }

  llvm::Error load(func::FuncOp function, Inputs &inputs) {
    std::optional<Precision> wanted = parsePrecision(precision);
    if (!wanted) {
      return llvm::createStringError("precision '" + precision + "'; allowed: " + precisionNames());
    }
    inputs.options.precision = *wanted;
    if (llvm::Error error = inputs.loadTables(calibrationTable, quantizeTable)) {
      return error;
    }
    top::nameEveryTensor(function);
    if (llvm::Error error =
            isAssigned(function) ? llvm::Error::success() : checkTables(function, inputs.table, inputs.choices)) {
      return error;
    }
    llvm::Error error = inputs.setGroupSize(groupSize);
    return error ? std::move(error) : inputs.loadLearned(&getContext());
  }
};

struct ApplyPrecisionPass : FunctionPass<impl::ApplyPrecisionPassBase<ApplyPrecisionPass>> {
  using FunctionPass::FunctionPass;
  ApplyPrecisionPass(func::FuncOp main, Inputs *given, llvm::function_ref<void(size_t, size_t)> progress)
      : FunctionPass(main, given), progress(progress) {}

  llvm::Error run(func::FuncOp function) override {
    Inputs own;
    Inputs &inputs = given ? *given : own;
    if (llvm::Error error = given ? llvm::Error::success() : load(own)) {
      return error;
    }
    llvm::Error error = Inputs::assign(
        inputs.report, applyPrecision(function, inputs.table, inputs.options, inputs.learned,
                                      [&](size_t i, size_t n) { return progress ? progress(i, n) : void(); }));
    if (!error && !given) {
      exposeIntegers(function, inputs.table, {quantInputs, quantOutputs, ""}, inputs.report);
      remark(function, inputs.report);
    }
    return error;
  }

  llvm::Error load(Inputs &inputs) {
    if (llvm::Error error = inputs.loadTables(calibrationTable, "")) {
      return error;
    }
    llvm::Error error = inputs.setGroupSize(groupSize);
    return error ? std::move(error) : inputs.loadLearned(&getContext());
  }

  static void remark(func::FuncOp function, const QuantizeReport &report) {
    for (const std::string &text : report.floatInputsOutputs) {
      emitRemark(function.getLoc()) << text;
    }
    for (const FloatOp &kept : report.kept) {
      emitRemark(function.getLoc()) << "'" << kept.name << "' (" << kept.op << ") stays float: " << kept.reason;
    }
    for (const FloatOp &wide : report.wide) {
      emitRemark(function.getLoc()) << "'" << wide.name << "' (" << wide.op << ") reads i16: " << wide.reason;
    }
  }

  llvm::function_ref<void(size_t, size_t)> progress;
};

struct FusePreprocessPass : FunctionPass<impl::FusePreprocessPassBase<FusePreprocessPass>> {
  using FunctionPass::FunctionPass;

  llvm::Error run(func::FuncOp function) override { return fusePreprocess(function, format); }
};

/// The options of `top-quantize`: those of its two passes.
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<std::string> calibrationTable{*this, "calibration-table", llvm::cl::init("")};
  Option<std::string> quantizeTable{*this, "quantize-table", llvm::cl::init("")};
  Option<bool> quantInputs{*this, "quant-inputs", llvm::cl::init(false)};
  Option<bool> quantOutputs{*this, "quant-outputs", llvm::cl::init(false)};
  Option<std::string> precision{*this, "precision", llvm::cl::init("INT8")};
  Option<int64_t> groupSize{*this, "group-size", llvm::cl::init(kGroupSize)};
};

void buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(createAssignPrecisionPass(
      {options.calibrationTable, options.quantizeTable, options.precision, options.groupSize}));
  manager.addPass(createApplyPrecisionPass(
      {options.calibrationTable, options.quantInputs, options.quantOutputs, options.groupSize}));
}

} // namespace

llvm::Expected<QuantizeReport> quantizeFunction(func::FuncOp function, const CalibrationTable &table,
                                                const QuantizeTable &choices, const QuantizeOptions &options,
                                                llvm::function_ref<void(size_t, size_t)> progress,
                                                llvm::function_ref<void(PassManager &)> prepare) {
  Inputs inputs{table, choices, options};
  if (llvm::Error error = inputs.loadLearned(function.getContext())) {
    return std::move(error);
  }
  PassManager passes(function.getContext());
  prepare(passes);
  passes.addPass(std::make_unique<AssignPrecisionPass>(function, &inputs));
  passes.addPass(std::make_unique<ApplyPrecisionPass>(function, &inputs, progress));
  if (failed(passes.run(function->getParentOfType<ModuleOp>()))) {
    return llvm::createStringError(inputs.error.empty() ? "internal error: the quantised function is invalid"
                                                        : inputs.error);
  }
  return std::move(inputs.report);
}

namespace {
#define GEN_PASS_REGISTRATION
#include "quant/Transforms/Passes.h.inc"
} // namespace

void registerQuantTransforms() {
  registerQuantPasses();
  PassPipelineRegistration<PipelineOptions>(
      "top-quantize", "Quantise a function: assign-precision, then apply-precision", buildPipeline);
}

} // namespace tessera::quant
