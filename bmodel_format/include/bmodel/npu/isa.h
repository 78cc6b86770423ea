// SPDX-License-Identifier: Apache-2.0
//===- isa.h - The commands of the NPU, in memory and in files -------------===//
//
// A stream is a list of descriptors of 256 bytes, little endian; docs/isa.md says what each does. Two queues run at
// the same time, each in order: dma and compute. A command starts when the other queue has finished its command number
// `wait` (0: at once). Nothing is kept from one command to the next but the memories.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_ISA_H
#define BMODEL_NPU_ISA_H

#include "bmodel/status.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bmodel::npu {

inline constexpr size_t kDescriptorBytes = 256;
/// Of the commands and what they do; a program runs where it is the same.
inline constexpr uint32_t kIsaVersion = 1;

enum class Queue : uint8_t { dma, compute };

enum class Opcode : uint8_t {
#define NPU_COMMAND(name, opcode, queue, meaning) name = opcode,
#include "bmodel/npu/isa.inc"
};

/// Element types of tensors in commands.
enum class Type : uint8_t { i8, u8, i16, i32, bf16, f16, f32 };

/// Where a tensor lies. io + k is the k-th buffer of the caller: inputs first, then outputs.
enum class Region : uint8_t { none, local, constants, workspace, io = 16 };

/// A tensor of the dims n, c, h, w, which the command names. Local: element (n,c,h,w) is in lane (lane + c) % lanes at
/// offset + n*strides[0] + (lane + c)/lanes*strides[1] + h*strides[2] + w*strides[3]. Elsewhere: at
/// offset + n*strides[0] + c*strides[1] + h*strides[2] + w*strides[3]. All in bytes.
struct Tensor {
  uint64_t offset = 0;
  int32_t strides[4] = {};
  uint16_t lane = 0;
  Region region = Region::none;
  Type type = Type::i8;
  uint32_t reserved = 0;
};

/// n, c, h, w.
struct Shape {
  uint32_t dims[4] = {1, 1, 1, 1};
};

/// A sliding window over rows and columns. Positions outside x, and between its elements where these are spread, hold
/// padValue.
struct Window {
  uint8_t kernel[2] = {1, 1};
  uint8_t step[2] = {1, 1};
  uint8_t dilation[2] = {1, 1};
  uint8_t spread[2] = {1, 1};  ///< of x: element i is at position i * spread, padValue between (transposed convolution)
  int16_t padding[2] = {0, 0}; ///< before the first row and column; negative: rows and columns left out
  int16_t padValue = 0;        ///< the zero point of x
  uint16_t reserved[5] = {};
};

/// What is between the sum and the store; docs/isa.md has the formula.
enum class Function : uint8_t { none, relu, leakyRelu, sigmoid, silu, tanh, gelu, hardSigmoid, hardSwish, exp };

/// v = (acc + bias[o]) * factor(s); v += (r - residualZero) * residualScale; v = function(v); v = min(max(v, lower),
/// upper); integers: v / divisor where that is not 1, rounded to nearest even, + zeroPoint, saturated. Gains: v is
/// multiplied by the third number of p behind the function. Late: the residual is added there, behind gains. Stored:
/// the limits are of the number that is stored. Fused, of a conv of floats: products are added unrounded. Raw: the sum
/// as i32. Integral, on chips that requantise so: the sum times mantissa / 2^shift by bmodel/numerics.h, the bits of
/// factor being the mantissa and those of divisor the shift,
/// + zeroPoint, between lower and upper; no function, no residual.
struct Output {
  enum Flags : uint8_t {
    raw = 1,
    perChannel = 2,
    clamps = 4,
    integral = 8,
    gains = 16,
    late = 32,
    stored = 64,
    fused = 128
  };

  Function function = Function::none;
  uint8_t flags = 0;
  int16_t residualZero = 0;
  float factor = 1;
  float residualScale = 0;
  float alpha = 0; ///< of leakyRelu and hardSigmoid
  float lower = 0, upper = 0;
  float divisor = 1;
  float zeroPoint = 0;
};

/// What all commands begin with. id counts from 1 within the queue.
struct Header {
  Opcode opcode{};
  uint8_t reserved[3] = {};
  uint32_t id = 0;
  uint32_t wait = 0;
  uint32_t layer = 0; ///< step of the plan it belongs to, for people
};

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;

// struct ConvCommand { Tensor y, x, ...; }: one per command, as isa.inc lists them, without the header.
#define NPU_COMMAND(name, opcode, queue, meaning) struct name##_command {
#define NPU_FIELD(command, type, name, meaning) type name{};
#define NPU_END(name)                                                                                                  \
  }                                                                                                                    \
  ;
#include "bmodel/npu/isa.inc"

/// A command as it stands in a stream.
struct Descriptor {
  Header header;
  unsigned char body[kDescriptorBytes - sizeof(Header)] = {};

  /// The fields as one of the structs above; it must be the opcode's.
  template <typename Command>
  Command as() const {
    Command command;
    std::memcpy(&command, body, sizeof command);
    return command;
  }
};

// Descriptor encode(const conv_command &): opcode and body; bytes between fields are 0.
#define NPU_COMMAND(name, opcode, queue, meaning) Descriptor encode(const name##_command &command);
#include "bmodel/npu/isa.inc"

static_assert(sizeof(Tensor) == 32 && sizeof(Shape) == 16 && sizeof(Window) == 24 && sizeof(Output) == 32);
static_assert(sizeof(Header) == 16 && sizeof(Descriptor) == kDescriptorBytes);
#define NPU_COMMAND(name, opcode, queue, meaning) static_assert(sizeof(name##_command) <= sizeof(Descriptor::body));
#include "bmodel/npu/isa.inc"

/// Names for people and for the generated documentation.
struct FieldText {
  const char *type, *name, *meaning;
  size_t offset, size; ///< from the start of the body
};
struct CommandText {
  Opcode opcode;
  Queue queue;
  const char *name, *meaning;
  std::vector<FieldText> fields;
};
/// In the order of isa.inc.
const std::vector<CommandText> &commandTexts();
/// Null where there is no such command.
const CommandText *findCommand(Opcode opcode);

/// A tensor that a command touches, with the shape that it has there.
struct Operand {
  const char *name = "";
  Tensor tensor;
  Shape shape;
  bool written = false;
  bool optional = false; ///< may be absent: of region none
  bool repeats = false;  ///< may show one element at several places, by strides of 0 or overlapping ones
  bool anyLane = false;  ///< of compute commands: need not begin in the lane of the result
};
/// All but the optional ones that are absent; gather's table has `rows` rows. Returns how many.
inline constexpr size_t kMostOperands = 6;
size_t operandsOf(const Descriptor &command, Operand (&operands)[kMostOperands]);

size_t sizeOf(Type type);
bool isFloat(Type type);
const char *nameOf(Type type);

/// One line: "conv id=3 wait=2 layer=7 y=local:0x40/0/i8/0,64,8,1 ...". Defaults are left out.
std::string disassemble(const Descriptor &command);
/// The reverse; the status says what is wrong with the line.
bool assemble(std::string_view line, Descriptor &command, Status &status);

/// Checks what a reader must not take for granted: known opcodes, types and functions, bytes that belong to no field 0,
/// ids counting from 1 in each queue, waits for commands that come before in the stream. Messages count commands from
/// 0.
bool verifyStream(const Descriptor *commands, size_t count, Status &status);

} // namespace bmodel::npu

#endif // BMODEL_NPU_ISA_H
