// SPDX-License-Identifier: Apache-2.0
//===- Overlap_test.cpp - Concurrent work of several chips ----------------===//
#include "AbacusModel.h"
#include "bmodel/cuda/program.h"
#include "bmrt/backend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <random>
#include <regex>
#include <thread>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;
using namespace std::chrono_literals;

namespace {

/// Two families, "left" and "right", on the host's memory. A stream adds 1 to its input; its first byte selects the
/// manner.
enum Manner : unsigned char { atOnce, meeting, failing, endless, slow };

struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int present = 0, met = 0;
  std::vector<std::thread::id> threads;
} meeting_;

/// Returns true once a stream of the other family has arrived, too, which requires that both run concurrently.
bool meet() {
  std::unique_lock lock(meeting_.mutex);
  const int mine = meeting_.met;
  if (++meeting_.present == 2) {
    meeting_.present = 0, ++meeting_.met;
    meeting_.changed.notify_all();
    return true;
  }
  return meeting_.changed.wait_for(lock, 20s, [&] { return meeting_.met != mine; });
}

bmrt_code_t failWith(bmrt_status_t *status, bmrt_code_t code, const char *message) {
  snprintf(status->message, sizeof(status->message), "%s", message);
  status->file = __FILE_NAME__, status->line = __LINE__;
  return status->code = code;
}

bmrt_code_t runStream(bmrt_queue_t *, bmrt_program_t *, const bmrt_stream_t *stream, bmrt_status_t *status) {
  const auto manner = Manner(stream->code[stream->offset]);
  {
    const std::lock_guard lock(meeting_.mutex);
    meeting_.threads.push_back(std::this_thread::get_id());
  }
  if (manner == meeting && !meet()) {
    return failWith(status, BMRT_FAILED_PRECONDITION, "the other one never came");
  }
  if (manner == failing) {
    return failWith(status, BMRT_INVALID_ARGUMENT, "this one fails");
  }
  while (manner == endless) {
    if (stream->interrupt->is_requested(stream->interrupt->user)) {
      return failWith(status, BMRT_CANCELLED, "the run was cancelled");
    }
    std::this_thread::sleep_for(1ms);
  }
  if (manner == slow) {
    std::this_thread::sleep_for(100ms);
  }
  const float *x = static_cast<const float *>(stream->tensors[0]);
  float *y = static_cast<float *>(stream->tensors[1]);
  for (uint64_t i = 0; i < stream->tensor_bytes[0] / sizeof(float); ++i) {
    y[i] = x[i] + 1;
  }
  return BMRT_OK;
}

bmrt_backend_t describeFamily(const char *family) {
  bmrt_backend_t result = {};
  result.abi = BMRT_BACKEND_ABI, result.flags = BMRT_BACKEND_HOST_MEMORY, result.struct_size = sizeof(result);
  result.family = family;
  result.load = [](bmrt_device_t *, const unsigned char *, uint64_t, bmrt_program_t **, bmrt_status_t *) {
    return BMRT_OK;
  };
  result.unload = [](bmrt_program_t *) {};
  result.verify = [](bmrt_program_t *, const bmrt_stream_t *, bmrt_status_t *) { return BMRT_OK; };
  result.make_queue = [](bmrt_device_t *, bmrt_queue_t **, bmrt_status_t *) { return BMRT_OK; };
  result.destroy_queue = [](bmrt_queue_t *) {};
  result.run = runStream;
  return result;
}

/// A model without steps, to which tests add streams for the chips "left" and "right" and sums on the host. The
/// intermediate tensors a, b and sum lie in workspace 0.
struct TwoChips : bmodel::test::AddRelu {
  TwoChips() : AddRelu(contractCode(), 1024) {
    static const bmrt_backend_t left = describeFamily("left"), right = describeFamily("right");
    static const bool registered =
        bmrt_register_backend(&left, nullptr) == BMRT_OK && bmrt_register_backend(&right, nullptr) == BMRT_OK;
    EXPECT_TRUE(registered);
    segments.emplace_back(SegmentKind::Code);
    segments[2].append({manners, sizeof(manners)});
    for (const char *family : {"left", "right"}) {
      model.chips.push_back(std::make_unique<ChipDefT>());
      model.chips.back()->name = model.chips.back()->family = family;
    }
    stage().workspaces[0]->bytes = 0;
    a = add("a"), b = add("b");
    tensor(sum).offset = stage().workspaces[0]->bytes, stage().workspaces[0]->bytes += 4096;
    auto main = std::make_unique<SubnetDefT>();
    main->name = "main", main->kind = SubnetKind::Control;
    stage().subnets[0]->plan.clear();
    stage().subnets.insert(stage().subnets.begin(), std::move(main)); // the x86 subnet becomes subnet 1
  }

