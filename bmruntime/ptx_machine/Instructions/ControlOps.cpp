//===- ControlOps.cpp - Exits, barriers and traps -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/BarrierFlags.h"
#include "bmruntime/ptx_machine/Execution/Block.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

namespace ptx {

void warpBarrierLanes(Warp &warp, const Instruction &in, Mask mask);

namespace {

void leave(Decoding &d) {
  d.has("uni");
  d.instruction.kind = Kind::Control;
  d.instruction.flow = Flow::Exit;
}

void trapLanes(Warp &warp, const Instruction &, Mask mask) {
  warp.block->fault(warp, unsigned(__builtin_ctz(mask)), "the kernel trapped", Fault::Trap);
}

void trap(Decoding &d) {
  d.instruction.kind = Kind::Control;
  d.instruction.run = trapLanes;
}

void nothing(Warp &, const Instruction &, Mask) {}

void ignored(Decoding &d) {
  if (d.base() == "nanosleep") {
    d.type();
  }
  d.instruction.kind = Kind::Control;
  d.instruction.run = nothing;
}

/// Decodes brx.idx: the index is in a, the number of the table in target.
void brx(Decoding &d) {
  if (!d.has("idx")) {
    d.reject();
  }
  d.has("uni");
  d.instruction.kind = Kind::Control;
  d.instruction.flow = Flow::BranchTable;
  d.instruction.a = d.source(0, "u32");
  d.instruction.target = d.decoder.addBranchTable(d.operand(1).name, d.statement);
}

void decodeReduction(Decoding &d) {
  std::string type = d.type();
  uint32_t flags = kBarrierReduction;
  flags |= d.has("popc") ? uint32_t(kBarrierPopc) : d.has("and") ? uint32_t(kBarrierAnd) : 0;
  if (!(flags & (kBarrierPopc | kBarrierAnd)) && !d.has("or")) {
    d.reject();
  }
  d.instruction.to = flags & kBarrierPopc ? d.destination(0, 4) : d.predicate(d.operand(0));
  d.instruction.a = d.source(1, "u32");
  size_t count = d.operands();
  d.instruction.b = count > 3 ? d.source(2, "u32") : kNone;
  bool isNegated = false;
  d.instruction.c = d.predicateSource(d.operand(count - 1), isNegated);
  d.instruction.flags |= flags | (isNegated ? kBarrierNegated : 0);
}

/// Decodes bar.sync and barrier.sync: a is the barrier, b the number of threads if it is given.
void bar(Decoding &d) {
  d.instruction.kind = Kind::Barrier;
  d.has("cta");
  if (d.has("warp")) {
    if (!d.has("sync")) {
      d.reject();
    }
    d.instruction.kind = Kind::Warp;
    d.instruction.run = warpBarrierLanes;
    d.instruction.a = d.source(0, "b32");
    return;
  }
  if (d.has("cluster")) {
    d.reject();
  }
  bool isAligned = d.has("aligned") || d.base() == "bar";
  d.instruction.flow = Flow::Barrier;
  d.instruction.flags = isAligned ? uint32_t(kBarrierAligned) : 0;
  if (d.has("red")) {
    return decodeReduction(d);
  }
  bool isArrive = d.has("arrive");
  if (!isArrive && !d.has("sync")) {
    d.reject();
  }
  d.instruction.flags |= isArrive ? uint32_t(kBarrierArrive) : 0;
  d.instruction.a = d.source(0, "u32");
  d.instruction.b = d.operands() > 1 ? d.source(1, "u32") : kNone;
  if (isArrive && d.instruction.b == kNone) {
    d.reject("requires the number of participating threads");
  }
}

} // namespace

const DecodeTable &controlInstructions() {
  static const DecodeTable table = {{"exit", leave},        {"ret", leave}, {"trap", trap}, {"brkpt", trap},
                                    {"nanosleep", ignored}, {"brx", brx},   {"bar", bar},   {"barrier", bar}};
  return table;
}

} // namespace ptx
