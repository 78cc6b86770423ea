// SPDX-License-Identifier: Apache-2.0
//===- Cancel_test.cpp - Cancellation of runs -----------------------------===//
#include "Fixture.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

using namespace bmrt;
using namespace bmrt::cts;
using namespace std::chrono_literals;

namespace {

/// Returns an input for which the endless loop ends, or does not end.
std::vector<float> inputThat(bool ends) {
  std::vector<float> x = someInput(1024);
  uint32_t first = ends ? 0x3f800000 : 0x3f800001;
  memcpy(x.data(), &first, sizeof first);
  return x;
}

/// Runs the net while |stop| is called after 50 ms; returns the code and the message of the run.
std::pair<bmrt_code_t, std::string> stopped(Net &net, const std::function<void()> &stop) {
  bmrt_status_t status;
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const bmrt_code_t code = bmrt_context_run(net.get(), &status);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  other.join();
  return {code, status.message};
}

class CancelOnThreads : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, CancelOnThreads, testing::Values(1, 2, 4));

TEST_P(CancelOnThreads, EndsARunAndTheContextGoesOn) {
  Endless model;
  Net net(openWritten(model, "endless.bmodel"), {.threads = GetParam()});
  for (int round = 0; round < 3; ++round) {
    std::vector<float> x = inputThat(/*ends=*/false);
    net.setInput("x", x.data(), 4096);
    EXPECT_EQ(stopped(net, [&] { net.cancel(); }), std::pair(BMRT_CANCELLED, std::string("the run was cancelled")));
    x = inputThat(/*ends=*/true);
    net.setInput("x", x.data(), 4096);
    net.run();
    const float *y = net.output<float>("y");
    EXPECT_EQ(std::vector<float>(y, y + 1024), addRelu(x, bmodel::test::iota(1024)));
  }
}

TEST(Cancel, EndsALaunchedRunEvenAtOnce) {
  Endless model;
  Net net(openWritten(model, "launched.bmodel"));
  const std::vector<float> x = inputThat(/*ends=*/false);
  net.setInput("x", x.data(), 4096);
  net.launch();
  net.cancel();
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_wait(net.get(), &status), BMRT_CANCELLED);
  EXPECT_STREQ(bmrt_code_name(status.code), "cancelled");
}

TEST(Cancel, IsForTheRunInFlightOnly) {
  Endless model;
  Net net(openWritten(model, "idle.bmodel"));
  const std::vector<float> x = inputThat(/*ends=*/true);
  net.setInput("x", x.data(), 4096);
  net.cancel();
  net.run();
}

Net *signalled = nullptr;

TEST(Cancel, FromASignalHandler) {
  Endless model;
  Net net(openWritten(model, "signal.bmodel"));
  const std::vector<float> x = inputThat(/*ends=*/false);
  net.setInput("x", x.data(), 4096);
  signalled = &net;
  const auto before = signal(SIGUSR1, [](int) { signalled->cancel(); });
  EXPECT_EQ(stopped(net, [] { kill(getpid(), SIGUSR1); }).first, BMRT_CANCELLED);
  signal(SIGUSR1, before);
}

TEST(Cancel, ByThePollFunction) {
  Endless model;
  Net net(openWritten(model, "poll.bmodel"));
  const std::vector<float> x = inputThat(/*ends=*/false);
  net.setInput("x", x.data(), 4096);
  int asked = 0;
  auto thirdTime = [](void *user) { return ++*static_cast<int *>(user) == 3; };
  bmrt_context_set_poll(net.get(), thirdTime, &asked);
  bmrt_status_t status;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_CANCELLED);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_EQ(asked, 3);
  bmrt_context_set_poll(net.get(), nullptr, nullptr);
  EXPECT_EQ(stopped(net, [&] { net.cancel(); }).first, BMRT_CANCELLED);
}

} // namespace
