//===- ConstantSection.h - Constant section of a program --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H
#define TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H

#include "codegen/Target/TargetProgram.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::codegen {

/// Collects a program's constants in one of its sections; equal small constants and repeated weights are stored once.
class ConstantSection {
public:
  /// |section|: index of a segment of constants in the program.
  ConstantSection(TargetProgram &program, uint32_t section) : program(program), section(section) {}

  /// Appends |data| to the section, unless it is there, and makes |tensor| refer to it.
  void place(const top::TensorData &data, bmodel::TensorDefT &tensor);

private:
  TargetProgram &program;
  uint32_t section;
  llvm::StringMap<uint64_t> small;                ///< bytes -> offset
  llvm::DenseMap<const char *, uint64_t> weights; ///< address in the weight store -> offset
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H
