//===- Plan.cpp - A device function as a stage of a .bmodel ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Plan.h"

#include "bmodel/kernel_abi.h"
#include "codegen/Pipelines/Deploy.h"
#include "codegen/X86/KernelInterface.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::codegen {

bool needsKernel(Operation *op) { return isa<x86::KernelInterface>(op) && !device::isElided(op); }

Value rootOf(Value value) {
  while (auto reshape = value.getDefiningOp<device::ReshapeOp>()) {
    value = reshape.getX();
  }
  return value;
}

std::unique_ptr<bmodel::StepDefT> copyStep(uint32_t from, uint32_t to) {
  bmodel::CopyDefT copy;
  copy.from = from, copy.to = to;
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(copy);
  step->writes = {to};
  return step;
}

namespace {

constexpr uint32_t kCodeSegment = 0, kConstantsSegment = 1;

class Planner {
public:
  Planner(func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels, PlannedModel &planned)
      : function(function), target(target), kernels(kernels), planned(planned) {}

  LogicalResult plan();
  LogicalResult plan(const PartFrame &frame);

private:
  void createFrame();
  LogicalResult addInputs();
  LogicalResult addOutputs();
  void bindPorts(const PartFrame &frame);
  LogicalResult addSteps();
  LogicalResult addCopies(const PartFrame &frame);
  LogicalResult addStep(Operation *op);

  /// The slot of a value, made when first asked for.
  FailureOr<uint32_t> slotOf(Value value);
  FailureOr<uint32_t> addSlot(Value value, StringRef name, bmodel::TensorRole role);
  LogicalResult placeConstant(Value value, bmodel::TensorDefT &tensor);
  LogicalResult placeValue(Value value, uint32_t slot);
  void makeView(uint32_t slot, uint32_t of, uint64_t offset);
  LogicalResult addView(Operation *op);
  std::string uniqueName(StringRef wanted);

  bmodel::TensorDefT &tensor(uint32_t slot) { return *stage->tensors[slot]; }

  func::FuncOp function;
  const x86::X86Target &target;
  const KernelSet &kernels;
  PlannedModel &planned;
  bmodel::StageDefT *stage = nullptr;
  bmodel::SubnetDefT *subnet = nullptr;
  llvm::DenseMap<Value, uint32_t> slots;
  llvm::DenseMap<int64_t, uint32_t> callerSlots; ///< number of a caller's memory -> the tensor that it is
  llvm::DenseMap<Value, size_t> writers;         ///< the step that completes a value
  llvm::StringSet<> ownNames;
  llvm::StringSet<> *names = &ownNames;
  uint32_t workspace = 0, constantsSegment = kConstantsSegment;
  llvm::StringMap<uint64_t> constantOffsets; ///< bytes of small constants -> offset
  llvm::DenseMap<const char *, uint64_t> weightOffsets;
};

std::string Planner::uniqueName(StringRef wanted) {
  std::string name = wanted.empty() ? "t" : wanted.str();
  for (unsigned i = 0; !names->insert(wanted.empty() || i ? name + "#" + std::to_string(names->size()) : name).second;
       ++i) {
  }
  return name;
}

void Planner::createFrame() {
  auto module = function->getParentOfType<ModuleOp>();
  auto name = module->getAttrOfType<StringAttr>(top::TopDialect::kModelNameAttr);
  planned.model.name = name && !name.getValue().empty() ? name.str() : "model";
  planned.model.producer = "tessera " TESSERA_VERSION;
  auto chip = std::make_unique<bmodel::ChipDefT>();
  chip->name = target.name().str();
  chip->family = "x86";
  planned.model.chips.push_back(std::move(chip));
  auto net = std::make_unique<bmodel::NetDefT>();
  net->name = planned.model.name;
  net->stages.push_back(std::make_unique<bmodel::StageDefT>());
  stage = net->stages.back().get();
  stage->name = "static";
  stage->subnets.push_back(std::make_unique<bmodel::SubnetDefT>());
  subnet = stage->subnets.back().get();
  subnet->name = "main";
  subnet->kind = bmodel::SubnetKind::X86;
  subnet->isa = target.llvmCpu().str();
  subnet->cpu_features = target.cpuFeatureBits();
  subnet->kernel_abi = BM_KERNEL_ABI_VERSION;
  subnet->code_segment = planned.code.empty() ? -1 : int32_t(kCodeSegment);
  planned.model.nets.push_back(std::move(net));
  planned.segments.emplace_back(bmodel::SegmentKind::Code);
  planned.segments.emplace_back(bmodel::SegmentKind::Constants);
  planned.segments[kCodeSegment].append({planned.code.data(), planned.code.size()});
}

FailureOr<uint32_t> Planner::addSlot(Value value, StringRef name, bmodel::TensorRole role) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<bmodel::DType> dtype = dtypeOf(type.getElementType());
  if (!dtype || !type.hasStaticShape()) {
    return emitError(value.getLoc()) << "tensor '" << name << "' of type " << type
                                     << " cannot be stored: its element type or a dim is not supported on x86";
  }
  uint32_t slot = bmodel::addTensor(*stage, name, *dtype, type.getShape());
  tensor(slot).role = role;
  tensor(slot).bytes = device::physicalBytes(type);
  if (device::BlockedAttr layout = device::getBlockedLayout(type)) {
    tensor(slot).layout = bmodel::LayoutKind::ChannelBlocked;
    tensor(slot).block = layout.getBlock();
    tensor(slot).block_axis = 1;
  }
  if (StringRef onnx = top::getTensorName(value); !onnx.empty()) {
    tensor(slot).onnx_names.push_back(onnx.str());
  }
  return slot;
}

