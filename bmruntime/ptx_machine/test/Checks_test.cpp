//===- Checks_test.cpp - Tests of the machine's checks --------------------===//
// SPDX-License-Identifier: Apache-2.0
// Every check must fire on a kernel that breaks its rule and name the place, and must not fire on a kernel that obeys
// it.
#include "bmruntime/ptx_machine/test/Gpu.h"

#include <algorithm>
#include <set>

namespace ptx::test {
namespace {

using Environment = std::map<std::string, std::string>;

/// Returns a kernel with one pointer parameter %p; %t is the thread, %w its number times 4, %q = %p + %w.
std::string kernel(const std::string &body, const std::string &declarations = "") {
  return R"(
.visible .entry k(.param .u64 p) {
  .reg .pred %c; .reg .b32 %t, %b, %v, %v1, %v2, %v3, %s; .reg .b64 %p, %q, %w, %x;)" +
         declarations + R"(
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mul.wide.u32 %w, %t, 4; add.u64 %q, %p, %w;
)" + body +
         "\nret;\n}";
}

struct Outcome {
  CUresult result;
  std::string finding;
};

/// Runs |body| on 64 initialised words.
Outcome run(const std::string &body, unsigned threads = 32, unsigned blocks = 1, const std::string &declarations = "",
            const Environment &environment = {}) {
  Gpu gpu(environment);
  std::string log;
  EXPECT_EQ(gpu.load(kernel(body, declarations), &log), CUDA_SUCCESS) << log;
  CUdeviceptr memory = gpu.upload(std::vector<uint32_t>(64, 7));
  CUresult result = gpu.runGrid("k", blocks, threads, memory);
  return {result, Gpu::finding()};
}

void expectFinding(const Outcome &outcome, CUresult result, const std::string &text) {
  EXPECT_EQ(outcome.result, result);
  EXPECT_NE(outcome.finding.find(text), std::string::npos) << outcome.finding;
  EXPECT_NE(outcome.finding.find("kernel 'k', PTX line"), std::string::npos) << outcome.finding;
}
void expectNone(const Outcome &outcome) {
  EXPECT_EQ(outcome.result, CUDA_SUCCESS);
  EXPECT_EQ(outcome.finding, "");
}

TEST(Bounds, ofGlobalMemory) {
  expectNone(run("ld.global.b32 %v, [%q];", 64));
  Outcome outcome = run("ld.global.b32 %v, [%q+4];", 64);
  expectFinding(outcome, CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds: reads 4 bytes");
  EXPECT_NE(outcome.finding.find("block (0, 0, 0), thread (63, 0, 0)"), std::string::npos) << outcome.finding;
  EXPECT_NE(outcome.finding.find("cuMemAlloc no."), std::string::npos) << outcome.finding;
  expectFinding(run("st.global.b32 [%q+1000000], %t;"), CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds: writes");
  expectFinding(run("mov.b64 %x, 0; ld.global.b32 %v, [%x];"), CUDA_ERROR_ILLEGAL_ADDRESS, "null pointer");
  expectFinding(run("ld.b32 %v, [%q+512];"), CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
  expectFinding(run("atom.global.add.u32 %v, [%q+256], 1;"), CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
}

TEST(Bounds, ofSharedAndLocalMemory) {
  std::string shared = ".shared .align 4 .b8 s[128];", local = ".local .align 4 .b8 l[16];";
  expectNone(run("mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %t;", 32, 1, shared));
  expectFinding(run("mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s+4], %t;", 32, 1, shared),
                CUDA_ERROR_ILLEGAL_ADDRESS, "shared memory (128 bytes)");
  expectNone(run("st.local.b32 [l+12], %t; ld.local.b32 %v, [l+12];", 32, 1, local));
  expectFinding(run("st.local.b32 [l+16], %t;", 32, 1, local), CUDA_ERROR_ILLEGAL_ADDRESS, "local memory (16 bytes)");
}

TEST(Initialised, ofGlobalMemory) {
  Gpu gpu;
  gpu.load(kernel("ld.global.b32 %v, [%q]; st.global.b32 [%q+128], %v;"));
  CUdeviceptr memory = gpu.allocate(256);
  EXPECT_EQ(cuMemsetD8_v2(memory, 1, 127), CUDA_SUCCESS);
  EXPECT_EQ(gpu.run("k", 32, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(Gpu::finding().find("nobody wrote byte 127"), std::string::npos) << Gpu::finding();
  EXPECT_NE(Gpu::finding().find("thread (31, 0, 0)"), std::string::npos) << Gpu::finding();
}

TEST(Initialised, ofWhatKernelsWrote) {
  Gpu gpu;
  gpu.load(kernel("st.global.b32 [%q], %t;"));
  CUdeviceptr memory = gpu.allocate(256), copy = gpu.allocate(256);
  EXPECT_EQ(gpu.run("k", 32, memory), CUDA_SUCCESS);
  EXPECT_EQ(gpu.download<uint32_t>(memory, 32)[31], 31u);
  EXPECT_EQ(cuMemcpyDtoD_v2(copy, memory, 256), CUDA_SUCCESS); // also copies which bytes are uninitialised
  EXPECT_EQ(gpu.download<uint32_t>(copy, 32)[31], 31u);
  uint32_t word = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, copy + 128, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(Gpu::finding().find("nobody wrote byte 128"), std::string::npos) << Gpu::finding();
}

TEST(Initialised, ofSharedMemory) {
  std::string shared = ".shared .align 4 .b8 s[256];";
  expectFinding(run("ld.shared.b32 %v, [s+128];", 32, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS, "uninitialised");
  expectFinding(run("ld.local.b32 %v, [l];", 32, 1, ".local .align 4 .b8 l[16];"), CUDA_ERROR_ILLEGAL_ADDRESS,
                "uninitialised");
}

TEST(Alignment, ofVectors) {
  expectNone(run("ld.global.v2.b32 {%v, %v1}, [%p+8];"));
  expectFinding(run("ld.global.v4.b32 {%v, %v1, %v2, %v3}, [%p+8];"), CUDA_ERROR_MISALIGNED_ADDRESS,
                "misaligned: 16 bytes");
  expectFinding(run("ld.global.b32 %v, [%p+2];"), CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned: 4 bytes");
}

TEST(Races, betweenBarriers) {
  std::string shared = ".shared .align 4 .b8 s[256];";
  std::string write = "mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %t;";
  std::string read = "xor.b32 %v, %t, 33; mov.u32 %s, s; mad.lo.u32 %s, %v, 4, %s; ld.shared.b32 %v1, [%s];";
  expectNone(run(write + "bar.sync 0;" + read + "bar.sync 0;" + write, 64, 1, shared));
  // Written and then read by another thread; read and then written by another; written by two.
  expectFinding(run(write + "bar.sync 0;" + write + read, 64, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS,
                "race with thread no.");
  expectFinding(run(write + "bar.sync 0;" + read + write, 64, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS,
                "race with thread no.");
  expectFinding(run("st.shared.b32 [s], %t;", 32, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS, "race with thread no. 0");
}

TEST(Races, withinAWarp) {
  std::string shared = ".shared .align 4 .b8 s[128];";
  std::string write = "mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %t;";
  std::string read = "xor.b32 %v, %t, 1; mov.u32 %s, s; mad.lo.u32 %s, %v, 4, %s; ld.shared.b32 %v1, [%s];";
  expectFinding(run(write + read, 32, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS, "race with thread no.");
  expectNone(run(write + "bar.warp.sync -1;" + read, 32, 1, shared));
}

TEST(Races, ofBytes) {
  std::string shared = ".shared .align 4 .b8 s[64];";
  std::string own = "mov.u32 %s, s; add.u32 %s, %s, %t; st.shared.b8 [%s], %t;";
  expectNone(run(own + "bar.sync 0; ld.shared.b32 %v, [s+4];", 64, 1, shared));
  expectFinding(
      run(own + "shr.u32 %v, %t, 1; mov.u32 %s, s; add.u32 %s, %s, %v; st.shared.b8 [%s], %t;", 64, 1, shared),
      CUDA_ERROR_ILLEGAL_ADDRESS, "race with thread no.");
}

TEST(Races, ofNamedBarriers) {
  // Two pairs of warps, each with a separate barrier.
  std::string shared = ".shared .align 4 .b8 s[512];";
  std::string body = R"(
    mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %t; bar.sync 0; st.shared.b32 [%s], %t;
    shr.u32 %v, %t, 6; add.u32 %v, %v, 1; bar.sync %v, 64;
    xor.b32 %v, %t, PARTNER; mov.u32 %s, s; mad.lo.u32 %s, %v, 4, %s; ld.shared.b32 %v1, [%s];)";
  auto with = [&](const std::string &partner) {
    std::string text = body;
    return text.replace(text.find("PARTNER"), 7, partner);
  };
  expectNone(run(with("32"), 128, 1, shared));
  expectFinding(run(with("64"), 128, 1, shared), CUDA_ERROR_ILLEGAL_ADDRESS, "race with thread no.");
}

TEST(Races, betweenBlocks) {
  expectNone(
      run("mad.lo.u32 %v, %b, 32, %t; mul.wide.u32 %x, %v, 4; add.u64 %x, %x, %p; st.global.b32 [%x], %t;", 32, 2));
  expectFinding(run("st.global.b32 [%q], %t;", 32, 2), CUDA_ERROR_ILLEGAL_ADDRESS, "race: writes 4 bytes");
  expectNone(run("red.global.add.u32 [%p], 1;", 32, 2));
  // Block 1 reads what block 0 wrote; the order of blocks is not defined.
  std::string readOthers = "setp.eq.u32 %c, %b, 0; @%c st.global.b32 [%q], %t; @!%c ld.global.b32 %v, [%q];";
  expectFinding(run(readOthers, 32, 2), CUDA_ERROR_ILLEGAL_ADDRESS, "race: ");
}

TEST(Races, areFoundByByte) {
  // Each block reads a byte of one word and writes it in place; then block 1 writes the byte of block 0.
  std::string own = "cvt.u64.u32 %x, %b; add.u64 %x, %x, %p; ld.global.u8 %v, [%x]; st.global.u8 [%x], %v;";
  std::string other = "mov.u32 %v1, 1; sub.u32 %v1, %v1, %b; cvt.u64.u32 %x, %v1; add.u64 %x, %x, %p;";
  for (const char *threads : {"1", "2"}) {
    Environment environment{{"PTX_MACHINE_THREADS", threads}};
    expectNone(run(own, 1, 4, "", environment));
    expectFinding(run(own + other + "st.global.u8 [%x], %v;", 1, 2, "", environment), CUDA_ERROR_ILLEGAL_ADDRESS,
                  "race: ");
    expectFinding(run("ld.global.u8 %v, [%p+1];" + own, 1, 2, "", environment), CUDA_ERROR_ILLEGAL_ADDRESS, "race: ");
  }
}

TEST(Races, areOrderedByFences) {
  // The last block to arrive reads what the others wrote, as the sums of split-K do.
  std::string body = R"(
    mad.lo.u32 %v, %b, 32, %t; mul.wide.u32 %x, %v, 4; add.u64 %x, %x, %p; st.global.b32 [%x], 1;
    FENCE bar.sync 0;
    setp.ne.u32 %c, %t, 0; @%c bra $end;
    mov.u64 %x, flag; atom.global.add.u32 %v, [%x], 1;
    setp.ne.u32 %c, %v, 1; @%c bra $end;
    FENCE
    ld.global.b32 %v1, [%p]; ld.global.b32 %v2, [%p+128];
$end:)";
  auto with = [&](const std::string &fence) {
    std::string text = body;
    for (size_t at = text.find("FENCE"); at != std::string::npos; at = text.find("FENCE")) {
      text.replace(at, 5, fence);
    }
    return text;
  };
  for (const char *fence : {"membar.gl;", ""}) {
    Gpu gpu({{"PTX_MACHINE_THREADS", "1"}});
    gpu.load(".global .align 4 .u32 flag;" + kernel(with(fence)));
    CUresult result = gpu.runGrid("k", 2, 32, gpu.upload(std::vector<uint32_t>(64, 0)));
    EXPECT_EQ(result, *fence ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS) << Gpu::finding();
  }
}

TEST(Blocks, beginInTheOrderOfTheSeed) {
  std::set<std::vector<uint32_t>> orders;
  for (const char *seed : {"0", "1", "2", "3"}) {
    Gpu gpu({{"PTX_MACHINE_THREADS", "1"}, {"PTX_MACHINE_SEED", seed}});
    gpu.load(".global .align 4 .u32 flag;" +
             kernel("mov.u64 %x, flag; atom.global.add.u32 %v, [%x], 1; mul.wide.u32 %x, %b, 4; add.u64 %x, %x, %p;"
                    "st.global.b32 [%x], %v;"));
    CUdeviceptr places = gpu.upload(std::vector<uint32_t>(64, 0));
    EXPECT_EQ(gpu.runGrid("k", 12, 1, places), CUDA_SUCCESS) << Gpu::finding();
    std::vector<uint32_t> order = gpu.download<uint32_t>(places, 12);
    orders.insert(order);
    EXPECT_EQ(std::is_sorted(order.begin(), order.end()), seed == std::string("0"));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) << "each block runs once";
  }
  EXPECT_GT(orders.size(), 2u);
}

TEST(Blocks, mayWaitForLaterOnes) {
  Gpu gpu({{"PTX_MACHINE_THREADS", "1"}});
  gpu.load(kernel(R"(
    setp.ne.u32 %c, %b, 0; @%c bra $other;
$spin:
    ld.acquire.gpu.global.u32 %v, [%p]; setp.eq.u32 %c, %v, 0; @%c bra $spin;
    ret;
$other:
    st.release.gpu.global.u32 [%p], 1;)"));
  EXPECT_EQ(gpu.runGrid("k", 2, 1, gpu.upload(std::vector<uint32_t>(64, 0))), CUDA_SUCCESS) << Gpu::finding();
}

TEST(Blocks, areSaidNotToEnd) {
  Outcome outcome = run("$loop: bra $loop;", 32, 1, "", {{"PTX_MACHINE_STEP_LIMIT", "10000"}});
  expectFinding(outcome, CUDA_ERROR_LAUNCH_FAILED, "has not ended");
}

TEST(Divergence, ofBarriers) {
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c bra $end; bar.sync 0;\n$end:"), CUDA_ERROR_LAUNCH_FAILED, "diverge");
  expectFinding(run("setp.lt.u32 %c, %t, 32; @%c ret; bar.sync 0;", 64), CUDA_ERROR_LAUNCH_FAILED,
                "32 threads of the block have exited");
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c bar.sync 0;"), CUDA_ERROR_LAUNCH_FAILED, "divergent barrier");
  expectNone(run("setp.lt.u32 %c, %t, 32; @%c bra $a; bar.sync 0; bra $b;\n$a: bar.sync 0;\n$b:", 64));
  // Without .aligned, lanes of a warp may arrive one by one.
  expectNone(run("setp.lt.u32 %c, %t, 5; @%c bra $a; barrier.sync 0; bra $b;\n$a: barrier.sync 0;\n$b:", 64));
}

TEST(Divergence, ofWarpInstructions) {
  std::string declare = ".shared .align 16 .b8 s[512]; .reg .b32 %r<8>;";
  std::string mma =
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%t, %t}, {%t}, {%t, %t, %t, %t};";
  expectNone(run(mma, 32, 1, declare));
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c bra $end;" + mma + "\n$end:", 32, 1, declare), CUDA_ERROR_LAUNCH_FAILED,
                "divergence");
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c bra $on; shfl.sync.idx.b32 %v, %t, 31, 31, -1;\n$on: mov.b32 %v1, 0;"),
                CUDA_ERROR_LAUNCH_FAILED, "divergence");
  // Threads that have exited are not waited for, and cannot provide a value.
  expectNone(run("setp.lt.u32 %c, %t, 5; @%c bra $end; shfl.sync.idx.b32 %v, %t, 31, 31, -1;\n$end:"));
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c bra $end; shfl.sync.idx.b32 %v, %t, 0, 31, -1;\n$end:"),
                CUDA_ERROR_LAUNCH_FAILED, "reads lane 0, which does not take part");
  expectFinding(run("setp.lt.u32 %c, %t, 5; @%c ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [s];", 32, 1, declare),
                CUDA_ERROR_LAUNCH_FAILED, "divergence");
}

const char *const kCopy = R"(
    mov.u32 %s, s; mad.lo.u32 %s, %t, 16, %s; and.b32 %v, %t, 15; mul.wide.u32 %x, %v, 16; add.u64 %x, %x, %p;
    cp.async.cg.shared.global [%s], [%x], 16;
)";
const char *const kShared = ".shared .align 16 .b8 s[1024];";

TEST(AsyncCopies, areSeenAfterTheirWait) {
  std::string copy = kCopy;
  expectNone(run(copy + "cp.async.commit_group; cp.async.wait_group 0; ld.shared.b32 %v, [%s];", 32, 1, kShared));
  expectNone(run(copy + "cp.async.wait_all; bar.sync 0; ld.shared.b32 %v, [s+64];", 64, 1, kShared));
  expectFinding(run(copy + "cp.async.commit_group; ld.shared.b32 %v, [%s];", 32, 1, kShared),
                CUDA_ERROR_ILLEGAL_ADDRESS, "before a cp.async");
  // Waits for another group only.
  expectFinding(run(copy + "cp.async.commit_group; cp.async.wait_group 1; ld.shared.b32 %v, [%s];", 32, 1, kShared),
                CUDA_ERROR_ILLEGAL_ADDRESS, "before a cp.async");
  // Only the thread itself has waited, not the others.
  expectFinding(run(copy + "cp.async.wait_all; ld.shared.b32 %v, [s];", 64, 1, kShared), CUDA_ERROR_ILLEGAL_ADDRESS,
                "");
  expectFinding(run(copy + "st.shared.b32 [%s], %t;", 32, 1, kShared), CUDA_ERROR_ILLEGAL_ADDRESS, "before a cp.async");
}

TEST(AsyncCopies, fillWithZeros) {
  Gpu gpu;
  gpu.load(kernel(R"(
    mov.u32 %s, s; mad.lo.u32 %s, %t, 16, %s;
    cp.async.cg.shared.global [%s], [%p], 16, 6; cp.async.wait_all;
    ld.shared.v2.b32 {%v, %v1}, [%s]; st.global.v2.b32 [%p+16], {%v, %v1};)",
                  kShared));
  CUdeviceptr memory = gpu.upload(std::vector<uint32_t>(8, 0x01020304));
  EXPECT_EQ(gpu.run("k", 1, memory), CUDA_SUCCESS) << Gpu::finding();
  std::vector<uint32_t> result = gpu.download<uint32_t>(memory, 8);
  EXPECT_EQ(result[4], 0x01020304u);
  EXPECT_EQ(result[5], 0x0304u);
}

TEST(Traps, endTheKernel) { expectFinding(run("trap;"), CUDA_ERROR_ILLEGAL_INSTRUCTION, "trapped"); }

TEST(Checks, canBeSwitchedOff) {
  auto off = [](const char *name, const std::string &body, unsigned threads = 32, unsigned blocks = 1,
                const std::string &declarations = "") {
    EXPECT_EQ(run(body, threads, blocks, declarations, {{name, "0"}}).result, CUDA_SUCCESS) << name;
  };
  off("PTX_MACHINE_CHECK_INITIALISED", "ld.shared.b32 %v, [s];", 32, 1, kShared);
  off("PTX_MACHINE_CHECK_ALIGNMENT", "ld.global.b32 %v, [%p+2];");
  off("PTX_MACHINE_CHECK_RACES", "st.shared.b32 [s], %t;", 32, 1, kShared);
  off("PTX_MACHINE_CHECK_RACES", "st.global.b32 [%q], %t;", 32, 2);
  off("PTX_MACHINE_CHECK_DIVERGENCE", "setp.lt.u32 %c, %t, 5; @%c bar.sync 0; @!%c bar.sync 0;");
  off("PTX_MACHINE_CHECKS", "ld.global.b32 %v, [%p+2];");
}

TEST(Checks, loseTheContext) {
  Gpu gpu;
  gpu.load(kernel("trap;"));
  CUdeviceptr memory = gpu.upload(std::vector<uint32_t>(64, 7));
  EXPECT_EQ(gpu.run("k", 32, memory), CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, 16), CUDA_ERROR_ILLEGAL_INSTRUCTION);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

} // namespace
} // namespace ptx::test
