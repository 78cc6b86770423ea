//===- CudaFamily.cpp - NVIDIA's GPUs as targets --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/cuda/program.h"
#include "codegen/Cuda/CudaChip.h"
#include "codegen/Cuda/HostDevice.h"
#include "codegen/Cuda/SubnetEmitter.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::cuda {
namespace {

using codegen::Program;
using codegen::Refusal;

class CudaTarget final : public codegen::Target {
public:
  explicit CudaTarget(const CudaChip &chip) : chip(chip) {}

  StringRef family() const override { return "cuda"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT told;
    told.name = chip.name.str(), told.family = family().str(), told.memory = bmodel::MemoryKind::Device;
    return told;
  }

  bool runsHere() const override { return hasDevice(chip.computeCapability); }

  std::vector<std::string> requantisations() const override { return {"float", "fixed", "tflite"}; }

  std::vector<Refusal> survey(func::FuncOp function) const override {
    std::vector<Refusal> told;
    for (Operation &op : function.getBody().front()) {
      if (isa<device::DeviceDialect>(op.getDialect()) && !isa<kernels::KernelInterface, device::ReshapeOp>(op)) {
        told.push_back({&op, "has no kernel"});
      }
    }
    return told;
  }

  /// A roofline with what a launch within a graph costs.
  double secondsOf(Operation *op) const override {
    if (isa<device::ReshapeOp>(op)) {
      return 0;
    }
    double bytes = 0;
    for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults()))) {
      bytes += double(device::physicalBytes(cast<RankedTensorType>(value.getType())));
    }
    double flops = double(cast<device::WorkInterface>(op).countFlops());
    return 1e-6 + std::max(flops / chip.flops, bytes / chip.bandwidth);
  }
  /// PCI Express 4.0 with 16 lanes.
  double transferSeconds(int64_t bytes) const override { return double(bytes) / 25e9; }
  double handOverSeconds() const override { return 1e-5; }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &) const override {
    OpPassManager &functions = manager.nest<func::FuncOp>();
    functions.addPass(device::createAssignAddressesPass());
    functions.addPass(device::createVerifyAddressesPass());
  }

  llvm::Expected<std::optional<Program>> compile(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &,
                                                 const codegen::PhaseObserver &observer,
                                                 std::vector<Refusal> &) const override;

private:
  llvm::Expected<std::vector<char>> directoryOf(const PtxKernels &kernels, const std::string &ptx) const;

  CudaChip chip;
};

/// Directory, images and kernels, as bmodel/cuda/program.h has them.
llvm::Expected<std::vector<char>> CudaTarget::directoryOf(const PtxKernels &kernels, const std::string &ptx) const {
  std::vector<std::pair<bmodel::cuda::Image, std::string>> images;
  images.push_back({{chip.computeCapability, 0, 0, 0}, ptx + '\0'});
  if (chip.wantsMachineCode) {
    llvm::Expected<std::optional<std::string>> code = assemble(ptx, chip.computeCapability);
    if (!code) {
      return code.takeError();
    }
    if (*code) {
      images.push_back({{chip.computeCapability, 1, 0, 0}, std::move(**code)});
    }
  }
  std::string names;
  uint64_t tables = sizeof(bmodel::cuda::Directory) + images.size() * sizeof(bmodel::cuda::Image) +
                    kernels.size() * sizeof(bmodel::cuda::Kernel);
  std::vector<char> bytes;
  auto append = [&](const auto &value) {
    const auto *first = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  append(bmodel::cuda::Directory{bmodel::cuda::kMagic, bmodel::cuda::kVersion, uint32_t(images.size()),
                                 uint32_t(kernels.size())});
  std::vector<bmodel::cuda::Kernel> entries;
  for (size_t i = 0; i < kernels.size(); ++i) {
    entries.push_back({uint32_t(tables + names.size()), kernels[i].argumentCount()});
    names += kernels[i].frame.symbol + '\0';
  }
  uint64_t next = llvm::alignTo(tables + names.size(), 64);
  for (auto &[image, contents] : images) {
    image.offset = next, image.bytes = contents.size();
    append(image);
    next = llvm::alignTo(next + contents.size(), 64);
  }
  llvm::for_each(entries, append);
  bytes.insert(bytes.end(), names.begin(), names.end());
  for (const auto &[image, contents] : images) {
    bytes.resize(image.offset);
    bytes.insert(bytes.end(), contents.begin(), contents.end());
  }
  return bytes;
}

llvm::Expected<std::optional<Program>> CudaTarget::compile(ArrayRef<codegen::Subnet> subnets,
                                                           const codegen::CompileOptions &,
                                                           const codegen::PhaseObserver &observer,
                                                           std::vector<Refusal> &) const {
  std::optional<Program> program(std::in_place);
  PtxKernels kernels(chip.computeCapability);
  std::string ptx;
  {
    codegen::Phase phase(observer, "kernels");
    for (const codegen::Subnet &subnet : subnets) {
      func::FuncOp function = subnet.function;
      for (Operation &op : function.getBody().front().without_terminator()) {
        if (needsKernel(&op)) {
          kernels.add(&op);
        }
      }
    }
    llvm::Expected<std::string> compiled = kernels.compile(observer.progress);
    if (!compiled) {
      return compiled.takeError();
    }
    ptx = std::move(*compiled);
  }
  codegen::Phase phase(observer, "emit");
  llvm::Expected<std::vector<char>> directory = directoryOf(kernels, ptx);
  if (!directory) {
    return directory.takeError();
  }
  program->sections.emplace_back(bmodel::SegmentKind::Code);
  program->sections.emplace_back(bmodel::SegmentKind::Constants);
  program->memory.push_back(std::move(*directory));
  program->sections[kCode].append(program->memory.back());
  codegen::ConstantSection constants(*program, kConstants);
  size_t launches = 0;
  for (const codegen::Subnet &subnet : subnets) {
    if (llvm::Error error = emitSubnet(subnet, kernels, constants, *program)) {
      return std::move(error);
    }
    launches += program->subnets.back().ops;
  }
  program->report = llvm::json::Object{{"steps", int64_t(launches)}, {"kernels", int64_t(kernels.size())}};
  return program;
}

std::vector<std::string> chipNames() {
  std::vector<std::string> names;
  for (const CudaChip &chip : kChips) {
    names.push_back(chip.name.str());
  }
  return names;
}

llvm::Expected<std::unique_ptr<codegen::Target>> createChip(const codegen::ChipRequest &request) {
  return std::make_unique<CudaTarget>(
      *llvm::find_if(kChips, [&](const CudaChip &c) { return c.name == request.name; }));
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  kernels::registerKernels(registry);
}

} // namespace

extern const codegen::Family kFamily;
const codegen::Family kFamily = {.name = "cuda",
                                 .chips = chipNames,
                                 .isHost = false,
                                 .hasDescriptions = false,
                                 .flags = {},
                                 .create = createChip,
                                 .registerDialects = registerDialects,
                                 .registerPasses = [] {}};

} // namespace tessera::cuda
