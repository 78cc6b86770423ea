//===- WeightStore.h - The weights of a module, in memory or in a mapped file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/ADT/StringMap.h"
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
/// Entries are never changed or moved once added, so views stay valid for the store's life. Thread-safe.
class WeightStore {
public:
  /// Row-major, little endian, i1 one byte per element.
  struct TensorView {
    mlir::Type elementType;
    llvm::ArrayRef<int64_t> shape;
    llvm::ArrayRef<char> bytes;
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

  /// The same for bytes that `owner` keeps alive and unchanged: a mapped file, a parsed message.
  std::string add(llvm::StringRef keyHint, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);

  /// Writes the tensors of `keys`; they are at `path` once the file is kept. Same tensors, same bytes.
  llvm::Expected<SavedWeights> save(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> keys) const;

  /// Frees all tensors but those of `keys`. Views of the others become invalid.
  void retain(llvm::ArrayRef<llvm::StringRef> keys);

private:
  struct Entry {
    mlir::Type elementType;
    llvm::SmallVector<int64_t, 4> shape;
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner;
    uint64_t hash = 0;
  };

  mlir::MLIRContext *context;
  mutable std::mutex mutex;
  llvm::StringMap<Entry> entries;
  /// Content hash -> keys with that hash, for finding equal tensors.
  std::multimap<uint64_t, std::string> byHash;
  llvm::StringMap<unsigned> nextSuffix;
};

/// XXH3-128 of a file as 32 hex digits.
llvm::Expected<std::string> hashFile(llvm::StringRef path);

} // namespace tessera::top
