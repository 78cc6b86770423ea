//===- NpuDeploy.cpp - From NAME_top.mlir to a .bmodel for an NPU ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/NpuDeploy.h"

#include "codegen/Npu/Stream.h"
#include "codegen/Partition/Partition.h"
#include "codegen/Pipelines/MixedPlan.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::codegen {
namespace {

constexpr uint32_t kCodeSegment = 0, kConstantsSegment = 1;

bmodel::ChipDefT describeChip(const NpuDeployOptions &options) {
  bmodel::ChipDefT chip;
  chip.name = options.chip.name, chip.family = "npu", chip.description = options.description;
  chip.fingerprint = hw::fingerprint(options.chip);
  return chip;
}

/// Makes the file's structure of a program that is a whole model.
class NpuPlanner {
public:
  NpuPlanner(func::FuncOp function, const NpuDeployOptions &options, const npu::NpuProgram &program)
      : function(function), options(options), program(program) {}

  llvm::Expected<bmodel::ModelDefT> plan() {
    createFrame();
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (llvm::Error error = addPort(i, false)) {
        return std::move(error);
      }
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (llvm::Error error = addPort(i, true)) {
        return std::move(error);
      }
    }
    auto step = std::make_unique<bmodel::StepDefT>();
    bmodel::RunStreamDefT stream;
    stream.bytes = program.commands.size() * hw::kDescriptorBytes;
    step->op.Set(std::move(stream));
    step->writes = stage->outputs;
    step->debug = std::make_unique<bmodel::StepDebugDefT>();
    step->debug->onnx_nodes = program.layers; // entry i: of the commands of layer i
    step->debug->device_op = "npu stream of " + std::to_string(program.commands.size()) + " commands";
    stage->subnets.back()->plan.push_back(std::move(step));
    return std::move(model);
  }

private:
  void createFrame() {
    auto module = function->getParentOfType<ModuleOp>();
    auto name = module->getAttrOfType<StringAttr>(top::TopDialect::kModelNameAttr);
    model.name = name && !name.getValue().empty() ? name.str() : "model";
    model.producer = "tessera " TESSERA_VERSION;
    model.chips.push_back(std::make_unique<bmodel::ChipDefT>(describeChip(options)));
    auto net = std::make_unique<bmodel::NetDefT>();
    net->name = model.name;
    net->stages.push_back(std::make_unique<bmodel::StageDefT>());
    stage = net->stages.back().get();
    stage->name = "static";
    auto workspace = std::make_unique<bmodel::WorkspaceDefT>();
    workspace->bytes = program.sizes.workspace;
    workspace->lower_bound = program.workspaceLowerBound;
    stage->workspaces.push_back(std::move(workspace));
    auto subnet = std::make_unique<bmodel::SubnetDefT>();
    subnet->name = "main", subnet->kind = bmodel::SubnetKind::Npu, subnet->isa = options.chip.name;
    subnet->kernel_abi = hw::kIsaVersion, subnet->code_segment = int32_t(kCodeSegment);
    stage->subnets.push_back(std::move(subnet));
    model.nets.push_back(std::move(net));
  }

  llvm::Error addPort(unsigned index, bool isOutput) {
    auto text = [&](StringRef attribute) {
      auto found = isOutput ? function.getResultAttrOfType<StringAttr>(index, attribute)
                            : function.getArgAttrOfType<StringAttr>(index, attribute);
      return found ? found.str() : std::string();
    };
    std::string name = text(top::TopDialect::kNameAttr);
    auto type =
        cast<RankedTensorType>(isOutput ? function.getResultTypes()[index] : function.getArgumentTypes()[index]);
    std::optional<bmodel::DType> dtype = dtypeOf(type.getElementType());
    if (!dtype) {
      return top::unsupported("'" + name + "' has a type that no model holds");
    }
    uint32_t slot = bmodel::addTensor(*stage, name, *dtype, type.getShape());
    bmodel::TensorDefT &tensor = *stage->tensors[slot];
    tensor.role = isOutput ? bmodel::TensorRole::Output : bmodel::TensorRole::Input;
    tensor.place = bmodel::Place::Caller;
    tensor.bytes = uint64_t(device::physicalBytes(type));
    tensor.onnx_names = {name};
    if (!isOutput) {
      tensor.preprocess = text(top::TopDialect::kPreprocessAttr);
    }
    (isOutput ? stage->outputs : stage->inputs).push_back(slot);
    return llvm::Error::success();
  }

