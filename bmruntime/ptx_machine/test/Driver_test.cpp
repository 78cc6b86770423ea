//===- Driver_test.cpp - Modules, streams, graphs and faults --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/test/Gpu.h"

#include <set>
#include <thread>

namespace ptx::test {
namespace {

/// A kernel that sets word 0 of a to word 0 of b plus n.
const char *const kPlus = R"(
.visible .entry plus(.param .u64 a, .param .u64 b, .param .u32 n) {
  .reg .b32 %v, %n; .reg .b64 %a, %b;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u32 %n, [n];
  ld.global.u32 %v, [%b]; add.u32 %v, %v, %n; st.global.u32 [%a], %v; ret;
})";

/// Launches plus on a stream.
CUresult plus(Gpu &gpu, CUstream stream, CUdeviceptr a, CUdeviceptr b, uint32_t n) {
  void *arguments[] = {&a, &b, &n};
  return cuLaunchKernel(gpu.function("plus"), 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUstream newStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  return stream;
}
CUevent newEvent() {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

TEST(Modules, rejectUnknownInstructionsByName) {
  Gpu gpu;
  auto reject = [&](const char *statement, const char *text) {
    std::string log;
    CUresult result = gpu.load(
        std::string(".visible .entry k() { .reg .b32 %r<9>; .reg .b64 %l<9>;\n") + statement + "\nret; }", &log);
    EXPECT_EQ(result, CUDA_ERROR_INVALID_PTX) << statement;
    EXPECT_NE(log.find(text), std::string::npos) << log;
    EXPECT_NE(log.find("line 5"), std::string::npos) << log;
  };
  reject("tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%l1, {%r5}];", "tex.1d");
  reject("tanh.approx.f32 %r1, %r2;", "tanh.approx.f32");
  reject("add.bogus.u32 %r1, %r2, %r3;", "bogus");
  reject("add.u32 %r1, %r2, %undeclared;", "%undeclared");
  reject("add.u64 %l1, %l2, %r3;", "64 bits");
  reject("bra $nowhere;", "$nowhere");
  reject("shfl.idx.b32 %r1, %r2, 0, 31;", "shfl.idx");
}

TEST(Modules, areRejectedForOtherDevices) {
  {
    Gpu gpu({{"PTX_MACHINE_DRIVER_VERSION", "11080"}});
    std::string log;
    EXPECT_EQ(gpu.load(kPlus, &log), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    int version = 0;
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_EQ(version, 11080);
  }
  Gpu gpu({{"PTX_MACHINE_COMPUTE_CAPABILITY", "7.5"}});
  std::string log;
  EXPECT_EQ(gpu.load(kPlus, &log), CUDA_ERROR_INVALID_PTX);
  int major = 0;
  EXPECT_EQ(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
  EXPECT_EQ(major, 7);
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "\177ELF machine code"), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST(Modules, haveVariables) {
  Gpu gpu;
  gpu.load(".visible .global .align 8 .u32 table[4] = {3, 5};");
  CUdeviceptr address = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, gpu.module, "table"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(gpu.download<uint32_t>(address, 4), (std::vector<uint32_t>{3, 5, 0, 0}));
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, gpu.module, "other"), CUDA_ERROR_NOT_FOUND);
}

TEST(Launches, areChecked) {
  Gpu gpu;
  gpu.load(R"(.extern .shared .align 16 .b8 dynamic[];
.visible .entry k() .maxntid 64, 1, 1 { .reg .b32 %t; mov.u32 %t, %tid.x; st.shared.b8 [dynamic+60000], %t; ret; })");
  EXPECT_EQ(gpu.launch("k", 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.launch("k", 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.launch("k", 1, 1, 60001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetAttribute(gpu.function("k"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60001),
            CUDA_SUCCESS);
  EXPECT_EQ(gpu.launch("k", 1, 1, 60001), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS) << Gpu::finding();
  EXPECT_EQ(cuFuncSetAttribute(gpu.function("k"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 164 << 10),
            CUDA_ERROR_INVALID_VALUE);
}

/// Returns b after two streams worked on one word, with or without an event that orders the second after the first.
uint32_t twoStreams(bool hasWait, const std::string &seed) {
  Gpu gpu({{"PTX_MACHINE_SEED", seed}});
  gpu.load(kPlus);
  CUdeviceptr a = gpu.upload(std::vector<uint32_t>{0}), b = gpu.upload(std::vector<uint32_t>{0});
  CUstream first = newStream(), second = newStream();
  CUevent event = newEvent();
  EXPECT_EQ(plus(gpu, first, a, a, 5), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
  if (hasWait) {
    EXPECT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(plus(gpu, second, b, a, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  return gpu.download<uint32_t>(b, 1)[0];
}

TEST(Streams, heedDependenciesAndNothingElse) {
  std::set<uint32_t> without, with;
  for (int seed = 0; seed < 16; ++seed) {
    without.insert(twoStreams(false, std::to_string(seed)));
    with.insert(twoStreams(true, std::to_string(seed)));
  }
  EXPECT_EQ(without, (std::set<uint32_t>{1, 6}));
  EXPECT_EQ(with, std::set<uint32_t>{6});
}

TEST(Streams, executeWhenAsked) {
  Gpu gpu;
  gpu.load(kPlus);
  CUdeviceptr a = gpu.upload(std::vector<uint32_t>{1});
  CUstream stream = newStream();
  EXPECT_EQ(plus(gpu, stream, a, a, 5), CUDA_SUCCESS);
  // Pinned memory is read when the copy is executed, pageable memory when the copy is requested.
  uint32_t *pinned = nullptr, pageable = 40;
  EXPECT_EQ(cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 4, 0), CUDA_SUCCESS);
  *pinned = 30;
  CUdeviceptr b = gpu.allocate(4), c = gpu.allocate(4);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(b, pinned, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(c, &pageable, 4, stream), CUDA_SUCCESS);
  *pinned = 31;
  pageable = 41;
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(a, 1)[0], 6u);
  EXPECT_EQ(gpu.download<uint32_t>(b, 1)[0], 31u);
  EXPECT_EQ(gpu.download<uint32_t>(c, 1)[0], 40u);
  CUevent event = newEvent();
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
  }
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST(Streams, callTheHostUnasked) {
  Gpu gpu;
  std::atomic<bool> isCalled{false};
  EXPECT_EQ(cuLaunchHostFunc(
                newStream(), [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; }, &isCalled),
            CUDA_SUCCESS);
  while (!isCalled) {
    std::this_thread::yield();
  }
}

TEST(Graphs, areCapturedAndChanged) {
  Gpu gpu;
  gpu.load(kPlus);
  CUdeviceptr a = gpu.upload(std::vector<uint32_t>{0}), b = gpu.upload(std::vector<uint32_t>{0});
  CUstream stream = newStream(), other = newStream();
  CUevent fork = newEvent(), join = newEvent();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(plus(gpu, stream, a, a, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(plus(gpu, other, b, a, 10), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(join, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
  EXPECT_EQ(plus(gpu, stream, b, b, 100), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(a, 1)[0], 0u); // nothing was executed
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(a, 1)[0], 2u);
  EXPECT_EQ(gpu.download<uint32_t>(b, 1)[0], 112u);

  size_t count = 0;
  EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  ASSERT_EQ(count, 3u);
  CUgraphNode nodes[3];
  EXPECT_EQ(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS parameters;
  EXPECT_EQ(cuGraphKernelNodeGetParams_v2(nodes[0], &parameters), CUDA_SUCCESS);
  uint32_t n = 1000;
  void *arguments[] = {&a, &a, &n};
  parameters.kernelParams = arguments;
  EXPECT_EQ(cuGraphExecKernelNodeSetParams_v2(executable, nodes[0], &parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(a, 1)[0], 2u); // the stream is non-blocking, and nothing has waited for it
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(a, 1)[0], 1002u);
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST(Graphs, keepTheRulesOfCapture) {
  Gpu gpu;
  gpu.load(kPlus);
  CUdeviceptr a = gpu.upload(std::vector<uint32_t>{0}), memory = 0;
  CUstream stream = newStream(), other = newStream();
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(plus(gpu, stream, a, a, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUevent fork = newEvent();
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(plus(gpu, other, a, a, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST(Faults, areInjected) {
  {
    Gpu gpu({{"PTX_MACHINE_FAIL_ALLOC", "3"}});
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, 16), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&memory, 16, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&memory, 16), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc_v2(&memory, 16), CUDA_SUCCESS);
  }
  {
    Gpu gpu({{"PTX_MACHINE_FAIL_LAUNCH", "2"}});
    gpu.load(kPlus);
    CUdeviceptr a = gpu.upload(std::vector<uint32_t>{0});
    EXPECT_EQ(plus(gpu, nullptr, a, a, 1), CUDA_SUCCESS);
    EXPECT_EQ(plus(gpu, nullptr, a, a, 1), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  }
  {
    Gpu gpu({{"PTX_MACHINE_MEMORY", "1048576"}});
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, 2 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  }
  setenv("PTX_MACHINE_NO_DEVICE", "1", 1);
  ptxMachineReadOptions();
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
  unsetenv("PTX_MACHINE_NO_DEVICE");
  ptxMachineReadOptions();
}

TEST(Entries, areFoundByName) {
  void *found = nullptr;
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void *>(&cuMemAlloc_v2));
  EXPECT_EQ(cuGetProcAddress_v2("cuTexRefCreate", &found, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  const char *name = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST(Contexts, areManyOneAfterTheOther) {
  for (int i = 0; i < 1000; ++i) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    ASSERT_EQ(cuMemAlloc_v2(&memory, 1 << 20), CUDA_SUCCESS);
    size_t available = 0, total = 0;
    ASSERT_EQ(cuMemGetInfo_v2(&available, &total), CUDA_SUCCESS);
    ASSERT_EQ(total - available, size_t(1) << 20); // destroyed contexts free their memory
    ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  }
}

TEST(Graphs, concernOtherThreadsInModeGlobalAlone) {
  Gpu gpu;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    bool isOthers = mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream, mode), CUDA_SUCCESS);
    std::thread other([&] {
      CUdeviceptr address = 0;
      ASSERT_EQ(cuCtxPushCurrent_v2(gpu.context), CUDA_SUCCESS);
      EXPECT_EQ(cuMemAlloc_v2(&address, 64), isOthers ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    });
    other.join();
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), isOthers ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST(Counts, areKeptByKernel) {
  Gpu gpu;
  gpu.load(R"(
.visible .entry k(.param .u64 p) {
  .shared .align 4 .b8 s[4096];
  .reg .b32 %t, %v, %s; .reg .b64 %p, %w;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 8; add.u64 %p, %p, %w;
  ld.global.b32 %v, [%p];
  mov.u32 %s, s; mad.lo.u32 %s, %t, 128, %s; st.shared.b32 [%s], %v;
  bar.sync 0; ret;
})");
  EXPECT_EQ(gpu.run("k", 32, gpu.upload(std::vector<uint32_t>(64, 0))), CUDA_SUCCESS);
  std::string counts = ptxMachineCounts();
  auto expect = [&](const char *text) { EXPECT_NE(counts.find(text), std::string::npos) << text << " in " << counts; };
  expect("\"launches\": 1");
  expect("\"load_sectors\": 8"); // 32 words, every second one: 256 bytes
  expect("\"dram_sectors\": 8");
  expect("\"bank_conflicts\": 31"); // all lanes in one bank
  expect("\"barriers\": 1");
  expect("\"ld.global.b32\": 1");
}

} // namespace
} // namespace ptx::test
