//===- WeightStore.h - The weights of a module, in memory or in a mapped file ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_WEIGHTSTORE_H
#define TESSERA_TOP_DIALECT_IR_WEIGHTSTORE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tessera::top {

/// Result of WeightStore::save.
struct SavedWeights {
  PendingFile file;
  std::string hash; ///< XXH3-128 of the file, 32 hex digits
};

/// Stores tensors by key, in the safetensors format on disk. The Top dialect owns one store per MLIRContext. Entries
/// are never changed or moved, so views stay valid until their tensor is dropped. Thread-safe.
class WeightStore {
public:
  /// View of a tensor: row-major, little endian, i1 as one byte per element.
  struct TensorView {
    mlir::Type elementType;
    llvm::ArrayRef<int64_t> shape;
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner; ///< keeps the bytes alive
    bool isMapped = false;             ///< the bytes are those of a mapped file
  };

  explicit WeightStore(mlir::MLIRContext *context) : context(context) {}

  /// Maps a safetensors file and adds its tensors. Validates header, types, offsets and sizes and, if `expectedHash` is
  /// not empty, the file's hash.
  llvm::Error open(llvm::StringRef path, llvm::StringRef expectedHash = "");

  /// Returns the tensor of `key`; nothing if it does not exist or was dropped.
  std::optional<TensorView> lookup(llvm::StringRef key) const;

  /// Returns the number of bytes of the tensor that lookup() would return, without computing a lazy one.
  std::optional<int64_t> sizeOf(llvm::StringRef key) const;

  /// Returns true for a lazy tensor whose bytes have not been computed yet.
  bool isUncomputed(llvm::StringRef key) const;

  /// Adds a tensor and returns its key: `keyHint`, with a numeric suffix if that is taken. If an equal tensor (type,
  /// shape and bytes) exists, it returns the key of that one. Keys depend only on the order of the calls.
  std::string add(llvm::StringRef keyHint, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  std::vector<char> bytes);

  /// Adds a tensor without copying: `owner` keeps the bytes alive and unchanged, e.g. a mapped file (`isMapped`) or a
  /// parsed message.
  std::string add(llvm::StringRef keyHint, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner, bool isMapped = false);

  /// Computes the bytes of a tensor, the same in each call, on any thread.
  using Maker = std::function<std::vector<char>()>;

  /// Adds a tensor that takes no memory until its bytes are looked up. It is not compared with other tensors.
  std::string addLazily(llvm::StringRef keyHint, mlir::RankedTensorType type, Maker make);

  /// Writes the tensors of `keys`. They appear at `path` when the returned file is kept. The same tensors give the same
  /// bytes. Releases tensors of mapped files (see `release`).
  llvm::Expected<SavedWeights> save(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> keys) const;

  /// States that the tensor will not be read for a while. The memory of a mapped tensor is returned to the system; a
  /// later access reads the file again. Views stay valid.
  void release(llvm::StringRef key) const;

  /// Drops all tensors except those of `keys`: mapped ones are released; views of others become invalid. Dropped
  /// tensors keep their keys: adding the same bytes again returns the same key.
  void retain(const llvm::StringSet<> &keys);

  /// Returns the number of bytes of memory in use, without mapped files.
  uint64_t bytesInMemory() const;

  /// Sets the module whose ops alone refer to tensors of this store; null if there may be others. A pass on that module
  /// may drop weights that it replaces (WeightLifetime.h).
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
    std::shared_ptr<const void> owner; ///< null if the tensor was dropped
    uint64_t hash = 0;
    bool isMapped = false;
    Digest digest = {}; ///< digest of the bytes, set when they are dropped
    Maker make = {};    ///< of a tensor that was added lazily and not dropped

    TensorView view() const { return {elementType, shape, bytes, owner, isMapped}; }
  };
  std::string unusedKey(llvm::StringRef keyHint);
  static Digest digestOf(llvm::ArrayRef<char> bytes);

  mlir::MLIRContext *context;
  mutable std::mutex mutex;
  mutable llvm::StringMap<Entry> entries; ///< `lookup` makes the bytes of lazy ones
  /// Keys by hash of the content, to find equal tensors.
  std::multimap<uint64_t, std::string> byHash;
  llvm::StringMap<unsigned> nextSuffix;
  const void *soleHolder = nullptr;
  uint64_t droppedBytes = 0; ///< by retain, since it last returned free memory to the system
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_WEIGHTSTORE_H
