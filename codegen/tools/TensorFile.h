//===- TensorFile.h - Writes named tensors as a safetensors file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tool {

/// Writes tensors whose names differ, one by one, so that none is held longer than it is needed. The file is at `path`
/// when it is finished, not before; without that nothing stays. Unlike the weight store it keeps equal tensors apart.
class TensorFileWriter {
public:
  /// Bytes that the header needs at most for a tensor of that name and rank.
  static uint64_t headerBytes(llvm::StringRef name, int64_t rank);

  /// `headerBytes`: the sum over all tensors that will come.
  llvm::Error create(llvm::StringRef path, uint64_t headerBytes);
  llvm::Error append(llvm::StringRef name, const top::HostTensor &tensor);
  llvm::Error finish();

private:
  std::string header;
  uint64_t reserved = 0, offset = 0;
  std::optional<top::PendingFile> file;
};

using NamedTensor = std::pair<std::string, top::HostTensor>;

/// Writes all of `tensors`, in their order.
llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors);

} // namespace tessera::tool
