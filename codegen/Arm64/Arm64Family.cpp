//===- Arm64Family.cpp - The target family of 64-bit Arm processors -------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/cpu_features.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Native/CpuChip.h"
#include "codegen/Native/PanelTile.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace mlir;

namespace tessera::arm64 {
namespace {

void registerBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

class Arm64Chip final : public native::CpuChip {
public:
  StringRef family() const override { return "arm64"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT chip;
    chip.name = chip.family = family().str();
    return chip;
  }
  bool runsHere() const override { return bmodel::cpuFeatures() & bmodel::BM_CPU_ASIMD; }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    OpPassManager &functions = manager.nest<func::FuncOp>();
    functions.addPass(device::createFuseEpiloguesPass({.intoRows = true, .integerAttention = true}));
    functions.addPass(device::createAssignAddressesPass({.separate = options.instrument}));
    functions.addPass(device::createVerifyAddressesPass());
  }

protected:
  native::Machine machine() const override {
    return {.triple = "aarch64-unknown-linux-gnu",
            .cpu = "generic",
            .features = "+neon",
            .key = "aarch64",
            .featureBits = bmodel::BM_CPU_ASIMD,
            .pageBytes = 65536,
            .registerBackend = registerBackend};
  }
  /// Two vector multiply-adds of 4 terms each per cycle at about 2 GHz.
  native::CpuModel model() const override {
    return {.rates = {{{"INT8", 16}, {"INT16", 16}, {"BF16", 16}, {"F16", 16}, {"F32", 16}}, 10}};
  }
  FailureOr<native::KernelModule> emitKernel(Operation *op, StringRef symbol,
                                             kernels::KernelFrame &frame) const override {
    return native::emitPanelKernel(op, {.bytes = 16, .fma = true}, symbol, frame);
  }
};

std::vector<std::string> chips() { return {"arm64"}; }

llvm::Expected<std::unique_ptr<codegen::Target>> createChip(const codegen::ChipRequest &) {
  return std::make_unique<Arm64Chip>();
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  kernels::registerKernels(registry);
}

} // namespace

extern const codegen::Family kFamily;
const codegen::Family kFamily = {.name = "arm64",
                                 .chips = chips,
                                 .isHost = false,
                                 .hasDescriptions = false,
                                 .flags = {},
                                 .create = createChip,
                                 .registerDialects = registerDialects,
                                 .registerPasses = [] {}};

} // namespace tessera::arm64
