//===- MixedPlan.cpp - A model on an NPU and its host as a file -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/MixedPlan.h"

#include "bmodel/kernel_abi.h"
#include "codegen/Pipelines/Deploy.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/PlaceBuffers.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::codegen {
namespace {

enum Segment : uint32_t { kCommands, kStreamConstants, kHostCode, kHostConstants };
enum Workspace : uint32_t { kStreams, kBetween, kKernels };
enum Chip : uint32_t { kNpu, kHost };

/// Buffers that a stream's commands can name.
constexpr size_t kMostPorts = 240;

class MixedPlanner {
public:
  explicit MixedPlanner(MixedModel model) : given(std::move(model)) {}

  llvm::Expected<PlannedModel> plan() {
    createFrame();
    if (llvm::Error error = addPorts()) {
      return std::move(error);
    }
    placeBetween();
    for (const CompiledSubnet &each : given.subnets) {
      if (llvm::Error error = each.subnet->onHost ? addHost(each) : addStream(each)) {
        return std::move(error);
      }
      call();
    }
    if (llvm::Error error = addCopies()) {
      return std::move(error);
    }
    finish();
    return std::move(planned);
  }

private:
  void createFrame();
  llvm::Error addPorts();
  void placeBetween();
  llvm::Error addStream(const CompiledSubnet &compiled);
  llvm::Error addHost(const CompiledSubnet &compiled);
  llvm::Error addCopies();
  void call();
  void finish();

  llvm::Expected<uint32_t> addSlot(RankedTensorType type, StringRef name, bmodel::TensorRole role);
  llvm::Expected<uint32_t> addConstant(Value value);
  std::vector<uint32_t> slotsOf(ArrayRef<Value> values) const {
    std::vector<uint32_t> made;
    for (Value value : values) {
      made.push_back(slots.at(value));
    }
    return made;
  }
  bmodel::SubnetDefT &addSubnet(const std::string &name, bmodel::SubnetKind kind, Chip chip);

  MixedModel given;
  PlannedModel planned;
  bmodel::StageDefT *stage = nullptr;
  bmodel::SubnetDefT *main = nullptr;
  llvm::StringSet<> names;
  llvm::DenseMap<Value, uint32_t> slots;
  /// Results that are no tensor of their own: an argument, a constant, or the same as another result.
  std::vector<std::pair<Value, uint32_t>> copies;
  uint64_t streamBytes = 0, streamBound = 0, kernelBytes = 0, kernelBound = 0;
};

bmodel::SubnetDefT &MixedPlanner::addSubnet(const std::string &name, bmodel::SubnetKind kind, Chip chip) {
  stage->subnets.push_back(std::make_unique<bmodel::SubnetDefT>());
  bmodel::SubnetDefT &subnet = *stage->subnets.back();
  subnet.name = name, subnet.kind = kind, subnet.chip = chip;
  return subnet;
}

void MixedPlanner::createFrame() {
  auto module = given.function->getParentOfType<ModuleOp>();
  auto name = module->getAttrOfType<StringAttr>(top::TopDialect::kModelNameAttr);
  bmodel::ModelDefT &model = planned.model;
  model.name = name && !name.getValue().empty() ? name.str() : "model";
  model.producer = "tessera " TESSERA_VERSION;
  model.chips.push_back(std::make_unique<bmodel::ChipDefT>(std::move(given.chip)));
  model.chips.push_back(std::make_unique<bmodel::ChipDefT>());
  model.chips.back()->name = given.host.name().str(), model.chips.back()->family = "x86";
  auto net = std::make_unique<bmodel::NetDefT>();
  net->name = model.name;
  net->stages.push_back(std::make_unique<bmodel::StageDefT>());
  stage = net->stages.back().get();
  stage->name = "static";
  model.nets.push_back(std::move(net));
  main = &addSubnet("main", bmodel::SubnetKind::Control, kNpu);
  planned.code = std::move(given.hostCode);
  planned.segments.emplace_back(bmodel::SegmentKind::Code);
  planned.segments.emplace_back(bmodel::SegmentKind::Constants);
  planned.segments.emplace_back(bmodel::SegmentKind::Code);
  planned.segments.emplace_back(bmodel::SegmentKind::Constants);
  planned.segments[kStreamConstants].append({given.constants.bytes.data(), given.constants.bytes.size()});
  planned.segments[kHostCode].append({planned.code.data(), planned.code.size()});
}

llvm::Expected<uint32_t> MixedPlanner::addSlot(RankedTensorType type, StringRef name, bmodel::TensorRole role) {
  std::optional<bmodel::DType> dtype = dtypeOf(type.getElementType());
  if (!dtype) {
    return top::unsupported("'" + name + "' has a type that no model holds");
  }
  std::string unique = name.str();
  for (size_t i = names.size(); unique.empty() || !names.insert(unique).second; ++i) {
    unique = (name.empty() ? "t" : name.str()) + "#" + std::to_string(i);
  }
  uint32_t slot = bmodel::addTensor(*stage, unique, *dtype, type.getShape());
  stage->tensors[slot]->role = role;
  stage->tensors[slot]->bytes = uint64_t(device::physicalBytes(type));
  if (!name.empty()) {
    stage->tensors[slot]->onnx_names = {name.str()};
  }
  return slot;
}

llvm::Error MixedPlanner::addPorts() {
  func::FuncOp function = given.function;
  auto text = [](StringAttr attribute) { return attribute ? attribute.str() : std::string(); };
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto slot = addSlot(cast<RankedTensorType>(argument.getType()),
                        text(function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr)),
                        bmodel::TensorRole::Input);
    if (!slot) {
      return slot.takeError();
    }
    stage->tensors[*slot]->place = bmodel::Place::Caller;
    stage->tensors[*slot]->preprocess =
        text(function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kPreprocessAttr));
    slots[argument] = *slot;
    stage->inputs.push_back(*slot);
  }
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    std::string name = text(function.getResultAttrOfType<StringAttr>(unsigned(index), top::TopDialect::kNameAttr));
    auto slot = addSlot(cast<RankedTensorType>(value.getType()), name, bmodel::TensorRole::Output);
    if (!slot) {
      return slot.takeError();
    }
    bmodel::TensorDefT &tensor = *stage->tensors[*slot];
    tensor.place = bmodel::Place::Caller;
    tensor.name = name; // an input may have the same one
    if (StringRef inner = top::getTensorName(value); !inner.empty() && inner != name) {
      tensor.onnx_names.push_back(inner.str());
    }
    stage->outputs.push_back(*slot);
    if (device::getConstantRoot(value) || !slots.try_emplace(value, *slot).second) {
      copies.emplace_back(value, *slot);
    }
  }
  return llvm::Error::success();
}

