// SPDX-License-Identifier: Apache-2.0
//===- ElfImage_test.cpp - Valid, foreign and damaged shared objects ------===//
#include "ElfImage.h"

#include "bmodel/kernel_abi.h"
#include "bmodel_format/test/TestModel.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

using namespace bmrt::native;

namespace {

using Bytes = std::vector<char>;

const Bytes &good() {
  static const Bytes bytes = bmodel::test::readBytes(BMRT_CTS_KERNELS);
  return bytes;
}

std::string loadError(const Bytes &bytes) {
  // An allocation of the exact size lets the sanitizer detect reads past the end.
  std::vector<unsigned char> exact(bytes.begin(), bytes.end());
  ElfImage image;
  bmrt_status_t status = {};
  const bmrt_code_t code = image.load(x86_64, exact.data(), exact.size(), &status);
  if (code == BMRT_OK) {
    // Look-ups traverse tables of the file as well.
    image.findFunction("add");
    image.findFunction("no_such_function");
    return "";
  }
  return status.message;
}

template <typename T>
T &at(Bytes &bytes, uint64_t offset) {
  return *reinterpret_cast<T *>(bytes.data() + offset);
}

Elf64_Phdr &program(Bytes &bytes, uint32_t type, uint32_t flags = 0) {
  Elf64_Ehdr &header = at<Elf64_Ehdr>(bytes, 0);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr &p = at<Elf64_Phdr>(bytes, header.e_phoff + uint64_t(i) * sizeof(Elf64_Phdr));
    if (p.p_type == type && (p.p_flags & flags) == flags) {
      return p;
    }
  }
  ADD_FAILURE() << "no program header of type " << type;
  return at<Elf64_Phdr>(bytes, header.e_phoff);
}

Elf64_Dyn &dynamic(Bytes &bytes, int64_t tag) {
  const Elf64_Phdr &p = program(bytes, PT_DYNAMIC);
  for (uint64_t i = 0; i < p.p_filesz / sizeof(Elf64_Dyn); ++i) {
    Elf64_Dyn &entry = at<Elf64_Dyn>(bytes, p.p_offset + i * sizeof(Elf64_Dyn));
    if (entry.d_tag == tag) {
      return entry;
    }
  }
  ADD_FAILURE() << "no dynamic tag " << tag;
  return at<Elf64_Dyn>(bytes, p.p_offset);
}

TEST(ElfImage, FindsFunctionsAndNothingElse) {
  ElfImage image;
  bmrt_status_t status = {};
  ASSERT_EQ(image.load(x86_64, reinterpret_cast<const unsigned char *>(good().data()), good().size(), &status), BMRT_OK)
      << status.message;
  for (const char *name : {"add", "relu", "increment", "double_or_negate"}) {
    EXPECT_NE(image.findFunction(name), nullptr) << name;
  }
  for (const char *name : {"", "ad", "addd", "memcpy", "table", "_DYNAMIC"}) {
    EXPECT_EQ(image.findFunction(name), nullptr) << name;
  }
}

TEST(ElfImage, RejectsOtherFiles) {
  EXPECT_NE(loadError(Bytes()), "");
  EXPECT_NE(loadError(Bytes(5000, 'x')), "");
  Bytes bytes = good();
  at<Elf64_Ehdr>(bytes, 0).e_machine = EM_AARCH64;
  EXPECT_NE(loadError(bytes).find("x86-64"), std::string::npos);
  bytes = good();
  at<Elf64_Ehdr>(bytes, 0).e_type = ET_EXEC;
  EXPECT_NE(loadError(bytes), "");
  bytes = good();
  at<Elf64_Ehdr>(bytes, 0).e_phoff = uint64_t(-64);
  EXPECT_NE(loadError(bytes).find("program headers"), std::string::npos);
}

TEST(ElfImage, RejectsSegmentsOutOfRange) {
  Bytes bytes = good();
  program(bytes, PT_LOAD).p_filesz = bytes.size() + 1;
  EXPECT_NE(loadError(bytes).find("out of range"), std::string::npos);
  bytes = good();
  program(bytes, PT_LOAD).p_offset = uint64_t(-8);
  EXPECT_NE(loadError(bytes).find("out of range"), std::string::npos);
  bytes = good();
  program(bytes, PT_LOAD).p_memsz = uint64_t(1) << 40;
  EXPECT_NE(loadError(bytes).find("out of range"), std::string::npos);
  bytes = good();
  program(bytes, PT_LOAD, PF_X).p_vaddr = 0;
  EXPECT_NE(loadError(bytes).find("overlaps"), std::string::npos);
}

TEST(ElfImage, RejectsWritableCode) {
  Bytes bytes = good();
  program(bytes, PT_LOAD, PF_X).p_flags |= PF_W;
  EXPECT_NE(loadError(bytes).find("writable and executable"), std::string::npos);
}

