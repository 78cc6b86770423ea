// SPDX-License-Identifier: Apache-2.0
//===- Run_test.cpp - Running: bindings, threads, async, states -----------===//
#include "AbacusModel.h"

#include <cmath>
#include <thread>

using namespace bmrt;
using namespace bmrt::cts;
using bmodel::test::AddRelu;

namespace {

std::vector<float> resultOf(Net &net, const std::vector<float> &x) {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>("y");
  return std::vector<float>(y, y + x.size());
}

class OnThreads : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, OnThreads, testing::Values(1, 2, 3, 8));

/// Native code, a synchronous chip with its own memory, and an asynchronous one.
class OnFamilies : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Families, OnFamilies, testing::Values("x86", "abacus", "later"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(OnFamilies, SameResult) {
  AddReluOn test(GetParam(), 16 * 1000);
  Net net(openWritten(test, "families.bmodel"), {.threads = 2});
  std::vector<float> x = someInput(16 * 1000);
  for (int run = 0; run < 50; ++run) {
    x[0] = float(run);
    ASSERT_EQ(resultOf(net, x), addRelu(x, test.weights)) << "run " << run;
  }
}

TEST_P(OnThreads, SameResult) {
  AddRelu test(kernelCode(), 16 * 1000);
  Net net(openWritten(test, "threads.bmodel"), {.threads = GetParam()});
  const std::vector<float> x = someInput(16 * 1000);
  const std::vector<float> expected = addRelu(x, test.weights);
  for (int run = 0; run < 200; ++run) {
    ASSERT_EQ(resultOf(net, x), expected) << "run " << run;
  }
}

TEST_P(OnThreads, ResultAfterSleeping) {
  AddRelu test(kernelCode(), 16 * 1000);
  Net net(openWritten(test, "sleep.bmodel"), {.threads = GetParam()});
  const std::vector<float> x = someInput(16 * 1000);
  const std::vector<float> expected = addRelu(x, test.weights);
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2)); // the workers stop spinning and sleep
    ASSERT_EQ(resultOf(net, x), expected);
  }
}

TEST_P(OnFamilies, ManyContextsOfOneModelAtOnce) {
  AddReluOn test(GetParam(), 1024);
  Model model = openWritten(test, "many.bmodel");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Net net(model, {.threads = 2});
      std::vector<float> x = someInput(1024);
      x[0] = float(t);
      const std::vector<float> expected = addRelu(x, test.weights);
      for (int run = 0; run < 50; ++run) {
        wrong += resultOf(net, x) != expected;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(OnFamilies, ModelMayGoBeforeItsContexts) {
  AddReluOn test(GetParam(), 1024);
  auto model = std::make_unique<Model>(openWritten(test, "gone.bmodel"));
  Net net(*model);
  model.reset();
  const std::vector<float> x = someInput(1024);
  EXPECT_EQ(resultOf(net, x), addRelu(x, test.weights));
}

TEST_P(OnFamilies, AlignedBuffersAreUsedInPlace) {
  AddReluOn test(GetParam(), 1024);
  Net net(openWritten(test, "inplace.bmodel"));
  const std::vector<float> values = someInput(1024);
  AlignedFloats x(1024), y(1024);
  std::copy(values.begin(), values.end(), x.data());
  net.setInput("x", x.data(), x.bytes());
  net.setOutput("y", y.data(), y.bytes());
  net.run();
  EXPECT_EQ(net.output<float>("y"), y.data());
  const std::vector<float> expected = addRelu(values, test.weights);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.data()));
  // A later run sees the new contents of the caller's buffer.
  x[5] = 1000;
  net.run();
  EXPECT_EQ(y[5], 1000 + test.weights[5]);
}

TEST_P(OnFamilies, UnalignedBuffersAreCopied) {
  AddReluOn test(GetParam(), 1024);
  Net net(openWritten(test, "unaligned.bmodel"));
  const std::vector<float> values = someInput(1024);
  AlignedFloats x(1025), y(1025);
  std::copy(values.begin(), values.end(), x.data() + 1);
  net.setInput("x", x.data() + 1, 4096);
  net.setOutput("y", y.data() + 1, 4096);
  net.run();
  const std::vector<float> expected = addRelu(values, test.weights);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.data() + 1));
  EXPECT_EQ(y[0], 0);
}

