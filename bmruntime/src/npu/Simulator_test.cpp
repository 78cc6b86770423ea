// SPDX-License-Identifier: Apache-2.0
//===- Simulator_test.cpp - Commands against reference implementations ------===//
#include "Simulator.h"

#include "bmodel/npu/check.h"
#include "bmodel/npu/program.h"
#include "bmodel/numerics.h"
#include "bmodel/numerics_float.h"
#include "bmodel_format/test/RandomStream.h"
#include "bmodel_format/test/TestChip.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace bmodel;
using namespace bmodel::npu;
using bmrt::npu::Buffers;
using bmrt::npu::Simulator;

namespace {

const Chip edge = chipNamed("npu-edge"), odd = oddChip();
const Chip *const chips[] = {&edge, &odd};
constexpr Region in = Region::io, out = Region(int(Region::io) + 1);

std::mt19937 generator(7);
int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

/// A tensor as the reference implementations use it.
struct Values {
  Shape shape;
  std::vector<float> data;

  explicit Values(Shape shape)
      : shape(shape), data(size_t(shape.dims[0]) * shape.dims[1] * shape.dims[2] * shape.dims[3]) {}
  float &at(uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
    return data[((size_t(n) * shape.dims[1] + c) * shape.dims[2] + h) * shape.dims[3] + w];
  }
};

/// Places tensors one after another in local memory, with gaps, starting in any lane.
class Layout {
public:
  explicit Layout(const Chip &chip) : chip(chip), common(anyLane()) {}

  Tensor place(const Shape &shape, Type type, bool inAnyLane) {
    int32_t size = int32_t(sizeOf(type)), lane = inAnyLane ? anyLane() : common;
    int32_t row = int32_t(shape.dims[3]) * size, plane = row * int32_t(shape.dims[2]),
            groups = int32_t((lane + shape.dims[1] + chip.lanes - 1) / chip.lanes);
    Tensor t{.offset = next,
             .strides = {plane * groups, plane, row, size},
             .lane = uint16_t(lane),
             .region = Region::local,
             .type = type};
    next += (uint64_t(plane) * groups * shape.dims[0] + 31) / 16 * 16;
    return t;
  }

private:
  int32_t anyLane() const { return int32_t(between(0, chip.lanes - 1)); }

  const Chip &chip;
  int32_t common; ///< lane of all operands, except for those that may begin in any lane
  uint64_t next = 0;
};

Tensor rowMajor(const Shape &shape, Type type, Region region, uint64_t offset) {
  int32_t size = int32_t(sizeOf(type)), row = int32_t(shape.dims[3]) * size, plane = row * int32_t(shape.dims[2]);
  return {
      .offset = offset, .strides = {plane * int32_t(shape.dims[1]), plane, row, size}, .region = region, .type = type};
}

uint64_t bytesOf(const Shape &shape, Type type) {
  return uint64_t(shape.dims[0]) * shape.dims[1] * shape.dims[2] * shape.dims[3] * sizeOf(type);
}

/// Builds a stream around one compute command: loads its inputs from buffer 0 and stores its result to buffer 1.
class SimulatorRunner {
public:
  explicit SimulatorRunner(const Chip &chip) : chip(chip), layout(chip) {}

  Tensor input(Values &values, Type type, bool inAnyLane = false) {
    Tensor local = layout.place(values.shape, type, inAnyLane);
    given.resize((given.size() + 15) / 16 * 16);
    push(encode(copy_command{.y = local, .x = rowMajor(values.shape, type, in, given.size()), .shape = values.shape}),
         0);
    for (float &value : values.data) {
      append(value, type);
    }
    return local;
  }
  Tensor result(const Shape &shape, Type type) {
    wantedShape = shape, wantedType = type;
    return local = layout.place(shape, type, false);
  }

  /// Runs the command and returns its result.
  Values run(Descriptor command) {
    command.header.id = 1, command.header.wait = dma;
    stream.push_back(command);
    push(encode(copy_command{.y = rowMajor(wantedShape, wantedType, out, 0), .x = local, .shape = wantedShape}), 1);
    std::vector<unsigned char> answer(bytesOf(wantedShape, wantedType));
    RegionSizes sizes{.constants = constants.size(), .workspace = 0, .io = {given.size(), answer.size()}, .inputs = 1};
    Status status;
    Simulator simulator(chip);
    EXPECT_TRUE(checkStream(stream.data(), stream.size(), chip, sizes, constants.data(), status)) << status.message;
    EXPECT_TRUE(simulator.allocate());
    bmrt::npu::Area areas[] = {{given.data(), given.size()}, {answer.data(), answer.size()}};
    EXPECT_TRUE(simulator.run(
        stream.data(), stream.size(),
        {.constants = {constants.data(), constants.size()}, .workspace = {}, .io = areas, .ioCount = 2}, status))
        << status.message;
    Values values(wantedShape);
    for (size_t i = 0; i < values.data.size(); ++i) {
      values.data[i] = read(answer.data() + i * sizeOf(wantedType), wantedType);
    }
    return values;
  }

