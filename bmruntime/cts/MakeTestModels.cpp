// SPDX-License-Identifier: Apache-2.0
//===- MakeTestModels.cpp - Writes small models for tests outside of C++ --===//
//
// Usage: bmrt_make_test_models FOLDER
// add_relu.bmodel     y = relu(x + w), x and y f32 1x1024, w[i] = i - 3
// blocked.bmodel      the same, with the sum "sum" as f32 1x5x2x2 in blocks of 16 channels (x: 1x1x2x2x16)
// dynamic.bmodel      y[i] = x[i] + N, x and y f32 [N], N in 1..64
// sized.bmodel        y[n, ceil(w/2)] from x[n, w] and t[n + w/3] (SizedModel.h), with kernel contracts
// data_sized.bmodel   the same and p[c, ceil(w/2)], c read from an input (DataSizedModel.h)
// custom.bmodel       y = relu(x + w / 2), the sum by a custom operator (CustomModel.h)
// custom_sized.bmodel sized, z by a custom operator (CustomModel.h)
// stages.bmodel       add_relu, with a second stage for x and y f32 2x256 that uses the first of its weights
// contract.bmodel     add_relu with kernel contracts
// control.bmodel      contract, followed by a loop with calls: its trip count is the first int64 of x, at most 5;
//                     count += 1, an int64 state, and last = the iteration number
// endless.bmodel      add_relu, followed by a loop that runs as long as the first byte of x is not 0
// npu_add.bmodel      y = x + 2, x and y f32 1x1024, a command stream for npu-edge
// npu_mixed.bmodel    y = relu(x + 2): the sum by that stream, relu by a kernel of the host
// abacus.bmodel       add_relu on a chip with its own memory
// abacus_host.bmodel  abacus; meanwhile the host adds x and u, a second constant, to z, a second output
//
//===----------------------------------------------------------------------===//
#include "AbacusModel.h"
#include "CustomModel.h"
#include "DataSizedModel.h"
#include "bmodel/npu/check.h"
#include "bmodel/npu/program.h"
#include "bmodel_format/test/TestChip.h"

#include <bit>
#include <cstdio>

using namespace bmodel;
using namespace bmrt::cts;

