//===- SharedAccess.cpp - Accesses to shared, local and parameter memory --===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Block.h"

#include <algorithm>
#include <sstream>

namespace ptx {
namespace {

/// Returns the space of a generic address.
Space spaceOf(uint64_t address) {
  switch (address & kWindowMask) {
  case kSharedWindow:
    return Space::Shared;
  case kLocalWindow:
    return Space::Local;
  case kParameterWindow:
    return Space::Parameter;
  default:
    return Space::Global;
  }
}

} // namespace

void Block::resolve(Warp &warp, Space space, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                    Pointers &pointers) {
  switch (space) {
  case Space::Global:
  case Space::Constant:
    return resolveGlobal(warp, addresses, mask, bytes, access, pointers);
  case Space::Shared:
    return resolveShared(warp, addresses, mask, bytes, access, pointers);
  case Space::Local:
    return resolveLocal(warp, addresses, mask, bytes, access, pointers);
  case Space::Parameter:
    return resolveParameters(warp, addresses, mask, bytes, access, pointers);
  default:
    break;
  }
  for (Mask rest = mask; rest != 0;) {
    Space first = spaceOf(addresses.lane[__builtin_ctz(rest)]);
    Mask same = 0;
    Addresses offsets;
    for (unsigned i = 0; i < kLanes; ++i) {
      same |= Mask(spaceOf(addresses.lane[i]) == first) << i;
      offsets.lane[i] = addresses.lane[i] & (first == Space::Global ? ~uint64_t(0) : ~kWindowMask);
    }
    same &= rest;
    Pointers part;
    resolve(warp, first, offsets, same, bytes, access, part);
    for (Mask each = same; each != 0; each &= each - 1) {
      pointers.lane[__builtin_ctz(each)] = part.lane[__builtin_ctz(each)];
    }
    rest &= ~same;
  }
}

/// Counts passes and bank conflicts. A pass serves 32 banks of 4 bytes: half a warp at 8 bytes per lane, a quarter at
/// 16.
void Block::countBanks(const Addresses &addresses, Mask mask, unsigned bytes) {
  unsigned lanes = bytes <= 4 ? kLanes : 4 * kLanes / bytes;
  for (unsigned begin = 0; begin < kLanes; begin += lanes) {
    Mask part = lanes == kLanes ? mask : mask >> begin & ((1u << lanes) - 1);
    if (part == 0) {
      continue;
    }
    uint32_t distinct[32][4]; // words of each bank; beyond four, only their number is kept
    uint8_t count[32] = {};
    unsigned passes = 1;
    uint64_t previous = ~uint64_t(0);
    for (Mask rest = part; rest != 0; rest &= rest - 1) {
      uint64_t at = addresses.lane[begin + unsigned(__builtin_ctz(rest))];
      if (at == previous) { // a broadcast
        continue;
      }
      previous = at;
      for (uint64_t word = at / 4; word * 4 < at + bytes; ++word) {
        unsigned bank = word % 32;
        bool isKnown = false;
        for (unsigned i = 0; i < std::min<unsigned>(count[bank], 4); ++i) {
          isKnown = isKnown || distinct[bank][i] == uint32_t(word);
        }
        if (!isKnown) {
          distinct[bank][count[bank] & 3] = uint32_t(word);
          passes = std::max<unsigned>(passes, ++count[bank]);
        }
      }
    }
    counts.sharedPasses += passes;
    counts.bankConflicts += passes - 1;
  }
}

void Block::resolveShared(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                          Pointers &pointers) {
  checkAlignment(warp, addresses, mask, bytes);
  uint64_t size = launch.sharedBytes();
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = addresses.lane[lane];
    auto fail = [&](const std::string &what) {
      fault(warp, lane,
            what + ": " + (writes(access) ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " +
                std::to_string(int64_t(at)) + " of shared memory (" + std::to_string(size) + " bytes)");
    };
    if (at + bytes > size || at > size) {
      fail("out of bounds");
    }
    if (copies.any() && launch.options.async && copies.isPending(at, bytes)) {
      fail("use before a cp.async to these bytes has been waited for");
    }
    if (reads(access) && launch.options.initialised && !sharedWritten.has(at, bytes)) {
      fail("uninitialised (byte " + std::to_string(sharedWritten.firstMissing(at, bytes)) + ")");
    }
    unsigned thread = warp.thread(lane);
    unsigned other = access == Access::Read || access == Access::StrongRead ? races.read(thread, at, bytes)
                     : isStrong(access)                                     ? races.atomic(thread, at, bytes)
                                                                            : races.write(thread, at, bytes);
    if (other != SharedRaces::kNoRace) {
      fail("race with thread no. " + std::to_string(other) + ", no barrier between");
    }
    if (writes(access)) {
      sharedWritten.add(at, bytes);
    }
    pointers.lane[lane] = shared.get() + at;
  }
  countBanks(addresses, mask, bytes);
}

void Block::issueCopies(Warp &warp, const Addresses &to, const Addresses &from, const unsigned *bytes, Mask mask,
                        unsigned whole) {
  checkAlignment(warp, to, mask, whole);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = to.lane[lane];
    auto fail = [&](const std::string &what) {
      fault(warp, lane,
            what + ": a cp.async writes " + std::to_string(whole) + " bytes at " + std::to_string(int64_t(at)) +
                " of shared memory (" + std::to_string(launch.sharedBytes()) + " bytes)");
    };
    if (at + whole > launch.sharedBytes() || at > launch.sharedBytes()) {
      fail("out of bounds");
    }
    if (launch.options.async && copies.any() && copies.isPending(at, whole)) {
      fail("another cp.async to these bytes has not been waited for");
    }
    // The bytes may be written from now on, so a concurrent read is a race.
    unsigned other = races.write(warp.thread(lane), at, whole);
    if (other != SharedRaces::kNoRace) {
      fail("race with thread no. " + std::to_string(other) + ", no barrier between");
    }
    AsyncCopies::Copy copy{uint32_t(at), uint8_t(whole), {}};
    std::memcpy(copy.data, reinterpret_cast<const void *>(from.lane[lane]), bytes[lane]);
    copies.issue(warp.thread(lane), copy);
  }
  countBanks(to, mask, whole);
}

