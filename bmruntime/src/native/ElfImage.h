// SPDX-License-Identifier: Apache-2.0
//===- ElfImage.h - Loader of shared objects for kernels ------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NATIVE_ELFIMAGE_H
#define TESSERA_BMRUNTIME_SRC_NATIVE_ELFIMAGE_H

#include "../core/Status.h"
#include "ElfMachine.h"

#include <cstdint>
#include <elf.h>

namespace bmrt::native {

/// An ELF64 shared object in memory, loaded without the dynamic linker.
///
/// Accepts only what a linker produces from compiled kernels: position-independent code, no needed libraries, no
/// initialisers, no thread-local storage, no relocations in code, no imports except memcpy, memset and memmove, and no
/// segment that is both writable and executable. Every field is checked before use, so arbitrary bytes produce an
/// error; the code itself is not checked.
class ElfImage {
public:
  ElfImage() = default;
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;
  ~ElfImage();

  /// Copies the loadable segments of a shared object for |machine|, relocates them, and sets the protection of their
  /// pages. |data| is not needed afterwards. The image of another machine can be examined but not called.
  bmrt_code_t load(const ElfMachine &machine, const unsigned char *data, uint64_t bytes, bmrt_status_t *status);

  /// Returns the address of a defined function in executable pages, or null.
  void *findFunction(const char *name) const;

  /// Sets |out| to the contract of |symbol| (bmodel/kernel_contract.h), which lies in the image and has any alignment;
  /// or to null if the image contains no contract at all (older compilers). Fails if the image has contracts, but none
  /// or several for |symbol|.
  bmrt_code_t findContract(const char *symbol, const void *&out, bmrt_status_t *status) const;

private:
  struct Dynamic {
    uint64_t symtab = 0, strtab = 0, strsz = 0, gnuHash = 0;
    uint64_t rela = 0, relaBytes = 0, jmprel = 0, jmprelBytes = 0;
  };

  bmrt_code_t mapSegments(const ElfMachine &machine, const unsigned char *data, uint64_t bytes, bmrt_status_t *status);
  bmrt_code_t readDynamic(bmrt_status_t *status);
  bmrt_code_t relocate(const ElfMachine &machine, uint64_t table, uint64_t tableBytes, bmrt_status_t *status);
  /// Computes the |value| that the relocation |entry| of |machine| stores.
  bmrt_code_t valueOf(const ElfMachine &machine, const Elf64_Rela &entry, uint64_t &value, bmrt_status_t *status) const;
  bmrt_code_t resolve(uint32_t symbol, uint64_t &value, bmrt_status_t *status) const;
  bmrt_code_t protect(bmrt_status_t *status);

  /// Reads an object at an image address; returns false if it is not inside the image.
  template <typename T>
  bool read(uint64_t address, T &out) const;
  /// Returns the string at |offset| of the string table, or null if it does not end inside the table.
  const char *string(uint64_t offset) const;
  /// Calls |visit|(contents, bytes) for each contract note until it returns a code other than BMRT_OK.
  template <typename Visit>
  bmrt_code_t forNotes(Visit visit, bmrt_status_t *status) const;
  /// Returns the loaded segment that contains the whole range, or null.
  const Elf64_Phdr *segmentOf(uint64_t address, uint64_t bytes) const;

  static constexpr uint32_t kMaxSegments = 16;
  unsigned char *base = nullptr;
  uint64_t span = 0;
  uint64_t pageBytes = 0; ///< of the machine
  Elf64_Phdr segments[kMaxSegments];
  uint32_t segmentCount = 0;
  static constexpr uint32_t kMaxNotes = 4;
  Elf64_Phdr notes[kMaxNotes];
  uint32_t noteCount = 0;
  Elf64_Phdr dynamicHeader = {};
  Dynamic dynamic;
};

} // namespace bmrt::native

#endif // TESSERA_BMRUNTIME_SRC_NATIVE_ELFIMAGE_H
