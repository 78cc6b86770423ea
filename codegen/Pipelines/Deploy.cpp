//===- Deploy.cpp - Compiling NAME_top.mlir to a .bmodel ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Deploy.h"

#include "bmodel/properties.h"
#include "codegen/Partition/Outline.h"
#include "codegen/Pipelines/Parts.h"
#include "codegen/Pipelines/PlantFault.h"
#include "codegen/Pipelines/StagePlanner.h"
#include "codegen/Target/IrDump.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include <deque>

using namespace mlir;

namespace tessera::codegen {

/// Returns true if states can grow on |target|: it appends to them in the host's memory, where they are.
static bool canGrowStates(const Target &target) {
  return target.supportsSymbolicSizes() && target.describe().memory == bmodel::MemoryKind::Host;
}

void buildLowering(OpPassManager &manager, const Target &first, const std::string &requantisation, bool instrument) {
  device::LoweringOptions options;
  options.requantisation = requantisation, options.instrument = instrument;
  options.updateStates = canGrowStates(first);
  device::buildLoweringPipeline(manager, options, [&](OpPassManager &functions) { first.addForms(functions); });
}

namespace {

/// A part with its split into subnets.
struct SplitPart {
  SplitPart(const ModelPart &part, partition::Partition::Targets targets)
      : partition(part.function, targets), planned{part.name, part.function, &partition} {}
  SplitPart(const SplitPart &) = delete;
  SplitPart &operator=(const SplitPart &) = delete;

  partition::Partition partition;
  PlannedPart planned;
  std::vector<partition::Outlined> outlined; ///< by subnet
};

/// Compiles one model from device ops on.
class Deployment {
public:
  Deployment(func::FuncOp function, ArrayRef<ModelPart> parts, const DeployOptions &options,
             const PhaseObserver &observer);

  llvm::Error run(DeployResult &result);

private:
  llvm::Error compile(std::vector<InstrumentedTensor> &instrumented);
  llvm::Error outline(SplitPart &part, std::vector<InstrumentedTensor> &instrumented);
  llvm::Expected<bool> compileTarget(uint32_t target);
  llvm::Error checkStrict(const partition::Partition &partition) const;
  llvm::Error writeDeviceMlir();
  void fillResult(ArrayRef<PlannedPart> planned, const PlannedModel &model, DeployResult &result) const;
  SubnetResult describe(const partition::Subnet &subnet, std::string name, std::optional<double> seconds) const;
  std::optional<std::vector<std::string>> findExceptions() const;
  bool hasChoice() const { return options.targets.size() > 1; }
  bool isOnlyReader() const;
  /// Returns true if the first target runs the model in one subnet.
  bool isWhole() const { return parts.size() == 1 && parts.front().partition.isWhole(); }

