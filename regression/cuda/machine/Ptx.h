//===- Ptx.h - PTX as it is written ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// What the parser makes of a module's text. Lines count from 1.
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_PTX_H
#define TESSERA_REGRESSION_CUDA_MACHINE_PTX_H

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptx {

enum class Space : uint8_t { Register, Global, Shared, Local, Parameter, Constant, Generic };

/// Why a module is not loaded; what() begins with the line.
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
  uint64_t size = 0;            ///< bytes; 0 of an extern array
  std::vector<uint8_t> initial; ///< may be shorter than size, which zeros fill
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
  const Variable *variable = nullptr; ///< of a Name that is declared
  int64_t offset = 0;                 ///< of Address, and of `symbol+4`
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
  std::vector<const Variable *> variables; ///< all that the body declares, registers included
  std::unordered_map<std::string, std::vector<std::string>> branchTargets;
  unsigned maxThreads = 0; ///< of .maxntid or .reqntid, 0 if neither stands there
  bool hasFixedThreads = false;
};

struct Module {
  unsigned version = 0; ///< 80 for PTX 8.0
  unsigned target = 0;  ///< 80 for sm_80
  std::deque<Variable> variables;
  std::vector<const Variable *> globals; ///< module scope: global, const, shared
  std::deque<Function> functions;
  const Function *find(const std::string &name) const;
};

/// Throws LoadError.
Module parse(const std::string &text);

/// Bytes of a type such as b32; 0 of pred and of unknown ones.
unsigned typeBytes(const std::string &type);

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_PTX_H
