//===- Deploy.cpp - Compiling NAME_top.mlir to a .bmodel ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Deploy.h"

#include "bmodel/properties.h"
#include "codegen/Partition/Outline.h"
#include "codegen/Pipelines/PlantFault.h"
#include "codegen/Pipelines/StagePlanner.h"
#include "codegen/Target/IrDump.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::codegen {

void buildLowering(OpPassManager &manager, const Target &first, const std::string &requantisation, bool instrument) {
  device::LoweringOptions options;
  options.requantisation = requantisation, options.instrument = instrument;
  device::buildLoweringPipeline(manager, options, [&](OpPassManager &functions) { first.addForms(functions); });
}

namespace {

/// Compiles one model from device ops on.
class Deployment {
public:
  Deployment(func::FuncOp function, const DeployOptions &options, const PhaseObserver &observer)
      : function(function), options(options), observer(observer) {}

  llvm::Error run(DeployResult &result);

private:
  llvm::Error compile(partition::Partition &partition, std::vector<InstrumentedTensor> &instrumented);
  llvm::Error outline(const partition::Partition &partition, std::vector<InstrumentedTensor> &instrumented);
  llvm::Expected<bool> compileTarget(uint32_t target, partition::Partition &partition);
  llvm::Error checkStrict(const partition::Partition &partition) const;
  llvm::Error writeDeviceMlir(const partition::Partition &partition);
  void fillResult(const partition::Partition &partition, const PlannedModel &planned, DeployResult &result) const;
  SubnetResult describe(const partition::Subnet &subnet, std::optional<double> seconds) const;
  bool hasChoice() const { return options.targets.size() > 1; }
  bool isOnlyReader() const;

