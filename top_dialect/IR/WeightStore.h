//===- WeightStore.h - The weights of a module, in memory or in a mapped file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tessera::top {

struct SavedWeights {
  PendingFile file;
  std::string hash; ///< XXH3-128 of the file, 32 hex digits
};

/// Tensors by key, in the safetensors format on disk. One per MLIRContext, held by the Top dialect.
/// Entries are never changed or moved once added, so views stay valid until their tensor is dropped. Thread-safe.
class WeightStore {
public:
  /// Row-major, little endian, i1 one byte per element.
  struct TensorView {
    mlir::Type elementType;
    llvm::ArrayRef<int64_t> shape;
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner; ///< of the bytes
  };

  explicit WeightStore(mlir::MLIRContext *context) : context(context) {}

  /// Maps a safetensors file and adds its tensors. Everything in it is checked: header, types, offsets,
  /// sizes. With `expectedHash` not empty the file's hash must be that.
  llvm::Error open(llvm::StringRef path, llvm::StringRef expectedHash = "");

  std::optional<TensorView> lookup(llvm::StringRef key) const;

  /// Adds a tensor and returns its key: `keyHint`, with a number behind it if that is taken. A tensor
  /// equal in type, shape and bytes to one already there is not added again: its key is returned.
  /// Keys depend on the order of the calls only.
  std::string add(llvm::StringRef keyHint, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  std::vector<char> bytes);

  /// The same for bytes that `owner` keeps alive and unchanged: a mapped file (`isMapped`), a parsed message.
  std::string add(llvm::StringRef keyHint, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner, bool isMapped = false);

  /// Writes the tensors of `keys`; they are at `path` once the file is kept. Same tensors, same bytes. What is mapped
  /// takes no memory any more (see `release`).
  llvm::Expected<SavedWeights> save(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> keys) const;

  /// Says that the tensor is not read for a while: where it is a mapped file's, its memory goes back to the system, and
  /// who reads it after all has it read from the file again. Views stay valid.
  void release(llvm::StringRef key) const;

  /// Frees the memory of all tensors but those of `keys`: what is mapped is released, of what is not, views become
  /// invalid. The keys of dropped tensors stay theirs: who adds the same bytes again gets the same key.
  void retain(const llvm::StringSet<> &keys);

  /// Bytes of memory that its tensors take, mapped files aside.
  uint64_t bytesInMemory() const;

  /// The module whose ops alone hold tensors of this store, as long as that is so; null where others may as well. A
  /// pass on that module may drop what it replaces (WeightLifetime.h).
  void setSoleHolder(const void *module) { soleHolder = module; }
  const void *getSoleHolder() const { return soleHolder; }

private:
  struct Digest {
    uint64_t low = 0, high = 0;
    bool operator==(const Digest &) const = default;
  };
  struct Entry {
    mlir::Type elementType;
    llvm::SmallVector<int64_t, 4> shape;
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner; ///< null: dropped
    uint64_t hash = 0;
    bool isMapped = false;
    Digest digest = {}; ///< of the bytes, once they are dropped
  };
  static Digest digestOf(llvm::ArrayRef<char> bytes);

  mlir::MLIRContext *context;
  mutable std::mutex mutex;
  llvm::StringMap<Entry> entries;
  /// Content hash -> keys with that hash, for finding equal tensors.
  std::multimap<uint64_t, std::string> byHash;
  llvm::StringMap<unsigned> nextSuffix;
  const void *soleHolder = nullptr;
};

} // namespace tessera::top