LogicalResult Planner::addInputs() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
    std::string text = name ? name.str() : "input" + std::to_string(index);
    names->insert(text);
    FailureOr<uint32_t> slot = addSlot(argument, text, bmodel::TensorRole::Input);
    if (failed(slot)) {
      return failure();
    }
    tensor(*slot).place = bmodel::Place::Caller;
    tensor(*slot).onnx_names = {text};
    if (auto preprocess = function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kPreprocessAttr)) {
      tensor(*slot).preprocess = preprocess.str();
    }
    slots[argument] = *slot;
    callerSlots[device::getAddress(argument)->memory] = *slot;
    stage->inputs.push_back(*slot);
  }
  return success();
}

/// An output is memory of the caller, or a view of another such tensor with the same bytes.
LogicalResult Planner::addOutputs() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
    std::string text = name ? name.str() : "output" + std::to_string(index);
    names->insert(text);
    Value constant = device::getConstantRoot(value);
    FailureOr<uint32_t> slot =
        addSlot(value, text, constant ? bmodel::TensorRole::Constant : bmodel::TensorRole::Output);
    if (failed(slot)) {
      return failure();
    }
    tensor(*slot).onnx_names = {text};
    if (StringRef inner = top::getTensorName(value); !inner.empty() && inner != text) {
      tensor(*slot).onnx_names.push_back(inner.str());
    }
    stage->outputs.push_back(*slot);
    if (constant) {
      if (failed(placeConstant(constant, tensor(*slot)))) {
        return failure();
      }
      continue;
    }
    std::optional<device::Address> address = device::getAddress(value);
    if (address && address->memory > 0 && callerSlots.try_emplace(address->memory, *slot).second) {
      tensor(*slot).place = bmodel::Place::Caller;
      slots[value] = *slot;
    } else if (failed(placeValue(value, *slot))) {
      return failure();
    }
  }
  return success();
}

void Planner::makeView(uint32_t slot, uint32_t of, uint64_t offset) {
  tensor(slot).view_of = int32_t(of);
  tensor(slot).place = tensor(of).place;
  tensor(slot).place_index = tensor(of).place_index;
  tensor(slot).offset = offset;
}

