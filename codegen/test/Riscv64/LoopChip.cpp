//===- LoopChip.cpp - The smallest family of CPUs -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "LoopChip.h"

#include "device_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace mlir;

namespace tessera::test {

bmodel::ChipDefT LoopChip::describe() const {
  bmodel::ChipDefT chip;
  chip.name = chip.family = name;
  return chip;
}

void LoopChip::buildPasses(OpPassManager &manager, const codegen::CompileOptions &) const {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(device::createAssignAddressesPass());
  functions.addPass(device::createVerifyAddressesPass());
}

static void registerRiscv() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
  });
}

std::unique_ptr<LoopChip> createRiscv64() {
  native::Machine machine = {.triple = "riscv64-unknown-linux-gnu",
                             .cpu = "generic-rv64",
                             .features = "+m,+a,+f,+d,+c,+v,+zfhmin,+zvfhmin",
                             .key = "riscv64 with vectors",
                             .registerBackend = registerRiscv};
  return std::make_unique<LoopChip>("riscv64", std::move(machine), kernels::VectorTarget{.bytes = 16, .fma = true});
}

} // namespace tessera::test