  func::FuncOp function;
  const DeployOptions &options;
  const PhaseObserver &observer;
  std::vector<partition::Outlined> outlined;          ///< by subnet
  std::vector<std::optional<TargetProgram>> programs; ///< by target
};

/// Returns true if nothing reads the weights of the whole function once its only subnet is outlined: there is no other
/// target for which the function may be split again, and no result of the model is a constant.
bool Deployment::isOnlyReader() const {
  func::FuncOp whole = function;
  return !hasChoice() && llvm::none_of(whole.getBody().front().getTerminator()->getOperands(),
                                       [](Value result) { return bool(device::getConstantRoot(result)); });
}

/// Outlines each subnet as a function and runs the passes of its target on it.
llvm::Error Deployment::outline(const partition::Partition &partition, std::vector<InstrumentedTensor> &instrumented) {
  outlined.clear();
  for (const partition::Subnet &subnet : partition.subnets()) {
    partition::Outlined &each =
        outlined.emplace_back(partition::outline(function, subnet.ops, subnet.inputs, subnet.outputs));
    std::optional<top::SoleHolder> holder;
    if (isOnlyReader()) {
      holder.emplace(*each.module);
    }
    PassManager passes(function.getContext());
    watch(passes, options.targets[subnet.target]->name() + "-" + subnet.name, options.compile.observeIr);
    options.targets[subnet.target]->buildPasses(passes, options.compile);
    if (failed(passes.run(*each.module))) {
      std::string form = "for chip " + options.targets[subnet.target]->name();
      const std::string &plan = options.compile.plan; // may contain decisions that the target does not support
      return plan.empty()
                 ? llvm::createStringError("internal error: the model cannot be lowered " + form)
                 : llvm::createStringError("the model cannot be lowered " + form + " with the plan '" + plan + "'");
    }
    if (options.compile.instrument) {
      findSources(each.function, instrumented);
    }
  }
  return llvm::Error::success();
}

/// Compiles the subnets of a target. Returns false if the target rejected ops that the partition did not know of.
llvm::Expected<bool> Deployment::compileTarget(uint32_t target, partition::Partition &partition) {
  std::vector<Subnet> subnets;
  std::vector<const partition::Outlined *> sources;
  for (auto [subnet, each] : llvm::zip_equal(partition.subnets(), outlined)) {
    if (subnet.target == target) {
      subnets.push_back({subnet.name, each.function, partition.isWhole()});
      sources.push_back(&each);
    }
  }
  if (subnets.empty()) {
    return true;
  }
  std::vector<UnsupportedOp> unsupportedOps;
  auto program = options.targets[target]->compile(subnets, options.compile, observer, unsupportedOps);
  if (!program) {
    return program.takeError();
  }
  programs[target] = std::move(*program);
  if (programs[target]) {
    return true;
  }
  bool isNew = false;
  for (UnsupportedOp &unsupportedOp : unsupportedOps) {
    for (const partition::Outlined *source : unsupportedOp.op ? ArrayRef(sources) : ArrayRef(sources).take_front(0)) {
      if (source->function->isProperAncestor(unsupportedOp.op)) {
        Operation *op = partition::originOf(*source, unsupportedOp.op);
        isNew |= op && partition.reject(target, op, unsupportedOp.reason);
      }
    }
    if (!unsupportedOp.op) {
      function.emitError() << unsupportedOp.reason;
    }
  }
  return isNew ? llvm::Expected<bool>(false)
               : top::unsupported("chip '" + options.targets[target]->name() + "' cannot run the model");
}

llvm::Error Deployment::compile(partition::Partition &partition, std::vector<InstrumentedTensor> &instrumented) {
  for (bool done = false; !done;) {
    if (hasChoice()) {
      observer.begin("partition");
    }
    if (llvm::Error error = partition.decide()) {
      return error;
    }
    if (llvm::Error error = checkStrict(partition)) {
      return error;
    }
    if (llvm::Error error = outline(partition, instrumented)) {
      return error;
    }
    programs.clear();
    programs.resize(options.targets.size());
    done = true;
    for (uint32_t target = 0; done && target < options.targets.size(); ++target) {
      llvm::Expected<bool> compiled = compileTarget(target, partition);
      if (!compiled) {
        return compiled.takeError();
      }
      done = *compiled;
    }
  }
  return llvm::Error::success();
}

/// Returns an error like "'Softmax_7': has ...; 'TopK_9': ..." if --strict is set and ops do not run on the first
/// target.
llvm::Error Deployment::checkStrict(const partition::Partition &partition) const {
  if (!options.strict || partition.movedOps().empty()) {
    return llvm::Error::success();
  }
  std::string text;
  for (const partition::MovedOp &each : partition.movedOps()) {
    if (each.isUnsupported) {
      text += (text.empty() ? "'" : "; '") + top::getDisplayName(each.op->getLoc()) + "': " + each.reason;
    }
  }
  return top::unsupported("--strict: chip '" + options.targets.front()->name() +
                          "' cannot run the whole model: " + text);
}

llvm::Error Deployment::writeDeviceMlir(const partition::Partition &partition) {
  if (options.deviceMlir.empty()) {
    return llvm::Error::success();
  }
  if (partition.isWhole()) {
    return writeText(*outlined.front().module, options.deviceMlir);
  }
  // Write the whole function, because layouts and addresses differ from subnet to subnet.
  for (const partition::Subnet &subnet : partition.subnets()) {
    for (Operation *op : subnet.ops) {
      op->setAttr("device.subnet", StringAttr::get(function.getContext(), subnet.name));
    }
  }
  return writeText(function->getParentOfType<ModuleOp>(), options.deviceMlir);
}

SubnetResult Deployment::describe(const partition::Subnet &subnet, std::optional<double> seconds) const {
  SubnetResult result;
  result.name = subnet.name, result.target = subnet.target, result.seconds = seconds.value_or(subnet.seconds);
  for (Operation *op : subnet.ops) {
    result.ops += !isa<device::ReshapeOp>(op);
    result.macs += partition::countMacs(op);
  }
  auto isBetween = [](Value value) { return value.getDefiningOp() != nullptr; };
  for (Value value : llvm::make_filter_range(subnet.inputs, isBetween)) {
    result.inputBytes += uint64_t(device::physicalBytes(value));
  }
  for (Value value : subnet.outputs) {
    result.outputBytes += uint64_t(device::physicalBytes(value));
  }
  return result;
}

void Deployment::fillResult(const partition::Partition &partition, const PlannedModel &planned,
                            DeployResult &result) const {
  result.workspaceBytes = planned.workspaceBytes, result.workspaceLowerBound = planned.workspaceLowerBound;
  result.codeBytes = planned.bytesOf(bmodel::SegmentKind::Code);
  result.constantBytes = planned.bytesOf(bmodel::SegmentKind::Constants);
  std::vector<size_t> next(options.targets.size());
  for (auto [number, subnet] : llvm::enumerate(partition.subnets())) {
    const TargetProgram &program = *planned.programs[subnet.target];
    result.subnets.push_back(describe(subnet, program.subnets[next[subnet.target]++].seconds));
    result.transferredBytes += result.subnets.back().inputBytes;
    result.handOverSeconds += partition.handOverSeconds(number);
    for (const partition::MovedOp &moved : partition.movedOps()) {
      if (llvm::is_contained(subnet.ops, moved.op)) {
        result.movedOps.push_back({top::getDisplayName(moved.op->getLoc()), moved.op->getName().getStringRef().str(),
                                   moved.reason, subnet.name, moved.isUnsupported, partition::countMacs(moved.op)});
      }
    }
  }
  for (const std::optional<TargetProgram> &program : planned.programs) {
    for (const auto &[key, value] : program ? program->report : llvm::json::Object()) {
      result.report[key] = value;
    }
  }
}

llvm::Error Deployment::run(DeployResult &result) {
  if (hasChoice()) {
    observer.begin("survey");
  }
  std::optional<partition::Partition> partition(std::in_place, function, options.targets);
  if (llvm::Error error = compile(*partition, result.instrumented)) {
    return error;
  }
  if (llvm::Error error = writeDeviceMlir(*partition)) {
    return error;
  }
  observer.begin("write");
  llvm::Expected<PlannedModel> planned = planStage(function, *partition, std::move(programs));
  if (!planned) {
    return planned.takeError();
  }
  if (result.quantization) {
    addScales(*planned->model.nets.front()->stages.front(), *result.quantization);
  }
  addOutputOrigins(*planned->model.nets.front()->stages.front(), result.outputOrigins);
  result.exceptions = device::exceptionsOf(function);
  addExactness(planned->model, result.exceptions);
  if (options.compile.preserveLayers) {
    planned->model.properties.push_back(std::make_unique<bmodel::PropertyDefT>());
    planned->model.properties.back()->key = bmodel::kLayers, planned->model.properties.back()->value = "kept";
  }
  std::string message = bmodel::writeModel(planned->model, planned->segments, options.output);
  if (!message.empty()) {
    return llvm::createStringError("failed to write '" + options.output + "': " + message);
  }
  fillResult(*partition, *planned, result);
  return llvm::Error::success();
}

} // namespace