LogicalResult Planner::placeValue(Value value, uint32_t slot) {
  std::optional<device::Address> address = device::getAddress(value);
  auto caller = address ? callerSlots.find(address->memory) : callerSlots.end();
  if (!address || (address->memory != 0 && caller == callerSlots.end())) {
    return emitError(value.getLoc()) << "internal error: a value of type " << value.getType() << " has no address";
  }
  if (address->memory != 0) {
    makeView(slot, caller->second, address->offset);
    return success();
  }
  tensor(slot).place = bmodel::Place::Workspace;
  tensor(slot).place_index = workspace;
  tensor(slot).offset = address->offset;
  return success();
}

LogicalResult Planner::placeConstant(Value value, bmodel::TensorDefT &tensor) {
  std::optional<top::TensorData> data = top::getConstantData(value);
  if (!data) {
    return value.getDefiningOp()->emitError("internal error: the weight store lacks this constant");
  }
  uint64_t *known;
  bool isNew;
  if (data->owner || data->bytes.size() <= size_t(top::kMaxInlineBytes)) {
    auto [it, inserted] = constantOffsets.try_emplace(StringRef(data->bytes.data(), data->bytes.size()), 0);
    known = &it->second, isNew = inserted;
  } else {
    auto [it, inserted] = weightOffsets.try_emplace(data->bytes.data(), 0);
    known = &it->second, isNew = inserted;
  }
  if (isNew) {
    *known = planned.segments[constantsSegment].append({data->bytes.data(), data->bytes.size()});
    planned.constants.push_back(*data);
  }
  tensor.place = bmodel::Place::Segment;
  tensor.place_index = constantsSegment;
  tensor.offset = *known;
  return success();
}

FailureOr<uint32_t> Planner::slotOf(Value value) {
  if (auto it = slots.find(value); it != slots.end()) {
    return it->second;
  }
  Value constant = device::getConstantRoot(value);
  StringRef name = top::getTensorName(value);
  if (auto weight = value.getDefiningOp<top::WeightOp>()) {
    name = weight.getKey();
  }
  FailureOr<uint32_t> slot =
      addSlot(value, uniqueName(name), constant ? bmodel::TensorRole::Constant : bmodel::TensorRole::Workspace);
  if (failed(slot)) {
    return failure();
  }
  slots[value] = *slot;
  LogicalResult placed = constant ? placeConstant(constant, tensor(*slot)) : placeValue(value, *slot);
  return failed(placed) ? FailureOr<uint32_t>(failure()) : slot;
}

/// "device.conv 1x64x56x56": what a profile shows.
std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  llvm::raw_string_ostream os(text);
  os << ' ';
  llvm::interleave(type.getShape(), os, "x");
  os << ' ' << type.getElementType();
  return text;
}

LogicalResult Planner::addStep(Operation *op) {
  std::vector<uint32_t> arguments, writes;
  uint64_t bytes = 0;
  for (Value operand : op->getOperands()) {
    FailureOr<uint32_t> slot = slotOf(operand);
    if (failed(slot)) {
      return failure();
    }
    arguments.push_back(*slot);
    bytes += tensor(*slot).bytes;
  }
  for (Value result : op->getResults()) {
    FailureOr<uint32_t> slot = slotOf(result);
    if (failed(slot)) {
      return failure();
    }
    writers[result] = subnet->plan.size();
    arguments.push_back(*slot);
    writes.push_back(*slot);
    bytes += tensor(*slot).bytes;
  }
  const x86::KernelFrame &frame = kernels.frameOf(op);
  uint32_t kernel = bmodel::addKernel(*subnet, frame.symbol, arguments.size());
  bmodel::StepDefT &step = bmodel::addLaunch(*subnet, kernel, arguments, frame.tiles, writes);
  step.op.AsLaunchDef()->scratch_bytes = frame.scratchBytes;
  step.debug = std::make_unique<bmodel::StepDebugDefT>();
  for (StringRef name : top::getNodeNames(op->getLoc())) {
    step.debug->onnx_nodes.push_back(name.str());
  }
  step.debug->device_op = describe(op);
  step.debug->flops = cast<x86::KernelInterface>(op).countFlops();
  step.debug->bytes = bytes;
  ++planned.steps;
  return success();
}