namespace {

/// x is already blocked, so that "sum" exercises the conversion to row-major.
void makeBlocked(bmodel::test::AddRelu &model) {
  const int64_t stored[] = {1, 1, 2, 2, 16}, logical[] = {1, 5, 2, 2};
  auto setShape = [&](uint32_t slot, std::span<const int64_t> shape) {
    model.tensor(slot).shape.clear();
    for (int64_t size : shape) {
      model.tensor(slot).shape.push_back(constantDim(size));
    }
  };
  for (uint32_t slot : {model.x, model.w, model.y}) {
    setShape(slot, stored);
  }
  setShape(model.sum, logical);
  model.tensor(model.sum).layout = LayoutKind::ChannelBlocked;
  model.tensor(model.sum).block = 16;
  model.tensor(model.sum).block_axis = 1;
}

void makeDynamic(bmodel::test::AddRelu &model) {
  auto n = std::make_unique<DimSlotDefT>();
  n->name = "N";
  n->min = 1;
  n->max = 64;
  model.stage().dims.push_back(std::move(n));
  for (uint32_t slot : {model.x, model.y}) {
    model.tensor(slot).shape = {Dim(64, 0)};
  }
  model.subnet().plan.clear();
  StepDefT &step = addLaunch(model.subnet(), addKernel(model.subnet(), "add_dim", 2), {model.x, model.y}, 0, {model.y});
  step.op.AsLaunchDef()->dims = {0};
  step.op.AsLaunchDef()->tile_count_slot = 0;
}

/// Uses every kind of step that a CPU supports, and a state.
void makeControl(bmodel::test::AddRelu &model) {
  StageDefT &stage = model.stage();
  auto add = [&](const char *name, DType dtype, TensorRole role, Place place, uint64_t offset) {
    const uint32_t slot = addTensor(stage, name, dtype, std::array<int64_t, 1>{1});
    model.tensor(slot).role = role, model.tensor(slot).place = place, model.tensor(slot).offset = offset;
    return slot;
  };
  auto addSubnet = [&](const char *name, SubnetKind kind) -> SubnetDefT & {
    auto result = std::make_unique<SubnetDefT>();
    result->name = name, result->kind = kind;
    if (kind == SubnetKind::X86) {
      result->kernel_abi = BM_KERNEL_ABI_VERSION, result->cpu_features = BM_CPU_SSE2, result->code_segment = 0;
    }
    stage.subnets.push_back(std::move(result));
    return *stage.subnets.back();
  };
  auto addStep = [](SubnetDefT &subnet, auto op) {
    subnet.plan.push_back(std::make_unique<StepDefT>());
    subnet.plan.back()->op.Set(std::move(op));
  };
  stage.workspaces[0]->bytes += 128, stage.state_bytes = 8;
  const uint32_t count = add("count", DType::I64, TensorRole::State, Place::State, 0);
  const uint32_t going = add("going", DType::Bool, TensorRole::Workspace, Place::Workspace, 4096);
  const uint32_t number = add("number", DType::I64, TensorRole::Workspace, Place::Workspace, 4096 + 64);
  const uint32_t last = add("last", DType::I64, TensorRole::Output, Place::Caller, 0);
  const uint32_t trips = add("trips", DType::I64, TensorRole::Workspace, Place::Caller, 0);
  model.tensor(trips).view_of = int32_t(model.x);
  stage.outputs.insert(stage.outputs.end(), {count, last});
  stage.dims.push_back(std::make_unique<DimSlotDefT>());
  stage.dims[0]->name = "M", stage.dims[0]->max = 100;
  EvalDimDefT eval;
  eval.terms = {DimTerm(7, DimOp::Const), DimTerm(2, DimOp::Const), DimTerm(0, DimOp::CeilDiv)};
  addStep(model.subnet(), eval);
  addLaunch(model.subnet(), addKernel(model.subnet(), "less_than_five", 2), {count, going}, 1, {going});
  LoopDefT loop;
  loop.body = 1, loop.trip_count = int32_t(trips), loop.condition = int32_t(going), loop.iteration = int32_t(number);
  addStep(model.subnet(), loop);
  SubnetDefT &body = addSubnet("body", SubnetKind::X86);
  addLaunch(body, addKernel(body, "increment", 1), {count}, 1, {count});
  addLaunch(body, addKernel(body, "less_than_five", 2), {count, going}, 1, {going});
  CallSubnetDefT call;
  call.subnet = 2;
  addStep(body, call);
  BranchDefT branch;
  branch.condition = going, branch.then_subnet = branch.else_subnet = 3;
  addStep(addSubnet("choose", SubnetKind::Control), branch);
  CopyDefT copy;
  copy.from = number, copy.to = last;
  addStep(addSubnet("copy", SubnetKind::Control), copy);
}

void makeStages(bmodel::test::AddRelu &model) {
  auto smaller = std::make_unique<StageDefT>(model.stage());
  for (auto &tensor : smaller->tensors) {
    tensor->shape = {constantDim(2), constantDim(256)};
    tensor->bytes /= 2;
  }
  for (auto &step : smaller->subnets[0]->plan) {
    step->op.AsLaunchDef()->tile_count /= 2;
  }
  model.model.nets[0]->stages.push_back(std::move(smaller));
}

/// A stream that adds 2: the map program is the constant, the tensors are those of add_relu.
std::vector<npu::Descriptor> addTwo(const npu::Chip &chip) {
  using namespace npu;
  auto place = [](Region region, uint64_t offset, Type type, int32_t size) {
    return Tensor{.offset = offset, .strides = {0, 0, 0, size}, .region = region, .type = type};
  };
  Tensor x = place(Region::local, 0, Type::f32, 4), y = place(Region::local, 8192, Type::f32, 4);
  Tensor input = place(Region::io, 0, Type::f32, 4), output = place(Region(int(Region::io) + 1), 0, Type::f32, 4);
  Shape shape{{1, 1, 1, 1024}};
  std::vector<Descriptor> commands = {encode(copy_command{.y = x, .x = input, .shape = shape}),
                                      encode(map_command{.y = y,
                                                         .a = x,
                                                         .b = {},
                                                         .c = {},
                                                         .d = {},
                                                         .shape = shape,
                                                         .program = place(Region::constants, 0, Type::i32, 4),
                                                         .length = 2,
                                                         .plain = 1}),
                                      encode(copy_command{.y = output, .x = y, .shape = shape})};
  assignWaits(commands, chip);
  return commands;
}

const npu::Instruction kAddTwo[] = {{npu::Op::constant, 1, 0, 0, std::bit_cast<uint32_t>(2.0f)},
                                    {npu::Op::add, 2, 0, 1, 0}};

uint32_t addVector(StageDefT &stage, const char *name, TensorRole role, Place place, uint32_t index = 0) {
  uint32_t slot = addTensor(stage, name, DType::F32, std::array<int64_t, 2>{1, 1024});
  stage.tensors[slot]->role = role;
  stage.tensors[slot]->place = place, stage.tensors[slot]->place_index = index;
  return slot;
}

/// A file for npu-edge with x and y, whose first code and constants are those of addTwo.
struct NpuModel {
  NpuModel() {
    model.producer = "test";
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[0]->name = chip.name, model.chips[0]->family = "npu";
    model.chips[0]->description = npu::chipText("npu-edge"), model.chips[0]->fingerprint = npu::fingerprint(chip);
    model.nets.push_back(std::make_unique<NetDefT>());
    model.nets[0]->name = "main";
    model.nets[0]->stages.push_back(std::make_unique<StageDefT>());
    stage().inputs = {addVector(stage(), "x", TensorRole::Input, Place::Caller)};
    stage().outputs = {addVector(stage(), "y", TensorRole::Output, Place::Caller)};
    segments.emplace_back(SegmentKind::Code);
    segments.emplace_back(SegmentKind::Constants);
    segments[0].append({reinterpret_cast<const char *>(commands.data()), bytes()});
    segments[1].append({reinterpret_cast<const char *>(kAddTwo), sizeof kAddTwo});
  }

