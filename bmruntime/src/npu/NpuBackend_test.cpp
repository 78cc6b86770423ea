// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend_test.cpp - Files with command streams, good and bad -------===//
#include "bmodel/npu/check.h"
#include "bmodel_format/test/TestChip.h"
#include "bmodel_format/test/TestModel.h"
#include "bmrt/bmrt.h"

#include <functional>
#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

constexpr uint32_t kChannels = 20, kRow = 16;
constexpr int64_t kBytes = int64_t(kChannels) * kRow;

/// A model that computes y = max(x, right neighbour of x) with a stream that uses the workspace.
struct LargestOfTwo {
  LargestOfTwo() {
    Shape shape{{1, kChannels, 1, kRow}};
    Region output = Region(int(Region::io) + 1);
    copy(place(Region::local, 0), place(Region::io, 0), shape);
    pool_command pool;
    pool.y = place(Region::local, 4096), pool.x = place(Region::local, 0), pool.shape = shape;
    pool.rows = 1, pool.columns = kRow, pool.window.kernel[1] = 2, pool.largest = 1;
    commands.push_back(encode(pool));
    copy(place(Region::workspace, 64), place(Region::local, 4096), shape);
    copy(place(output, 0), place(Region::workspace, 64), shape);
    assignWaits(commands, chip);
    for (size_t i = 1; i < commands.size(); ++i) {
      commands[i].header.layer = 1;
    }
  }

  /// Writes the model and opens it; |status| is the result of opening.
  bmrt_model_t *open(bmrt_status_t &status) {
    ModelDefT model;
    describe(model);
    std::vector<SegmentContents> segments;
    segments.emplace_back(SegmentKind::Code);
    segments.emplace_back(SegmentKind::Constants);
    segments[0].append({reinterpret_cast<const char *>(commands.data()), commands.size() * kDescriptorBytes});
    segments[1].append({"constant", 8});
    std::string path = test::temporaryPath("npu.bmodel");
    EXPECT_EQ(writeModel(model, segments, path), "");
    bmrt_model_t *opened = nullptr;
    status = {};
    bmrt_model_open(path.c_str(), nullptr, &opened, &status);
    return opened;
  }

  const Chip chip = chipNamed("npu-edge");
  std::vector<Descriptor> commands;
  std::string description = chipText("npu-edge"), recorded = fingerprint(chip);
  uint32_t version = kIsaVersion;
  uint64_t workspace = 1024;
  std::vector<std::string> layers = {"input", "MaxPool_7"};
  bool twice = false; ///< runs the stream twice, in subnets that the first subnet calls

private:
  static Tensor place(Region region, uint64_t offset) {
    return {.offset = offset, .strides = {0, int32_t(kRow), int32_t(kRow), 1}, .region = region, .type = Type::i8};
  }
  void copy(const Tensor &y, const Tensor &x, const Shape &shape) {
    commands.push_back(encode(copy_command{.y = y, .x = x, .shape = shape}));
  }

  void describe(ModelDefT &model) const {
    model.name = "largest";
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[0]->name = "npu-edge", model.chips[0]->description = description,
    model.chips[0]->fingerprint = recorded;
    model.nets.push_back(std::make_unique<NetDefT>());
    model.nets[0]->name = "largest";
    model.nets[0]->stages.push_back(std::make_unique<StageDefT>());
    StageDefT &stage = *model.nets[0]->stages[0];
    for (bool isOutput : {false, true}) {
      uint32_t slot = addTensor(stage, isOutput ? "y" : "x", DType::I8, std::array<int64_t, 2>{kChannels, kRow});
      stage.tensors[slot]->role = isOutput ? TensorRole::Output : TensorRole::Input;
      stage.tensors[slot]->place = Place::Caller, stage.tensors[slot]->bytes = kBytes;
      (isOutput ? stage.outputs : stage.inputs).push_back(slot);
    }
    stage.workspaces.push_back(std::make_unique<WorkspaceDefT>());
    stage.workspaces[0]->bytes = workspace;
    stage.subnets.push_back(std::make_unique<SubnetDefT>());
    SubnetDefT &subnet = *stage.subnets[0];
    subnet.name = "main", subnet.kind = SubnetKind::Npu, subnet.kernel_abi = version, subnet.code_segment = 0;
    auto step = std::make_unique<StepDefT>();
    RunStreamDefT stream;
    stream.bytes = commands.size() * kDescriptorBytes;
    step->op.Set(stream);
    step->writes = {1};
    step->debug = std::make_unique<StepDebugDefT>();
    step->debug->onnx_nodes = layers;
    subnet.plan.push_back(std::move(step));
    if (twice) {
      runTwice(stage);
    }
  }

