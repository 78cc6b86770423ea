// SPDX-License-Identifier: Apache-2.0
//===- Device_test.cpp - Chips with their own memory ----------------------===//
#include "AbacusModel.h"
#include "Later.h"
#include "abacus/Memory.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;

extern "C" const bmrt_backend_t bmrt_backend; // the Abacus, also compiled into this program

namespace {

/// "later" is the Abacus with asynchronous execution, for all tests of this program. Under sanitizers, the dynamic
/// loader searches other folders for libraries, so the Abacus is registered explicitly.
const bmrt_code_t registered = [] {
  static const bmrt_backend_t later = makeLater<bmrt_backend>("later");
#ifdef BMRT_CTS_NO_LIBRARIES
  (void)bmrt_register_backend(&bmrt_backend, nullptr);
#endif
  return bmrt_register_backend(&later, nullptr);
}();
TEST(Device, Registered) { ASSERT_EQ(registered, BMRT_OK); }

/// The calls that the Abacus received, registered as the family "counting".
struct Counts {
  int allocations = 0, releases = 0, copies = 0;
  uint64_t copied = 0;
} counts;

void registerCounting() {
  static bmrt_backend_t counting = bmrt_backend;
  counting.family = "counting";
  counting.allocate = [](bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status) {
    ++counts.allocations;
    return bmrt_backend.allocate(device, bytes, out, status);
  };
  counting.release = [](bmrt_device_t *device, void *address) {
    ++counts.releases;
    bmrt_backend.release(device, address);
  };
  counting.copy = [](bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                     bmrt_status_t *status) {
    ++counts.copies, counts.copied += bytes;
    return bmrt_backend.copy(queue, direction, to, from, bytes, status);
  };
  static const bmrt_code_t code = bmrt_register_backend(&counting, nullptr);
  ASSERT_EQ(code, BMRT_OK);
}

std::vector<float> resultOf(Net &net, const std::vector<float> &x) {
  net.setInput("x", x.data(), x.size() * sizeof(float));
  net.run();
  const float *y = net.output<float>("y");
  return std::vector<float>(y, y + x.size());
}

std::string rejectionOf(AddReluOn &model, bmrt_code_t code) {
  try {
    openWritten(model, "refused.bmodel");
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

class OnChips : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Families, OnChips, testing::Values("abacus", "later"),
                         [](const auto &info) { return std::string(info.param); });

struct Seen {
  std::vector<std::string> steps;
  std::map<std::string, std::vector<float>> tensors;
  bool doubles = false; ///< doubles the tensor that "Add_0" wrote, for the next step
};

void remember(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step) {
  Seen &seen = *static_cast<Seen *>(user);
  const char *node = bmrt_step_onnx_node(step, 0);
  seen.steps.push_back(node ? node : step->kind);
  for (uint32_t i = 0; i < step->write_count; ++i) {
    bmrt_tensor_view_t view;
    check(bmrt_context_step_write, context, step, i, &view);
    const float *values = static_cast<const float *>(view.data);
    seen.tensors[view.info.name] = {values, values + view.info.bytes / sizeof(float)};
    void *data = nullptr;
    if (seen.doubles && node && std::string(node) == "Add_0") {
      check(bmrt_context_step_data, const_cast<bmrt_context_t *>(context), step, i, &data);
      for (uint64_t k = 0; k < view.info.bytes / sizeof(float); ++k) {
        static_cast<float *>(data)[k] *= 2;
      }
    }
  }
}

TEST_P(OnChips, HooksSeeAndChangeTensors) {
  AddReluOn test(GetParam());
  Net net(openWritten(test, "hooks.bmodel"));
  Seen seen;
  bmrt_context_set_step_hook(net.get(), remember, &seen);
  const std::vector<float> x = someInput(1024);
  std::vector<float> y = resultOf(net, x);
  EXPECT_EQ(seen.steps, (std::vector<std::string>{"copy", "Add_0", "Relu_0", "call", "copy"}));
  EXPECT_EQ(seen.tensors.at("x there"), x);
  EXPECT_EQ(seen.tensors.at("sum")[7], x[7] + test.weights[7]);
  EXPECT_EQ(seen.tensors.at("y there"), y);
  seen.doubles = true;
  y = resultOf(net, x);
  const std::vector<float> expected = addRelu(x, test.weights);
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], 2 * expected[i]);
  }
}

