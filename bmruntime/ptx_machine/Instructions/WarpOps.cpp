//===- WarpOps.cpp - Instructions that lanes of a warp execute together ---===//
// SPDX-License-Identifier: Apache-2.0
// Every lane in the member mask must be at the instruction; otherwise the instruction faults.
#include "bmruntime/ptx_machine/Execution/Block.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <algorithm>

namespace ptx {
namespace {

/// Faults if a live member is not in |mask|, the lanes that execute, or if |lane| is not a member.
void requireMembers(Warp &warp, uint32_t members, unsigned lane, Mask mask) {
  if (!warp.block->launch.options.divergence) {
    return;
  }
  if ((members & warp.alive & ~mask) != 0) {
    auto missing = unsigned(__builtin_ctz(members & warp.alive & ~mask));
    warp.block->fault(warp, lane,
                      "divergence: lane " + std::to_string(missing) +
                          " is a member, but not at this instruction (it took another branch)",
                      Fault::LaunchFailed);
  }
  if ((members >> lane & 1) == 0) {
    warp.block->fault(warp, lane, "divergence: this thread executes the instruction without being a member",
                      Fault::LaunchFailed);
  }
}

/// Calls |visit(lanes)| for each set of lanes of |mask| with the same member mask; usually there is one.
template <class Visit>
void forGroups(Warp &warp, uint32_t members, Mask mask, Visit visit) {
  const auto *wanted = warp.reg<uint32_t>(members);
  for (Mask rest = mask; rest != 0;) {
    auto lane = unsigned(__builtin_ctz(rest));
    requireMembers(warp, wanted[lane], lane, mask);
    Mask group = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
      group |= Mask(wanted[i] == wanted[lane]) << i;
    }
    group &= rest;
    visit(group);
    rest &= ~group;
  }
}

enum ShuffleMode : uint32_t { Up, Down, Butterfly, Index };

/// shfl.sync: a is the data, b the lane or distance, c the clamp and segment mask.
void shuffleLanes(Warp &warp, const Instruction &in, Mask mask) {
  const auto *data = warp.reg<uint32_t>(in.a), *b = warp.reg<uint32_t>(in.b), *c = warp.reg<uint32_t>(in.c);
  uint32_t result[kLanes];
  Mask inRange = 0;
  forGroups(warp, in.more[0], mask, [&](Mask group) {
    for (Mask rest = group; rest != 0; rest &= rest - 1) {
      auto lane = unsigned(__builtin_ctz(rest));
      unsigned shift = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
      unsigned last = (lane & segment) | (clamp & ~segment), first = lane & segment;
      int from = 0;
      bool isIn = false;
      switch (in.flags) {
      case Up:
        from = int(lane) - int(shift);
        isIn = from >= int(last);
        break;
      case Down:
        from = int(lane + shift);
        isIn = from <= int(last);
        break;
      case Butterfly:
        from = int(lane ^ shift);
        isIn = from <= int(last);
        break;
      default:
        from = int(first | (shift & ~segment));
        isIn = from <= int(last);
      }
      from = isIn ? from : int(lane);
      if (warp.block->launch.options.divergence && (group >> from & 1) == 0) {
        warp.block->fault(warp, lane, "shfl: reads lane " + std::to_string(from) + ", which does not take part",
                          Fault::LaunchFailed);
      }
      result[lane] = data[from];
      inRange |= Mask(isIn) << lane;
    }
  });
  warp.write(in.to, result, mask);
  if (in.more[1] != kNone) {
    warp.writePred(in.more[1], inRange, mask);
  }
}

void shfl(Decoding &d) {
  d.instruction.kind = Kind::Warp;
  d.type();
  if (!d.has("sync")) {
    d.reject("without .sync was removed in compute capability 7.0");
  }
  d.instruction.flags = d.has("up") ? Up : d.has("down") ? Down : d.has("bfly") ? Butterfly : d.has("idx") ? Index : 9;
  if (d.instruction.flags == 9) {
    d.reject();
  }
  const Operand &to = d.operand(0);
  d.instruction.more[1] = kNone;
  if (to.kind == Operand::Pair) {
    d.instruction.to = d.destination(to.parts[0], 4);
    d.instruction.more[1] = d.predicate(to.parts[1]);
  } else {
    d.instruction.to = d.destination(to, 4);
  }
  d.instruction.run = shuffleLanes;
  d.instruction.a = d.source(1, "b32");
  d.instruction.b = d.source(2, "b32");
  d.instruction.c = d.source(3, "b32");
  d.instruction.more[0] = d.source(4, "b32");
}

enum VoteMode : uint32_t { All, Any, Uniform, Ballot };

void voteLanes(Warp &warp, const Instruction &in, Mask mask) {
  Mask votes = warp.pred(in.a) ^ Mask(in.immediate);
  uint32_t ballots[kLanes];
  forGroups(warp, in.more[0], mask, [&](Mask group) {
    Mask yes = votes & group;
    if (in.flags == Ballot) {
      for (Mask rest = group; rest != 0; rest &= rest - 1) {
        ballots[__builtin_ctz(rest)] = yes;
      }
      return;
    }
    bool result = in.flags == All ? yes == group : in.flags == Any ? yes != 0 : yes == 0 || yes == group;
    warp.writePred(in.to, result ? kAllLanes : 0, group);
  });
  if (in.flags == Ballot) {
    warp.write(in.to, ballots, mask);
  }
}

void vote(Decoding &d) {
  d.instruction.kind = Kind::Warp;
  d.type();
  if (!d.has("sync")) {
    d.reject("without .sync was removed in compute capability 7.0");
  }
  d.instruction.flags = d.has("all") ? All : d.has("any") ? Any : d.has("uni") ? Uniform : d.has("ballot") ? Ballot : 9;
  if (d.instruction.flags == 9) {
    d.reject();
  }
  d.instruction.run = voteLanes;
  d.instruction.to = d.instruction.flags == Ballot ? d.destination(0, 4) : d.predicate(d.operand(0));
  bool isNegated = false;
  d.instruction.a = d.predicateSource(d.operand(1), isNegated);
  d.instruction.immediate = isNegated ? kAllLanes : 0;
  d.instruction.more[0] = d.source(2, "b32");
}

template <class T>
void matchLanes(Warp &warp, const Instruction &in, Mask mask) {
  const T *a = warp.reg<T>(in.a);
  uint32_t result[kLanes];
  forGroups(warp, in.more[0], mask, [&](Mask group) {
    Mask equal = group;
    for (Mask rest = group; rest != 0; rest &= rest - 1) {
      auto lane = unsigned(__builtin_ctz(rest));
      Mask same = 0;
      for (Mask others = group; others != 0; others &= others - 1) {
        auto other = unsigned(__builtin_ctz(others));
        same |= Mask(a[other] == a[lane]) << other;
      }
      equal &= same;
      result[lane] = same;
    }
    if (in.flags) { // all
      for (Mask rest = group; rest != 0; rest &= rest - 1) {
        result[__builtin_ctz(rest)] = equal == group ? group : 0;
      }
      if (in.more[1] != kNone) {
        warp.writePred(in.more[1], equal == group ? kAllLanes : 0, group);
      }
    }
  });
  warp.write(in.to, result, mask);
}

void match(Decoding &d) {
  d.instruction.kind = Kind::Warp;
  std::string type = d.type();
  d.has("sync");
  d.instruction.flags = d.has("all");
  if (!d.instruction.flags && !d.has("any")) {
    d.reject();
  }
  const Operand &to = d.operand(0);
  d.instruction.more[1] = to.kind == Operand::Pair ? d.predicate(to.parts[1]) : kNone;
  d.instruction.to = d.destination(to.kind == Operand::Pair ? to.parts[0] : to, 4);
  d.instruction.run = typeBytes(type) == 8 ? matchLanes<uint64_t> : matchLanes<uint32_t>;
  d.instruction.a = d.source(1, type);
  d.instruction.more[0] = d.source(2, "b32");
}

template <class T, class Combine>
void reduceLanes(Warp &warp, const Instruction &in, Mask mask) {
  const T *a = warp.reg<T>(in.a);
  T result[kLanes];
  forGroups(warp, in.more[0], mask, [&](Mask group) {
    T sum = a[__builtin_ctz(group)];
    for (Mask rest = group & (group - 1); rest != 0; rest &= rest - 1) {
      sum = Combine()(sum, a[__builtin_ctz(rest)]);
    }
    for (Mask rest = group; rest != 0; rest &= rest - 1) {
      result[__builtin_ctz(rest)] = sum;
    }
  });
  warp.write(in.to, result, mask);
}

struct RAdd {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a + b; }
};
struct RMin {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct RMax {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct RAnd {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a & b; }
};
struct ROr {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};
struct RXor {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a ^ b; }
};

