//===- Decoder.cpp - Decodes statements to instructions -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Frontend/Decoder.h"

#include <cstring>

namespace ptx {
namespace {

constexpr unsigned kMaxDepth = 32;           ///< of nested calls; deeper ones are taken for recursion
constexpr size_t kMaxInstructions = 4000000; ///< after inlining
constexpr uint8_t kPoison = 0xff;            ///< initial bytes of registers: NaN, and no valid address

const DecodeTable *const *families() {
  static const DecodeTable *const tables[] = {&integerInstructions(),
                                              &floatInstructions(),
                                              &logicInstructions(),
                                              &compareInstructions(),
                                              &conversionInstructions(),
                                              &moveInstructions(),
                                              &memoryInstructions(),
                                              &atomicInstructions(),
                                              &asyncInstructions(),
                                              &warpInstructions(),
                                              &tensorInstructions(),
                                              &controlInstructions(),
                                              nullptr};
  return tables;
}

uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return alignment < 2 ? value : (value + alignment - 1) / alignment * alignment;
}

} // namespace

uint32_t Decoder::newRegister(unsigned bytes) {
  // A predicate takes a whole cache line as well, so that every register is aligned for vectors.
  auto offset = uint32_t(kernel.file.size());
  kernel.file.resize(offset + (bytes == 0 ? 64 : bytes * kLanes), bytes == 0 ? 0 : kPoison);
  kernel.registers += bytes == 8 ? 2 : 1;
  return offset;
}

uint32_t Decoder::constant(uint64_t bits, unsigned bytes) {
  std::string key(reinterpret_cast<const char *>(&bits), bytes);
  auto [found, isNew] = constants.try_emplace(key);
  if (isNew) {
    found->second = newRegister(bytes);
    kernel.registers -= bytes == 8 ? 2 : 1;
    for (unsigned i = 0; i < kLanes; ++i) {
      std::memcpy(kernel.file.data() + found->second + i * bytes, &bits, bytes);
    }
  }
  return found->second;
}

uint32_t Decoder::special(const std::string &name) {
  static const std::unordered_map<std::string, Special> names = {{"%tid.x", Special::TidX},
                                                                 {"%tid.y", Special::TidY},
                                                                 {"%tid.z", Special::TidZ},
                                                                 {"%ntid.x", Special::NtidX},
                                                                 {"%ntid.y", Special::NtidY},
                                                                 {"%ntid.z", Special::NtidZ},
                                                                 {"%ctaid.x", Special::CtaidX},
                                                                 {"%ctaid.y", Special::CtaidY},
                                                                 {"%ctaid.z", Special::CtaidZ},
                                                                 {"%nctaid.x", Special::NctaidX},
                                                                 {"%nctaid.y", Special::NctaidY},
                                                                 {"%nctaid.z", Special::NctaidZ},
                                                                 {"%laneid", Special::Lane},
                                                                 {"%warpid", Special::WarpIndex},
                                                                 {"%nwarpid", Special::Warps},
                                                                 {"%lanemask_eq", Special::Eq},
                                                                 {"%lanemask_le", Special::Le},
                                                                 {"%lanemask_lt", Special::Lt},
                                                                 {"%lanemask_ge", Special::Ge},
                                                                 {"%lanemask_gt", Special::Gt},
                                                                 {"%smid", Special::Smid},
                                                                 {"%nsmid", Special::Nsmid},
                                                                 {"%gridid", Special::GridId},
                                                                 {"%dynamic_smem_size", Special::DynamicShared},
                                                                 {"%total_smem_size", Special::TotalShared}};
  auto found = names.find(name);
  if (found == names.end()) {
    return kNone;
  }
  auto [place, isNew] = specials.try_emplace(int(found->second));
  if (isNew) {
    place->second = newRegister(4);
    kernel.specials.push_back({found->second, place->second});
  }
  return place->second;
}

uint64_t Decoder::place(Frame &where, const Variable &variable) {
  auto [found, isNew] = where.places.try_emplace(&variable);
  if (!isNew) {
    return found->second;
  }
  if (variable.space == Space::Register) {
    found->second = newRegister(variable.type == "pred" ? 0 : std::max(2u, typeBytes(variable.type)));
  } else { // local, or a parameter of a call
    kernel.localBytes = uint32_t(alignTo(kernel.localBytes, variable.alignment));
    found->second = kernel.localBytes;
    kernel.localBytes += uint32_t(variable.size);
  }
  return found->second;
}