  uint32_t add(const char *name) {
    stage().tensors.push_back(std::make_unique<TensorDefT>(tensor(sum)));
    stage().tensors.back()->name = name, stage().tensors.back()->onnx_names.clear();
    stage().tensors.back()->offset = stage().workspaces[0]->bytes;
    stage().workspaces[0]->bytes += 4096;
    return uint32_t(stage().tensors.size() - 1);
  }

  /// Appends to = from + 1 on chip 1 or 2, called from main.
  void stream(uint32_t chip, uint32_t from, uint32_t to, Manner manner) {
    stage().subnets.push_back(std::make_unique<SubnetDefT>());
    SubnetDefT &result = *stage().subnets.back();
    result.name = model.chips[chip]->name, result.kind = SubnetKind::Device, result.chip = chip;
    result.code_segment = 2, result.workspace = -1;
    RunStreamOnDefT run;
    run.offset = manner, run.bytes = 1, run.inputs = {from}, run.outputs = {to};
    AbacusParts::addStep(result, std::move(run), {to});
    AbacusParts::addCall(*stage().subnets[0], uint32_t(stage().subnets.size() - 1));
  }

  /// Appends to = p + q on the host, called from main.
  void sumOnHost(uint32_t p, uint32_t q, uint32_t to) {
    stage().subnets.push_back(std::make_unique<SubnetDefT>(*stage().subnets[1]));
    SubnetDefT &result = *stage().subnets.back();
    result.plan.clear();
    addLaunch(result, addKernel(result, "add", 3), {p, q, to}, 64, {to});
    AbacusParts::addCall(*stage().subnets[0], uint32_t(stage().subnets.size() - 1));
  }

  static constexpr char manners[] = {atOnce, meeting, failing, endless, slow};
  uint32_t a, b;
};

std::vector<float> resultOf(Net &net, const std::vector<float> &x) {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>("y");
  return std::vector<float>(y, y + x.size());
}

/// Returns the trace of the last run: for each tid, the events [begin, end) in us. tid 1 is the host, 2 + n is chip n.
std::map<int, std::vector<std::pair<double, double>>> readTrace(Net &net) {
  const std::string path = bmodel::test::temporaryPath("trace.json");
  check(bmrt_context_write_trace, net.get(), path.c_str());
  const std::vector<char> bytes = bmodel::test::readBytes(path);
  const std::string text(bytes.begin(), bytes.end());
  const std::regex event(R"re("ph":"X","pid":1,"tid":(\d+),"name":"[^"]*","ts":([\d.]+),"dur":([\d.]+))re");
  std::map<int, std::vector<std::pair<double, double>>> rows;
  for (std::sregex_iterator i(text.begin(), text.end(), event), end; i != end; ++i) {
    const double begin = std::stod((*i)[2]), length = std::stod((*i)[3]);
    rows[std::stoi((*i)[1])].push_back({begin, begin + length});
  }
  return rows;
}

bool overlap(const std::vector<std::pair<double, double>> &a, const std::vector<std::pair<double, double>> &b) {
  for (const auto &[p, q] : a) {
    for (const auto &[r, s] : b) {
      if (p < s && r < q) {
        return true;
      }
    }
  }
  return false;
}

TEST(Overlap, TwoChipsMeetAndTheTraceShowsIt) {
  TwoChips test;
  test.stream(1, test.x, test.a, meeting);
  test.stream(2, test.x, test.b, meeting);
  test.sumOnHost(test.a, test.b, test.y);
  Net net(openWritten(test, "meet.bmodel"));
  check(bmrt_context_set_profiling, net.get(), true);
  const std::vector<float> x = someInput(1024);
  for (int run = 0; run < 20; ++run) {
    const std::vector<float> y = resultOf(net, x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], x[i] + 1 + (x[i] + 1));
    }
  }
  auto rows = readTrace(net);
  EXPECT_TRUE(overlap(rows[3], rows[4])) << "left and right";
  EXPECT_FALSE(rows[1].empty()) << "the host";
  bmrt_step_time_t time;
  check(bmrt_context_step_time, net.get(), 0u, &time);
  EXPECT_EQ(time.runs, 20u);
}

