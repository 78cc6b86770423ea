// SPDX-License-Identifier: Apache-2.0
//===- Stages_test.cpp - Nets for several shapes and chips ----------------===//
#include "Fixture.h"

#include <functional>

using namespace bmrt;
using namespace bmrt::cts;
using namespace bmodel;

namespace {

/// relu(x + w) on [1, 1024], [2, 256], [2, 1024] for a machine that does not exist, and [1, 1024] again for chip
/// "other". The w of the smaller stage is the beginning of the larger one.
struct FourStages : bmodel::test::AddRelu {
  FourStages() : AddRelu(kernelCode(), 1024) {
    model.chips[0]->family = "x86";
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[1]->name = "other";
    add(2, 256), add(2, 1024), add(1, 1024);
    model.nets[0]->stages[2]->subnets[0]->cpu_features = uint64_t(1) << 63;
    model.nets[0]->stages[3]->chip = 1;
  }

  void add(int64_t rows, int64_t columns) {
    auto result = std::make_unique<StageDefT>(*model.nets[0]->stages[0]);
    for (auto &tensor : result->tensors) {
      tensor->shape = {constantDim(rows), constantDim(columns)};
      tensor->bytes = uint64_t(rows) * uint64_t(columns) * sizeof(float);
    }
    if (rows * columns > 1024) { // this stage never runs
      result->tensors[w]->shape = {constantDim(1)}, result->tensors[w]->bytes = 4;
    }
    result->workspaces[0]->bytes = result->tensors[sum]->bytes;
    for (auto &step : result->subnets[0]->plan) {
      step->op.AsLaunchDef()->tile_count = rows * columns / 16;
    }
    model.nets[0]->stages.push_back(std::move(result));
  }
};

std::vector<float> runOn(Net &net, const std::vector<float> &x) {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>("y");
  return std::vector<float>(y, y + x.size());
}

std::string messageOf(const std::function<void()> &action, bmrt_code_t code) {
  try {
    action();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Stages, ShapesChooseTheStage) {
  FourStages test;
  Net net(openWritten(test, "stages.bmodel"), {.threads = 2});
  EXPECT_EQ(net.stage(), 0u);
  const std::vector<float> large = someInput(1024), small = someInput(512);
  const std::vector<float> weights(test.weights.begin(), test.weights.begin() + 512);
  for (int round = 0; round < 3; ++round) {
    net.setShape("x", {1, 1024});
    EXPECT_EQ(runOn(net, large), addRelu(large, test.weights));
    net.setShape("x", {2, 256});
    EXPECT_EQ(net.stage(), 1u);
    EXPECT_EQ(net.inputs()[0].bytes, 2048u);
    EXPECT_EQ(runOn(net, small), addRelu(small, weights));
  }
}

TEST(Stages, ErrorsTellTheShapesThereAre) {
  FourStages test;
  Model model = openWritten(test, "stages-errors.bmodel");
  Net net(model);
  EXPECT_EQ(messageOf([&] { net.setShape("x", {3, 7}); }, BMRT_INVALID_ARGUMENT),
            "no stage of the net takes inputs of 3x7: dimension 0 of input 'x' is 3, at most 2 is possible; there are "
            "1x1024 (x86); 2x256 (x86); 1x1024 (other)");
  EXPECT_NE(messageOf([&] { net.setShape("x", {2, 1024}); }, BMRT_UNSUPPORTED).find("cannot run here"),
            std::string::npos);
  EXPECT_EQ(net.stage(), 0u) << "an error moved the context";
  const std::vector<float> x = someInput(1024);
  EXPECT_EQ(runOn(net, x), addRelu(x, test.weights));
  // A context with a named stage does not switch stages.
  Net fixed(model, {.stage = 1});
  EXPECT_NE(messageOf([&] { fixed.setShape("x", {1, 1024}); }, BMRT_INVALID_ARGUMENT).find("is 2, not 1"),
            std::string::npos);
  check(bmrt_context_set_stage, fixed.get(), 0u);
  EXPECT_EQ(runOn(fixed, x), addRelu(x, test.weights));
  EXPECT_NE(messageOf([&] { check(bmrt_context_set_stage, fixed.get(), 9u); }, BMRT_NOT_FOUND).find("no stage 9"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { check(bmrt_context_set_stage, fixed.get(), 2u); }, BMRT_UNSUPPORTED), "");
}

/// x + w with both as inputs: w is as large as x in one stage and has its full size in another.
struct TwoInputs : FourStages {
  TwoInputs() {
    auto &stages = model.nets[0]->stages;
    stages.resize(2), stages.push_back(std::make_unique<StageDefT>(*stages[1]));
    stages[2]->tensors[w]->shape = stages[0]->tensors[w]->shape;
    stages[2]->tensors[w]->bytes = stages[0]->tensors[w]->bytes;
    for (auto &stage : stages) {
      stage->tensors[w]->role = TensorRole::Input, stage->tensors[w]->place = Place::Caller;
      stage->tensors[w]->place_index = 0, stage->tensors[w]->offset = 0;
      stage->inputs = {x, w};
    }
  }
};

TEST(Stages, OtherInputsKeepTheirShapesIfTheyCan) {
  TwoInputs test;
  Net net(openWritten(test, "stages-inputs.bmodel"));
  EXPECT_EQ(messageOf([&] { net.setShape("w", {7, 7}); }, BMRT_INVALID_ARGUMENT),
            "no stage of the net takes inputs of w=7x7: dimension 0 of input 'w' is 7, at most 2 is possible; there "
            "are x=1x1024,w=1x1024 (x86); x=2x256,w=2x256 (x86); "
            "x=2x256,w=1x1024 (x86)");
  net.setShape("x", {2, 256});
  EXPECT_EQ(net.stage(), 2u);
  net.setShape("w", {2, 256});
  EXPECT_EQ(net.stage(), 1u);
  net.setShape("x", {1, 1024});
  EXPECT_EQ(net.stage(), 0u) << "no stage has w as it was";
}

/// relu(x + w) with both as inputs, of shapes [1, N] and [1, M]; M is N if |areEqual|.
struct SymbolicInputs : bmodel::test::AddRelu {
  explicit SymbolicInputs(bool areEqual) : AddRelu(kernelCode(), 1024) {
    tensor(w).role = TensorRole::Input, tensor(w).place = Place::Caller;
    tensor(w).place_index = 0, tensor(w).offset = 0;
    stage().inputs = {x, w};
    for (const char *name : {"N", "M"}) {
      auto dim = std::make_unique<DimSlotDefT>();
      dim->name = name, dim->min = 1, dim->max = 1024;
      stage().dims.push_back(std::move(dim));
    }
    tensor(x).shape = {constantDim(1), Dim(1024, 0)};
    tensor(w).shape = {constantDim(1), Dim(1024, areEqual ? 0 : 1)};
  }
};

std::string setShapes(Net &net, std::vector<int64_t> first, std::vector<int64_t> second) {
  const int64_t *shapes[] = {first.data(), second.data()};
  const uint32_t ranks[] = {uint32_t(first.size()), uint32_t(second.size())};
  bmrt_status_t status;
  return bmrt_context_set_input_shapes(net.get(), shapes, ranks, 2, &status) == BMRT_OK ? "" : status.message;
}

std::vector<std::vector<int64_t>> shapesOf(Net &net) {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto &input : net.inputs()) {
    shapes.emplace_back(input.shape, input.shape + input.rank);
  }
  return shapes;
}

class AnyOrNamedStage : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Stages, AnyOrNamedStage, testing::Values(BMRT_FIRST_RUNNABLE_STAGE, 0));

