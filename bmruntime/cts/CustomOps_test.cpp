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
