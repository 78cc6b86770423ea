// SPDX-License-Identifier: Apache-2.0
//===- isa.h - The commands of the NPU, in memory and in files -------------===//
//
// A stream is a list of little-endian descriptors of 256 bytes; docs/isa.md specifies each command. Two in-order queues
// run concurrently: dma and compute. A command starts once the other queue has finished its command number `wait` (0:
// no wait). Apart from the memories, no state survives from one command to the next.
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
/// Version of the commands and their semantics. A program runs only on a chip with the same version.
inline constexpr uint32_t kIsaVersion = 1;

enum class Queue : uint8_t { dma, compute };

enum class Opcode : uint8_t {
#define NPU_COMMAND(name, opcode, queue, meaning) name = opcode,
#include "bmodel/npu/isa.inc"
};

/// Element types of tensors in commands.
enum class Type : uint8_t { i8, u8, i16, i32, bf16, f16, f32 };

/// The region in which a tensor lies. io + k is the k-th buffer of the caller: inputs first, then outputs.
enum class Region : uint8_t { none, local, constants, workspace, io = 16 };

/// A 4-D tensor operand. The command states its dims n, c, h, w. In local memory, element (n,c,h,w) is in lane (lane +
/// c) % lanes at offset + n*strides[0] + (lane + c)/lanes*strides[1] + h*strides[2] + w*strides[3]. In the other
/// regions it is at offset + n*strides[0] + c*strides[1] + h*strides[2] + w*strides[3]. All offsets and strides are in
/// bytes.
struct Tensor {
  uint64_t offset = 0;
  int32_t strides[4] = {};
  uint16_t lane = 0;
  Region region = Region::none;
  Type type = Type::i8;
  uint32_t reserved = 0;
};

/// Dims n, c, h, w.
struct Shape {
  uint32_t dims[4] = {1, 1, 1, 1};
};

/// A sliding window over rows and columns; every pair is {rows, columns}. Positions outside x, and the positions that
/// `spread` inserts between its elements, have the value padValue.
struct Window {
  uint8_t kernel[2] = {1, 1};
  uint8_t step[2] = {1, 1};
  uint8_t dilation[2] = {1, 1};
  uint8_t spread[2] = {1, 1};  ///< input dilation: element i of x is at position i * spread, with padValue between
                               ///< (transposed convolution)
  int16_t padding[2] = {0, 0}; ///< positions before the first row and column; if negative, the number of rows and
                               ///< columns skipped
  int16_t padValue = 0;        ///< the zero point of x
  uint16_t reserved[5] = {};
};

/// The activation function between the sum and the store; docs/isa.md states the formulas.
enum class Function : uint8_t { none, relu, leakyRelu, sigmoid, silu, tanh, gelu, hardSigmoid, hardSwish, exp };

/// The output stage between the sum `acc` and the store. It computes v = (acc + bias[o]) * factor(s); v += (r -
/// residualZero) * residualScale; v = function(v); v = min(max(v, lower), upper). For integer results, v is divided by
/// divisor (if that is not 1), rounded to nearest even, increased by zeroPoint and saturated. The flags modify this:
/// - raw: stores the sum as i32.
/// - perChannel: factors are per output channel.
/// - clamps: lower and upper apply.
/// - integral, on chips that requantise with integers: multiplies the sum by mantissa / 2^shift as in
///   bmodel/numerics.h, adds zeroPoint and clamps to [lower, upper]. The bits of factor hold the mantissa, those of
///   divisor the shift. There is no function and no residual.
/// - gains: multiplies v by the third number of p after the function.
/// - late: adds the residual at that point, after the gains.
/// - stored: the limits apply to the stored number.
/// - fused, for a conv of floats: adds each product without rounding it first (fused multiply-add).
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
  float alpha = 0; ///< parameter of leakyRelu and hardSigmoid
  float lower = 0, upper = 0;
  float divisor = 1;
  float zeroPoint = 0;
};

/// The start of every command. id counts from 1 within each queue.
struct Header {
  Opcode opcode{};
  uint8_t reserved[3] = {};
  uint32_t id = 0;
  uint32_t wait = 0;
  uint32_t layer = 0; ///< step of the plan that the command belongs to; for reports only
};

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;

// Declares struct NAME_command { Tensor y, x, ...; } for each command of isa.inc, without the header.
#define NPU_COMMAND(name, opcode, queue, meaning) struct name##_command {
#define NPU_FIELD(command, type, name, meaning) type name{};
#define NPU_END(name)                                                                                                  \
  }                                                                                                                    \
  ;
#include "bmodel/npu/isa.inc"

/// A command as stored in a stream.
struct Descriptor {
  Header header;
  unsigned char body[kDescriptorBytes - sizeof(Header)] = {};

  /// Returns the body as one of the structs above, which must be the struct of the opcode.
  template <typename Command>
  Command as() const {
    Command command;
    std::memcpy(&command, body, sizeof command);
    return command;
  }
};

// Declares encode() for each command struct: sets opcode and body; bytes between fields are 0.
#define NPU_COMMAND(name, opcode, queue, meaning) Descriptor encode(const name##_command &command);
#include "bmodel/npu/isa.inc"

static_assert(sizeof(Tensor) == 32 && sizeof(Shape) == 16 && sizeof(Window) == 24 && sizeof(Output) == 32);
static_assert(sizeof(Header) == 16 && sizeof(Descriptor) == kDescriptorBytes);
#define NPU_COMMAND(name, opcode, queue, meaning) static_assert(sizeof(name##_command) <= sizeof(Descriptor::body));
#include "bmodel/npu/isa.inc"

/// Names and meanings for reports and for the generated documentation.
struct FieldText {
  const char *type, *name, *meaning;
  size_t offset, size; ///< in bytes, offset from the start of the body
};
struct CommandText {
  Opcode opcode;
  Queue queue;
  const char *name, *meaning;
  std::vector<FieldText> fields;
};
/// Lists the commands in the order of isa.inc.
const std::vector<CommandText> &commandTexts();
/// Returns null if no command has this opcode.
const CommandText *findCommand(Opcode opcode);

/// A tensor operand of a command, with its shape.
struct Operand {
  const char *name = "";
  Tensor tensor;
  Shape shape;
  bool written = false;
  bool optional = false; ///< may be absent (Region::none)
  bool repeats = false;  ///< one element may appear at several indices, through strides of 0 or overlapping strides
  bool anyLane = false;  ///< for compute commands: does not have to begin in the lane of the result
};
/// Writes the operands that are present to |operands| and returns their number. gather's table has `rows` rows.
inline constexpr size_t kMostOperands = 6;
size_t operandsOf(const Descriptor &command, Operand (&operands)[kMostOperands]);

size_t sizeOf(Type type);
bool isFloat(Type type);
const char *nameOf(Type type);

/// Returns the command as one line: "conv id=3 wait=2 layer=7 y=local:0x40/0/i8/0,64,8,1 ...". Omits fields that have
/// their default value.
std::string disassemble(const Descriptor &command);
/// Parses a line of disassemble(). On failure returns false; |status| describes the error.
bool assemble(std::string_view line, Descriptor &command, Status &status);

/// Checks the structure of an untrusted stream: opcodes, types and functions are known, bytes outside the fields are 0,
/// ids count from 1 in each queue, and commands wait only for commands earlier in the stream. Messages count commands
/// from 0.
bool verifyStream(const Descriptor *commands, size_t count, Status &status);

} // namespace bmodel::npu

#endif // BMODEL_NPU_ISA_H
