//===- AsyncOps.cpp - cp.async --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Instructions/Lanes.h"
#include "bmruntime/ptx_machine/Instructions/MemoryOps.h"

namespace ptx {
namespace {

/// Operands: a + immediate is the destination, b + target the source, c the number of bytes to read if it is given.
void copyLanes(Warp &warp, const Instruction &in, Mask mask) {
  Addresses to, from;
  Pointers source;
  addressesOf(warp, in, to);
  const auto *base = warp.reg<uint64_t>(in.b);
  Mask reading = 0;
  unsigned bytes[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    from.lane[i] = base[i] + uint64_t(int64_t(int32_t(in.target)));
    bytes[i] = in.c == kNone ? in.elementBytes : warp.reg<uint32_t>(in.c)[i];
    reading |= Mask(bytes[i] != 0) << i;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    if (bytes[lane] > in.elementBytes) {
      warp.block->fault(warp, lane,
                        "cp.async: src-size is " + std::to_string(bytes[lane]) + " of " +
                            std::to_string(in.elementBytes) + " bytes");
    }
    // A lane that reads only part of the bytes is checked byte by byte.
    if (bytes[lane] != 0 && bytes[lane] != in.elementBytes) {
      for (unsigned byte = 0; byte < bytes[lane]; ++byte) {
        Addresses one = from;
        one.lane[lane] += byte;
        warp.block->resolveGlobal(warp, one, 1u << lane, 1, Access::Read, source);
      }
      reading &= ~(1u << lane);
    }
  }
  if ((reading & mask) != 0) {
    warp.block->resolveGlobal(warp, from, reading & mask, in.elementBytes, Access::Read, source);
  }
  warp.block->issueCopies(warp, to, from, bytes, mask, in.elementBytes);
}

void commitLanes(Warp &warp, const Instruction &, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    warp.block->copies.commit(warp.thread(unsigned(__builtin_ctz(rest))));
  }
}

void waitLanes(Warp &warp, const Instruction &in, Mask mask) {
  std::vector<AsyncCopies::Copy> done;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    done.clear();
    warp.block->copies.take(warp.thread(lane), unsigned(in.immediate), in.flags != 0, done);
    for (const AsyncCopies::Copy &each : done) {
      warp.block->writeShared(warp, lane, each.to, each.data, each.bytes);
    }
  }
}

void decodeCopy(Decoding &d) {
  d.instruction.kind = Kind::AsyncCopy;
  if (d.has("commit_group")) {
    d.instruction.run = commitLanes;
  } else if (d.has("wait_group") || d.has("wait_all")) {
    d.instruction.run = waitLanes;
    d.instruction.flags = d.has("wait_all");
    d.instruction.immediate = d.has("wait_all") ? 0 : d.literal(0);
  } else {
    if (!d.has("shared") && !d.has("shared::cta")) {
      d.reject();
    }
    bool isWhole = d.has("cg");
    if (!d.has("global") || (!isWhole && !d.has("ca"))) {
      d.reject();
    }
    for (const char *each : {"L2::64B", "L2::128B", "L2::256B"}) {
      d.has(each);
    }
    d.instruction.run = copyLanes;
    d.address(d.operand(1));
    if (d.instruction.addressBytes != 8) {
      d.reject("expects 64 bits in its source address");
    }
    d.instruction.b = d.instruction.a;
    d.instruction.target = uint32_t(d.instruction.immediate);
    d.address(d.operand(0));
    d.instruction.elementBytes = uint8_t(d.literal(2));
    bool isSize = d.instruction.elementBytes == 16 ||
                  (!isWhole && (d.instruction.elementBytes == 4 || d.instruction.elementBytes == 8));
    if (!isSize) {
      d.reject("has an unsupported size");
    }
    if (d.operands() > 3) {
      if (d.operand(3).variable && d.operand(3).variable->type == "pred") {
        d.reject("with ignore-src is not supported by the PTX machine");
      }
      d.instruction.c = d.source(3, "b32");
    }
  }
}

void cp(Decoding &d) {
  if (!d.has("async")) {
    d.reject();
  }
  if (d.has("bulk") || d.has("mbarrier")) {
    d.reject();
  }
  decodeCopy(d);
}

} // namespace

const DecodeTable &asyncInstructions() {
  static const DecodeTable table = {{"cp", cp}};
  return table;
}

} // namespace ptx
