//===- Lexer.h - Splits PTX into tokens -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_LEXER_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_LEXER_H

#include <cstdint>
#include <string>
#include <vector>

namespace ptx {

struct Token {
  enum Kind : uint8_t { Word, Integer, Single, Double, Text, Mark, End };
  Kind kind = End;
  unsigned line = 0;
  size_t begin = 0, end = 0; ///< in the source
  std::string text;          ///< Word (with its leading dot, if any), Text and Mark: the characters
  uint64_t bits = 0;
};

/// Returns the tokens of |source|; the last one is an End. Throws LoadError.
std::vector<Token> tokenize(const std::string &source);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_LEXER_H