TEST_P(OnChips, StepsRunAgainOnWhatWasChanged) {
  AddReluOn test(GetParam());
  Net net(openWritten(test, "again.bmodel"));
  std::vector<float> x = someInput(1024);
  resultOf(net, x);
  bmrt_step_info_t copy;
  check(bmrt_context_step_info, net.get(), 0u, &copy);
  void *data = nullptr;
  check(bmrt_context_step_data, net.get(), &copy, 0u, &data);
  EXPECT_EQ(memcmp(data, x.data(), 4096), 0);
  x[3] = 1000;
  memcpy(data, x.data(), 4096);
  check(bmrt_context_run_steps, net.get(), 1u, 3u);
  const float *y = net.output<float>("y");
  EXPECT_EQ(std::vector<float>(y, y + 1024), addRelu(x, test.weights));
  // A run transfers the input again, and the mirror that was requested before shows it.
  x[3] = 5;
  resultOf(net, x);
  EXPECT_EQ(static_cast<float *>(data)[3], 5);
}

/// For an asynchronous chip, the launching thread submits all work; for another chip, a thread of the context runs.
TEST_P(OnChips, LaunchedRuns) {
  auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  AddReluOn test(GetParam());
  const std::vector<float> x = someInput(1024); // outlives the run in flight when |net| is destroyed
  Net net(openWritten(test, "launched.bmodel"));
  EXPECT_TRUE(net.isDone()) << "nothing was launched";
  const auto before = threads();
  for (int run = 0; run < 20; ++run) {
    std::vector<float> shifted = x, y(1024);
    shifted[7] = float(run);
    net.setInput("x", shifted.data(), 4096);
    net.setOutput("y", y.data(), 4096);
    net.launch();
    EXPECT_EQ(threads() - before, std::string(GetParam()) == "later" ? 0 : 1);
    bmrt_status_t status;
    EXPECT_EQ(bmrt_context_launch(net.get(), &status), BMRT_FAILED_PRECONDITION);
    EXPECT_EQ(bmrt_context_set_stream(net.get(), nullptr, &status), BMRT_FAILED_PRECONDITION);
    while (run % 2 && !net.isDone()) {
      std::this_thread::yield();
    }
    net.wait();
    EXPECT_TRUE(net.isDone());
    ASSERT_EQ(y, addRelu(shifted, test.weights));
    EXPECT_EQ(bmrt_context_wait(net.get(), &status), BMRT_FAILED_PRECONDITION);
  }
  net.setInput("x", x.data(), 4096);
  net.setOutput("y", nullptr, 0);
  net.launch(); // destroyed while in flight
}

/// Computes y = total += x with a total on the chip that starts at 0 or at w.
struct Totals : AddReluOn {
  Totals(const char *family, bool hasInitial) : AddReluOn(family) {
    bmodel::TensorDefT &total = tensor(sum);
    total.role = TensorRole::State, total.place = Place::State, total.place_index = 0;
    total.chip = int32_t(parts->chip), total.offset = 128;
    total.initial = hasInitial ? int32_t(w) : -1;
    SubnetDefT &device = *stage().subnets[1];
    device.plan.clear();
    parts->addStream(
        device,
        {mapCommand(bmodel::abacus::Op::add, 1, 1, 0, 1024), mapCommand(bmodel::abacus::Op::max, 2, 1, 1, 1024)},
        {xThere}, {sum, yThere});
  }
};

