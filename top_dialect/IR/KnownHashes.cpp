//===- KnownHashes.cpp - Cache of file hashes -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/KnownHashes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace tessera::top;

namespace {

constexpr size_t kMostFiles = 64; ///< a command reads only a few
constexpr size_t kHashCharacters = 32;

/// A table in memory shared by processes. Entries are written once and are immutable when complete.
struct Table {
  struct Entry {
    FileIdentity file;
    char hash[kHashCharacters];
    std::atomic<bool> isComplete;
  };
  std::atomic<size_t> count;
  Entry entries[kMostFiles];
};

Table *table = nullptr;

} // namespace

std::optional<FileIdentity> FileIdentity::of(llvm::StringRef path) {
  struct stat status;
  if (stat(path.str().c_str(), &status) != 0) {
    return std::nullopt;
  }
  // A rename does not change any of these.
  return FileIdentity{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec};
}

void tessera::top::shareKnownHashes() {
  void *memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  table = memory == MAP_FAILED ? nullptr : new (memory) Table();
}

std::optional<std::string> tessera::top::knownHash(const FileIdentity &file) {
  const size_t count = table ? std::min(table->count.load(), kMostFiles) : 0;
  for (size_t i = 0; i < count; ++i) {
    const Table::Entry &entry = table->entries[i];
    if (entry.isComplete.load() && entry.file == file) {
      return std::string(entry.hash, kHashCharacters);
    }
  }
  return std::nullopt;
}

void tessera::top::rememberHash(const FileIdentity &file, llvm::StringRef hash) {
  if (!table || hash.size() != kHashCharacters || knownHash(file)) {
    return;
  }
  const size_t index = table->count.fetch_add(1);
  if (index >= kMostFiles) {
    return;
  }
  Table::Entry &entry = table->entries[index];
  entry.file = file;
  std::memcpy(entry.hash, hash.data(), kHashCharacters);
  entry.isComplete.store(true);
}
