// SPDX-License-Identifier: Apache-2.0
//===- ElfImage.cpp - Loader of shared objects for kernels ----------------===//
#include "ElfImage.h"

#include "../core/KernelContract.h"

#include <cinttypes>
#include <cstring>
#include <sys/mman.h>

using namespace bmrt;
using namespace bmrt::native;

namespace {

constexpr uint64_t kMaxSpan = uint64_t(1) << 30;

struct Import {
  const char *name;
  void *address;
};

/// The only functions that a kernel may import (kernel_abi.h).
const Import kImports[] = {{"memcpy", reinterpret_cast<void *>(&memcpy)},
                           {"memset", reinterpret_cast<void *>(&memset)},
                           {"memmove", reinterpret_cast<void *>(&memmove)}};

uint64_t pageDown(uint64_t address, uint64_t page) { return address & ~(page - 1); }
uint64_t pageUp(uint64_t address, uint64_t page) { return (address + page - 1) & ~(page - 1); }

bool inRange(uint64_t offset, uint64_t bytes, uint64_t limit) { return offset <= limit && bytes <= limit - offset; }

/// Computes the hash of DT_GNU_HASH.
uint32_t gnuHashOf(const char *name) {
  uint32_t hash = 5381;
  for (; *name; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

bmrt_code_t checkHeader(const ElfMachine &machine, const Elf64_Ehdr &header, uint64_t bytes, bmrt_status_t *status) {
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != machine.number || header.e_type != ET_DYN) {
    return BMRT_FAIL(status, CORRUPT, "code is not an ELF shared object for %s", machine.name);
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !inRange(header.e_phoff, uint64_t(header.e_phnum) * sizeof(Elf64_Phdr), bytes)) {
    return BMRT_FAIL(status, CORRUPT, "code: %u program headers at %" PRIu64 " exceed its %" PRIu64 " bytes",
                     unsigned(header.e_phnum), uint64_t(header.e_phoff), bytes);
  }
  return BMRT_OK;
}

} // namespace

ElfImage::~ElfImage() {
  if (base) {
    munmap(base, span);
  }
}

bmrt_code_t ElfImage::load(const ElfMachine &machine, const unsigned char *data, uint64_t bytes,
                           bmrt_status_t *status) {
  pageBytes = machine.pageBytes;
  BMRT_RETURN_IF_ERROR(mapSegments(machine, data, bytes, status));
  BMRT_RETURN_IF_ERROR(readDynamic(status));
  BMRT_RETURN_IF_ERROR(relocate(machine, dynamic.rela, dynamic.relaBytes, status));
  BMRT_RETURN_IF_ERROR(relocate(machine, dynamic.jmprel, dynamic.jmprelBytes, status));
  return protect(status);
}

bmrt_code_t ElfImage::mapSegments(const ElfMachine &machine, const unsigned char *data, uint64_t bytes,
                                  bmrt_status_t *status) {
  Elf64_Ehdr header;
  if (bytes < sizeof(header)) {
    return BMRT_FAIL(status, CORRUPT, "code of %" PRIu64 " bytes is too short for ELF", bytes);
  }
  memcpy(&header, data, sizeof(header));
  BMRT_RETURN_IF_ERROR(checkHeader(machine, header, bytes, status));
  uint64_t end = 0;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    memcpy(&program, data + header.e_phoff + i * sizeof(program), sizeof(program));
    if (program.p_type == PT_TLS || program.p_type == PT_INTERP) {
      return BMRT_FAIL(status, CORRUPT, "code has thread-local storage or an interpreter");
    }
    if (program.p_type == PT_DYNAMIC) {
      dynamicHeader = program;
    }
    if (program.p_type == PT_NOTE) {
      if (noteCount == kMaxNotes) {
        return BMRT_FAIL(status, CORRUPT, "code has more than %" PRIu32 " segments of notes", kMaxNotes);
      }
      notes[noteCount++] = program;
    }
    if (program.p_type != PT_LOAD) {
      continue;
    }
    const bool fits = inRange(program.p_offset, program.p_filesz, bytes) && program.p_filesz <= program.p_memsz &&
                      inRange(program.p_vaddr, program.p_memsz, kMaxSpan);
    // Segments are ascending and do not share pages, so that each page has one protection.
    if (!fits || segmentCount == kMaxSegments || pageDown(program.p_vaddr, pageBytes) < end) {
      return BMRT_FAIL(status, CORRUPT,
                       "code: segment %" PRIu32 " of %" PRIu64 " bytes at %" PRIx64 " is out of range or overlaps", i,
                       uint64_t(program.p_memsz), uint64_t(program.p_vaddr));
    }
    if ((program.p_flags & PF_W) && (program.p_flags & PF_X)) {
      return BMRT_FAIL(status, CORRUPT, "code: segment %" PRIu32 " is writable and executable", i);
    }
    segments[segmentCount++] = program;
    end = pageUp(program.p_vaddr + program.p_memsz, pageBytes);
  }
  if (end == 0) {
    return BMRT_FAIL(status, CORRUPT, "code has no segment to load");
  }
  void *mapped = mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu64 " bytes of code", end);
  }
  base = static_cast<unsigned char *>(mapped);
  span = end;
  for (uint32_t i = 0; i < segmentCount; ++i) {
    memcpy(base + segments[i].p_vaddr, data + segments[i].p_offset, segments[i].p_filesz);
  }
  return BMRT_OK;
}

