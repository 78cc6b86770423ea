//===- CommandOp.cpp - Commands as text -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Commands are printed and parsed by the tables of the instruction set, so new commands need no changes here.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/IR/NpuOps.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tessera::npu;
namespace hw = bmodel::npu;

namespace {

enum class Kind : uint8_t { u8, u16, i16, u32, f32, function };

size_t sizeOf(Kind kind) {
  return kind == Kind::u8 || kind == Kind::function ? 1 : kind == Kind::u32 || kind == Kind::f32 ? 4 : 2;
}

/// Consecutive numbers within a field.
struct Member {
  const char *name;
  Kind kind;
  size_t offset, count;
};

const Member kWindow[] = {{"kernel", Kind::u8, offsetof(hw::Window, kernel), 2},
                          {"step", Kind::u8, offsetof(hw::Window, step), 2},
                          {"dilation", Kind::u8, offsetof(hw::Window, dilation), 2},
                          {"spread", Kind::u8, offsetof(hw::Window, spread), 2},
                          {"padding", Kind::i16, offsetof(hw::Window, padding), 2},
                          {"pad_value", Kind::i16, offsetof(hw::Window, padValue), 1}};
const Member kOutput[] = {{"function", Kind::function, offsetof(hw::Output, function), 1},
                          {"flags", Kind::u8, offsetof(hw::Output, flags), 1},
                          {"residual_zero", Kind::i16, offsetof(hw::Output, residualZero), 1},
                          {"factor", Kind::f32, offsetof(hw::Output, factor), 1},
                          {"residual_scale", Kind::f32, offsetof(hw::Output, residualScale), 1},
                          {"alpha", Kind::f32, offsetof(hw::Output, alpha), 1},
                          {"lower", Kind::f32, offsetof(hw::Output, lower), 1},
                          {"upper", Kind::f32, offsetof(hw::Output, upper), 1},
                          {"divisor", Kind::f32, offsetof(hw::Output, divisor), 1},
                          {"zero_point", Kind::f32, offsetof(hw::Output, zeroPoint), 1}};
const char *const kFunctions[] = {"none", "relu", "leakyRelu",   "sigmoid",   "silu",
                                  "tanh", "gelu", "hardSigmoid", "hardSwish", "exp"};

/// Layout of a field: a struct with members, or plain numbers.
struct Layout {
  ArrayRef<Member> members; ///< empty for a number of |kind|, or a list of |count| numbers
  Kind kind;
  size_t count;
  std::vector<char> defaults;
};

template <typename Struct>
std::vector<char> bytesOf(const Struct &value) {
  return {reinterpret_cast<const char *>(&value), reinterpret_cast<const char *>(&value) + sizeof value};
}

Layout layoutOf(StringRef type) {
  if (type == "Window") {
    return {kWindow, Kind::u8, 0, bytesOf(hw::Window())};
  }
  if (type == "Output") {
    return {kOutput, Kind::u8, 0, bytesOf(hw::Output())};
  }
  if (type == "Shape") {
    return {{}, Kind::u32, 4, bytesOf(hw::Shape())};
  }
  Kind kind = type == "u8" ? Kind::u8 : type == "u16" ? Kind::u16 : Kind::u32;
  return {{}, kind, 1, std::vector<char>(::sizeOf(kind), 0)};
}

const hw::CommandText *findByName(StringRef name) {
  auto found = llvm::find_if(hw::commandTexts(), [&](const hw::CommandText &each) { return name == each.name; });
  return found == hw::commandTexts().end() ? nullptr : &*found;
}

std::optional<hw::Type> typeNamed(StringRef name) {
  for (unsigned type = 0; type <= unsigned(hw::Type::f32); ++type) {
    if (name == hw::nameOf(hw::Type(type))) {
      return hw::Type(type);
    }
  }
  return std::nullopt;
}

//--- Printing ---

void printNumber(OpAsmPrinter &printer, const unsigned char *at, Kind kind) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, ::sizeOf(kind));
  if (kind == Kind::f32) {
    printer.printFloat(APFloat(APFloat::IEEEsingle(), APInt(32, bits)));
  } else if (kind == Kind::function && bits < std::size(kFunctions)) {
    printer << kFunctions[bits];
  } else if (kind == Kind::i16) {
    printer << int16_t(bits);
  } else {
    printer << bits;
  }
}

void printNumbers(OpAsmPrinter &printer, const unsigned char *at, Kind kind, size_t count) {
  if (count == 1) {
    printNumber(printer, at, kind);
    return;
  }
  printer << "[";
  for (size_t i = 0; i < count; ++i) {
    printer << (i ? ", " : "");
    printNumber(printer, at + i * ::sizeOf(kind), kind);
  }
  printer << "]";
}

