// SPDX-License-Identifier: Apache-2.0
//===- Isa.cpp - Commands of the NPU: encoding and checks ------------------===//
#include "bmodel/npu/isa.h"

namespace bmodel::npu {

#define NPU_COMMAND(name, number, queue, meaning)                                                                      \
  Descriptor encode(const name##_command &command) {                                                                   \
    using Command = name##_command;                                                                                    \
    Descriptor result;                                                                                                 \
    result.header.opcode = Opcode::name;
#define NPU_FIELD(command_, type, name, meaning)                                                                       \
  std::memcpy(result.body + offsetof(Command, name), &command.name, sizeof command.name);
#define NPU_END(name)                                                                                                  \
  return result;                                                                                                       \
  }
#include "bmodel/npu/isa.inc"

const std::vector<CommandText> &commandTexts() {
  static const std::vector<CommandText> texts = [] {
    std::vector<CommandText> result;
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  {                                                                                                                    \
    using Command = name##_command;                                                                                    \
    result.push_back({Opcode::name, Queue::queue, #name, meaning, {}});
#define NPU_FIELD(command, type, name, meaning)                                                                        \
  result.back().fields.push_back({#type, #name, meaning, offsetof(Command, name), sizeof(Command::name)});
#define NPU_END(name) }
#include "bmodel/npu/isa.inc"
    return result;
  }();
  return texts;
}

const CommandText *findCommand(Opcode opcode) {
  for (const CommandText &text : commandTexts()) {
    if (text.opcode == opcode) {
      return &text;
    }
  }
  return nullptr;
}

size_t sizeOf(Type type) {
  switch (type) {
  case Type::i8:
  case Type::u8:
    return 1;
  case Type::i16:
  case Type::bf16:
  case Type::f16:
    return 2;
  case Type::i32:
  case Type::f32:
    return 4;
  }
  return 0;
}

bool isFloat(Type type) { return type == Type::bf16 || type == Type::f16 || type == Type::f32; }

namespace {

/// Returns a fault if a tensor field has a value that this ISA version does not define.
const char *faultOf(const Tensor &tensor) {
  if (tensor.region > Region::workspace && tensor.region < Region::io) {
    return "region is unknown";
  }
  return tensor.type > Type::f32 ? "type is unknown" : tensor.reserved ? "reserved bytes are not 0" : nullptr;
}

const char *faultOf(const Window &window) {
  for (int axis = 0; axis < 2; ++axis) {
    if (!window.kernel[axis] || !window.step[axis] || !window.dilation[axis] || !window.spread[axis]) {
      return "kernel, step, dilation or spread is 0";
    }
  }
  for (uint16_t each : window.reserved) {
    if (each) {
      return "reserved bytes are not 0";
    }
  }
  return nullptr;
}

const char *faultOf(const Output &output) {
  return output.function > Function::exp ? "function is unknown" : nullptr; // all flags are known
}

const char *faultOf(const Shape &shape) {
  for (uint32_t dim : shape.dims) {
    if (!dim) {
      return "a dim is 0";
    }
  }
  return nullptr;
}

template <typename Number>
const char *faultOf(Number) {
  return nullptr;
}

template <typename T>
const char *faultAt(const Descriptor &command, size_t offset) {
  T value;
  std::memcpy(&value, command.body + offset, sizeof value);
  return faultOf(value);
}

/// Returns what is wrong with a field, or null.
const char *faultIn(const Descriptor &command, const FieldText &field) {
  std::string_view type = field.type;
  return type == "Tensor"   ? faultAt<Tensor>(command, field.offset)
         : type == "Shape"  ? faultAt<Shape>(command, field.offset)
         : type == "Window" ? faultAt<Window>(command, field.offset)
         : type == "Output" ? faultAt<Output>(command, field.offset)
                            : nullptr;
}

/// Returns true if the bytes between and after the fields are 0.
bool hasOnlyFields(const Descriptor &command, const CommandText &text) {
  Descriptor rest = command;
  for (const FieldText &field : text.fields) {
    std::memset(rest.body + field.offset, 0, field.size);
  }
  for (unsigned char byte : rest.body) {
    if (byte) {
      return false;
    }
  }
  return !(rest.header.reserved[0] | rest.header.reserved[1] | rest.header.reserved[2]);
}

} // namespace

bool verifyStream(const Descriptor *commands, size_t count, Status &status) {
  uint32_t last[2] = {0, 0}; // by queue
  for (size_t i = 0; i < count; ++i) {
    const Header &header = commands[i].header;
    const CommandText *text = findCommand(header.opcode);
    if (!text) {
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu: unknown opcode %d", i, int(header.opcode));
    }
    if (!hasOnlyFields(commands[i], *text)) {
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): bytes outside the fields are not 0", i, text->name);
    }
    uint32_t &own = last[int(text->queue)], other = last[1 - int(text->queue)];
    if (header.id != own + 1) {
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): id is %u, expected is %u, the next id of its queue",
                            i, text->name, header.id, own + 1);
    }
    own = header.id;
    if (header.wait > other) {
      return BMODEL_FAIL_AT(status, i, Corrupt,
                            "command %zu (%s): waits for command %u of the other queue, but only %u precede it", i,
                            text->name, header.wait, other);
    }
    for (const FieldText &field : text->fields) {
      if (const char *fault = faultIn(commands[i], field)) {
        return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): field %s: %s", i, text->name, field.name, fault);
      }
    }
  }
  return true;
}

} // namespace bmodel::npu
