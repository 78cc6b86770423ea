//===- X86Family.cpp - The target family of x86 processors ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/CpuChip.h"
#include "codegen/Target/Registry.h"
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Passes.h"
#include "codegen/X86/Transforms/Passes.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "codegen/X86/X86Model.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

class X86Chip final : public native::CpuChip {
public:
  explicit X86Chip(const X86Target &variant) : variant(variant) {}

  StringRef family() const override { return "x86"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT chip;
    chip.name = variant.name().str(), chip.family = family().str();
    return chip;
  }
  bool runsHere() const override { return variant.runsHere(); }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    buildPlacementPipeline(manager, variant, options.instrument);
  }

protected:
  native::Machine machine() const override { return machineOf(variant); }
  native::CpuModel model() const override { return modelOf(variant); }
  FailureOr<native::KernelModule> emitKernel(Operation *op, StringRef symbol, KernelFrame &frame) const override {
    return emitKernelModule(op, variant, symbol, frame);
  }
  bmodel::SubnetKind subnetKind(bool isWhole) const override {
    return isWhole ? bmodel::SubnetKind::X86 : bmodel::SubnetKind::Host;
  }

private:
  X86Target variant;
};

llvm::Expected<std::unique_ptr<codegen::Target>> createChip(const codegen::ChipRequest &request) {
  return std::make_unique<X86Chip>(*X86Target::parse(request.name));
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  registerX86Kernels(registry);
}

void registerPasses() {
  registerX86Passes();
  registerX86TransformsPasses();
  registerPlacementPipeline();
}

} // namespace

extern const codegen::Family kFamily;
const codegen::Family kFamily = {.name = "x86",
                                 .chips = X86Target::chips,
                                 .isHost = true,
                                 .hasDescriptions = false,
                                 .flags = {},
                                 .create = createChip,
                                 .registerDialects = registerDialects,
                                 .registerPasses = registerPasses};

} // namespace tessera::x86
