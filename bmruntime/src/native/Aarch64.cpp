// SPDX-License-Identifier: Apache-2.0
//===- Aarch64.cpp - Shared objects of 64-bit Arm -------------------------===//
#include "ElfMachine.h"

#include <elf.h>

using namespace bmrt::native;

static Relocation relocationOf(uint32_t type) {
  switch (type) {
  case R_AARCH64_NONE:
    return Relocation::none;
  case R_AARCH64_RELATIVE:
    return Relocation::basePlusAddend;
  case R_AARCH64_GLOB_DAT:
  case R_AARCH64_JUMP_SLOT:
  case R_AARCH64_ABS64:
    return Relocation::symbolPlusAddend;
  default:
    return Relocation::unsupported;
  }
}

const ElfMachine bmrt::native::aarch64 = {"AArch64", EM_AARCH64, 65536, relocationOf};
