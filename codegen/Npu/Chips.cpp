//===- Chips.cpp - Descriptions of NPUs by name ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Chips.h"

#include "top_dialect/IR/RegularFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tessera::npu {

static const std::pair<llvm::StringRef, llvm::StringRef> kBuiltin[] = {
#include "NpuChips.inc"
};

std::vector<std::string> builtinChips() {
  std::vector<std::string> names;
  for (const auto &[known, text] : kBuiltin) {
    names.push_back(known.str());
  }
  return names;
}

std::optional<std::string> findBuiltinChip(llvm::StringRef name) {
  for (const auto &[known, text] : kBuiltin) {
    if (known == name) {
      return text.str();
    }
  }
  return std::nullopt;
}

llvm::Expected<bmodel::npu::Chip> findChip(llvm::StringRef nameOrPath) {
  std::optional<std::string> text = findBuiltinChip(nameOrPath);
  if (!text) {
    auto file = top::readRegularFile(nameOrPath);
    if (!file) {
      std::string names = llvm::join(llvm::make_first_range(kBuiltin), ", ");
      return llvm::createStringError("unknown chip '" + nameOrPath + "': neither one of " + names +
                                     " nor a description that can be read: " + llvm::toString(file.takeError()));
    }
    text = (*file)->getBuffer().str();
  }
  bmodel::npu::Chip chip;
  std::string error;
  if (!bmodel::npu::parseChip(*text, nameOrPath.str(), chip, error)) {
    return llvm::createStringError(error);
  }
  return chip;
}

} // namespace tessera::npu