void printMembers(OpAsmPrinter &printer, const unsigned char *at, const Layout &layout) {
  printer << "{";
  StringRef separator = "";
  for (const Member &member : layout.members) {
    if (std::memcmp(at + member.offset, &layout.defaults[member.offset], member.count * ::sizeOf(member.kind)) != 0) {
      printer << separator << member.name << " = ";
      printNumbers(printer, at + member.offset, member.kind, member.count);
      separator = ", ";
    }
  }
  printer << "}";
}

void printTensor(OpAsmPrinter &printer, const hw::Tensor &tensor, Value memory) {
  printer << memory << "[" << int64_t(tensor.offset) << "] : " << hw::nameOf(tensor.type) << " [";
  llvm::interleaveComma(tensor.strides, printer);
  printer << "]";
  if (tensor.lane) {
    printer << " lane " << tensor.lane;
  }
}

//--- Parsing ---

class Reader {
public:
  Reader(OpAsmParser &parser, hw::Descriptor &command) : parser(parser), command(command) {}

  ParseResult fields(const hw::CommandText &text);
  SmallVector<OpAsmParser::UnresolvedOperand> memories;

private:
  ParseResult number(unsigned char *at, Kind kind);
  ParseResult numbers(unsigned char *at, Kind kind, size_t count);
  ParseResult members(unsigned char *at, const Layout &layout);
  ParseResult tensor(unsigned char *at);
  ParseResult field(const hw::FieldText &field);

  OpAsmParser &parser;
  hw::Descriptor &command;
};

ParseResult Reader::number(unsigned char *at, Kind kind) {
  SMLoc place = parser.getCurrentLocation();
  if (kind == Kind::f32) {
    APFloat value(0.0f);
    if (parser.parseFloat(APFloat::IEEEsingle(), value)) {
      return failure();
    }
    auto bits = uint32_t(value.bitcastToAPInt().getZExtValue());
    std::memcpy(at, &bits, sizeof bits);
    return success();
  }
  if (kind == Kind::function) {
    StringRef name;
    if (parser.parseKeyword(&name)) {
      return failure();
    }
    auto found = llvm::find(kFunctions, name);
    *at = uint8_t(found - std::begin(kFunctions));
    return found == std::end(kFunctions) ? parser.emitError(place) << "unknown function '" << name << "'"
                                         : ParseResult();
  }
  int64_t value = 0;
  if (parser.parseInteger(value)) {
    return failure();
  }
  int64_t most = (int64_t(1) << (8 * ::sizeOf(kind) - (kind == Kind::i16 ? 1 : 0))) - 1;
  if (value > most || value < (kind == Kind::i16 ? -most - 1 : 0)) {
    return parser.emitError(place) << value << " does not fit its field";
  }
  std::memcpy(at, &value, ::sizeOf(kind));
  return success();
}

ParseResult Reader::numbers(unsigned char *at, Kind kind, size_t count) {
  if (count == 1) {
    return number(at, kind);
  }
  SMLoc place = parser.getCurrentLocation();
  size_t read = 0;
  auto each = [&]() -> ParseResult {
    return read < count ? number(at + read++ * ::sizeOf(kind), kind) : parser.emitError(place) << "too many numbers";
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, each)) {
    return failure();
  }
  return read == count ? ParseResult() : parser.emitError(place) << "expected " << count << " numbers";
}

ParseResult Reader::members(unsigned char *at, const Layout &layout) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Braces, [&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual()) {
      return failure();
    }
    const Member *member = llvm::find_if(layout.members, [&](const Member &each) { return name == each.name; });
    return member == layout.members.end() ? parser.emitError(place) << "unknown field '" << name << "'"
                                          : numbers(at + member->offset, member->kind, member->count);
  });
}

ParseResult Reader::tensor(unsigned char *at) {
  hw::Tensor tensor;
  tensor.region = hw::Region::local;
  int64_t offset = 0;
  StringRef type;
  if (parser.parseOperand(memories.emplace_back()) || parser.parseLSquare() || parser.parseInteger(offset) ||
      parser.parseRSquare() || parser.parseColon()) {
    return failure();
  }
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseKeyword(&type)) {
    return failure();
  }
  std::optional<hw::Type> known = typeNamed(type);
  if (!known) {
    return parser.emitError(place) << "unknown element type '" << type << "'";
  }
  size_t read = 0;
  auto stride = [&]() -> ParseResult {
    return read < 4 ? parser.parseInteger(tensor.strides[read++])
                    : ParseResult(parser.emitError(place) << "too many strides");
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, stride)) {
    return failure();
  }
  if (read != 4) {
    return parser.emitError(place) << "expected the strides of n, c, h, w";
  }
  if (succeeded(parser.parseOptionalKeyword("lane")) &&
      number(reinterpret_cast<unsigned char *>(&tensor.lane), Kind::u16)) {
    return failure();
  }
  tensor.offset = uint64_t(offset), tensor.type = *known;
  std::memcpy(at, &tensor, sizeof tensor);
  return success();
}