  StageDefT &stage() { return *model.nets[0]->stages[0]; }
  uint64_t bytes() const { return commands.size() * npu::kDescriptorBytes; }

  SubnetDefT &addSubnet(const char *name, SubnetKind kind, uint32_t abi, int32_t code) {
    stage().subnets.push_back(std::make_unique<SubnetDefT>());
    SubnetDefT &subnet = *stage().subnets.back();
    subnet.name = name, subnet.kind = kind, subnet.kernel_abi = abi, subnet.code_segment = code;
    return subnet;
  }

  template <typename OpT>
  static void addStep(SubnetDefT &subnet, OpT op, std::vector<uint32_t> writes) {
    subnet.plan.push_back(std::make_unique<StepDefT>());
    subnet.plan.back()->op.Set(std::move(op));
    subnet.plan.back()->writes = std::move(writes);
  }

  int write(const std::string &path) {
    const std::string error = writeModel(model, segments, path);
    fprintf(stderr, "%s", error.c_str());
    return !error.empty();
  }

  npu::Chip chip = npu::chipNamed("npu-edge");
  std::vector<npu::Descriptor> commands = addTwo(chip);
  ModelDefT model;
  std::vector<SegmentContents> segments;
};

int writeNpu(const std::string &path) {
  NpuModel file;
  file.model.name = "npu_add";
  RunStreamDefT stream;
  stream.bytes = file.bytes();
  NpuModel::addStep(file.addSubnet("main", SubnetKind::Npu, npu::kIsaVersion, 0), stream, {1});
  return file.write(path);
}

/// Writes a model of the stream of npu_add, followed by the host's kernel "relu".
int writeMixed(const std::string &path) {
  NpuModel file;
  file.model.name = "npu_mixed";
  for (uint64_t bytes : {0, 4096}) {
    file.stage().workspaces.push_back(std::make_unique<WorkspaceDefT>());
    file.stage().workspaces.back()->bytes = bytes;
  }
  uint32_t between = addVector(file.stage(), "between", TensorRole::Workspace, Place::Workspace, 1);
  file.segments.emplace_back(SegmentKind::Code);
  file.segments[2].append(contractCode());
  SubnetDefT &main = file.addSubnet("main", SubnetKind::Control, 0, -1);
  for (uint32_t callee : {1, 2}) {
    CallSubnetDefT call;
    call.subnet = callee;
    NpuModel::addStep(main, call, {callee == 1 ? between : 1});
  }
  RunStreamOnDefT stream;
  stream.bytes = file.bytes(), stream.inputs = {0}, stream.outputs = {between};
  NpuModel::addStep(file.addSubnet("npu_0", SubnetKind::Npu, npu::kIsaVersion, 0), stream, {between});
  SubnetDefT &host = file.addSubnet("host_1", SubnetKind::Host, BM_KERNEL_ABI_VERSION, 2);
  host.cpu_features = BM_CPU_SSE2, host.reason = "'Relu_1' is here to be tested";
  addLaunch(host, addKernel(host, "relu", 2), {between, 1}, 64, {1});
  return file.write(path);
}

/// Inserts a kernel of the host between the copy to the chip and the copy of y back.
void addWorkOfTheHost(AddReluOn &model) {
  StageDefT &stage = model.stage();
  auto add = [&](const char *name, uint32_t like) {
    stage.tensors.push_back(std::make_unique<TensorDefT>(model.tensor(like)));
    stage.tensors.back()->name = name, stage.tensors.back()->onnx_names.clear();
    stage.tensors.back()->chip = -1;
    return uint32_t(stage.tensors.size() - 1);
  };
  const uint32_t u = add("u", model.w), z = add("z", model.y);
  stage.outputs.push_back(z);
  stage.subnets.push_back(std::make_unique<SubnetDefT>());
  SubnetDefT &host = *stage.subnets.back();
  host.name = "host", host.kind = SubnetKind::Host, host.code_segment = 0, host.kernel_abi = BM_KERNEL_ABI_VERSION;
  addLaunch(host, addKernel(host, "add", 3), {model.x, u, z}, 64, {z});
  AbacusParts::addCall(model.subnet(), 2);
  std::swap(model.subnet().plan[2], model.subnet().plan[3]);
}

template <typename TestModel>
int write(TestModel &model, const std::string &path) {
  const std::string error = model.write(path);
  if (!error.empty()) {
    fprintf(stderr, "%s\n", error.c_str());
  }
  return !error.empty();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: bmrt_make_test_models FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  bmodel::test::AddRelu addRelu(kernelCode(), 1024), blocked(kernelCode(), 64), dynamic(kernelCode(), 64),
      stages(kernelCode(), 1024), contract(contractCode(), 1024), control(contractCode(), 1024);
  bmrt::cts::Endless endless;
  bmrt::cts::CustomModel custom;
  bmrt::cts::SizedCustomModel customSized;
  SizedModel sized;
  DataSizedModel dataSized;
  AddReluOn abacus("abacus"), abacusAndHost("abacus");
  addWorkOfTheHost(abacusAndHost);
  makeBlocked(blocked);
  makeDynamic(dynamic);
  makeStages(stages);
  makeControl(control);
  return write(addRelu, folder + "/add_relu.bmodel") || write(blocked, folder + "/blocked.bmodel") ||
         write(dynamic, folder + "/dynamic.bmodel") || write(stages, folder + "/stages.bmodel") ||
         write(contract, folder + "/contract.bmodel") || write(control, folder + "/control.bmodel") ||
         write(endless, folder + "/endless.bmodel") || write(sized, folder + "/sized.bmodel") ||
         write(dataSized, folder + "/data_sized.bmodel") || write(custom, folder + "/custom.bmodel") ||
         write(customSized, folder + "/custom_sized.bmodel") || writeNpu(folder + "/npu_add.bmodel") ||
         writeMixed(folder + "/npu_mixed.bmodel") || write(abacus, folder + "/abacus.bmodel") ||
         write(abacusAndHost, folder + "/abacus_host.bmodel");
}
