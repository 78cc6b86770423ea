//===- WeightStore.cpp - The weights of a module ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/WeightStore.h"

#include "top_dialect/IR/KnownHashes.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Safetensors.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Unsupported.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <semaphore>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir;
using namespace tessera::top;

namespace {
constexpr size_t kDataAlignment = 64;
/// Large files are hashed in pieces of this size; at most so many pieces are read ahead.
constexpr size_t kPieceBytes = 16u << 20, kPiecesAhead = 4;
/// After so many bytes of dropped tensors, the allocator returns free memory to the system.
constexpr uint64_t kTrimBytes = 16u << 20;

template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

std::string hexHash(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return llvm::toHex(ArrayRef<uint8_t>(canonical.digest, sizeof(canonical.digest)), /*LowerCase=*/true);
}
} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> mapFile(StringRef path) {
  auto buffer = readRegularFile(path);
  if (!buffer) {
    return fail("cannot read weight file '{0}': {1}", path, llvm::toString(buffer.takeError()));
  }
  return std::move(*buffer);
}

/// Computes XXH3-128 of large mapped bytes. While one piece is hashed, a second thread makes the system read the pieces
/// after it. Hashed pieces are returned to the system.
static XXH128_hash_t hashMapped(StringRef content) {
  auto piece = [&](size_t index) { return content.substr(index * kPieceBytes, kPieceBytes); };
  const size_t pieces = llvm::divideCeil(content.size(), kPieceBytes);
  std::counting_semaphore<> ahead(kPiecesAhead);
  std::thread reader([&] {
    for (size_t i = 0; i < pieces; ++i) {
      ahead.acquire();
      // This is only advice: if the system does not support it, pages are read when they are hashed.
      madvise(const_cast<char *>(piece(i).data()), piece(i).size(), MADV_POPULATE_READ);
    }
  });
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (size_t i = 0; i < pieces; ++i) {
    XXH3_128bits_update(state.get(), piece(i).data(), piece(i).size());
    releasePages(llvm::arrayRefFromStringRef<char>(piece(i)));
    ahead.release();
  }
  reader.join();
  releasePages(llvm::arrayRefFromStringRef<char>(content)); // pieces that were hashed before the reader populated them
  return XXH3_128bits_digest(state.get());
}

/// Returns XXH3-128 of a file as 32 hex digits.
static std::string hashOf(const llvm::MemoryBuffer &file) {
  StringRef content = file.getBuffer();
  bool isLarge = isMapped(file) && content.size() > 2 * kPieceBytes;
  return hexHash(isLarge ? hashMapped(content) : XXH3_128bits(content.data(), content.size()));
}

/// Returns the hash of a mapped file. |identity| must have been taken before the file was mapped.
static std::string verifiedHash(StringRef path, const std::optional<FileIdentity> &identity,
                                const llvm::MemoryBuffer &file) {
  if (std::optional<std::string> known = identity ? knownHash(*identity) : std::nullopt) {
    return *known;
  }
  std::string hash = hashOf(file);
  if (identity && identity == FileIdentity::of(path)) {
    rememberHash(*identity, hash);
  }
  return hash;
}

llvm::Error WeightStore::open(StringRef path, StringRef expectedHash) {
  const std::optional<FileIdentity> identity = FileIdentity::of(path);
  auto buffer = mapFile(path);
  if (!buffer) {
    return buffer.takeError();
  }
  std::shared_ptr<llvm::MemoryBuffer> file(std::move(*buffer));
  StringRef content = file->getBuffer();
  if (!expectedHash.empty()) {
    std::string actual = verifiedHash(path, identity, *file);
    if (actual != expectedHash) {
      return fail("weight file '{0}' has hash {1}, but the module was written with {2}: the file was changed or "
                  "belongs to another module; run model_transform again",
                  path, actual, expectedHash);
    }
  }
  auto tensors = parseSafetensors(context, content);
  if (!tensors) {
    return prefixed(tensors.takeError(), "weight file '" + path + "': ");
  }
  for (const SafetensorsTensor &tensor : *tensors) {
    std::lock_guard<std::mutex> lock(mutex);
    // Not hashed: tensors of a file were deduplicated when it was written.
    Entry entry{tensor.elementType, tensor.shape, tensor.bytes, file, 0, isMapped(*file)};
    if (!entries.try_emplace(tensor.name, std::move(entry)).second) {
      return fail("weight file '{0}': tensor '{1}' is already loaded", path, tensor.name);
    }
  }
  return llvm::Error::success();
}

