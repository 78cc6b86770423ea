//===- Npu.cpp - A device function as a program of the NPU ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Npu.h"

#include "codegen/Npu/Emission/FunctionEmission.h"
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Schedule/ScheduleSearch.h"
#include "codegen/Target/IrDump.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/Pipeline.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::npu {
namespace hw = bmodel::npu;

void addForms(OpPassManager &functions, const Chip &chip) {
  functions.addPass(device::createFoldSpaceToDepthPass());
  // Transfers that move rows could be part of a matmul, and the vector unit reads few operands.
  functions.addPass(device::createFormTablesPass({.perChannel = true})); // each lane has room for its own table
  functions.addPass(device::createExpandLog1pPass());                    // behind tables, which cover any function
  functions.addPass(device::createExpandScatterPass());                  // the DMA cannot store by index
  functions.addPass(device::createCopyBeforeProductsPass());
  functions.addPass(device::createFuseEpiloguesPass()); // of the ops that were behind the copies
  functions.addPass(device::createSplitMapsPass({.most = bmodel::npu::kMapOperands}));
  functions.addPass(device::createSplitProductsPass());
  functions.addPass(createBlockRowsPass(chip));
  functions.addPass(device::createSimplifyCopiesPass({.throughReshapes = true}));
  functions.addPass(createEarlyResultsPass(chip)); // for the remaining ops
}

void buildAddresses(OpPassManager &manager) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  // Commands accept any address, so parts of a concatenation only need the alignment of their elements.
  functions.addPass(device::createAssignAddressesPass({.partAlignment = 1}));
  functions.addPass(device::createVerifyAddressesPass({.alignment = 1}));
}

void buildLowering(OpPassManager &manager, const std::string &requantise, const Chip &chip) {
  device::LoweringOptions options;
  options.requantisation = requantise;
  device::buildLoweringPipeline(manager, options, [&](OpPassManager &functions) { addForms(functions, chip); });
}

void buildForms(OpPassManager &manager, const Chip &chip) {
  OpPassManager &functions =
      manager.getOpAnchorName() == func::FuncOp::getOperationName() ? manager : manager.nest<func::FuncOp>();
  functions.addPass(createFuseCopiesPass(chip));
  functions.addPass(createChooseFormsPass(chip));
  functions.addPass(createChooseDirectStoresPass(chip));
  functions.addPass(createVerifyDecisionsPass(chip));
}

/// Runs the phases before the schedule on one function.
static LogicalResult chooseForms(func::FuncOp function, const Chip &chip, const codegen::IrObserver &observer) {
  PassManager passes(function.getContext(), func::FuncOp::getOperationName());
  codegen::watch(passes, "emit", observer);
  buildForms(passes, chip);
  return passes.run(function);
}

static hw::RegionSizes sizesOf(func::FuncOp function, size_t constants) {
  hw::RegionSizes sizes;
  sizes.constants = constants;
  for (Type type : function.getArgumentTypes()) {
    sizes.io.push_back(uint64_t(device::physicalBytes(cast<RankedTensorType>(type))));
  }
  sizes.inputs = uint32_t(sizes.io.size());
  for (Type type : function.getResultTypes()) {
    sizes.io.push_back(uint64_t(device::physicalBytes(cast<RankedTensorType>(type))));
  }
  return sizes;
}

std::vector<UnsupportedOp> surveyProgram(func::FuncOp function, const hw::Chip &chip) {
  if (failed(chooseForms(function, chip, {}))) {
    return {{nullptr, "internal error: no forms can be chosen"}};
  }
  Constants constants;
  CommandStream scratch(chip, constants);
  ValuePlan plan(function, chip);
  FunctionEmission survey(function, scratch, plan, nullptr);
  (void)survey.run();
  return std::move(survey.unsupportedOps);
}

void report(func::FuncOp function, llvm::ArrayRef<UnsupportedOp> unsupportedOps) {
  for (const UnsupportedOp &unsupportedOp : unsupportedOps) {
    (unsupportedOp.op ? unsupportedOp.op->emitError() : function.emitError()) << unsupportedOp.reason;
  }
}

/// Adds the sizes of the function's own buffers to a program, and runs the same checks as the runtime.
static FailureOr<NpuProgram> finish(func::FuncOp function, const hw::Chip &chip, const Constants &constants,
                                    NpuProgram program) {
  uint64_t workspace = program.sizes.workspace;
  program.sizes = sizesOf(function, constants.bytes.size());
  program.sizes.workspace = workspace;
  bmodel::Status status;
  const auto *bytes = reinterpret_cast<const unsigned char *>(constants.bytes.data());
  const hw::Descriptor *commands = program.commands.data();
  if (!hw::checkStream(commands, program.commands.size(), chip, program.sizes, bytes, status)) {
    return function.emitError() << "internal error: " << status.message;
  }
  return program;
}

FailureOr<NpuProgram> emitProgram(func::FuncOp function, const hw::Chip &chip, const NpuOptions &options,
                                  Constants &known, std::vector<UnsupportedOp> &unsupportedOps) {
  if (failed(chooseForms(function, chip, options.observeIr))) {
    return failure();
  }
  if (options.preserveLayers) {
    function->setAttr(NpuDialect::kPreservedAttr, UnitAttr::get(function.getContext()));
  }
  NpuProgram program;
  LogicalResult emitted = ScheduleSearch(function, chip, options, known).run(program, unsupportedOps);
  known.weights.clear(); // the keys are ops, which need not outlive this call
  if (failed(emitted)) {
    return failure();
  }
  return finish(function, chip, known, std::move(program));
}

FailureOr<NpuProgram> emitScheduledProgram(func::FuncOp function, const hw::Chip &chip, Constants &known,
                                           std::vector<UnsupportedOp> &unsupportedOps) {
  NpuProgram program;
  LogicalResult emitted = failure();
  if (succeeded(verifyFused(function, chip))) {
    emitted = emitScheduled(function, chip, known, program, unsupportedOps);
  }
  known.weights.clear();
  if (failed(emitted)) {
    return failure();
  }
  return finish(function, chip, known, std::move(program));
}

FailureOr<NpuProgram> emitProgram(func::FuncOp function, const hw::Chip &chip, const NpuOptions &options) {
  Constants constants;
  std::vector<UnsupportedOp> unsupportedOps;
  FailureOr<NpuProgram> program = emitProgram(function, chip, options, constants, unsupportedOps);
  report(function, unsupportedOps);
  if (succeeded(program)) {
    program->constants = std::move(constants.bytes);
  }
  return program;
}

} // namespace tessera::npu
