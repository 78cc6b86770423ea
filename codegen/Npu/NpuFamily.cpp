//===- NpuFamily.cpp - NPUs as targets ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/npu/latency.h"
#include "bmodel/npu/report.h"
#include "codegen/Npu/Chips.h"
#include "codegen/Npu/ElementTypes.h"
#include "codegen/Npu/Npu.h"
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Schedule/PlanFile.h"
#include "codegen/Npu/Stream/CommandStream.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::npu {
namespace hw = bmodel::npu;
namespace {

using codegen::SubnetProgram;
using codegen::TargetProgram;

enum Section : uint32_t { kCommands, kConstants };

/// Maximum number of buffers that a stream's commands can name.
constexpr size_t kMostPorts = 240;
/// Seconds to hand over to another target, for an interrupt and cleaning caches.
constexpr double kHandOver = 20e-6;

/// Returns the factor by which multiplications of this op are slower than those of a dense int8 one.
double divisorOf(Operation *op, const hw::Chip &chip) {
  if (isa<device::BlockMatMulOp>(op)) { // quantises its f32 operand
    return 1;
  }
  mlir::Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  double divisor = isa<FloatType>(element) ? chip.floatDivisor : element.isInteger(16) ? chip.int16Divisor : 1;
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    auto weights = cast<RankedTensorType>(op->getOperand(1).getType());
    bool isDepthwise = weights.getRank() > 1 && weights.getDimSize(1) == 1 && weights.getDimSize(0) > 1;
    divisor *= isDepthwise ? chip.depthwiseDivisor : 1;
  }
  return divisor;
}

hw::Report estimate(const NpuProgram &program, const hw::Chip &chip) {
  std::vector<hw::Cost> costs;
  for (const hw::Descriptor &command : program.commands) {
    costs.push_back(hw::costOf(command, chip));
  }
  const hw::Descriptor *commands = program.commands.data();
  std::vector<hw::Span> spans = hw::schedule(commands, costs.data(), costs.size(), chip);
  return hw::reportOf(commands, costs.data(), spans.data(), costs.size(), program.sizes.inputs);
}

class NpuChip final : public codegen::Target {
public:
  NpuChip(hw::Chip chip, std::string description) : chip(std::move(chip)), description(std::move(description)) {}

  StringRef family() const override { return "npu"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT result;
    result.name = chip.name, result.family = family().str(), result.description = description;
    result.fingerprint = hw::fingerprint(chip);
    return result;
  }
  std::vector<std::string> requantisations() const override { return {chip.requantise}; }
  bool runsHere() const override { return true; }
  llvm::Error check(const codegen::CompileOptions &options) const override;

  void addForms(OpPassManager &functions) const override { npu::addForms(functions, chip); }
  std::optional<unsigned> mostMapOperands() const override { return unsigned(hw::kMapOperands); }

  std::vector<codegen::UnsupportedOp> survey(func::FuncOp function) const override;
  double secondsOf(Operation *op) const override;
  /// Returns the time to write the data to DDR and to read it again.
  double transferSeconds(int64_t bytes) const override {
    return chip.secondsOf(2 * double(bytes) / chip.ddrBytesPerCycle() + 2 * chip.dmaLatency);
  }
  double handOverSeconds() const override { return kHandOver; }
  /// Rates of a dense convolution, which keeps the matrix unit busy.
  codegen::MachineModel machineModel() const override {
    const double int8 = double(chip.lanes) * chip.reduction * chip.pixels * chip.clockGhz;
    const double floats = int8 / chip.floatDivisor;
    return {{{"INT8", int8}, {"INT16", int8 / chip.int16Divisor}, {"BF16", floats}, {"F16", floats}, {"F32", floats}},
            chip.ddrGbps * chip.ddrEfficiency};
  }

  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &) const override { buildAddresses(manager); }

  llvm::Expected<std::optional<TargetProgram>>
  compile(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
          const codegen::PhaseObserver &observer, std::vector<codegen::UnsupportedOp> &unsupportedOps) const override;

private:
  hw::Chip chip;
  std::string description;
};