/// Tensors that one subnet makes and another reads are alive from the one to the last of the others.
void MixedPlanner::placeBetween() {
  SmallVector<Value> values;
  SmallVector<device::Buffer> buffers;
  DenseMap<Value, size_t> known;
  for (auto [number, each] : llvm::enumerate(given.subnets)) {
    for (Value value : each.subnet->outputs) {
      if (!slots.contains(value)) {
        known[value] = values.size();
        values.push_back(value);
        buffers.push_back({partition::bytesOf(value), int64_t(number), int64_t(number)});
      }
    }
    for (Value value : each.subnet->inputs) {
      if (auto found = known.find(value); found != known.end()) {
        buffers[found->second].last = int64_t(number);
      }
    }
  }
  device::Placement placed = device::placeBuffers(buffers, device::kAddressAlignment);
  for (auto [value, offset] : llvm::zip_equal(values, placed.offsets)) {
    uint32_t slot = llvm::cantFail(
        addSlot(cast<RankedTensorType>(value.getType()), top::getTensorName(value), bmodel::TensorRole::Workspace));
    stage->tensors[slot]->place = bmodel::Place::Workspace, stage->tensors[slot]->place_index = kBetween;
    stage->tensors[slot]->offset = uint64_t(offset);
    slots[value] = slot;
  }
  for (int i = 0; i < 3; ++i) {
    stage->workspaces.push_back(std::make_unique<bmodel::WorkspaceDefT>());
  }
  stage->workspaces[kBetween]->bytes = uint64_t(placed.bytes);
  stage->workspaces[kBetween]->lower_bound = uint64_t(device::lowerBound(buffers, device::kAddressAlignment));
}

llvm::Error MixedPlanner::addStream(const CompiledSubnet &compiled) {
  const npu::NpuProgram &program = compiled.program;
  bmodel::SubnetDefT &subnet = addSubnet(compiled.subnet->name, bmodel::SubnetKind::Npu, kNpu);
  subnet.isa = planned.model.chips[kNpu]->name;
  subnet.kernel_abi = hw::kIsaVersion, subnet.code_segment = int32_t(kCommands);
  bmodel::RunStreamOnDefT stream;
  stream.inputs = slotsOf(compiled.subnet->inputs), stream.outputs = slotsOf(compiled.subnet->outputs);
  if (stream.inputs.size() + stream.outputs.size() > kMostPorts) {
    return top::unsupported("subnet '" + subnet.name + "' reads and makes more than " + llvm::Twine(kMostPorts) +
                            " tensors that others use");
  }
  stream.bytes = program.commands.size() * hw::kDescriptorBytes;
  stream.offset =
      planned.segments[kCommands].append({reinterpret_cast<const char *>(program.commands.data()), stream.bytes});
  auto step = std::make_unique<bmodel::StepDefT>();
  step->writes = stream.outputs;
  step->op.Set(std::move(stream));
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  step->debug->onnx_nodes = program.layers;
  step->debug->device_op = "npu stream of " + std::to_string(program.commands.size()) + " commands";
  subnet.plan.push_back(std::move(step));
  streamBytes = std::max(streamBytes, program.sizes.workspace);
  streamBound = std::max(streamBound, program.workspaceLowerBound);
  return llvm::Error::success();
}

