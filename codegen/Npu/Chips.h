//===- Chips.h - Descriptions of NPUs by name -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CHIPS_H
#define TESSERA_CODEGEN_NPU_CHIPS_H

#include "bmodel/npu/chip.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera::npu {

/// Returns the names of the built-in chips.
std::vector<std::string> builtinChips();

/// Returns the JSON description of a built-in chip such as "npu-base", or nothing if |name| is unknown.
std::optional<std::string> findBuiltinChip(llvm::StringRef name);

/// Returns the built-in chip of that name, or the chip that the file at that path describes.
llvm::Expected<bmodel::npu::Chip> findChip(llvm::StringRef nameOrPath);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CHIPS_H
