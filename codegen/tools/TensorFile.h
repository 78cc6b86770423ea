//===- TensorFile.h - Writing tensors as safetensors ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_TENSORFILE_H
#define TESSERA_CODEGEN_TOOLS_TENSORFILE_H

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tool {

/// Writes tensors with different names one by one, so that none is held longer than needed. The file appears at `path`
/// only after finish(). Unlike the weight store, it does not merge equal tensors.
class TensorFileWriter {
public:
  /// Returns an upper bound of the header bytes for a tensor of that name and rank.
  static uint64_t headerBytes(llvm::StringRef name, int64_t rank);

  /// `headerBytes`: the sum over all tensors to be written.
  llvm::Error create(llvm::StringRef path, uint64_t headerBytes);
  llvm::Error append(llvm::StringRef name, const top::HostTensor &tensor);
  llvm::Error finish();

private:
  std::string header;
  uint64_t reserved = 0, offset = 0;
  std::optional<top::PendingFile> file;
};

using NamedTensor = std::pair<std::string, top::HostTensor>;

/// Writes `tensors` in order.
llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_TENSORFILE_H