TEST(Overlap, WhatWaitsForEachOtherRunsOnTheCallersThread) {
  TwoChips test;
  test.stream(1, test.x, test.a, atOnce);
  test.stream(2, test.a, test.b, atOnce);
  test.stream(1, test.b, test.a, atOnce);
  test.sumOnHost(test.a, test.x, test.y);
  Net net(openWritten(test, "chain.bmodel"));
  meeting_.threads.clear();
  const std::vector<float> x = someInput(1024), y = resultOf(net, x);
  EXPECT_EQ(y[9], x[9] + 3 + x[9]);
  EXPECT_EQ(meeting_.threads, std::vector(3, std::this_thread::get_id()));
}

TEST(Overlap, AHookSeesStepsInTheirOrder) {
  TwoChips test;
  test.stream(1, test.x, test.a, atOnce);
  test.stream(2, test.x, test.b, atOnce);
  test.sumOnHost(test.a, test.b, test.y);
  Net net(openWritten(test, "hook.bmodel"));
  std::vector<uint32_t> seen;
  auto remember = [](void *user, const bmrt_context_t *, const bmrt_step_info_t *step) {
    static_cast<std::vector<uint32_t> *>(user)->push_back(step->index);
  };
  bmrt_context_set_step_hook(net.get(), remember, &seen);
  resultOf(net, someInput(1024));
  EXPECT_EQ(seen, (std::vector<uint32_t>{3, 0, 4, 1, 5, 2}));
}

TEST(Overlap, AFailureEndsTheOthers) {
  TwoChips test;
  test.stream(1, test.x, test.a, endless);
  test.stream(2, test.x, test.b, failing);
  test.sumOnHost(test.a, test.b, test.y);
  Net net(openWritten(test, "failure.bmodel"));
  for (int round = 0; round < 3; ++round) {
    bmrt_status_t status;
    EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_INVALID_ARGUMENT);
    EXPECT_STREQ(status.message, "this one fails");
  }
}

TEST(Overlap, ACancelEndsAll) {
  TwoChips test;
  test.stream(1, test.x, test.a, endless);
  test.stream(2, test.x, test.b, endless);
  test.sumOnHost(test.a, test.b, test.y);
  Net net(openWritten(test, "cancel.bmodel"));
  int asked = 0;
  for (bool byPoll : {false, true, false}) {
    auto thirdTime = [](void *user) { return ++*static_cast<int *>(user) >= 3; };
    bmrt_context_set_poll(net.get(), byPoll ? +thirdTime : nullptr, &asked);
    std::thread other([&] {
      std::this_thread::sleep_for(30ms);
      if (!byPoll) {
        net.cancel();
      }
    });
    bmrt_status_t status;
    EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_CANCELLED);
    other.join();
  }
  EXPECT_GE(asked, 3);
}

/// An Abacus multiplies matrices while the host adds; both read x.
TEST(Overlap, AnAbacusWorksWhileTheHostDoes) {
  TwoChips test;
  AbacusParts parts(test.model, test.segments, "abacus");
  StageDefT &stage = test.stage();
  const uint32_t workspace = parts.addWorkspace(stage, 3 * 4096);
  uint32_t there[3];
  for (uint32_t i = 0; i < 3; ++i) {
    there[i] = test.add(std::to_string(i).c_str());
    test.tensor(there[i]).place_index = workspace, test.tensor(there[i]).offset = i * 4096;
  }
  SubnetDefT &main = *stage.subnets[0];
  AbacusParts::addCopy(main, test.x, there[0]);
  AbacusParts::addCall(main, uint32_t(stage.subnets.size()));
  parts.addStream(parts.addSubnet(stage, "product"), {productCommand(1, 0, 0, 32, 200)}, {there[0]}, {there[1]});
  AbacusParts::addCopy(main, there[1], test.a);
  for (int i = 0; i < 200; ++i) {
    test.sumOnHost(test.x, test.x, test.b);
  }
  test.sumOnHost(test.a, test.b, test.y);
  Net net(openWritten(test, "abacus.bmodel"));
  check(bmrt_context_set_profiling, net.get(), true);
  bool seen = false;
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!seen && std::chrono::steady_clock::now() < end) { // on a busy machine, a run may not overlap
    const std::vector<float> x = someInput(1024), y = resultOf(net, x);
    float product = 0;
    for (int k = 0; k < 32; ++k) {
      product += x[size_t(k)] * x[size_t(32 * k)];
    }
    ASSERT_EQ(y[0], product + (x[0] + x[0]));
    auto rows = readTrace(net);
    seen = overlap(rows[1], rows[5]);
  }
  EXPECT_TRUE(seen);
}

