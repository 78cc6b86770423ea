// SPDX-License-Identifier: Apache-2.0
//===- Roofline.cpp - Lower bounds of a stream's time -----------------------===//
#include "bmodel/npu/latency.h"
#include "bmodel/npu/report.h"

#include <algorithm>

namespace bmodel::npu {
namespace {

double elementsOf(const Shape &s) { return double(s.dims[0]) * s.dims[1] * s.dims[2] * s.dims[3]; }
double tapsOf(const Window &window) { return double(window.kernel[0]) * window.kernel[1]; }

/// Multiplications of all lanes in one cycle.
double productsPerCycle(Type x, const Chip &chip) {
  return double(chip.lanes) * chip.macsPerLane() / divisorOf(x, chip);
}

double vectors(const Shape &shape, double instructions, const Chip &chip) {
  return elementsOf(shape) * instructions / (double(chip.lanes) * chip.vectorBytes / 4);
}

double idealOf(const copy_command &, const Chip &) { return 0; }
double idealOf(const fill_command &, const Chip &) { return 0; }
double idealOf(const gather_command &, const Chip &) { return 0; }
double idealOf(const conv_command &c, const Chip &chip) {
  double passes = passesOf(c.x.type, c.w.type);
  return elementsOf(c.shape) * tapsOf(c.window) * c.channels * passes / productsPerCycle(c.x.type, chip);
}
double idealOf(const matmul_command &c, const Chip &chip) {
  return elementsOf(c.shape) * c.channels * passesOf(c.a.type, c.b.type) / productsPerCycle(c.a.type, chip);
}
double idealOf(const depthwise_command &c, const Chip &chip) {
  double passes = passesOf(c.x.type, c.w.type);
  return elementsOf(c.shape) * tapsOf(c.window) * passes * chip.depthwiseDivisor / productsPerCycle(c.x.type, chip);
}
double idealOf(const pool_command &c, const Chip &chip) {
  return elementsOf(c.shape) * tapsOf(c.window) * chip.depthwiseDivisor / productsPerCycle(c.x.type, chip);
}
double idealOf(const map_command &c, const Chip &chip) {
  return vectors(c.shape, std::max(c.plain + double(c.slow) * chip.functionCycles, 1.0), chip);
}
double idealOf(const reduce_command &c, const Chip &chip) { return vectors(c.shape, 1, chip); }
double idealOf(const lut_command &c, const Chip &chip) { return vectors(c.shape, 1, chip); }
double idealOf(const dot_command &c, const Chip &chip) { return vectors(c.shape, c.steps, chip); }
double idealOf(const pick_command &c, const Chip &chip) { return elementsOf(c.shape) / chip.lanes; }

double idealOf(const Descriptor &command, const Chip &chip) {
  switch (command.header.opcode) {
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    return idealOf(command.as<name##_command>(), chip);
#include "bmodel/npu/isa.inc"
  }
  return 0;
}

double &partOf(Roofline &roofline, Opcode opcode) {
  bool slides = opcode == Opcode::depthwise || opcode == Opcode::pool;
  bool isDense = opcode == Opcode::conv || opcode == Opcode::matmul;
  return isDense ? roofline.dense : slides ? roofline.depthwise : roofline.vector;
}

} // namespace

Roofline rooflineOf(const Descriptor *commands, size_t count, const MemoryReport &memory, const Chip &chip) {
  Roofline roofline;
  for (size_t i = 0; i < count; ++i) {
    double ideal = idealOf(commands[i], chip);
    roofline.compute += ideal;
    double &part = partOf(roofline, commands[i].header.opcode);
    part += ideal;
    if (&part != &roofline.vector) {
      roofline.matrixOfLayer[commands[i].header.layer] += ideal;
    }
  }
  roofline.ddr = double(memory.ddrLowerBound) * chip.clockGhz / chip.ddrGbps;
  return roofline;
}

} // namespace bmodel::npu