void Block::writeShared(Warp &warp, unsigned lane, uint64_t offset, const uint8_t *bytes, unsigned count) {
  unsigned other = races.write(warp.thread(lane), offset, count);
  if (other != SharedRaces::kNoRace) {
    fault(warp, lane,
          "race with thread no. " + std::to_string(other) + ": a cp.async writes " + std::to_string(count) +
              " bytes at " + std::to_string(offset) + " of shared memory, no barrier between");
  }
  sharedWritten.add(offset, count);
  std::memcpy(shared.get() + offset, bytes, count);
}

void Block::resolveLocal(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                         Pointers &pointers) {
  checkAlignment(warp, addresses, mask, bytes);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = addresses.lane[lane];
    auto fail = [&](const char *what) {
      fault(warp, lane,
            std::string(what) + (writes(access) ? ": writes " : ": reads ") + std::to_string(bytes) + " bytes at " +
                std::to_string(int64_t(at)) + " of local memory (" + std::to_string(kernel.localBytes) + " bytes)");
    };
    if (at + bytes > kernel.localBytes || at > kernel.localBytes) {
      fail("out of bounds");
    }
    at += uint64_t(warp.thread(lane)) * kernel.localBytes;
    if (reads(access) && launch.options.initialised && !localWritten.has(at, bytes)) {
      at -= uint64_t(warp.thread(lane)) * kernel.localBytes;
      fail("uninitialised");
    }
    if (writes(access)) {
      localWritten.add(at, bytes);
    }
    pointers.lane[lane] = local.get() + at;
  }
}

void Block::resolveParameters(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                              Pointers &pointers) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = addresses.lane[lane];
    if (writes(access) || at + bytes > launch.parameters.size() || at > launch.parameters.size()) {
      fault(warp, lane,
            "out of bounds: touches " + std::to_string(bytes) + " bytes at " + std::to_string(at) +
                " of the kernel's parameters (" + std::to_string(launch.parameters.size()) + " bytes)");
    }
    pointers.lane[lane] = launch.parameters.data() + at;
  }
}

} // namespace ptx