llvm::Error MixedPlanner::addHost(const CompiledSubnet &compiled) {
  bmodel::SubnetDefT &subnet = addSubnet(compiled.subnet->name, bmodel::SubnetKind::Host, kHost);
  subnet.isa = given.host.llvmCpu().str(), subnet.cpu_features = given.host.cpuFeatureBits();
  subnet.kernel_abi = BM_KERNEL_ABI_VERSION;
  subnet.code_segment = planned.code.empty() ? -1 : int32_t(kHostCode);
  for (const partition::HostOp &op : given.hostOps) {
    if (llvm::is_contained(compiled.subnet->ops, op.op)) {
      subnet.reason += (subnet.reason.empty() ? "'" : "; '") + top::getDisplayName(op.op->getLoc()) + "' " + op.reason;
    }
  }
  PartFrame frame{.stage = *stage,
                  .subnet = subnet,
                  .arguments = slotsOf(compiled.subnet->inputs),
                  .results = slotsOf(compiled.subnet->outputs),
                  .workspace = kKernels,
                  .constantsSegment = kHostConstants,
                  .names = names};
  func::FuncOp function = compiled.outlined.function;
  if (failed(planPart(function, given.host, given.kernels, frame, planned))) {
    return llvm::createStringError("failed to plan a subnet of the host");
  }
  size_t next = 0;
  for (Operation &op : function.getBody().front()) {
    if (needsKernel(&op)) {
      subnet.plan[next++]->debug->estimated_ns = partition::hostSeconds(&op, {}) * 1e9;
    }
  }
  kernelBytes = std::max(kernelBytes, planned.workspaceBytes);
  kernelBound = std::max(kernelBound, planned.workspaceLowerBound);
  return llvm::Error::success();
}

/// Calls the subnet that was added last. Behind another one, that hands over to the other side.
void MixedPlanner::call() {
  bmodel::CallSubnetDefT callee;
  callee.subnet = uint32_t(stage->subnets.size() - 1);
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(callee);
  step->writes = slotsOf(given.subnets[callee.subnet - 1].subnet->outputs);
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  step->debug->device_op = "subnet " + stage->subnets.back()->name;
  step->debug->estimated_ns = callee.subnet > 1 ? partition::HostModel().handOver * 1e9 : 0;
  main->plan.push_back(std::move(step));
}

llvm::Expected<uint32_t> MixedPlanner::addConstant(Value value) {
  std::optional<top::TensorData> data = top::getConstantData(device::getConstantRoot(value));
  if (!data) {
    return llvm::createStringError("internal error: the weight store lacks a constant output");
  }
  auto slot = addSlot(cast<RankedTensorType>(value.getType()), "", bmodel::TensorRole::Constant);
  if (slot) {
    bmodel::TensorDefT &tensor = *stage->tensors[*slot];
    tensor.place = bmodel::Place::Segment, tensor.place_index = kHostConstants;
    tensor.offset = planned.segments[kHostConstants].append({data->bytes.data(), data->bytes.size()});
    planned.constants.push_back(*data);
  }
  return slot;
}

llvm::Error MixedPlanner::addCopies() {
  for (auto [value, to] : copies) {
    auto known = slots.find(value);
    llvm::Expected<uint32_t> from = known == slots.end() ? addConstant(value) : known->second;
    if (!from) {
      return from.takeError();
    }
    main->plan.push_back(copyStep(*from, to));
  }
  return llvm::Error::success();
}

void MixedPlanner::finish() {
  addStreamConstants(*stage, kStreamConstants, given.constants);
  stage->workspaces[kStreams]->bytes = streamBytes, stage->workspaces[kStreams]->lower_bound = streamBound;
  stage->workspaces[kKernels]->bytes = kernelBytes, stage->workspaces[kKernels]->lower_bound = kernelBound;
  planned.workspaceBytes = planned.workspaceLowerBound = 0;
  for (const auto &workspace : stage->workspaces) {
    planned.workspaceBytes += workspace->bytes, planned.workspaceLowerBound += workspace->lower_bound;
  }
}

} // namespace

void addStreamConstants(bmodel::StageDefT &stage, uint32_t segment, const npu::Constants &constants) {
  for (auto [number, piece] : llvm::enumerate(constants.pieces)) {
    std::string name = "constant " + std::to_string(number) + (piece.layer.empty() ? "" : " of " + piece.layer);
    int64_t bytes = int64_t(piece.bytes);
    bmodel::TensorDefT &tensor = *stage.tensors[bmodel::addTensor(stage, name, bmodel::DType::I8, {&bytes, 1})];
    tensor.layout = bmodel::LayoutKind::Packed, tensor.role = bmodel::TensorRole::Constant;
    tensor.place = bmodel::Place::Segment, tensor.place_index = segment;
    tensor.offset = piece.offset;
  }
}

llvm::Expected<PlannedModel> planMixed(MixedModel model) { return MixedPlanner(std::move(model)).plan(); }

} // namespace tessera::codegen