  func::FuncOp function;
  const NpuDeployOptions &options;
  const npu::NpuProgram &program;
  bmodel::ModelDefT model;
  bmodel::StageDefT *stage = nullptr;
};

hw::Report estimate(const npu::NpuProgram &program, const hw::Chip &chip) {
  std::vector<hw::Cost> costs;
  for (const hw::Descriptor &command : program.commands) {
    costs.push_back(hw::costOf(command, chip));
  }
  const hw::Descriptor *commands = program.commands.data();
  std::vector<hw::Span> spans = hw::schedule(commands, costs.data(), costs.size(), chip);
  return hw::reportOf(commands, costs.data(), spans.data(), costs.size(), program.sizes.inputs);
}

/// The way of one model: cut into subnets, each compiled, and written.
class Deployment {
public:
  Deployment(func::FuncOp function, const NpuDeployOptions &options, const PhaseObserver &observer)
      : function(function), options(options), observer(observer), kernels(options.host) {}

  llvm::Error run(NpuDeployResult &result);

private:
  llvm::Error compileSubnets(partition::Partition &partition);
  FailureOr<bool> emitStreams(partition::Partition &partition);
  llvm::Error compileHost();
  llvm::Error checkPlan() const;
  llvm::Error unknownLayer(uint32_t layer) const;
  llvm::Error checkStrict(const partition::Partition &partition) const;
  llvm::Error writeDeviceMlir(const partition::Partition &partition);
  llvm::Expected<PlannedModel> plan(const partition::Partition &partition);
  void tell(const partition::Partition &partition, NpuDeployResult &result) const;
  void tellStream(const npu::NpuProgram &program, NpuDeployResult &result) const;
  bool isWhole() const { return compiled.size() == 1 && !compiled.front().subnet->onHost; }

  func::FuncOp function;
  const NpuDeployOptions &options;
  const PhaseObserver &observer;
  std::vector<CompiledSubnet> compiled;
  npu::Constants constants;
  KernelSet kernels;
  std::vector<char> hostCode;
  uint32_t layers = 0;   ///< of the streams so far
  std::string planFault; ///< why options.plan cannot be followed
};

/// Streams of all subnets of the NPU; false where the chip refuses more than was known.
FailureOr<bool> Deployment::emitStreams(partition::Partition &partition) {
  compiled.clear();
  constants = {};
  layers = 0;
  for (const partition::Subnet &subnet : partition.subnets()) {
    CompiledSubnet &each = compiled.emplace_back();
    each.subnet = &subnet;
    SmallVector<Value> inputs = subnet.inputs, outputs = subnet.outputs;
    if (!subnet.onHost && partition.subnets().size() == 1) { // the whole model, with its own inputs and outputs
      inputs.assign(function.getArguments().begin(), function.getArguments().end());
      outputs = llvm::to_vector(function.getBody().front().getTerminator()->getOperands());
    }
    each.outlined = partition::outline(function, subnet.ops, inputs, outputs);
    if (subnet.onHost) {
      continue;
    }
    PassManager passes(function.getContext());
    npu::buildAddresses(passes);
    if (failed(passes.run(*each.outlined.module))) {
      return failure();
    }
    std::vector<npu::Refusal> refusals;
    auto progress = [&](size_t done, size_t total, size_t part, size_t parts) {
      observer.progress({done, total, part, parts});
    };
    FailureOr<npu::NpuProgram> program = npu::emitProgram(
        each.outlined.function, options.chip, {options.opt, options.plan, layers, progress}, constants, refusals);
    if (succeeded(program)) {
      layers += uint32_t(program->layers.size());
      each.program = std::move(*program);
      continue;
    }
    bool isNew = false;
    for (npu::Refusal &refusal : refusals) {
      Operation *op = refusal.op ? partition::originOf(each.outlined, refusal.op) : nullptr;
      isNew |= op && partition.refuse(op, refusal.reason);
      if (refusal.ofPlan) {
        planFault = refusal.reason;
      } else if (!op) {
        function.emitError() << refusal.reason;
      }
    }
    if (!isNew) {
      return failure();
    }
    return false;
  }
  return true;
}

llvm::Error Deployment::compileSubnets(partition::Partition &partition) {
  while (true) {
    observer.begin("partition");
    partition.decide();
    observer.end();
    if (llvm::Error error = checkStrict(partition)) {
      return error;
    }
    observer.begin("emit");
    FailureOr<bool> done = emitStreams(partition);
    observer.end();
    if (!planFault.empty()) {
      return llvm::createStringError(planFault);
    }
    if (failed(done)) {
      return top::unsupported("chip '" + options.chip.name + "' cannot run the model");
    }
    if (*done) {
      llvm::Error error = checkPlan();
      return error ? std::move(error) : compileHost();
    }
  }
}

