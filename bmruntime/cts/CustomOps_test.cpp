// SPDX-License-Identifier: Apache-2.0
//===- CustomOps_test.cpp - Operators of the program ----------------------===//
#include "CustomModel.h"
#include "CustomOp.h"

using namespace bmrt::cts;
using bmodel::test::temporaryPath;

namespace {

void registerBlend() {
  const tessera_custom_op_t op = blendOp();
  bmrt::registerCustomOp(op);
}

/// Returns the message with which |action| fails; "" if it succeeds.
template <typename Action>
std::string messageOf(Action action) {
  try {
    action();
  } catch (const bmrt::Error &error) {
    return error.what();
  }
  return "";
}

/// Returns the message with which the runtime rejects |model|; "" if it accepts it.
std::string rejectionOf(bmodel::test::AddRelu &model) {
  const std::string path = temporaryPath("custom.bmodel");
  EXPECT_EQ(model.write(path), "");
  return messageOf([&] { const bmrt::Model opened(path); });
}

/// Returns the message of the writer, which checks what it writes.
std::string faultOf(bmodel::test::AddRelu &model) { return model.write(temporaryPath("custom-fault.bmodel")); }

TEST(CustomOps, RunsBetweenKernels) {
  registerBlend();
  registerBlend(); // a second time changes nothing
  CustomModel test;
  const std::string path = temporaryPath("custom.bmodel");
  ASSERT_EQ(test.write(path), "");
  bmrt::Net net(bmrt::Model(path), {.threads = 2});
  std::vector<float> x(1024, 1);
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(net.output<float>("y")[i], std::max(0.0f, 1 + 0.5f * test.weights[i]));
  }
  bmrt_step_info_t step;
  bmrt::check(bmrt_context_step_info, net.get(), 0, &step);
  EXPECT_STREQ(step.symbol, "test::Blend");
}

TEST(CustomOps, ReportsAnErrorWithTheNode) {
  registerBlend();
  CustomModel test;
  const std::string path = temporaryPath("custom.bmodel");
  ASSERT_EQ(test.write(path), "");
  bmrt::Net net(bmrt::Model(path), {});
  std::vector<float> x(1024, -1000);
  net.setInput("x", x.data(), x.size() * sizeof(float));
  EXPECT_EQ(messageOf([&] { net.run(); }),
            "node 'Blend_0': custom operator 'test::Blend' failed: x begins with -1000 (code 7)");
  x[0] = 1;
  net.setInput("x", x.data(), x.size() * sizeof(float));
  EXPECT_EQ(messageOf([&] { net.run(); }), ""); // the context stays usable
}