  void runTwice(StageDefT &stage) const {
    uint32_t slot = addTensor(stage, "between", DType::I8, std::array<int64_t, 2>{kChannels, kRow});
    stage.tensors[slot]->place_index = 1, stage.tensors[slot]->bytes = kBytes;
    stage.workspaces.push_back(std::make_unique<WorkspaceDefT>());
    stage.workspaces[1]->bytes = kBytes;
    for (bool isSecond : {false, true}) {
      auto called = std::make_unique<SubnetDefT>(*stage.subnets[0]);
      called->name = isSecond ? "second" : "first";
      RunStreamOnDefT stream;
      stream.bytes = commands.size() * kDescriptorBytes;
      stream.inputs = {isSecond ? slot : 0}, stream.outputs = {isSecond ? 1 : slot};
      called->plan[0]->writes = stream.outputs;
      called->plan[0]->op.Set(std::move(stream));
      stage.subnets.push_back(std::move(called));
    }
    SubnetDefT &first = *stage.subnets[0];
    first.kind = SubnetKind::Control, first.code_segment = -1;
    first.plan.clear();
    for (uint32_t callee : {1, 2}) {
      CallSubnetDefT call;
      call.subnet = callee;
      first.plan.push_back(std::make_unique<StepDefT>());
      first.plan.back()->op.Set(call);
    }
  }
};

/// An opened model with its input and output bound; the context is null if opening fails.
struct Running {
  explicit Running(LargestOfTwo &model) : opened(model.open(status)) {
    if (opened && bmrt_context_create(opened, nullptr, &context, &status) == BMRT_OK) {
      EXPECT_EQ(bmrt_context_bind_input(context, 0, x, sizeof x, &status), BMRT_OK) << status.message;
      EXPECT_EQ(bmrt_context_bind_output(context, 0, y, sizeof y, &status), BMRT_OK) << status.message;
    }
  }
  ~Running() {
    bmrt_context_destroy(context);
    bmrt_model_release(opened);
  }

  bmrt_status_t status;
  bmrt_model_t *opened;
  bmrt_context_t *context = nullptr;
  alignas(64) int8_t x[kBytes], y[kBytes];
};

/// Applies `change` to a valid model and returns the message of opening it.
std::string faultAfter(const std::function<void(LargestOfTwo &)> &change) {
  LargestOfTwo model;
  change(model);
  bmrt_status_t status;
  bmrt_model_t *opened = model.open(status);
  EXPECT_EQ(opened, nullptr);
  return status.message;
}

bool holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST(NpuBackend, RunsStreams) {
  LargestOfTwo model;
  Running running(model);
  ASSERT_NE(running.context, nullptr) << running.status.message;
  auto &[status, opened, context, x, y] = running;
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < kBytes; ++i) {
      x[i] = int8_t(i * 37 + turn);
    }
    ASSERT_EQ(bmrt_context_run(context, &status), BMRT_OK) << status.message;
    for (int i = 0; i < kBytes; ++i) {
      ASSERT_EQ(y[i], (i + 1) % kRow ? std::max(x[i], x[i + 1]) : x[i]) << turn << " " << i;
    }
  }
}

TEST(NpuBackend, StreamsRunOnTensorsBetweenSubnets) {
  // Runs the stream twice: from x to a tensor between the subnets, and from there to y.
  LargestOfTwo model;
  model.twice = true;
  Running running(model);
  ASSERT_NE(running.context, nullptr) << running.status.message;
  auto &[status, opened, context, x, y] = running;
  for (int i = 0; i < kBytes; ++i) {
    x[i] = int8_t(i * 37);
  }
  ASSERT_EQ(bmrt_context_run(context, &status), BMRT_OK) << status.message;
  for (int i = 0; i < kBytes; ++i) {
    int8_t wanted = x[i];
    for (int k = 1; k <= 2 && i % int(kRow) + k < int(kRow); ++k) {
      wanted = std::max(wanted, x[i + k]);
    }
    ASSERT_EQ(y[i], wanted) << i;
  }
}

