//===- StageBuilder.cpp - The stage of a model under construction ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StageBuilder.h"

#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

using namespace mlir;

namespace tessera::codegen {

StageBuilder::StageBuilder(func::FuncOp function, partition::Partition::Targets targets,
                           std::vector<std::optional<TargetProgram>> programs, bool keepsTensors)
    : function(function), given(std::move(programs)), keepsTensors(keepsTensors) {
  createFrame(targets);
}

void StageBuilder::createFrame(partition::Partition::Targets targets) {
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
      model.chips.push_back(std::make_unique<bmodel::ChipDefT>(targets[target]->describe()));
    }
    if (program) {
      link(uint32_t(target), *model.chips.back());
    }
  }
}

void StageBuilder::link(uint32_t target, const bmodel::ChipDefT &chip) {
  Linked &to = linked[target];
  to.chip = uint32_t(planned.model.chips.size() - 1), to.section = uint32_t(planned.segments.size());
  to.memory = chip.memory == bmodel::MemoryKind::Host ? kHostMemory : int32_t(to.chip);
  to.workspace = addWorkspace(to.memory);
  llvm::append_range(planned.segments, given[target]->sections);
  for (const auto &[name, section] : given[target]->blobs) {
    bmodel::BlobDefT &blob = *planned.model.blobs.emplace_back(std::make_unique<bmodel::BlobDefT>());
    blob.name = name, blob.segment = to.section + section;
  }
  for (SubnetProgram &program : given[target]->subnets) {
    reserve(*stage->workspaces[to.workspace], program);
  }
}

/// Makes room for a program in the workspace, behind the programs before it if tensors must not share memory.
void StageBuilder::reserve(bmodel::WorkspaceDefT &workspace, SubnetProgram &program) {
  if (!keepsTensors) {
    workspace.bytes = std::max(workspace.bytes, program.workspaceBytes);
    workspace.lower_bound = std::max(workspace.lower_bound, program.workspaceLowerBound);
    return;
  }
  uint64_t begin = llvm::alignTo(workspace.bytes, device::kAddressAlignment);
  for (bmodel::TensorDefT &tensor : program.tensors) {
    if (tensor.view_of < 0 && tensor.place == bmodel::Place::Workspace) {
      tensor.offset += begin;
    }
  }
  workspace.bytes = begin + program.workspaceBytes;
  workspace.lower_bound += program.workspaceLowerBound;
}

uint32_t StageBuilder::addWorkspace(int32_t memory) {
  auto workspace = std::make_unique<bmodel::WorkspaceDefT>();
  if (memory != kHostMemory) {
    workspace->memory = bmodel::MemoryKind::Device, workspace->chip = uint32_t(memory);
  }
  stage->workspaces.push_back(std::move(workspace));
  return uint32_t(stage->workspaces.size() - 1);
}

std::string StageBuilder::uniqueName(const std::string &wanted) {
  std::string name = wanted;
  for (size_t i = names.size(); name.empty() || !names.insert(name).second; ++i) {
    name = (wanted.empty() ? "t" : wanted) + "#" + std::to_string(i);
  }
  return name;
}

llvm::Expected<uint32_t> StageBuilder::addTensor(Value value, StringRef name, bmodel::TensorRole role) {
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

llvm::Error StageBuilder::addInput(BlockArgument argument) {
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
  stage->inputs.push_back(*slot);
  arguments.push_back(*slot);
  return llvm::Error::success();
}

llvm::Error StageBuilder::addOutput(OpOperand &result) {
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
  results.push_back(*slot);
  return llvm::Error::success();
}

llvm::Error StageBuilder::addState(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  StringRef name = function.getArgAttrOfType<StringAttr>(index, top::kStateAttr).getValue();
  auto slot = addTensor(argument, name, bmodel::TensorRole::State);
  if (!slot) {
    return slot.takeError();
  }
  tensor(*slot).place = bmodel::Place::State, tensor(*slot).offset = stage->state_bytes;
  stage->state_bytes = llvm::alignTo(stage->state_bytes + tensor(*slot).bytes, device::kAddressAlignment);
  if (auto initial = function.getArgAttrOfType<DenseElementsAttr>(index, top::kInitialAttr)) {
    OpBuilder builder(function.getBody());
    auto constant = top::ConstantOp::create(builder, function.getLoc(), argument.getType(), initial);
    auto from = addConstant(constant);
    if (!from) {
      return from.takeError();
    }
    tensor(*slot).initial = int32_t(*from);
  }
  if (std::optional<top::Growth> growth = top::getGrowth(function, index)) {
    tensor(*slot).length = int32_t(sizes->slotOf(growth->before)), tensor(*slot).length_axis = uint8_t(growth->axis);
  }
  if (auto output = function.getArgAttrOfType<StringAttr>(index, top::kInPlaceAttr)) {
    tensor(*slot).onnx_names = {output.str()}; // the value after a run
  }
  arguments.push_back(*slot);
  currentStates[name] = *slot;
  return llvm::Error::success();
}

llvm::Error StageBuilder::addNextState(OpOperand &result) {
  unsigned index = result.getOperandNumber();
  uint32_t current = currentStates.at(function.getResultAttrOfType<StringAttr>(index, top::kStateAttr).getValue());
  auto slot = addTensor(result.get(), top::getTensorName(result.get()), bmodel::TensorRole::Workspace);
  if (!slot) {
    return slot.takeError();
  }
  if (auto name = function.getResultAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr)) {
    tensor(current).onnx_names = {name.str()}; // the value after a run
  }
  results.push_back(*slot);
  states.push_back({current, *slot});
  return llvm::Error::success();
}