/// Returns an error if an input has a symbolic size and a target supports only numbers.
static llvm::Error checkSymbolicSizes(func::FuncOp function, ArrayRef<const Target *> targets) {
  const auto *unable = llvm::find_if(targets, [](const Target *each) { return !each->supportsSymbolicSizes(); });
  for (BlockArgument argument : function.getArguments()) {
    for (auto [dim, size] : llvm::enumerate(Shape(argument).dims())) {
      if (size.isSymbolic() && unable != targets.end()) {
        auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
        return top::unsupported("chip '" + (*unable)->name() + "' supports only sizes that are numbers, but dim " +
                                std::to_string(dim) + " of input '" + (name ? name.str() : "") + "' is " +
                                toText(size) +
                                "; fix it with model_transform --input_shapes, or give --dims a single "
                                "value");
      }
    }
  }
  return llvm::Error::success();
}

static std::string requantisationOf(const DeployOptions &options) {
  return options.requantisation.empty() ? options.targets.front()->requantisations().front() : options.requantisation;
}

/// Removes the quantize/dequantize pairs again and reports the rest of the model; for a model in |known| reports only
/// that.
static void instrument(func::FuncOp function, quant::StripQDQ &stripQDQ, ArrayRef<std::string> known,
                       DeployResult &result) {
  result.forms = stripQDQ.run();
  top::nameEveryTensor(function);
  if (result.quantization) {
    result.contents = top::hashContents(function->getParentOfType<ModuleOp>());
    result.isKnown = llvm::is_contained(known, result.contents);
  }
  if (!result.isKnown) {
    result.instrumented = listInstrumented(function);
    result.logits = listLogits(function);
  }
}

llvm::Expected<DeployResult> deploy(ModuleOp module, const DeployOptions &options, const PhaseObserver &observer) {
  llvm::Expected<func::FuncOp> function = deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  if (llvm::Error error = checkSymbolicSizes(*function, options.targets)) {
    return std::move(error);
  }
  std::optional<top::SoleHolder> holder(std::in_place, module);
  const IrObserver &observeIr = options.compile.observeIr;
  if (observeIr) {
    observeIr(module, "top");
  }
  quant::StripQDQ stripQDQ(*function);
  std::optional<Quantization> asked = options.quantization;
  if (asked) {
    asked->options.splitWeights = !options.compile.instrument;
  }
  DeployResult result;
  result.outputOrigins = listOutputOrigins(*function); // before quantisation puts ops behind them
  auto quantization = prepareModel(*function, asked, options.inputsOutputs, observer, observeIr);
  if (!quantization) {
    return quantization.takeError();
  }
  if (observeIr) {
    observeIr(module, "prepared");
  }
  result.quantization = std::move(*quantization);
  observer.begin("lower");
  if (options.compile.instrument) {
    instrument(*function, stripQDQ, options.known, result);
  }
  if (result.isKnown) {
    return result;
  }
  PassManager passes(module.getContext());
  watch(passes, "lower", observeIr);
  if (!result.quantization) { // a quantised model keeps its 16-bit floats
    passes.addPass(top::createWidenFloatsPass());
  }
  buildLowering(passes, *options.targets.front(), requantisationOf(options), options.compile.instrument);
  if (failed(passes.run(module))) {
    return llvm::createStringError("internal error: the model cannot be lowered to device operations");
  }
  top::dropUnheldWeights(module);
  if (options.compile.preserveLayers) {
    nameEveryLayer(*function);
  }
  if (llvm::Error error = options.onLowered ? options.onLowered(module) : llvm::Error::success()) {
    return std::move(error);
  }
  if (llvm::Error error = plantFault(*function)) { // after onLowered, whose output must stay correct
    return std::move(error);
  }
  holder.reset(); // subnets hold their own copies from here on
  if (llvm::Error error = Deployment(*function, options, observer).run(result)) {
    return std::move(error);
  }
  return result;
}

} // namespace tessera::codegen
