//===- PlanMemory.cpp - Addresses in local memory -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/PlanMemory.h"

#include "bmodel/npu/latency.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace bmodel::npu;

namespace tessera::npu {
namespace {

constexpr uint64_t kOffsetMask = (uint64_t(1) << kBufferShift) - 1;

uint64_t bufferOf(const Tensor &tensor) { return tensor.offset >> kBufferShift; }

/// Returns the buffer that a load writes, or 0.
uint64_t targetOf(const Descriptor &load) {
  Operand operands[kMostOperands];
  operandsOf(load, operands);
  return operands[0].tensor.region == Region::local ? bufferOf(operands[0].tensor) : 0;
}

} // namespace

/// Removes a range from the gaps. Drops gaps that become smaller than |bytes|.
void MemoryPlan::subtractRange(std::vector<Range> &gaps, const Range &range, uint64_t bytes) {
  for (size_t i = 0; i < gaps.size(); ++i) {
    Range gap = gaps[i];
    if (range.end <= gap.begin || range.begin >= gap.end) {
      continue;
    }
    Range below{gap.begin, range.begin}, above{range.end, gap.end};
    bool hasBelow = range.begin >= gap.begin + bytes, hasAbove = gap.end >= range.end + bytes;
    if (hasBelow && hasAbove) {
      gaps[i] = below;
      gaps.insert(gaps.begin() + ++i, above);
    } else if (hasBelow || hasAbove) {
      gaps[i] = hasBelow ? below : above;
    } else {
      gaps.erase(gaps.begin() + i--);
    }
  }
}

MemoryPlan::MemoryPlan(const CommandStream &stream, uint32_t inputs, const Overlap &overlap)
    : stream(stream), inputs(inputs), overlap(overlap), uses(std::max<size_t>(stream.buffers.size(), 1)),
      alive(stream.stages.size()) {
  findUses();
}

void MemoryPlan::run() {
  allocate();
  if (overlap.prefetch && failed.empty()) {
    hoistLoads();
  }
}

void MemoryPlan::allocate() {
  std::vector<uint64_t> order;
  for (uint64_t buffer = 1; buffer < uses.size(); ++buffer) {
    if (uses[buffer].used()) {
      order.push_back(buffer);
    }
  }
  llvm::stable_sort(order, [&](uint64_t a, uint64_t b) { return sizeOf(a) > sizeOf(b); });
  for (uint64_t buffer : order) {
    place(buffer);
  }
}

void MemoryPlan::adopt(uint64_t buffer, uint64_t offset) {
  scheduled.reset();
  uses[buffer].offset = offset;
  occupy(buffer);
}

uint64_t MemoryPlan::sizeOf(uint64_t buffer) const {
  return llvm::alignTo(stream.buffers[buffer].bytes, std::max<uint64_t>(stream.chip.portBytes, 8));
}

bool MemoryPlan::isGiven(const Descriptor &command) const {
  if (command.header.opcode == Opcode::fill) {
    return true;
  }
  if (command.header.opcode != Opcode::copy) {
    return false;
  }
  Region region = command.as<copy_command>().x.region;
  return region == Region::constants || (region >= Region::io && uint32_t(region) - uint32_t(Region::io) < inputs);
}

uint64_t MemoryPlan::movedBy(const Descriptor &load) const {
  uint64_t target = targetOf(load);
  return target && uses[target].movable ? target : 0;
}

size_t MemoryPlan::positionOf(const Descriptor &load, size_t step) const {
  uint64_t target = movedBy(load);
  return target ? uses[target].loadAt : step - (hoistsLoads(step) ? 1 : 0);
}

/// Extends the use of a command's buffers to step |position|. |given|: the command is a load that does not depend on
/// other commands.
void MemoryPlan::touch(const Descriptor &command, size_t position, bool given) {
  Operand operands[kMostOperands];
  for (size_t k = 0, number = operandsOf(command, operands); k < number; ++k) {
    if (operands[k].tensor.region != Region::local) {
      continue;
    }
    Use &use = uses[bufferOf(operands[k].tensor)];
    use.first = std::min(use.first, position), use.last = std::max(use.last, position);
    use.movable = use.movable && (given || !operands[k].written);
  }
}

/// Returns for each step the last step whose computation is estimated to begin before the former's stores are complete,
/// if the only loads to wait for are those that cannot move.
std::vector<size_t> MemoryPlan::lastStepsBesideStores() const {
  size_t steps = stream.stages.size();
  std::vector<double> begin(steps), stored(steps);
  double dma = 0, compute = 0;
  for (size_t step = 0; step < steps; ++step) {
    const Stage &each = stream.stages[step];
    for (const Descriptor &load : each.loads) {
      dma += movedBy(load) ? 0 : costOf(load, stream.chip).cycles;
    }
    bool waits = llvm::any_of(each.loads, [&](const Descriptor &load) { return !movedBy(load); });
    begin[step] = waits ? std::max(compute, dma) : compute;
    compute = begin[step] + cyclesOf(each.computes);
    dma = each.stores.empty() ? dma : std::max(dma, compute) + cyclesOf(each.stores);
    stored[step] = dma;
  }
  std::vector<size_t> last(steps);
  for (size_t step = 0, to = 0; step < steps; ++step) {
    for (to = std::max(to, step); to + 1 < steps && begin[to + 1] < stored[step];) {
      ++to;
    }
    last[step] = stream.stages[step].stores.empty() ? step : to;
  }
  return last;
}

void MemoryPlan::findUses() {
  // The first pass finds the buffers that may move, the second the steps of the other loads.
  for (bool known : {false, true}) {
    for (size_t step = 0; step < stream.stages.size(); ++step) {
      const Stage &each = stream.stages[step];
      for (const Descriptor &load : each.loads) {
        uint64_t target = targetOf(load);
        bool moves = known && target && uses[target].movable;
        touch(load, moves || !known ? step : step - (hoistsLoads(step) ? 1 : 0), isGiven(load));
      }
      for (const Descriptor &command : each.computes) {
        touch(command, step, false);
      }
      // While this tile is stored, the next one is computed.
      bool overlaps = overlap.disjointStores && step + 1 < stream.stages.size() && hoistsLoads(step + 1);
      for (const Descriptor &command : each.stores) {
        touch(command, step, false);
        touch(command, step + (overlaps ? 1 : 0), false);
      }
    }
    for (Use &use : uses) {
      if (!known && use.used()) {
        use.first = SIZE_MAX, use.last = 0;
      }
      use.loadAt = use.first;
    }
  }
  if (!overlap.holdStores) {
    return;
  }
  std::vector<size_t> last = lastStepsBesideStores();
  for (size_t step = 0; step < last.size(); ++step) {
    for (const Descriptor &store : stream.stages[step].stores) {
      touch(store, last[step], false);
    }
  }
}

void MemoryPlan::subtractStep(std::vector<Range> &gaps, size_t step, uint64_t bytes) const {
  for (size_t i = 0; i < alive[step].size() && !gaps.empty(); ++i) {
    subtractRange(gaps, alive[step][i], bytes);
  }
}

std::vector<MemoryPlan::Range> MemoryPlan::gapsOf(size_t first, size_t last, uint64_t bytes) const {
  std::vector<Range> gaps = {{0, stream.chip.laneBytes}};
  if (bytes > stream.chip.laneBytes) {
    gaps.clear();
  }
  for (size_t step = first; step <= last && !gaps.empty(); ++step) {
    subtractStep(gaps, step, bytes);
  }
  return gaps;
}

void MemoryPlan::place(uint64_t buffer) {
  Use &use = uses[buffer];
  std::vector<Range> gaps = gapsOf(use.first, use.last, sizeOf(buffer));
  if (gaps.empty()) {
    failed.push_back({buffer, use.first, use.last});
    return;
  }
  use.offset = gaps.front().begin;
  occupy(buffer);
}

/// Marks the buffer's bytes as used during its steps.
void MemoryPlan::occupy(uint64_t buffer) {
  const Use &use = uses[buffer];
  for (size_t step = use.first; step <= use.last; ++step) {
    alive[step].push_back({use.offset, use.offset + sizeOf(buffer)});
  }
}

/// Moves the loads of a buffer from |step| to the earliest step at which the buffer fits, but not to a time at which
/// the DMA still has other work. Directly before |step|, only work in front of the previous step's stores counts,
/// because these wait for that step's computation.
void MemoryPlan::hoist(Use &use, uint64_t bytes, size_t step) {
  for (size_t at = use.first; at <= use.last; ++at) {
    llvm::erase_if(alive[at], [&](Range range) { return range.begin == use.offset; });
  }
  std::vector<Range> gaps = gapsOf(step, use.last, bytes);
  size_t first = step;
  while (first > 0 && begins[first] > (first == step ? dmaWaits : dmaFree)) {
    std::vector<Range> left = gaps;
    subtractStep(left, first - 1, bytes);
    if (left.empty()) {
      break;
    }
    gaps = std::move(left), --first;
  }
  auto tightest = llvm::min_element(gaps, [](Range a, Range b) { return a.end - a.begin < b.end - b.begin; });
  use.offset = tightest->begin, use.first = use.loadAt = first;
  for (size_t at = use.first; at <= use.last; ++at) {
    alive[at].push_back({use.offset, use.offset + bytes});
  }
}

double MemoryPlan::cyclesOf(const std::vector<Descriptor> &commands) const {
  double cycles = 0;
  for (const Descriptor &command : commands) {
    cycles += costOf(command, stream.chip).cycles;
  }
  return cycles;
}

void MemoryPlan::hoistLoads() {
  double computeFree = 0;
  begins.assign(stream.stages.size(), 0);
  for (size_t step = 0; step < stream.stages.size(); ++step) {
    begins[step] = computeFree;
    double loaded = 0;
    for (const Descriptor &load : stream.stages[step].loads) {
      uint64_t target = movedBy(load);
      Use *use = target ? &uses[target] : nullptr;
      if (use && use->first == step && use->loadAt == step) {
        hoist(*use, sizeOf(target), step);
      }
      dmaFree =
          std::max(dmaFree, begins[use ? use->loadAt : positionOf(load, step)]) + costOf(load, stream.chip).cycles;
      loaded = dmaFree;
    }
    begins[step] = std::max(computeFree, loaded);
    computeFree = begins[step] + cyclesOf(stream.stages[step].computes);
    dmaWaits = dmaFree;
    dmaFree += cyclesOf(stream.stages[step].stores);
  }
  fillIdleTime();
}

void MemoryPlan::eachInOrder(llvm::function_ref<void(size_t, const Descriptor &)> visit) const {
  std::vector<std::vector<std::pair<size_t, const Descriptor *>>> loads(stream.stages.size());
  for (size_t step = 0; step < stream.stages.size(); ++step) {
    for (const Descriptor &load : stream.stages[step].loads) {
      loads[positionOf(load, step)].push_back({step, &load});
    }
  }
  for (size_t step = 0; step < stream.stages.size(); ++step) {
    for (auto [from, load] : loads[step]) {
      visit(from, *load);
    }
    for (const auto *part : {&stream.stages[step].computes, &stream.stages[step].stores}) {
      for (const Descriptor &command : *part) {
        visit(step, command);
      }
    }
  }
}

std::vector<Descriptor> MemoryPlan::commands() const {
  std::vector<Descriptor> result;
  eachInOrder([&](size_t step, const Descriptor &command) {
    Descriptor &added = result.emplace_back(command);
    added.header.layer = stream.stages[step].layer;
    for (const FieldText &field : findCommand(command.header.opcode)->fields) {
      Tensor tensor;
      if (llvm::StringRef(field.type) != "Tensor") {
        continue;
      }
      std::memcpy(&tensor, command.body + field.offset, sizeof tensor);
      if (tensor.region == Region::local) {
        tensor.offset = uses[bufferOf(tensor)].offset + (tensor.offset & kOffsetMask) - kBufferBegin;
        std::memcpy(added.body + field.offset, &tensor, sizeof tensor);
      }
    }
  });
  return result;
}

uint64_t MemoryPlan::peak() const {
  uint64_t most = 0;
  for (const std::vector<Range> &ranges : alive) {
    most = std::max(most, std::accumulate(ranges.begin(), ranges.end(), uint64_t(0),
                                          [](uint64_t sum, Range range) { return sum + range.end - range.begin; }));
  }
  return most;
}

} // namespace tessera::npu
