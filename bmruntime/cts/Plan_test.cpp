// SPDX-License-Identifier: Apache-2.0
//===- Plan_test.cpp - Steps, aliases, states, symbolic dims, hooks -------===//
#include "Fixture.h"

#include <cstring>
#include <map>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;
using bmodel::test::AddRelu;

namespace {

/// The frame of AddRelu with other steps and tensors.
struct PlanModel : AddRelu {
  explicit PlanModel(int64_t elements = 1024) : AddRelu(kernelCode(), elements) {
    subnet().plan.clear();
    subnet().kernels.clear();
  }

  /// Adds a tensor after those already in the workspace.
  uint32_t addWorkspace(const std::string &name, DType dtype, std::vector<int64_t> shape) {
    const uint32_t slot = addTensor(stage(), name, dtype, shape);
    uint64_t &bytes = stage().workspaces[0]->bytes;
    tensor(slot).offset = bytes = (bytes + 63) / 64 * 64;
    bytes += tensor(slot).bytes;
    return slot;
  }

  uint32_t addView(const std::string &name, uint32_t of, std::vector<int64_t> shape) {
    const uint32_t slot = addTensor(stage(), name, DType::F32, shape);
    tensor(slot).view_of = int32_t(of);
    return slot;
  }

  uint32_t addOutput(const std::string &name, DType dtype, std::vector<int64_t> shape) {
    const uint32_t slot = addTensor(stage(), name, dtype, shape);
    tensor(slot).role = TensorRole::Output;
    tensor(slot).place = Place::Caller;
    stage().outputs.push_back(slot);
    return slot;
  }

  SubnetDefT &addSubnet() {
    auto copy = std::make_unique<SubnetDefT>(subnet());
    copy->plan.clear();
    copy->kernels.clear();
    stage().subnets.push_back(std::move(copy));
    return *stage().subnets.back();
  }

  template <typename OpT>
  static void addStep(SubnetDefT &subnet, OpT op, std::vector<uint32_t> writes = {}) {
    auto step = std::make_unique<StepDefT>();
    step->op.Set(std::move(op));
    step->writes = std::move(writes);
    subnet.plan.push_back(std::move(step));
  }

  static void launch(SubnetDefT &subnet, const char *symbol, std::vector<uint32_t> args, int64_t tiles) {
    const uint32_t count = uint32_t(args.size());
    const uint32_t result = args.back();
    addLaunch(subnet, addKernel(subnet, symbol, count), std::move(args), tiles, {result});
  }

