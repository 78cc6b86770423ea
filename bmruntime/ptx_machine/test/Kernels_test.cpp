//===- Kernels_test.cpp - Whole kernels -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/test/Gpu.h"

#include <cctype>
#include <random>

namespace ptx::test {
namespace {

using Words = std::vector<uint32_t>;

/// The output of llc-22 for code with a function call, local memory and a table.
constexpr char kWithCalls[] = R"(
.global .align 16 .b8 tab[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
.visible .func  (.param .b32 func_retval0) f(
	.param .b32 f_param_0,
	.param .b64 f_param_1
)
{
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<2>;
	ld.param.b32 	%r1, [f_param_0];
	ld.param.b64 	%rd1, [f_param_1];
	ld.b32 	%r2, [%rd1];
	mul.lo.s32 	%r3, %r1, %r2;
	mul.hi.s32 	%r4, %r3, -1840700269;
	add.s32 	%r5, %r4, %r3;
	shr.u32 	%r6, %r5, 31;
	shr.s32 	%r7, %r5, 2;
	add.s32 	%r8, %r7, %r6;
	st.param.b32 	[func_retval0], %r8;
	ret;
}
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .u32 k_param_2,
	.param .align 4 .b8 k_param_3[16]
)
{
	.local .align 4 .b8 	__local_depot1[128];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .pred 	%p<2>;
	.reg .b32 	%r<18>;
	.reg .b64 	%rd<13>;
	.shared .align 16 .b8 sm[1024];
	mov.b64 	%SPL, __local_depot1;
	ld.param.b64 	%rd2, [k_param_0];
	mov.u32 	%r1, %tid.x;
	ld.param.b32 	%r3, [k_param_2];
	setp.ge.u32 	%p1, %r1, %r3;
	@%p1 bra 	$L__BB1_2;
	ld.param.b32 	%r2, [k_param_3+8];
	add.u64 	%rd3, %SPL, 0;
	mul.wide.u32 	%rd4, %r1, 4;
	add.s64 	%rd5, %rd3, %rd4;
	cvta.local.u64 	%rd6, %rd5;
	st.local.b32 	[%rd5], %r2;
	{ // callseq 0, 0
	.param .b32 	param0;
	.param .b64 	param1;
	.param .b32 	retval0;
	st.param.b64 	[param1], %rd6;
	st.param.b32 	[param0], %r1;
	call.uni (retval0), f, (param0, param1);
	ld.param.b32 	%r11, [retval0];
	} // callseq 0
	add.s64 	%rd8, %rd2, %rd4;
	mov.b64 	%rd9, tab;
	and.b32 %r12, %r1, 3;
	mul.wide.u32 %rd11, %r12, 4;
	add.s64 	%rd10, %rd9, %rd11;
	ld.global.nc.b32 	%r13, [%rd10];
	add.s32 %r14, %r13, %r11;
	st.global.b32 	[%rd8], %r14;
$L__BB1_2:
	bar.sync 	0;
	ret;
})";

TEST(Kernels, addsTwoArrays) {
  Gpu gpu;
  gpu.load(R"(
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra $end;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
  add.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
$end:
  ret;
})");
  std::vector<float> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = float(i);
    b[i] = 0.5f;
  }
  CUdeviceptr c = gpu.allocate(4000);
  EXPECT_EQ(gpu.runGrid("add", 8, 128, gpu.upload(a), gpu.upload(b), c, 1000), CUDA_SUCCESS) << Gpu::finding();
  std::vector<float> result = gpu.download<float>(c, 1000);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(result[i], float(i) + 0.5f);
  }
}

TEST(Kernels, callsFunctions) {
  Gpu gpu;
  gpu.load(kWithCalls);
  struct {
    int32_t values[4];
  } array = {{0, 0, 100, 0}};
  CUdeviceptr out = gpu.allocate(4 * 20);
  EXPECT_EQ(gpu.run("k", 32, out, 20, array), CUDA_SUCCESS) << Gpu::finding();
  Words result = gpu.download<uint32_t>(out, 20);
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(result[i], i * 100 / 7 + i % 4 + 1) << i;
  }
}

/// Returns |text| with one word removed, doubled, halved, or replaced by another word of it or by an edge case.
std::string altered(const std::string &text, std::mt19937 &random) {
  static const char *const edges[] = {"0",  "-1", "4294967296", "99999999999999999999999", "1e999", ".pred",
                                      "\"", "{",  "}"};
  auto isWord = [](char c) { return std::isalnum(uint8_t(c)) || strchr("%$._-", c) != nullptr; };
  std::vector<std::pair<size_t, size_t>> words; // begin, length: runs of word characters, and single others
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (isWord(text[i]) && end < text.size() && isWord(text[end])) {
      ++end;
    }
    words.emplace_back(i, end - i);
    i = end;
  }
  auto [begin, length] = words[random() % words.size()];
  auto [other, otherLength] = words[random() % words.size()];
  const std::string word = text.substr(begin, length);
  const std::string replacements[] = {"", word + " " + word, text.substr(other, otherLength),
                                      edges[random() % std::size(edges)], text.substr(begin, length / 2)};
  return text.substr(0, begin) + replacements[random() % std::size(replacements)] + text.substr(begin + length);
}

/// Tests that bad text is reported by an error code. No exception may cross the driver's C functions.
TEST(Kernels, alteredTextLoadsOrIsRejected) {
  Gpu gpu;
  std::mt19937 random(1);
  size_t rejected = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = altered(kWithCalls, random), log;
    for (int more = i % 4; more > 0; --more) {
      text = altered(text, random);
    }
    CUresult result = CUDA_SUCCESS;
    EXPECT_NO_THROW(result = gpu.load(text, &log)) << text;
    if (result == CUDA_SUCCESS) {
      cuModuleUnload(gpu.module);
    } else {
      EXPECT_FALSE(log.empty()) << text;
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 1000u);
}

} // namespace
} // namespace ptx::test
