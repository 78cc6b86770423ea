//===- BuiltinChips.h - Chip descriptions inside the compiler ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_BUILTINCHIPS_H
#define TESSERA_CODEGEN_TARGET_BUILTINCHIPS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera::codegen {

/// Name of a chip, and its JSON description.
using BuiltinChip = std::pair<llvm::StringRef, llvm::StringRef>;

/// Returns the names of `chips`.
inline std::vector<std::string> namesOf(llvm::ArrayRef<BuiltinChip> chips) {
  auto names = llvm::make_first_range(chips);
  return {names.begin(), names.end()};
}

/// Returns the description of the chip called `name`.
inline std::optional<std::string> findChip(llvm::ArrayRef<BuiltinChip> chips, llvm::StringRef name) {
  const BuiltinChip *found = llvm::find_if(chips, [&](const BuiltinChip &chip) { return chip.first == name; });
  return found == chips.end() ? std::nullopt : std::optional(found->second.str());
}

} // namespace tessera::codegen

#endif