TEST_P(OnChips, StatesAreKeptAndReset) {
  for (bool hasInitial : {false, true}) {
    Totals test(GetParam(), hasInitial);
    Model model = openWritten(test, "totals.bmodel");
    Net net(model), other(model);
    const std::vector<float> x = someInput(1024);
    for (int round = 0; round < 2; ++round) {
      for (int run = 1; run <= 3; ++run) {
        const std::vector<float> y = resultOf(net, x);
        float expected = hasInitial ? test.weights[5] : 0;
        for (int i = 0; i < run; ++i) {
          expected += x[5];
        }
        ASSERT_EQ(y[5], expected) << "run " << run;
      }
      check(bmrt_context_reset_state, net.get());
    }
    EXPECT_EQ(resultOf(other, x)[5], (hasInitial ? test.weights[5] : 0) + x[5]) << "contexts share a state";
  }
}

TEST_P(OnChips, StagesShareTheirMemory) {
  bmodel::test::AddRelu plain(kernelCode(), 1024);
  AddReluOn test(GetParam());
  auto smaller = std::make_unique<StageDefT>(plain.stage());
  for (auto &tensor : smaller->tensors) {
    tensor->shape = {constantDim(1), constantDim(256)}, tensor->bytes = 1024;
  }
  test.move(*smaller);
  test.model.nets[0]->stages.push_back(std::move(smaller));
  Net net(openWritten(test, "stages.bmodel"));
  const std::vector<float> large = someInput(1024), small = someInput(256);
  for (int round = 0; round < 3; ++round) {
    net.setShape("x", {1, 256});
    EXPECT_EQ(resultOf(net, small), addRelu(small, test.weights));
    net.setShape("x", {1, 1024});
    EXPECT_EQ(resultOf(net, large), addRelu(large, test.weights));
  }
}

TEST_P(OnChips, ARunThatNeverEndsIsCancelled) {
  AddReluOn test(GetParam());
  // Loops as long as the first byte of x is not 0.
  const uint32_t going = addTensor(test.stage(), "going", DType::Bool, std::vector<int64_t>{1});
  test.tensor(going).view_of = int32_t(test.x);
  LoopDefT loop;
  loop.body = 1, loop.condition = int32_t(going);
  AbacusParts::addStep(test.subnet(), loop);
  Net net(openWritten(test, "endless.bmodel"));
  std::vector<float> x(1024, 1.0f);
  const uint32_t never = 0x3f800001, atOnce = 0x3f800000;
  for (int round = 0; round < 2; ++round) {
    memcpy(x.data(), &never, 4);
    net.setInput("x", x.data(), 4096);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      net.cancel();
    });
    bmrt_status_t status;
    EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_CANCELLED);
    other.join();
    memcpy(x.data(), &atOnce, 4);
    EXPECT_EQ(resultOf(net, x), addRelu(x, test.weights));
  }
}

TEST(Device, ConstantsAreCopiedOnceAndAllIsGivenBack) {
  registerCounting();
  AddReluOn test("counting");
  counts = {};
  {
    Model model = openWritten(test, "counting.bmodel");
    EXPECT_EQ(counts.allocations, 0) << "nobody needs it yet";
    std::vector<Net> nets;
    for (int i = 0; i < 4; ++i) {
      nets.emplace_back(model);
    }
    EXPECT_EQ(counts.allocations, 1 + 4) << "constants once, a workspace for each context";
    EXPECT_EQ(counts.copies, 1);
    EXPECT_EQ(counts.copied, 4096u);
    const std::vector<float> x = someInput(1024);
    for (Net &net : nets) {
      EXPECT_EQ(resultOf(net, x), addRelu(x, test.weights));
    }
    EXPECT_EQ(counts.copies, 1 + 4 * 2) << "x there and y back, for each run";
  }
  EXPECT_EQ(counts.releases, counts.allocations);
}