/// Steps on tensors of the host, slots[0], and of two chips, slots[1] and [2], and the expected contents of each
/// tensor.
struct StepsOfTwoChips : TwoChips {
  StepsOfTwoChips() : first(model, segments, "abacus"), second(model, segments, "later") {
    slots[0] = {a, b, add("c"), add("d")};
    for (uint32_t memory : {1u, 2u}) {
      const uint32_t workspace = parts[memory]->addWorkspace(stage(), 3 * 4096);
      for (uint32_t i = 0; i < 3; ++i) {
        slots[memory].push_back(add((std::to_string(memory) + "." + std::to_string(i)).c_str()));
        tensor(slots[memory][i]).place_index = workspace, tensor(slots[memory][i]).offset = i * 4096;
      }
    }
    values[x] = someInput(1024);
    for (const auto &list : slots) { // workspaces have undefined contents, so initialise them
      for (uint32_t slot : list) {
        copy(x, slot);
      }
    }
  }

  void copy(uint32_t from, uint32_t to) {
    AbacusParts::addCopy(*stage().subnets[0], from, to);
    values[to] = values[from];
  }

  void sum(uint32_t p, uint32_t q, uint32_t to) {
    sumOnHost(p, q, to);
    values[to] = combined(p, q, [](float a, float b) { return a + b; });
  }

  void difference(uint32_t memory, uint32_t p, uint32_t q, uint32_t to) {
    SubnetDefT &device = parts[memory]->addSubnet(stage(), "map");
    parts[memory]->addStream(device, {mapCommand(bmodel::abacus::Op::sub, 2, 0, 1, 1024)}, {p, q}, {to});
    AbacusParts::addCall(*stage().subnets[0], uint32_t(stage().subnets.size() - 1));
    values[to] = combined(p, q, [](float a, float b) { return a - b; });
  }

  void increment(uint32_t chip, uint32_t from, uint32_t to) {
    stream(chip, from, to, atOnce);
    values[to] = combined(from, from, [](float a, float) { return a + 1; });
  }

  template <typename Function>
  std::vector<float> combined(uint32_t p, uint32_t q, Function function) {
    std::vector<float> result(1024);
    std::transform(values[p].begin(), values[p].end(), values[q].begin(), result.begin(), function);
    return result;
  }

  AbacusParts first, second;
  AbacusParts *parts[3] = {nullptr, &first, &second};
  std::vector<uint32_t> slots[3];
  std::map<uint32_t, std::vector<float>> values;
};

/// Random steps of the host and of two chips, on so few tensors that many steps depend on each other. The result must
/// be that of running them one after another.
class RandomSteps : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Overlap, RandomSteps, testing::Range(0, 40));

TEST_P(RandomSteps, ComputeWhatTheirOrderSays) {
  std::minstd_rand random(unsigned(GetParam() + 1));
  auto pick = [&](size_t n) { return uint32_t(random() >> 8) % uint32_t(n); };
  StepsOfTwoChips test;
  for (int step = 0; step < 40; ++step) {
    const uint32_t memory = pick(3);
    const std::vector<uint32_t> &own = test.slots[memory];
    const uint32_t p = own[pick(own.size())], q = own[pick(own.size())], to = own[pick(own.size())];
    if (memory > 0 && pick(3) == 0) {
      const uint32_t host = test.slots[0][pick(4)];
      pick(2) ? test.copy(host, p) : test.copy(p, host);
    } else if (memory == 0 && pick(2) == 0 && p != to) {
      test.increment(1 + pick(2), p, to);
    } else if (memory == 0) {
      test.sum(p, q, to);
    } else {
      test.difference(memory, p, q, to);
    }
  }
  for (uint32_t memory : {1u, 2u}) {
    test.copy(test.slots[memory][0], test.slots[0][memory]);
  }
  test.copy(test.slots[0][0], test.y);
  for (uint32_t slot : test.slots[0]) {
    test.stage().outputs.push_back(slot);
  }
  Net net(openWritten(test, "random.bmodel"), {.threads = 2});
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(resultOf(net, test.values[test.x]), test.values[test.y]);
    for (uint32_t slot : test.slots[0]) {
      const float *found = net.output<float>(test.tensor(slot).name);
      ASSERT_EQ(std::vector<float>(found, found + 1024), test.values[slot]) << test.tensor(slot).name;
    }
  }
}

