//===- BuildIdentity.cpp - Identity of this compiler build ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/BuildIdentity.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/xxhash.h"

#include <elf.h>
#include <link.h>

using namespace llvm;

namespace tessera::kernels {

namespace {
struct Search {
  uintptr_t address;   ///< any address inside the object to find
  std::string buildId; ///< hexadecimal
};

/// Returns the build id in a note segment as lowercase hexadecimal, or "" if it does not have one.
std::string buildIdIn(const char *notes, size_t bytes, size_t alignment) {
  for (const char *end = notes + bytes; notes + sizeof(ElfW(Nhdr)) <= end;) {
    ElfW(Nhdr) header;
    memcpy(&header, notes, sizeof(header));
    const char *name = notes + sizeof(header);
    const char *value = name + alignTo(header.n_namesz, Align(alignment));
    if (header.n_type == NT_GNU_BUILD_ID && StringRef(name, header.n_namesz) == StringRef("GNU", 4)) {
      return toHex(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(value), header.n_descsz), /*LowerCase=*/true);
    }
    notes = value + alignTo(header.n_descsz, Align(alignment));
  }
  return "";
}

/// Callback of dl_iterate_phdr for each loaded object; stops the search (returns 1) at the object that contains the
/// address.
int visit(dl_phdr_info *object, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  ArrayRef<ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phnum);
  const bool isIt = any_of(segments, [&](const ElfW(Phdr) & segment) {
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && search.address >= begin && search.address - begin < segment.p_memsz;
  });
  if (!isIt) {
    return 0;
  }
  for (const ElfW(Phdr) &segment : segments) {
    if (segment.p_type == PT_NOTE && search.buildId.empty()) {
      search.buildId = buildIdIn(reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz,
                                 segment.p_align == 8 ? 8 : 4);
    }
  }
  return 1;
}

template <typename FunctionT>
std::string buildIdOf(FunctionT *function) {
  Search search{reinterpret_cast<uintptr_t>(function), ""};
  dl_iterate_phdr(visit, &search);
  return search.buildId;
}
} // namespace

const std::string &buildIdentity() {
  static const std::string identity = [] {
    std::string joined;
    for (const std::string &id :
         {buildIdOf(&buildIdentity), buildIdOf(&xxh3_128bits), buildIdOf(&mlir::registerMLIRContextCLOptions)}) {
      if (id.empty()) {
        return std::string();
      }
      joined += id;
    }
    const XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(joined));
    return utohexstr(hash.high64, /*LowerCase=*/true, 16) + utohexstr(hash.low64, true, 16);
  }();
  return identity;
}

} // namespace tessera::kernels
