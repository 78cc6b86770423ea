// SPDX-License-Identifier: Apache-2.0
//===- Validate_test.cpp - One test per rule of Validator.h ---------------===//
//
// The writer runs the validator. Each case takes a valid model, damages one thing, and expects a message.
//
//===----------------------------------------------------------------------===//
#include "bmodel/utf8.h"
#include "bmodel_format/test/TestModel.h"

#include <functional>
#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::test;

namespace {

struct Case {
  const char *name;
  std::function<void(AddRelu &)> damage;
  const char *message; ///< must occur in the error
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

LaunchDefT &launch(AddRelu &m) { return *m.subnet().plan[0]->op.AsLaunchDef(); }

template <typename OpT>
void replaceStep(AddRelu &m, OpT op) {
  m.subnet().plan[0]->op.Set(std::move(op));
}

/// Replaces the first step with a stream on these tensors.
void runOn(AddRelu &m, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
  m.subnet().kind = SubnetKind::Npu;
  RunStreamOnDefT stream;
  stream.inputs = std::move(inputs), stream.outputs = std::move(outputs);
  replaceStep(m, std::move(stream));
}

/// Adds a second chip with its own memory, and a workspace in it.
void addDevice(AddRelu &m) {
  m.model.chips.push_back(std::make_unique<ChipDefT>());
  m.model.chips[1]->name = "gpu", m.model.chips[1]->family = "test", m.model.chips[1]->memory = MemoryKind::Device;
  m.stage().workspaces.push_back(std::make_unique<WorkspaceDefT>(*m.stage().workspaces[0]));
  m.stage().workspaces[1]->memory = MemoryKind::Device, m.stage().workspaces[1]->chip = 1;
}

/// Moves the sum to the device: x is copied there, a stream reads it and the weights there and writes "sum", which is
/// copied back as y.
void moveToDevice(AddRelu &m) {
  addDevice(m);
  m.stage().workspaces[1]->bytes *= 2;
  m.tensor(m.sum).place_index = 1, m.tensor(m.w).chip = 1;
  const int64_t shape[] = {1, 1024};
  const uint32_t there = addTensor(m.stage(), "x there", DType::F32, shape);
  m.tensor(there).place_index = 1, m.tensor(there).offset = 4096;
  m.stage().subnets.push_back(std::make_unique<SubnetDefT>());
  SubnetDefT &program = *m.stage().subnets[1];
  program.name = "device", program.kind = SubnetKind::Device, program.chip = 1, program.code_segment = 0;
  program.workspace = -1;
  RunStreamOnDefT stream;
  stream.bytes = 10, stream.inputs = {there, m.w}, stream.outputs = {m.sum};
  program.plan.push_back(std::make_unique<StepDefT>());
  program.plan[0]->op.Set(stream);
  CopyDefT in, out;
  in.from = m.x, in.to = there, out.from = m.sum, out.to = m.y;
  CallSubnetDefT call;
  call.subnet = 1;
  m.subnet().plan.push_back(std::make_unique<StepDefT>());
  m.subnet().kind = SubnetKind::Control;
  m.subnet().plan[0]->op.Set(in), m.subnet().plan[1]->op.Set(call), m.subnet().plan[2]->op.Set(out);
  for (auto &step : m.subnet().plan) {
    step->writes.clear();
  }
}

void addDim(AddRelu &m, int64_t min, int64_t max, int64_t divisor = 1) {
  m.stage().dims.push_back(std::make_unique<DimSlotDefT>());
  m.stage().dims.back()->name = "N";
  m.stage().dims.back()->min = min;
  m.stage().dims.back()->max = max;
  m.stage().dims.back()->divisor = divisor;
}

void addExpression(AddRelu &m, std::vector<DimTerm> terms) {
  addDim(m, 0, 10);
  EvalDimDefT eval;
  eval.terms = std::move(terms);
  replaceStep(m, eval);
}

/// Adds the dim "N" in 1..10 and the dim "D" in 0..20, which |terms| derive.
void addDerived(AddRelu &m, std::vector<DimTerm> terms) {
  addDim(m, 1, 10);
  addDerivedDim(m.stage(), "D", std::move(terms), {0, 20});
}

/// Makes `sum` a state that grows along dim 1: its length "N" in 0..1000 becomes "D" = N + 1 after a run.
void addGrowth(AddRelu &m) {
  addDim(m, 0, 1000);
  addDerivedDim(m.stage(), "D", {slotTerm(0), constantTerm(1), opTerm(DimOp::Add)}, {1, 1000});
  m.stage().dims[0]->next = 1;
  TensorDefT &state = m.tensor(m.sum);
  state.role = TensorRole::State, state.place = Place::State, state.length = 0, state.length_axis = 1;
  m.stage().state_bytes = state.bytes;
}

/// Subnet i calls subnet i + 1 |times| times, to a depth of |depth|.
void callTwice(AddRelu &m, uint32_t depth, int times = 2) {
  for (uint32_t i = 0; i < depth; ++i) {
    m.stage().subnets.push_back(std::make_unique<SubnetDefT>());
    SubnetDefT &result = *m.stage().subnets.back();
    result.name = "called", result.kind = SubnetKind::Control;
    CallSubnetDefT call;
    call.subnet = i + 1;
    for (int k = 0; k < times; ++k) {
      m.stage().subnets[i]->plan.push_back(std::make_unique<StepDefT>());
      m.stage().subnets[i]->plan.back()->op.Set(call);
    }
  }
}

void addQuant(AddRelu &m, size_t entries, int32_t axis) {
  auto quant = std::make_unique<QuantDefT>();
  quant->scales.resize(entries, 1);
  quant->zero_points.resize(entries);
  quant->axis = axis;
  m.tensor(m.sum).quant = std::move(quant);
}

uint32_t addView(AddRelu &m, uint32_t of, uint64_t offset) {
  const int64_t shape[] = {16};
  const uint32_t slot = addTensor(m.stage(), "view", DType::F32, shape);
  m.tensor(slot).view_of = int32_t(of);
  m.tensor(slot).offset = offset;
  return slot;
}

const Case cases[] = {
    {"NoNet", [](AddRelu &m) { m.model.nets.clear(); }, "no net"},
    {"NoStage", [](AddRelu &m) { m.model.nets[0]->stages.clear(); }, "no stage"},
    {"NoSubnet", [](AddRelu &m) { m.stage().subnets.clear(); }, "no subnet"},
    {"Chip", [](AddRelu &m) { m.stage().chip = 1; }, "chip 1 of 1"},
    {"SubnetChip", [](AddRelu &m) { m.subnet().chip = 7; }, "chip 7 of 1"},
    {"Blob",
     [](AddRelu &m) {
       m.model.blobs.push_back(std::make_unique<BlobDefT>());
       m.model.blobs[0]->name = "ir";
       m.model.blobs[0]->segment = 2;
     },
     "blob 'ir' refers to segment 2 of 2"},

    {"DType", [](AddRelu &m) { m.tensor(m.sum).dtype = DType(99); }, "unknown element type 99"},
    {"Role", [](AddRelu &m) { m.tensor(m.sum).role = TensorRole(9); }, "unknown role 9"},
    {"Place", [](AddRelu &m) { m.tensor(m.sum).place = Place(9); }, "place 9"},
    {"Layout", [](AddRelu &m) { m.tensor(m.sum).layout = LayoutKind(9); },
     "layout (9, blocks of 0 along 0) does not fit"},
    {"Rank", [](AddRelu &m) { m.tensor(m.sum).shape.resize(17); }, "rank 17 exceeds 16"},
    {"NegativeDim", [](AddRelu &m) { m.tensor(m.sum).shape[0] = constantDim(-1); }, "dimension 0 is -1"},
    {"HugeDims",
     [](AddRelu &m) { m.tensor(m.sum).shape = {constantDim(int64_t(1) << 40), constantDim(int64_t(1) << 40)}; },
     "shape is too large"},
    {"HugeDimsBehindAZero",
     [](AddRelu &m) {
       m.tensor(m.sum).shape = {constantDim(0), constantDim(int64_t(1) << 62), constantDim(4)};
       m.tensor(m.sum).bytes = 0;
     },
     "shape is too large"},
    {"Bytes", [](AddRelu &m) { m.tensor(m.sum).bytes = 4092; }, "takes 4092 bytes, its shape and layout need 4096"},
    {"DimSlot", [](AddRelu &m) { m.tensor(m.sum).shape[1] = Dim(1024, 0); }, "dim slot 0 of 0"},
    {"DimSlotTooLarge",
     [](AddRelu &m) {
       addDim(m, 1, 2000);
       m.tensor(m.sum).shape[1] = Dim(1024, 0);
     },
     "laid out for 1024, its dim slot reaches 2000"},
    {"NextDim", [](AddRelu &m) { addGrowth(m), m.stage().dims[0]->next = 2; }, "becomes dim slot 2 of 2"},
    {"NextBeyond", [](AddRelu &m) { addGrowth(m), m.stage().dims[1]->max = 1001; }, "cannot become 'D' of at most 1001"},
    {"NextNotDerived", [](AddRelu &m) { addGrowth(m), m.stage().dims[0]->next = 0; }, "cannot become 'N'"},
    {"LengthOfNoState", [](AddRelu &m) { addGrowth(m), m.tensor(m.x).length = 0; }, "cannot be the length of its dim 0"},
    {"LengthSlot", [](AddRelu &m) { addGrowth(m), m.tensor(m.sum).length = 2; }, "dim slot 2 of 2 cannot be the length"},
    {"LengthAxis", [](AddRelu &m) { addGrowth(m), m.tensor(m.sum).length_axis = 2; }, "the length of its dim 2"},
    {"LengthTooLarge", [](AddRelu &m) { addGrowth(m), m.tensor(m.sum).length_axis = 0; },
     "its dim 0 of 1 cannot hold the length 'N' of at most 1000"},
    {"LengthOfARun", [](AddRelu &m) { addGrowth(m), m.tensor(m.sum).length = 1; }, "cannot hold the length 'D'"},
    {"DimRange", [](AddRelu &m) { addDim(m, 3, 2); }, "ranges from 3 to 2"},
    {"DimDivisor", [](AddRelu &m) { addDim(m, 1, 2, 0); }, "steps of 0"},
    {"PackedInput", [](AddRelu &m) { m.tensor(m.x).layout = LayoutKind::Packed; }, "packed layout"},
    {"QuantAxis", [](AddRelu &m) { addQuant(m, 1, 2); }, "along axis 2 of rank 2"},
    {"QuantCount", [](AddRelu &m) { addQuant(m, 3, 1); }, "3 scales and 3 zero points for 1024"},

    {"Misaligned", [](AddRelu &m) { m.tensor(m.sum).offset = 4; }, "offset 4 is not a multiple of 64"},
    {"BeyondWorkspace", [](AddRelu &m) { m.tensor(m.sum).offset = 64; }, "exceed the 4096 bytes of its Workspace"},
    {"OffsetOverflow", [](AddRelu &m) { m.tensor(m.sum).offset = UINT64_MAX - 63; }, "exceed the 4096"},
    {"NoSuchWorkspace", [](AddRelu &m) { m.tensor(m.sum).place_index = 1; }, "workspace 1 of 1"},
    {"BeyondSegment", [](AddRelu &m) { m.tensor(m.w).offset = 64; }, "bytes of its Segment"},
    {"ConstantInCode", [](AddRelu &m) { m.tensor(m.w).place_index = 0; }, "not a segment of constants"},
    {"BeyondState",
     [](AddRelu &m) {
       m.tensor(m.sum).place = Place::State;
       m.tensor(m.sum).role = TensorRole::State;
     },
     "bytes of its State"},
    {"WritableInSegment",
     [](AddRelu &m) {
       m.tensor(m.sum).place = Place::Segment;
       m.tensor(m.sum).place_index = 1;
     },
     "cannot be in place Segment"},
    {"InputInWorkspace", [](AddRelu &m) { m.tensor(m.x).place = Place::Workspace; }, "cannot be in place Workspace"},
    {"WorkspaceInCaller", [](AddRelu &m) { m.tensor(m.sum).place = Place::Caller; }, "cannot be in place Caller"},
    {"InitialOfNoState", [](AddRelu &m) { m.tensor(m.sum).initial = int32_t(m.w); }, "the tensor is not a state"},

    {"ViewOfNothing", [](AddRelu &m) { addView(m, 77, 0); }, "view of tensor 77 of 5"},
    {"ViewOfView", [](AddRelu &m) { addView(m, addView(m, m.sum, 0), 0); }, "itself a view"},
    {"ViewOfItself", [](AddRelu &m) { addView(m, 4, 0); }, "itself a view"},
    {"ViewTooFar", [](AddRelu &m) { addView(m, m.sum, 4096); }, "exceed the 4096 bytes of 'sum'"},
    {"WritableViewOfConstant", [](AddRelu &m) { addView(m, m.w, 0); }, "cannot be a view of a Constant"},

    {"InputTwice", [](AddRelu &m) { m.stage().inputs.push_back(m.x); }, "two inputs are called 'x'"},
    {"NoSuchOutput", [](AddRelu &m) { m.stage().outputs = {9}; }, "output is tensor 9 of 4"},
    {"OutputAsInput", [](AddRelu &m) { m.stage().inputs = {m.y}; }, "input 'y' has role Output"},
    {"OutputNotListed", [](AddRelu &m) { m.stage().outputs.clear(); }, "2 tensors are in memory of the caller, 1"},
    {"InputOnlyListedAsOutput",
     [](AddRelu &m) {
       m.stage().inputs.clear();
       m.stage().outputs = {m.x, m.y};
     },
     "2 tensors are in memory of the caller, 1"},

    {"SubnetKind", [](AddRelu &m) { m.subnet().kind = SubnetKind(9); }, "unknown kind 9"},
    {"CodeInConstants", [](AddRelu &m) { m.subnet().code_segment = 1; },
     "code segment is 1, which is not a segment of code"},
    {"NoCode", [](AddRelu &m) { m.subnet().code_segment = -1; }, "code segment is -1, which is not a segment of code"},
    {"KernelAbi", [](AddRelu &m) { m.subnet().kernel_abi = 99; }, "kernel interface 99, this runtime supports 1"},

    {"WritesConstant", [](AddRelu &m) { m.subnet().plan[0]->writes = {m.w}; }, "written tensor 'w' is a constant"},
    {"WritesInput", [](AddRelu &m) { m.subnet().plan[0]->writes = {m.x}; }, "written tensor 'x' is an input"},
    {"WritesNothing", [](AddRelu &m) { m.subnet().plan[0]->writes = {99}; }, "written tensor is tensor 99"},
    {"NoSuchKernel", [](AddRelu &m) { launch(m).kernel = 2; }, "subnet 0 step 0: kernel 2 of 2"},
    {"ArgCount", [](AddRelu &m) { launch(m).args.pop_back(); }, "'add' takes 3 arguments, is given 2"},
    {"NoSuchArg", [](AddRelu &m) { launch(m).args[1] = 4; }, "argument is tensor 4 of 4"},
    {"NegativeTiles", [](AddRelu &m) { launch(m).tile_count = -1; }, "-1 tiles"},
    {"HugeScratch", [](AddRelu &m) { launch(m).scratch_bytes = uint64_t(1) << 40; }, "bytes of scratch"},
    {"NoSuchDim", [](AddRelu &m) { launch(m).dims = {0}; }, "dim argument is dim slot 0 of 0"},
    {"NoSuchTileSlot", [](AddRelu &m) { launch(m).tile_count_slot = 3; }, "tile count is dim slot 3"},
    {"LaunchInControl", [](AddRelu &m) { m.subnet().kind = SubnetKind::Control; }, "Control subnet cannot launch"},
    {"StreamOnCpu", [](AddRelu &m) { replaceStep(m, RunStreamDefT()); }, "cannot run a command stream"},
    {"StreamTooLong",
     [](AddRelu &m) {
       m.subnet().kind = SubnetKind::Npu;
       RunStreamDefT stream;
       stream.offset = 64;
       stream.bytes = 37;
       replaceStep(m, stream);
     },
     "stream of 37 bytes at 64 exceeds the 100 bytes"},
    {"StreamOnNothing", [](AddRelu &m) { runOn(m, {99}, {}); }, "a stream's input is tensor 99 of 4"},
    {"StreamMakesConstant", [](AddRelu &m) { runOn(m, {m.x}, {m.w}); }, "a stream's output 'w' is a constant"},
    {"StreamInItsWorkspace", [](AddRelu &m) { runOn(m, {m.x, m.sum}, {m.y}); },
     "'sum' of a stream lies in workspace 0"},
    {"StreamOutputTwice", [](AddRelu &m) { runOn(m, {m.x}, {m.y, addView(m, m.y, 64)}); },
     "of a stream shares bytes with 'y'"},
    {"StreamOutputRead", [](AddRelu &m) { runOn(m, {addView(m, m.y, 0)}, {m.y}); },
     "output 'y' of a stream shares bytes with"},
    {"StreamOnTooMany", [](AddRelu &m) { runOn(m, std::vector<uint32_t>(241, m.x), {}); },
     "a stream on 241 tensors exceeds 240"},
    {"StreamOnTensorsOfCpu", [](AddRelu &m) { replaceStep(m, RunStreamOnDefT()); }, "cannot run a command stream"},
    {"CallsItself", [](AddRelu &m) { replaceStep(m, CallSubnetDefT()); }, "called subnet is subnet 0"},
    {"BranchType", [](AddRelu &m) { replaceStep(m, BranchDefT()); }, "condition 'x' is not one element of type bool"},
    {"LoopBody", [](AddRelu &m) { replaceStep(m, LoopDefT()); }, "loop body is subnet 0"},
    {"EndlessLoop",
     [](AddRelu &m) {
       m.stage().subnets.push_back(std::make_unique<SubnetDefT>());
       m.stage().subnets[1]->name = "body";
       LoopDefT loop;
       loop.body = 1;
       replaceStep(m, loop);
     },
     "neither a trip count nor a condition"},
    {"CallTree", [](AddRelu &m) { callTwice(m, 40); }, "more than the 4294967296 steps"},
    {"CallDepth", [](AddRelu &m) { callTwice(m, 70, 1); }, "nested more than 64 deep"},
    {"ManySubnets", [](AddRelu &m) { callTwice(m, 4096, 0); }, "it has 4097 subnets"},
    {"ManyTiles", [](AddRelu &m) { launch(m).tile_count = INT64_MAX; }, "9223372036854775807 tiles"},
    {"ManyTilesAtOnce", [](AddRelu &m) { launch(m).grain = INT64_MAX; }, "grains of 9223372036854775807"},
    {"ManyTilesInSlot",
     [](AddRelu &m) {
       addDim(m, 0, INT64_MAX);
       launch(m).tile_count_slot = 0;
     },
     "tile count 'N' reaches 9223372036854775807"},
    {"Memory", [](AddRelu &m) { m.stage().workspaces[0]->memory = MemoryKind(7); },
     "workspace 0 is in unknown memory 7"},
    {"StateBytes", [](AddRelu &m) { m.stage().state_bytes = uint64_t(1) << 40; },
     "states take 1099511627776 bytes, their tensors end at 0"},
    {"StateInWorkspace", [](AddRelu &m) { m.tensor(m.sum).role = TensorRole::State; },
     "role State cannot be in place Workspace"},
    {"InitialOfAView",
     [](AddRelu &m) {
       const uint32_t view = addView(m, m.sum, 0);
       m.tensor(view).role = TensorRole::State;
       m.tensor(view).initial = int32_t(m.w);
     },
     "a view cannot have an initial value"},
    {"ExpressionForAnInput",
     [](AddRelu &m) {
       addExpression(m, {DimTerm(1, DimOp::Const)});
       m.tensor(m.x).shape[1] = Dim(1024, 0);
     },
     "changes dimension 1 of input 'x'"},
    {"StreamIntoConstant",
     [](AddRelu &m) {
       m.subnet().kind = SubnetKind::Npu;
       m.stage().outputs = {m.w};
       m.stage().tensors.pop_back(); // y, which would have no place
       m.subnet().plan.pop_back();
       replaceStep(m, RunStreamDefT());
     },
     "a stream's output 'w' is a constant"},
    {"CopySizes",
     [](AddRelu &m) {
       CopyDefT copy;
       copy.from = addView(m, m.sum, 0);
       copy.to = m.y;
       replaceStep(m, copy);
     },
     "copy of 64 bytes to a tensor of 4096"},
    {"CopyToConstant",
     [](AddRelu &m) {
       CopyDefT copy;
       copy.to = m.w;
       replaceStep(m, copy);
     },
     "target 'w' is a constant"},
    {"EmptyExpression", [](AddRelu &m) { addExpression(m, {}); },
     "expression of dim 'N' does not leave exactly one value"},
    {"ExpressionLacksOperand", [](AddRelu &m) { addExpression(m, {DimTerm(1, DimOp::Const), DimTerm(0, DimOp::Add)}); },
     "lacks operands"},
    {"ExpressionTooDeep", [](AddRelu &m) { addExpression(m, std::vector<DimTerm>(33, DimTerm(1, DimOp::Const))); },
     "stack of more than 32"},
    {"ExpressionOp", [](AddRelu &m) { addExpression(m, {DimTerm(1, DimOp(77))}); }, "has an unknown operation"},
    {"ExpressionSlot", [](AddRelu &m) { addExpression(m, {DimTerm(5, DimOp::Slot)}); }, "refers to a dim that"},
    {"ExpressionForADerivedDim",
     [](AddRelu &m) {
       addExpression(m, {constantTerm(1)});
       m.stage().dims[0]->terms = {constantTerm(1)};
     },
     "a step sets dim 'N', which follows from other dims"},
    {"DerivedFromItself", [](AddRelu &m) { addDerived(m, {slotTerm(1)}); }, "does not precede it"},
    {"DerivedFromALaterDim",
     [](AddRelu &m) {
       addDerived(m, {slotTerm(2)});
       addDim(m, 1, 2);
     },
     "does not precede it"},
    {"DerivedLacksOperand", [](AddRelu &m) { addDerived(m, {slotTerm(0), opTerm(DimOp::Mul)}); },
     "the expression of dim 'D' lacks operands"},
    {"DerivedOverflows",
     [](AddRelu &m) { addDerived(m, {slotTerm(0), constantTerm(INT64_MAX / 9), opTerm(DimOp::Mul)}); },
     "dim 'D' may overflow or divide by zero"},
    {"DerivedDividesByZero",
     [](AddRelu &m) {
       addDerived(m, {constantTerm(8), slotTerm(0), constantTerm(1), opTerm(DimOp::Sub), opTerm(DimOp::FloorDiv)});
     },
     "dim 'D' may overflow or divide by zero"},
    {"DerivedOutOfRange", [](AddRelu &m) { addDerived(m, {slotTerm(0), constantTerm(20), opTerm(DimOp::Add)}); },
     "dim 'D' ranges from 0 to 20, its expression only from 21 to 30"},
    {"DimWithoutValue", [](AddRelu &m) { addDim(m, 33, 60, 32); }, "dim 'N' ranges from 33 to 60 in steps of 32"},
    {"LikelyTooLarge",
     [](AddRelu &m) {
       addDim(m, 1, 8);
       m.stage().dims[0]->likely = 9;
     },
     "the likely value 9 of dim 'N' is not one of its values"},
    {"LikelyNotAMultiple",
     [](AddRelu &m) {
       addDim(m, 32, 96, 32);
       m.stage().dims[0]->likely = 40;
     },
     "the likely value 40"},
    {"SymbolicTripCount",
     [](AddRelu &m) {
       addDim(m, 0, 1);
       const uint32_t trips = addTensor(m.stage(), "trips", DType::I64, std::vector<Dim>{slotDim(m.stage(), 0)});
       m.tensor(trips).view_of = int32_t(m.x);
       LoopDefT loop;
       loop.body = 1, loop.trip_count = int32_t(trips);
       m.stage().subnets.push_back(std::make_unique<SubnetDefT>());
       m.stage().subnets[1]->name = "body";
       replaceStep(m, loop);
     },
     "trip count 'trips' is not one element of type i64"},
    {"StreamOnASymbolicInput",
     [](AddRelu &m) {
       addDim(m, 1, 1024);
       m.tensor(m.x).shape[1] = Dim(1024, 0);
       m.subnet().kind = SubnetKind::Npu;
       m.subnet().plan.pop_back();
       replaceStep(m, RunStreamDefT());
     },
     "tensor 'x' of a stream has symbolic dimensions"},
};

RunStreamOnDefT &deviceStream(AddRelu &m) { return *m.stage().subnets[1]->plan[0]->op.AsRunStreamOnDef(); }

/// A case on a device with its own memory.
Case onDevice(const char *name, std::function<void(AddRelu &)> damage, const char *message) {
  return {name, [damage](AddRelu &m) { moveToDevice(m), damage(m); }, message};
}

const Case deviceCases[] = {
    onDevice(
        "ChipMemory", [](AddRelu &m) { m.model.chips[1]->memory = MemoryKind(5); }, "chip 'gpu' has unknown memory 5"),
    onDevice(
        "WorkspaceOfNoChip", [](AddRelu &m) { m.stage().workspaces[1]->chip = 2; },
        "workspace 1 is in the memory of chip 2 of 2"),
    onDevice(
        "WorkspaceOfAHost", [](AddRelu &m) { m.stage().workspaces[1]->chip = 0; },
        "workspace 1 is in the memory of chip 0 of 2, which does not have its own memory"),
    onDevice(
        "ConstantOfAHost", [](AddRelu &m) { m.tensor(m.w).chip = 0; },
        "tensor 'w': it is in the memory of chip 0 of 2"),
    onDevice(
        "ChipOfAWorkspaceTensor", [](AddRelu &m) { m.tensor(m.sum).chip = 1; },
        "only constants and states that are not views may name a chip"),
    onDevice(
        "NoFamily", [](AddRelu &m) { m.model.chips[1]->family.clear(); }, "chip 'gpu' has no family"),
    onDevice(
        "OldKindOnADevice", [](AddRelu &m) { m.stage().subnets[1]->kind = SubnetKind::Npu; },
        "a Npu subnet runs on the host's memory, chip 'gpu' has its own"),
    onDevice(
        "StreamReadsTheHosts", [](AddRelu &m) { deviceStream(m).inputs[0] = m.x; },
        "a stream's input 'x' is in the host's memory, not in the memory of chip 'gpu': a copy step must"),
    onDevice(
        "StreamWritesTheHosts", [](AddRelu &m) { deviceStream(m).outputs[0] = m.y; },
        "a stream's output 'y' is in the host's memory"),
    onDevice(
        "StreamReadsOthersConstant", [](AddRelu &m) { m.tensor(m.w).chip = -1; },
        "a stream's input 'w' is in the host's memory"),
    onDevice(
        "StreamInItsWorkspace", [](AddRelu &m) { m.stage().subnets[1]->workspace = 1; },
        "'x there' of a stream lies in workspace 1, which is reserved for streams"),
    onDevice(
        "NoSuchWorkspaceOfStreams", [](AddRelu &m) { m.stage().subnets[1]->workspace = 2; },
        "the workspace reserved for its streams is 2 of 2"),
    onDevice(
        "HostsWorkspaceOfStreams", [](AddRelu &m) { m.stage().subnets[1]->workspace = 0; },
        "workspace 0, reserved for its streams, is not in the memory of its chip"),
    onDevice(
        "NoSuchDim", [](AddRelu &m) { deviceStream(m).dims = {0}; }, "a stream's dim is dim slot 0 of 0"),
    onDevice(
        "HostLaunchOnDevice",
        [](AddRelu &m) {
          LaunchDefT launch;
          launch.args = {m.x, m.w, m.sum};
          m.subnet().kind = SubnetKind::X86;
          m.subnet().plan[0]->op.Set(launch);
        },
        "argument 'w' is in the memory of chip 'gpu', not in the host's memory"),
    onDevice(
        "ConditionOnDevice",
        [](AddRelu &m) {
          m.tensor(m.sum).dtype = DType::Bool, m.tensor(m.sum).bytes = 1, m.tensor(m.sum).shape.clear();
          BranchDefT branch;
          branch.condition = m.sum;
          m.subnet().plan[0]->op.Set(branch);
        },
        "condition 'sum' is in the memory of chip 'gpu', not in the host's memory"),
    onDevice(
        "OutputOnDevice", [](AddRelu &m) { m.stage().outputs.push_back(m.sum); },
        "output 'sum' is in the memory of chip 'gpu'"),
    onDevice(
        "CopyBetweenDevices",
        [](AddRelu &m) {
          m.model.chips.push_back(std::make_unique<ChipDefT>(*m.model.chips[1]));
          m.stage().workspaces.push_back(std::make_unique<WorkspaceDefT>(*m.stage().workspaces[1]));
          m.stage().workspaces[2]->chip = 2;
          m.tensor(m.sum).place_index = 2;
          CopyDefT copy;
          copy.from = uint32_t(m.stage().tensors.size() - 1), copy.to = m.sum;
          m.subnet().plan[0]->op.Set(copy);
        },
        "a copy from chip 1 to chip 2 must be two copy steps via the host's memory"),
    {"DimsOfAnNpusStream",
     [](AddRelu &m) {
       addDim(m, 1, 2), runOn(m, {m.x}, {m.y});
       m.subnet().plan[0]->op.AsRunStreamOnDef()->dims = {0};
     },
     "a stream of a Npu subnet takes no dims"},
    {"WorkspaceOfAnNpusStream", [](AddRelu &m) { m.subnet().workspace = -1; },
     "must reserve workspace 0 for its streams, not -1"},
};

TEST(Validate, AcceptsMemoriesOfChips) {
  AddRelu model;
  moveToDevice(model);
  const std::string path = temporaryPath("device.bmodel");
  EXPECT_EQ(model.write(path), "");
}

class Rejects : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Validate, Rejects, testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(ValidateDevice, Rejects, testing::ValuesIn(deviceCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(Rejects, WithAMessage) {
  AddRelu model;
  const std::string path = temporaryPath("validate.bmodel");
  ASSERT_EQ(model.write(path), "") << "the undamaged model is good";
  unlink(path.c_str());
  GetParam().damage(model);
  const std::string error = model.write(path);
  EXPECT_NE(error, "");
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "a refused model was written";
}

TEST(Validate, SaysWhere) {
  AddRelu model;
  model.tensor(model.sum).offset = 4;
  EXPECT_EQ(model.write("/tmp/never.bmodel"),
            "failed to write '/tmp/never.bmodel': invalid model: net 'main' stage 0 tensor 'sum': "
            "offset 4 is not a multiple of 64");
}

/// Lists every text that a file can hold, except for the schema hash, which the writer sets.
std::vector<std::string *> textsOf(AddRelu &m) {
  ChipDefT &chip = *m.model.chips[0];
  SubnetDefT &subnet = m.subnet();
  StepDebugDefT &debug = *subnet.plan[0]->debug;
  TensorDefT &input = m.tensor(m.x);
  addDim(m, 1, 2);
  m.model.blobs.push_back(std::make_unique<BlobDefT>());
  m.model.blobs[0]->segment = 1;
  m.model.properties.push_back(std::make_unique<PropertyDefT>());
  m.tensor(m.sum).onnx_names = {"first", "second"};
  return {&m.model.name,
          &m.model.producer,
          &chip.name,
          &chip.family,
          &chip.description,
          &chip.fingerprint,
          &m.model.nets[0]->name,
          &m.stage().name,
          &input.name,
          &m.tensor(m.sum).onnx_names[1],
          &input.preprocess,
          &m.tensor(m.sum).computed_by,
          &m.stage().dims[0]->name,
          &subnet.name,
          &subnet.isa,
          &subnet.reason,
          &subnet.kernels[0]->symbol,
          &debug.onnx_nodes[0],
          &debug.top_op,
          &debug.device_op,
          &debug.bound,
          &m.model.blobs[0]->name,
          &m.model.properties[0]->key,
          &m.model.properties[0]->value};
}

TEST(Validate, TextOfAnyFieldIsUtf8) {
  AddRelu count;
  for (size_t i = 0, fields = textsOf(count).size(); i < fields; ++i) {
    AddRelu model;
    *textsOf(model)[i] = "caf\xe9";
    const std::string path = temporaryPath("text.bmodel"), error = model.write(path);
    EXPECT_NE(error.find("is not UTF-8"), std::string::npos) << "field " << i << ": " << error;
  }
}

TEST(Validate, Utf8) {
  const auto isTaken = [](std::string text) {
    AddRelu model;
    model.stage().name = std::move(text);
    return model.write(temporaryPath("utf8.bmodel")).empty();
  };
  for (const char *good : {"", "a/b:0", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xe6\xbc\xa2\xe5\xad\x97"}) {
    EXPECT_TRUE(isTaken(good)) << good;
  }
  for (const char *bad :
       {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "good\xf0\x90\x80"}) {
    EXPECT_FALSE(isTaken(bad)) << bad;
  }
}

TEST(Validate, MessagesAreUtf8) {
  AddRelu model;
  std::string name;
  for (int i = 0; i < 40; ++i) {
    name += "\xe6\xbc\xa2"; // messages truncate the name in the middle of a character
  }
  model.tensor(model.sum).name = "x" + name;
  model.tensor(model.sum).offset = 4;
  const std::string error = model.write("/tmp/never.bmodel");
  EXPECT_NE(error.find("'x\xe6\xbc\xa2"), std::string::npos) << error;
  EXPECT_NE(error.find("\xe6\xbc\xa2?\?'"), std::string::npos) << error;
  for (size_t i = 0; i < error.size(); i += utf8SequenceAt(error.c_str() + i)) {
    ASSERT_NE(utf8SequenceAt(error.c_str() + i), 0u) << error;
  }
}

TEST(Validate, ZeroSizedTensors) {
  AddRelu model;
  const int64_t shape[] = {0, 16};
  addTensor(model.stage(), "empty", DType::F32, shape);
  const std::string path = temporaryPath("zero.bmodel");
  EXPECT_EQ(model.write(path), "");
  unlink(path.c_str());
}

} // namespace