  std::vector<unsigned char> constants;

private:
  void push(Descriptor command, uint32_t wait) {
    command.header.id = ++dma, command.header.wait = wait;
    stream.push_back(command);
  }
  template <typename T>
  void appendAs(T value) {
    given.resize(given.size() + sizeof value);
    memcpy(given.data() + given.size() - sizeof value, &value, sizeof value);
  }
  void append(float value, Type type) {
    type == Type::f32    ? appendAs(value)
    : type == Type::bf16 ? appendAs(uint16_t(std::bit_cast<uint32_t>(value) >> 16)) // few bits are given
    : type == Type::f16  ? appendAs(static_cast<_Float16>(value))
    : type == Type::i8   ? appendAs(int8_t(value))
    : type == Type::u8   ? appendAs(uint8_t(value))
    : type == Type::i16  ? appendAs(int16_t(value))
                         : appendAs(std::bit_cast<int32_t>(value)); // i32: the value is the bit pattern
  }
  static float read(const unsigned char *at, Type type) {
    auto as = [&](auto value) {
      memcpy(&value, at, sizeof value);
      return float(value);
    };
    return type == Type::f32   ? as(float())
           : type == Type::i8  ? as(int8_t())
           : type == Type::u8  ? as(uint8_t())
           : type == Type::i16 ? as(int16_t())
                               : as(int32_t());
  }

