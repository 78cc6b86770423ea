//===- Parser.cpp - Parses PTX modules ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Frontend/Lexer.h"
#include "bmruntime/ptx_machine/Frontend/Ptx.h"

#include <cstring>

namespace ptx {

const Function *Module::find(const std::string &name) const {
  const Function *declared = nullptr;
  for (const Function &each : functions) {
    if (each.name == name) {
      declared = &each;
      if (each.hasBody) {
        break;
      }
    }
  }
  return declared;
}

unsigned typeBytes(const std::string &type) {
  static const std::unordered_map<std::string, unsigned> sizes = {
      {"b8", 1},   {"u8", 1},  {"s8", 1},    {"b16", 2},   {"u16", 2},  {"s16", 2},   {"f16", 2},
      {"bf16", 2}, {"b32", 4}, {"u32", 4},   {"s32", 4},   {"f32", 4},  {"b64", 8},   {"u64", 8},
      {"s64", 8},  {"f64", 8}, {"b128", 16}, {"f16x2", 4}, {"tf32", 4}, {"bf16x2", 4}};
  auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

namespace {

bool startsWith(const std::string &text, const char *prefix) { return text.rfind(prefix, 0) == 0; }

class Parser {
public:
  explicit Parser(const std::string &source) : source(source), tokens(tokenize(source)) { scopes.emplace_back(); }

  Module run() {
    while (token().kind != Token::End) {
      directive();
    }
    if (module.version == 0) {
      throw LoadError(1, "no .version: this is not a PTX module");
    }
    return std::move(module);
  }

private:
  const Token &token(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  bool isMark(char mark, size_t ahead = 0) const {
    return token(ahead).kind == Token::Mark && token(ahead).text[0] == mark;
  }
  bool isWord(const char *word) const { return token().kind == Token::Word && token().text == word; }
  [[noreturn]] void fail(const std::string &message) const { throw LoadError(token().line, message); }

  bool take(char mark) {
    bool found = isMark(mark);
    at += found;
    return found;
  }
  void expect(char mark) {
    if (!take(mark)) {
      fail(std::string("'") + mark + "' expected before '" + source.substr(token().begin, token().end - token().begin) +
           "'");
    }
  }
  std::string word() {
    if (token().kind != Token::Word) {
      fail("a name expected");
    }
    return tokens[at++].text;
  }
  int64_t integer() {
    bool isMinus = take('-');
    if (token().kind != Token::Integer) {
      fail("a number expected");
    }
    auto value = int64_t(tokens[at++].bits);
    return isMinus ? -value : value;
  }

  void skipLine() {
    for (unsigned line = token().line; token().kind != Token::End && token().line == line;) {
      ++at;
    }
  }

  void directive() {
    std::string name = token().kind == Token::Word ? token().text : "";
    if (name == ".version") {
      // `8.0` is lexed as one number.
      ++at;
      double value = 0;
      if (token().kind == Token::Double) {
        std::memcpy(&value, &token().bits, sizeof value);
      }
      module.version = unsigned(value * 10 + 0.5);
      ++at;
    } else if (name == ".target") {
      ++at;
      std::string target = word();
      module.target = startsWith(target, "sm_") ? unsigned(std::atoi(target.c_str() + 3)) : 0;
      while (take(',')) {
        word();
      }
    } else if (name == ".address_size") {
      ++at;
      if (integer() != 64) {
        fail("only .address_size 64 is known");
      }
    } else if (name == ".file" || name == ".loc") {
      skipLine();
    } else if (name == ".section") {
      while (!take('}')) {
        ++at;
      }
    } else if (name == ".pragma") {
      skipLine();
    } else {
      declaration();
    }
  }

  void declaration() {
    bool isExternal = false;
    while (isWord(".visible") || isWord(".extern") || isWord(".weak") || isWord(".common")) {
      isExternal = isExternal || isWord(".extern");
      ++at;
    }
    if (isWord(".entry") || isWord(".func")) {
      function();
    } else if (isWord(".global") || isWord(".shared") || isWord(".const")) {
      declareVariables(isExternal, module.globals);
    } else {
      fail("directive '" + source.substr(token().begin, token().end - token().begin) + "' is not known");
    }
  }

  Variable *declare(Variable variable) {
    module.variables.push_back(std::move(variable));
    Variable *made = &module.variables.back();
    scopes.back()[made->name] = made;
    return made;
  }

  /// Parses the space and type words before the names of a declaration.
  Variable variablePrefix(bool isExternal) {
    Variable variable;
    std::string space = word();
    static const std::unordered_map<std::string, Space> spaces = {
        {".reg", Space::Register}, {".global", Space::Global},   {".shared", Space::Shared},
        {".local", Space::Local},  {".param", Space::Parameter}, {".const", Space::Constant}};
    auto found = spaces.find(space);
    if (found == spaces.end()) {
      fail("'" + space + "' is not a state space");
    }
    variable.space = found->second;
    variable.isExternal = isExternal;
    while (token().kind == Token::Word && token().text[0] == '.') {
      std::string each = word().substr(1);
      if (each == "align") {
        // The alignment of a pointer parameter is that of the memory it points to.
        auto alignment = unsigned(integer());
        variable.alignment = isPointer ? variable.alignment : alignment;
      } else if (each == "ptr") {
        isPointer = true;
      } else if (each == "pred" || typeBytes(each) != 0) {
        variable.type = each;
      } else if (!isPointer && each != "volatile" && each != "attribute") {
        fail("'." + each + "' is not known in a declaration");
      }
    }
    isPointer = false;
    if (variable.type.empty()) {
      fail("a declaration without a known type");
    }
    return variable;
  }

  void declareVariables(bool isExternal, std::vector<const Variable *> &list) {
    Variable prefix = variablePrefix(isExternal);
    do {
      Variable variable = prefix;
      variable.name = word();
      unsigned bytes = typeBytes(variable.type);
      variable.size = bytes;
      variable.alignment = std::max(variable.alignment, bytes);
      if (take('<')) {
        auto count = integer();
        expect('>');
        std::string base = variable.name;
        for (int64_t i = 0; i < count; ++i) {
          variable.name = base + std::to_string(i);
          list.push_back(declare(variable));
        }
        continue;
      }
      while (take('[')) {
        variable.size = isMark(']') ? 0 : variable.size * uint64_t(integer());
        expect(']');
      }
      if (take('=')) {
        initialize(variable, bytes);
      }
      list.push_back(declare(std::move(variable)));
    } while (take(','));
    expect(';');
  }

  void initialize(Variable &variable, unsigned bytes) {
    bool hasList = take('{');
    do {
      bool isMinus = take('-');
      if (token().kind == Token::Word) {
        fail("initial values with addresses are not supported by the PTX machine");
      }
      uint64_t bits = tokens[at++].bits;
      bits = isMinus ? 0 - bits : bits;
      for (unsigned i = 0; i < bytes; ++i) {
        variable.initial.push_back(uint8_t(bits >> (8 * i)));
      }
    } while (hasList && take(','));
    if (hasList) {
      expect('}');
    }
    variable.size = std::max<uint64_t>(variable.size, variable.initial.size());
  }

  std::vector<const Variable *> parameterList() {
    std::vector<const Variable *> list;
    expect('(');
    while (!take(')')) {
      Variable variable = variablePrefix(false);
      variable.name = word();
      variable.size = typeBytes(variable.type);
      variable.alignment = std::max<unsigned>(variable.alignment, unsigned(variable.size));
      while (take('[')) {
        variable.size = isMark(']') ? 0 : variable.size * uint64_t(integer());
        expect(']');
      }
      list.push_back(declare(std::move(variable)));
      take(',');
    }
    return list;
  }

  void function() {
    Function made;
    made.line = token().line;
    made.isEntry = word() == ".entry";
    scopes.emplace_back();
    if (isMark('(')) {
      made.results = parameterList();
    }
    made.name = word();
    if (isMark('(')) {
      made.parameters = parameterList();
    }
    while (!isMark('{') && !isMark(';')) {
      performanceDirective(made);
    }
    if (!take(';')) {
      made.hasBody = true;
      current = &made;
      block();
    }
    scopes.pop_back();
    module.functions.push_back(std::move(made));
  }

  void performanceDirective(Function &made) {
    std::string name = word();
    if (name == ".maxntid" || name == ".reqntid") {
      made.maxThreads = 1;
      made.hasFixedThreads = name == ".reqntid";
      do {
        made.maxThreads *= unsigned(integer());
      } while (take(','));
    } else if (name == ".noreturn") {
    } else if (name == ".pragma") {
      ++at;
      take(';');
    } else {
      integer(); // .minnctapersm, .maxnreg
    }
  }

  void block() {
    expect('{');
    scopes.emplace_back();
    while (!take('}')) {
      if (token().kind == Token::End) {
        fail("the text ends within a function");
      }
      statement();
    }
    scopes.pop_back();
  }

  void statement() {
    if (isMark('{')) {
      return block();
    }
    if (take(';')) {
      return;
    }
    if (token().kind == Token::Word && isMark(':', 1)) {
      return labelled();
    }
    if (token().kind == Token::Word && token().text[0] == '.') {
      const std::string &name = token().text;
      if (name == ".loc" || name == ".file" || name == ".pragma") {
        return skipLine();
      }
      bool isVariable = name == ".reg" || name == ".local" || name == ".shared" || name == ".param";
      if (!isVariable) {
        fail("directive '" + name + "' is not known within a function");
      }
      return declareVariables(false, current->variables);
    }
    instruction();
  }

  void labelled() {
    Statement label;
    label.line = token().line;
    label.label = word();
    expect(':');
    if (isWord(".branchtargets")) {
      ++at;
      auto &targets = current->branchTargets[label.label];
      do {
        targets.push_back(word());
      } while (take(','));
      expect(';');
      return;
    }
    current->statements.push_back(std::move(label));
  }

  void instruction() {
    Statement made;
    made.line = token().line;
    size_t begin = token().begin;
    if (take('@')) {
      made.hasGuard = true;
      bool isNegated = take('!');
      made.guard = name();
      made.guard.isNegated = isNegated;
    }
    made.opcode = word();
    while (!isMark(';')) {
      made.operands.push_back(operand());
      if (!isMark(';') && !take(',')) {
        fail("',' or ';' expected in '" + source.substr(begin, token().end - begin) + "'");
      }
    }
    made.text = oneLine(source.substr(begin, token().begin - begin));
    ++at;
    current->statements.push_back(std::move(made));
  }

  static std::string oneLine(const std::string &text) {
    std::string result;
    for (char c : text) {
      bool isBlank = c == '\t' || c == '\n' || c == ' ';
      if (!isBlank || (!result.empty() && result.back() != ' ')) {
        result += isBlank ? ' ' : c;
      }
    }
    return result;
  }

  Operand name() {
    Operand result;
    result.name = word();
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      auto found = scope->find(result.name);
      if (found != scope->end()) {
        result.variable = found->second;
        break;
      }
    }
    return result;
  }

  Operand list(char end, Operand::Kind kind) {
    Operand result;
    result.kind = kind;
    while (!take(end)) {
      result.parts.push_back(operand());
      take(',');
    }
    return result;
  }

  Operand operand() {
    if (take('[')) {
      Operand result;
      result.kind = Operand::Address;
      result.parts.push_back(operand());
      std::swap(result.offset, result.parts[0].offset);
      while (take(',')) { // textures, which are rejected later by their opcode
        result.parts.push_back(operand());
      }
      expect(']');
      return result;
    }
    if (take('{')) {
      return list('}', Operand::Vector);
    }
    if (take('(')) {
      return list(')', Operand::List);
    }
    if (take('!')) {
      Operand result = operand();
      result.isNegated = true;
      return result;
    }
    return token().kind == Token::Word ? nameOperand() : literal();
  }

  Operand nameOperand() {
    Operand result = name();
    if (result.name == "_" && !result.variable) {
      result.kind = Operand::Sink;
    }
    if (isMark('+') || isMark('-')) {
      take('+');
      result.offset = integer();
    }
    if (take('|')) {
      Operand pair;
      pair.kind = Operand::Pair;
      pair.parts = {result, operand()};
      return pair;
    }
    return result;
  }

  Operand literal() {
    Operand result;
    bool isMinus = take('-');
    const Token &number = token();
    ++at;
    result.bits = number.bits;
    switch (number.kind) {
    case Token::Integer:
      result.kind = Operand::Integer;
      result.bits = isMinus ? 0 - number.bits : number.bits;
      break;
    case Token::Single:
      result.kind = Operand::Single;
      result.bits ^= isMinus ? 0x80000000u : 0;
      break;
    case Token::Double:
      result.kind = Operand::Double;
      result.bits ^= isMinus ? uint64_t(1) << 63 : 0;
      break;
    default:
      --at;
      fail("an operand expected before '" + number.text + "'");
    }
    return result;
  }

  const std::string &source;
  std::vector<Token> tokens;
  size_t at = 0;
  Module module;
  Function *current = nullptr;
  bool isPointer = false;
  std::vector<std::unordered_map<std::string, Variable *>> scopes;
};

} // namespace

Module parse(const std::string &text) { return Parser(text).run(); }

} // namespace ptx
