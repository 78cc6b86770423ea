// SPDX-License-Identifier: Apache-2.0
//===- Riscv64.cpp - Shared objects of 64-bit RISC-V ----------------------===//
#include "ElfMachine.h"

#include <elf.h>

using namespace bmrt::native;

static Relocation relocationOf(uint32_t type) {
  switch (type) {
  case R_RISCV_NONE:
    return Relocation::none;
  case R_RISCV_RELATIVE:
    return Relocation::basePlusAddend;
  case R_RISCV_JUMP_SLOT:
    return Relocation::symbol;
  case R_RISCV_64:
    return Relocation::symbolPlusAddend;
  default:
    return Relocation::unsupported;
  }
}

const ElfMachine bmrt::native::riscv64 = {"RISC-V", EM_RISCV, 4096, relocationOf};
