//===- CudaChip.h - GPUs that programs are made for -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CUDACHIP_H
#define TESSERA_CODEGEN_CUDA_CUDACHIP_H

#include "bmodel/chip_json.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// What programs are made for, and the card whose figures price them: a description of device_dialect/chips.
struct CudaChip {
  std::string name;
  std::string description;
#define CUDA_CHIP_NUMBER(path, type, member, low, high, validity, meaning) type member = {};
#include "codegen/Cuda/CudaChip.inc"
  /// Field path -> where its value comes from.
  std::vector<std::pair<std::string, std::string>> sources;

  /// Multiply-adds a second of the whole card, of |rate| an SM and cycle.
  double perSecond(double rate) const { return rate * sms * clockGhz * 1e9; }
  /// Bytes a second that DRAM gives at its best.
  double dramBytesPerSecond() const { return dramGbps * dramEfficiency * 1e9; }
};

const std::vector<bmodel::ChipField> &chipFields();

std::vector<std::string> builtinChips();

/// The JSON description of a built-in chip ("cuda-sm80"); nothing where there is none of that name.
std::optional<std::string> findBuiltinChip(llvm::StringRef name);

/// The chip that |json| describes. The error says what is wrong, behind |where|.
llvm::Expected<CudaChip> parseChip(llvm::StringRef json, llvm::StringRef where);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CUDACHIP_H
