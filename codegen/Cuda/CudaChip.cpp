//===- CudaChip.cpp - Descriptions of GPUs --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/CudaChip.h"

#include "codegen/Target/BuiltinChips.h"

#include <type_traits>

namespace tessera::cuda {

static const codegen::BuiltinChip kBuiltin[] = {
#include "CudaChips.inc"
};

const std::vector<bmodel::ChipField> &chipFields() {
  static const std::vector<bmodel::ChipField> fields = {
#define CUDA_CHIP_NUMBER(path, type, member, low, high, validity, meaning)                                             \
  {path, std::is_integral_v<type> ? "integer" : "number", double(low), double(high), "", validity, meaning},
#include "codegen/Cuda/CudaChip.inc"
  };
  return fields;
}

std::vector<std::string> builtinChips() { return codegen::namesOf(kBuiltin); }

std::optional<std::string> findBuiltinChip(llvm::StringRef name) { return codegen::findChip(kBuiltin, name); }

/// Returns an error about fields that contradict each other, or "".
static std::string contradiction(const CudaChip &chip) {
  if (chip.blockSharedBytes > chip.sharedBytes) {
    return "sm.shared_bytes_per_block is " + std::to_string(chip.blockSharedBytes) +
           ", more than sm.shared_bytes = " + std::to_string(chip.sharedBytes);
  }
  return "";
}

llvm::Expected<CudaChip> parseChip(llvm::StringRef json, llvm::StringRef where) {
  CudaChip chip;
  std::string family;
  bmodel::ChipReader reader(json, where.str(), chipFields());
  reader.word("name", chip.name, nullptr);
  reader.word("family", family, "cuda");
  reader.word("description", chip.description, nullptr);
#define CUDA_CHIP_NUMBER(path, type, member, low, high, validity, meaning) reader.number(path, chip.member, low, high);
#include "codegen/Cuda/CudaChip.inc"
  reader.sources(chip.sources);
  if (std::string error = reader.finish(); !error.empty()) {
    return llvm::createStringError(error);
  }
  if (std::string error = contradiction(chip); !error.empty()) {
    return llvm::createStringError(where + ": " + error);
  }
  return chip;
}

} // namespace tessera::cuda
