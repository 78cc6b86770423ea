//===- X86Family.cpp - The target family of x86 processors ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/kernel_abi.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Target/Registry.h"
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Linker.h"
#include "codegen/X86/Passes.h"
#include "codegen/X86/PlanSubnet.h"
#include "codegen/X86/Transforms/Passes.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

using codegen::SubnetProgram;
using codegen::TargetProgram;
using codegen::UnsupportedOp;

enum Section : uint32_t { kCode, kConstants };

/// Cost model of a host processor next to an accelerator, whose actual model is unknown: two cores with 128-bit vectors
/// at about 1.5 GHz. Coarse on purpose, because it only decides where ops run.
struct HostModel {
  double macs = 12e9;     ///< integer multiply-adds per second
  double flops = 8e9;     ///< other operations per second
  double bandwidth = 4e9; ///< bytes per second that an op reads and writes
  double launch = 2e-6;   ///< seconds per op
};

class X86Chip final : public codegen::Target {
public:
  explicit X86Chip(const X86Target &variant) : variant(variant) {}

  StringRef family() const override { return "x86"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT chip;
    chip.name = variant.name().str(), chip.family = family().str();
    return chip;
  }
  bool runsEverything() const override { return true; }
  bool runsHere() const override { return variant.runsHere(); }
  bool canInstrument() const override { return true; }
  std::vector<std::string> requantisations() const override { return {"float", "fixed", "tflite"}; }

  std::vector<UnsupportedOp> survey(func::FuncOp function) const override;
  double secondsOf(Operation *op) const override;
  codegen::MachineModel machineModel() const override;
  /// Returns 0: the family accesses the memory of the other targets, which account for the cost of transfers.
  double transferSeconds(int64_t) const override { return 0; }
  double handOverSeconds() const override { return 0; }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    buildPlacementPipeline(manager, variant, options.instrument);
  }

  llvm::Expected<std::optional<TargetProgram>> compile(ArrayRef<codegen::Subnet> subnets,
                                                       const codegen::CompileOptions &options,
                                                       const codegen::PhaseObserver &observer,
                                                       std::vector<UnsupportedOp> &unsupportedOps) const override;

private:
  llvm::Error compileKernels(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                             const codegen::PhaseObserver &observer, KernelSet &kernels, TargetProgram &program) const;
  llvm::Error plan(const codegen::Subnet &subnet, const KernelSet &kernels, codegen::ConstantSection &constants,
                   TargetProgram &program) const;

  X86Target variant;
};

/// Returns the rates of the kernels' inner loops at about 4 GHz with the instructions that docs/numerics.md lists. A
/// type that a variant does not support costs as much as its emulation. WINOGRAD is f32 in 3x3 convolutions, measured
/// next to direct convolutions.
codegen::MachineModel X86Chip::machineModel() const {
  switch (variant.isa) {
  case Isa::Avx512: // vpdpbusd, vpdpwssd, vfmadd on 512 bits; tdpbusd, tdpbf16ps limited by loads
    if (variant.amx) {
      return {{{"INT8", 2000}, {"INT16", 240}, {"BF16", 1000}, {"F16", 110}, {"F32", 120}, {"WINOGRAD", 330}}, 20};
    }
    return {{{"INT8", 480},
             {"INT16", 240},
             {"BF16", variant.bf16 ? 240.0 : 110.0},
             {"F16", 110},
             {"F32", 120},
             {"WINOGRAD", 330}},
            20};
  case Isa::Avx2: // vpmaddwd of bytes widened to words; fma
    return {{{"INT8", 100}, {"INT16", 110}, {"BF16", 55}, {"F16", 55}, {"F32", 60}, {"WINOGRAD", 165}}, 20};
  case Isa::V2: // pmaddwd; mulps and addps
    return {{{"INT8", 45}, {"INT16", 50}, {"BF16", 14}, {"F16", 14}, {"F32", 15}, {"WINOGRAD", 41}}, 15};
  }
  llvm_unreachable("covered switch");
}

std::vector<UnsupportedOp> X86Chip::survey(func::FuncOp function) const {
  std::vector<UnsupportedOp> unsupportedOps;
  for (Operation &op : function.getBody().front()) {
    if (isa<device::DeviceDialect>(op.getDialect()) && !isa<KernelInterface, device::ReshapeOp>(op)) {
      unsupportedOps.push_back({&op, "has no x86 kernel"});
    }
  }
  return unsupportedOps;
}