void redux(Decoding &d) {
  d.instruction.kind = Kind::Warp;
  std::string type = d.type();
  bool isSigned = type == "s32";
  if (!d.has("sync") || isFloatType(type)) {
    d.reject();
  }
  Run run = d.has("add")   ? reduceLanes<uint32_t, RAdd>
            : d.has("min") ? (isSigned ? reduceLanes<int32_t, RMin> : reduceLanes<uint32_t, RMin>)
            : d.has("max") ? (isSigned ? reduceLanes<int32_t, RMax> : reduceLanes<uint32_t, RMax>)
            : d.has("and") ? reduceLanes<uint32_t, RAnd>
            : d.has("or")  ? reduceLanes<uint32_t, ROr>
            : d.has("xor") ? reduceLanes<uint32_t, RXor>
                           : nullptr;
  if (!run) {
    d.reject();
  }
  decodeUnary(d, run, "b32", "b32");
  d.instruction.more[0] = d.source(2, "b32");
}

void activemaskLanes(Warp &warp, const Instruction &in, Mask mask) {
  uint32_t result[kLanes];
  std::fill(result, result + kLanes, mask);
  warp.write(in.to, result, mask);
}

void activemask(Decoding &d) {
  d.type();
  d.instruction.kind = Kind::Warp;
  d.instruction.run = activemaskLanes;
  d.instruction.to = d.destination(0, 4);
}

} // namespace

void warpBarrierLanes(Warp &warp, const Instruction &in, Mask mask) {
  forGroups(warp, in.a, mask, [&](Mask group) {
    if (group == warp.alive) {
      warp.block->races.synchronizeWarp(warp.index);
    }
  });
}

const DecodeTable &warpInstructions() {
  static const DecodeTable table = {
      {"shfl", shfl}, {"vote", vote}, {"match", match}, {"redux", redux}, {"activemask", activemask}};
  return table;
}

} // namespace ptx