  static void copy(SubnetDefT &subnet, uint32_t from, uint32_t to) {
    CopyDefT def;
    def.from = from;
    def.to = to;
    addStep(subnet, def, {to});
  }
};

std::vector<float> run(Net &net, const std::vector<float> &x, const std::string &output = "y") {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>(output);
  return std::vector<float>(y, y + x.size());
}

TEST(Plan, OutputsThatAreAliases) {
  PlanModel model;
  // z is a view of y; the input, a constant and a workspace tensor are outputs, too.
  PlanModel::launch(model.subnet(), "add", {model.x, model.w, model.sum}, 64);
  PlanModel::launch(model.subnet(), "relu", {model.sum, model.y}, 64);
  const uint32_t z = model.addView("z", model.y, {32, 32});
  model.tensor(z).role = TensorRole::Output;
  for (uint32_t slot : {z, model.x, model.w, model.sum}) {
    model.stage().outputs.push_back(slot);
  }
  Net net(openWritten(model, "alias.bmodel"));
  const std::vector<float> x = someInput(1024), expected = addRelu(x, model.weights);
  std::vector<float> copies[4] = {std::vector<float>(1024), std::vector<float>(1024), std::vector<float>(1024),
                                  std::vector<float>(1024)};
  const char *names[] = {"z", "x", "w", "sum"};
  for (int i = 0; i < 4; ++i) {
    net.setOutput(names[i], copies[i].data(), 4096);
  }
  EXPECT_EQ(run(net, x), expected);
  EXPECT_EQ(copies[0], expected);
  EXPECT_EQ(copies[1], x);
  EXPECT_EQ(copies[2], model.weights);
  for (size_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(copies[3][i], x[i] + model.weights[i]);
  }
  // Unbound outputs stay in their own places.
  net.setOutput("z", nullptr, 0);
  net.run();
  EXPECT_EQ(net.output<float>("z"), net.output<float>("y"));
}

TEST(Plan, ViewsOfTheOutputAreWrittenInPlace) {
  PlanModel model;
  const uint32_t low = model.addView("low", model.y, {512}), high = model.addView("high", model.y, {512});
  const uint32_t xLow = model.addView("x_low", model.x, {512}), xHigh = model.addView("x_high", model.x, {512});
  model.tensor(high).offset = model.tensor(xHigh).offset = 2048;
  PlanModel::copy(model.subnet(), xLow, high);
  PlanModel::copy(model.subnet(), xHigh, low);
  Net net(openWritten(model, "views.bmodel"));
  const std::vector<float> x = someInput(1024);
  std::vector<float> expected(x.begin() + 512, x.end());
  expected.insert(expected.end(), x.begin(), x.begin() + 512);
  EXPECT_EQ(run(net, x), expected);
}

TEST(Plan, BranchAndCall) {
  PlanModel model;
  const uint32_t counter = model.addWorkspace("counter", DType::I64, {1});
  const uint32_t small = model.addWorkspace("small", DType::Bool, {1});
  (void)counter;
  SubnetDefT &thenNet = model.addSubnet();
  PlanModel::launch(thenNet, "relu", {model.x, model.y}, 64);
  SubnetDefT &elseNet = model.addSubnet();
  PlanModel::copy(elseNet, model.x, model.y);
  // The condition is: x's first int64 is less than 5.
  const uint32_t first = addTensor(model.stage(), "first", DType::I64, std::vector<int64_t>{1});
  model.tensor(first).view_of = int32_t(model.x);
  PlanModel::launch(model.subnet(), "less_than_five", {first, small}, 1);
  BranchDefT branch;
  branch.condition = small;
  branch.then_subnet = 1;
  branch.else_subnet = 2;
  PlanModel::addStep(model.subnet(), branch);
  Net net(openWritten(model, "branch.bmodel"));
  std::vector<float> x = someInput(1024), rectified(1024);
  auto setFirst = [&](int64_t value) { memcpy(x.data(), &value, sizeof(value)); };
  setFirst(5);
  EXPECT_EQ(0, memcmp(run(net, x).data(), x.data(), 4096));
  setFirst(4);
  for (size_t i = 0; i < 1024; ++i) {
    rectified[i] = std::max(x[i], 0.0f);
  }
  EXPECT_EQ(run(net, x), rectified);
}

TEST(Plan, Loop) {
  PlanModel model;
  const uint32_t count = model.addOutput("count", DType::I64, {1});
  const uint32_t last = model.addOutput("last", DType::I64, {1});
  const uint32_t going = model.addWorkspace("going", DType::Bool, {1});
  SubnetDefT &body = model.addSubnet();
  PlanModel::launch(body, "increment", {count}, 1);
  PlanModel::launch(body, "less_than_five", {count, going}, 1);
  // The trip count is x's first int64; count starts with its second, which is 0.
  const uint32_t trips = addTensor(model.stage(), "trips", DType::I64, std::vector<int64_t>{1});
  const uint32_t zero = addTensor(model.stage(), "zero", DType::I64, std::vector<int64_t>{1});
  model.tensor(trips).view_of = model.tensor(zero).view_of = int32_t(model.x);
  model.tensor(zero).offset = 64;
  PlanModel::copy(model.subnet(), zero, count);
  PlanModel::copy(model.subnet(), zero, last);
  PlanModel::launch(model.subnet(), "less_than_five", {count, going}, 1);
  LoopDefT loop;
  loop.body = 1;
  loop.trip_count = int32_t(trips);
  loop.condition = int32_t(going);
  loop.iteration = int32_t(last);
  PlanModel::addStep(model.subnet(), loop);
  Net net(openWritten(model, "loop.bmodel"));
  auto countAfter = [&](int64_t limit) {
    std::vector<float> x(1024);
    memcpy(x.data(), &limit, sizeof(limit));
    net.setInput("x", x.data(), 4096);
    net.run();
    return std::pair(*net.output<int64_t>("count"), *net.output<int64_t>("last"));
  };
  EXPECT_EQ(countAfter(0), std::pair(int64_t(0), int64_t(0)));
  EXPECT_EQ(countAfter(3), std::pair(int64_t(3), int64_t(2)));
  EXPECT_EQ(countAfter(1000), std::pair(int64_t(5), int64_t(4))) << "the condition ends it";
}

/// Two states that count the runs, from 7 and from 0, as outputs.
struct CountingModel : PlanModel {
  explicit CountingModel(int64_t first = 7);
  int64_t initial; // a segment points to it
};

CountingModel::CountingModel(int64_t first) : initial(first) {
  PlanModel &model = *this;
  const uint32_t start = addTensor(model.stage(), "start", DType::I64, std::vector<int64_t>{1});
  model.tensor(start).role = TensorRole::Constant;
  model.tensor(start).place = Place::Segment;
  model.tensor(start).place_index = 1;
  model.tensor(start).offset = model.segments[1].append({reinterpret_cast<const char *>(&initial), sizeof(initial)});
  const uint32_t counter = addTensor(model.stage(), "counter", DType::I64, std::vector<int64_t>{1});
  const uint32_t zeroed = addTensor(model.stage(), "zeroed", DType::I64, std::vector<int64_t>{1});
  for (uint32_t slot : {counter, zeroed}) {
    model.tensor(slot).role = TensorRole::State;
    model.tensor(slot).place = Place::State;
    model.stage().outputs.push_back(slot);
    PlanModel::launch(model.subnet(), "increment", {slot}, 1);
  }
  model.tensor(counter).initial = int32_t(start);
  model.tensor(zeroed).offset = 64;
  model.stage().state_bytes = 128;
}

TEST(Plan, StatesLastFromRunToRun) {
  CountingModel model;
  Model opened = openWritten(model, "state.bmodel");
  Net net(opened), other(opened);
  net.run();
  net.run();
  EXPECT_EQ(*net.output<int64_t>("counter"), 9);
  EXPECT_EQ(*net.output<int64_t>("zeroed"), 2);
  other.run();
  EXPECT_EQ(*other.output<int64_t>("counter"), 8) << "each context has its own";
  check(bmrt_context_reset_state, net.get());
  net.run();
  EXPECT_EQ(*net.output<int64_t>("counter"), 8);
  EXPECT_EQ(*net.output<int64_t>("zeroed"), 1);
}

TEST(Plan, StatesAreSavedAndLoaded) {
  CountingModel model;
  Model opened = openWritten(model, "saved.bmodel");
  Net net(opened), other(opened);
  ASSERT_EQ(net.states().size(), 2u);
  EXPECT_STREQ(net.states()[1].name, "zeroed");
  net.run();
  const std::vector<char> saved = net.saveState();
  net.run();
  other.loadState(saved);
  other.run();
  EXPECT_EQ(*other.output<int64_t>("counter"), 9);
  EXPECT_EQ(*other.output<int64_t>("zeroed"), 2);
  net.loadState(saved);
  net.run();
  EXPECT_EQ(*net.output<int64_t>("counter"), 9);
}

/// Returns the message of the error with which |net| rejects |saved|.
std::string rejectionOf(Net &net, const std::vector<char> &saved) {
  try {
    net.loadState(saved);
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

TEST(Plan, WrongStatesAreRejected) {
  CountingModel model, otherModel(/*first=*/8);
  Model opened = openWritten(model, "wrong.bmodel");
  Net net(opened), stranger(openWritten(otherModel, "other.bmodel"));
  net.run();
  const std::vector<char> saved = net.saveState();
  auto changed = [&](size_t at, size_t bytes) {
    std::vector<char> copy = saved;
    copy.resize(copy.size() + bytes);
    copy[at] = char(copy[at] ^ 1);
    return rejectionOf(net, copy);
  };
  EXPECT_EQ(rejectionOf(stranger, saved), "the saved state is of another model or stage");
  EXPECT_EQ(rejectionOf(net, {'B'}), "the 1 bytes are not a saved state of version 1");
  EXPECT_EQ(changed(0, 0), "the 48 bytes are not a saved state of version 1");
  EXPECT_EQ(changed(8, 0), "the 48 bytes are not a saved state of version 1") << "version";
  EXPECT_EQ(changed(12, 0), "the saved state is of another model or stage") << "stage";
  EXPECT_EQ(changed(16, 0), "the saved state is of another model or stage") << "model";
  EXPECT_EQ(changed(24, 0), "the saved state has 48 bytes and says that it has 49; the stage's has 48");
  EXPECT_EQ(changed(47, 1), "the saved state has 49 bytes and says that it has 48; the stage's has 48");
  EXPECT_EQ(changed(47, 0), "accepted") << "the bytes of the states may have any value";
  for (size_t bit = 0; bit < 8 * saved.size(); ++bit) {
    std::vector<char> copy = saved;
    copy[bit / 8] = char(copy[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(rejectionOf(net, copy) == "accepted", bit / 8 >= 32) << "bit " << bit;
  }
  for (size_t size = 0; size < saved.size(); ++size) {
    EXPECT_NE(rejectionOf(net, {saved.begin(), saved.begin() + std::ptrdiff_t(size)}), "accepted") << size;
  }
  net.loadState(saved);
  net.run();
  EXPECT_EQ(*net.output<int64_t>("zeroed"), 2) << "rejected states change nothing";
  bmrt_status_t status;
  char small[47];
  EXPECT_EQ(bmrt_context_save_state(net.get(), small, sizeof(small), nullptr, &status), BMRT_INVALID_ARGUMENT);
  EXPECT_STREQ(status.message, "the buffer has 47 bytes, the saved state takes 48");
  bmrt_tensor_info_t info;
  EXPECT_EQ(bmrt_context_state_info(net.get(), 2, &info, &status), BMRT_NOT_FOUND);
  EXPECT_STREQ(status.message, "state 2 of 2");
}

/// x and y have the shape [N]; M = max(N * 3 - 2, 1) / 2 is passed to the kernel, which runs N tiles.
struct SymbolicModel : PlanModel {
  SymbolicModel() : PlanModel(64) {
    for (const char *name : {"N", "M"}) {
      auto dim = std::make_unique<DimSlotDefT>();
      dim->name = name;
      dim->min = 0;
      dim->max = 64;
      stage().dims.push_back(std::move(dim));
    }
    stage().dims[0]->divisor = 2;
    tensor(x).shape = tensor(y).shape = {Dim(64, 0)};
    EvalDimDefT eval;
    eval.slot = 1;
    eval.terms = {DimTerm(0, DimOp::Slot),  DimTerm(3, DimOp::Const), DimTerm(0, DimOp::Mul),
                  DimTerm(2, DimOp::Const), DimTerm(0, DimOp::Sub),   DimTerm(1, DimOp::Const),
                  DimTerm(0, DimOp::Max),   DimTerm(2, DimOp::Const), DimTerm(0, DimOp::FloorDiv)};
    addStep(subnet(), eval);
    addLaunch(subnet(), addKernel(subnet(), "add_dim", 2), {x, y}, 0, {y});
    subnet().plan.back()->op.AsLaunchDef()->dims = {1};
    subnet().plan.back()->op.AsLaunchDef()->tile_count_slot = 0;
  }
};

TEST(Plan, SymbolicDims) {
  SymbolicModel model;
  Net net(openWritten(model, "symbolic.bmodel"), {.threads = 2});
  EXPECT_EQ(net.inputs()[0].shape[0], -1);
  EXPECT_EQ(net.inputs()[0].max_shape[0], 64);
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_FAILED_PRECONDITION) << "no shape yet";
  for (int64_t n : {2, 40, 16}) {
    check(bmrt_context_set_input_shape, net.get(), 0u, &n, 1u);
    const std::vector<float> x = someInput(size_t(n));
    const std::vector<float> y = run(net, x);
    EXPECT_EQ(net.outputs()[0].shape[0], n);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], x[i] + float(std::max<int64_t>(n * 3 - 2, 1) / 2)) << n;
    }
  }
  for (int64_t n : {66, 3, -2}) {
    EXPECT_EQ(bmrt_context_set_input_shape(net.get(), 0, &n, 1, &status), BMRT_INVALID_ARGUMENT);
  }
  const int64_t large = 64; // M = 95 exceeds its maximum
  check(bmrt_context_set_input_shape, net.get(), 0u, &large, 1u);
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(status.message).find("'M'"), std::string::npos) << status.message;
}

