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

/// y = the largest of x and its right neighbour, by a stream that goes through the workspace.
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
  }

  /// Writes it and opens it; the status says how that went.
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
  std::string description = chipText("npu-edge"), told = fingerprint(chip);
  uint32_t version = kIsaVersion;
  uint64_t workspace = 1024;

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
    model.chips[0]->name = "npu-edge", model.chips[0]->description = description, model.chips[0]->fingerprint = told;
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
    subnet.plan.push_back(std::move(step));
  }
};

/// What opening says once `change` has been at a good model.
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
  bmrt_status_t status;
  bmrt_model_t *opened = model.open(status);
  ASSERT_NE(opened, nullptr) << status.message;
  bmrt_context_t *context = nullptr;
  ASSERT_EQ(bmrt_context_create(opened, nullptr, &context, &status), BMRT_OK) << status.message;
  alignas(64) int8_t x[kBytes], y[kBytes];
  ASSERT_EQ(bmrt_context_bind_input(context, 0, x, sizeof x, &status), BMRT_OK) << status.message;
  ASSERT_EQ(bmrt_context_bind_output(context, 0, y, sizeof y, &status), BMRT_OK) << status.message;
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < kBytes; ++i) {
      x[i] = int8_t(i * 37 + turn);
    }
    ASSERT_EQ(bmrt_context_run(context, &status), BMRT_OK) << status.message;
    for (int i = 0; i < kBytes; ++i) {
      ASSERT_EQ(y[i], (i + 1) % kRow ? std::max(x[i], x[i + 1]) : x[i]) << turn << " " << i;
    }
  }
  bmrt_context_destroy(context);
  bmrt_model_release(opened);
}

TEST(NpuBackend, RefusesWhatIsNotForIt) {
  std::string fault = faultAfter([](LargestOfTwo &m) { m.version = kIsaVersion + 1; });
  EXPECT_TRUE(holds(fault, "has commands of version 2; this runtime runs version 1")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.told = fingerprint(chipNamed("npu-pro")); });
  EXPECT_TRUE(holds(fault, fingerprint(chipNamed("npu-edge"))) && holds(fault, fingerprint(chipNamed("npu-pro"))))
      << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.description = "{}"; });
  EXPECT_TRUE(holds(fault, "name is missing")) << fault;
}

TEST(NpuBackend, RefusesStreamsThatAreNotSafe) {
  std::string fault = faultAfter([](LargestOfTwo &m) { m.commands[1].header.wait = 0; });
  EXPECT_TRUE(holds(fault, "command 0 (copy) and command 1 (pool) may run at the same time")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.workspace = 128; });
  EXPECT_TRUE(holds(fault, "command 2 (copy): operand y reaches outside its region")) << fault;
  fault = faultAfter([](LargestOfTwo &m) { m.commands.pop_back(); });
  EXPECT_TRUE(holds(fault, "an output, is never written")) << fault;
}
