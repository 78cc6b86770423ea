// SPDX-License-Identifier: Apache-2.0
//===- NpuFuzzer.cpp - libFuzzer target: commands, chips and texts of the NPU ---===//
//
// Runs streams that pass the checks in the simulator, whose memories have exactly the checked sizes.
//
//===----------------------------------------------------------------------===//
#include "bmruntime/src/npu/Simulator.h"

#include "bmodel/npu/check.h"
#include "bmodel/npu/latency.h"
#include "bmodel/npu/program.h"

#include <cstdlib>
#include <cstring>
#include <fuzzer/FuzzedDataProvider.h>
#include <memory>

namespace {

using namespace bmodel;
using namespace bmodel::npu;

constexpr uint64_t kConstants = 512, kBuffer = 1024;
constexpr double kMostCycles = 1e6; ///< maximum estimated time of a stream that is run

Chip smallChip() {
  Chip chip;
  chip.name = "small", chip.clockGhz = 1, chip.lanes = 4, chip.laneBytes = 2048, chip.banks = 4, chip.portBytes = 8;
  chip.reduction = 4, chip.pixels = 2, chip.accumulators = 64, chip.depthwiseDivisor = 8, chip.int16Divisor = 2;
  chip.floatDivisor = 4, chip.outputs = 2, chip.functions = 1, chip.vectorBytes = 16, chip.functionCycles = 8;
  chip.dmaLocalBytes = 32, chip.ddrGbps = 4, chip.ddrEfficiency = 0.8, chip.burstBytes = 64;
  chip.casts = {"f32-bf16", "f16-f32"}, chip.requantise = "float";
  chip.types = {"int8", "int16", "bf16", "f16", "f32"};
  return chip;
}

/// Creates commands from the input. Most fields get valid values, because few completely random commands would be
/// valid.
class Commands {
public:
  explicit Commands(FuzzedDataProvider &data) : data(data) {}

  Descriptor next() {
    const CommandText &text = commandTexts()[data.ConsumeIntegralInRange<size_t>(0, commandTexts().size() - 1)];
    Descriptor command;
    command.header.opcode = text.opcode;
    outside = text.opcode == Opcode::gather;
    type = Type(data.ConsumeIntegralInRange<uint8_t>(0, 6)), lane = data.ConsumeIntegralInRange<uint16_t>(0, 3);
    for (const FieldText &field : text.fields) {
      std::string_view kind = field.type;
      kind == "Tensor"   ? put(command, field, tensor(field.name))
      : kind == "Shape"  ? put(command, field, shape())
      : kind == "Window" ? put(command, field, window())
      : kind == "Output" ? put(command, field, output())
      : kind == "u8"     ? put(command, field, within<uint8_t>(0, 2))
      : kind == "u16"    ? put(command, field, within<uint16_t>(1, 8))
                         : put(command, field, within<uint32_t>(1, 8));
    }
    return command;
  }

private:
  template <typename T>
  void put(Descriptor &command, const FieldText &field, T value) {
    memcpy(command.body + field.offset, &value, sizeof value);
  }
  bool seldom() { return data.ConsumeIntegral<uint8_t>() >= 250; }
  template <typename T>
  T within(T low, T high) {
    return seldom() ? data.ConsumeIntegral<T>() : data.ConsumeIntegralInRange<T>(low, high);
  }
  /// Returns a tensor of the command's type and lane, with room for eight rows and columns; some names need other
  /// properties.
  Tensor tensor(std::string_view name) {
    constexpr Region regions[] = {Region::none,      Region::local, Region::constants,
                                  Region::workspace, Region::io,    Region(int(Region::io) + 1)};
    bool weights = name == "w" && (type == Type::i16 || type == Type::u8), words = name == "p" || name == "index";
    Tensor t;
    t.type = seldom()                     ? Type(within<uint8_t>(0, 6))
             : weights                    ? Type::i8
             : words || name == "program" ? Type::i32
                                          : type;
    t.region = seldom()                                        ? data.PickValueInArray(regions)
               : name == "program" || (outside && name != "y") ? Region::constants
               : words || name == "r" ? data.PickValueInArray({Region::none, Region::local, Region::io})
                                      : Region::local;
    t.lane = t.region == Region::local ? seldom() ? within<uint16_t>(0, 4) : lane : 0;
    t.offset = within<uint64_t>(0, 15) * 32;
    int32_t stride = int32_t(std::max<size_t>(sizeOf(t.type), 1));
    for (int i = 3; i >= 0; --i) {
      t.strides[i] = seldom() ? within<int32_t>(-64, 64) : stride;
      stride *= i > 1 ? 8 : 3;
    }
    return t;
  }
  Shape shape() { return {{within(1u, 2u), within(1u, 9u), within(1u, 4u), within(1u, 8u)}}; }
  Window window() {
    Window w;
    for (int axis = 0; axis < 2; ++axis) {
      w.kernel[axis] = within<uint8_t>(1, 3), w.step[axis] = within<uint8_t>(1, 2);
      w.dilation[axis] = within<uint8_t>(1, 2), w.spread[axis] = within<uint8_t>(1, 2);
      w.padding[axis] = within<int16_t>(-1, 3);
    }
    w.padValue = within<int16_t>(0, 3);
    return w;
  }
  Output output() {
    Output o;
    o.function = Function(within<uint8_t>(0, 9)), o.flags = within<uint8_t>(0, 7);
    o.residualZero = within<int16_t>(-9, 9);
    for (float *each : {&o.factor, &o.residualScale, &o.alpha, &o.lower, &o.upper, &o.divisor, &o.zeroPoint}) {
      *each = data.ConsumeBool() ? data.ConsumeFloatingPoint<float>() : float(data.ConsumeIntegral<int8_t>());
    }
    return o;
  }