TEST(CustomOps, NamesAnOperatorThatIsNotRegistered) {
  CustomModel test("Unknown");
  const std::string message = rejectionOf(test);
  for (const char *part : {"node 'Blend_0'", "'test::Unknown'", "not registered", "--custom_ops"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(CustomOps, RejectsAFileThatDisagreesWithTheShapeRule) {
  registerBlend();
  CustomModel shapes;
  shapes.tensor(shapes.sum).shape = {bmodel::constantDim(1024)};
  EXPECT_NE(rejectionOf(shapes).find("node 'Blend_0': the shape rule of custom operator 'test::Blend' does not give "
                                     "output 0 the type and shape that the file has"),
            std::string::npos);
  CustomModel types;
  types.tensor(types.x).dtype = bmodel::DType::I32;
  EXPECT_NE(rejectionOf(types).find("does not take its inputs: it blends two f32 tensors of one shape"),
            std::string::npos);
}

TEST(CustomOps, RejectsOtherVersionsAndIncompleteOperators) {
  tessera_custom_op_t op = blendOp();
  op.abi = 99;
  EXPECT_NE(messageOf([&] { bmrt::registerCustomOp(op); }).find("version 99"), std::string::npos);
  op = blendOp();
  op.run = nullptr;
  EXPECT_NE(messageOf([&] { bmrt::registerCustomOp(op); }).find("lacks"), std::string::npos);
  registerBlend();
  op = blendOp();
  op.user = &op;
  EXPECT_EQ(messageOf([&] { bmrt::registerCustomOp(op); }), "custom operator 'test::Blend' is registered already");
}

TEST(CustomOps, RejectsFilesThatAreNotLibrariesOfOperators) {
  EXPECT_NE(messageOf([] { bmrt::loadCustomOps("/nowhere/ops.so"); }).find("/nowhere/ops.so"), std::string::npos);
  EXPECT_NE(messageOf([] { bmrt::loadCustomOps(BMRT_CTS_KERNELS); }).find("does not export 'tessera_custom_ops'"),
            std::string::npos);
  EXPECT_EQ(bmrt_load_custom_ops(nullptr, nullptr), BMRT_INVALID_ARGUMENT);
  EXPECT_EQ(bmrt_register_custom_op(nullptr, nullptr), BMRT_INVALID_ARGUMENT);
}

TEST(CustomOps, RejectsOddCalls) {
  const struct {
    const char *message;
    void (*change)(CustomModel &model);
  } cases[] = {
      {"3 tensors, 4 of them inputs", [](CustomModel &m) { m.subnet().kernels[0]->custom->inputs = 4; }},
      {"shares bytes with 'sum'", [](CustomModel &m) { m.subnet().plan[0]->op.AsLaunchDef()->args[0] = m.sum; }},
      {"output 'w' is a constant", [](CustomModel &m) { m.subnet().plan[0]->op.AsLaunchDef()->args[2] = m.w; }},
      {"launched with tiles", [](CustomModel &m) { m.subnet().plan[0]->op.AsLaunchDef()->tile_count = 2; }},
      {"an attribute of a custom operator is not UTF-8",
       [](CustomModel &m) { m.subnet().kernels[0]->custom->attributes = "{\xff"; }},
  };
  for (const auto &each : cases) {
    CustomModel model;
    each.change(model);
    EXPECT_NE(faultOf(model).find(each.message), std::string::npos) << each.message << ": " << faultOf(model);
  }
}

/// Sets n and w of a SizedCustomModel and runs it. Returns z, or an empty vector and |message|.
std::vector<float> runSized(bmrt::Net &net, int64_t n, int64_t w, std::string &message) {
  const int64_t x[] = {n, w}, total = n + w / 3, *shapes[] = {x, &total};
  const uint32_t ranks[] = {2, 1};
  bmrt::check(bmrt_context_set_input_shapes, net.get(), shapes, ranks, 2u);
  const std::vector<float> xs = someInput(size_t(n * w)), ts = someInput(size_t(total));
  net.setInput("x", xs.data(), xs.size() * 4);
  net.setInput("t", ts.data(), ts.size() * 4);
  message = messageOf([&] { net.run(); });
  const float *z = message.empty() ? net.output<float>("z") : nullptr;
  return z ? std::vector<float>(z, z + n * ((w + 1) / 2)) : std::vector<float>();
}

TEST(CustomOps, SeesTheSizesOfEachRun) {
  registerBlend();
  SizedCustomModel model;
  bmrt::Net net(openWritten(model, "custom-sized.bmodel"), {});
  std::string message;
  for (const auto [n, w] : {std::pair{17, 33}, {1, 3}, {0, 9}, {13, 21}, {17, 33}, {5, 0}}) {
    std::vector<float> expected = sizedResult(someInput(size_t(n * w)), someInput(size_t(n + w / 3)), n, w);
    for (float &each : expected) {
      each += 0.5f * each;
    }
    EXPECT_EQ(runSized(net, n, w, message), expected) << n << " x " << w;
    EXPECT_EQ(message, "");
  }
}

/// As test::Blend, but its rule gives one column too many to results of 5 rows.
int inferOdd(void *user, tessera_custom_call_t *call) {
  const int code = inferBlend(user, call);
  if (code == 0) {
    call->outputs[0].shape[1] = tessera_size_add(call, call->inputs[0].shape[1], call->inputs[0].shape[0] == 5);
  }
  return code;
}

TEST(CustomOps, RejectsSizesWithWhichTheShapeRuleDisagrees) {
  tessera_custom_op_t op = blendOp();
  op.name = "OddBlend", op.infer = inferOdd;
  bmrt::registerCustomOp(op);
  SizedCustomModel model;
  model.subnet().kernels.back()->custom->name = "OddBlend";
  bmrt::Net net(openWritten(model, "custom-odd.bmodel"), {});
  std::string message;
  for (int round = 0; round < 2; ++round) { // the context stays usable, and a second run fails, too
    EXPECT_EQ(runSized(net, 4, 9, message).size(), 20u);
    for (int again = 0; again < 2; ++again) {
      runSized(net, 5, 9, message);
      EXPECT_NE(
          message.find("node 'Blend_0': the shape rule of custom operator 'test::OddBlend' does not give output 0 "
                       "the type and shape that the file has, f32 5x5, but f32 5x6"),
          std::string::npos)
          << message;
    }
  }
}

TEST(CustomOps, ComputesWithSizes) {
  static int64_t seen[9];
  tessera_custom_op_t op = blendOp();
  op.name = "Sizes";
  op.infer = [](void *user, tessera_custom_call_t *call) {
    seen[0] = tessera_size_add(call, 7, -9), seen[1] = tessera_size_sub(call, 7, 9);
    seen[2] = tessera_size_mul(call, 7, -9), seen[3] = tessera_size_floor_div(call, -7, 2);
    seen[4] = tessera_size_ceil_div(call, -7, 2), seen[5] = tessera_size_mod(call, -7, 4);
    seen[6] = tessera_size_min(call, 7, 9), seen[7] = tessera_size_max(call, 7, 9);
    seen[8] = tessera_size_floor_div(call, 7, 0);
    return inferBlend(user, call);
  };
  bmrt::registerCustomOp(op);
  CustomModel test("Sizes");
  EXPECT_EQ(rejectionOf(test), "");
  EXPECT_EQ(std::vector<int64_t>(seen, seen + 9),
            (std::vector<int64_t>{-2, -2, -63, -4, -3, 1, 7, 9, TESSERA_NO_SIZE}));
  tessera_custom_call_t old = {}; // of a runtime that does not know open sizes
  old.struct_size = offsetof(tessera_custom_call_t, combine_sizes);
  EXPECT_EQ(tessera_size_add(&old, 7, 9), TESSERA_NO_SIZE);
  EXPECT_TRUE(tessera_is_open(TESSERA_NO_SIZE) && !tessera_is_open(-1) && !tessera_is_open(INT64_MAX));
}

TEST(CustomOps, HelpersReadAttributes) {
  tessera_custom_call_t call = {};
  call.attributes = R"({"list":[1,{"scale":9}],"text":"\\\"}\",\"scale\":8","scale":-2.5e1,"z":3})";
  EXPECT_EQ(tessera_number_attribute(&call, "scale", 1), -25);
  EXPECT_EQ(tessera_number_attribute(&call, "z", 1), 3);
  EXPECT_EQ(tessera_number_attribute(&call, "absent", 1), 1);
  EXPECT_EQ(std::string(tessera_find_attribute(&call, "list")).substr(0, 3), "[1,");
  for (const char *odd : {"{}", "", "{", "{\"", "{\"scale", "{\"scale\":", "x", "{\"a\":\"\\"}) {
    call.attributes = odd;
    EXPECT_EQ(tessera_number_attribute(&call, "b", 1), 1) << odd;
  }
}

} // namespace
