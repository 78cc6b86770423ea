// SPDX-License-Identifier: Apache-2.0
//===- KernelPrograms.h - Back ends of CPUs -------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H
#define TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H

#include "ElfMachine.h"
#include "bmrt/backend.h"

namespace bmrt::native {

/// The functions of bmrt_backend_t that all families of CPUs share. |advice| names the chips of the family for which a
/// model that needs other CPU features can be compiled.
bmrt_code_t check(const bmrt_subnet_t *subnet, const char *advice, bmrt_status_t *status);
bmrt_code_t load(const ElfMachine &machine, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status);
void unload(bmrt_program_t *program);
void *findKernel(bmrt_program_t *program, const char *symbol);
/// Rejects a kernel that needs another CPU, whatever the tables of the file state.
bmrt_code_t findContract(bmrt_program_t *program, const char *symbol, const char *advice, const void **out,
                         bmrt_status_t *status);

} // namespace bmrt::native

#endif // TESSERA_BMRUNTIME_SRC_NATIVE_KERNELPROGRAMS_H
