//===- TensorFile.h - Writes named tensors as a safetensors file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/HostTensor.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tool {

/// Writes tensors whose names differ, one by one, so that none is held longer than it is needed. The file is at `path`
/// when it is finished, not before; without that nothing stays. Unlike the weight store it keeps equal tensors apart.
class TensorFileWriter {
public:
  TensorFileWriter() = default;
  TensorFileWriter(const TensorFileWriter &) = delete;
  ~TensorFileWriter();

  /// Bytes that the header needs at most for a tensor of that name and rank.
  static uint64_t headerBytes(llvm::StringRef name, int64_t rank);

  /// `headerBytes`: the sum over all tensors that will come.
  llvm::Error create(llvm::StringRef path, uint64_t headerBytes);
  llvm::Error append(llvm::StringRef name, const top::HostTensor &tensor);
  llvm::Error finish();

private:
  std::string path, partial, header;
  uint64_t reserved = 0, offset = 0;
  std::unique_ptr<llvm::raw_fd_ostream> file;
};

using NamedTensor = std::pair<std::string, top::HostTensor>;

/// Writes all of `tensors`, in their order.
llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors);

} // namespace tessera::tool