  const Chip &chip;
  Layout layout;
  std::vector<Descriptor> stream;
  std::vector<unsigned char> given;
  uint32_t dma = 0;
  Shape wantedShape;
  Type wantedType{};
  Tensor local;
};

Values random(Shape shape, int64_t low, int64_t high) {
  Values values(shape);
  for (float &value : values.data) {
    value = float(between(low, high));
  }
  return values;
}

Window randomWindow(int most, bool spreads) {
  Window w;
  for (int axis = 0; axis < 2; ++axis) {
    w.kernel[axis] = uint8_t(between(1, most)), w.step[axis] = uint8_t(between(1, 3)),
    w.dilation[axis] = uint8_t(between(1, 2));
    w.spread[axis] = uint8_t(spreads ? between(1, 2) : 1), w.padding[axis] = int16_t(between(-1, 2));
  }
  w.padValue = int16_t(between(-5, 5));
  return w;
}

/// Returns the value of x at a position of a window, or padValue.
float seen(Values &x, const Window &w, uint32_t n, uint32_t c, uint32_t i, uint32_t j, uint32_t k, uint32_t l,
           bool *inside = nullptr) {
  int64_t place[2] = {int64_t(i) * w.step[0] + k * w.dilation[0] - w.padding[0],
                      int64_t(j) * w.step[1] + l * w.dilation[1] - w.padding[1]};
  bool good = true;
  for (int axis = 0; axis < 2; ++axis) {
    good = good && place[axis] >= 0 && place[axis] % w.spread[axis] == 0 &&
           place[axis] / w.spread[axis] < x.shape.dims[2 + axis];
  }
  if (inside) {
    *inside = good;
  }
  return good ? x.at(n, c, uint32_t(place[0] / w.spread[0]), uint32_t(place[1] / w.spread[1])) : float(w.padValue);
}

float saturated(float value, Type type) {
  float low = type == Type::i8   ? -128
              : type == Type::u8 ? 0
                                 : -32768,
        high = type == Type::i8   ? 127
               : type == Type::u8 ? 255
                                  : 32767;
  return type == Type::f32 ? value : std::fmin(std::fmax(value, low), high);
}

/// The parameters of the output stage for one channel.
struct Parameters {
  int32_t bias;
  float factor;
  int32_t shift;
  float gain;
};

/// Computes the output stage for one element by its formula.
float finished(const Output &o, int64_t sum, Parameters p, float r, Type type) {
  if (o.flags & Output::integral) {
    return float(numerics::requantiseFixed(int32_t(sum + p.bias), {std::bit_cast<int32_t>(p.factor), p.shift},
                                           int32_t(o.zeroPoint), int32_t(o.lower), int32_t(o.upper)));
  }
  float v = float(int32_t(sum + p.bias));
  v = v * p.factor;
  float residual = (r - float(o.residualZero)) * o.residualScale;
  v = o.flags & Output::late ? v : v + residual;
  v = o.function == Function::relu   ? std::fmax(v, 0.0f)
      : o.function == Function::silu ? v * numerics::sigmoid(numerics::Single{v}).v
                                     : v;
  v = o.flags & Output::gains ? v * p.gain : v;
  v = o.flags & Output::late ? v + residual : v;
  auto clamp = [&] { v = o.flags & Output::clamps ? std::fmin(std::fmax(v, o.lower), o.upper) : v; };
  if (!(o.flags & Output::stored)) {
    clamp();
  }
  v = type == Type::f32 ? v : std::nearbyint(o.divisor == 1 ? v : v / o.divisor) + o.zeroPoint;
  if (o.flags & Output::stored) {
    clamp();
  }
  return saturated(v, type);
}

/// A random convolution and its result by definition.
class RandomConvolution {
public:
  RandomConvolution(const Chip &chip, int64_t mostChannels)
      : window(randomWindow(3, true)), type(types[between(0, 2)]), to(results[between(0, 3)]),
        x(random({{uint32_t(between(1, 2)), uint32_t(between(mostChannels / 20, mostChannels)), uint32_t(between(3, 9)),
                   uint32_t(between(3, 40))}},
                 lowOf(type), highOf(type))),
        shape{{x.shape.dims[0], uint32_t(between(1, 19)), uint32_t(between(1, 6)), uint32_t(between(1, 37))}},
        weight(between(0, 2) ? Type::i8 : Type::u8),
        w(random({{1, shape.dims[1], taps(), x.shape.dims[1]}}, lowOf(weight), highOf(weight))),
        r(random(shape, -128, 127)), integral(chip.requantise != "float" && to != Type::f32),
        gains(!integral && between(0, 1)), p(Shape{{1, shape.dims[1], 1, integral || gains ? 3u : 2u}}) {
    window.padValue = int16_t(between(std::max(-5.0f, lowOf(type)), 5));
    for (uint32_t o = 0; o < shape.dims[1]; ++o) {
      p.at(0, o, 0, 0) = std::bit_cast<float>(int32_t(between(-100000, 100000)));
      p.at(0, o, 0, 1) =
          integral ? std::bit_cast<float>(int32_t(between(1 << 30, INT32_MAX))) : float(between(1, 1000)) * 1e-6f;
      if (integral) {
        p.at(0, o, 0, 2) = std::bit_cast<float>(int32_t(between(30, 50)));
      } else if (gains) {
        p.at(0, o, 0, 2) = float(between(-2000, 2000)) * 1e-3f;
      }
    }
    makeOutput();
  }

  Values run(const Chip &chip) {
    conv_command c;
    c.shape = shape, c.window = window, c.output = output;
    c.channels = x.shape.dims[1], c.rows = uint16_t(x.shape.dims[2]), c.columns = uint16_t(x.shape.dims[3]);
    SimulatorRunner bench(chip);
    c.x = bench.input(x, type, true), c.w = bench.input(w, weight), c.p = bench.input(p, Type::i32);
    if (!integral) {
      c.r = bench.input(r, Type::i8);
    }
    c.y = bench.result(shape, to);
    return bench.run(encode(c));
  }

  float wanted(uint32_t n, uint32_t o, uint32_t i, uint32_t j) {
    int64_t sum = 0;
    for (uint32_t channel = 0; channel < x.shape.dims[1]; ++channel) {
      for (uint32_t t = 0; t < taps(); ++t) {
        sum += int64_t(seen(x, window, n, channel, i, j, t / window.kernel[1], t % window.kernel[1])) *
               int64_t(w.at(0, o, t, channel));
      }
    }
    Parameters parameters{std::bit_cast<int32_t>(p.at(0, o, 0, 0)), p.at(0, o, 0, 1),
                          integral ? std::bit_cast<int32_t>(p.at(0, o, 0, 2)) : 0, gains ? p.at(0, o, 0, 2) : 1.0f};
    return finished(output, sum, parameters, r.at(n, o, i, j), to);
  }

private:
  static constexpr Type types[] = {Type::i8, Type::u8, Type::i16};
  static constexpr Type results[] = {Type::i8, Type::u8, Type::i16, Type::f32};
  static float lowOf(Type type) { return type == Type::u8 ? 0 : type == Type::i8 ? -128 : -3000; }
  static float highOf(Type type) { return type == Type::u8 ? 255 : type == Type::i8 ? 127 : 3000; }
  uint32_t taps() const { return uint32_t(window.kernel[0]) * window.kernel[1]; }