llvm::Error NpuChip::check(const codegen::CompileOptions &options) const {
  codegen::CompileOptions others = options;
  if (!options.plan.empty()) {
    llvm::Expected<LayerSchedule> plan = readPlan(options.plan);
    if (!plan) {
      return plan.takeError();
    }
    others.plan.clear();
  }
  return Target::check(others);
}

/// Returns the reason why a view is not supported, or nothing. Views are not emitted, so no model checks their element
/// type.
std::optional<std::string> rejectedView(Operation *op) {
  if (!isa<device::ReshapeOp>(op) || device::getConstantRoot(op->getResult(0))) {
    return std::nullopt;
  }
  mlir::Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (typeOf(element)) {
    return std::nullopt;
  }
  std::string text;
  llvm::raw_string_ostream(text) << "is a view of " << element << ", an element type that the chip does not support";
  return text;
}

std::vector<codegen::UnsupportedOp> NpuChip::survey(func::FuncOp function) const {
  std::vector<codegen::UnsupportedOp> result;
  for (Operation &op : function.getBody().front()) {
    if (std::optional<std::string> reason = rejectedView(&op)) {
      result.push_back({&op, std::move(*reason)});
    }
  }
  PassManager passes(function.getContext());
  buildAddresses(passes);
  if (failed(passes.run(function->getParentOfType<ModuleOp>()))) {
    result.push_back({nullptr, "internal error: the function cannot be given addresses"});
    return result;
  }
  for (UnsupportedOp &unsupportedOp : surveyProgram(function, chip)) {
    result.push_back({unsupportedOp.op, std::move(unsupportedOp.reason)});
  }
  return result;
}

/// Estimates the time of an op as part of a stream: at the peak rate of its unit, or the time to load its constants;
/// other operands are assumed to be in local memory. The estimate is coarse on purpose: most ops that could run
/// elsewhere cost little anywhere, and bmodel/npu/latency.h gives the time of a finished program.
double NpuChip::secondsOf(Operation *op) const {
  if (isa<device::ReshapeOp>(op)) { // a view
    return 0;
  }
  double constants = 0;
  for (Value value : op->getOperands()) {
    constants += device::getConstantRoot(value) ? double(device::physicalBytes(value)) : 0;
  }
  auto work = cast<device::WorkInterface>(op);
  double macs = double(work.countMacs()), lanes = chip.lanes;
  double cycles = macs > 0 ? macs * divisorOf(op, chip) / (lanes * chip.macsPerLane())
                           : double(work.countFlops()) / (lanes * chip.vectorBytes / sizeof(float));
  cycles = std::max(cycles, constants / chip.ddrBytesPerCycle()) + chip.issueCycles;
  return chip.secondsOf(cycles);
}

/// All streams of a model. They share constants, and their layers are numbered consecutively.
class Streams {
public:
  Streams(const hw::Chip &chip, const codegen::CompileOptions &options, const codegen::PhaseObserver &observer)
      : chip(chip), options(options), observer(observer) {
    program.sections.emplace_back(bmodel::SegmentKind::Code);
    program.sections.emplace_back(bmodel::SegmentKind::Constants);
  }

  /// Returns false if the chip does not support more ops than the survey has found.
  llvm::Expected<bool> add(const codegen::Subnet &subnet, std::vector<codegen::UnsupportedOp> &unsupportedOps);
  llvm::Expected<TargetProgram> finish();

  std::optional<LayerSchedule> plan; ///< schedule to follow instead of searching

private:
  llvm::Error checkPlan() const;
  void append(const codegen::Subnet &subnet, NpuProgram stream);
  llvm::Expected<llvm::json::Object> describeProgram() const;

  const hw::Chip &chip;
  const codegen::CompileOptions &options;
  const codegen::PhaseObserver &observer;
  Constants constants;
  TargetProgram program;
  // For all streams:
  std::vector<std::string> layers;
  LayerSchedule layerSchedule;
  hw::Report report;
  size_t commands = 0;
  uint64_t localPeak = 0;
  llvm::json::Array preserved;
};

