//===- Properties.h - Text that a module hands on to the compiled model -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_PROPERTIES_H
#define TESSERA_TOP_DIALECT_IR_PROPERTIES_H

#include "llvm/ADT/StringRef.h"

namespace tessera::top {

/// Module attribute: a dictionary of strings, which become properties of the .bmodel.
inline constexpr llvm::StringLiteral kPropertiesAttr = "top.properties";
/// The property of a language model: a JSON object with the tokenizer and the chat template, by GGUF's keys.
inline constexpr llvm::StringLiteral kLanguageProperty = "language";

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_PROPERTIES_H