  void makeOutput() {
    output.flags = uint8_t(Output::perChannel | (integral ? Output::integral | Output::clamps : 0));
    output.zeroPoint = float(between(-9, 9)), output.lower = 0, output.upper = 30;
    if (!integral) {
      output.function = between(0, 1) ? Function::relu : Function::none;
      output.flags |= between(0, 1) ? Output::clamps : 0;
      output.flags |= (gains ? Output::gains : 0) | (between(0, 1) ? Output::late : 0);
      output.flags |= output.flags & Output::clamps && to != Type::f32 && between(0, 1) ? Output::stored : 0;
      output.residualZero = int16_t(between(-9, 9)), output.residualScale = 0.05f;
      output.lower = -20, output.divisor = between(0, 1) ? 0.37f : 1.0f;
    }
  }

  Window window;

public:
  const Type type, to;

private:
  Values x;

public:
  const Shape shape;

private:
  const Type weight;
  Values w, r;
  const bool integral, gains;
  Values p;
  Output output;
};

} // namespace

TEST(Simulator, ConvolutionsAreTheirDefinition) {
  for (int round = 0; round < 120; ++round) {
    const Chip &chip = *chips[round % 2];
    // Some rounds have many channels, which needs more than one block of positions.
    RandomConvolution convolution(chip, round % 8 ? 20 : 300);
    Values got = convolution.run(chip);
    for (size_t at = 0; at < got.data.size(); ++at) {
      const uint32_t *dims = got.shape.dims;
      uint32_t j = uint32_t(at % dims[3]), i = uint32_t(at / dims[3] % dims[2]),
               o = uint32_t(at / dims[3] / dims[2] % dims[1]), n = uint32_t(at / dims[3] / dims[2] / dims[1]);
      ASSERT_EQ(got.data[at], convolution.wanted(n, o, i, j))
          << "round " << round << " types " << int(convolution.type) << " " << int(convolution.to) << " at " << n << ","
          << o << "," << i << "," << j;
    }
  }
}

TEST(Simulator, ProductsOfRowsAreTheirDefinition) {
  constexpr Type types[] = {Type::i8, Type::u8, Type::i16}, results[] = {Type::i8, Type::i16, Type::f32, Type::i32};
  for (int round = 0; round < 80; ++round) {
    const Chip &chip = *chips[round % 2];
    Type type = types[between(0, 2)], to = results[between(0, 3)];
    bool isRaw = to == Type::i32, integral = !isRaw && to != Type::f32 && chip.requantise != "float";
    bool gains = !isRaw && !integral && between(0, 1), hasResidual = !isRaw && !integral && between(0, 1);
    // Some rounds have more columns than the simulator stores at once.
    Shape shape{{uint32_t(between(1, 3)), uint32_t(between(1, 19)), 1, uint32_t(between(1, round % 8 ? 40 : 600))}};
    auto channels = uint32_t(between(1, 50));
    Values a = random({{shape.dims[0], shape.dims[1], 1, channels}}, type == Type::u8 ? 0 : -128, 127);
    bool isShared = between(0, 1);
    Values b = random({{isShared ? 1 : shape.dims[0], channels, 1, shape.dims[3]}}, -127, 127),
           r = random(shape, -128, 127);
    Values p(Shape{{1, shape.dims[3], 1, integral || gains ? 3u : 2u}});
    for (uint32_t j = 0; j < shape.dims[3]; ++j) {
      p.at(0, j, 0, 0) = std::bit_cast<float>(int32_t(between(-9000, 9000)));
      p.at(0, j, 0, 1) =
          integral ? std::bit_cast<float>(int32_t(between(1 << 30, INT32_MAX))) : float(between(1, 1000)) * 1e-6f;
      if (integral || gains) {
        p.at(0, j, 0, 2) = integral ? std::bit_cast<float>(int32_t(between(30, 50))) : float(between(-9, 9)) * 0.3f;
      }
    }
    matmul_command c;
    c.shape = shape, c.channels = channels, c.output.zeroPoint = float(between(-9, 9));
    c.output.flags = uint8_t(isRaw      ? Output::raw
                             : integral ? Output::perChannel | Output::integral | Output::clamps
                                        : Output::perChannel | (gains ? Output::gains : 0));
    c.output.lower = integral ? -20.0f : 0, c.output.upper = integral ? 30.0f : 0;
    SimulatorRunner bench(chip);
    c.a = bench.input(a, type), c.b = bench.input(b, Type::i8, true), c.p = bench.input(p, Type::i32, true);
    c.b.strides[0] = isShared ? 0 : c.b.strides[0];
    if (hasResidual) {
      c.r = bench.input(r, Type::i8), c.output.residualScale = 0.05f, c.output.residualZero = 3;
      c.output.flags |= between(0, 1) ? Output::late : 0;
    }
    c.y = bench.result(shape, to);
    Values got = bench.run(encode(c));
    for (size_t at = 0; at < got.data.size(); ++at) {
      auto j = uint32_t(at % shape.dims[3]), i = uint32_t(at / shape.dims[3] % shape.dims[1]),
           n = uint32_t(at / shape.dims[3] / shape.dims[1]);
      int64_t sum = 0;
      for (uint32_t k = 0; k < channels; ++k) {
        sum += int64_t(a.at(n, i, 0, k)) * int64_t(b.at(isShared ? 0 : n, k, 0, j));
      }
      auto bias = std::bit_cast<int32_t>(p.at(0, j, 0, 0));
      Parameters own{bias, p.at(0, j, 0, 1), integral ? std::bit_cast<int32_t>(p.at(0, j, 0, 2)) : 0,
                     gains ? p.at(0, j, 0, 2) : 1.0f};
      float wanted = isRaw ? float(sum + bias) : finished(c.output, sum, own, hasResidual ? r.at(n, i, 0, j) : 0, to);
      ASSERT_EQ(got.data[at], wanted) << "round " << round << " at " << n << "," << i << "," << j;
    }
  }
}

