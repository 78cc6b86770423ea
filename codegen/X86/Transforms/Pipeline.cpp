//===- Pipeline.cpp - Pass pipelines of the x86 family --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/Pipeline.h"

#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace tessera::x86 {

void buildPackingPipeline(OpPassManager &manager, const X86Target &target) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  int64_t bytes = target.vectorBytes();
  functions.addPass(createReadCachesPass());
  if (target.bf16) {
    functions.addPass(createNarrowAttentionPass());
  }
  functions.addPass(device::createFuseEpiloguesPass({.intoRows = true, .integerAttention = true}));
  functions.addPass(createSplitPhasesPass());
  functions.addPass(createFlattenVolumesPass());
  functions.addPass(createConvToMatMulPass());
  functions.addPass(createHoistInputsPass({.vectorBytes = bytes}));
  functions.addPass(createAssignLayoutsPass({.vectorBytes = bytes, .bf16Dots = target.bf16, .amx = target.amx}));
  functions.addPass(device::createVerifyLayoutsPass());
  functions.addPass(createVerifyKernelLayoutsPass());
  if (target.hasFma()) {
    functions.addPass(createPackBlocksPass());
  }
  functions.addPass(createPackWeightsPass(
      {.vectorBytes = bytes, .byteDots = target.vnni, .bf16Dots = target.bf16, .amx = target.amx}));
  functions.addPass(createVerifyPackingPass());
}

void buildPlacementPipeline(OpPassManager &manager, const X86Target &target, bool separate) {
  buildPackingPipeline(manager, target);
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(device::createAssignAddressesPass({.separate = separate}));
  functions.addPass(device::createVerifyAddressesPass());
}

namespace {
struct PlacementOptions : PassPipelineOptions<PlacementOptions> {
  Option<Isa> isa{*this, "isa", llvm::cl::desc("Instruction set of the chip"),
                  llvm::cl::values(clEnumValN(Isa::V2, "v2", "SSE 4.2"), clEnumValN(Isa::Avx2, "avx2", "AVX2 and FMA"),
                                   clEnumValN(Isa::Avx512, "avx512", "AVX-512")),
                  llvm::cl::init(Isa::Avx512)};
  Option<bool> vnni{*this, "vnni", llvm::cl::desc("The chip has dot products of bytes; requires avx512"),
                    llvm::cl::init(false)};
  Option<bool> bf16{*this, "bf16", llvm::cl::desc("The chip has dot products of bf16; requires avx512"),
                    llvm::cl::init(false)};
  Option<bool> amx{*this, "amx", llvm::cl::desc("The chip has AMX tiles; requires vnni and bf16"),
                   llvm::cl::init(false)};
  Option<bool> separate{*this, "separate", llvm::cl::desc("Give every tensor separate memory"), llvm::cl::init(false)};
};
} // namespace

void registerPlacementPipeline() {
  PassPipelineRegistration<PlacementOptions>("x86-placement",
                                             "Assign layouts, pack weights and assign addresses for an x86 chip",
                                             [](OpPassManager &manager, const PlacementOptions &options) {
                                               X86Target target{options.isa};
                                               target.vnni = options.vnni && options.isa == Isa::Avx512;
                                               target.bf16 = options.bf16 && options.isa == Isa::Avx512;
                                               target.amx = options.amx && target.vnni && target.bf16;
                                               buildPlacementPipeline(manager, target, options.separate);
                                             });
}

} // namespace tessera::x86