double X86Chip::secondsOf(Operation *op) const {
  if (isa<device::ReshapeOp>(op)) { // moves no bytes
    return 0;
  }
  const HostModel host;
  double bytes = 0;
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults()))) {
    bytes += double(device::physicalBytes(cast<RankedTensorType>(value.getType())));
  }
  auto work = cast<device::WorkInterface>(op);
  double macs = double(work.countMacs());
  double computes = macs > 0 ? macs / host.macs : double(work.countFlops()) / host.flops;
  return host.launch + std::max(computes, bytes / host.bandwidth);
}

/// Links all kernels to one shared object.
llvm::Expected<std::vector<char>> link(const KernelSet &kernels) {
  std::vector<ArrayRef<char>> objects;
  for (size_t i = 0; i < kernels.size(); ++i) {
    objects.push_back(kernels[i].code);
  }
  return linkSharedObject(objects);
}

llvm::Error X86Chip::compileKernels(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                                    const codegen::PhaseObserver &observer, KernelSet &kernels,
                                    TargetProgram &program) const {
  observer.begin("kernels");
  for (const codegen::Subnet &subnet : subnets) {
    func::FuncOp function = subnet.function;
    for (Operation &op : function.getBody().front()) {
      if (needsKernel(&op)) {
        kernels.add(&op, kernelKey(&op, variant));
      }
    }
  }
  KernelCache cache(options.cacheFolder.value_or(codegen::FileCache::defaultFolder()));
  auto compileKernel = [&](Operation *op, StringRef symbol) { return x86::compileKernel(op, variant, symbol); };
  if (failed(kernels.compile(cache, compileKernel, observer.progress))) {
    return llvm::createStringError("failed to compile kernels");
  }
  program.memory.emplace_back();
  if (kernels.size()) {
    observer.begin("link");
    llvm::Expected<std::vector<char>> linked = link(kernels);
    if (!linked) {
      return linked.takeError();
    }
    program.memory.back() = std::move(*linked);
  }
  program.sections.emplace_back(bmodel::SegmentKind::Code);
  program.sections.emplace_back(bmodel::SegmentKind::Constants);
  program.sections[kCode].append(program.memory.back());
  return llvm::Error::success();
}

llvm::Error X86Chip::plan(const codegen::Subnet &subnet, const KernelSet &kernels, codegen::ConstantSection &constants,
                          TargetProgram &program) const {
  SubnetProgram &result = program.subnets.emplace_back();
  result.subnet.kind = subnet.isWhole ? bmodel::SubnetKind::X86 : bmodel::SubnetKind::Host;
  result.subnet.isa = variant.llvmCpu().str();
  result.subnet.cpu_features = variant.cpuFeatureBits();
  result.subnet.kernel_abi = BM_KERNEL_ABI_VERSION;
  result.subnet.code_segment = kernels.size() ? int32_t(kCode) : -1;
  // Steps report estimates only next to other targets, whose steps report them as well.
  std::function<double(Operation *)> seconds;
  if (!subnet.isWhole) {
    seconds = [this](Operation *op) { return secondsOf(op); };
  }
  if (failed(planSubnet(subnet.function, kernels, constants, std::move(seconds), result))) {
    return llvm::createStringError("failed to plan the model");
  }
  return llvm::Error::success();
}

llvm::Expected<std::optional<TargetProgram>> X86Chip::compile(ArrayRef<codegen::Subnet> subnets,
                                                              const codegen::CompileOptions &options,
                                                              const codegen::PhaseObserver &observer,
                                                              std::vector<UnsupportedOp> &) const {
  std::optional<TargetProgram> program(std::in_place);
  KernelSet kernels;
  if (llvm::Error error = compileKernels(subnets, options, observer, kernels, *program)) {
    return std::move(error);
  }
  observer.begin("plan");
  codegen::ConstantSection constants(*program, kConstants);
  size_t steps = 0;
  for (const codegen::Subnet &subnet : subnets) {
    if (llvm::Error error = plan(subnet, kernels, constants, *program)) {
      return std::move(error);
    }
    steps += program->subnets.back().ops;
  }
  program->report = llvm::json::Object{
      {"steps", int64_t(steps)}, {"kernels", int64_t(kernels.size())}, {"cache_hits", int64_t(kernels.cacheHits())}};
  return program;
}

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