bmrt_code_t ElfImage::readDynamic(bmrt_status_t *status) {
  for (uint64_t i = 0; i < dynamicHeader.p_memsz / sizeof(Elf64_Dyn); ++i) {
    Elf64_Dyn entry;
    if (!read(dynamicHeader.p_vaddr + i * sizeof(entry), entry)) {
      return BMRT_FAIL(status, CORRUPT, "code: dynamic section exceeds the image");
    }
    switch (entry.d_tag) {
    case DT_NULL:
      i = dynamicHeader.p_memsz;
      break;
    case DT_SYMTAB:
      dynamic.symtab = entry.d_un.d_ptr;
      break;
    case DT_STRTAB:
      dynamic.strtab = entry.d_un.d_ptr;
      break;
    case DT_STRSZ:
      dynamic.strsz = entry.d_un.d_val;
      break;
    case DT_GNU_HASH:
      dynamic.gnuHash = entry.d_un.d_ptr;
      break;
    case DT_RELA:
      dynamic.rela = entry.d_un.d_ptr;
      break;
    case DT_RELASZ:
      dynamic.relaBytes = entry.d_un.d_val;
      break;
    case DT_JMPREL:
      dynamic.jmprel = entry.d_un.d_ptr;
      break;
    case DT_PLTRELSZ:
      dynamic.jmprelBytes = entry.d_un.d_val;
      break;
    case DT_NEEDED:
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
    case DT_TEXTREL:
    case DT_REL:
    case 36: // DT_RELR, which glibc 2.36's <elf.h> may not name
      return BMRT_FAIL(status, CORRUPT,
                       "code: dynamic tag %" PRId64 " (libraries, initialisers or other "
                       "relocations) is not allowed in a model",
                       int64_t(entry.d_tag));
    default:
      break; // flags, debug information, sizes of entries that are fixed for 64-bit ELF
    }
  }
  if (!dynamic.symtab || !dynamic.strtab || !dynamic.gnuHash || !inRange(dynamic.strtab, dynamic.strsz, span)) {
    return BMRT_FAIL(status, CORRUPT, "code has no symbols (.dynsym, .dynstr and .gnu.hash)");
  }
  return BMRT_OK;
}

bmrt_code_t ElfImage::relocate(const ElfMachine &machine, uint64_t table, uint64_t tableBytes, bmrt_status_t *status) {
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= tableBytes; at += sizeof(Elf64_Rela)) {
    Elf64_Rela entry;
    if (!inRange(table, tableBytes, span) || !read(table + at, entry)) {
      return BMRT_FAIL(status, CORRUPT, "code: relocations exceed the image");
    }
    if (machine.relocationOf(ELF64_R_TYPE(entry.r_info)) == Relocation::none) {
      continue;
    }
    const Elf64_Phdr *target = segmentOf(entry.r_offset, sizeof(uint64_t));
    if (!target || !(target->p_flags & PF_W)) {
      return BMRT_FAIL(status, CORRUPT, "code: relocation at %" PRIx64 " is not in writable data",
                       uint64_t(entry.r_offset));
    }
    uint64_t value = 0;
    BMRT_RETURN_IF_ERROR(valueOf(machine, entry, value, status));
    memcpy(base + entry.r_offset, &value, sizeof(value));
  }
  return BMRT_OK;
}

