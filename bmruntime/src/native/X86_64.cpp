// SPDX-License-Identifier: Apache-2.0
//===- X86_64.cpp - Shared objects of x86-64 ------------------------------===//
#include "ElfMachine.h"

#include <elf.h>

using namespace bmrt::native;

static Relocation relocationOf(uint32_t type) {
  switch (type) {
  case R_X86_64_NONE:
    return Relocation::none;
  case R_X86_64_RELATIVE:
    return Relocation::basePlusAddend;
  case R_X86_64_GLOB_DAT:
  case R_X86_64_JUMP_SLOT:
    return Relocation::symbol;
  case R_X86_64_64:
    return Relocation::symbolPlusAddend;
  default:
    return Relocation::unsupported;
  }
}

const ElfMachine bmrt::native::x86_64 = {"x86-64", EM_X86_64, 4096, relocationOf};
