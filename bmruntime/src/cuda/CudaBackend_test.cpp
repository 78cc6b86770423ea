// SPDX-License-Identifier: Apache-2.0
//===- CudaBackend_test.cpp - The back end on the PTX machine -------------===//
//
// The kernels are hand-written PTX; the PTX machine's environment variables inject failures
// (bmruntime/ptx_machine/README.md).
//
//===----------------------------------------------------------------------===//
#include "bmodel/cuda/program.h"
#include "bmrt/backend.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace bmodel::cuda;

extern "C" const bmrt_backend_t bmrt_backend;

namespace {

constexpr uint32_t kThreads = 32;

/// add: out[i] = in[i] + 1. far: the same, through the last bytes of 96 KiB of shared memory.
constexpr char kPtx[] = R"(.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry add(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.s32 %r3, %r2, 1;
  st.global.u32 [%rd5], %r3;
  ret;
}
.visible .entry far(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  mov.u32 %r4, tile;
  shl.b32 %r5, %r1, 2;
  add.s32 %r6, %r4, %r5;
  st.shared.u32 [%r6+98176], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [%r6+98176];
  add.s32 %r3, %r3, 1;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";

/// Returns a code segment in the format that the compiler writes.
std::vector<unsigned char> makeCode() {
  constexpr uint32_t names = sizeof(Directory) + sizeof(Image) + 2 * sizeof(Kernel);
  const Directory directory{kMagic, kVersion, 1, 2};
  const Image image{80, 0, names + 8, sizeof kPtx};
  const Kernel kernels[] = {{names, 2}, {names + 4, 2}};
  std::vector<unsigned char> code;
  auto append = [&](const void *data, size_t bytes) {
    const unsigned char *from = static_cast<const unsigned char *>(data);
    code.insert(code.end(), from, from + bytes);
  };
  append(&directory, sizeof directory), append(&image, sizeof image), append(kernels, sizeof kernels);
  append("add\0far\0", 8), append(kPtx, sizeof kPtx);
  return code;
}

class Machine : public testing::Environment {
public:
  void SetUp() override {
    void *machine = dlopen(PTX_MACHINE, RTLD_NOW);
    auto suffices = machine ? reinterpret_cast<bool (*)()>(dlsym(machine, "ptxMachineProcessorSuffices")) : nullptr;
    if (!suffices || !suffices()) {
      GTEST_SKIP() << "the PTX machine is not built, or needs a processor with AVX2, FMA and F16C";
    }
  }
};

testing::Environment *const present = testing::AddGlobalTestEnvironment(new Machine);

/// A GPU of the PTX machine with the program loaded; |variables| are set in the environment.
class Gpu {
public:
  explicit Gpu(std::map<std::string, std::string> variables = {}) : variables(std::move(variables)) {
    setenv("BMRT_LIBCUDA", PTX_MACHINE, 1);
    machine = dlopen(PTX_MACHINE, RTLD_NOW);
    for (auto &[name, value] : this->variables) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    readVariables();
    const bmrt_chip_t chip = {sizeof chip, "cuda", "cuda", "", "", 0};
    EXPECT_EQ(bmrt_backend.open(&chip, &device, &status), BMRT_OK) << status.message;
    EXPECT_EQ(bmrt_backend.load(device, code.data(), code.size(), &program, &status), BMRT_OK) << status.message;
  }
  ~Gpu() {
    bmrt_backend.unload(program);
    bmrt_backend.close(device);
    for (auto &each : variables) {
      unsetenv(each.first.c_str());
    }
    readVariables();
  }
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  void *allocate(uint64_t bytes = 4 * kThreads) {
    void *address = nullptr;
    EXPECT_EQ(bmrt_backend.allocate(device, bytes, &address, &status), BMRT_OK) << status.message;
    return address;
  }
  void readVariables() const {
    auto read = reinterpret_cast<void (*)()>(dlsym(machine, "ptxMachineReadOptions"));
    ASSERT_NE(read, nullptr);
    read();
  }
  template <typename Function>
  Function *find(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(machine, name));
  }
  /// Calls |body| with the GPU's context current.
  template <typename Body>
  void inContext(Body body) const {
    void *context = nullptr;
    EXPECT_EQ(find<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
    EXPECT_EQ(find<int(void *)>("cuCtxPushCurrent_v2")(context), 0);
    body();
    EXPECT_EQ(find<int(void **)>("cuCtxPopCurrent_v2")(&context), 0);
    EXPECT_EQ(find<int(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  }
  uint64_t freeBytes() const {
    size_t available = 0, total = 0;
    inContext([&] { EXPECT_EQ(find<int(size_t *, size_t *)>("cuMemGetInfo_v2")(&available, &total), 0); });
    return available;
  }

  bmrt_device_t *device = nullptr;
  bmrt_program_t *program = nullptr;
  bmrt_status_t status = {};

private:
  std::map<std::string, std::string> variables;
  const std::vector<unsigned char> code = makeCode();
  void *machine = nullptr;
};

/// A stream with one launch of |kernel|, verified and run with its own buffers.
class Job {
public:
  explicit Job(Gpu &gpu, uint32_t kernel = 0, uint32_t sharedBytes = 0) : gpu(gpu) {
    const Launch launch{kernel, 2, {1, 1, 1}, {kThreads, 1, 1}, sharedBytes, 0};
    const Argument arguments[] = {{ArgumentKind::pointer, 0, 0, 4 * kThreads},
                                  {ArgumentKind::pointer, 1, 0, 4 * kThreads}};
    memcpy(bytes, &launch, sizeof launch);
    memcpy(bytes + sizeof launch, arguments, sizeof arguments);
    stream.struct_size = sizeof stream;
    stream.code = bytes, stream.bytes = sizeof bytes;
    stream.tensors = tensors, stream.tensor_bytes = sizes;
    stream.input_count = stream.output_count = 1;
    stream.layers = layers, stream.layer_count = 2;
    EXPECT_EQ(bmrt_backend.make_queue(gpu.device, &queue, &status), BMRT_OK) << status.message;
    tensors[0] = gpu.allocate(), tensors[1] = gpu.allocate();
  }
  ~Job() {
    bmrt_backend.destroy_queue(queue);
    bmrt_backend.release(gpu.device, tensors[0]);
    bmrt_backend.release(gpu.device, tensors[1]);
  }
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;

  bmrt_code_t verify() { return bmrt_backend.verify(gpu.program, &stream, &status); }
  /// Sets all elements of the input to |value| and runs the stream; |result| is the last element of the output.
  bmrt_code_t run(uint32_t value, uint32_t &result) {
    return run(value, result, [&] { return bmrt_backend.run(queue, gpu.program, &stream, &status); });
  }
  bmrt_code_t runTimed(uint32_t value, uint32_t &result, const bmrt_part_sink_t &sink) {
    return run(value, result, [&] { return bmrt_backend.run_timed(queue, gpu.program, &stream, &sink, &status); });
  }
  template <typename Run>
  bmrt_code_t run(uint32_t value, uint32_t &result, Run runStream) {
    std::vector<uint32_t> in(kThreads, value), out(kThreads);
    const uint64_t size = sizes[0];
    bmrt_code_t code = bmrt_backend.copy(queue, BMRT_COPY_TO_CHIP, tensors[0], in.data(), size, &status);
    code = code ? code : runStream();
    code = code ? code : bmrt_backend.copy(queue, BMRT_COPY_FROM_CHIP, out.data(), tensors[1], size, &status);
    bmrt_status_t waited = {};
    const bmrt_code_t end = bmrt_backend.wait(queue, nullptr, &waited);
    status = code ? status : waited;
    result = out.back();
    return code ? code : end;
  }
  std::string message() const { return status.message; }

  Gpu &gpu;
  bmrt_queue_t *queue = nullptr;
  void *tensors[2] = {};
  bmrt_status_t status = {};

private:
  static constexpr uint64_t sizes[] = {4 * kThreads, 4 * kThreads};
  static constexpr const char *layers[] = {"Conv_1", "Relu_2"};
  unsigned char bytes[sizeof(Launch) + 2 * sizeof(Argument)];
  bmrt_stream_t stream = {};
};

/// Pinned memory that a caller has allocated through the driver.
class PinnedMemory {
public:
  PinnedMemory(Gpu &gpu, size_t bytes) : gpu(gpu) {
    gpu.inContext([&] { EXPECT_EQ(gpu.find<int(void **, size_t, unsigned)>("cuMemHostAlloc")(&memory, bytes, 0), 0); });
  }
  ~PinnedMemory() {
    gpu.inContext([&] { EXPECT_EQ(gpu.find<int(void *)>("cuMemFreeHost")(memory), 0); });
  }
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;

  Gpu &gpu;
  void *memory = nullptr;
};

bool isIn(const char *wanted, const std::string &text) { return text.find(wanted) != std::string::npos; }

TEST(CudaBackend, CapturesAnewWhenPointersChange) {
  Gpu gpu;
  Job job(gpu);
  uint32_t result = 0;
  for (uint32_t round = 0; round < 4; ++round) {
    ASSERT_EQ(job.run(10 * round, result), BMRT_OK) << job.message();
    EXPECT_EQ(result, 10 * round + 1);
    if (round % 2) { // a new address for the result: a graph with the old address would leave it unwritten
      void *other = gpu.allocate();
      bmrt_backend.release(gpu.device, job.tensors[1]);
      job.tensors[1] = other;
    }
  }
}

TEST(CudaBackend, GivesBlocksMoreThan48KibOfSharedMemory) {
  Gpu gpu;
  Job job(gpu, 1, 96 << 10);
  uint32_t result = 0;
  EXPECT_NE(job.run(5, result), BMRT_OK) << "the machine accepts the launch although the limit was not raised";
  ASSERT_EQ(job.verify(), BMRT_OK) << job.message();
  ASSERT_EQ(job.run(5, result), BMRT_OK) << job.message();
  EXPECT_EQ(result, 6u);
}

TEST(CudaBackend, ReportsOfSharedMemoryThatADeviceLacks) {
  Gpu gpu({{"PTX_MACHINE_COMPUTE_CAPABILITY", "8.6"}});
  Job job(gpu, 1, 160 << 10);
  EXPECT_EQ(job.verify(), BMRT_UNSUPPORTED);
  EXPECT_TRUE(isIn("Conv_1 needs 163840 bytes of shared memory a block", job.message())) << job.message();
}

TEST(CudaBackend, ReportsHowMuchMemoryWasNeeded) {
  Gpu gpu({{"PTX_MACHINE_FAIL_ALLOC", "1"}});
  void *address = nullptr;
  EXPECT_EQ(bmrt_backend.allocate(gpu.device, 12345, &address, &gpu.status), BMRT_NO_MEMORY);
  EXPECT_TRUE(isIn("has no memory for 12345 bytes", gpu.status.message)) << gpu.status.message;
  bmrt_backend.release(gpu.device, gpu.allocate(12345)); // the next allocation succeeds
}

TEST(CudaBackend, RunsAgainAfterALaunchThatFailed) {
  Gpu gpu({{"PTX_MACHINE_FAIL_LAUNCH", "1"}});
  Job job(gpu);
  uint32_t result = 0;
  EXPECT_EQ(job.run(1, result), BMRT_IO);
  EXPECT_TRUE(isIn("Conv_1", job.message()) && !isIn("lost", job.message())) << job.message();
  ASSERT_EQ(job.run(1, result), BMRT_OK) << job.message();
  EXPECT_EQ(result, 2u);
}

TEST(CudaBackend, NamesTheLayersOfAFaultAndSaysThatTheContextIsLost) {
  Gpu gpu({{"PTX_MACHINE_FAULT_LAUNCH", "1"}});
  Job job(gpu);
  uint32_t result = 0;
  EXPECT_EQ(job.run(1, result), BMRT_IO);
  EXPECT_TRUE(isIn("Conv_1 .. Relu_2 failed", job.message())) << job.message();
  EXPECT_TRUE(isIn("ILLEGAL_ADDRESS", job.message()) && isIn("context is lost", job.message())) << job.message();
  EXPECT_EQ(job.run(1, result), BMRT_IO);
  EXPECT_TRUE(isIn("context is lost", job.message())) << job.message();
}

TEST(CudaBackend, NamesTheLayerOfAFaultWhereItWaitsForEach) {
  Gpu gpu({{"PTX_MACHINE_FAULT_LAUNCH", "1"}, {"BMRT_CUDA_BLOCKING", "1"}});
  Job job(gpu);
  uint32_t result = 0;
  EXPECT_EQ(job.run(1, result), BMRT_IO);
  EXPECT_TRUE(isIn("layer Conv_1 failed", job.message())) << job.message();
}

TEST(CudaBackend, LeavesNoMemoryBehindThousandQueues) {
  Gpu gpu;
  const uint64_t before = gpu.freeBytes();
  for (uint32_t i = 0; i < 1000; ++i) {
    Job job(gpu);
    uint32_t result = 0;
    ASSERT_EQ(job.run(i, result), BMRT_OK) << job.message();
    ASSERT_EQ(result, i + 1);
  }
  EXPECT_EQ(gpu.freeBytes(), before);
}

TEST(CudaBackend, CopiesReturnBeforeTheyAreDone) {
  Gpu gpu;
  Job job(gpu);
  uint32_t result = 0;
  ASSERT_EQ(job.run(1, result), BMRT_OK) << job.message();
  // More than one staging block, so that later rounds use several blocks, and more than one chunk.
  std::vector<uint32_t> in((3 << 20) / 4), out(in.size());
  const uint64_t bytes = 4 * in.size();
  void *there = gpu.allocate(bytes);
  for (uint32_t round = 0; round < 3; ++round) {
    std::fill(in.begin(), in.end(), round + 7);
    ASSERT_EQ(bmrt_backend.copy(job.queue, BMRT_COPY_TO_CHIP, there, in.data(), bytes, &job.status), BMRT_OK);
    ASSERT_EQ(bmrt_backend.copy(job.queue, BMRT_COPY_FROM_CHIP, out.data(), there, bytes, &job.status), BMRT_OK);
    std::fill(in.begin(), in.end(), 0u); // the input has been staged already
    EXPECT_FALSE(bmrt_backend.is_done(job.queue));
    EXPECT_EQ(out.front(), round ? round + 6 : 0) << "the copy back was waited for";
    ASSERT_EQ(bmrt_backend.wait(job.queue, nullptr, &job.status), BMRT_OK) << job.message();
    EXPECT_TRUE(bmrt_backend.is_done(job.queue));
    EXPECT_EQ(out, std::vector<uint32_t>(in.size(), round + 7));
  }
  bmrt_backend.release(gpu.device, there);
}

TEST(CudaBackend, CopiesOfTheSameHostMemoryKeepTheirOrder) {
  Gpu gpu;
  Job job(gpu);
  uint32_t result = 0, between = 0, end = 0;
  ASSERT_EQ(job.run(1, result), BMRT_OK) << job.message();
  auto copy = [&](bmrt_copy_t direction, void *to, const void *from) {
    ASSERT_EQ(bmrt_backend.copy(job.queue, direction, to, from, sizeof end, &job.status), BMRT_OK) << job.message();
  };
  // Through the host and back to the chip without a wait, as a loop does with a value that it carries.
  copy(BMRT_COPY_FROM_CHIP, &between, job.tensors[1]);
  copy(BMRT_COPY_TO_CHIP, job.tensors[0], &between);
  copy(BMRT_COPY_FROM_CHIP, &end, job.tensors[0]);
  ASSERT_EQ(bmrt_backend.wait(job.queue, nullptr, &job.status), BMRT_OK) << job.message();
  EXPECT_EQ(between, 2u);
  EXPECT_EQ(end, 2u);
}

TEST(CudaBackend, PinnedMemoryIsReadInPlace) {
  Gpu gpu;
  Job job(gpu);
  uint32_t result = 0;
  ASSERT_EQ(job.run(1, result), BMRT_OK) << job.message();
  PinnedMemory pinned(gpu, 4 * kThreads);
  uint32_t *values = static_cast<uint32_t *>(pinned.memory), out[kThreads] = {};
  std::fill(values, values + kThreads, 5u);
  ASSERT_EQ(bmrt_backend.copy(job.queue, BMRT_COPY_TO_CHIP, job.tensors[0], values, 4 * kThreads, &job.status),
            BMRT_OK);
  std::fill(values, values + kThreads, 6u); // before the machine starts, which it does only when someone waits
  ASSERT_EQ(bmrt_backend.copy(job.queue, BMRT_COPY_FROM_CHIP, out, job.tensors[0], sizeof out, &job.status), BMRT_OK);
  ASSERT_EQ(bmrt_backend.wait(job.queue, nullptr, &job.status), BMRT_OK) << job.message();
  EXPECT_EQ(out[3], 6u);
}

TEST(CudaBackend, ReportsTheTimesOfLaunches) {
  Gpu gpu;
  Job job(gpu);
  std::vector<std::pair<uint32_t, uint64_t>> report;
  const bmrt_part_sink_t sink = {[](void *user, uint32_t layer, uint64_t ns) {
                                   static_cast<std::vector<std::pair<uint32_t, uint64_t>> *>(user)->emplace_back(layer,
                                                                                                                 ns);
                                 },
                                 &report};
  uint32_t result = 0;
  for (uint32_t round = 1; round < 3; ++round) {
    ASSERT_EQ(job.runTimed(20 * round, result, sink), BMRT_OK) << job.message();
    EXPECT_EQ(result, 20 * round + 1);
    ASSERT_EQ(report.size(), round);
    EXPECT_EQ(report.back().first, 0u);
    EXPECT_GT(report.back().second, 0u);
    EXPECT_LT(report.back().second, 5'000'000'000u);
  }
}

TEST(CudaBackend, RunsOnQueuesOfTwoThreads) {
  Gpu gpu;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&gpu, t] {
      for (uint32_t i = 0; i < 100; ++i) {
        Job job(gpu);
        uint32_t result = 0;
        EXPECT_EQ(job.run(1000 * t + i, result), BMRT_OK) << job.message();
        EXPECT_EQ(result, 1000 * t + i + 1);
      }
    });
  }
  for (std::thread &each : threads) {
    each.join();
  }
}

} // namespace
