//===- CudaChip.h - Descriptions of GPUs ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CUDACHIP_H
#define TESSERA_CODEGEN_CUDA_CUDACHIP_H

#include "bmodel/chip_json.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// The GPU to compile for, with the figures that its cost model uses; read from a description in device_dialect/chips.
struct CudaChip {
  std::string name;
  std::string description;
#define CUDA_CHIP_NUMBER(path, type, member, low, high, validity, meaning) type member = {};
#include "codegen/Cuda/CudaChip.inc"
  /// Field path -> source of its value.
  std::vector<std::pair<std::string, std::string>> sources;

  /// Returns the multiply-adds per second of the whole GPU at |rate| multiply-adds per SM and cycle.
  double perSecond(double rate) const { return rate * sms * clockGhz * 1e9; }
  /// Returns the bytes per second that DRAM reaches at best.
  double dramBytesPerSecond() const { return dramGbps * dramEfficiency * 1e9; }
};

const std::vector<bmodel::ChipField> &chipFields();

std::vector<std::string> builtinChips();

/// Returns the JSON description of a built-in chip (e.g. "cuda-sm80"), or nullopt if there is none of that name.
std::optional<std::string> findBuiltinChip(llvm::StringRef name);

/// Parses the description |json|. Errors begin with |where|.
llvm::Expected<CudaChip> parseChip(llvm::StringRef json, llvm::StringRef where);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CUDACHIP_H
