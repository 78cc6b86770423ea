// SPDX-License-Identifier: Apache-2.0
//===- KernelPrograms.cpp - Back ends of CPUs -----------------------------===//
#include "KernelPrograms.h"

#include "../core/Cpu.h"
#include "../core/Memory.h"
#include "ElfImage.h"
#include "bmodel/cpu_features.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/kernel_contract.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt;
using bmrt::native::ElfImage;

static ElfImage *imageOf(bmrt_program_t *program) { return reinterpret_cast<ElfImage *>(program); }

bmrt_code_t native::check(const ElfMachine &machine, const bmrt_subnet_t *subnet, const char *advice,
                          bmrt_status_t *status) {
  if (subnet->kernel_count > 0 && machine.number != core::cpu::kElfMachine) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has code for %s, which this machine is not: deploy the model for a chip of this "
                     "machine",
                     subnet->name, machine.name);
  }
  if (subnet->kernel_count > 0 && subnet->code_version != BM_KERNEL_ABI_VERSION) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has code for kernel interface %" PRIu32
                     ", this runtime supports %d: deploy the model "
                     "anew",
                     subnet->name, subnet->code_version, BM_KERNEL_ABI_VERSION);
  }
  const uint64_t missing = subnet->cpu_features & ~bmodel::requestCpuFeatures(subnet->cpu_features);
  if (missing == 0) {
    return BMRT_OK;
  }
  char names[160];
  return BMRT_FAIL(status, UNSUPPORTED,
                   "subnet '%.60s' was compiled for %.40s; this CPU or operating system lacks %s; "
                   "compile the model for an older chip (--chip %s)",
                   subnet->name, subnet->isa[0] ? subnet->isa : "another CPU",
                   bmodel::cpuFeatureNames(missing, names, sizeof(names)), advice);
}

bmrt_code_t native::load(const ElfMachine &machine, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                         bmrt_status_t *status) {
  ElfImage *image = core::createObject<ElfImage>();
  if (!image) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a code image");
  }
  if (bmrt_code_t result = image->load(machine, code, bytes, status); result != BMRT_OK) {
    core::destroyObject(image);
    return result;
  }
  *out = reinterpret_cast<bmrt_program_t *>(image);
  return BMRT_OK;
}

void native::unload(bmrt_program_t *program) { core::destroyObject(imageOf(program)); }

void *native::findKernel(bmrt_program_t *program, const char *symbol) { return imageOf(program)->findFunction(symbol); }

bmrt_code_t native::findContract(bmrt_program_t *program, const char *symbol, const char *advice, const void **out,
                                 bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(imageOf(program)->findContract(symbol, *out, status));
  bm_kernel_contract head = {};
  if (*out) {
    memcpy(&head, *out, sizeof(head));
  }
  const uint64_t missing = head.cpu_features & ~bmodel::requestCpuFeatures(head.cpu_features);
  char names[160];
  return missing == 0
             ? BMRT_OK
             : BMRT_FAIL(status, UNSUPPORTED,
                         "kernel '%.80s' needs %s, which this CPU or operating system lacks; compile the model "
                         "for an older chip (--chip %s)",
                         symbol, bmodel::cpuFeatureNames(missing, names, sizeof(names)), advice);
}