TEST(Plan, AnUnknownTileCountIsAnErrorNotSilence) {
  SymbolicModel model;
  model.subnet().plan[1]->op.AsLaunchDef()->tile_count_slot = 1; // "M"
  std::swap(model.subnet().plan[0], model.subnet().plan[1]);     // which is now evaluated after the launch
  Net net(openWritten(model, "unbound.bmodel"));
  const int64_t n = 2;
  check(bmrt_context_set_input_shape, net.get(), 0u, &n, 1u);
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_FAILED_PRECONDITION);
  EXPECT_NE(std::string(status.message).find("dimension 'M' of the net is not known"), std::string::npos)
      << status.message;
}

TEST(Plan, AHugeCountIsRejected) {
  PlanModel model;
  const uint32_t count = model.addOutput("count", DType::I64, {1});
  PlanModel::launch(model.addSubnet(), "increment", {count}, 1);
  const uint32_t trips = addTensor(model.stage(), "trips", DType::I64, std::vector<int64_t>{1});
  model.tensor(trips).view_of = int32_t(model.x);
  LoopDefT loop;
  loop.body = 1, loop.trip_count = int32_t(trips);
  PlanModel::addStep(model.subnet(), loop);
  Net net(openWritten(model, "trips.bmodel"));
  std::vector<float> x(1024);
  const int64_t limit = int64_t(1) << 62;
  memcpy(x.data(), &limit, sizeof(limit));
  net.setInput("x", x.data(), 4096);
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(status.message).find("4611686018427387904 trips ('trips')"), std::string::npos)
      << status.message;
}

