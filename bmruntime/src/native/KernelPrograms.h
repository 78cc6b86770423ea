// SPDX-License-Identifier: Apache-2.0
//===- KernelPrograms.h - Back ends of CPUs -------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H
#define TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H

#include "ElfMachine.h"
#include "bmrt/backend.h"

namespace bmrt::native {

/// The functions of bmrt_backend_t that all families of CPUs share. |advice| names the chips of the family for which a
/// model that needs other CPU features can be compiled.
bmrt_code_t check(const ElfMachine &machine, const bmrt_subnet_t *subnet, const char *advice, bmrt_status_t *status);
bmrt_code_t load(const ElfMachine &machine, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status);
void unload(bmrt_program_t *program);
void *findKernel(bmrt_program_t *program, const char *symbol);
/// Rejects a kernel that needs another CPU, whatever the tables of the file state.
bmrt_code_t findContract(bmrt_program_t *program, const char *symbol, const char *advice, const void **out,
                         bmrt_status_t *status);

/// Describes a family of CPUs. |advice| is as above.
struct CpuFamily {
  const char *name, *advice;
  const ElfMachine *machine;
};

/// Returns the back end of |Family|.
template <const CpuFamily &Family>
constexpr bmrt_backend_t backendOf() {
  return {
      .abi = BMRT_BACKEND_ABI,
      .flags = BMRT_BACKEND_HOST_MEMORY | BMRT_BACKEND_HOST_KERNELS,
      .struct_size = sizeof(bmrt_backend_t),
      .family = Family.name,
      .open = nullptr,
      .close = nullptr,
      .allocate = nullptr,
      .release = nullptr,
      .check = [](bmrt_device_t *, const bmrt_subnet_t *subnet,
                  bmrt_status_t *status) { return check(*Family.machine, subnet, Family.advice, status); },
      .load = [](bmrt_device_t *, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status) { return load(*Family.machine, code, bytes, out, status); },
      .unload = unload,
      .find_kernel = findKernel,
      .find_contract = [](bmrt_program_t *program, const char *symbol, const void **out,
                          bmrt_status_t *status) { return findContract(program, symbol, Family.advice, out, status); },
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
}

} // namespace bmrt::native

#endif // TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H
