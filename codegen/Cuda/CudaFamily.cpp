//===- CudaFamily.cpp - The target family of NVIDIA GPUs ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/cuda/program.h"
#include "codegen/Cuda/Contraction/TilePlan.h"
#include "codegen/Cuda/CostReport.h"
#include "codegen/Cuda/HostDevice.h"
#include "codegen/Cuda/PlanReport.h"
#include "codegen/Cuda/Stream/SubnetEmitter.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopShapeOps.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::cuda {
namespace {

using codegen::TargetProgram;
using codegen::UnsupportedOp;

class CudaTarget final : public codegen::Target {
public:
  CudaTarget(CudaChip chip, std::string description) : chip(std::move(chip)), description(std::move(description)) {}

  StringRef family() const override { return "cuda"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT result;
    result.name = chip.name, result.family = family().str(), result.memory = bmodel::MemoryKind::Device;
    result.description = description;
    return result;
  }

  bool runsHere() const override { return hasDevice(chip.computeCapability); }

  bool supportsSymbolicSizes() const override { return true; }
  bool canTune() const override { return true; }
  bool canRoundToTf32() const override { return true; }
  llvm::Error check(const codegen::CompileOptions &options) const override {
    codegen::CompileOptions others = options;
    if (!options.plan.empty()) {
      if (llvm::Expected<TilePlan> plan = readTilePlan(options.plan); !plan) {
        return plan.takeError();
      }
      others.plan.clear();
    }
    return Target::check(others);
  }
  std::vector<std::string> requantisations() const override { return {"float", "fixed", "tflite"}; }

  std::vector<UnsupportedOp> survey(func::FuncOp function) const override {
    std::vector<UnsupportedOp> unsupported = kernels::findOpsWithoutKernel(function, "CUDA");
    const auto computed = top::symbolsSetIn(function.getBody());
    for (Operation &op : function.getBody().front()) {
      // The op that reads a size has no result, so nothing would order it before a subnet of the GPU.
      bool takesComputed = llvm::any_of(
          kernels::symbolsOf(&op), [&](top::SizeSymbolAttr symbol) { return llvm::is_contained(computed, symbol); });
      if (isa<top::BindOp>(op) || takesComputed) {
        unsupported.push_back({&op, "has a size that the run computes, which only the host supports"});
      }
    }
    return unsupported;
  }

  double secondsOf(Operation *op) const override { return isa<device::ReshapeOp>(op) ? 0 : costOf(op, chip).seconds(); }
  double transferSeconds(int64_t bytes) const override { return double(bytes) / (chip.linkGbps * 1e9); }
  double handOverSeconds() const override { return chip.linkMicros * 1e-6; }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    OpPassManager &functions = manager.nest<func::FuncOp>();
    functions.addPass(createFuseAttentionPass());
    functions.addPass(device::createFuseEpiloguesPass({.intoRows = true}));
    functions.addPass(createAssignLayoutsPass());
    functions.addPass(device::createVerifyLayoutsPass());
    functions.addPass(createChooseTilesPass({.multiprocessors = chip.sms,
                                             .int8Rate = int64_t(chip.tensorInt8 * chip.mmaSync),
                                             .f16Rate = int64_t(chip.tensorF16 * chip.mmaSync),
                                             .tf32Rate = int64_t(chip.tensorTf32 * chip.mmaSync),
                                             .f32Rate = int64_t(chip.f32),
                                             .launchCycles = int64_t(chip.launchMicros * chip.clockGhz * 1e3),
                                             .candidates = int64_t(options.candidates),
                                             .tf32 = options.tf32}));
    functions.addPass(createFollowPlanPass({.plan = options.plan}));
    functions.addPass(createPackWeightsPass());
    functions.addPass(device::createAssignAddressesPass());
    functions.addPass(device::createVerifyAddressesPass());
  }

  llvm::Expected<std::optional<TargetProgram>> compile(ArrayRef<codegen::Subnet> subnets,
                                                       const codegen::CompileOptions &,
                                                       const codegen::PhaseObserver &observer,
                                                       std::vector<UnsupportedOp> &) const override;

private:
  llvm::Expected<std::vector<char>> directoryOf(const PtxKernels &kernels, const std::string &ptx,
                                                codegen::FileCache &cache) const;

  CudaChip chip;
  std::string description; ///< the JSON description of |chip|
};

