// SPDX-License-Identifier: Apache-2.0
//===- ElfMachine.h - Machine of a shared object --------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NATIVE_ELFMACHINE_H
#define TESSERA_BMRUNTIME_SRC_NATIVE_ELFMACHINE_H

#include <cstdint>

namespace bmrt::native {

/// Values that a relocation stores in 8 bytes of data.
enum class Relocation {
  unsupported,
  none,             ///< stores nothing
  basePlusAddend,   ///< base address of the image + addend
  symbol,           ///< address of the symbol
  symbolPlusAddend, ///< address of the symbol + addend
};

/// The properties of a machine by which its shared objects differ. Its CPU need not be the one that runs the loader.
struct ElfMachine {
  const char *name;   ///< for messages, e.g. "x86-64"
  uint16_t number;    ///< e_machine
  uint64_t pageBytes; ///< largest page size of its operating systems; segments do not share such a page
  Relocation (*relocationOf)(uint32_t type);
};

extern const ElfMachine x86_64, aarch64, riscv64;

} // namespace bmrt::native

#endif // TESSERA_BMRUNTIME_SRC_NATIVE_ELFMACHINE_H