/// A view with a name of its own is written by the step that writes the last of its bytes.
LogicalResult Planner::addView(Operation *op) {
  Value result = op->getResult(0);
  std::optional<size_t> writer;
  for (Value operand : op->getOperands()) {
    if (auto known = writers.find(operand); known != writers.end()) {
      writer = std::max(writer.value_or(0), known->second);
    }
  }
  if (!writer) {
    return success(); // of an input or a constant
  }
  writers[result] = *writer;
  if (top::getTensorName(result).empty()) {
    return success();
  }
  FailureOr<uint32_t> slot = slotOf(result);
  if (failed(slot)) {
    return failure();
  }
  std::vector<uint32_t> &writes = subnet->plan[*writer]->writes;
  if (!llvm::is_contained(writes, *slot)) {
    writes.push_back(*slot);
  }
  return success();
}

LogicalResult Planner::addSteps() {
  for (Operation &op : function.getBody().front()) {
    bool isView = op.getNumResults() && device::isElided(&op);
    if (failed(needsKernel(&op) ? addStep(&op) : isView ? addView(&op) : success())) {
      return failure();
    }
  }
  auto bytesOf = [&](StringRef name) {
    auto attribute = function->getAttrOfType<IntegerAttr>(name);
    return attribute ? uint64_t(attribute.getInt()) : 0;
  };
  planned.workspaceBytes = bytesOf(device::DeviceDialect::kWorkspaceBytesAttr);
  planned.workspaceLowerBound = bytesOf(device::DeviceDialect::kWorkspaceLowerBoundAttr);
  return success();
}

LogicalResult Planner::plan() {
  createFrame();
  if (failed(addInputs()) || failed(addOutputs()) || failed(addSteps())) {
    return failure();
  }
  auto workspace = std::make_unique<bmodel::WorkspaceDefT>();
  workspace->bytes = planned.workspaceBytes, workspace->lower_bound = planned.workspaceLowerBound;
  stage->workspaces.push_back(std::move(workspace));
  return success();
}

/// The memories of the caller are the tensors that the frame names.
void Planner::bindPorts(const PartFrame &frame) {
  for (auto [argument, slot] : llvm::zip_equal(function.getArguments(), frame.arguments)) {
    slots[argument] = slot;
    callerSlots[device::getAddress(argument)->memory] = slot;
  }
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [index, slot] : llvm::enumerate(frame.results)) {
    callerSlots[int64_t(index) + 1] = slot;
    std::optional<device::Address> address = device::getAddress(terminator->getOperand(index));
    if (address && address->memory == int64_t(index) + 1 && address->offset == 0) {
      slots[terminator->getOperand(index)] = slot;
    }
  }
}

/// Results whose bytes lie elsewhere: views of arguments and of other results.
LogicalResult Planner::addCopies(const PartFrame &frame) {
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [value, to] : llvm::zip_equal(terminator->getOperands(), frame.results)) {
    FailureOr<uint32_t> from = slotOf(value);
    if (failed(from)) {
      return failure();
    }
    if (*from != to) {
      subnet->plan.push_back(copyStep(*from, to));
    }
  }
  return success();
}

LogicalResult Planner::plan(const PartFrame &frame) {
  stage = &frame.stage, subnet = &frame.subnet, names = &frame.names;
  workspace = frame.workspace, constantsSegment = frame.constantsSegment;
  bindPorts(frame);
  return success(succeeded(addSteps()) && succeeded(addCopies(frame)));
}

} // namespace

LogicalResult planPart(func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels,
                       const PartFrame &frame, PlannedModel &planned) {
  return Planner(function, target, kernels, planned).plan(frame);
}

LogicalResult planModel(func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels,
                        std::vector<char> code, PlannedModel &planned) {
  planned.code = std::move(code);
  return Planner(function, target, kernels, planned).plan();
}

} // namespace tessera::codegen