/// Returns the code segment: directory, images and kernels as bmodel/cuda/program.h defines them.
llvm::Expected<std::vector<char>> CudaTarget::directoryOf(const PtxKernels &kernels, const std::string &ptx,
                                                          codegen::FileCache &cache) const {
  std::vector<std::pair<bmodel::cuda::Image, std::string>> images;
  images.push_back({{chip.computeCapability, 0, 0, 0}, ptx + '\0'});
  if (chip.machineCode) {
    llvm::Expected<std::optional<std::string>> code = assemble(ptx, chip.computeCapability, cache);
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
  append(bmodel::cuda::Directory{bmodel::cuda::kMagic,
                                 kernels.takeSizes() ? bmodel::cuda::kVersionSizes : bmodel::cuda::kVersion,
                                 uint32_t(images.size()), uint32_t(kernels.size())});
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

/// Adds the report as a blob of the file, for `model_tool perf`.
void addReport(const llvm::json::Object &report, TargetProgram &program) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object(report));
  program.memory.emplace_back(text.begin(), text.end());
  program.sections.emplace_back(bmodel::SegmentKind::Blob);
  program.sections[kReport].append(program.memory.back());
  program.blobs.emplace_back(kReportBlob.str(), kReport);
}

llvm::Expected<std::optional<TargetProgram>> CudaTarget::compile(ArrayRef<codegen::Subnet> subnets,
                                                                 const codegen::CompileOptions &options,
                                                                 const codegen::PhaseObserver &observer,
                                                                 std::vector<UnsupportedOp> &) const {
  std::optional<TargetProgram> program(std::in_place);
  PtxKernels kernels(chip.computeCapability);
  observer.begin("kernels");
  for (const codegen::Subnet &subnet : subnets) {
    func::FuncOp function = subnet.function;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (kernels::needsKernel(&op)) {
        kernels.add(&op);
      }
    }
  }
  kernels::KernelCache cache(options.cacheFolder.value_or(codegen::FileCache::defaultFolder()));
  llvm::Expected<std::string> compiled = kernels.compile(cache, observer.progress);
  if (!compiled) {
    return compiled.takeError();
  }
  observer.begin("emit");
  const bool isTold = !cache.fault().empty();
  llvm::Expected<llvm::json::Object> plan = planReport(subnets, options, cache.fileCache());
  if (!plan) {
    return plan.takeError();
  }
  llvm::Expected<std::vector<char>> directory = directoryOf(kernels, *compiled, cache.fileCache());
  if (!directory) {
    return directory.takeError();
  }
  if (std::string fault = cache.fault(); !isTold && !fault.empty() && !subnets.empty()) {
    emitWarning(UnknownLoc::get(mlir::func::FuncOp(subnets.front().function).getContext())) << fault;
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
    program->subnets.back().seconds = cuda::secondsOf(subnet, chip);
    launches += program->subnets.back().ops;
  }
  llvm::json::Object report = costReport(subnets, kernels, chip);
  addReport(report, *program);
  if (!options.layers) {
    report.erase("layers");
  }
  program->report = llvm::json::Object{{"steps", int64_t(launches)},
                                       {"kernels", int64_t(kernels.size())},
                                       {"cache_hits", int64_t(kernels.cacheHits())},
                                       {"plan", std::move(*plan)},
                                       {"estimate", std::move(report)}};
  return program;
}

llvm::Expected<std::unique_ptr<codegen::Target>> createChip(const codegen::ChipRequest &request) {
  std::string description = findBuiltinChip(request.name).value_or(request.description), error;
  for (const std::string &assignment : request.fields) {
    if (!bmodel::setChipField(description, assignment, chipFields(), error)) {
      return llvm::make_error<codegen::UsageError>("--chip-set " + error);
    }
  }
  llvm::Expected<CudaChip> chip = parseChip(description, request.name);
  if (!chip) {
    std::string text = llvm::toString(chip.takeError());
    return request.fields.empty() ? llvm::createStringError(text) : llvm::make_error<codegen::UsageError>(text);
  }
  return std::make_unique<CudaTarget>(std::move(*chip), std::move(description));
}

constexpr StringRef kFlags[] = {"chip_set", "tf32", "plan", "plan_out", "tune", "buckets", "beyond_buckets"};

void registerDialects(DialectRegistry &registry) {
  registry.insert<CudaDialect, device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  kernels::registerKernels(registry);
}

} // namespace

extern const codegen::Family kFamily;
const codegen::Family kFamily = {.name = "cuda",
                                 .chips = builtinChips,
                                 .isHost = false,
                                 .hasDescriptions = true,
                                 .flags = kFlags,
                                 .create = createChip,
                                 .registerDialects = registerDialects,
                                 .registerPasses = [] { registerCudaTransformsPasses(); }};

} // namespace tessera::cuda
