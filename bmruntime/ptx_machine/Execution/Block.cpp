//===- Block.cpp - A block of threads in execution ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Block.h"

#include "bmruntime/ptx_machine/Execution/BarrierFlags.h"

#include <algorithm>
#include <sstream>

namespace ptx {
namespace {

constexpr uint64_t kSlice = 4096; ///< instructions of a warp before the next warp gets a turn

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15u;
  return value ^ (value >> 29);
}

std::unique_ptr<uint8_t[], void (*)(void *)> alignedBytes(uint64_t bytes) {
  return {static_cast<uint8_t *>(std::aligned_alloc(128, (bytes + 255) / 128 * 128)), &std::free};
}

} // namespace

bool Warp::regroup() {
  Mask candidates = alive & ~parked;
  uint32_t lowest = ~0u, next = ~0u;
  for (Mask rest = candidates; rest != 0; rest &= rest - 1) {
    lowest = std::min(lowest, counters[__builtin_ctz(rest)]);
  }
  active = 0;
  for (Mask rest = candidates; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    if (counters[lane] == lowest) {
      active |= 1u << lane;
    } else {
      next = std::min(next, counters[lane]);
    }
  }
  pc = lowest;
  limit = next;
  return active != 0;
}

Block::Block(Launch &launch, Counts &counts)
    : launch(launch), counts(counts), kernel(*launch.kernel), copies(launch.sharedBytes(), launch.threads()),
      races(launch.sharedBytes(), (launch.threads() + kLanes - 1) / kLanes, launch.options.races),
      warps((launch.threads() + kLanes - 1) / kLanes), files(alignedBytes(warps.size() * kernel.file.size())),
      shared(alignedBytes(launch.sharedBytes())), local(alignedBytes(uint64_t(launch.threads()) * kernel.localBytes)),
      sharedWritten(launch.sharedBytes()), localWritten(uint64_t(launch.threads()) * kernel.localBytes) {}

void Block::begin(uint64_t which) {
  index = which;
  position[0] = uint32_t(index % launch.grid[0]);
  position[1] = uint32_t(index / launch.grid[0] % launch.grid[1]);
  position[2] = uint32_t(index / launch.grid[0] / launch.grid[1]);
  order = mix(launch.options.seed * 1000003 + launch.id * 8191 + index);
  sharedWritten.clear();
  localWritten.clear();
  races.begin();
  copies.begin();
  barriers = {};
  for (unsigned w = 0; w < warps.size(); ++w) {
    Warp &warp = warps[w];
    warp = Warp();
    warp.file = reinterpret_cast<char *>(files.get()) + w * kernel.file.size();
    warp.block = this;
    warp.index = w;
    unsigned threads = std::min(launch.threads() - w * kLanes, kLanes);
    warp.all = threads == kLanes ? kAllLanes : (1u << threads) - 1;
    warp.alive = warp.active = warp.all;
    warp.limit = ~0u;
    std::memcpy(warp.file, kernel.file.data(), kernel.file.size());
    fillSpecials(warp);
  }
  ++counts.blocks;
  counts.warps += warps.size();
}

void Block::fillSpecials(Warp &warp) {
  const uint32_t *size = launch.block;
  for (const SpecialUse &use : kernel.specials) {
    auto *values = warp.reg<uint32_t>(use.offset);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned thread = warp.thread(lane);
      const uint32_t all[] = {thread % size[0],
                              thread / size[0] % size[1],
                              thread / size[0] / size[1],
                              size[0],
                              size[1],
                              size[2],
                              position[0],
                              position[1],
                              position[2],
                              launch.grid[0],
                              launch.grid[1],
                              launch.grid[2],
                              lane,
                              warp.index,
                              uint32_t(warps.size()),
                              1u << lane,
                              ~0u >> (31 - lane),
                              (1u << lane) - 1,
                              ~0u << lane,
                              ~0u << lane << 1,
                              uint32_t(index % launch.sms),
                              launch.sms,
                              launch.id,
                              launch.dynamicShared,
                              launch.sharedBytes(),
                              0};
      values[lane] = all[size_t(use.which)];
    }
  }
}

