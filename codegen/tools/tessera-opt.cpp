//===- tessera-opt.cpp - mlir-opt with the dialects and passes of Tessera ---===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel_format/tools/Program.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "quant/Transforms/Passes.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

/// Loads or stores the weights of a module, which are in a file beside it.
class WeightsPass : public PassWrapper<WeightsPass, OperationPass<ModuleOp>> {
public:
  using Work = std::function<llvm::Error(ModuleOp)>;
  explicit WeightsPass(Work work) : work(std::move(work)) {}
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WeightsPass)

private:
  StringRef getName() const override { return "Weights"; }
  void runOnOperation() override {
    if (llvm::Error error = work(getOperation())) {
      emitError(getOperation().getLoc()) << llvm::toString(std::move(error)); // without printing the whole module
      signalPassFailure();
    }
  }

  Work work;
};

/// Adds passes around those of the command line: one reads weights from the file beside the input, one writes them
/// beside the output if that is a file.
MlirOptMainConfig withWeights(const MlirOptMainConfig &given, const std::string &input, const std::string &output) {
  MlirOptMainConfig config = given;
  config.setPassPipelineSetupFn([given, input, output](PassManager &passes) {
    passes.addPass(std::make_unique<WeightsPass>([input](ModuleOp module) {
      return module->hasAttr(tessera::top::TopDialect::kWeightFileAttr) ? tessera::top::loadWeights(module, input)
                                                                        : llvm::Error::success();
    }));
    if (failed(given.setupPassPipeline(passes))) {
      return failure();
    }
    passes.addPass(std::make_unique<WeightsPass>([output](ModuleOp module) {
      bool isFile = output != "-" && llvm::sys::path::parent_path(output) != "/dev";
      return isFile ? tessera::top::writeWeights(module, output) : llvm::Error::success();
    }));
    return success();
  });
  return config;
}

LogicalResult run(int argc, char **argv, DialectRegistry &registry) {
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "Tessera optimizer driver\n", registry);
  MlirOptMainConfig config = withWeights(MlirOptMainConfig::createFromCLOptions(), input, output);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(input, &message);
  std::unique_ptr<llvm::ToolOutputFile> file = text ? openOutputFile(output, &message) : nullptr;
  if (!file) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (failed(MlirOptMain(file->os(), std::move(text), registry, config))) {
    return failure();
  }
  file->keep(); // the file may have been incomplete until now
  return success();
}

} // namespace

int main(int argc, char **argv) {
  bmodel::program::begin("tessera-opt", argc, argv);
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, tessera::device::DeviceDialect,
                  tessera::top::TopDialect>();
  tessera::codegen::registerFamilies(registry);
  registerCanonicalizerPass();
  registerCSEPass();
  tessera::top::registerTopTransforms();
  tessera::quant::registerQuantTransforms();
  tessera::device::registerTopToDevicePasses();
  tessera::device::registerDeviceTransformsPasses();
  tessera::device::registerLoweringPipeline();
  for (const tessera::codegen::Family *family : tessera::codegen::families()) {
    family->registerPasses();
  }
  return asMainReturnCode(run(argc, argv, registry));
}