TEST(Simulator, FloatsAreMultipliedByFloatsOfOtherTypes) {
  const Chip chip = changedEdge({R"(types=["int8", "bf16", "f16", "f32"])"});
  constexpr Type types[] = {Type::bf16, Type::f16, Type::f32, Type::i8};
  for (int round = 0; round < 48; ++round) {
    Type xType = types[round % 3], wType = types[round / 3 % 4];
    bool isDepthwise = round / 12 % 2;
    uint32_t channels = uint32_t(between(1, 20)), outputs = isDepthwise ? channels : uint32_t(between(1, 20));
    // Whole numbers, so that no sum is rounded. The f32 values have more bits than one pass handles.
    auto draw = [&](Shape of, Type type) { return type == Type::f32 ? random(of, -70000, 70000) : random(of, -9, 9); };
    Values x = draw({{1, channels, 6, 11}}, xType), p(Shape{{1, outputs, 1, 2}});
    Values w = isDepthwise ? draw({{1, outputs, 3, 1}}, wType) : draw({{1, outputs, 3, channels}}, wType);
    if (xType == Type::f32 && wType == Type::f32) {
      w = random(w.shape, -3, 3);
    }
    Shape shape{{1, outputs, 6, 11}};
    SimulatorRunner bench(chip);
    auto run = [&](auto c) {
      c.shape = shape, c.window.kernel[0] = 3, c.window.padding[0] = 1;
      if constexpr (requires { c.channels; }) {
        c.channels = channels;
      }
      c.rows = 6, c.columns = 11, c.x = bench.input(x, xType), c.w = bench.input(w, wType);
      c.y = bench.result(shape, Type::f32);
      return bench.run(encode(c));
    };
    Values got = isDepthwise ? run(depthwise_command()) : run(conv_command());
    for (uint32_t o = 0; o < outputs; ++o) {
      for (uint32_t i = 0; i < 6; ++i) {
        for (uint32_t j = 0; j < 11; ++j) {
          float sum = 0;
          for (uint32_t k = 0; k < 3; ++k) {
            for (uint32_t c = 0; c < (isDepthwise ? 1 : channels) && i + k >= 1 && i + k < 7; ++c) {
              sum += x.at(0, isDepthwise ? o : c, i + k - 1, j) * (isDepthwise ? w.at(0, o, k, 0) : w.at(0, o, k, c));
            }
          }
          ASSERT_EQ(got.at(0, o, i, j), sum) << "types " << int(xType) << " and " << int(wType);
        }
      }
    }
  }
}