  FuzzedDataProvider &data;
  Type type{};
  uint16_t lane = 0;
  bool outside = false; ///< the command's operands lie outside the chip
};

/// Fills the constants with programs of the vector unit, some of which are valid.
void fillConstants(FuzzedDataProvider &data, unsigned char *constants) {
  for (uint64_t at = 0; at < kConstants; at += sizeof(Instruction)) {
    auto number = [&](uint8_t most) { return data.ConsumeIntegralInRange<uint8_t>(0, most); };
    Instruction each{Op(number(50)), number(5), number(4), number(4), number(4)};
    memcpy(constants + at, &each, sizeof each);
  }
}

void runStream(FuzzedDataProvider &data) {
  static const Chip chip = smallChip();
  auto memory = std::make_unique<unsigned char[]>(kConstants); // of the exact size, for the sanitizer
  fillConstants(data, memory.get());
  std::vector<Descriptor> stream;
  Commands commands(data);
  for (size_t i = data.ConsumeIntegralInRange<size_t>(1, 6); i > 0; --i) {
    stream.push_back(commands.next());
  }
  uint32_t ids[2] = {};
  for (Descriptor &command : stream) {
    command.header.id = ++ids[int(findCommand(command.header.opcode)->queue)];
    command.header.wait = ids[1 - int(findCommand(command.header.opcode)->queue)];
  }
  RegionSizes sizes{.constants = kConstants, .workspace = kBuffer, .io = {kBuffer, kBuffer}, .inputs = 1};
  Status status;
  bmrt::npu::Simulator simulator(chip);
  if (!checkOperands(stream.data(), stream.size(), chip, sizes, status) ||
      !checkPrograms(stream.data(), stream.size(), memory.get(), status) || !simulator.allocate()) {
    return;
  }
  // Valid commands may repeat an element any number of times, so limit the estimated time.
  std::vector<Cost> costs;
  double cycles = 0;
  for (const Descriptor &command : stream) {
    costs.push_back(costOf(command, chip));
    cycles += costs.back().cycles;
  }
  if (cycles > kMostCycles) {
    return;
  }
  std::unique_ptr<unsigned char[]> buffers[3];
  bmrt::npu::Area areas[3];
  for (int i = 0; i < 3; ++i) {
    buffers[i] = std::make_unique<unsigned char[]>(kBuffer);
    areas[i] = {buffers[i].get(), kBuffer};
  }
  if (!simulator.run(stream.data(), stream.size(), {{memory.get(), kConstants}, areas[2], areas, 2}, status)) {
    return; // an index outside a table
  }
  checkOrder(stream.data(), stream.size(), chip, sizes, status);
  assignWaits(stream, chip);
  if (!verifyStream(stream.data(), stream.size(), status) ||
      schedule(stream.data(), costs.data(), stream.size(), chip).back().end <= 0) {
    abort();
  }
}

/// Checks that a text that can be parsed survives a round trip.
void readText(const std::string &text) {
  Descriptor command, again;
  Status status;
  if (assemble(text, command, status) &&
      (!assemble(disassemble(command), again, status) || memcmp(&command, &again, sizeof command) != 0)) {
    abort();
  }
}

void verifyBytes(const std::string &bytes) {
  std::vector<Descriptor> stream(bytes.size() / sizeof(Descriptor));
  for (size_t i = 0; i < stream.size(); ++i) {
    memcpy(&stream[i], bytes.data() + i * sizeof(Descriptor), sizeof(Descriptor));
  }
  Status status;
  if (verifyStream(stream.data(), stream.size(), status)) {
    for (const Descriptor &command : stream) {
      (void)disassemble(command);
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  Chip chip;
  std::string error;
  switch (data.ConsumeIntegralInRange<int>(0, 7)) {
  case 0:
    readText(data.ConsumeRemainingBytesAsString());
    break;
  case 1:
    parseChip(data.ConsumeRemainingBytesAsString(), "chip", chip, error);
    break;
  case 2:
    verifyBytes(data.ConsumeRemainingBytesAsString());
    break;
  default:
    runStream(data);
  }
  return 0;
}
