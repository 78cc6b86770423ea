//===- Ptx.h - Parsed PTX -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// The result of parsing a module's text. Lines count from 1.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PTX_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PTX_H

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptx {

enum class Space : uint8_t { Register, Global, Shared, Local, Parameter, Constant, Generic };

/// The reason why a module cannot be loaded; what() begins with the line.
class LoadError : public std::runtime_error {
public:
  LoadError(unsigned line, const std::string &message)
      : std::runtime_error("line " + std::to_string(line) + ": " + message) {}
};

/// A declared register or variable.
struct Variable {
  std::string name;
  Space space = Space::Register;
  std::string type; ///< without the dot: b32, f32, pred
  unsigned alignment = 0;
  uint64_t size = 0;            ///< in bytes; 0 for an extern array
  std::vector<uint8_t> initial; ///< may be shorter than size; the rest is zero
  bool isExternal = false;
};

struct Operand {
  enum Kind : uint8_t {
    Name,    ///< a register, special register, variable, label or function
    Integer, ///< bits
    Single,  ///< 0f...
    Double,  ///< 0d... or 1.5
    Address, ///< [parts[0] + offset]
    Vector,  ///< {parts}
    Pair,    ///< parts[0]|parts[1]
    List,    ///< (parts)
    Sink     ///< _
  };
  Kind kind = Name;
  std::string name;
  const Variable *variable = nullptr; ///< the variable of a declared Name
  int64_t offset = 0;                 ///< offset of Address, and of `symbol+4`
  uint64_t bits = 0;
  bool isNegated = false; ///< !p
  std::vector<Operand> parts;
};

/// An instruction, or a label if there is no opcode.
struct Statement {
  unsigned line = 0;
  std::string label;
  std::string opcode; ///< ld.global.v4.f32
  bool hasGuard = false;
  Operand guard;
  std::vector<Operand> operands;
  std::string text;
};

struct Function {
  std::string name;
  bool isEntry = false, hasBody = false;
  unsigned line = 0;
  std::vector<const Variable *> results, parameters;
  std::vector<Statement> statements;
  std::vector<const Variable *> variables; ///< variables and registers that the body declares
  std::unordered_map<std::string, std::vector<std::string>> branchTargets;
  unsigned maxThreads = 0; ///< from .maxntid or .reqntid; 0 without them
  bool hasFixedThreads = false;
};

struct Module {
  unsigned version = 0; ///< 80 for PTX 8.0
  unsigned target = 0;  ///< 80 for sm_80
  std::deque<Variable> variables;
  std::vector<const Variable *> globals; ///< module-scope variables: global, const, shared
  std::deque<Function> functions;
  const Function *find(const std::string &name) const;
};

/// Parses a module. Throws LoadError.
Module parse(const std::string &text);

/// Returns the bytes of a type such as b32; 0 for pred and unknown types.
unsigned typeBytes(const std::string &type);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_PTX_H