bool Block::run(uint64_t budget) {
  executed = 0;
  while (executed < budget && !launch.isCancelled) {
    bool isEnded = true, isStuck = true;
    for (size_t i = 0; i < warps.size(); ++i) {
      Warp &warp = warps[(order + i) % warps.size()];
      isEnded = isEnded && warp.alive == 0;
      if ((warp.alive & ~warp.parked) != 0) {
        isStuck = false;
        runWarp(warp, kSlice);
      }
    }
    if (isEnded) {
      launch.steps += executed;
      return true;
    }
    if (isStuck) {
      deadlock();
    }
  }
  launch.steps += executed;
  if (launch.steps > launch.options.stepLimit) {
    fault(warps[order % warps.size()], 0,
          "the kernel has not ended after " + std::to_string(launch.steps) +
              " warp instructions (PTX_MACHINE_STEP_LIMIT)",
          Fault::LaunchFailed);
  }
  return false;
}

void Block::runWarp(Warp &warp, uint64_t budget) {
  const Instruction *code = kernel.code.data();
  uint64_t *count = counts.executed.data();
  for (uint64_t end = executed + budget; executed < end; ++executed) {
    if (warp.pc >= warp.limit || warp.active == 0) {
      warp.settle(warp.active, warp.pc);
      if (!warp.regroup()) {
        return;
      }
    }
    const Instruction &instruction = code[warp.pc];
    ++count[warp.pc];
    Mask mask = warp.active;
    if (instruction.guard != kNone) {
      Mask guard = warp.pred(instruction.guard);
      mask &= instruction.guardNegated ? ~guard : guard;
    }
    if (instruction.flow == Flow::Next) {
      if (mask != 0) {
        warp.at = &instruction;
        instruction.run(warp, instruction, mask);
      }
      ++warp.pc;
      continue;
    }
    warp.at = &instruction;
    switch (instruction.flow) {
    case Flow::Branch:
      branch(warp, instruction, mask);
      break;
    case Flow::BranchTable:
      branchTable(warp, instruction, mask);
      break;
    case Flow::Exit:
      exit(warp, mask);
      break;
    default:
      wait(warp, instruction, mask);
      break;
    }
  }
}

void Block::branch(Warp &warp, const Instruction &instruction, Mask taken) {
  if (taken == warp.active) {
    warp.pc = instruction.target;
  } else if (taken == 0) {
    ++warp.pc;
  } else {
    warp.settle(warp.active & ~taken, warp.pc + 1);
    const Instruction &target = kernel.code[instruction.target];
    if (target.flow == Flow::Exit &&
        target.guard == kNone) { // threads that exit can leave at once, because nobody waits for them
      warp.alive &= ~taken;
      ++counts.executed[instruction.target], ++executed;
    } else {
      warp.settle(taken, instruction.target);
    }
    warp.regroup();
  }
}

void Block::branchTable(Warp &warp, const Instruction &instruction, Mask taken) {
  const auto &table = kernel.branchTables[instruction.target];
  warp.settle(warp.active, warp.pc + 1);
  for (Mask rest = taken; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint32_t which = warp.reg<uint32_t>(instruction.a)[lane];
    if (which >= table.size()) {
      fault(warp, lane, "brx.idx: index " + std::to_string(which) + " of a table of " + std::to_string(table.size()),
            Fault::IllegalInstruction);
    }
    warp.counters[lane] = table[which];
  }
  warp.regroup();
}

void Block::exit(Warp &warp, Mask leaving) {
  warp.alive &= ~leaving;
  warp.active &= ~leaving;
  ++warp.pc; // for the lanes that stay; if none stays, regroup() chooses others
}

void Block::requireConverged(const Warp &warp) const {
  if (launch.options.divergence && !warp.isConverged()) {
    auto lane = unsigned(__builtin_ctz(warp.alive & ~warp.active));
    fault(warp, lane,
          "divergence: this thread is not at the instruction that its whole warp has to execute together (it is at " +
              std::string((warp.parked >> lane & 1)
                              ? "a barrier)"
                              : "PTX line " + std::to_string(kernel.sources[warp.counters[lane]].line) + ")"),
          Fault::LaunchFailed);
  }
}