TEST(NpuBackend, FaultsInAnySubnetAreFound) {
  EXPECT_PRED2(holds, faultAfter([](LargestOfTwo &m) {
                 m.twice = true;
                 m.commands.pop_back(); // then neither y nor the tensor between is written
               }),
               "buffer 1, an output, is never written");
}

TEST(NpuBackend, FaultsDuringARunNameTheLayer) {
  LargestOfTwo model;
  // The text "constant", read as row numbers, is far outside any table.
  Tensor x{.strides = {0, 0, 0, 1}, .region = Region::io, .type = Type::i8}, y = x, index = x;
  y.region = Region::workspace, y.offset = 512;
  index.region = Region::constants, index.type = Type::i32, index.strides[3] = 4;
  model.commands.push_back(encode(gather_command{.y = y, .x = x, .index = index, .shape = {{1, 1, 1, 8}}, .rows = 1}));
  model.commands.back().header.layer = 2;
  assignWaits(model.commands, model.chip);
  model.layers.push_back("Embedding_9");
  bmrt_status_t status;
  bmrt_model_t *opened = model.open(status);
  ASSERT_NE(opened, nullptr) << status.message;
  bmrt_context_t *context = nullptr;
  ASSERT_EQ(bmrt_context_create(opened, nullptr, &context, &status), BMRT_OK) << status.message;
  EXPECT_EQ(bmrt_context_run(context, &status), BMRT_INVALID_ARGUMENT);
  EXPECT_STREQ(status.message, "command 4 (gather): an index is outside the table; command 4 is of 'Embedding_9'");
  bmrt_context_destroy(context);
  bmrt_model_release(opened);
}

TEST(NpuBackend, RejectsWhatIsNotForIt) {
  std::string fault = faultAfter([](LargestOfTwo &m) { m.version = kIsaVersion + 1; });
  EXPECT_TRUE(holds(fault, "has commands of version 2; this runtime runs version 1")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.twice = true, m.version = kIsaVersion + 1; });
  EXPECT_TRUE(holds(fault, "subnet 'first' has commands of version " + std::to_string(kIsaVersion + 1))) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.twice = true, m.recorded = fingerprint(chipNamed("npu-pro")); });
  EXPECT_TRUE(holds(fault, fingerprint(chipNamed("npu-edge"))) && holds(fault, fingerprint(chipNamed("npu-pro"))));
  fault = faultAfter([](LargestOfTwo &m) { m.recorded = fingerprint(chipNamed("npu-pro")); });
  EXPECT_TRUE(holds(fault, fingerprint(chipNamed("npu-edge"))) && holds(fault, fingerprint(chipNamed("npu-pro"))))
      << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.description = "{}"; });
  EXPECT_TRUE(holds(fault, "name is missing")) << fault;
}

TEST(NpuBackend, RejectsStreamsThatAreNotSafe) {
  std::string fault = faultAfter([](LargestOfTwo &m) { m.commands[1].header.wait = 0; });
  EXPECT_TRUE(holds(fault, "command 0 (copy) and command 1 (pool) may run at the same time")) << fault;
  EXPECT_TRUE(holds(fault, "; command 0 is of 'input'; command 1 is of 'MaxPool_7'")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.commands[1].header.id = 7; });
  EXPECT_TRUE(
      holds(fault, "command 1 (pool): id is 7, expected is 1, the next id of its queue; command 1 is of 'MaxPool_7'"))
      << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.commands[1].header.opcode = Opcode(99); });
  EXPECT_TRUE(holds(fault, "command 1: unknown opcode 99; command 1 is of 'MaxPool_7'")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.workspace = 128; });
  EXPECT_TRUE(holds(fault, "command 2 (copy): operand y reaches outside its region")) << fault;
  EXPECT_TRUE(holds(fault, "; command 2 is of 'MaxPool_7'")) << fault;
  // If the layer number is out of range or the file names no layers, the message does not name a layer.
  fault = faultAfter([](LargestOfTwo &m) { m.workspace = 128, m.commands[2].header.layer = 2; });
  EXPECT_TRUE(holds(fault, "reaches outside its region") && !holds(fault, " is of ")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.workspace = 128, m.layers.clear(); });
  EXPECT_TRUE(holds(fault, "reaches outside its region") && !holds(fault, " is of ")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.commands.pop_back(); });
  EXPECT_TRUE(holds(fault, "an output, is never written")) << fault;
}