namespace {

enum class Kind { depthwise, sum, largest };

/// A random window over each channel separately.
struct RandomSliding {
  explicit RandomSliding(Type type)
      : kind(Kind(between(type == Type::f32 ? 1 : 0, 2))), type(type), window(randomWindow(4, type != Type::f32)),
        x(random(
            {{uint32_t(between(1, 2)), uint32_t(between(1, 20)), uint32_t(between(3, 9)), uint32_t(between(3, 40))}},
            lowestOf(type), type == Type::i16 ? 32767 : 127)),
        shape{{x.shape.dims[0], x.shape.dims[1], uint32_t(between(1, 6)), uint32_t(between(1, 37))}},
        w(random({{1, shape.dims[1], window.kernel[0], window.kernel[1]}}, -127, 127)) {
    output.function = kind == Kind::largest ? Function::none : Function::silu;
    output.factor = kind == Kind::largest ? 1 : 0.003f;
  }

  Values run() {
    SimulatorRunner bench(edge);
    uint16_t rows = uint16_t(x.shape.dims[2]), columns = uint16_t(x.shape.dims[3]);
    if (kind == Kind::depthwise) {
      depthwise_command c;
      c.shape = shape, c.window = window, c.rows = rows, c.columns = columns, c.output = output;
      c.x = bench.input(x, type), c.w = bench.input(w, Type::i8), c.y = bench.result(shape, type);
      return bench.run(encode(c));
    }
    pool_command c;
    c.shape = shape, c.window = window, c.rows = rows, c.columns = columns, c.output = output;
    c.largest = kind == Kind::largest;
    c.x = bench.input(x, type), c.y = bench.result(shape, type);
    return bench.run(encode(c));
  }

  float wanted(uint32_t n, uint32_t c, uint32_t i, uint32_t j) {
    double sum = 0;
    float largest = type == Type::f32 ? -std::numeric_limits<float>::infinity() : float(lowestOf(type));
    for (uint32_t k = 0; k < window.kernel[0]; ++k) {
      for (uint32_t l = 0; l < window.kernel[1]; ++l) {
        bool inside;
        float value = seen(x, window, n, c, i, j, k, l, &inside);
        sum += kind == Kind::depthwise ? double(value) * w.at(0, c, k, l) : value;
        largest = inside ? std::max(largest, value) : largest;
      }
    }
    if (type == Type::f32) { // also a whole number, except for the maximum of an empty window
      float v = (kind == Kind::largest ? largest : float(sum)) * output.factor;
      return output.function == Function::silu ? v * numerics::sigmoid(numerics::Single{v}).v : v;
    }
    return finished(output, int64_t(kind == Kind::largest ? largest : sum), {0, output.factor, 0, 1}, 0, type);
  }

  static int64_t lowestOf(Type type) { return type == Type::i16 ? -32768 : -128; }

  const Kind kind;
  const Type type;
  Window window;
  Values x;
  Shape shape;
  Values w;
  Output output;
};

} // namespace

TEST(Simulator, DepthwiseAndPoolsAreTheirDefinition) {
  constexpr Type types[] = {Type::i8, Type::f32, Type::i16};
  for (int round = 0; round < 120; ++round) {
    RandomSliding sliding(types[round % 3]);
    Values got = sliding.run();
    for (size_t at = 0; at < got.data.size(); ++at) {
      const uint32_t *dims = got.shape.dims;
      ASSERT_EQ(got.data[at],
                sliding.wanted(uint32_t(at / dims[3] / dims[2] / dims[1]), uint32_t(at / dims[3] / dims[2] % dims[1]),
                               uint32_t(at / dims[3] % dims[2]), uint32_t(at % dims[3])))
          << "round " << round << " kind " << int(sliding.kind) << " at " << at;
    }
  }
}

class OnEachChip : public testing::TestWithParam<const Chip *> {};
INSTANTIATE_TEST_SUITE_P(Simulator, OnEachChip, testing::ValuesIn(chips),
                         [](const auto &each) { return each.param == &edge ? "edge" : "odd"; });