TEST(ElfImage, RejectsLibrariesAndInitialisers) {
  for (int64_t tag : {DT_NEEDED, DT_INIT, DT_INIT_ARRAY, DT_TEXTREL, DT_REL}) {
    Bytes bytes = good();
    dynamic(bytes, DT_STRSZ).d_tag = tag;
    EXPECT_NE(loadError(bytes).find("is not allowed"), std::string::npos) << tag;
  }
}

TEST(ElfImage, RejectsOtherImports) {
  Bytes bytes = good();
  const Bytes from = {'m', 'e', 'm', 'c', 'p', 'y', 0};
  const auto name = std::search(bytes.begin(), bytes.end(), from.begin(), from.end());
  ASSERT_NE(name, bytes.end());
  std::copy_n("system", 6, name);
  EXPECT_NE(loadError(bytes).find("imports 'system'"), std::string::npos) << loadError(bytes);
}

TEST(ElfImage, RejectsRelocationsOutsideOfData) {
  for (uint64_t address : {uint64_t(0), uint64_t(-8), uint64_t(1) << 29}) {
    Bytes bytes = good();
    const uint64_t table = dynamic(bytes, DT_RELA).d_un.d_ptr;
    // File offsets equal addresses in the first segment.
    at<Elf64_Rela>(bytes, table).r_offset = address;
    EXPECT_NE(loadError(bytes).find("not in writable data"), std::string::npos) << address;
  }
  Bytes bytes = good();
  dynamic(bytes, DT_RELASZ).d_un.d_val = uint64_t(1) << 50;
  EXPECT_NE(loadError(bytes).find("exceed the image"), std::string::npos);
}

/// Returns good() as if its relocations were those of another machine: |relative| and |jumpSlot| replace the types.
Bytes disguise(const ElfMachine &machine, uint32_t relative, uint32_t jumpSlot) {
  Bytes bytes = good();
  at<Elf64_Ehdr>(bytes, 0).e_machine = machine.number;
  auto rewrite = [&](int64_t table, int64_t size, uint32_t type) {
    const uint64_t first = dynamic(bytes, table).d_un.d_ptr, end = first + dynamic(bytes, size).d_un.d_val;
    for (uint64_t entry = first; entry < end; entry += sizeof(Elf64_Rela)) {
      Elf64_Rela &rela = at<Elf64_Rela>(bytes, entry);
      rela.r_info = ELF64_R_INFO(ELF64_R_SYM(rela.r_info), type);
    }
  };
  rewrite(DT_RELA, DT_RELASZ, relative);
  rewrite(DT_JMPREL, DT_PLTRELSZ, jumpSlot);
  return bytes;
}

/// Loads |bytes| and runs a kernel that calls an imported function and one that calls through relocated addresses.
void checkRelocated(const ElfMachine &machine, const Bytes &bytes) {
  ElfImage image;
  bmrt_status_t status = {};
  ASSERT_EQ(image.load(machine, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), &status), BMRT_OK)
      << machine.name << ": " << status.message;
  float x[16], y[16] = {}, scratch[16];
  std::fill(std::begin(x), std::end(x), 3.0f);
  void *const arguments[] = {x, y};
  auto call = [&](const char *name) {
    reinterpret_cast<bm_kernel_fn>(image.findFunction(name))(arguments, 0, 1, scratch);
  };
  call("copy_by_scratch");
  EXPECT_EQ(y[15], 3) << machine.name;
  call("double_or_negate");
  EXPECT_EQ(y[14], 6) << machine.name;
  EXPECT_EQ(y[15], -3) << machine.name;
}

// The code is that of this machine, so that it can be called; only the relocations belong to the other machines.
TEST(ElfImage, AppliesTheRelocationsOfEveryMachine) {
  checkRelocated(x86_64, good());
  checkRelocated(riscv64, disguise(riscv64, R_RISCV_RELATIVE, R_RISCV_JUMP_SLOT));
  ElfMachine smallPages = aarch64; // the file has the pages of this machine
  smallPages.pageBytes = 4096;
  checkRelocated(smallPages, disguise(aarch64, R_AARCH64_RELATIVE, R_AARCH64_JUMP_SLOT));
}

TEST(ElfImage, RejectsSegmentsOnOnePage) {
  Bytes bytes = good();
  at<Elf64_Ehdr>(bytes, 0).e_machine = EM_AARCH64;
  ElfImage image;
  bmrt_status_t status = {};
  EXPECT_NE(image.load(aarch64, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), &status), BMRT_OK);
  EXPECT_NE(std::string(status.message).find("overlaps"), std::string::npos) << status.message;
}

TEST(ElfImage, DamageNeverCrashes) {
  // Damages every byte of the tables (in the first and last pages) and random bytes everywhere.
  std::minstd_rand random(1);
  Bytes bytes = good();
  for (int round = 0; round < 20000; ++round) {
    const size_t where = round % 2 ? random() % bytes.size() : random() % 2048;
    const char kept = bytes[where];
    bytes[where] = char(random());
    loadError(bytes);
    bytes[where] = kept;
  }
  for (size_t size = 0; size < bytes.size(); size += 101) {
    loadError(Bytes(bytes.begin(), bytes.begin() + ptrdiff_t(size)));
  }
}

} // namespace
