//===- TensorFile.h - Writes named tensors as a safetensors file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/HostTensor.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera::tool {

using NamedTensor = std::pair<std::string, top::HostTensor>;

/// Writes |tensors|, whose names must differ, in their order to |path|, by way of a temporary file
/// beside it. Unlike the weight store it keeps equal tensors apart.
llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors);

} // namespace tessera::tool