  func::FuncOp function;
  const DeployOptions &options;
  const PhaseObserver &observer;
  std::deque<SplitPart> parts;
  std::vector<std::optional<TargetProgram>> programs; ///< by target
};

Deployment::Deployment(func::FuncOp function, ArrayRef<ModelPart> parts, const DeployOptions &options,
                       const PhaseObserver &observer)
    : function(function), options(options), observer(observer) {
  if (hasChoice()) {
    observer.begin("survey");
  }
  for (const ModelPart &part : parts) {
    this->parts.emplace_back(part, options.targets);
  }
}

/// Returns true if nothing reads the weights of the whole function once its only subnet is outlined: there is no other
/// target for which the function may be split again, and no result of the model is a constant.
bool Deployment::isOnlyReader() const {
  func::FuncOp whole = function;
  return !hasChoice() && parts.size() == 1 &&
         llvm::none_of(whole.getBody().front().getTerminator()->getOperands(),
                       [](Value result) { return bool(device::getConstantRoot(result)); });
}

/// Outlines each subnet of a part as a function and runs the passes of its target on it.
llvm::Error Deployment::outline(SplitPart &part, std::vector<InstrumentedTensor> &instrumented) {
  part.outlined.clear();
  for (const partition::Subnet &subnet : part.partition.subnets()) {
    partition::Outlined &each = part.outlined.emplace_back(
        partition::outline(part.planned.function, subnet.ops, subnet.inputs, subnet.outputs));
    std::optional<top::SoleHolder> holder;
    if (isOnlyReader()) {
      holder.emplace(*each.module);
    }
    PassManager passes(function.getContext());
    watch(passes, options.targets[subnet.target]->name() + "-" + part.planned.nameOf(subnet),
          options.compile.observeIr);
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

/// Compiles the subnets of a target. Returns false if the target rejected ops that the partitions did not know of.
llvm::Expected<bool> Deployment::compileTarget(uint32_t target) {
  std::vector<Subnet> subnets;
  std::vector<std::pair<partition::Partition *, const partition::Outlined *>> sources;
  for (SplitPart &part : parts) {
    for (auto [subnet, each] : llvm::zip_equal(part.partition.subnets(), part.outlined)) {
      if (subnet.target == target) {
        subnets.push_back({part.planned.nameOf(subnet), each.function, isWhole()});
        sources.emplace_back(&part.partition, &each);
      }
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
    for (auto [partition, source] : unsupportedOp.op ? ArrayRef(sources) : ArrayRef(sources).take_front(0)) {
      if (source->function->isProperAncestor(unsupportedOp.op)) {
        Operation *op = partition::originOf(*source, unsupportedOp.op);
        isNew |= op && partition->reject(target, op, unsupportedOp.reason);
      }
    }
    if (!unsupportedOp.op) {
      function.emitError() << unsupportedOp.reason;
    }
  }
  return isNew ? llvm::Expected<bool>(false)
               : top::unsupported("chip '" + options.targets[target]->name() + "' cannot run the model");
}

llvm::Error Deployment::compile(std::vector<InstrumentedTensor> &instrumented) {
  for (bool done = false; !done;) {
    if (hasChoice()) {
      observer.begin("partition");
    }
    for (SplitPart &part : parts) {
      if (llvm::Error error = part.partition.decide()) {
        return error;
      }
      if (llvm::Error error = checkStrict(part.partition)) {
        return error;
      }
      if (llvm::Error error = outline(part, instrumented)) {
        return error;
      }
    }
    programs.clear();
    programs.resize(options.targets.size());
    done = true;
    for (uint32_t target = 0; done && target < options.targets.size(); ++target) {
      llvm::Expected<bool> compiled = compileTarget(target);
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

llvm::Error Deployment::writeDeviceMlir() {
  if (options.deviceMlir.empty()) {
    return llvm::Error::success();
  }
  if (isWhole()) {
    return writeText(*parts.front().outlined.front().module, options.deviceMlir);
  }
  // Write the whole functions, because layouts and addresses differ from subnet to subnet.
  OwningOpRef<ModuleOp> several;
  for (SplitPart &part : parts) {
    for (const partition::Subnet &subnet : part.partition.subnets()) {
      for (Operation *op : subnet.ops) {
        op->setAttr("device.subnet", StringAttr::get(function.getContext(), part.planned.nameOf(subnet)));
      }
    }
    if (part.planned.function != function) {
      several = several ? std::move(several) : OwningOpRef<ModuleOp>(ModuleOp::create(function.getLoc()));
      func::FuncOp copy = part.planned.function.clone();
      copy.setName(part.planned.name);
      several->push_back(copy);
    }
  }
  if (several) {
    several->push_back(function.clone());
  }
  return writeText(several ? *several : function->getParentOfType<ModuleOp>(), options.deviceMlir);
}

SubnetResult Deployment::describe(const partition::Subnet &subnet, std::string name,
                                  std::optional<double> seconds) const {
  SubnetResult result;
  result.name = std::move(name), result.target = subnet.target, result.seconds = seconds.value_or(subnet.seconds);
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

void Deployment::fillResult(ArrayRef<PlannedPart> planned, const PlannedModel &model, DeployResult &result) const {
  result.workspaceBytes = model.workspaceBytes, result.workspaceLowerBound = model.workspaceLowerBound;
  result.codeBytes = model.bytesOf(bmodel::SegmentKind::Code);
  result.constantBytes = model.bytesOf(bmodel::SegmentKind::Constants);
  for (const PlannedPart &part : planned) {
    for (auto [number, subnet] : llvm::enumerate(part.partition->subnets())) {
      const TargetProgram &program = *model.programs[subnet.target];
      result.subnets.push_back(describe(subnet, part.nameOf(subnet), program.subnets[part.programs[number]].seconds));
      result.transferredBytes += result.subnets.back().inputBytes;
      result.handOverSeconds += part.partition->handOverSeconds(number);
      for (const partition::MovedOp &moved : part.partition->movedOps()) {
        if (llvm::is_contained(subnet.ops, moved.op)) {
          result.movedOps.push_back({top::getDisplayName(moved.op->getLoc()), moved.op->getName().getStringRef().str(),
                                     moved.reason, part.nameOf(subnet), moved.isUnsupported,
                                     partition::countMacs(moved.op)});
        }
      }
    }
  }
  for (const std::optional<TargetProgram> &program : model.programs) {
    for (const auto &[key, value] : program ? program->report : llvm::json::Object()) {
      result.report[key] = value;
    }
  }
}

/// Returns the nodes whose bits may differ between engines; nothing if a part does not promise equal bits.
std::optional<std::vector<std::string>> Deployment::findExceptions() const {
  std::optional<std::vector<std::string>> found(std::in_place);
  for (const SplitPart &part : parts) {
    std::optional<std::vector<std::string>> some = device::exceptionsOf(part.planned.function);
    if (!some) {
      return std::nullopt;
    }
    llvm::append_range(*found, *some);
  }
  return found;
}

llvm::Error Deployment::run(DeployResult &result) {
  if (llvm::Error error = compile(result.instrumented)) {
    return error;
  }
  if (llvm::Error error = writeDeviceMlir()) {
    return error;
  }
  observer.begin("write");
  auto plannedParts = llvm::map_to_vector(parts, [](const SplitPart &part) { return part.planned; });
  numberPrograms(plannedParts);
  llvm::Expected<PlannedModel> planned =
      planStage(function, plannedParts, options.targets, std::move(programs), options.compile.instrument);
  if (!planned) {
    return planned.takeError();
  }
  if (result.quantization) {
    addScales(*planned->model.nets.front()->stages.front(), *result.quantization);
  }
  addOutputOrigins(*planned->model.nets.front()->stages.front(), result.outputOrigins);
  result.exceptions = findExceptions();
  addExactness(planned->model, result.exceptions);
  addProperties(planned->model, function->getParentOfType<ModuleOp>());
  if (options.compile.preserveLayers) {
    planned->model.properties.push_back(std::make_unique<bmodel::PropertyDefT>());
    planned->model.properties.back()->key = bmodel::kLayers, planned->model.properties.back()->value = "kept";
  }
  std::string message = bmodel::writeModel(planned->model, planned->segments, options.output);
  if (!message.empty()) {
    return llvm::createStringError("failed to write '" + options.output + "': " + message);
  }
  fillResult(plannedParts, *planned, result);
  return llvm::Error::success();
}

} // namespace

/// Returns an error if an input has a symbolic size and a target supports only numbers.
static llvm::Error checkSymbolicSizes(func::FuncOp function, const DeployOptions &options) {
  const auto *unable =
      llvm::find_if(options.targets, [](const Target *each) { return !each->supportsSymbolicSizes(); });
  if (!options.bucket.text.empty()) {
    return !options.targets.front()->runsEverything()
               ? llvm::Error::success()
               : llvm::make_error<UsageError>("--buckets is for accelerators; '" + options.targets.front()->name() +
                                              "' runs every size as it is");
  }
  for (BlockArgument argument : function.getArguments()) {
    for (auto [dim, size] : llvm::enumerate(Shape(argument).dims())) {
      if (size.isSymbolic() && unable != options.targets.end()) {
        auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
        return top::unsupported("chip '" + (*unable)->name() + "' supports only sizes that are numbers, but dim " +
                                std::to_string(dim) + " of input '" + (name ? name.str() : "") + "' is " +
                                toText(size) + "; list the sizes to which inputs are padded, e.g. " +
                                suggestBuckets(function) + ", or fix the dim with model_transform --input_shapes");
      }
    }
  }
  return llvm::Error::success();
}

/// Gives a lowered function the sizes of the chosen bucket, and runs the passes that find more to do in fixed sizes.
static llvm::Error pad(func::FuncOp function, const device::Bucket &bucket, const DeployOptions &options) {
  if (llvm::Error error = checkBuckets(function, bucket)) {
    return error;
  }
  device::padToBucket(function, bucket);
  PassManager passes(function.getContext());
  watch(passes, "pad", options.compile.observeIr);
  device::buildFusionPipeline(passes.nest<func::FuncOp>(),
                              [&](OpPassManager &functions) { options.targets.front()->addForms(functions); });
  return succeeded(passes.run(function->getParentOfType<ModuleOp>()))
             ? llvm::Error::success()
             : llvm::createStringError("internal error: the model cannot be padded to a bucket");
}

static std::string requantisationOf(const DeployOptions &options) {
  return options.requantisation.empty() ? options.targets.front()->requantisations().front() : options.requantisation;
}

/// Removes the quantize/dequantize pairs again and reports the rest of the part; for a model in |known| reports only
/// that.
static void instrument(const ModelPart &part, quant::StripQDQ &stripQDQ, ArrayRef<std::string> known,
                       const llvm::StringSet<> &names, DeployResult &result) {
  func::FuncOp function = part.function;
  llvm::append_range(result.forms, stripQDQ.run());
  top::nameEveryTensor(function);
  if (result.quantization) {
    result.contents += top::hashContents(function->getParentOfType<ModuleOp>());
    result.isKnown = llvm::is_contained(known, result.contents);
  }
  if (result.isKnown) {
    return;
  }
  for (InstrumentedTensor &tensor : listInstrumented(function)) {
    tensor.isRepeated = part.isRepeated;
    if (part.isRepeated && !names.contains(tensor.name)) {
      continue; // a table cannot name it
    }
    // A part lists its arguments, which an earlier part may have computed.
    if (llvm::none_of(result.instrumented, [&](const auto &earlier) { return earlier.name == tensor.name; })) {
      result.instrumented.push_back(std::move(tensor));
    }
  }
  llvm::append_range(result.logits, listLogits(function));
}

/// Lowers a part to device ops.
static llvm::Error lower(func::FuncOp function, bool isQuantized, const DeployOptions &options) {
  auto module = function->getParentOfType<ModuleOp>();
  PassManager passes(module.getContext());
  watch(passes, "lower", options.compile.observeIr);
  if (!isQuantized) { // a quantised model keeps its 16-bit floats
    passes.addPass(top::createWidenFloatsPass());
  }
  buildLowering(passes, *options.targets.front(), requantisationOf(options), options.compile.instrument);
  if (failed(passes.run(module))) {
    return llvm::createStringError("internal error: the model cannot be lowered to device operations");
  }
  top::dropUnheldWeights(module);
  if (options.compile.preserveLayers) {
    nameEveryLayer(function);
  }
  if (llvm::Error error = options.onLowered ? options.onLowered(module) : llvm::Error::success()) {
    return error;
  }
  return plantFault(function); // after onLowered, whose output must stay correct
}

/// Returns an error that names a state that grows, if there is one. |what| says what does not support that.
static llvm::Error rejectGrowth(func::FuncOp function, const llvm::Twine &what) {
  for (const top::State &state : top::listStates(function)) {
    if (top::getGrowth(function, state.argument)) {
      return top::unsupported("state '" + state.name + "' grows, which " + what +
                              "; leave it an input and an output (model_transform --state none)");
    }
  }
  return llvm::Error::success();
}

/// Returns an error if an option does not apply to a model with control flow.
static llvm::Error checkControlFlow(func::FuncOp function, const DeployOptions &options) {
  if (llvm::Error error = rejectGrowth(function, "models with branches or loops at run time do not support")) {
    return error;
  }
  const quant::InputsOutputs &inputsOutputs = options.inputsOutputs;
  StringRef option = options.compile.preserveLayers  ? "--keep-layers"
                     : !options.bucket.text.empty()  ? "--buckets"
                     : !options.compile.plan.empty() ? "--plan"
                     : inputsOutputs.quantInputs     ? "--quant-input"
                     : inputsOutputs.quantOutputs    ? "--quant-output"
                     : !inputsOutputs.pixels.empty() ? "--fuse-preprocess"
                                                     : "";
  return option.empty() ? llvm::Error::success()
                        : top::unsupported(option + " does not support models with branches or loops at run time");
}

/// Returns the function to deploy, or an error if the targets do not support it.
static llvm::Expected<func::FuncOp> findFunction(ModuleOp module, const DeployOptions &options) {
  llvm::Expected<func::FuncOp> function = deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  if (llvm::Error error = checkSymbolicSizes(*function, options)) {
    return std::move(error);
  }
  if (options.compile.instrument) { // calibration sets all inputs and reads all outputs
    top::removeStates(*function);
  }
  if (llvm::Error error = top::recordGrowth(*function)) {
    return std::move(error);
  }
  const Target &first = *options.targets.front();
  if (!canGrowStates(first)) {
    if (llvm::Error error = rejectGrowth(*function, "chip '" + first.name() + "' does not support")) {
      return std::move(error);
    }
  }
  return function;
}

/// Quantises a part.
static llvm::Error preparePart(ModelPart &part, const std::optional<Quantization> &asked, const DeployOptions &options,
                               const PhaseObserver &observer, DeployResult &result) {
  auto quantization = prepareModel(part.function, asked, options.inputsOutputs, observer, options.compile.observeIr);
  if (!quantization) {
    return quantization.takeError();
  }
  if (options.compile.observeIr) {
    options.compile.observeIr(part.function->getParentOfType<ModuleOp>(), "prepared");
  }
  if (*quantization) {
    result.quantization = joinReports(std::move(result.quantization), std::move(**quantization));
  }
  return llvm::Error::success();
}

/// Lowers a part to device ops, for the sizes of the bucket if there is one. A part of a known model is not lowered.
static llvm::Error lowerPart(ModelPart &part, quant::StripQDQ &stripQDQ, const std::optional<Quantization> &asked,
                             const device::Bucket &bucket, const DeployOptions &options, const PhaseObserver &observer,
                             const llvm::StringSet<> &names, DeployResult &result) {
  observer.begin("lower");
  if (options.compile.instrument) {
    instrument(part, stripQDQ, options.known, names, result);
  }
  if (result.isKnown) {
    return llvm::Error::success();
  }
  if (llvm::Error error = lower(part.function, asked.has_value(), options)) {
    return error;
  }
  return bucket.empty() ? llvm::Error::success() : pad(part.function, bucket, options);
}

/// Gives the whole model equal bits on every chip if any of its parts computes with integers.
static void shareExactness(MutableArrayRef<ModelPart> parts) {
  if (llvm::any_of(parts, [](ModelPart &part) { return device::computesIntegers(part.function); })) {
    llvm::for_each(parts, [](ModelPart &part) { device::setExact(part.function); });
  }
}

llvm::Expected<DeployResult> deploy(ModuleOp module, const DeployOptions &options, const PhaseObserver &observer) {
  llvm::Expected<func::FuncOp> function = findFunction(module, options);
  if (!function) {
    return function.takeError();
  }
  if (options.compile.observeIr) {
    options.compile.observeIr(module, "top");
  }
  DeployResult result;
  result.outputOrigins = listOutputOrigins(*function); // before quantisation puts ops behind them
  llvm::StringSet<> names;                             // of float tensors, for --observe
  if (options.compile.instrument) {
    top::nameEveryTensor(*function); // before parts get names of their own
    names.insert_range(listFloatNames(*function));
  }
  llvm::Expected<std::vector<ModelPart>> parts = splitModel(*function, options.quantization);
  if (!parts) {
    return parts.takeError();
  }
  bool isSplit = result.isSplit = parts->empty() || parts->front().function != *function;
  if (llvm::Error error = isSplit ? checkControlFlow(*function, options) : llvm::Error::success()) {
    return std::move(error);
  }
  std::optional<top::SoleHolder> holder;
  if (!isSplit) {
    holder.emplace(module);
  }
  std::optional<Quantization> asked = options.quantization;
  if (asked) {
    asked->options.splitWeights = !options.compile.instrument, asked->isChecked = isSplit;
  }
  llvm::Expected<device::Bucket> bucket = findBucket(*function, options.bucket);
  if (!bucket) {
    return bucket.takeError();
  }
  std::deque<quant::StripQDQ> stripQDQ; // by part
  for (ModelPart &part : *parts) {
    stripQDQ.emplace_back(part.function);
    if (llvm::Error error = preparePart(part, asked, options, observer, result)) {
      return std::move(error);
    }
  }
  if (!options.compile.instrument) {
    shareExactness(*parts);
  }
  for (auto [part, strip] : llvm::zip_equal(*parts, stripQDQ)) {
    if (llvm::Error error = lowerPart(part, strip, asked, *bucket, options, observer, names, result)) {
      return std::move(error);
    }
    if (result.isKnown) {
      return result;
    }
  }
  holder.reset(); // subnets hold their own copies from here on
  if (llvm::Error error = Deployment(*function, *parts, options, observer).run(result)) {
    return std::move(error);
  }
  return result;
}

} // namespace tessera::codegen