TEST_P(OnFamilies, TheContextsOwnBuffers) {
  AddReluOn test(GetParam(), 1024);
  Net net(openWritten(test, "own.bmodel"));
  const std::vector<float> values = someInput(1024);
  void *buffer = nullptr;
  check(bmrt_context_input_buffer, net.get(), 0u, &buffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % BMRT_ALIGNMENT, 0u);
  std::copy(values.begin(), values.end(), static_cast<float *>(buffer));
  net.run();
  const std::vector<float> expected = addRelu(values, test.weights);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), net.output<float>("y")));
}

TEST(Run, CallersWorkspace) {
  AddRelu test(kernelCode(), 1024);
  Model model = openWritten(test, "workspace.bmodel");
  AlignedFloats workspace(1024);
  bmrt_context_options_t options = {};
  options.struct_size = sizeof(options);
  options.stage = BMRT_FIRST_RUNNABLE_STAGE;
  options.workspace = workspace.data();
  options.workspace_bytes = workspace.bytes();
  ASSERT_EQ(model.stageInfo(0, 0).workspace_bytes, workspace.bytes());
  bmrt_context_t *context = nullptr;
  check(bmrt_context_create, model.get(), &options, &context);
  check(bmrt_context_run, context);
  EXPECT_EQ(workspace[10], test.weights[10]) << "sum = 0 + w lies in the workspace";
  bmrt_context_destroy(context);

  options.workspace_bytes = 64;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_create(model.get(), &options, &context, &status), BMRT_INVALID_ARGUMENT);
}

TEST_P(OnFamilies, Async) {
  AddReluOn test(GetParam(), 1024);
  const std::vector<float> x = someInput(1024); // outlives the run in flight at the end
  Net net(openWritten(test, "async.bmodel"), {.threads = 2});
  net.setInput("x", x.data(), 4096);
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_wait(net.get(), &status), BMRT_FAILED_PRECONDITION);
  for (int run = 0; run < 20; ++run) {
    net.launch();
    EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_FAILED_PRECONDITION);
    EXPECT_EQ(bmrt_context_launch(net.get(), &status), BMRT_FAILED_PRECONDITION);
    net.wait();
  }
  const std::vector<float> expected = addRelu(x, test.weights);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), net.output<float>("y")));
  net.launch(); // destroyed while in flight
}

TEST_P(OnThreads, ScratchImportsAndRelocations) {
  AddRelu test(kernelCode(), 16 * 64);
  test.subnet().plan.clear();
  test.subnet().kernels.clear();
  auto &copy = bmodel::addLaunch(test.subnet(), bmodel::addKernel(test.subnet(), "copy_by_scratch", 2),
                                 {test.x, test.sum}, 64, {test.sum});
  copy.op.AsLaunchDef()->scratch_bytes = 64;
  bmodel::addLaunch(test.subnet(), bmodel::addKernel(test.subnet(), "double_or_negate", 2), {test.sum, test.y}, 64,
                    {test.y});
  Net net(openWritten(test, "scratch.bmodel"), {.threads = GetParam()});
  const std::vector<float> x = someInput(16 * 64);
  const std::vector<float> y = resultOf(net, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i], i & 1 ? -x[i] : 2 * x[i]) << i;
  }
}

TEST_P(OnThreads, FloatModeIsTheContracts) {
  AddRelu test(kernelCode(), 16 * 64);
  test.subnet().plan.clear();
  bmodel::addLaunch(test.subnet(), bmodel::addKernel(test.subnet(), "make_denormal", 2), {test.x, test.y}, 64,
                    {test.y});
  Net net(openWritten(test, "denormal.bmodel"), {.threads = GetParam()});
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040); // flush to zero, which a caller may have enabled
  const std::vector<float> y = resultOf(net, std::vector<float>(16 * 64, 1.0f));
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(after & 0x8040, 0x8040u) << "the caller's mode was not restored";
  for (float value : y) {
    ASSERT_EQ(std::fpclassify(value), FP_SUBNORMAL);
  }
}

} // namespace
