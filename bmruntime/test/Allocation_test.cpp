// SPDX-License-Identifier: Apache-2.0
//===- Allocation_test.cpp - Makes every allocation fail once -------------===//
//
// This program replaces malloc and related functions, mmap and pthread_create, and makes the n-th call fail, for every
// n. Each failure must be reported as an error and must not cause a crash or leak the model.
//
//===----------------------------------------------------------------------===//
#include "bmodel_format/test/TestModel.h"
#include "bmrt/bmrt.h"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace {
/// Number of calls that succeed before one fails; negative: none fails.
std::atomic<long> callsLeft = -1;

bool fails() { return callsLeft.load() >= 0 && callsLeft.fetch_sub(1) == 0; }
} // namespace

// Exported, so that the library uses these functions instead of the C library's.
#pragma GCC visibility push(default)
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { return fails() ? nullptr : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? nullptr : __libc_calloc(count, size); }
void *aligned_alloc(size_t alignment, size_t size) { return fails() ? nullptr : __libc_memalign(alignment, size); }
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument) {
  using Create = int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static const Create original = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails() ? EAGAIN : original(thread, attributes, main, argument);
}
}
#pragma GCC visibility pop

namespace {

/// Opens, creates, runs, launches, profiles and destroys; returns the first code that is not BMRT_OK.
bmrt_code_t useEverything(const char *path, bmrt_status_t *status) {
  bmrt_model_t *model = nullptr;
  bmrt_context_t *context = nullptr;
  bmrt_context_options_t options = {};
  options.struct_size = sizeof(options);
  options.stage = BMRT_FIRST_RUNNABLE_STAGE;
  options.threads = 3;
  bmrt_code_t code = bmrt_model_open(path, nullptr, &model, status);
  if (code == BMRT_OK) {
    code = bmrt_context_create(model, &options, &context, status);
    bmrt_model_release(model);
  }
  code = code == BMRT_OK ? bmrt_context_set_profiling(context, true, status) : code;
  code = code == BMRT_OK ? bmrt_context_run(context, status) : code;
  code = code == BMRT_OK ? bmrt_context_launch(context, status) : code;
  code = code == BMRT_OK ? bmrt_context_wait(context, status) : code;
  code = code == BMRT_OK ? bmrt_context_set_stage(context, 1, status) : code;
  code = code == BMRT_OK ? bmrt_context_run(context, status) : code;
  bmrt_context_destroy(context);
  return code;
}

/// Adds a second stage that takes more memory.
void addLargerStage(bmodel::test::AddRelu &test) {
  auto larger = std::make_unique<bmodel::StageDefT>(test.stage());
  larger->workspaces[0]->bytes *= 2;
  larger->subnets[0]->plan[0]->op.AsLaunchDef()->scratch_bytes = 4096;
  test.model.nets[0]->stages.push_back(std::move(larger));
}

TEST(Allocation, EachMayFail) {
  const std::string path = bmodel::test::temporaryPath("allocation.bmodel");
  bmodel::test::AddRelu test(bmodel::test::readBytes(BMRT_CTS_KERNELS), 1 << 20);
  addLargerStage(test);
  ASSERT_EQ(test.write(path), "");
  bmrt_status_t status;
  ASSERT_EQ(useEverything(path.c_str(), &status), BMRT_OK) << status.message;
  int failures = 0;
  for (long n = 0;; ++n) {
    status = {};
    callsLeft = n;
    const bmrt_code_t code = useEverything(path.c_str(), &status);
    const bool allDone = callsLeft >= 0;
    callsLeft = -1;
    if (allDone) {
      EXPECT_EQ(code, BMRT_OK) << status.message;
      break;
    }
    // The helper thread for hashes is optional: without it, opening succeeds as well.
    if (code != BMRT_OK) {
      EXPECT_EQ(code, BMRT_NO_MEMORY) << "call " << n << ": " << status.message;
      EXPECT_STRNE(status.message, "");
      ++failures;
    }
    ASSERT_LT(n, 1000);
  }
  EXPECT_GT(failures, 15) << "the test has lost its hold on the allocations";
  EXPECT_EQ(useEverything(path.c_str(), &status), BMRT_OK);
  unlink(path.c_str());
}

} // namespace
