//===- Chips.h - Descriptions of NPUs by name -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CHIPS_H
#define TESSERA_CODEGEN_NPU_CHIPS_H

#include "bmodel/npu/chip.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera::npu {

std::vector<std::string> builtinChips();

/// The JSON description of a built-in chip ("npu-base"); nothing where there is none of that name.
std::optional<std::string> findBuiltinChip(llvm::StringRef name);

/// The built-in chip of that name, or the one that the file at that path describes. The error says what is wrong.
llvm::Expected<bmodel::npu::Chip> findChip(llvm::StringRef nameOrPath);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CHIPS_H
