// SPDX-License-Identifier: Apache-2.0
//===- X86Backend.cpp - Native code on the CPU ----------------------------===//
#include "X86Backend.h"

#include "../native/KernelPrograms.h"

using namespace bmrt;

namespace {

constexpr char kAdvice[] = "x86-avx2 or x86-v2";

bmrt_code_t check(bmrt_device_t *, const bmrt_subnet_t *subnet, bmrt_status_t *status) {
  return native::check(subnet, kAdvice, status);
}

bmrt_code_t load(bmrt_device_t *, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status) {
  return native::load(native::x86_64, code, bytes, out, status);
}

bmrt_code_t findContract(bmrt_program_t *program, const char *symbol, const void **out, bmrt_status_t *status) {
  return native::findContract(program, symbol, kAdvice, out, status);
}

} // namespace

const bmrt_backend_t x86::backend = {.abi = BMRT_BACKEND_ABI,
                                     .flags = BMRT_BACKEND_HOST_MEMORY | BMRT_BACKEND_HOST_KERNELS,
                                     .struct_size = sizeof(bmrt_backend_t),
                                     .family = "x86",
                                     .open = nullptr,
                                     .close = nullptr,
                                     .allocate = nullptr,
                                     .release = nullptr,
                                     .check = check,
                                     .load = load,
                                     .unload = native::unload,
                                     .find_kernel = native::findKernel,
                                     .find_contract = findContract,
                                     .verify = nullptr,
                                     .make_queue = nullptr,
                                     .destroy_queue = nullptr,
                                     .copy = nullptr,
                                     .run = nullptr,
                                     .launch = nullptr,
                                     .wait = nullptr,
                                     .use_stream = nullptr,
                                     .run_timed = nullptr,
                                     .is_done = nullptr};
