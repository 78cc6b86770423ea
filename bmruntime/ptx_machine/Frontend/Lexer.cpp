//===- Lexer.cpp - Splits PTX into tokens ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Frontend/Lexer.h"

#include "bmruntime/ptx_machine/Frontend/Ptx.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace ptx {
namespace {

bool isWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }
bool isWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

class Lexer {
public:
  explicit Lexer(const std::string &source) : source(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (skipBlank(); at < source.size() && source[at] != 0; skipBlank()) {
      tokens.push_back(next());
    }
    Token end;
    end.line = line;
    end.begin = end.end = at;
    tokens.push_back(end);
    return tokens;
  }

private:
  char peek(size_t ahead = 0) const { return at + ahead < source.size() ? source[at + ahead] : '\0'; }

  void skipBlank() {
    while (at < source.size()) {
      if (source[at] == '\n') {
        ++line, ++at;
      } else if (std::isspace(static_cast<unsigned char>(source[at]))) {
        ++at;
      } else if (peek() == '/' && peek(1) == '/') {
        at = std::min(source.find('\n', at), source.size());
      } else if (peek() == '/' && peek(1) == '*') {
        size_t end = source.find("*/", at);
        if (end == std::string::npos) {
          throw LoadError(line, "comment without end");
        }
        for (; at < end + 2; ++at) {
          line += source[at] == '\n';
        }
      } else {
        return;
      }
    }
  }

  Token next() {
    Token token;
    token.line = line;
    token.begin = at;
    char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number(token);
    } else if (isWordStart(c) || (c == '.' && isWordStart(peek(1)))) {
      word(token);
    } else if (c == '"') {
      size_t end = source.find('"', at + 1);
      if (end == std::string::npos) {
        throw LoadError(line, "string without end");
      }
      token.kind = Token::Text;
      token.text = source.substr(at + 1, end - at - 1);
      at = end + 1;
    } else {
      token.kind = Token::Mark;
      token.text = c;
      ++at;
    }
    token.end = at;
    return token;
  }

  /// Reads a word. A word includes dots, so that `ld.global.v4.f32` and `%tid.x` are single words; it may start with
  /// one.
  void word(Token &token) {
    size_t begin = at++;
    while (isWordPart(peek()) || (peek() == '.' && isWordPart(peek(1))) || (peek() == ':' && peek(1) == ':')) {
      at += peek() == ':' ? 2 : 1;
    }
    token.kind = Token::Word;
    token.text = source.substr(begin, at - begin);
  }

  void number(Token &token) {
    char kind = peek(1);
    if (peek() == '0' && (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D')) {
      bool isSingle = kind == 'f' || kind == 'F';
      token.kind = isSingle ? Token::Single : Token::Double;
      unsigned digits = isSingle ? 8 : 16;
      std::string text = source.substr(at + 2, digits);
      token.bits = std::strtoull(text.c_str(), nullptr, 16);
      at += 2 + digits;
      return;
    }
    const char *begin = source.c_str() + at;
    char *end = nullptr;
    token.kind = Token::Integer;
    if (kind == 'b' || kind == 'B') {
      token.bits = std::strtoull(begin + 2, &end, 2);
    } else {
      token.bits = std::strtoull(begin, &end, 0);
    }
    if (*end == '.' && std::isdigit(static_cast<unsigned char>(end[1]))) {
      double value = std::strtod(begin, &end);
      token.kind = Token::Double;
      std::memcpy(&token.bits, &value, sizeof value);
    } else if (*end == 'U') {
      ++end;
    }
    at += size_t(end - begin);
  }

  const std::string &source;
  size_t at = 0;
  unsigned line = 1;
};

} // namespace

std::vector<Token> tokenize(const std::string &source) { return Lexer(source).run(); }

} // namespace ptx