/// Of decisions that no stream has taken.
llvm::Error Deployment::checkPlan() const {
  if (options.plan) {
    for (const npu::Decisions::Stay &stay : options.plan->whole) {
      if (stay.first >= layers) {
        return unknownLayer(stay.first);
      }
    }
    for (const npu::Decisions::Group &group : options.plan->groups) {
      if (group.first >= layers) {
        return unknownLayer(group.first);
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error Deployment::unknownLayer(uint32_t layer) const {
  return llvm::createStringError("the plan names layer " + llvm::Twine(layer) + ", but the model has " +
                                 llvm::Twine(layers) + " layers on the NPU");
}

llvm::Error Deployment::compileHost() {
  for (CompiledSubnet &each : compiled) {
    if (!each.subnet->onHost) {
      continue;
    }
    PassManager passes(function.getContext());
    x86::buildPlacementPipeline(passes, options.host);
    if (failed(passes.run(*each.outlined.module))) {
      return llvm::createStringError("failed to lower what runs on the host");
    }
    for (Operation &op : each.outlined.function.getBody().front()) {
      if (needsKernel(&op)) {
        kernels.add(&op);
      }
    }
  }
  if (!kernels.size()) {
    return llvm::Error::success();
  }
  Phase phase(observer, "kernels");
  x86::KernelCache cache(options.cacheFolder);
  if (failed(kernels.compile(cache, observer.progress))) {
    return llvm::createStringError("failed to compile kernels");
  }
  llvm::Expected<std::vector<char>> linked = kernels.link();
  if (!linked) {
    return linked.takeError();
  }
  hostCode = std::move(*linked);
  return llvm::Error::success();
}

/// "'Softmax_7': has ...; 'TopK_9': ..."
llvm::Error Deployment::checkStrict(const partition::Partition &partition) const {
  if (!options.strict || partition.hostOps().empty()) {
    return llvm::Error::success();
  }
  std::string text;
  for (const partition::HostOp &each : partition.hostOps()) {
    if (each.isRefused) {
      text += (text.empty() ? "'" : "; '") + top::getDisplayName(each.op->getLoc()) + "': " + each.reason;
    }
  }
  return top::unsupported("--strict: chip '" + options.chip.name + "' cannot run the whole model: " + text);
}

llvm::Error Deployment::writeDeviceMlir(const partition::Partition &partition) {
  if (options.deviceMlir.empty()) {
    return llvm::Error::success();
  }
  if (isWhole()) {
    return writeText(*compiled.front().outlined.module, options.deviceMlir);
  }
  // The whole function, for layouts and addresses differ from subnet to subnet.
  for (const partition::Subnet &subnet : partition.subnets()) {
    for (Operation *op : subnet.ops) {
      op->setAttr("device.subnet", StringAttr::get(function.getContext(), subnet.name));
    }
  }
  return writeText(function->getParentOfType<ModuleOp>(), options.deviceMlir);
}

llvm::Expected<PlannedModel> Deployment::plan(const partition::Partition &partition) {
  if (!isWhole()) {
    return planMixed({.function = function,
                      .subnets = compiled,
                      .hostOps = partition.hostOps(),
                      .chip = describeChip(options),
                      .host = options.host,
                      .kernels = kernels,
                      .hostCode = std::move(hostCode),
                      .constants = constants});
  }
  const npu::NpuProgram &program = compiled.front().program;
  llvm::Expected<bmodel::ModelDefT> model = NpuPlanner(function, options, program).plan();
  if (!model) {
    return model.takeError();
  }
  PlannedModel planned;
  planned.model = std::move(*model);
  addStreamConstants(*planned.model.nets.front()->stages.front(), kConstantsSegment, constants);
  planned.segments.emplace_back(bmodel::SegmentKind::Code);
  planned.segments.emplace_back(bmodel::SegmentKind::Constants);
  planned.segments[0].append(
      {reinterpret_cast<const char *>(program.commands.data()), program.commands.size() * hw::kDescriptorBytes});
  planned.segments[1].append({constants.bytes.data(), constants.bytes.size()});
  planned.workspaceBytes = program.sizes.workspace, planned.workspaceLowerBound = program.workspaceLowerBound;
  return planned;
}

/// Layers of the model are those of its streams, one behind another.
void Deployment::tellStream(const npu::NpuProgram &program, NpuDeployResult &result) const {
  auto first = uint32_t(result.layers.size());
  result.plan.append(program.decisions, first);
  result.layers.insert(result.layers.end(), program.layers.begin(), program.layers.end());
  result.commands += program.commands.size(), result.localPeak = std::max(result.localPeak, program.localPeak);
  hw::append(result.report, estimate(program, options.chip), first);
}

void Deployment::tell(const partition::Partition &partition, NpuDeployResult &result) const {
  for (const CompiledSubnet &each : compiled) {
    const partition::Subnet &subnet = *each.subnet;
    SubnetResult &told = result.subnets.emplace_back();
    told.name = subnet.name, told.onHost = subnet.onHost, told.seconds = subnet.seconds;
    if (!subnet.onHost) {
      double before = result.report.cycles;
      tellStream(each.program, result);
      told.seconds = options.chip.secondsOf(result.report.cycles - before);
    }
    for (Operation *op : subnet.ops) {
      told.ops += !isa<device::ReshapeOp>(op);
      told.products += partition::countProducts(op);
    }
    auto isBetween = [](Value value) { return value.getDefiningOp() != nullptr; };
    for (Value value : llvm::make_filter_range(subnet.inputs, isBetween)) {
      told.inputBytes += uint64_t(partition::bytesOf(value));
    }
    for (Value value : subnet.outputs) {
      told.outputBytes += uint64_t(partition::bytesOf(value));
    }
    result.transferredBytes += told.inputBytes;
    for (const partition::HostOp &op : partition.hostOps()) {
      if (llvm::is_contained(subnet.ops, op.op)) {
        result.hostOps.push_back({top::getDisplayName(op.op->getLoc()), op.op->getName().getStringRef().str(),
                                  op.reason, subnet.name, op.isRefused, partition::countProducts(op.op)});
      }
    }
  }
  result.handOverSeconds = partition::HostModel().handOver * double(std::max<size_t>(compiled.size(), 1) - 1);
}

llvm::Error Deployment::run(NpuDeployResult &result) {
  observer.begin("survey");
  partition::Partition partition(function, options.chip);
  observer.end();
  if (partition.refusedChip()) {
    return top::unsupported(*partition.refusedChip());
  }
  if (llvm::Error error = compileSubnets(partition)) {
    return error;
  }
  if (llvm::Error error = writeDeviceMlir(partition)) {
    return error;
  }
  Phase phase(observer, "write");
  llvm::Expected<PlannedModel> planned = plan(partition);
  if (!planned) {
    return planned.takeError();
  }
  if (result.quantization) {
    addScales(*planned->model.nets.front()->stages.front(), *result.quantization);
  }
  result.exceptions = device::exceptionsOf(function);
  addExactness(planned->model, result.exceptions);
  std::string message = bmodel::writeModel(planned->model, planned->segments, options.output);
  if (!message.empty()) {
    return llvm::createStringError("failed to write '" + options.output + "': " + message);
  }
  result.workspaceBytes = planned->workspaceBytes, result.workspaceLowerBound = planned->workspaceLowerBound;
  for (const bmodel::SegmentContents &segment : planned->segments) {
    (segment.getKind() == bmodel::SegmentKind::Code ? result.codeBytes : result.constantBytes) += segment.getBytes();
  }
  tell(partition, result);
  return llvm::Error::success();
}

} // namespace

std::optional<std::string> findNpuChip(StringRef name) {
  static const std::pair<StringRef, StringRef> chips[] = {
#include "NpuChips.inc"
  };
  for (const auto &[known, text] : chips) {
    if (known == name) {
      return text.str();
    }
  }
  return std::nullopt;
}

llvm::Expected<NpuDeployResult> deployNpu(ModuleOp module, const NpuDeployOptions &options,
                                          const PhaseObserver &observer) {
  llvm::Expected<func::FuncOp> function = deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  auto quantization = prepareModel(*function, options.quantization, options.inputsOutputs, observer);
  if (!quantization) {
    return quantization.takeError();
  }
  NpuDeployResult result;
  result.quantization = std::move(*quantization);
  {
    Phase phase(observer, "lower");
    PassManager passes(module.getContext());
    if (!result.quantization) { // else the narrow floats there are, are wanted
      passes.addPass(top::createWidenFloatsPass());
    }
    npu::buildLowering(passes, options.chip.requantise);
    if (failed(passes.run(module))) {
      return llvm::createStringError("failed to lower the model to device operations");
    }
  }
  if (llvm::Error error = Deployment(*function, options, observer).run(result)) {
    return std::move(error);
  }
  return result;
}

} // namespace tessera::codegen