llvm::Error StageBuilder::addPorts() {
  if (llvm::Error error = sizes->bindInputs(function)) {
    return error;
  }
  sizes->bindSteps(function);
  for (BlockArgument argument : function.getArguments()) {
    bool isState = top::isStateArgument(function, argument.getArgNumber());
    if (llvm::Error error = isState ? addState(argument) : addInput(argument)) {
      return error;
    }
  }
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    bool isState = top::isStateResult(function, result.getOperandNumber());
    if (llvm::Error error = isState ? addNextState(result) : addOutput(result)) {
      return error;
    }
  }
  return llvm::Error::success();
}

bmodel::SubnetDefT &StageBuilder::addSubnet(std::unique_ptr<bmodel::SubnetDefT> subnet, StringRef name, uint32_t chip) {
  subnet->name = name.str(), subnet->chip = chip;
  stage->subnets.push_back(std::move(subnet));
  return *stage->subnets.back();
}

bmodel::SubnetDefT &StageBuilder::addControlSubnet(StringRef name) {
  bmodel::SubnetDefT &subnet = addSubnet(std::make_unique<bmodel::SubnetDefT>(), name, 0);
  subnet.kind = bmodel::SubnetKind::Control;
  return subnet;
}

uint32_t StageBuilder::workspaceBetween(int32_t memory) {
  auto [known, isNew] = between.try_emplace(memory, 0);
  if (isNew) {
    known->second = addWorkspace(memory);
  }
  return known->second;
}

void StageBuilder::place(uint32_t workspace, ArrayRef<uint32_t> slots, ArrayRef<device::Buffer> buffers) {
  SmallVector<device::Buffer> placed(buffers);
  if (keepsTensors) { // all live at the same time
    llvm::for_each(placed, [](device::Buffer &buffer) { buffer.first = buffer.last = 0; });
  }
  device::Placement placement = device::placeBuffers(placed, device::kAddressAlignment);
  bmodel::WorkspaceDefT &def = *stage->workspaces[workspace];
  uint64_t begin = keepsTensors ? llvm::alignTo(def.bytes, device::kAddressAlignment) : 0;
  def.bytes = std::max(def.bytes, begin + uint64_t(placement.bytes));
  def.lower_bound = std::max(def.lower_bound, uint64_t(device::lowerBound(placed, device::kAddressAlignment)));
  for (auto [slot, offset] : llvm::zip_equal(slots, placement.offsets)) {
    bmodel::TensorDefT &each = tensor(slot);
    each.place = bmodel::Place::Workspace, each.place_index = workspace, each.offset = begin + uint64_t(offset);
  }
}

uint32_t StageBuilder::linkTensor(const Linked &to, bmodel::TensorDefT tensor) {
  tensor.name = uniqueName(tensor.name);
  if (tensor.view_of < 0 && tensor.place == bmodel::Place::Workspace) {
    tensor.place_index = to.workspace;
  } else if (tensor.view_of < 0 && tensor.place == bmodel::Place::Segment) {
    tensor.place_index += to.section, tensor.chip = to.memory;
  }
  stage->tensors.push_back(std::make_unique<bmodel::TensorDefT>(std::move(tensor)));
  return uint32_t(stage->tensors.size() - 1);
}

std::vector<std::unique_ptr<bmodel::StepDefT>> StageBuilder::updateSteps(ArrayRef<top::SizeUpdate> updates) const {
  std::vector<std::unique_ptr<bmodel::StepDefT>> steps;
  for (const top::SizeUpdate &update : updates) {
    steps.push_back(std::make_unique<bmodel::StepDefT>());
    steps.back()->op.Set(sizes->update(update));
  }
  return steps;
}

std::vector<std::unique_ptr<bmodel::StepDefT>> StageBuilder::checkSteps(Shape a, Shape b) {
  std::vector<std::unique_ptr<bmodel::StepDefT>> steps;
  for (size_t d = 0; d < a.rank(); ++d) {
    if (!sameSize(a[d], b[d])) {
      steps.push_back(std::make_unique<bmodel::StepDefT>());
      steps.back()->op.Set(sizes->check(a[d], b[d]));
    }
  }
  return steps;
}

std::unique_ptr<bmodel::StepDefT> StageBuilder::readStep(top::BindOp op, uint32_t from) {
  bmodel::ReadDimDefT read;
  read.slot = sizes->slotOf(sizeOf(op.getSymbol())), read.from = from, read.index = op.getIndex();
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(read);
  return step;
}

void StageBuilder::linkSizes(SubnetProgram &program) {
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
    } else if (bmodel::RunStreamOnDefT *run = step->op.AsRunStreamOnDef()) {
      llvm::for_each(run->dims, [&](uint32_t &slot) { slot = map[slot]; });
    } else if (bmodel::ReadDimDefT *read = step->op.AsReadDimDef()) {
      read->slot = map[read->slot];
    }
  }
}

llvm::Expected<uint32_t> StageBuilder::addConstant(Value value) {
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

PlannedModel StageBuilder::finish() {
  if (!states.empty()) {
    placeNextStates(*stage, states, addWorkspace(kHostMemory));
  }
  for (auto &[target, to] : linked) {
    for (bmodel::TensorDefT &tensor : given[target]->tensors) {
      linkTensor(to, std::move(tensor));
    }
  }
  for (auto &view : stage->tensors) { // a root may have been placed after its views were added
    if (view->view_of >= 0) {
      const bmodel::TensorDefT &root = tensor(uint32_t(view->view_of));
      view->place = root.place, view->place_index = root.place_index;
    }
  }
  sizes->limitSizes(function);
  planned.programs = std::move(given); // segments point into the programs
  for (const auto &workspace : stage->workspaces) {
    planned.workspaceBytes += workspace->bytes, planned.workspaceLowerBound += workspace->lower_bound;
  }
  return std::move(planned);
}

} // namespace tessera::codegen