llvm::Expected<bool> Streams::add(const codegen::Subnet &subnet, std::vector<codegen::UnsupportedOp> &unsupportedOps) {
  func::FuncOp function = subnet.function;
  if (function.getNumArguments() + function.getNumResults() > kMostPorts) {
    return top::unsupported("subnet '" + subnet.name + "' has more than " + llvm::Twine(kMostPorts) +
                            " inputs and outputs that it exchanges with other subnets");
  }
  std::vector<UnsupportedOp> rejected;
  auto progress = [&](size_t done, size_t total, size_t part, size_t parts) {
    observer.progress({done, total, part, parts});
  };
  FailureOr<NpuProgram> stream = emitProgram(
      function, chip, {options.opt, plan, uint32_t(layers.size()), options.preserveLayers, progress, options.observeIr},
      constants, rejected);
  if (succeeded(stream)) {
    append(subnet, std::move(*stream));
    return true;
  }
  for (UnsupportedOp &unsupportedOp : rejected) {
    if (unsupportedOp.ofPlan) {
      return llvm::createStringError(unsupportedOp.reason);
    }
    unsupportedOps.push_back({unsupportedOp.op, std::move(unsupportedOp.reason)});
  }
  return false;
}

/// Appends a stream. The layers of the model are those of its streams, one stream after another.
void Streams::append(const codegen::Subnet &subnet, NpuProgram stream) {
  func::FuncOp function = subnet.function;
  auto first = uint32_t(layers.size());
  double before = report.cycles;
  layerSchedule.append(stream.layerSchedule, first);
  hw::append(report, estimate(stream, chip), first);
  llvm::append_range(layers, stream.layers);
  commands += stream.commands.size(), localPeak = std::max(localPeak, stream.localPeak);

  SubnetProgram &result = program.subnets.emplace_back();
  result.subnet.kind = bmodel::SubnetKind::Npu, result.subnet.isa = chip.name;
  result.subnet.kernel_abi = hw::kIsaVersion, result.subnet.code_segment = int32_t(kCommands);
  result.workspaceBytes = stream.sizes.workspace, result.workspaceLowerBound = stream.workspaceLowerBound;
  result.ops = stream.commands.size(), result.seconds = chip.secondsOf(report.cycles - before);
  bmodel::RunStreamOnDefT run;
  for (uint32_t slot = 0; slot < function.getNumArguments() + function.getNumResults(); ++slot) {
    (slot < function.getNumArguments() ? run.inputs : run.outputs).push_back(slot);
  }
  std::vector<char> &bytes = program.memory.emplace_back(stream.commands.size() * hw::kDescriptorBytes);
  std::memcpy(bytes.data(), stream.commands.data(), bytes.size());
  run.offset = program.sections[kCommands].append(bytes);
  run.bytes = bytes.size();
  auto step = std::make_unique<bmodel::StepDefT>();
  addPreserved(stream.preserved, {function, stream.layers, uint32_t(program.subnets.size() - 1)}, result.tensors,
               preserved);
  step->writes = run.outputs;
  for (uint32_t tensor = 0; tensor < result.tensors.size(); ++tensor) {
    step->writes.push_back(uint32_t(run.inputs.size() + run.outputs.size()) + tensor);
  }
  step->op.Set(std::move(run));
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  step->debug->onnx_nodes = stream.layers; // entry i: node of the commands of layer i
  step->debug->device_op = "npu stream of " + std::to_string(stream.commands.size()) + " commands";
  result.subnet.plan.push_back(std::move(step));
}

/// Checks that each decision of the plan belongs to a layer of some stream.
llvm::Error Streams::checkPlan() const {
  auto isUnknown = [&](const auto &each) { return each.first >= layers.size(); };
  std::optional<uint32_t> unknown;
  if (plan) {
    if (auto stay = llvm::find_if(plan->whole, isUnknown); stay != plan->whole.end()) {
      unknown = stay->first;
    } else if (auto group = llvm::find_if(plan->groups, isUnknown); group != plan->groups.end()) {
      unknown = group->first;
    }
  }
  return !unknown ? llvm::Error::success()
                  : llvm::createStringError("the plan names layer " + llvm::Twine(*unknown) + ", but the model has " +
                                            llvm::Twine(layers.size()) + " layers on the NPU");
}