TEST_P(OnEachChip, MapsRunTheirProgram) {
  // silu(a * b - 3) if that is greater than c, otherwise c; b is broadcast over rows and c over each channel.
  Shape shape{{2, 11, 5, 300}};
  Values a = random(shape, -9, 9), b = random({{2, 11, 1, 300}}, -3, 3), c = random({{2, 11, 1, 1}}, -1, 1);
  SimulatorRunner bench(*GetParam());
  map_command m{.shape = shape, .length = 7};
  m.a = bench.input(a, Type::i8), m.b = bench.input(b, Type::f32), m.y = bench.result(shape, Type::f32);
  m.c = bench.input(c, Type::i8);
  m.b.strides[2] = m.c.strides[2] = m.c.strides[3] = 0;
  Instruction program[] = {{Op::mul, 4, 0, 1, 0},    {Op::constant, 5, 0, 0, std::bit_cast<uint32_t>(3.0f)},
                           {Op::sub, 4, 4, 5, 0},    {Op::sigmoid, 6, 4, 0, 0},
                           {Op::mul, 6, 4, 6, 0},    {Op::less, 7, 2, 6, 0},
                           {Op::select, 31, 7, 6, 2}};
  bench.constants.resize(sizeof program);
  memcpy(bench.constants.data(), program, sizeof program);
  m.program = {.strides = {0, 0, 0, 4}, .region = Region::constants, .type = Type::i32};
  m.plain = 5, m.slow = 1;
  Values got = bench.run(encode(m));
  for (uint32_t n = 0; n < 2; ++n) {
    for (uint32_t ch = 0; ch < 11; ++ch) {
      for (uint32_t h = 0; h < 5; ++h) {
        for (uint32_t w = 0; w < 300; ++w) {
          float v = a.at(n, ch, h, w) * b.at(n, ch, 0, w) - 3;
          float s = v * numerics::sigmoid(numerics::Single{v}).v;
          float limit = c.at(n, ch, 0, 0);
          ASSERT_EQ(got.at(n, ch, h, w), limit < s ? s : limit);
        }
      }
    }
  }
}

TEST_P(OnEachChip, ReductionsKeepTheOrderOfSums) {
  for (uint32_t width : {1u, 15u, 16u, 17u, 100u, 333u}) {
    Values x = random({{1, 9, 3, width}}, -1000, 1000);
    for (float &value : x.data) {
      value *= 0.001f;
    }
    for (uint8_t kind = 0; kind < 4; ++kind) {
      SimulatorRunner bench(*GetParam());
      reduce_command r{.shape = x.shape, .kind = kind};
      Shape shape = x.shape;
      shape.dims[3] = 1;
      r.x = bench.input(x, Type::f32), r.y = bench.result(shape, Type::f32);
      Values got = bench.run(encode(r));
      for (uint32_t c = 0; c < 9; ++c) {
        for (uint32_t h = 0; h < 3; ++h) {
          float *row = &x.at(0, c, h, 0);
          float partial[16], wanted = row[0];
          std::fill(partial, partial + 16, kind == 3 ? 1.0f : 0.0f);
          for (uint32_t i = 0; i < width; ++i) {
            partial[i % 16] = kind == 3 ? partial[i % 16] * row[i] : partial[i % 16] + row[i];
            wanted = kind == 1 ? std::fmax(wanted, row[i]) : std::fmin(wanted, row[i]);
          }
          for (int half = 8; half; half /= 2) {
            for (int i = 0; i < half; ++i) {
              partial[i] = kind == 3 ? partial[i] * partial[i + half] : partial[i] + partial[i + half];
            }
          }
          ASSERT_EQ(got.at(0, c, h, 0), kind % 3 == 0 ? partial[0] : wanted);
        }
      }
    }
  }
}

TEST_P(OnEachChip, SumsOfSquaresAreFused) {
  Values x = random({{1, 9, 2, 35}}, -1000, 1000);
  for (float &value : x.data) {
    value *= 0.001f;
  }
  SimulatorRunner bench(*GetParam());
  reduce_command r{.shape = x.shape, .kind = 4};
  r.x = bench.input(x, Type::f32), r.y = bench.result({{1, 9, 2, 1}}, Type::f32);
  Values got = bench.run(encode(r));
  for (uint32_t row = 0; row < 18; ++row) {
    numerics::OrderedSum sum;
    for (uint32_t i = 0; i < 35; ++i) {
      sum.addProduct({x.data[row * 35 + i]}, {x.data[row * 35 + i]});
    }
    ASSERT_EQ(got.data[row], sum.total().v);
  }
}

TEST_P(OnEachChip, DotsAreChainsOfFusedProducts) {
  for (int form = 0; form < 4; ++form) { // with and without a; sums start with s or 0
    Shape shape{{2, 13, 3, 21}};
    Values a = random({{2, 13, 3, 7}}, -1000, 1000), b = random({{2, 13, 7, 21}}, -1000, 1000),
           s = random(shape, -9, 9);
    for (Values *each : {&a, &b}) {
      for (float &value : each->data) {
        value *= 0.001f;
      }
    }
    SimulatorRunner bench(*GetParam());
    dot_command d{.shape = shape, .steps = 7};
    d.a = form & 1 ? bench.input(a, Type::f32) : Tensor(), d.b = bench.input(b, Type::f32);
    d.s = form & 2 ? bench.input(s, Type::f32) : Tensor(), d.y = bench.result(shape, Type::f32);
    Values got = bench.run(encode(d));
    for (uint32_t at = 0; at < got.data.size(); ++at) {
      uint32_t w = at % 21, h = at / 21 % 3, c = at / 63 % 13, n = at / 63 / 13;
      float sum = form & 2 ? s.data[at] : 0.0f;
      for (uint32_t k = 0; k < 7; ++k) {
        sum = std::fma(form & 1 ? a.at(n, c, h, k) : 1.0f, b.at(n, c, k, w), sum);
      }
      ASSERT_EQ(got.data[at], sum);
    }
  }
}