void Block::wait(Warp &warp, const Instruction &instruction, Mask mask) {
  ++counts.barriers;
  warp.settle(warp.active & ~mask, warp.pc + 1);
  bool isAligned = instruction.flags & kBarrierAligned;
  if (isAligned) {
    requireConverged(warp);
    if (launch.options.divergence && mask != warp.alive) {
      fault(warp, unsigned(__builtin_ctz(warp.alive & ~mask)),
            "divergent barrier: this thread's predicate keeps it from a barrier that others of its warp reach",
            Fault::LaunchFailed);
    }
  }
  if (mask == 0) {
    ++warp.pc;
    return;
  }
  auto lane = unsigned(__builtin_ctz(mask));
  uint32_t which = warp.reg<uint32_t>(instruction.a)[lane];
  if (which >= barriers.size()) {
    fault(warp, lane, "there is no barrier " + std::to_string(which), Fault::IllegalInstruction);
  }
  Barrier &barrier = barriers[which];
  bool isCounted = instruction.b != kNone;
  unsigned expected = isCounted ? warp.reg<uint32_t>(instruction.b)[lane] : launch.threads();
  if (launch.options.divergence && barrier.arrived != 0 && barrier.expected != expected) {
    fault(warp, lane,
          "barrier " + std::to_string(which) + " is awaited for " + std::to_string(expected) + " threads here, for " +
              std::to_string(barrier.expected) + " elsewhere",
          Fault::LaunchFailed);
  }
  barrier.expected = expected;
  barrier.arrived += isAligned && isCounted ? kLanes : unsigned(__builtin_popcount(mask));
  barrier.warps |= 1u << warp.index;
  if (instruction.flags & kBarrierReduction) {
    Mask votes = warp.pred(instruction.c);
    barrier.votes += unsigned(__builtin_popcount(mask & ((instruction.flags & kBarrierNegated) ? ~votes : votes)));
  }
  ++warp.pc;
  if (!(instruction.flags & kBarrierArrive)) {
    warp.settle(mask, warp.pc);
    warp.parked |= mask;
    warp.active &= ~mask;
    warp.barrier = int(which);
  }
  if (barrier.arrived >= barrier.expected) {
    complete(barrier);
  }
}

void Block::finishReduction(Warp &warp, const Barrier &barrier) {
  const Instruction &instruction = *warp.at;
  if (instruction.flags & kBarrierPopc) {
    uint32_t values[kLanes];
    std::fill(values, values + kLanes, barrier.votes);
    warp.write(instruction.to, values, warp.parked);
  } else if (instruction.flags & kBarrierReduction) {
    bool result = (instruction.flags & kBarrierAnd) ? barrier.votes == barrier.expected : barrier.votes != 0;
    warp.writePred(instruction.to, result ? kAllLanes : 0, warp.parked);
  }
}

void Block::complete(Barrier &barrier) {
  races.synchronize(barrier.warps);
  int which = int(&barrier - barriers.data());
  for (Warp &warp : warps) {
    if (warp.parked != 0 && warp.barrier == which) {
      finishReduction(warp, barrier);
      warp.parked = 0;
      warp.settle(warp.active, warp.pc);
      warp.regroup();
    }
  }
  barrier = {};
}

void Block::deadlock() const {
  for (const Warp &warp : warps) {
    if (warp.parked != 0) {
      const Barrier &barrier = barriers[size_t(warp.barrier)];
      unsigned exited = 0;
      for (const Warp &each : warps) {
        exited += unsigned(__builtin_popcount(each.all & ~each.alive));
      }
      std::ostringstream text;
      text << "divergent barrier: this thread waits at barrier " << warp.barrier << " for ever: " << barrier.arrived
           << " of " << barrier.expected << " threads have arrived, " << exited << " threads of the block have exited";
      fault(warp, unsigned(__builtin_ctz(warp.parked)), text.str(), Fault::LaunchFailed);
    }
  }
  fault(warps[0], 0, "nothing is left to execute, but the block has not ended", Fault::LaunchFailed);
}

void Block::fault(const Warp &warp, unsigned lane, const std::string &what, Fault::Code code) const {
  unsigned thread = warp.thread(lane);
  std::ostringstream text;
  text << "kernel '" << kernel.name << "', ";
  if (warp.at) {
    const Source &source = kernel.sources[size_t(warp.at - kernel.code.data())];
    text << "PTX line " << source.line << " `" << source.text << "`, ";
  }
  text << "block (" << position[0] << ", " << position[1] << ", " << position[2] << "), thread ("
       << thread % launch.block[0] << ", " << thread / launch.block[0] % launch.block[1] << ", "
       << thread / launch.block[0] / launch.block[1] << "): " << what;
  throw Fault{code, text.str()};
}

} // namespace ptx
