//===- ConstantSection.h - Constants of a program ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H
#define TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H

#include "codegen/Target/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::codegen {

/// Constants of a program, which becomes one of its sections; equal small ones, and weights, are there once.
class ConstantSection {
public:
  /// |section|: of the program, a segment of constants.
  ConstantSection(Program &program, uint32_t section) : program(program), section(section) {}

  /// Makes the tensor one of the section.
  void place(const top::TensorData &data, bmodel::TensorDefT &tensor);

private:
  Program &program;
  uint32_t section;
  llvm::StringMap<uint64_t> small;                ///< bytes -> offset
  llvm::DenseMap<const char *, uint64_t> weights; ///< data of the store -> offset
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_CONSTANTSECTION_H
