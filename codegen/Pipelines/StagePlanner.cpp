//===- StagePlanner.cpp - Linking programs into a .bmodel stage -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StagePlanner.h"

#include "codegen/Pipelines/StageSizes.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/PlaceBuffers.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;

namespace tessera::codegen {

uint64_t PlannedModel::bytesOf(bmodel::SegmentKind kind) const {
  uint64_t bytes = 0;
  for (const bmodel::SegmentContents &segment : segments) {
    bytes += segment.getKind() == kind ? segment.getBytes() : 0;
  }
  return bytes;
}

namespace {

/// Calls |visit| with every tensor slot of the step.
void visitSlots(bmodel::StepDefT &step, llvm::function_ref<void(uint32_t &)> visit) {
  auto visitAll = [&](std::vector<uint32_t> &slots) { llvm::for_each(slots, visit); };
  auto visitOptional = [&](int32_t &slot) {
    if (auto known = uint32_t(slot); slot >= 0) {
      visit(known);
      slot = int32_t(known);
    }
  };
  visitAll(step.writes);
  if (bmodel::LaunchDefT *launch = step.op.AsLaunchDef()) {
    visitAll(launch->args);
  } else if (bmodel::RunStreamOnDefT *stream = step.op.AsRunStreamOnDef()) {
    visitAll(stream->inputs), visitAll(stream->outputs);
  } else if (bmodel::CopyDefT *copy = step.op.AsCopyDef()) {
    visit(copy->from), visit(copy->to);
  } else if (bmodel::BranchDefT *branch = step.op.AsBranchDef()) {
    visit(branch->condition);
  } else if (bmodel::LoopDefT *loop = step.op.AsLoopDef()) {
    visitOptional(loop->trip_count), visitOptional(loop->condition), visitOptional(loop->iteration);
  }
}

/// Number of the host's memory, which is also the memory of every chip without memory of its own. A chip's own memory
/// has the number of the chip.
constexpr int32_t kHostMemory = -1;
/// A value in a memory.
using Copy = std::pair<Value, int32_t>;

class StagePlanner {
public:
  StagePlanner(func::FuncOp function, const partition::Partition &partition,
               std::vector<std::optional<TargetProgram>> programs)
      : function(function), partition(partition), given(std::move(programs)) {}

  llvm::Expected<PlannedModel> plan();

private:
  /// A target with subnets in the file: its chip, first segment, workspace and memory.
  struct Linked {
    uint32_t chip = 0, section = 0, workspace = 0;
    int32_t memory = kHostMemory;
    size_t next = 0; ///< index of its first subnet that is not in the file yet
  };

  void createFrame();
  void link(uint32_t target, const bmodel::ChipDefT &chip);
  llvm::Error addPorts();
  llvm::Error addInput(BlockArgument argument);
  llvm::Error addOutput(OpOperand &result);
  llvm::Expected<uint32_t> addConstant(Value value);
  void findTransfers();
  void bring(Value value, int32_t memory, int64_t subnet, std::vector<std::pair<Copy, Copy>> &copies);
  llvm::Error placeBetween();
  void addSubnets();
  void addSubnet(size_t number);
  void addCall(size_t number);
  void addCopies(ArrayRef<std::pair<Copy, Copy>> copies);
  std::vector<uint32_t> linkTensors(const partition::Subnet &subnet, SubnetProgram &program);
  void linkSizes(SubnetProgram &program);
  uint32_t linkTensor(const Linked &to, bmodel::TensorDefT tensor);

  bmodel::SubnetDefT &createSubnet(std::unique_ptr<bmodel::SubnetDefT> subnet, StringRef name, uint32_t chip);
  uint32_t createWorkspace(int32_t memory);
  llvm::Expected<uint32_t> addTensor(Value value, StringRef name, bmodel::TensorRole role);
  std::string uniqueName(const std::string &wanted);
  const Linked &linkOf(size_t subnet) const { return linked.at(partition.subnets()[subnet].target); }
  std::vector<uint32_t> slotsOf(ArrayRef<Value> values, int32_t memory) const {
    std::vector<uint32_t> made;
    for (Value value : values) {
      made.push_back(slots.at({value, memory}));
    }
    return made;
  }

