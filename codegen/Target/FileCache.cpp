//===- FileCache.cpp - Cache files shared by compilations -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/FileCache.h"

#include "top_dialect/IR/PendingFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace tessera::codegen {

namespace {
/// Header of a cache file; the contents follow.
struct EntryHeader {
  char magic[8];
  uint64_t hash; ///< entryHash
};
constexpr char kMagic[8] = {'T', 'S', 'K', 'E', 'R', 'N', '0', '3'};

/// Hashes key and contents: an entry copied to another key's name holds the wrong kernel and must not match.
uint64_t entryHash(StringRef key, StringRef contents) { return xxh3_64bits(contents) ^ xxh3_64bits(key); }
} // namespace

std::string FileCache::defaultFolder() {
  SmallString<128> folder;
  if (std::optional<std::string> xdg = sys::Process::GetEnv("XDG_CACHE_HOME"); xdg && sys::path::is_absolute(*xdg)) {
    folder = *xdg;
  } else if (std::optional<std::string> home = sys::Process::GetEnv("HOME"); home && sys::path::is_absolute(*home)) {
    folder = *home;
    sys::path::append(folder, ".cache");
  } else {
    return "";
  }
  sys::path::append(folder, "tessera", "kernels");
  return folder.str().str();
}

std::string FileCache::path(StringRef key) const {
  SmallString<128> result(folder);
  sys::path::append(result, key.take_front(2), key.drop_front(2));
  return result.str().str();
}

std::optional<std::string> FileCache::lookup(StringRef key) const {
  if (isOff()) {
    return std::nullopt;
  }
  std::string entry = path(key);
  // Other file types may block the read (a FIFO) or never end (/dev/zero).
  if (!sys::fs::is_regular_file(entry)) {
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getFile(entry, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return std::nullopt;
  }
  StringRef file = (*buffer)->getBuffer();
  EntryHeader header;
  if (file.size() < sizeof(header)) {
    return std::nullopt;
  }
  memcpy(&header, file.data(), sizeof(header));
  StringRef contents = file.drop_front(sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.hash != entryHash(key, contents)) {
    return std::nullopt;
  }
  return contents.str();
}

void FileCache::insert(StringRef key, StringRef contents) {
  if (isOff()) {
    return;
  }
  EntryHeader header = {};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.hash = entryHash(key, contents);
  std::string target = path(key);
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(target))) {
    noteFault(error.message());
    return;
  }
  Expected<top::PendingFile> pending = top::PendingFile::write(target, [&](raw_ostream &os) {
    os.write(reinterpret_cast<const char *>(&header), sizeof(header));
    os << contents;
  });
  if (Error error = pending ? top::PendingFile::keep(*pending) : pending.takeError()) {
    noteFault(toString(std::move(error)));
    return;
  }
  changed = true;
}

void FileCache::noteFault(const Twine &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (firstFault.empty()) {
    firstFault = ("compiled kernels are not cached: cannot write to the folder '" + folder + "': " + why +
                  "; --cache_dir names another folder, or none")
                     .str();
  }
}

void FileCache::prune(uint64_t maxBytes) {
  if (!changed) {
    return;
  }
  struct Entry {
    std::string path;
    sys::TimePoint<> used;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (sys::fs::recursive_directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    sys::fs::file_status status;
    if (sys::fs::status(it->path(), status) || status.type() != sys::fs::file_type::regular_file) {
      continue;
    }
    // A file that another process just created is recent and therefore not among the files removed.
    entries.push_back(
        {it->path(), std::max(status.getLastAccessedTime(), status.getLastModificationTime()), status.getSize()});
    total += status.getSize();
  }
  llvm::sort(entries,
             [](const Entry &a, const Entry &b) { return std::tie(a.used, a.path) < std::tie(b.used, b.path); });
  for (const Entry &entry : entries) {
    if (total <= maxBytes) {
      break;
    }
    if (!sys::fs::remove(entry.path)) {
      total -= entry.bytes;
    }
  }
}

} // namespace tessera::codegen
