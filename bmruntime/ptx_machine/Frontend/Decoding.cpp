//===- Decoding.cpp - The parts of a statement ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Frontend/Decoder.h"

#include <cstring>

namespace ptx {

bool isFloatType(const std::string &type) {
  return type[0] == 'f' || type[0] == 'b' ? type[0] == 'f' || type.rfind("bf", 0) == 0 : type == "tf32";
}
bool isSignedType(const std::string &type) { return type[0] == 's'; }

Decoding::Decoding(Decoder &decoder, const Statement &statement) : decoder(decoder), statement(statement) {
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = statement.opcode.find('.', begin);
    words.push_back(statement.opcode.substr(begin, end - begin));
  }
  understood.resize(words.size());
  understood[0] = true;
}

void Decoding::reject(const std::string &why) const {
  throw LoadError(statement.line, "instruction '" + statement.opcode + "' " + why + ": " + statement.text);
}

bool Decoding::has(const char *modifier) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == modifier) {
      understood[i] = true;
      return true;
    }
  }
  return false;
}

std::string Decoding::typeOrNone() {
  for (size_t i = words.size(); i-- > 1;) {
    if (!understood[i] && (typeBytes(words[i]) != 0 || words[i] == "pred")) {
      understood[i] = true;
      return words[i];
    }
  }
  return "";
}

std::string Decoding::type() {
  std::string result = typeOrNone();
  if (result.empty()) {
    reject("does not have a known type");
  }
  return result;
}

void Decoding::finish() const {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!understood[i]) {
      reject("is not supported by the PTX machine because of '." + words[i] + "'");
    }
  }
}

const Operand &Decoding::operand(size_t index) const {
  if (index >= statement.operands.size()) {
    reject("has too few operands");
  }
  return statement.operands[index];
}

unsigned Decoding::registerBytes(const Operand &operand) const {
  if (!operand.variable || operand.variable->space != Space::Register || operand.variable->type == "pred") {
    reject("expects a register instead of '" + operand.name + "'");
  }
  return std::max(2u, typeBytes(operand.variable->type));
}

uint32_t Decoding::anySource(const Operand &operand, const std::string &type, uint8_t &bytes) {
  bytes = uint8_t(std::max(2u, typeBytes(type)));
  switch (operand.kind) {
  case Operand::Integer:
    if (isFloatType(type)) {
      // f16 literals are written as integers of their bits; f32 and f64 literals have separate forms.
      if (typeBytes(type) > 2 && type != "f16x2" && type != "bf16x2" && type != "tf32") {
        double value = double(int64_t(operand.bits));
        auto single = float(value);
        uint64_t bits = 0;
        std::memcpy(&bits, bytes == 4 ? static_cast<void *>(&single) : &value, bytes);
        return decoder.constant(bits, bytes);
      }
    }
    return decoder.constant(operand.bits, bytes);
  case Operand::Single:
    return decoder.constant(operand.bits, 4);
  case Operand::Double:
    if (bytes == 4) {
      double value = 0;
      std::memcpy(&value, &operand.bits, 8);
      auto single = float(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, 4);
      return decoder.constant(bits, 4);
    }
    return decoder.constant(operand.bits, 8);
  case Operand::Name:
    break;
  default:
    reject("has an operand that is not understood");
  }
  if (operand.variable && operand.variable->space == Space::Register) {
    bytes = uint8_t(registerBytes(operand));
    return decoder.registerOffset(*operand.variable);
  }
  if (!operand.variable) {
    uint32_t special = operand.name == "WARP_SZ" ? decoder.constant(32, 4) : decoder.special(operand.name);
    if (special != kNone) {
      bytes = 4;
      return special;
    }
    reject("names '" + operand.name + "', which the PTX machine does not know");
  }
  return decoder.constant(decoder.addressOf(operand, statement.line) + uint64_t(operand.offset), bytes);
}

uint32_t Decoding::source(const Operand &operand, const std::string &type) {
  uint8_t bytes = 0;
  uint32_t result = anySource(operand, type, bytes);
  if (bytes != std::max(2u, typeBytes(type))) {
    reject("expects " + std::to_string(8 * typeBytes(type)) + " bits in '" + operand.name + "'");
  }
  return result;
}

uint32_t Decoding::anyDestination(const Operand &operand, uint8_t &bytes) {
  if (operand.kind == Operand::Sink) {
    return decoder.newRegister(bytes == 0 ? 8 : bytes);
  }
  bytes = uint8_t(registerBytes(operand));
  return decoder.registerOffset(*operand.variable);
}

uint32_t Decoding::destination(const Operand &operand, unsigned bytes) {
  auto wanted = uint8_t(std::max(2u, bytes)), got = wanted;
  uint32_t result = anyDestination(operand, got);
  if (got != wanted) {
    reject("expects " + std::to_string(8 * bytes) + " bits in '" + operand.name + "'");
  }
  return result;
}

uint32_t Decoding::predicate(const Operand &operand) {
  if (operand.kind == Operand::Sink) {
    return decoder.newRegister(0);
  }
  if (!operand.variable || operand.variable->type != "pred") {
    reject("expects a predicate instead of '" + operand.name + "'");
  }
  return decoder.registerOffset(*operand.variable);
}

uint32_t Decoding::predicateSource(const Operand &operand, bool &isNegated) {
  isNegated = operand.isNegated;
  if (operand.kind ==
      Operand::Integer) { // constants are as wide as words, so a predicate of all lanes is its first one
    return decoder.constant(operand.bits != 0 ? ~0u : 0, 4);
  }
  return predicate(operand);
}

int64_t Decoding::literal(size_t index) const {
  const Operand &each = operand(index);
  if (each.kind != Operand::Integer) {
    reject("expects a literal number");
  }
  return int64_t(each.bits);
}

void Decoding::address(const Operand &operand) {
  if (operand.kind != Operand::Address || operand.parts.size() != 1) {
    reject("expects an address");
  }
  const Operand &base = operand.parts[0];
  instruction.immediate = operand.offset;
  if (base.variable && base.variable->space == Space::Register) {
    instruction.a = anySource(base, "b64", instruction.addressBytes);
    return;
  }
  instruction.addressBytes = 8;
  if (base.kind == Operand::Integer) {
    instruction.a = decoder.constant(base.bits, 8);
  } else {
    instruction.a = decoder.constant(decoder.addressOf(base, statement.line), 8);
  }
}

} // namespace ptx