uint32_t Decoder::registerOffset(const Variable &variable) { return uint32_t(place(*frame, variable)); }

uint64_t Decoder::addressOf(const Operand &name, unsigned line) {
  const Variable *variable = name.variable;
  if (!variable) {
    throw LoadError(line, "'" + name.name + "' is not declared, or its address cannot be taken here");
  }
  auto bound = frame->bound.find(variable);
  variable = bound == frame->bound.end() ? variable : bound->second;
  switch (variable->space) {
  case Space::Global:
  case Space::Constant: {
    auto found = symbols.find(variable->name);
    if (found == symbols.end()) {
      throw LoadError(line, "'" + variable->name + "' is not defined");
    }
    return found->second.address;
  }
  case Space::Shared:
    return shared.at(variable);
  case Space::Parameter: {
    auto found = parameterOffsets.find(variable);
    return found != parameterOffsets.end() ? found->second : place(*frame, *variable);
  }
  default:
    return place(*frame, *variable);
  }
}

void Decoder::layParameters(const Function &function) {
  uint64_t offset = 0;
  for (const Variable *each : function.parameters) {
    offset = alignTo(offset, each->alignment);
    kernel.parameters.push_back({uint32_t(offset), uint32_t(each->size)});
    parameterOffsets[each] = offset;
    offset += each->size;
  }
  kernel.parameterBytes = uint32_t(offset);
}

void Decoder::layShared(const Operand &operand) {
  const Variable *variable = operand.variable;
  if (variable && variable->space == Space::Shared && !variable->isExternal && !shared.count(variable)) {
    kernel.sharedBytes = uint32_t(alignTo(kernel.sharedBytes, variable->alignment));
    shared[variable] = kernel.sharedBytes;
    kernel.sharedBytes += uint32_t(variable->size);
  }
  for (const Operand &each : operand.parts) {
    layShared(each);
  }
}

/// Places the shared variables that |function| and the functions it calls refer to.
void Decoder::layShared(const Function &function) {
  if (!sharedSeen.try_emplace(&function, true).second) {
    return;
  }
  for (const Statement &statement : function.statements) {
    for (const Operand &each : statement.operands) {
      layShared(each);
      const Function *callee = statement.opcode.rfind("call", 0) == 0 ? module.find(each.name) : nullptr;
      if (callee) {
        layShared(*callee);
      }
    }
  }
}

Kernel Decoder::run(const Function &function) {
  kernel.name = function.name;
  kernel.maxThreads = function.maxThreads;
  kernel.hasFixedThreads = function.hasFixedThreads;
  layParameters(function);
  layShared(function);
  for (const Variable &each : module.variables) {
    if (each.space == Space::Shared && each.isExternal) {
      shared[&each] = alignTo(kernel.sharedBytes, 16);
    }
  }
  Frame entry{&function, {}, {}, ""};
  frame = &entry;
  body(entry);
  Statement last;
  last.line = function.line;
  last.text = "end of " + function.name;
  Instruction exit;
  exit.flow = Flow::Exit;
  exit.kind = Kind::Control;
  append(exit, last);
  patchBranches();
  return std::move(kernel);
}

void Decoder::append(const Instruction &instruction, const Statement &statement) {
  if (kernel.code.size() >= kMaxInstructions) {
    throw LoadError(statement.line, "the kernel, with its calls inlined, is too long for the PTX machine");
  }
  kernel.code.push_back(instruction);
  kernel.sources.push_back({statement.line, statement.text});
}

void Decoder::body(Frame &where) {
  for (const Statement &statement : where.function->statements) {
    if (statement.opcode.empty()) {
      labels[where.prefix + statement.label] = uint32_t(kernel.code.size());
    } else {
      decodeStatement(where, statement);
    }
  }
}

void Decoder::guard(Instruction &instruction, const Statement &statement) {
  if (statement.hasGuard) {
    if (!statement.guard.variable) {
      throw LoadError(statement.line, "'" + statement.guard.name + "' is not declared");
    }
    instruction.guard = registerOffset(*statement.guard.variable);
    instruction.guardNegated = statement.guard.isNegated;
  }
}