TEST(Plan, ABoundBufferDoesNotOutliveItsShape) {
  SymbolicModel model;
  Net net(openWritten(model, "rebind.bmodel"));
  const int64_t small = 2, larger = 40;
  const std::vector<float> two(2);
  check(bmrt_context_set_input_shape, net.get(), 0u, &small, 1u);
  net.setInput("x", two.data(), 8);
  check(bmrt_context_set_input_shape, net.get(), 0u, &larger, 1u);
  net.run(); // reads 40 floats from the context's own buffer, not from the caller's two
  EXPECT_THROW(net.setInput("x", two.data(), 8), Error);
}

struct Seen {
  std::vector<std::string> nodes;
  std::map<std::string, std::vector<float>> tensors;
};

void remember(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step) {
  Seen &seen = *static_cast<Seen *>(user);
  const char *node = bmrt_step_onnx_node(step, 0);
  seen.nodes.push_back(node ? node : step->kind);
  for (uint32_t i = 0; i < step->write_count; ++i) {
    bmrt_tensor_view_t view;
    check(bmrt_context_step_write, context, step, i, &view);
    std::vector<float> &values = seen.tensors[bmrt_tensor_onnx_name(&view.info, 0)];
    values.resize(bmrt_tensor_row_major_bytes(&view.info) / sizeof(float));
    check(bmrt_tensor_to_row_major, &view, static_cast<void *>(values.data()), uint64_t(values.size() * sizeof(float)));
  }
}

