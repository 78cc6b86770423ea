// SPDX-License-Identifier: Apache-2.0
//===- Latency.cpp - How long one command takes ----------------------------===//
#include "bmodel/npu/latency.h"

#include <algorithm>
#include <cmath>

namespace bmodel::npu {
namespace {

uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
uint64_t elementsOf(const Shape &s) { return uint64_t(s.dims[0]) * s.dims[1] * s.dims[2] * s.dims[3]; }

/// Number and size of the contiguous byte runs of a tensor; a dim with stride 0 is read once.
struct Runs {
  uint64_t bytes = 0, count = 1;
  bool aligned = true; ///< each run begins at a multiple of the burst size
};

Runs runsOf(const Tensor &tensor, const Shape &shape, uint32_t burst) {
  struct Dim {
    uint64_t stride, size;
  } dims[4];
  for (int i = 0; i < 4; ++i) {
    dims[i] = {uint64_t(std::abs(int64_t(tensor.strides[i]))), tensor.strides[i] ? shape.dims[i] : 1};
  }
  std::sort(std::begin(dims), std::end(dims), [](Dim a, Dim b) { return a.stride < b.stride; });
  Runs runs{sizeOf(tensor.type), 1, tensor.offset % burst == 0};
  for (const Dim &dim : dims) {
    if (dim.size == 1) {
      continue;
    }
    if (runs.count == 1 && dim.stride == runs.bytes) {
      runs.bytes *= dim.size;
    } else {
      runs.count *= dim.size;
      runs.aligned = runs.aligned && dim.stride % burst == 0;
    }
  }
  return runs;
}

/// Distributes `cycles` of port time over the banks that a local tensor occupies, in proportion to its bytes in each.
void usePorts(Cost &cost, const Tensor &tensor, const Shape &shape, const Chip &chip, double cycles) {
  if (tensor.region != Region::local || cycles <= 0) {
    return;
  }
  cost.ports.resize(chip.banks);
  uint32_t groups = uint32_t(ceilDiv(tensor.lane + shape.dims[1], chip.lanes));
  int64_t extent[4] = {shape.dims[0], groups, shape.dims[2], shape.dims[3]};
  int64_t last = int64_t(tensor.offset) + sizeOf(tensor.type) - 1;
  for (int i = 0; i < 4; ++i) {
    last += (extent[i] - 1) * std::max<int64_t>(tensor.strides[i], 0);
  }
  uint64_t bank = chip.bankBytes(), first = tensor.offset / bank;
  uint64_t end = std::min<uint64_t>(uint64_t(last) / bank, chip.banks - 1);
  uint64_t bytes = uint64_t(last) + 1 - tensor.offset;
  for (uint64_t b = first; b <= end; ++b) {
    uint64_t low = std::max(tensor.offset, b * bank), high = std::min<uint64_t>(last + 1, (b + 1) * bank);
    cost.ports[b] += cycles * double(high - low) / double(bytes);
  }
}

void atLeast(Cost &cost, double cycles, Bound bound) {
  if (cycles > cost.cycles) {
    cost.cycles = cycles, cost.bound = bound;
  }
}

/// Raises the cost if the command's operands together occupy one bank's port for longer.
void addPorts(Cost &cost) {
  for (double cycles : cost.ports) {
    atLeast(cost, cycles, Bound::port);
  }
}

//--- DMA ---

/// Adds the DDR traffic of one side of a transfer of `shape`; returns the cycles that it takes in local memory.
double sideOf(Cost &cost, const Tensor &tensor, const Shape &shape, const Chip &chip, Traffic &traffic) {
  if (tensor.region == Region::local) {
    // Each lane moves at most the width of a port per cycle, and only contiguous bytes.
    Shape inLane = shape;
    uint32_t used = std::min(shape.dims[1], chip.lanes);
    inLane.dims[1] = uint32_t(ceilDiv(shape.dims[1], chip.lanes));
    uint64_t together = std::min<uint64_t>(runsOf(tensor, inLane, 1).bytes, chip.portBytes);
    double perLane = double(elementsOf(inLane) * sizeOf(tensor.type)) / double(together);
    double whole = double(elementsOf(inLane) * sizeOf(tensor.type) * used) / chip.dmaLocalBytes;
    usePorts(cost, tensor, shape, chip, perLane);
    return std::max(perLane, whole);
  }
  Runs runs = runsOf(tensor, shape, chip.burstBytes);
  uint64_t bursts = ceilDiv(runs.bytes, chip.burstBytes);
  if (!runs.aligned) {
    bursts = (runs.bytes + chip.burstBytes - 2) / chip.burstBytes + 1;
  }
  traffic.asked += runs.count * runs.bytes;
  traffic.moved += runs.count * bursts * chip.burstBytes;
  return 0;
}

Cost transfer(const Tensor &y, const Tensor *x, const Shape &shape, const Chip &chip, uint64_t indexBytes = 0) {
  Cost cost;
  cost.read = {indexBytes, ceilDiv(indexBytes, chip.burstBytes) * chip.burstBytes};
  double local = sideOf(cost, y, shape, chip, cost.written);
  local = std::max(local, x ? sideOf(cost, *x, shape, chip, cost.read) : 0);
  atLeast(cost, double(cost.read.moved + cost.written.moved) / chip.ddrBytesPerCycle(), Bound::ddr);
  atLeast(cost, local, Bound::local);
  addPorts(cost);
  cost.bound = cost.cycles < chip.dmaLatency ? Bound::latency : cost.bound;
  cost.cycles += chip.dmaLatency;
  return cost;
}

Cost cost(const copy_command &c, const Chip &chip) { return transfer(c.y, &c.x, c.shape, chip); }
Cost cost(const fill_command &c, const Chip &chip) { return transfer(c.y, nullptr, c.shape, chip); }
Cost cost(const gather_command &c, const Chip &chip) {
  bool isLocal = c.index.region == Region::local;
  return transfer(c.y, &c.x, c.shape, chip, isLocal ? 0 : sizeOf(Type::i32) * c.shape.dims[1]);
}

//--- The matrix unit ---

bool isCostly(Function function) {
  return function == Function::sigmoid || function == Function::silu || function == Function::tanh ||
         function == Function::gelu || function == Function::exp;
}

/// Returns the results per lane and cycle. Gains take a second pass through the multiplier.
double outputRate(const Output &output, const Chip &chip) {
  double rate = output.flags & Output::gains ? chip.outputs / 2.0 : chip.outputs;
  return isCostly(output.function) ? std::min(chip.functions, rate) : rate;
}

/// Adds the port time of storing the results and of reading the residual r.
void addStore(Cost &cost, const Tensor &y, const Tensor *r, const Shape &shape, const Chip &chip, double perLane) {
  usePorts(cost, y, shape, chip, perLane * double(sizeOf(y.type)) / chip.portBytes);
  if (r) {
    usePorts(cost, *r, shape, chip, perLane * double(sizeOf(r->type)) / chip.portBytes);
  }
}

Cost cost(const conv_command &c, const Chip &chip) {
  Cost result;
  uint64_t chunk = std::min(chip.reduction, chip.lanes);
  uint64_t positions = uint64_t(c.shape.dims[0]) * c.shape.dims[2] * c.shape.dims[3];
  uint64_t groups = ceilDiv(c.y.lane + c.shape.dims[1], chip.lanes);
  uint64_t taps = uint64_t(c.window.kernel[0]) * c.window.kernel[1] * ceilDiv(c.channels, chunk);
  double divisor = divisorOf(c.x.type, chip) * passesOf(c.x.type, c.w.type);
  // The weights of the next tap are loaded while the current tap is computed.
  double loadWeights = double(chunk * sizeOf(c.w.type)) / chip.portBytes;
  double multiply = 0, store = 0;
  uint64_t blocks = ceilDiv(positions, chip.accumulators);
  auto addBlocks = [&](uint64_t size, uint64_t count) {
    double sums = double(taps) * std::max(double(ceilDiv(size, chip.pixels)) * divisor, loadWeights);
    double results = double(size) / outputRate(c.output, chip);
    (sums >= results ? multiply : store) += double(count * groups) * std::max(sums, results);
  };
  addBlocks(chip.accumulators, blocks - 1);
  addBlocks(positions - (blocks - 1) * chip.accumulators, 1);
  result.macs = elementsOf(c.shape) * c.window.kernel[0] * c.window.kernel[1] * c.channels;
  atLeast(result, multiply + store, multiply >= store ? Bound::multiply : Bound::output);
  Shape x{{c.shape.dims[0], c.channels, c.rows, c.columns}},
      w{{1, c.shape.dims[1], uint32_t(c.window.kernel[0]) * c.window.kernel[1], c.channels}};
  double reads = double(positions * groups * taps) * double(sizeOf(c.x.type)) * c.window.step[1] / c.window.spread[1];
  usePorts(result, c.x, x, chip, reads / chip.portBytes);
  usePorts(result, c.w, w, chip, double(blocks * groups * taps) * loadWeights);
  addStore(result, c.y, c.r.region == Region::none ? nullptr : &c.r, c.shape, chip, double(positions * groups));
  addPorts(result);
  result.cycles += chip.matrixFill + chip.issueCycles;
  return result;
}

/// The rows of a (over lanes) take the role of a conv's weights, and columns take the role of its positions. The
/// parameters of each column are broadcast to all lanes, like b.
Cost cost(const matmul_command &c, const Chip &chip) {
  Cost result;
  uint64_t chunk = std::min(chip.reduction, chip.lanes), columns = c.shape.dims[3];
  uint64_t groups = c.shape.dims[0] * ceilDiv(c.y.lane + c.shape.dims[1], chip.lanes);
  uint64_t taps = ceilDiv(c.channels, chunk), blocks = ceilDiv(columns, chip.accumulators);
  double divisor = divisorOf(c.a.type, chip) * passesOf(c.a.type, c.b.type);
  double loadRows = double(chunk * sizeOf(c.a.type)) / chip.portBytes;
  double perColumn = c.p.region == Region::none                            ? 0
                     : c.output.flags & (Output::integral | Output::gains) ? 3 * sizeof(int32_t)
                                                                           : 2 * sizeof(int32_t);
  double multiply = 0, store = 0;
  auto addBlocks = [&](uint64_t size, uint64_t count) {
    double sums = double(taps) * std::max(double(ceilDiv(size, chip.pixels)) * divisor, loadRows) +
                  double(size) * perColumn / double(chunk * chip.pixels);
    double results = double(size) / outputRate(c.output, chip);
    (sums >= results ? multiply : store) += double(count * groups) * std::max(sums, results);
  };
  addBlocks(chip.accumulators, blocks - 1);
  addBlocks(columns - (blocks - 1) * chip.accumulators, 1);
  result.macs = elementsOf(c.shape) * c.channels;
  atLeast(result, multiply + store, multiply >= store ? Bound::multiply : Bound::output);
  Shape a{{c.shape.dims[0], c.shape.dims[1], 1, c.channels}}, b{{c.shape.dims[0], c.channels, 1, c.shape.dims[3]}};
  usePorts(result, c.a, a, chip, double(blocks * groups * taps) * loadRows);
  usePorts(result, c.b, b, chip, double(columns * groups * taps) * double(sizeOf(c.b.type)) / chip.portBytes);
  usePorts(result, c.p, {{1, c.shape.dims[3], 1, 2}}, chip,
           double(groups * ceilDiv(columns, chip.lanes)) * perColumn / chip.portBytes);
  addStore(result, c.y, c.r.region == Region::none ? nullptr : &c.r, c.shape, chip, double(columns * groups));
  addPorts(result);
  result.cycles += chip.matrixFill + chip.issueCycles;
  return result;
}

/// Returns the cost of a window that slides over each channel separately.
Cost sliding(const Tensor &y, const Tensor &x, uint32_t passes, const Tensor *r, const Shape &shape,
             const Window &window, uint16_t rows, uint16_t columns, const Output &output, const Chip &chip) {
  Cost result;
  uint64_t groups = ceilDiv(y.lane + shape.dims[1], chip.lanes);
  uint64_t positions = uint64_t(shape.dims[0]) * shape.dims[2] * shape.dims[3] * groups;
  uint64_t taps = uint64_t(window.kernel[0]) * window.kernel[1];
  double rate = double(chip.macsPerLane()) / chip.depthwiseDivisor / divisorOf(x.type, chip) / passes;
  atLeast(result, double(positions * taps) / rate, Bound::multiply);
  atLeast(result, double(positions) / outputRate(output, chip), Bound::output);
  // Windows of neighbouring positions overlap within a row; each row is read once per kernel row.
  Shape in{{shape.dims[0], shape.dims[1], rows, columns}};
  double reads = double(positions) * window.kernel[0] * window.step[1] / window.spread[1] * double(sizeOf(x.type));
  usePorts(result, x, in, chip, reads / chip.portBytes);
  addStore(result, y, r, shape, chip, double(positions));
  addPorts(result);
  result.cycles += chip.matrixFill + chip.issueCycles;
  return result;
}

Cost cost(const depthwise_command &c, const Chip &chip) {
  Cost result = sliding(c.y, c.x, passesOf(c.x.type, c.w.type), c.r.region == Region::none ? nullptr : &c.r, c.shape,
                        c.window, c.rows, c.columns, c.output, chip);
  result.macs = elementsOf(c.shape) * c.window.kernel[0] * c.window.kernel[1];
  return result;
}

Cost cost(const pool_command &c, const Chip &chip) {
  return sliding(c.y, c.x, 1, nullptr, c.shape, c.window, c.rows, c.columns, c.output, chip);
}

//--- The vector unit ---

/// Returns the number of vectors that a lane processes. Rows are merged if all operands are contiguous across rows.
double vectorsOf(const Shape &shape, std::initializer_list<const Tensor *> tensors, const Chip &chip) {
  uint64_t groups = ceilDiv((*tensors.begin())->lane + shape.dims[1], chip.lanes), width = chip.vectorBytes / 4;
  bool joined = true;
  for (const Tensor *each : tensors) {
    joined = joined && (each->region == Region::none || each->strides[2] == each->strides[3] * int32_t(shape.dims[3]));
  }
  uint64_t rows = shape.dims[0] * groups * (joined ? 1 : shape.dims[2]);
  return double(rows * ceilDiv(uint64_t(shape.dims[3]) * (joined ? shape.dims[2] : 1), width));
}

Cost vectorCost(double cycles, const Shape &shape, std::initializer_list<const Tensor *> tensors, const Chip &chip) {
  Cost result;
  atLeast(result, cycles, Bound::vector);
  uint64_t perLane = uint64_t(shape.dims[0]) * ceilDiv(shape.dims[1], chip.lanes) * shape.dims[2] * shape.dims[3];
  for (const Tensor *each : tensors) {
    usePorts(result, *each, shape, chip, double(perLane * sizeOf(each->type)) / chip.portBytes);
  }
  addPorts(result);
  result.cycles += chip.vectorFill + chip.issueCycles;
  return result;
}

Cost cost(const map_command &c, const Chip &chip) {
  double vectors = vectorsOf(c.shape, {&c.y, &c.a, &c.b, &c.c, &c.d}, chip);
  double cycles = c.plain + double(c.slow) * chip.functionCycles;
  return vectorCost(vectors * std::max(cycles, 1.0), c.shape, {&c.y, &c.a, &c.b, &c.c, &c.d}, chip);
}

Cost cost(const reduce_command &c, const Chip &chip) {
  double rows = double(c.shape.dims[0]) * double(ceilDiv(c.x.lane + c.shape.dims[1], chip.lanes)) * c.shape.dims[2];
  double fold = 4; // 16 partial sums become one
  Cost result =
      vectorCost(rows * (double(ceilDiv(c.shape.dims[3], chip.vectorBytes / 4)) + fold), c.shape, {&c.x}, chip);
  return result;
}

Cost cost(const lut_command &c, const Chip &chip) {
  return vectorCost(vectorsOf(c.shape, {&c.y, &c.x}, chip), c.shape, {&c.y, &c.x}, chip);
}

/// Processes vectors along w, step by step. A step of the same sums begins when the previous step has left the
/// pipeline.
Cost cost(const dot_command &c, const Chip &chip) {
  constexpr double kInFlight = 4;
  Cost result;
  uint64_t groups = ceilDiv(c.y.lane + c.shape.dims[1], chip.lanes), width = chip.vectorBytes / 4;
  double rows = double(c.shape.dims[0] * groups) * c.shape.dims[2];
  double vectors = rows * double(ceilDiv(c.shape.dims[3], width)), elements = rows * c.shape.dims[3];
  atLeast(result, c.steps * std::max(vectors, kInFlight), Bound::vector);
  // Each vector of b needs one element of a. One access fetches a whole vector of b only if its elements are
  // contiguous.
  Shape a = c.shape, b = c.shape;
  a.dims[3] = b.dims[2] = c.steps;
  double size = double(sizeOf(c.b.type));
  bool together = c.b.strides[3] == int32_t(size) || c.shape.dims[3] == 1;
  usePorts(result, c.a, a, chip, vectors * c.steps * double(sizeOf(c.a.type)) / chip.portBytes);
  usePorts(result, c.b, b, chip, elements * c.steps * (together ? size / chip.portBytes : 1));
  for (const Tensor *each : {&c.s, &c.y}) {
    usePorts(result, *each, c.shape, chip, elements * 4 / chip.portBytes);
  }
  addPorts(result);
  result.cycles += chip.vectorFill + chip.issueCycles;
  return result;
}

/// Takes one cycle per element and lane, because every element is a separate access.
Cost cost(const pick_command &c, const Chip &chip) {
  Cost result;
  uint64_t groups = ceilDiv(c.y.lane + c.shape.dims[1], chip.lanes);
  double elements = double(c.shape.dims[0] * groups) * c.shape.dims[2] * c.shape.dims[3];
  atLeast(result, elements, Bound::vector);
  Shape x = c.shape, index = {{1, c.shape.dims[1], 1, c.shape.dims[3]}};
  x.dims[3] = c.columns;
  usePorts(result, c.x, x, chip, elements);
  usePorts(result, c.index, index, chip, elements * double(sizeOf(c.index.type)) / chip.portBytes);
  usePorts(result, c.y, c.shape, chip, elements * double(sizeOf(c.y.type)) / chip.portBytes);
  addPorts(result);
  result.cycles += chip.vectorFill + chip.issueCycles;
  return result;
}

} // namespace

double divisorOf(Type x, const Chip &chip) {
  return isFloat(x) ? chip.floatDivisor : sizeOf(x) == 2 ? chip.int16Divisor : 1;
}

uint32_t passesOf(Type x, Type w) { return (x == Type::f32 ? 2 : 1) * (w == Type::f32 ? 2 : 1); }

const char *nameOf(Bound bound) {
  constexpr const char *names[] = {"latency", "ddr", "local memory", "multiply", "output", "vector", "bank port"};
  return names[int(bound)];
}

Cost costOf(const Descriptor &command, const Chip &chip) {
  switch (command.header.opcode) {
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    return cost(command.as<name##_command>(), chip);
#include "bmodel/npu/isa.inc"
  }
  return {};
}

} // namespace bmodel::npu