/// Describes a range of constants as a tensor. Commands refer to constants by address; the tensors let users see what
/// lies where, and merged files share equal constants.
bmodel::TensorDefT describe(const Constants::Piece &piece, size_t number) {
  bmodel::TensorDefT tensor;
  tensor.name = "constant " + std::to_string(number) + (piece.layer.empty() ? "" : " of " + piece.layer);
  tensor.dtype = bmodel::DType::I8, tensor.shape = {bmodel::constantDim(int64_t(piece.bytes))};
  tensor.layout = bmodel::LayoutKind::Packed, tensor.role = bmodel::TensorRole::Constant;
  tensor.place = bmodel::Place::Segment, tensor.place_index = kConstants;
  tensor.offset = piece.offset, tensor.bytes = piece.bytes;
  return tensor;
}

llvm::Expected<llvm::json::Object> Streams::describeProgram() const {
  llvm::Expected<llvm::json::Value> result = llvm::json::parse(hw::reportJson(report, chip, layers));
  if (!result) {
    return result.takeError();
  }
  llvm::json::Object &estimate = *result->getAsObject();
  if (!options.layers) {
    estimate.erase("layers");
  }
  llvm::json::Object all{{"commands", int64_t(commands)},
                         {"local_peak_bytes", int64_t(localPeak)},
                         {"plan", describePlan(layerSchedule)},
                         {"estimate", std::move(estimate)}};
  if (options.preserveLayers) {
    all["kept"] = llvm::json::Array(preserved);
  }
  return all;
}

llvm::Expected<TargetProgram> Streams::finish() {
  if (llvm::Error error = checkPlan()) {
    return std::move(error);
  }
  program.sections[kConstants].append(program.memory.emplace_back(std::move(constants.bytes)));
  for (auto [number, piece] : llvm::enumerate(constants.pieces)) {
    program.tensors.push_back(describe(piece, number));
  }
  llvm::Expected<llvm::json::Object> result = describeProgram();
  if (!result) {
    return result.takeError();
  }
  program.report = std::move(*result);
  return std::move(program);
}

llvm::Expected<std::optional<TargetProgram>>
NpuChip::compile(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                 const codegen::PhaseObserver &observer, std::vector<codegen::UnsupportedOp> &unsupportedOps) const {
  observer.begin("emit");
  Streams streams(chip, options, observer);
  if (!options.plan.empty()) {
    llvm::Expected<LayerSchedule> plan = readPlan(options.plan);
    if (!plan) {
      return plan.takeError();
    }
    streams.plan = std::move(*plan);
  }
  for (const codegen::Subnet &subnet : subnets) {
    llvm::Expected<bool> added = streams.add(subnet, unsupportedOps);
    if (!added || !*added) {
      return !added ? llvm::Expected<std::optional<TargetProgram>>(added.takeError()) : std::nullopt;
    }
  }
  return streams.finish();
}

llvm::Expected<std::unique_ptr<codegen::Target>> createChip(const codegen::ChipRequest &request) {
  std::string description = findBuiltinChip(request.name).value_or(request.description), error;
  for (const std::string &assignment : request.fields) {
    if (!hw::setField(description, assignment, error)) {
      return llvm::make_error<codegen::UsageError>("--chip-set " + error);
    }
  }
  hw::Chip chip;
  if (hw::parseChip(description, request.name, chip, error)) {
    return std::make_unique<NpuChip>(std::move(chip), std::move(description));
  }
  return request.fields.empty() ? llvm::createStringError(error) : llvm::make_error<codegen::UsageError>(error);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect, NpuDialect>();
  registerNpuModels(registry);
}

constexpr StringRef kFlags[] = {"report", "chip_set", "strict",  "host_chip",     "opt",
                                "plan",   "plan_out", "buckets", "beyond_buckets"};

} // namespace

extern const codegen::Family kFamily;
const codegen::Family kFamily = {.name = "npu",
                                 .chips = builtinChips,
                                 .isHost = false,
                                 .hasDescriptions = true,
                                 .flags = kFlags,
                                 .create = createChip,
                                 .registerDialects = registerDialects,
                                 .registerPasses = registerNpuPasses};

} // namespace tessera::npu