TEST_P(AnyOrNamedStage, TakesAllShapesOrNone) {
  SymbolicInputs test(false);
  Net net(openWritten(test, "stages-all.bmodel"), {.stage = GetParam()});
  const std::vector<std::vector<int64_t>> before = {{1, 8}, {1, 16}};
  ASSERT_EQ(setShapes(net, before[0], before[1]), "");
  EXPECT_EQ(shapesOf(net), before);
  EXPECT_NE(setShapes(net, {1, 32}, {1, 2000}).find("'w' is 2000"), std::string::npos);
  EXPECT_EQ(shapesOf(net), before) << "a part of what was refused was taken";
}

TEST_P(AnyOrNamedStage, TakesOneSizeForASymbol) {
  SymbolicInputs test(true);
  Net net(openWritten(test, "stages-symbol.bmodel"), {.stage = GetParam()});
  ASSERT_EQ(setShapes(net, {1, 8}, {1, 8}), "");
  EXPECT_EQ(setShapes(net, {1, 8}, {1, 16}), "dimension 1 ('N') of input 'w' is 16, that of input 'x' is 8");
  EXPECT_EQ(shapesOf(net)[1][1], 8);
}

TEST(Stages, ChipsCanBeChosen) {
  FourStages test;
  Model model = openWritten(test, "stages-chips.bmodel");
  Net other(model, {.chip = "other"});
  EXPECT_EQ(other.stage(), 3u);
  EXPECT_NE(messageOf([&] { other.setShape("x", {2, 256}); }, BMRT_INVALID_ARGUMENT).find("dimension"),
            std::string::npos);
  EXPECT_EQ(Net(model, {.chip = "x86"}).stage(), 0u);
  EXPECT_NE(messageOf([&] { Net(model, {.chip = "npu-base"}); }, BMRT_NOT_FOUND).find("for chip 'npu-base'"),
            std::string::npos);
}

TEST(Stages, ShareOneWorkspaceOfTheCaller) {
  FourStages test;
  Model model = openWritten(test, "stages-workspace.bmodel");
  AlignedFloats memory(1024);
  bmrt_context_options_t options = {};
  options.struct_size = sizeof(options);
  options.stage = BMRT_FIRST_RUNNABLE_STAGE;
  options.workspace = memory.data(), options.workspace_bytes = 2048;
  bmrt_context_t *context = nullptr;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_create(model.get(), &options, &context, &status), BMRT_INVALID_ARGUMENT);
  options.workspace_bytes = 4096;
  ASSERT_EQ(bmrt_context_create(model.get(), &options, &context, &status), BMRT_OK) << status.message;
  const int64_t shape[] = {2, 256}, *shapes[] = {shape};
  const uint32_t rank = 2;
  EXPECT_EQ(bmrt_context_set_input_shapes(context, shapes, &rank, 2, &status), BMRT_INVALID_ARGUMENT);
  ASSERT_EQ(bmrt_context_set_input_shapes(context, shapes, &rank, 1, &status), BMRT_OK) << status.message;
  EXPECT_EQ(bmrt_context_run(context, &status), BMRT_OK);
  bmrt_context_destroy(context);
}

TEST(Stages, ProfilesFollow) {
  FourStages test;
  Net net(openWritten(test, "stages-profile.bmodel"));
  check(bmrt_context_set_profiling, net.get(), true);
  runOn(net, someInput(1024));
  net.setShape("x", {2, 256});
  runOn(net, someInput(512));
  runOn(net, someInput(512));
  bmrt_step_time_t time;
  check(bmrt_context_step_time, net.get(), 0u, &time);
  EXPECT_EQ(time.runs, 2u);
  net.setShape("x", {1, 1024});
  check(bmrt_context_step_time, net.get(), 0u, &time);
  EXPECT_EQ(time.runs, 1u);
}

} // namespace