bmrt_code_t ElfImage::valueOf(const ElfMachine &machine, const Elf64_Rela &entry, uint64_t &value,
                              bmrt_status_t *status) const {
  switch (machine.relocationOf(ELF64_R_TYPE(entry.r_info))) {
  case Relocation::none:
    return BMRT_OK;
  case Relocation::basePlusAddend:
    value = reinterpret_cast<uint64_t>(base) + uint64_t(entry.r_addend);
    return BMRT_OK;
  case Relocation::symbol:
    return resolve(uint32_t(ELF64_R_SYM(entry.r_info)), value, status);
  case Relocation::symbolPlusAddend:
    BMRT_RETURN_IF_ERROR(resolve(uint32_t(ELF64_R_SYM(entry.r_info)), value, status));
    value += uint64_t(entry.r_addend);
    return BMRT_OK;
  case Relocation::unsupported:
    break;
  }
  return BMRT_FAIL(status, CORRUPT, "code: relocation type %" PRIu32 " is not supported",
                   uint32_t(ELF64_R_TYPE(entry.r_info)));
}

bmrt_code_t ElfImage::resolve(uint32_t index, uint64_t &value, bmrt_status_t *status) const {
  Elf64_Sym symbol;
  if (!read(dynamic.symtab + uint64_t(index) * sizeof(symbol), symbol)) {
    return BMRT_FAIL(status, CORRUPT, "code: symbol %" PRIu32 " exceeds the image", index);
  }
  if (symbol.st_shndx != SHN_UNDEF) {
    if (symbol.st_value >= span) {
      return BMRT_FAIL(status, CORRUPT, "code: symbol %" PRIu32 " exceeds the image", index);
    }
    value = reinterpret_cast<uint64_t>(base) + symbol.st_value;
    return BMRT_OK;
  }
  const char *name = string(symbol.st_name);
  for (const Import &import : kImports) {
    if (name && strcmp(name, import.name) == 0) {
      value = reinterpret_cast<uint64_t>(import.address);
      return BMRT_OK;
    }
  }
  return BMRT_FAIL(status, CORRUPT, "code imports '%.80s'; a model may use memcpy, memset and memmove only",
                   name ? name : "?");
}

bmrt_code_t ElfImage::protect(bmrt_status_t *status) {
  for (uint32_t i = 0; i < segmentCount; ++i) {
    const Elf64_Phdr &segment = segments[i];
    const uint64_t begin = pageDown(segment.p_vaddr, pageBytes);
    const uint64_t end = pageUp(segment.p_vaddr + segment.p_memsz, pageBytes);
    // Always readable, because findFunction reads the tables later.
    const int protection =
        PROT_READ | (segment.p_flags & PF_W ? PROT_WRITE : 0) | (segment.p_flags & PF_X ? PROT_EXEC : 0);
    if (mprotect(base + begin, end - begin, protection) != 0) {
      return BMRT_FAIL(status, IO, "the operating system does not allow executable memory");
    }
    // Some machines fetch instructions through a cache that stores do not update.
    __builtin___clear_cache(reinterpret_cast<char *>(base + begin), reinterpret_cast<char *>(base + end));
  }
  return BMRT_OK;
}

void *ElfImage::findFunction(const char *name) const {
  struct {
    uint32_t buckets, firstSymbol, bloomWords, bloomShift;
  } table;
  if (!read(dynamic.gnuHash, table) || table.buckets == 0) {
    return nullptr;
  }
  const uint32_t hash = gnuHashOf(name);
  const uint64_t buckets = dynamic.gnuHash + sizeof(table) + uint64_t(table.bloomWords) * sizeof(uint64_t);
  const uint64_t chains = buckets + uint64_t(table.buckets) * sizeof(uint32_t);
  uint32_t index = 0;
  if (!read(buckets + uint64_t(hash % table.buckets) * sizeof(uint32_t), index) || index < table.firstSymbol) {
    return nullptr;
  }
  for (;; ++index) {
    uint32_t entry;
    Elf64_Sym symbol;
    if (!read(chains + uint64_t(index - table.firstSymbol) * sizeof(uint32_t), entry) ||
        !read(dynamic.symtab + uint64_t(index) * sizeof(symbol), symbol)) {
      return nullptr;
    }
    const char *candidate = (entry | 1) == (hash | 1) ? string(symbol.st_name) : nullptr;
    if (candidate && strcmp(candidate, name) == 0) {
      const Elf64_Phdr *segment = segmentOf(symbol.st_value, 1);
      const bool callable = symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && segment &&
                            (segment->p_flags & PF_X);
      return callable ? base + symbol.st_value : nullptr;
    }
    if (entry & 1) {
      return nullptr;
    }
  }
}

