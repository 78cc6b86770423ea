//===- Chips.cpp - Descriptions of NPUs by name ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Chips.h"

#include "codegen/Target/BuiltinChips.h"
#include "top_dialect/IR/RegularFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tessera::npu {

static const codegen::BuiltinChip kBuiltin[] = {
#include "NpuChips.inc"
};

std::vector<std::string> builtinChips() { return codegen::namesOf(kBuiltin); }

std::optional<std::string> findBuiltinChip(llvm::StringRef name) { return codegen::findChip(kBuiltin, name); }

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