TEST_P(OnEachChip, PicksTakeColumnsByNumber) {
  for (Type type : {Type::i16, Type::i32}) {
    Values x = random({{2, 13, 3, 9}}, -128, 127), index = random({{1, 13, 1, 17}}, 0, 8);
    SimulatorRunner bench(*GetParam());
    pick_command p{.shape = {{2, 13, 3, 17}}, .columns = 9};
    Values given = index;
    for (float &value : given.data) {
      value = type == Type::i32 ? std::bit_cast<float>(int32_t(value)) : value;
    }
    p.x = bench.input(x, Type::i8), p.index = bench.input(given, type), p.y = bench.result(p.shape, Type::i8);
    Values got = bench.run(encode(p));
    for (uint32_t at = 0; at < got.data.size(); ++at) {
      uint32_t w = at % 17, h = at / 17 % 3, c = at / 51 % 13, n = at / 51 / 13;
      ASSERT_EQ(got.data[at], x.at(n, c, h, uint32_t(index.at(0, c, 0, w))));
    }
  }
}

TEST_P(OnEachChip, TablesAreIndexedByTheByte) {
  Values x = random({{1, 13, 4, 50}}, -128, 127), table(Shape{{1, 13, 1, 256}});
  auto entry = [](uint32_t channel, uint32_t byte) { return float(int(byte * 7 % 241) - 120 + int(channel)); };
  for (uint32_t channel = 0; channel < 13; ++channel) {
    for (uint32_t i = 0; i < 256; ++i) {
      table.at(0, channel, 0, i) = entry(channel, i);
    }
  }
  SimulatorRunner bench(*GetParam());
  lut_command l{.shape = x.shape};
  l.x = bench.input(x, Type::i8), l.table = bench.input(table, Type::i16), l.y = bench.result(x.shape, Type::i16);
  Values got = bench.run(encode(l));
  for (size_t i = 0; i < x.data.size(); ++i) {
    ASSERT_EQ(got.data[i], entry(uint32_t(i / 200), uint8_t(int8_t(x.data[i]))));
  }
}

namespace {

/// Returns the output of a stream for the input bytes 0, 1, 2 ... in the given legal order or in its own order.
std::vector<unsigned char> resultOf(const Chip &chip, const RandomStream &random, const size_t *order) {
  RegionSizes sizes = random.sizes();
  std::vector<unsigned char> given(sizes.io[0]), answer(sizes.io[1]);
  std::iota(given.begin(), given.end(), 0);
  Status status;
  Simulator simulator(chip);
  EXPECT_TRUE(simulator.allocate());
  bmrt::npu::Area areas[] = {{given.data(), given.size()}, {answer.data(), answer.size()}};
  EXPECT_TRUE(simulator.run(random.commands.data(), random.commands.size(),
                            {.constants = {}, .workspace = {}, .io = areas, .ioCount = 2}, status, order))
      << status.message;
  return answer;
}

} // namespace

TEST_P(OnEachChip, EveryLegalOrderGivesTheSame) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    RandomStream random(*GetParam(), seed);
    std::vector<unsigned char> wanted = resultOf(*GetParam(), random, nullptr);
    for (uint64_t turn = 0; turn < 20; ++turn) {
      std::vector<size_t> order = legalOrder(random.commands.data(), random.commands.size(), turn);
      ASSERT_EQ(resultOf(*GetParam(), random, order.data()), wanted) << "seed " << seed << " order " << turn;
    }
  }
}

TEST_P(OnEachChip, WithoutWaitsOrdersDiffer) {
  RandomStream random(*GetParam(), 0);
  std::vector<unsigned char> wanted = resultOf(*GetParam(), random, nullptr);
  for (Descriptor &command : random.commands) {
    command.header.wait = 0;
  }
  size_t others = 0;
  for (uint64_t turn = 0; turn < 20; ++turn) {
    std::vector<size_t> order = legalOrder(random.commands.data(), random.commands.size(), turn);
    others += resultOf(*GetParam(), random, order.data()) != wanted;
  }
  EXPECT_GT(others, 10u);
}
