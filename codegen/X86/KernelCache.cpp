//===- KernelCache.cpp - Compiled kernels kept between runs ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCache.h"

#include "top_dialect/IR/PendingFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace tessera::x86 {

namespace {
/// Start of a cache file; then the symbol, then the object.
struct EntryHeader {
  char magic[8];
  uint64_t hash; ///< XXH3-64 of everything behind this field
  int64_t tiles;
  int64_t scratchBytes;
  uint64_t symbolBytes;
  uint64_t objectBytes;
};
constexpr char kMagic[8] = {'T', 'S', 'K', 'E', 'R', 'N', '0', '1'};

uint64_t contentHash(StringRef file) { return xxh3_64bits(file.drop_front(offsetof(EntryHeader, tiles))); }
} // namespace

std::string KernelCache::defaultFolder() {
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

std::string KernelCache::path(StringRef key) const {
  SmallString<128> result(folder);
  sys::path::append(result, key.take_front(2), key.drop_front(2) + "-" + build);
  return result.str().str();
}

std::optional<Kernel> KernelCache::lookup(StringRef key) {
  if (folder.empty()) {
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getFile(path(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return std::nullopt;
  }
  StringRef file = (*buffer)->getBuffer();
  EntryHeader header;
  if (file.size() < sizeof(header)) {
    return std::nullopt;
  }
  memcpy(&header, file.data(), sizeof(header));
  uint64_t payload = file.size() - sizeof(header);
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.hash != contentHash(file) ||
      header.symbolBytes > payload || header.objectBytes != payload - header.symbolBytes) {
    return std::nullopt;
  }
  StringRef symbol = file.substr(sizeof(header), header.symbolBytes);
  StringRef object = file.drop_front(sizeof(header) + header.symbolBytes);
  return Kernel{{symbol.str(), header.tiles, header.scratchBytes}, {object.begin(), object.end()}};
}

void KernelCache::insert(StringRef key, const Kernel &kernel) {
  if (folder.empty()) {
    return;
  }
  EntryHeader header = {};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.tiles = kernel.frame.tiles;
  header.scratchBytes = kernel.frame.scratchBytes;
  header.symbolBytes = kernel.frame.symbol.size();
  header.objectBytes = kernel.object.size();
  std::string file(reinterpret_cast<const char *>(&header), sizeof(header));
  file += kernel.frame.symbol;
  file.append(kernel.object.begin(), kernel.object.end());
  header.hash = contentHash(file);
  memcpy(file.data(), &header, sizeof(header));

  std::string target = path(key);
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(target))) {
    noteFault(error.message());
    return;
  }
  Expected<top::PendingFile> pending = top::PendingFile::write(target, [&](raw_ostream &os) { os << file; });
  if (Error error = pending ? top::PendingFile::keep(*pending) : pending.takeError()) {
    noteFault(toString(std::move(error)));
    return;
  }
  changed = true;
}

void KernelCache::noteFault(const Twine &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (firstFault.empty()) {
    firstFault = ("cannot write to the folder '" + folder + "': " + why).str();
  }
}

void KernelCache::prune(uint64_t maxBytes) {
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
    // A file just created by another process is young, so it is not among those removed.
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

} // namespace tessera::x86
