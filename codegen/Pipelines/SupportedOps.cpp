//===- SupportedOps.cpp - Survey of supported operators -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/SupportedOps.h"

#include "codegen/Partition/Partition.h"
#include "codegen/Pipelines/Deploy.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

const char kProbes[] =
#include "Probes.inc"
    ;

/// Copies the function as @main into a new module.
OwningOpRef<ModuleOp> isolate(func::FuncOp probe) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(probe.getLoc());
  func::FuncOp copy = probe.clone();
  copy.setName("main");
  module->push_back(copy);
  return module;
}

/// Returns the reasons why the host is needed; empty if it is not.
llvm::Expected<std::vector<std::string>> surveyOne(ModuleOp module, ArrayRef<const Target *> targets,
                                                   quant::Precision precision) {
  llvm::Expected<func::FuncOp> function = deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  std::optional<Quantization> quantization;
  PassManager passes(module.getContext());
  if (precision == quant::Precision::F32) {
    passes.addPass(top::createWidenFloatsPass());
  } else {
    quantization = madeUp(*function, precision);
  }
  if (auto report = prepareModel(*function, quantization, {}, {}); !report) {
    return report.takeError();
  }
  buildLowering(passes, *targets.front(), targets.front()->requantisations().front(), /*observe=*/false);
  if (failed(passes.run(module))) {
    return llvm::createStringError("failed to lower '" + function->getName() + "'");
  }
  partition::Partition partition(*function, targets);
  if (llvm::Error error = partition.decide()) {
    return std::vector<std::string>{llvm::toString(std::move(error))};
  }
  std::vector<std::string> reasons;
  for (const partition::MovedOp &op : partition.movedOps()) {
    if (op.isUnsupported && !llvm::is_contained(reasons, op.reason)) {
      reasons.push_back(op.reason);
    }
  }
  return reasons;
}

} // namespace

llvm::Expected<std::vector<Support>> surveyOperators(MLIRContext &context, const Target &chip, const Target &host,
                                                     ArrayRef<quant::Precision> precisions) {
  OwningOpRef<ModuleOp> probes = parseSourceString<ModuleOp>(kProbes, &context);
  if (!probes) {
    return llvm::createStringError("internal error: probes.mlir cannot be parsed");
  }
  std::vector<Support> table;
  for (auto probe : probes->getOps<func::FuncOp>()) {
    for (quant::Precision precision : precisions) {
      OwningOpRef<ModuleOp> module = isolate(probe);
      std::string title = probe->getAttrOfType<StringAttr>("title").str();
      auto reasons = surveyOne(*module, {&chip, &host}, precision);
      if (!reasons) {
        return llvm::createStringError(title + ", " + quant::toString(precision) + ": " +
                                       llvm::toString(reasons.takeError()));
      }
      table.push_back({title, precision, std::move(*reasons)});
    }
  }
  return table;
}

} // namespace tessera::codegen