TEST(Plan, HooksSeeEveryTensor) {
  AddRelu model(kernelCode(), 1024);
  Net net(openWritten(model, "hook.bmodel"), {.threads = 2});
  Seen seen;
  bmrt_context_set_step_hook(net.get(), remember, &seen);
  const std::vector<float> x = someInput(1024);
  const std::vector<float> y = run(net, x);
  EXPECT_EQ(seen.nodes, (std::vector<std::string>{"Add_0", "Relu_0"}));
  EXPECT_EQ(seen.tensors.at("y"), y);
  EXPECT_EQ(seen.tensors.at("sum")[7], x[7] + model.weights[7]);
  bmrt_context_set_step_hook(net.get(), nullptr, nullptr);
  net.run();
  EXPECT_EQ(seen.nodes.size(), 2u);
}

TEST(Plan, Profile) {
  AddRelu model(kernelCode(), 1024);
  Net net(openWritten(model, "profile.bmodel"));
  bmrt_step_time_t time;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_step_time(net.get(), 0, &time, &status), BMRT_FAILED_PRECONDITION);
  check(bmrt_context_set_profiling, net.get(), true);
  for (int i = 0; i < 3; ++i) {
    net.run();
  }
  check(bmrt_context_step_time, net.get(), 1u, &time);
  EXPECT_EQ(time.runs, 3u);
  EXPECT_GE(time.total_ns, time.min_ns * 3);
  EXPECT_EQ(bmrt_context_step_time(net.get(), 2, &time, &status), BMRT_NOT_FOUND);
  bmrt_step_info_t info;
  check(bmrt_context_step_info, net.get(), 1u, &info);
  EXPECT_STREQ(info.symbol, "relu");
  EXPECT_STREQ(info.top_op, "top.relu");
}