#ifndef BMRT_CTS_NO_LIBRARIES

/// Computes out[i] = in[i] + 1 after a delay.
constexpr char kPtx[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  mov.u32 %r5, 20000;
WAIT:
  add.s32 %r5, %r5, -1;
  setp.ne.s32 %p1, %r5, 0;
  @%p1 bra WAIT;
  ld.global.f32 %f1, [%rd4];
  add.rn.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  ret;
}
)";

/// Computes y = (x + 1 on a GPU) + (x + 1 on "left", slowly).
struct GpuBesideAnother : TwoChips {
  GpuBesideAnother() : gpu(model, segments, "cuda") {
    using namespace bmodel::cuda;
    constexpr uint32_t names = sizeof(Directory) + sizeof(Image) + sizeof(Kernel);
    const Directory directory{bmodel::cuda::kMagic, kVersion, 1, 1};
    const Image image{80, 0, names + 4, sizeof kPtx};
    const Kernel kernel{names, 2};
    append(code, &directory, sizeof directory), append(code, &image, sizeof image),
        append(code, &kernel, sizeof kernel);
    append(code, "add", 4), append(code, kPtx, sizeof kPtx);
    segments[gpu.codeSegment].append({code.data(), code.size()});
    const Launch launch{0, 2, {8, 1, 1}, {128, 1, 1}, 0, kNoLayer};
    const Argument arguments[] = {{ArgumentKind::pointer, 0, 0, 4096}, {ArgumentKind::pointer, 1, 0, 4096}};
    append(commands, &launch, sizeof launch), append(commands, arguments, sizeof arguments);
    const uint32_t workspace = gpu.addWorkspace(stage(), 2 * 4096), there[] = {add("x there"), add("y there")};
    for (uint32_t i = 0; i < 2; ++i) {
      tensor(there[i]).place_index = workspace, tensor(there[i]).offset = i * 4096;
    }
    AbacusParts::addCopy(*stage().subnets[0], x, there[0]);
    SubnetDefT &subnet = gpu.addSubnet(stage(), "gpu");
    subnet.kernel_abi = kVersion;
    RunStreamOnDefT run;
    run.bytes = commands.size(), run.offset = segments[gpu.codeSegment].append({commands.data(), commands.size()});
    run.inputs = {there[0]}, run.outputs = {there[1]};
    AbacusParts::addStep(subnet, std::move(run), {there[1]});
    AbacusParts::addCall(*stage().subnets[0], uint32_t(stage().subnets.size() - 1));
    stream(1, x, b, slow);
    AbacusParts::addCopy(*stage().subnets[0], there[1], a);
    sumOnHost(a, b, y);
  }

  static void append(std::vector<char> &to, const void *from, size_t bytes) {
    to.insert(to.end(), static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  }

  AbacusParts gpu;
  std::vector<char> code, commands;
};

TEST(Overlap, AGpuWorksBesideAnotherChip) {
  setenv("BMRT_LIBCUDA", PTX_MACHINE, 1);
  void *machine = dlopen(PTX_MACHINE, RTLD_NOW);
  auto suffices = machine ? reinterpret_cast<bool (*)()>(dlsym(machine, "ptxMachineProcessorSuffices")) : nullptr;
  if (!suffices || !suffices()) {
    GTEST_SKIP() << "the PTX machine is not built, or needs a processor with AVX2, FMA and F16C";
  }
  GpuBesideAnother test;
  Net net(openWritten(test, "gpu.bmodel"));
  const std::vector<float> x = someInput(1024);
  for (bool isProfiled : {false, true}) {
    check(bmrt_context_set_profiling, net.get(), isProfiled);
    for (int run = 0; run < 3; ++run) {
      const std::vector<float> y = resultOf(net, x);
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i], x[i] + 1 + (x[i] + 1));
      }
    }
  }
  auto rows = readTrace(net);
  EXPECT_TRUE(overlap(rows[3], rows[5])) << "left and the GPU";
}

#endif // BMRT_CTS_NO_LIBRARIES

} // namespace
