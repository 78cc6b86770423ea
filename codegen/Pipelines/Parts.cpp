//===- Parts.cpp - The parts of a model without control flow --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Parts.h"

#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::codegen {

/// Returns |function| as @main of a new module with the attributes of its own.
static ModelPart takePart(func::FuncOp function, func::FuncOp main) {
  ModelPart part;
  part.name = function.getName().str();
  auto outer = main->getParentOfType<ModuleOp>();
  part.module = ModuleOp::create(outer.getLoc());
  (*part.module)->setDiscardableAttrs(outer->getDiscardableAttrDictionary());
  part.function = function.clone();
  part.function.setName(main.getName());
  part.function.setPublic();
  part.function->setDiscardableAttrs(main->getDiscardableAttrDictionary());
  part.module->push_back(part.function);
  return part;
}

llvm::Expected<std::vector<ModelPart>> splitModel(func::FuncOp main, const std::optional<Quantization> &quantization) {
  std::vector<ModelPart> parts;
  if (!top::hasControlFlow(main)) {
    parts.push_back({"", main, nullptr});
    return std::move(parts);
  }
  if (quantization) { // the parts must have the names of the whole model
    top::nameEveryTensor(main);
    if (llvm::Error error = quant::checkTables(main, quantization->table, quantization->choices)) {
      return std::move(error);
    }
  }
  auto module = main->getParentOfType<ModuleOp>();
  PassManager passes(module.getContext());
  passes.addPass(top::createWidenFloatsPass());
  passes.addPass(top::createOutlineRegionsPass());
  if (failed(passes.run(module))) {
    return llvm::createStringError("internal error: the model cannot be split at its control flow");
  }
  main.walk<WalkOrder::PreOrder>([&](func::CallOp call) {
    parts.push_back(takePart(module.lookupSymbol<func::FuncOp>(call.getCallee()), main));
    parts.back().isRepeated = call->getParentOp() != main;
  });
  return std::move(parts);
}

quant::QuantizeReport joinReports(std::optional<quant::QuantizeReport> total, quant::QuantizeReport part) {
  if (!total) {
    return part;
  }
  for (int64_t quant::QuantizeReport::*count :
       {&quant::QuantizeReport::integerOps, &quant::QuantizeReport::narrowOps, &quant::QuantizeReport::macs,
        &quant::QuantizeReport::integerMacs, &quant::QuantizeReport::narrowMacs, &quant::QuantizeReport::weightOps,
        &quant::QuantizeReport::weightMacs, &quant::QuantizeReport::wideMacs, &quant::QuantizeReport::residualMacs,
        &quant::QuantizeReport::learnedWeights, &quant::QuantizeReport::splitWeights}) {
    (*total).*count += part.*count;
  }
  auto append = [](auto &to, auto &from) { llvm::move(from, std::back_inserter(to)); };
  append(total->kept, part.kept), append(total->wide, part.wide), append(total->ops, part.ops);
  append(total->tensors, part.tensors), append(total->floatInputsOutputs, part.floatInputsOutputs);
  for (auto &[name, factors] : part.factors) {
    total->factors.try_emplace(name, std::move(factors));
  }
  return std::move(*total);
}

} // namespace tessera::codegen