  func::FuncOp function;
  const partition::Partition &partition;
  std::vector<std::optional<TargetProgram>> given;
  PlannedModel planned;
  bmodel::StageDefT *stage = nullptr;
  std::optional<StageSizes> sizes;
  bmodel::SubnetDefT *main = nullptr; ///< calls the other subnets if a run takes more than one
  llvm::StringSet<> names;
  std::map<uint32_t, Linked> linked; ///< by target
  DenseMap<Copy, uint32_t> slots;
  DenseMap<Value, int32_t> home; ///< memory in which a value is computed
  DenseSet<Copy> available;      ///< copies that exist so far
  /// Buffers of values that live between subnets, with first and last subnet; the end of the run counts as one more
  /// subnet.
  llvm::MapVector<Copy, device::Buffer> between;
  std::vector<std::vector<std::pair<Copy, Copy>>> before; ///< copies to make before each subnet
  /// Results without a separate tensor: arguments, constants, and values that are returned twice.
  std::vector<std::pair<Value, uint32_t>> repeated;
};

llvm::Expected<PlannedModel> StagePlanner::plan() {
  createFrame();
  if (llvm::Error error = sizes->bindInputs(function)) {
    return std::move(error);
  }
  if (llvm::Error error = addPorts()) {
    return std::move(error);
  }
  findTransfers();
  if (llvm::Error error = placeBetween()) {
    return std::move(error);
  }
  addSubnets();
  for (auto [value, to] : repeated) {
    auto known = slots.find({value, kHostMemory});
    llvm::Expected<uint32_t> from = known == slots.end() ? addConstant(value) : known->second;
    if (!from) {
      return from.takeError();
    }
    main->plan.push_back(copyStep(*from, to));
  }
  for (auto &[target, to] : linked) {
    for (bmodel::TensorDefT &tensor : given[target]->tensors) {
      linkTensor(to, std::move(tensor));
    }
  }
  planned.programs = std::move(given); // segments point into the programs
  for (const auto &workspace : stage->workspaces) {
    planned.workspaceBytes += workspace->bytes, planned.workspaceLowerBound += workspace->lower_bound;
  }
  return std::move(planned);
}

/// Creates the model, its net and stage, and the chips. The first target is the model's chip, even if it runs nothing.
void StagePlanner::createFrame() {
  auto module = function->getParentOfType<ModuleOp>();
  auto name = module->getAttrOfType<StringAttr>(top::TopDialect::kModelNameAttr);
  bmodel::ModelDefT &model = planned.model;
  model.name = name && !name.getValue().empty() ? name.str() : "model";
  model.producer = "tessera " TESSERA_VERSION;
  auto net = std::make_unique<bmodel::NetDefT>();
  net->name = model.name;
  net->stages.push_back(std::make_unique<bmodel::StageDefT>());
  stage = net->stages.back().get();
  stage->name = "static";
  sizes.emplace(*stage);
  model.nets.push_back(std::move(net));
  for (auto [target, program] : llvm::enumerate(given)) {
    if (target == 0 || program) {
      model.chips.push_back(std::make_unique<bmodel::ChipDefT>(partition.targets()[target]->describe()));
    }
    if (program) {
      link(uint32_t(target), *model.chips.back());
    }
  }
}

void StagePlanner::link(uint32_t target, const bmodel::ChipDefT &chip) {
  Linked &to = linked[target];
  to.chip = uint32_t(planned.model.chips.size() - 1), to.section = uint32_t(planned.segments.size());
  to.memory = chip.memory == bmodel::MemoryKind::Host ? kHostMemory : int32_t(to.chip);
  to.workspace = createWorkspace(to.memory);
  llvm::append_range(planned.segments, given[target]->sections);
  for (const auto &[name, section] : given[target]->blobs) {
    bmodel::BlobDefT &blob = *planned.model.blobs.emplace_back(std::make_unique<bmodel::BlobDefT>());
    blob.name = name, blob.segment = to.section + section;
  }
  for (const SubnetProgram &program : given[target]->subnets) {
    bmodel::WorkspaceDefT &workspace = *stage->workspaces[to.workspace];
    workspace.bytes = std::max(workspace.bytes, program.workspaceBytes);
    workspace.lower_bound = std::max(workspace.lower_bound, program.workspaceLowerBound);
  }
}

uint32_t StagePlanner::createWorkspace(int32_t memory) {
  auto workspace = std::make_unique<bmodel::WorkspaceDefT>();
  if (memory != kHostMemory) {
    workspace->memory = bmodel::MemoryKind::Device, workspace->chip = uint32_t(memory);
  }
  stage->workspaces.push_back(std::move(workspace));
  return uint32_t(stage->workspaces.size() - 1);
}

std::string StagePlanner::uniqueName(const std::string &wanted) {
  std::string name = wanted;
  for (size_t i = names.size(); name.empty() || !names.insert(name).second; ++i) {
    name = (wanted.empty() ? "t" : wanted) + "#" + std::to_string(i);
  }
  return name;
}

llvm::Expected<uint32_t> StagePlanner::addTensor(Value value, StringRef name, bmodel::TensorRole role) {
  std::optional<bmodel::TensorDefT> tensor = describeTensor(
      cast<RankedTensorType>(value.getType()), uniqueName(name.str()), [&](Dim size) { return sizes->dimOf(size); });
  if (!tensor) {
    std::string type;
    llvm::raw_string_ostream(type) << value.getType();
    return top::unsupported("'" + name + "' has the type " + type + ", which a .bmodel cannot store");
  }
  tensor->role = role;
  if (!name.empty()) {
    tensor->onnx_names = {name.str()};
  }
  stage->tensors.push_back(std::make_unique<bmodel::TensorDefT>(std::move(*tensor)));
  return uint32_t(stage->tensors.size() - 1);
}

llvm::Error StagePlanner::addInput(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  auto textOf = [&](StringRef attribute) {
    auto text = function.getArgAttrOfType<StringAttr>(index, attribute);
    return text ? text.str() : std::string();
  };
  std::string name = textOf(top::TopDialect::kNameAttr);
  auto slot = addTensor(argument, name.empty() ? "input" + std::to_string(index) : name, bmodel::TensorRole::Input);
  if (!slot) {
    return slot.takeError();
  }
  stage->tensors[*slot]->place = bmodel::Place::Caller;
  stage->tensors[*slot]->preprocess = textOf(top::TopDialect::kPreprocessAttr);
  slots[{argument, kHostMemory}] = *slot;
  available.insert({argument, kHostMemory});
  home[argument] = kHostMemory;
  stage->inputs.push_back(*slot);
  return llvm::Error::success();
}

llvm::Error StagePlanner::addOutput(OpOperand &result) {
  unsigned index = result.getOperandNumber();
  auto text = function.getResultAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
  std::string name = text && !text.getValue().empty() ? text.str() : "output" + std::to_string(index);
  auto slot = addTensor(result.get(), name, bmodel::TensorRole::Output);
  if (!slot) {
    return slot.takeError();
  }
  bmodel::TensorDefT &tensor = *stage->tensors[*slot];
  tensor.place = bmodel::Place::Caller;
  tensor.name = name; // an input may have the same name
  if (StringRef inner = top::getTensorName(result.get()); !inner.empty() && inner != name) {
    tensor.onnx_names.push_back(inner.str());
  }
  stage->outputs.push_back(*slot);
  if (device::getConstantRoot(result.get()) || !slots.try_emplace({result.get(), kHostMemory}, *slot).second) {
    repeated.emplace_back(result.get(), *slot);
  }
  return llvm::Error::success();
}

llvm::Error StagePlanner::addPorts() {
  for (BlockArgument argument : function.getArguments()) {
    if (llvm::Error error = addInput(argument)) {
      return error;
    }
  }
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    if (llvm::Error error = addOutput(result)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Ensures that a value lies in a memory when a subnet begins.
void StagePlanner::bring(Value value, int32_t memory, int64_t subnet, std::vector<std::pair<Copy, Copy>> &copies) {
  Copy wanted(value, memory), source(value, home.at(value));
  if (source.second != memory && source.second != kHostMemory && memory != kHostMemory) {
    bring(value, kHostMemory, subnet, copies); // chips cannot access each other's memory
    source.second = kHostMemory;
  }
  if (available.insert(wanted).second) {
    copies.emplace_back(source, wanted);
    if (!slots.contains(wanted)) {
      between[wanted] = {device::physicalBytes(value), subnet, subnet};
    }
  }
  for (const Copy &used : {source, wanted}) {
    if (auto found = between.find(used); found != between.end()) {
      found->second.last = std::max(found->second.last, subnet);
    }
  }
}

/// Determines the copies before each subnet, and the lifetimes of values between subnets. After the last subnet all
/// results of the model must be in the host's memory.
void StagePlanner::findTransfers() {
  ArrayRef<partition::Subnet> subnets = partition.subnets();
  before.resize(subnets.size() + 1);
  for (auto [number, subnet] : llvm::enumerate(subnets)) {
    int32_t memory = linkOf(number).memory;
    for (Value value : subnet.inputs) {
      bring(value, memory, int64_t(number), before[number]);
    }
    for (Value value : subnet.outputs) {
      home[value] = memory;
      available.insert({value, memory});
      if (!slots.contains({value, memory})) {
        between[{value, memory}] = {device::physicalBytes(value), int64_t(number), int64_t(number)};
      }
    }
  }
  for (Value result : function.getBody().front().getTerminator()->getOperands()) {
    if (!device::getConstantRoot(result)) {
      bring(result, kHostMemory, int64_t(subnets.size()), before.back());
    }
  }
}

llvm::Error StagePlanner::placeBetween() {
  std::map<int32_t, SmallVector<Copy>> byMemory;
  for (const auto &[copy, buffer] : between) {
    byMemory[copy.second].push_back(copy);
  }
  for (const auto &[memory, copies] : byMemory) {
    SmallVector<device::Buffer> buffers = llvm::map_to_vector(copies, [&](Copy copy) { return between[copy]; });
    device::Placement placed = device::placeBuffers(buffers, device::kAddressAlignment);
    uint32_t workspace = createWorkspace(memory);
    stage->workspaces[workspace]->bytes = uint64_t(placed.bytes);
    stage->workspaces[workspace]->lower_bound = uint64_t(device::lowerBound(buffers, device::kAddressAlignment));
    for (auto [copy, offset] : llvm::zip_equal(copies, placed.offsets)) {
      auto slot = addTensor(copy.first, top::getTensorName(copy.first), bmodel::TensorRole::Workspace);
      if (!slot) {
        return slot.takeError();
      }
      bmodel::TensorDefT &tensor = *stage->tensors[*slot];
      tensor.place = bmodel::Place::Workspace, tensor.place_index = workspace, tensor.offset = uint64_t(offset);
      slots[copy] = *slot;
    }
  }
  return llvm::Error::success();
}

bmodel::SubnetDefT &StagePlanner::createSubnet(std::unique_ptr<bmodel::SubnetDefT> subnet, StringRef name,
                                               uint32_t chip) {
  subnet->name = name.str(), subnet->chip = chip;
  stage->subnets.push_back(std::move(subnet));
  return *stage->subnets.back();
}

/// Adds the subnets. A run starts in the only subnet if the model's chip runs everything and no copies are needed,
/// otherwise in a control subnet without code. Copies within the host's memory are steps of the host's own subnet.
void StagePlanner::addSubnets() {
  size_t count = partition.subnets().size();
  bool isAlone = partition.isWhole() && before.front().empty() && before.back().empty() &&
                 (repeated.empty() || linkOf(0).memory == kHostMemory);
  if (!isAlone) {
    main = &createSubnet(std::make_unique<bmodel::SubnetDefT>(), "main", 0);
    main->kind = bmodel::SubnetKind::Control;
  }
  for (size_t number = 0; number < count; ++number) {
    addSubnet(number);
    if (!isAlone) {
      addCopies(before[number]);
      addCall(number);
    }
  }
  if (isAlone) {
    main = stage->subnets.front().get();
    main->name = "main";
  } else {
    addCopies(before.back());
  }
}

void StagePlanner::addCopies(ArrayRef<std::pair<Copy, Copy>> copies) {
  for (const auto &[from, to] : copies) {
    main->plan.push_back(copyStep(slots.at(from), slots.at(to)));
  }
}

uint32_t StagePlanner::linkTensor(const Linked &to, bmodel::TensorDefT tensor) {
  tensor.name = uniqueName(tensor.name);
  if (tensor.view_of < 0 && tensor.place == bmodel::Place::Workspace) {
    tensor.place_index = to.workspace;
  } else if (tensor.view_of < 0 && tensor.place == bmodel::Place::Segment) {
    tensor.place_index += to.section, tensor.chip = to.memory;
  }
  stage->tensors.push_back(std::make_unique<bmodel::TensorDefT>(std::move(tensor)));
  return uint32_t(stage->tensors.size() - 1);
}

/// Replaces the numbers of sizes by dim slots of the stage, in the program's tensors and launches.
void StagePlanner::linkSizes(SubnetProgram &program) {
  auto map = llvm::map_to_vector(program.sizes.sizes(), [&](Dim size) { return sizes->slotOf(size); });
  for (bmodel::TensorDefT &tensor : program.tensors) {
    for (bmodel::Dim &dim : tensor.shape) {
      dim = dim.slot() < 0 ? dim : bmodel::slotDim(*stage, map[size_t(dim.slot())]);
    }
  }
  for (auto &step : program.subnet.plan) {
    if (bmodel::LaunchDefT *launch = step->op.AsLaunchDef()) {
      llvm::for_each(launch->dims, [&](uint32_t &slot) { slot = map[slot]; });
      launch->tile_count_slot = launch->tile_count_slot < 0 ? -1 : int32_t(map[size_t(launch->tile_count_slot)]);
    }
  }
}

/// Returns the stage's slots for a program's slots: its arguments and results, then its own tensors.
std::vector<uint32_t> StagePlanner::linkTensors(const partition::Subnet &subnet, SubnetProgram &program) {
  const Linked &to = linked.at(subnet.target);
  std::vector<uint32_t> map = slotsOf(subnet.inputs, to.memory);
  llvm::append_range(map, slotsOf(subnet.outputs, to.memory));
  for (bmodel::TensorDefT &tensor : program.tensors) {
    if (tensor.view_of >= 0) {
      uint32_t of = map[size_t(tensor.view_of)];
      const bmodel::TensorDefT &root = *stage->tensors[of];
      tensor.place = root.place, tensor.place_index = root.place_index, tensor.view_of = int32_t(of);
      if (root.view_of >= 0) {
        tensor.view_of = root.view_of, tensor.offset += root.offset;
      }
    }
    map.push_back(linkTensor(to, std::move(tensor)));
  }
  return map;
}

void StagePlanner::addSubnet(size_t number) {
  const partition::Subnet &subnet = partition.subnets()[number];
  Linked &to = linked.at(subnet.target);
  SubnetProgram &program = given[subnet.target]->subnets[to.next++];
  linkSizes(program);
  std::vector<uint32_t> map = linkTensors(subnet, program);
  bmodel::SubnetDefT &result =
      createSubnet(std::make_unique<bmodel::SubnetDefT>(std::move(program.subnet)), subnet.name, to.chip);
  result.code_segment += result.code_segment >= 0 ? int32_t(to.section) : 0;
  if (result.kind == bmodel::SubnetKind::Device) { // streams of older kinds use workspace 0
    result.workspace = int32_t(to.workspace);
  }
  for (auto &step : result.plan) {
    visitSlots(*step, [&](uint32_t &slot) { slot = map[slot]; });
  }
  for (const partition::MovedOp &moved : partition.movedOps()) {
    if (llvm::is_contained(subnet.ops, moved.op)) {
      result.reason +=
          (result.reason.empty() ? "'" : "; '") + top::getDisplayName(moved.op->getLoc()) + "' " + moved.reason;
    }
  }
}

/// Adds a call of the subnet that was added last. After a subnet of another target, the call includes the hand-over.
void StagePlanner::addCall(size_t number) {
  bmodel::CallSubnetDefT callee;
  callee.subnet = uint32_t(stage->subnets.size() - 1);
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(callee);
  step->writes = slotsOf(partition.subnets()[number].outputs, linkOf(number).memory);
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  step->debug->device_op = "subnet " + stage->subnets.back()->name;
  step->debug->estimated_ns = partition.handOverSeconds(number) * 1e9;
  main->plan.push_back(std::move(step));
}

llvm::Expected<uint32_t> StagePlanner::addConstant(Value value) {
  std::optional<top::TensorData> data = top::getConstantData(device::getConstantRoot(value));
  if (!data) {
    return llvm::createStringError("internal error: the weight store lacks a constant output");
  }
  auto slot = addTensor(value, "", bmodel::TensorRole::Constant);
  if (slot) {
    bmodel::TensorDefT &tensor = *stage->tensors[*slot];
    tensor.place = bmodel::Place::Segment, tensor.place_index = uint32_t(planned.segments.size());
    planned.segments.emplace_back(bmodel::SegmentKind::Constants).append({data->bytes.data(), data->bytes.size()});
    planned.constants.push_back(*data);
  }
  return slot;
}

} // namespace

llvm::Expected<PlannedModel> planStage(func::FuncOp function, const partition::Partition &partition,
                                       std::vector<std::optional<TargetProgram>> programs) {
  return StagePlanner(function, partition, std::move(programs)).plan();
}

} // namespace tessera::codegen