ParseResult Reader::field(const hw::FieldText &field) {
  unsigned char *at = command.body + field.offset;
  if (StringRef(field.type) == "Tensor") {
    return tensor(at);
  }
  Layout layout = layoutOf(field.type);
  return layout.members.empty() ? numbers(at, layout.kind, layout.count) : members(at, layout);
}

/// Parses fields in their order. Fields with default values may be omitted.
ParseResult Reader::fields(const hw::CommandText &text) {
  size_t next = 0;
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual()) {
      return failure();
    }
    while (next < text.fields.size() && name != text.fields[next].name) {
      ++next;
    }
    return next == text.fields.size()
               ? ParseResult(parser.emitError(place)
                             << "'" << text.name << "' does not have a field '" << name << "' here")
               : field(text.fields[next++]);
  });
}

/// Returns a command whose fields all have their defaults.
hw::Descriptor defaultsOf(const hw::CommandText &text) {
  hw::Descriptor result;
  result.header.opcode = text.opcode;
  for (const hw::FieldText &field : text.fields) {
    std::vector<char> defaults =
        StringRef(field.type) == "Tensor" ? bytesOf(hw::Tensor()) : layoutOf(field.type).defaults;
    std::memcpy(result.body + field.offset, defaults.data(), defaults.size());
  }
  return result;
}

} // namespace

void CommandOp::print(OpAsmPrinter &printer) {
  hw::Descriptor command = getDescriptor();
  const hw::CommandText &text = *hw::findCommand(command.header.opcode);
  printer << " " << text.name;
  StringRef separator = " ";
  unsigned memory = 0;
  for (const hw::FieldText &field : text.fields) {
    const unsigned char *at = command.body + field.offset;
    hw::Tensor tensor;
    bool isTensor = StringRef(field.type) == "Tensor";
    std::memcpy(&tensor, at, isTensor ? sizeof tensor : 0);
    Layout layout = isTensor ? Layout() : layoutOf(field.type);
    if (isTensor ? tensor.region == hw::Region::none
                 : std::memcmp(at, layout.defaults.data(), layout.defaults.size()) == 0) {
      continue;
    }
    printer << separator << field.name << " = ";
    separator = ", ";
    if (isTensor) {
      printTensor(printer, tensor, getMemories()[memory++]);
    } else if (layout.members.empty()) {
      printNumbers(printer, at, layout.kind, layout.count);
    } else {
      printMembers(printer, at, layout);
    }
  }
  printer << " layer " << command.header.layer;
  if (command.header.id) {
    printer << " id " << command.header.id << " wait " << command.header.wait;
  }
  printer.printOptionalAttrDict((*this)->getDiscardableAttrDictionary().getValue());
}

ParseResult CommandOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc place = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name)) {
    return failure();
  }
  const hw::CommandText *text = findByName(name);
  if (!text) {
    return parser.emitError(place) << "the NPU does not have a command '" << name << "'";
  }
  hw::Descriptor command = defaultsOf(*text);
  Reader reader(parser, command);
  uint32_t &layer = command.header.layer, &id = command.header.id, &wait = command.header.wait;
  if (reader.fields(*text) || parser.parseKeyword("layer") || parser.parseInteger(layer)) {
    return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("id")) &&
      (parser.parseInteger(id) || parser.parseKeyword("wait") || parser.parseInteger(wait))) {
    return failure();
  }
  result.getOrAddProperties<Properties>().code.descriptor = command;
  Type memory = MemoryType::get(parser.getContext());
  return failure(parser.parseOptionalAttrDict(result.attributes) ||
                 parser.resolveOperands(reader.memories, memory, result.operands));
}

Attribute CommandCode::toAttribute(MLIRContext *context) const {
  return DenseI8ArrayAttr::get(context, ArrayRef(reinterpret_cast<const int8_t *>(&descriptor), sizeof descriptor));
}

LogicalResult CommandCode::fromAttribute(CommandCode &code, Attribute attribute,
                                         function_ref<InFlightDiagnostic()> emitError) {
  auto array = dyn_cast_or_null<DenseI8ArrayAttr>(attribute);
  if (!array || array.size() != int64_t(sizeof code.descriptor)) {
    return emitError() << "a command must have " << sizeof code.descriptor << " bytes";
  }
  std::memcpy(&code.descriptor, array.asArrayRef().data(), sizeof code.descriptor);
  return success();
}
