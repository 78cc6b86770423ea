// SPDX-License-Identifier: Apache-2.0
//===- Golden_test.cpp - Frozen files still load and run ------------------===//
//
// MakeTestModels.cpp states what the files compute.
//
//===----------------------------------------------------------------------===//
#include "SizedModel.h"

using namespace bmrt;
using namespace bmrt::cts;

namespace {

Model golden(const std::string &name) { return Model(std::string(BMODEL_GOLDENS) + "/" + name); }

std::vector<float> outputOf(Net &net, const std::vector<float> &x) {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>("y");
  return std::vector<float>(y, y + x.size());
}

TEST(Golden, Version1Static) {
  Net net(golden("add_relu-v1.bmodel"), {.threads = 2});
  const std::vector<float> x = someInput(1024);
  EXPECT_EQ(outputOf(net, x), addRelu(x, bmodel::test::iota(1024)));
}

TEST(Golden, Version1Blocked) {
  Net net(golden("blocked-v1.bmodel"));
  const std::vector<float> x = someInput(64);
  EXPECT_EQ(outputOf(net, x), addRelu(x, bmodel::test::iota(64)));
}

TEST(Golden, Version1WithContracts) {
  Net net(golden("contract-v1.bmodel"), {.threads = 2});
  const std::vector<float> x = someInput(1024);
  EXPECT_EQ(outputOf(net, x), addRelu(x, bmodel::test::iota(1024)));
}

TEST(Golden, Version1Symbolic) {
  Net net(golden("dynamic-v1.bmodel"));
  const int64_t size = 11;
  check(bmrt_context_set_input_shape, net.get(), 0u, &size, 1u);
  const std::vector<float> x = someInput(11), y = outputOf(net, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], x[i] + 11);
  }
}

TEST(Golden, Version1WithSizes) {
  Net net(golden("sized-v1.bmodel"));
  net.setShapes({{5, 9}, {8}});
  const std::vector<float> x = someInput(45), t = someInput(8), expected = sizedResult(x, t, 5, 9);
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.setInput("t", t.data(), t.size() * sizeof(float));
  net.run();
  const float *z = net.output<float>("z");
  EXPECT_EQ(std::vector<float>(z, z + expected.size()), expected);
}

} // namespace
