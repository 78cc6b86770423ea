//===- CpuChip.cpp - What the families of CPUs share ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/CpuChip.h"

#include "bmodel/kernel_abi.h"
#include "codegen/Native/Linker.h"
#include "codegen/Native/PlanSubnet.h"
#include "device_dialect/IR/DeviceCustomOps.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

using namespace mlir;

namespace tessera::native {

using namespace kernels;
using codegen::SubnetProgram;
using codegen::TargetProgram;
using codegen::UnsupportedOp;

namespace {
enum Section : uint32_t { kCode, kConstants };
} // namespace

std::vector<UnsupportedOp> CpuChip::survey(func::FuncOp function) const {
  std::vector<UnsupportedOp> unsupported = findOpsWithoutKernel(function, family());
  llvm::erase_if(unsupported, [](const UnsupportedOp &each) { return isa<device::CustomOp>(each.op); });
  return unsupported;
}

double CpuChip::secondsOf(Operation *op) const {
  if (isa<device::ReshapeOp>(op)) { // moves no bytes
    return 0;
  }
  double bytes = 0;
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults()))) {
    bytes += double(device::physicalBytes(cast<RankedTensorType>(value.getType())));
  }
  auto work = cast<device::WorkInterface>(op);
  return unknownHost().seconds(double(work.countMacs()), double(work.countFlops()), bytes);
}

/// Links all kernels to one shared object.
static llvm::Expected<std::vector<char>> link(const KernelSet &kernels, unsigned pageBytes) {
  std::vector<ArrayRef<char>> objects;
  for (size_t i = 0; i < kernels.size(); ++i) {
    objects.push_back(kernels[i].code);
  }
  return linkSharedObject(objects, pageBytes);
}

llvm::Error CpuChip::compileKernels(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                                    const codegen::PhaseObserver &observer, KernelSet &kernels,
                                    TargetProgram &program) const {
  const Machine target = machine();
  observer.begin("kernels");
  for (const codegen::Subnet &subnet : subnets) {
    func::FuncOp function = subnet.function;
    for (Operation &op : function.getBody().front()) {
      if (needsKernel(&op)) {
        kernels.add(&op, kernelKey(&op, target));
      }
    }
  }
  KernelCache cache(options.cacheFolder.value_or(codegen::FileCache::defaultFolder()));
  auto emit = [this](Operation *op, StringRef symbol, KernelFrame &frame) { return emitKernel(op, symbol, frame); };
  auto compileOne = [&](Operation *op, StringRef symbol) { return compileKernel(op, target, symbol, emit); };
  if (failed(kernels.compile(cache, compileOne, observer.progress))) {
    return llvm::createStringError("failed to compile kernels");
  }
  program.memory.emplace_back();
  if (kernels.size()) {
    observer.begin("link");
    llvm::Expected<std::vector<char>> linked = link(kernels, target.pageBytes);
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

llvm::Error CpuChip::plan(const codegen::Subnet &subnet, const KernelSet &kernels, codegen::ConstantSection &constants,
                          TargetProgram &program) const {
  const Machine target = machine();
  SubnetProgram &result = program.subnets.emplace_back();
  result.subnet.kind = subnetKind(subnet.isWhole);
  result.subnet.isa = target.cpu;
  result.subnet.cpu_features = target.featureBits;
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

llvm::Expected<std::optional<TargetProgram>> CpuChip::compile(ArrayRef<codegen::Subnet> subnets,
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

} // namespace tessera::native
