//===- Decoder.h - Decodes statements to instructions ---------------------===//
// SPDX-License-Identifier: Apache-2.0
// Helpers for the instruction families. A family has a table from the first word of an opcode to a function that fills
// in an Instruction or throws LoadError.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_DECODER_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_DECODER_H

#include "bmruntime/ptx_machine/Frontend/Program.h"

namespace ptx {

class Decoder;

/// One statement, split into its parts. The load fails if the family does not ask for all modifiers.
class Decoding {
public:
  Decoding(Decoder &decoder, const Statement &statement);

  const std::string &base() const { return words[0]; }
  /// Returns true if the opcode has |modifier|, and marks it as understood.
  bool has(const char *modifier);
  /// Returns the last modifier that is a type; the next call returns the one before it. Fails if there is none.
  std::string type();
  /// Like type(), but "" if there is none.
  std::string typeOrNone();
  /// Fails if a modifier was not asked for.
  void finish() const;
  [[noreturn]] void reject(const std::string &why = "is not supported by the PTX machine") const;

  size_t operands() const { return statement.operands.size(); }
  const Operand &operand(size_t index) const;

  /// Returns the register-file offset of a source operand; |type| determines its width and how literals are read.
  uint32_t source(const Operand &operand, const std::string &type);
  uint32_t source(size_t index, const std::string &type) { return source(operand(index), type); }
  /// Returns the offset of a register of any width; sets |bytes| to its width.
  uint32_t anySource(const Operand &operand, const std::string &type, uint8_t &bytes);
  uint32_t destination(const Operand &operand, unsigned bytes);
  uint32_t destination(size_t index, unsigned bytes) { return destination(operand(index), bytes); }
  uint32_t anyDestination(const Operand &operand, uint8_t &bytes);
  uint32_t predicate(const Operand &operand);
  /// Returns the offset of a predicate to read; sets |isNegated|.
  uint32_t predicateSource(const Operand &operand, bool &isNegated);
  /// Sets a, immediate and addressBytes.
  void address(const Operand &operand);
  /// Returns an operand that must be a literal.
  int64_t literal(size_t index) const;
  unsigned registerBytes(const Operand &operand) const;

  Decoder &decoder;
  const Statement &statement;
  Instruction instruction;

private:
  std::vector<std::string> words;
  std::vector<bool> understood;
};

using Decode = void (*)(Decoding &);
using DecodeTable = std::unordered_map<std::string, Decode>;

const DecodeTable &integerInstructions();
const DecodeTable &floatInstructions();
const DecodeTable &logicInstructions();
const DecodeTable &compareInstructions();
const DecodeTable &conversionInstructions();
const DecodeTable &moveInstructions();
const DecodeTable &memoryInstructions();
const DecodeTable &atomicInstructions();
const DecodeTable &asyncInstructions();
const DecodeTable &warpInstructions();
const DecodeTable &tensorInstructions();
const DecodeTable &controlInstructions();

/// Return true for float types and for signed integer types.
bool isFloatType(const std::string &type);
bool isSignedType(const std::string &type);

class Decoder {
public:
  Decoder(const Module &module, const GlobalSymbols &symbols) : module(module), symbols(symbols) {}
  Kernel run(const Function &function);

  uint32_t registerOffset(const Variable &variable);
  uint32_t constant(uint64_t bits, unsigned bytes);
  /// Returns kNone if |name| is not a special register.
  uint32_t special(const std::string &name);
  /// Returns the address of a variable in its space.
  uint64_t addressOf(const Operand &name, unsigned line);
  uint32_t newRegister(unsigned bytes);
  bool isKernelParameter(const Variable &variable) const { return parameterOffsets.count(&variable) != 0; }
  unsigned addBranchTable(const std::string &label, const Statement &statement);

  Kernel kernel;

private:
  /// The body of a function at one call: its registers, variables and labels.
  struct Frame {
    const Function *function;
    std::unordered_map<const Variable *, uint64_t> places;
    std::unordered_map<const Variable *, const Variable *> bound; ///< formal parameter to the caller's variable
    std::string prefix;                                           ///< prefix of its labels
  };
  struct Patch {
    size_t instruction;
    std::string label;
    int table;
    size_t entry;
    unsigned line;
  };

  void body(Frame &frame);
  void decodeStatement(Frame &frame, const Statement &statement);
  void call(Frame &frame, const Statement &statement);
  void branch(Frame &frame, const Statement &statement, const std::string &label);
  void append(const Instruction &instruction, const Statement &statement);
  void guard(Instruction &instruction, const Statement &statement);
  uint64_t place(Frame &frame, const Variable &variable);
  void patchBranches();
  void layParameters(const Function &function);
  void layShared(const Function &function);
  void layShared(const Operand &operand);

  const Module &module;
  const GlobalSymbols &symbols;
  Frame *frame = nullptr;
  std::unordered_map<const Variable *, uint64_t> shared; ///< shared variables -> offset
  std::unordered_map<const Variable *, uint64_t> parameterOffsets;
  std::unordered_map<std::string, uint32_t> labels;
  std::vector<Patch> patches;
  std::unordered_map<std::string, uint32_t> constants;
  std::unordered_map<int, uint32_t> specials;
  std::unordered_map<const Function *, bool> sharedSeen;
  unsigned calls = 0;
  unsigned depth = 0;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_FRONTEND_DECODER_H