std::optional<WeightStore::TensorView> WeightStore::lookup(StringRef key) const {
  std::unique_lock<std::mutex> lock(mutex);
  auto it = entries.find(key);
  if (it == entries.end()) {
    return std::nullopt;
  }
  Entry &entry = it->second;
  if (!entry.owner && entry.make) {
    Maker make = entry.make;
    lock.unlock(); // other threads may make other tensors meanwhile
    auto made = std::make_shared<const std::vector<char>>(make());
    lock.lock();
    if (!entry.owner) {
      entry.bytes = *made, entry.owner = std::move(made);
    }
  }
  return entry.owner ? std::optional(entry.view()) : std::nullopt;
}

std::optional<int64_t> WeightStore::sizeOf(StringRef key) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = entries.find(key);
  if (it == entries.end() || !(it->second.owner || it->second.make)) {
    return std::nullopt;
  }
  const Entry &entry = it->second;
  return entry.owner ? int64_t(entry.bytes.size()) : byteSize(RankedTensorType::get(entry.shape, entry.elementType));
}

bool WeightStore::isUncomputed(StringRef key) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = entries.find(key);
  return it != entries.end() && !it->second.owner && it->second.make;
}

//===----------------------------------------------------------------------===//
// Adding
//===----------------------------------------------------------------------===//

std::string WeightStore::add(StringRef keyHint, Type elementType, ArrayRef<int64_t> shape, std::vector<char> bytes) {
  auto owner = std::make_shared<const std::vector<char>>(std::move(bytes));
  ArrayRef<char> view(owner->data(), owner->size());
  return add(keyHint, elementType, shape, view, std::move(owner));
}

std::string WeightStore::add(StringRef keyHint, Type elementType, ArrayRef<int64_t> shape, ArrayRef<char> bytes,
                             std::shared_ptr<const void> owner, bool isMapped) {
  uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::lock_guard<std::mutex> lock(mutex);
  auto [first, last] = byHash.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    Entry &entry = entries.find(it->second)->second;
    if (entry.elementType != elementType || ArrayRef<int64_t>(entry.shape) != shape ||
        (entry.owner ? entry.bytes != bytes : entry.digest != digestOf(bytes))) {
      continue;
    }
    if (!entry.owner) {
      entry.bytes = bytes, entry.owner = std::move(owner), entry.isMapped = isMapped;
    }
    return it->second;
  }
  std::string key = unusedKey(keyHint);
  entries.try_emplace(key, Entry{elementType, SmallVector<int64_t, 4>(shape), bytes, std::move(owner), hash, isMapped});
  byHash.emplace(hash, key);
  return key;
}

std::string WeightStore::addLazily(StringRef keyHint, RankedTensorType type, Maker make) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string key = unusedKey(keyHint);
  Entry &entry = entries[key];
  entry.elementType = type.getElementType(), llvm::append_range(entry.shape, Shape(type).values());
  entry.make = std::move(make);
  return key;
}

std::string WeightStore::unusedKey(StringRef keyHint) {
  // JSON keys must be UTF-8, ONNX names may be anything.
  std::string base = keyHint.empty() ? "constant" : llvm::json::fixUTF8(keyHint);
  std::string key = base;
  while (entries.contains(key) || key == "__metadata__") {
    key = base + "_" + std::to_string(++nextSuffix[base]);
  }
  return key;
}

//===----------------------------------------------------------------------===//
// Giving memory back
//===----------------------------------------------------------------------===//

void WeightStore::release(StringRef key) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = entries.find(key);
  if (it != entries.end() && it->second.isMapped) {
    releasePages(it->second.bytes);
  }
}

