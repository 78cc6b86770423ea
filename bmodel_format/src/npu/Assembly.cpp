// SPDX-License-Identifier: Apache-2.0
//===- Assembly.cpp - Commands of the NPU as text --------------------------===//
//
// Example: conv id=3 wait=2 layer=7 y=local:0x40/l0/i8/0,64,8,1 shape=1,32,8,8 window=k3,3/s1,1/p1,1 output=relu/f0.5
// A value consists of parts separated by slashes, each a word or a letter followed by numbers. Parts with their default
// value are omitted.
//
//===----------------------------------------------------------------------===//
#include "bmodel/npu/isa.h"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <type_traits>

namespace bmodel::npu {
namespace {

constexpr const char *kTypes[] = {"i8", "u8", "i16", "i32", "bf16", "f16", "f32"};
constexpr const char *kFunctions[] = {"none", "relu", "leakyRelu",   "sigmoid",   "silu",
                                      "tanh", "gelu", "hardSigmoid", "hardSwish", "exp"};
constexpr const char *kRegions[] = {"none", "local", "constants", "workspace"};

//--- Writing ---

[[gnu::format(printf, 1, 2)]] std::string format(const char *form, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

std::string write(const Tensor &t) {
  std::string region =
      t.region >= Region::io ? format("io%d", int(t.region) - int(Region::io)) : kRegions[int(t.region) & 3];
  return region + format(":0x%llx/l%u/%s/%d,%d,%d,%d", static_cast<unsigned long long>(t.offset), t.lane,
                         nameOf(t.type), t.strides[0], t.strides[1], t.strides[2], t.strides[3]);
}

std::string write(const Shape &s) { return format("%u,%u,%u,%u", s.dims[0], s.dims[1], s.dims[2], s.dims[3]); }

std::string write(const Window &w) {
  return format("k%u,%u/s%u,%u/d%u,%u/x%u,%u/p%d,%d/v%d", w.kernel[0], w.kernel[1], w.step[0], w.step[1], w.dilation[0],
                w.dilation[1], w.spread[0], w.spread[1], w.padding[0], w.padding[1], w.padValue);
}

std::string write(const Output &o) {
  return format("%s/g%u/r%d/", kFunctions[int(o.function)], o.flags, o.residualZero) +
         format("f%.9g/e%.9g/a%.9g/", double(o.factor), double(o.residualScale), double(o.alpha)) +
         format("m%.9g,%.9g/q%.9g/z%.9g", double(o.lower), double(o.upper), double(o.divisor), double(o.zeroPoint));
}

template <typename Number>
std::string write(Number value) {
  return std::to_string(value);
}

//--- Reading ---

/// A parser of a text. After the first mismatch, every later call fails as well.
class Reader {
public:
  explicit Reader(std::string_view text) : left(text) {}

  bool word(std::string_view expected) {
    good = good && left.substr(0, expected.size()) == expected;
    left.remove_prefix(good ? expected.size() : 0);
    return good;
  }
  /// Consumes one of `names`, which must extend to the next `end`; returns its index.
  template <size_t count>
  int oneOf(const char *const (&names)[count], char end) {
    std::string_view found = left.substr(0, left.find(end));
    for (size_t i = 0; good && i < count; ++i) {
      if (found == names[i]) {
        left.remove_prefix(found.size());
        return int(i);
      }
    }
    good = false;
    return 0;
  }
  template <typename T>
  void number(T &out, int base = 10) {
    if constexpr (std::is_floating_point_v<T>) {
      auto [end, fault] = std::from_chars(left.data(), left.data() + left.size(), out);
      take(end, fault);
    } else {
      auto [end, fault] = std::from_chars(left.data(), left.data() + left.size(), out, base);
      take(end, fault);
    }
  }
  template <typename T>
  void list(const char *begin, T *out, int count) {
    for (int i = 0; i < count; ++i) {
      word(i ? "," : begin);
      number(out[i]);
    }
  }
  bool finished() const { return good && left.empty(); }

private:
  void take(const char *end, std::errc fault) {
    good = good && fault == std::errc();
    left.remove_prefix(good ? end - left.data() : 0);
  }
  std::string_view left;
  bool good = true;
};

bool read(Reader &reader, Tensor &t) {
  if (Reader io = reader; io.word("io")) {
    uint8_t index = 0;
    io.number(index);
    t.region = Region(int(Region::io) + index);
    reader = io;
  } else {
    t.region = Region(reader.oneOf(kRegions, ':'));
  }
  reader.word(":0x");
  reader.number(t.offset, 16);
  reader.word("/l");
  reader.number(t.lane);
  reader.word("/");
  t.type = Type(reader.oneOf(kTypes, '/'));
  reader.list("/", t.strides, 4);
  return reader.finished();
}

bool read(Reader &reader, Shape &s) {
  reader.list("", s.dims, 4);
  return reader.finished();
}

bool read(Reader &reader, Window &w) {
  reader.list("k", w.kernel, 2);
  reader.list("/s", w.step, 2);
  reader.list("/d", w.dilation, 2);
  reader.list("/x", w.spread, 2);
  reader.list("/p", w.padding, 2);
  reader.word("/v");
  reader.number(w.padValue);
  return reader.finished();
}

bool read(Reader &reader, Output &o) {
  o.function = Function(reader.oneOf(kFunctions, '/'));
  reader.list("/g", &o.flags, 1);
  reader.list("/r", &o.residualZero, 1);
  reader.list("/f", &o.factor, 1);
  reader.list("/e", &o.residualScale, 1);
  reader.list("/a", &o.alpha, 1);
  float limits[2] = {};
  reader.list("/m", limits, 2);
  o.lower = limits[0], o.upper = limits[1];
  reader.list("/q", &o.divisor, 1);
  reader.list("/z", &o.zeroPoint, 1);
  return reader.finished();
}

template <typename Number>
bool read(Reader &reader, Number &value) {
  reader.number(value);
  return reader.finished();
}

//--- Fields ---

/// Calls visit with a value of the field's C++ type.
template <typename Visit>
bool visitField(std::string_view type, Visit visit) {
  return type == "Tensor"   ? visit(Tensor())
         : type == "Shape"  ? visit(Shape())
         : type == "Window" ? visit(Window())
         : type == "Output" ? visit(Output())
         : type == "u8"     ? visit(uint8_t())
         : type == "u16"    ? visit(uint16_t())
                            : visit(uint32_t());
}

} // namespace

const char *nameOf(Type type) { return size_t(type) < std::size(kTypes) ? kTypes[int(type)] : "?"; }

std::string disassemble(const Descriptor &command) {
  const CommandText *text = findCommand(command.header.opcode);
  if (!text) {
    return format("? opcode=%d", int(command.header.opcode));
  }
  std::string line =
      text->name + format(" id=%u wait=%u layer=%u", command.header.id, command.header.wait, command.header.layer);
  for (const FieldText &field : text->fields) {
    visitField(field.type, [&](auto value) {
      decltype(value) fresh{};
      std::memcpy(&value, command.body + field.offset, sizeof value);
      if (std::memcmp(&value, &fresh, sizeof value) != 0) {
        line += std::string(" ") + field.name + "=" + write(value);
      }
      return true;
    });
  }
  return line;
}

namespace {

/// Returns a command with default fields, which apply to the fields that a line omits.
Descriptor freshCommand(Opcode opcode) {
  switch (opcode) {
#define NPU_COMMAND(name, number, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    return encode(name##_command());
#include "bmodel/npu/isa.inc"
  }
  return {};
}

bool assignHeader(std::string_view name, std::string_view value, Header &header, bool &known) {
  uint32_t *field = name == "id"      ? &header.id
                    : name == "wait"  ? &header.wait
                    : name == "layer" ? &header.layer
                                      : nullptr;
  known = field != nullptr;
  Reader reader(value);
  return known && read(reader, *field);
}

} // namespace

bool assemble(std::string_view line, Descriptor &command, Status &status) {
  size_t end = std::min(line.find(' '), line.size());
  const CommandText *text = nullptr;
  for (const CommandText &each : commandTexts()) {
    text = line.substr(0, end) == each.name ? &each : text;
  }
  if (!text) {
    return BMODEL_FAIL(status, Corrupt, "unknown command '%.*s'", int(end), line.data());
  }
  command = freshCommand(text->opcode);
  while (end < line.size()) {
    size_t begin = end + 1;
    end = std::min(line.find(' ', begin), line.size());
    std::string_view entry = line.substr(begin, end - begin);
    size_t equals = std::min(entry.find('='), entry.size());
    std::string_view name = entry.substr(0, equals), value = entry.substr(std::min(equals + 1, entry.size()));
    bool known = false, good = assignHeader(name, value, command.header, known);
    for (const FieldText &field : text->fields) {
      if (name == field.name) {
        known = true;
        good = visitField(field.type, [&](auto fresh) {
          Reader reader(value);
          bool whole = read(reader, fresh);
          std::memcpy(command.body + field.offset, &fresh, sizeof fresh);
          return whole;
        });
      }
    }
    if (!known || !good) {
      return BMODEL_FAIL(status, Corrupt,
                         known ? "%s: '%.*s' is not a valid value of its field" : "%s has no field '%.*s'", text->name,
                         int(entry.size()), entry.data());
    }
  }
  return true;
}

} // namespace bmodel::npu