TEST(Plan, WrongArgumentsAreNamed) {
  AddRelu model(kernelCode(), 1024);
  Net net(openWritten(model, "wrong.bmodel"));
  bmrt_status_t status;
  uint32_t index;
  EXPECT_EQ(bmrt_context_find_input(net.get(), "X", &index, &status), BMRT_NOT_FOUND);
  EXPECT_STREQ(status.message, "the model has no input 'X'; it has 'x'");
  float value = 0;
  EXPECT_EQ(bmrt_context_bind_input(net.get(), 0, &value, 4, &status), BMRT_INVALID_ARGUMENT);
  EXPECT_STREQ(status.message, "buffer for tensor 'x' has 4 bytes, needs 4096");
  EXPECT_EQ(bmrt_context_bind_output(net.get(), 1, &value, 4, &status), BMRT_NOT_FOUND);
  const int64_t shape[] = {1, 1023};
  EXPECT_EQ(bmrt_context_set_input_shape(net.get(), 0, shape, 2, &status), BMRT_INVALID_ARGUMENT);
  EXPECT_EQ(bmrt_context_set_input_shape(net.get(), 0, shape, 1, &status), BMRT_INVALID_ARGUMENT);
  const void *data;
  EXPECT_EQ(bmrt_context_output_data(net.get(), 0, &data, &status), BMRT_FAILED_PRECONDITION);
  EXPECT_GT(status.line, 0);
  EXPECT_STRNE(status.file, "");
}

} // namespace