void Decoder::decodeStatement(Frame &where, const Statement &statement) {
  std::string base = statement.opcode.substr(0, statement.opcode.find('.'));
  if (base == "call") {
    return call(where, statement);
  }
  if (base == "bra" && statement.operands.size() == 1) {
    return branch(where, statement, where.prefix + statement.operands[0].name);
  }
  if (base == "ret" && !where.prefix.empty()) {
    return branch(where, statement, where.prefix);
  }
  for (const DecodeTable *const *family = families(); *family; ++family) {
    auto found = (*family)->find(base);
    if (found != (*family)->end()) {
      Decoding decoding(*this, statement);
      guard(decoding.instruction, statement);
      found->second(decoding);
      decoding.finish();
      append(decoding.instruction, statement);
      return;
    }
  }
  throw LoadError(statement.line,
                  "instruction '" + statement.opcode + "' is not supported by the PTX machine: " + statement.text);
}

void Decoder::branch(Frame &, const Statement &statement, const std::string &label) {
  Instruction instruction;
  guard(instruction, statement);
  instruction.flow = Flow::Branch;
  instruction.kind = Kind::Control;
  patches.push_back({kernel.code.size(), label, -1, 0, statement.line});
  append(instruction, statement);
}

unsigned Decoder::addBranchTable(const std::string &label, const Statement &statement) {
  auto found = frame->function->branchTargets.find(label);
  if (found == frame->function->branchTargets.end()) {
    throw LoadError(statement.line, "no .branchtargets '" + label + "'");
  }
  int table = int(kernel.branchTables.size());
  kernel.branchTables.emplace_back(found->second.size());
  for (size_t i = 0; i < found->second.size(); ++i) {
    patches.push_back({0, frame->prefix + found->second[i], table, i, statement.line});
  }
  return unsigned(table);
}

void Decoder::patchBranches() {
  for (const Patch &each : patches) {
    auto found = labels.find(each.label);
    if (found == labels.end()) {
      throw LoadError(each.line, "no label '" + each.label + "'");
    }
    if (each.table >= 0) {
      kernel.branchTables[size_t(each.table)][each.entry] = found->second;
    } else {
      kernel.code[each.instruction].target = found->second;
    }
  }
}

/// Inlines the callee; its parameters become the caller's variables.
void Decoder::call(Frame &where, const Statement &statement) {
  auto reject = [&](const std::string &why) { throw LoadError(statement.line, why + ": " + statement.text); };
  std::vector<const Operand *> results, arguments;
  const Function *callee = nullptr;
  for (const Operand &each : statement.operands) {
    if (each.kind == Operand::List) {
      for (const Operand &part : each.parts) {
        (callee ? arguments : results).push_back(&part);
      }
    } else if (!callee) {
      callee = module.find(each.name);
      if (!callee || !callee->hasBody) {
        reject("the function called is not defined in this module, or only known at run time");
      }
    }
  }
  if (statement.hasGuard) {
    reject("a predicated call is not supported by the PTX machine");
  }
  if (++depth > kMaxDepth) {
    reject("calls are nested too deeply, or recursive");
  }
  Frame inner{callee, {}, {}, "#" + std::to_string(++calls) + ":"};
  auto bind = [&](const std::vector<const Variable *> &formal, const std::vector<const Operand *> &actual) {
    if (formal.size() != actual.size()) {
      reject("the number of arguments differs from the function's");
    }
    for (size_t i = 0; i < formal.size(); ++i) {
      const Variable *variable = actual[i]->variable;
      if (!variable || variable->space != Space::Parameter || formal[i]->space != Space::Parameter) {
        reject("only .param arguments are supported by the PTX machine");
      }
      auto bound = where.bound.find(variable);
      variable = bound == where.bound.end() ? variable : bound->second;
      // Both share one place: the inner frame finds the caller's.
      inner.bound[formal[i]] = variable;
      inner.places[variable] = place(where, *variable);
    }
  };
  bind(callee->results, results);
  bind(callee->parameters, arguments);
  frame = &inner;
  body(inner);
  labels[inner.prefix] = uint32_t(kernel.code.size());
  frame = &where;
  --depth;
}

Kernel decode(const Module &module, const Function &function, const GlobalSymbols &symbols) {
  return Decoder(module, symbols).run(function);
}

} // namespace ptx