template <typename Visit>
bmrt_code_t ElfImage::forNotes(Visit visit, bmrt_status_t *status) const {
  auto padded = [](uint64_t bytes) { return (bytes + 3) & ~uint64_t(3); };
  for (uint32_t i = 0; i < noteCount; ++i) {
    const uint64_t end = notes[i].p_vaddr + notes[i].p_memsz;
    if (notes[i].p_memsz > 0 && !segmentOf(notes[i].p_vaddr, notes[i].p_memsz)) {
      return BMRT_FAIL(status, CORRUPT, "code: notes exceed the image");
    }
    for (uint64_t at = notes[i].p_vaddr; at < end;) {
      Elf64_Nhdr header;
      if (end - at < sizeof(header)) {
        return BMRT_FAIL(status, CORRUPT, "code: a note exceeds its segment");
      }
      memcpy(&header, base + at, sizeof(header));
      const uint64_t owner = at + sizeof(header), contents = owner + padded(header.n_namesz);
      if (contents > end || padded(header.n_descsz) > end - contents) {
        return BMRT_FAIL(status, CORRUPT, "code: a note exceeds its segment");
      }
      if (header.n_type == BM_CONTRACT_NOTE && header.n_namesz == sizeof(BM_CONTRACT_OWNER) &&
          memcmp(base + owner, BM_CONTRACT_OWNER, sizeof(BM_CONTRACT_OWNER)) == 0) {
        BMRT_RETURN_IF_ERROR(visit(base + contents, header.n_descsz));
      }
      at = contents + padded(header.n_descsz);
    }
  }
  return BMRT_OK;
}

bmrt_code_t ElfImage::findContract(const char *symbol, const void *&out, bmrt_status_t *status) const {
  uint32_t known = 0, found = 0;
  out = nullptr;
  auto visit = [&](const unsigned char *contents, uint64_t bytes) -> bmrt_code_t {
    ++known;
    uint32_t version = 0;
    if (bytes >= sizeof(version)) {
      memcpy(&version, contents, sizeof(version));
    }
    if (version > BM_CONTRACT_VERSION_DIMS) {
      return BMRT_FAIL(status, UNSUPPORTED, "code has contracts of version %" PRIu32 ", this runtime reads version %d",
                       version, BM_CONTRACT_VERSION_DIMS);
    }
    core::KernelContract contract;
    if (!contract.read(contents, bytes)) {
      return BMRT_FAIL(status, CORRUPT, "code: a contract is malformed");
    }
    if (strcmp(contract.symbol, symbol) == 0) {
      ++found;
      out = contents;
    }
    return BMRT_OK;
  };
  BMRT_RETURN_IF_ERROR(forNotes(visit, status));
  if (known > 0 && found != 1) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' has %" PRIu32 " contracts in its code, must have one", symbol,
                     found);
  }
  return BMRT_OK;
}

template <typename T>
bool ElfImage::read(uint64_t address, T &out) const {
  // Read only inside loaded segments; pages between them may be inaccessible.
  if (!segmentOf(address, sizeof(T))) {
    return false;
  }
  memcpy(&out, base + address, sizeof(T));
  return true;
}

const char *ElfImage::string(uint64_t offset) const {
  if (offset >= dynamic.strsz || !segmentOf(dynamic.strtab, dynamic.strsz)) {
    return nullptr;
  }
  const char *text = reinterpret_cast<const char *>(base + dynamic.strtab + offset);
  return memchr(text, 0, dynamic.strsz - offset) ? text : nullptr;
}

const Elf64_Phdr *ElfImage::segmentOf(uint64_t address, uint64_t bytes) const {
  for (uint32_t i = 0; i < segmentCount; ++i) {
    const Elf64_Phdr &segment = segments[i];
    if (address >= segment.p_vaddr && inRange(address - segment.p_vaddr, bytes, segment.p_memsz)) {
      return &segment;
    }
  }
  return nullptr;
}