WeightStore::Digest WeightStore::digestOf(ArrayRef<char> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

/// Returns free memory between allocations to the system. Without it, the allocator keeps most of what dropped tensors
/// took, because packing replaces weights one by one with others of other sizes.
static void trimHeap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void WeightStore::retain(const llvm::StringSet<> &keys) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &item : entries) {
    Entry &entry = item.second;
    if (keys.contains(item.first())) {
      continue;
    }
    entry.make = nullptr;
    if (entry.isMapped) {
      releasePages(entry.bytes);
    } else if (entry.owner) {
      entry.digest = digestOf(entry.bytes);
      droppedBytes += entry.bytes.size();
      entry.bytes = {}, entry.owner.reset();
    }
  }
  if (droppedBytes >= kTrimBytes) {
    droppedBytes = 0;
    trimHeap();
  }
}

uint64_t WeightStore::bytesInMemory() const {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::SmallPtrSet<const char *, 16> seen; // tensors of different shapes may share their bytes
  uint64_t bytes = 0;
  for (const auto &item : entries) {
    const Entry &entry = item.second;
    bytes += !entry.isMapped && seen.insert(entry.bytes.data()).second ? entry.bytes.size() : 0;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string makeHeader(ArrayRef<std::pair<StringRef, WeightStore::TensorView>> tensors) {
  std::string header = "{";
  uint64_t offset = 0;
  for (const auto &[key, view] : tensors) {
    const uint64_t end = offset + uint64_t(byteSize(RankedTensorType::get(view.shape, view.elementType)));
    header += (header.size() > 1 ? "," : "") +
              safetensorsEntry(key, safetensorsName(view.elementType), view.shape, offset, end);
    offset = end;
  }
  header += "}";
  header.append(llvm::offsetToAlignment(header.size() + sizeof(uint64_t), llvm::Align(kDataAlignment)), ' ');
  return header;
}

llvm::Expected<SavedWeights> WeightStore::save(StringRef path, ArrayRef<StringRef> keys) const {
  SmallVector<std::pair<StringRef, TensorView>> tensors; // lazy ones have no bytes yet
  llvm::StringMap<Maker> makers;
  for (StringRef key : keys) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = entries.find(key);
    if (it == entries.end() || !(it->second.owner || it->second.make)) {
      return fail("the weight store has no tensor '{0}'", key);
    }
    const Entry &entry = it->second;
    if (safetensorsName(entry.elementType).empty()) {
      return fail("weight '{0}' has element type {1}, which a weight file cannot contain", key, entry.elementType);
    }
    tensors.emplace_back(key, entry.view());
    if (!entry.owner) {
      makers[key] = entry.make;
    }
  }
  llvm::sort(tensors, [](const auto &a, const auto &b) {
    return std::make_pair(safetensorsRank(a.second.elementType), a.first) <
           std::make_pair(safetensorsRank(b.second.elementType), b.first);
  });
  tensors.erase(llvm::unique(tensors, [](const auto &a, const auto &b) { return a.first == b.first; }), tensors.end());

  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  auto file = PendingFile::write(path, [&](llvm::raw_ostream &os) {
    auto write = [&](const void *data, size_t size) {
      XXH3_128bits_update(state.get(), data, size);
      os.write(static_cast<const char *>(data), size);
    };
    std::string header = makeHeader(tensors);
    uint64_t headerBytes = header.size();
    write(&headerBytes, sizeof(headerBytes));
    write(header.data(), header.size());
    for (const auto &[key, view] : tensors) {
      auto maker = makers.find(key);
      const std::vector<char> made = maker == makers.end() ? std::vector<char>() : maker->second();
      ArrayRef<char> bytes = maker == makers.end() ? view.bytes : ArrayRef<char>(made);
      write(bytes.data(), bytes.size());
      release(key);
    }
  });
  if (!file) {
    return file.takeError();
  }
  return SavedWeights{std::move(*file), hexHash(XXH3_128bits_digest(state.get()))};
}