TEST(Device, RejectsWhatIsNotForIt) {
  AddReluOn version("abacus");
  version.stage().subnets[1]->kernel_abi = 9;
  EXPECT_TRUE(
      contains(rejectionOf(version, BMRT_UNSUPPORTED), "has commands of version 9, an Abacus supports version 1"));
  AddReluOn outside("abacus");
  outside.parts->programs[0][0].operands[1].offset = 1;
  EXPECT_TRUE(contains(rejectionOf(outside, BMRT_CORRUPT),
                       "command 0 of Add_0: an operand is not a tensor of the step, or reaches"));
  AddReluOn constant("abacus");
  constant.parts->programs[0][0].result.tensor = 1;
  EXPECT_TRUE(contains(rejectionOf(constant, BMRT_CORRUPT), "its result is not a writable tensor"));
  AddReluOn launches("abacus");
  launches.stage().subnets[1]->kernels.push_back(std::make_unique<KernelDefT>());
  launches.stage().subnets[1]->kernels[0]->symbol = "add";
  EXPECT_TRUE(contains(rejectionOf(launches, BMRT_UNSUPPORTED), "the back end of family 'abacus' does not support"));
  AddReluOn nobody("nobody");
  EXPECT_TRUE(contains(rejectionOf(nobody, BMRT_UNSUPPORTED), "chips of family 'nobody' need the back end "
                                                              "libbmrt_nobody.so beside"));
}

TEST(Device, RejectsCodeForTheHostsMemory) {
  bmodel::test::AddRelu test(kernelCode(), 1024);
  test.subnet().kind = SubnetKind::Device;
  test.model.chips[0]->family = "abacus";
  const std::string path = bmodel::test::temporaryPath("memory.bmodel");
  ASSERT_EQ(test.write(path), "");
  try {
    Model model(path);
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_TRUE(contains(error.what(), "subnet 'main': its code works on the host's memory, chips of family 'abacus' "
                                       "have their own: deploy the model anew"))
        << error.what();
  }
}

TEST(Device, NativeCodeMayBeOfADeviceSubnet) {
  bmodel::test::AddRelu test(kernelCode(), 1024);
  test.subnet().kind = SubnetKind::Device; // the chip's family is x86
  Net net(openWritten(test, "native.bmodel"), {.threads = 2});
  const std::vector<float> x = someInput(1024);
  EXPECT_EQ(resultOf(net, x), addRelu(x, test.weights));
}

TEST(Device, TooLittleMemoryIsAnError) {
  AddReluOn test("abacus");
  test.stage().workspaces[1]->bytes = uint64_t(1) << 50;
  Model model = openWritten(test, "large.bmodel");
  EXPECT_THROW(Net net(model), Error);
}

TEST(Device, BackEndsAreCheckedWhenRegistered) {
  auto rejection = [](const std::function<void(bmrt_backend_t &)> &change) {
    bmrt_backend_t changed = bmrt_backend;
    changed.family = "changed";
    change(changed);
    bmrt_status_t status = {};
    EXPECT_NE(bmrt_register_backend(&changed, &status), BMRT_OK);
    return std::string(status.message);
  };
  EXPECT_TRUE(
      contains(rejection([](bmrt_backend_t &b) { b.abi = 7; }), "has version 7 of the interface, this library has"));
  EXPECT_TRUE(contains(rejection([](bmrt_backend_t &b) { b.struct_size = 16; }), "has a descriptor of 16 bytes"));
  EXPECT_TRUE(contains(rejection([](bmrt_backend_t &b) { b.family = "a/b"; }), "its family name is invalid"));
  EXPECT_TRUE(contains(rejection([](bmrt_backend_t &b) { b.copy = nullptr; }), "the back end changed lacks copy"));
  EXPECT_TRUE(contains(rejection([](bmrt_backend_t &b) { b.run = nullptr; }), "lacks run"));
  EXPECT_TRUE(contains(rejection([](bmrt_backend_t &b) { b.family = "x86"; }), "family 'x86' already has a back end"));
}

TEST(DeviceDeathTest, TheHostCannotTouchAChipsMemory) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        bmrt::abacus::ChipMemory memory;
        char *address = memory.allocate(4096);
        *static_cast<volatile char *>(address) = 1;
      },
      "");
}

} // namespace
