//===- GlobalAccess.cpp - Accesses to device memory -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Block.h"

#include <algorithm>
#include <sstream>

namespace ptx {
namespace {

/// The last access to a word: its launch and block, the number of fences of that block, and the bytes.
struct Touch {
  static constexpr uint64_t kMany = 0xffffff, kMixed = 0xfffffe; ///< stand for several blocks

  uint64_t launch, block, fences;
  bool isStrong;
  uint64_t bytes;

  static Touch unpack(uint64_t word) {
    return {word >> 40, word >> 16 & 0xffffff, word >> 5 & 0x7ff, (word >> 4 & 1) != 0, word & 15};
  }
  uint64_t pack() const { return pack(bytes); }
  uint64_t pack(uint64_t bytes) const {
    return launch << 40 | block << 16 | std::min<uint64_t>(fences, 0x7ff) << 5 | uint64_t(isStrong) << 4 | bytes;
  }
};

uint64_t load(const uint64_t &word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
void store(uint64_t &word, uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

/// Checks the accesses of one block to words of one allocation for races.
class RaceCheck {
public:
  RaceCheck(Launch &launch, uint64_t block, Access access)
      : launch(launch), access(access),
        mine{launch.id & 0xffffff, block % Touch::kMixed, launch.order->fences(block), isStrong(access), 0},
        block(block) {}

  /// Notes an access. Returns the block that it races with, or -1.
  int64_t touch(WordAccess &word, uint64_t bytes) {
    uint64_t written = load(word.writer);
    bool isNoted = !writes(access) && written >> 40 != mine.launch && load(word.readers[0]) == mine.pack(bytes);
    if (isNoted) { // the most frequent case: another read
      return -1;
    }
    Touch writer = Touch::unpack(written);
    if (conflicts(writer, bytes)) {
      return int64_t(writer.block);
    }
    if (!writes(access)) {
      noteReader(word, bytes);
      return -1;
    }
    for (const uint64_t &entry : word.readers) {
      Touch reader = Touch::unpack(load(entry));
      if (conflicts(reader, bytes)) {
        return int64_t(reader.block);
      }
    }
    Touch now = mine;
    now.bytes = bytes;
    if (writer.launch == mine.launch) {
      bool isSame = writer.block == mine.block || (writer.bytes & ~bytes) == 0;
      now.block = isSame ? mine.block : uint64_t(Touch::kMixed);
      now.bytes |= writer.bytes;
    }
    store(word.writer, now.pack());
    return -1;
  }

private:
  /// Returns the entry that this block's reads belong to. Tiles of two blocks may end within a word, whose bytes then
  /// have one reader each: so a word has two entries, and a further reader joins the entry whose bytes it shares.
  uint64_t &readerEntry(WordAccess &word, uint64_t bytes) const {
    Touch entries[] = {Touch::unpack(load(word.readers[0])), Touch::unpack(load(word.readers[1]))};
    for (unsigned i : {0, 1}) {
      if (entries[i].launch == mine.launch && entries[i].block == mine.block) {
        return word.readers[i];
      }
    }
    for (unsigned i : {0, 1}) {
      if (entries[i].launch != mine.launch) {
        return word.readers[i];
      }
    }
    return word.readers[(entries[0].bytes & bytes) != 0 ? 0 : 1];
  }

  void noteReader(WordAccess &word, uint64_t bytes) {
    uint64_t &entry = readerEntry(word, bytes);
    uint64_t old = load(entry);
    Touch reader = Touch::unpack(old), now = mine;
    now.bytes = bytes;
    if (reader.launch == mine.launch) {
      now.bytes |= reader.bytes;
      uint64_t several = (reader.bytes & bytes) != 0 ? Touch::kMany : Touch::kMixed;
      now.block = reader.block == mine.block ? mine.block : several;
      now.isStrong = now.isStrong && reader.isStrong;
    }
    if (now.pack() != old) {
      store(entry, now.pack());
    }
  }

  bool conflicts(const Touch &other, uint64_t bytes) const {
    if (other.launch != mine.launch || other.block == mine.block || (other.bytes & bytes) == 0 ||
        (other.isStrong && mine.isStrong) || other.block == Touch::kMixed) {
      return false;
    }
    if (other.block == Touch::kMany) {
      return mine.fences == 0; // a block that fenced may have waited for all of them
    }
    return other.fences < 0x7ff && !launch.order->isOrdered(other.block, uint32_t(other.fences), block);
  }

  Launch &launch;
  Access access;
  Touch mine;
  uint64_t block;
};

uint64_t lowest(const Addresses &addresses, Mask mask, uint64_t &highest) {
  uint64_t low = ~uint64_t(0);
  highest = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    uint64_t address = addresses.lane[i];
    bool isActive = mask >> i & 1;
    low = isActive && address < low ? address : low;
    highest = isActive && address > highest ? address : highest;
  }
  return low;
}

} // namespace

void BlockOrder::fence(uint64_t block) {
  std::lock_guard lock(mutex);
  blocks[block].times.push_back(++clock);
  blocks[block].fences.store(uint32_t(blocks[block].times.size()), std::memory_order_relaxed);
}

bool BlockOrder::isOrdered(uint64_t other, uint32_t fences, uint64_t block) const {
  std::lock_guard lock(mutex);
  const State &writer = blocks[other], &reader = blocks[block];
  return fences < writer.times.size() && !reader.times.empty() && writer.times[fences] < reader.times.back();
}

void Block::boundsFault(const Warp &warp, unsigned lane, uint64_t address, unsigned bytes, Access access) const {
  std::ostringstream text;
  text << "out of bounds: " << (writes(access) ? "writes " : "reads ") << bytes << " bytes at address 0x" << std::hex
       << address << std::dec;
  const Allocation *before = nullptr;
  for (const AllocationRef &each : launch.allocations) {
    before = each->base <= address ? each.get() : before;
  }
  if (address < 4096) {
    text << ", a null pointer";
  } else if (before) {
    text << ", which is "
         << address - (before->base + before->bytes) + (address < before->base + before->bytes ? bytes : 0)
         << " bytes past the end of " << before->name << " (" << before->bytes << " bytes at 0x" << std::hex
         << before->base << ")";
  } else {
    text << ", before all allocations";
  }
  fault(warp, lane, text.str());
}

void Block::checkAlignment(const Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes) const {
  uint64_t low = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    low |= (mask >> i & 1) ? addresses.lane[i] : 0;
  }
  if ((low & (bytes - 1)) == 0 || !launch.options.alignment) {
    return;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    if (addresses.lane[lane] % bytes != 0) {
      std::ostringstream text;
      text << "misaligned: " << bytes << " bytes at address 0x" << std::hex << addresses.lane[lane];
      fault(warp, lane, text.str(), Fault::Misaligned);
    }
  }
}

Allocation *Block::findAllocation(uint64_t address) {
  if (lastAllocation && address - lastAllocation->base < lastAllocation->bytes) {
    return lastAllocation;
  }
  auto after = std::upper_bound(launch.allocations.begin(), launch.allocations.end(), address,
                                [](uint64_t value, const AllocationRef &each) { return value < each->base; });
  if (after == launch.allocations.begin()) {
    return nullptr;
  }
  Allocation *found = std::prev(after)->get();
  if (address - found->base >= found->bytes) {
    return nullptr;
  }
  return lastAllocation = found;
}

void Block::resolveGlobal(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                          Pointers &pointers) {
  checkAlignment(warp, addresses, mask, bytes);
  for (Mask rest = mask; rest != 0;) {
    auto lane = unsigned(__builtin_ctz(rest));
    Allocation *allocation = findAllocation(addresses.lane[lane]);
    bool isInside = allocation && addresses.lane[lane] - allocation->base + bytes <= allocation->bytes;
    if (!isInside) {
      if (launch.options.bounds) {
        boundsFault(warp, lane, addresses.lane[lane], bytes, access);
      }
      rest &= rest - 1;
      continue;
    }
    Mask inside = 0;
    uint64_t last = allocation->bytes - bytes;
    for (unsigned i = 0; i < kLanes; ++i) {
      inside |= Mask(addresses.lane[i] - allocation->base <= last) << i;
    }
    inside &= rest;
    globalInAllocation(warp, *allocation, addresses, inside, bytes, access);
    rest &= ~inside;
  }
  for (unsigned i = 0; i < kLanes; ++i) {
    pointers.lane[i] = reinterpret_cast<uint8_t *>(addresses.lane[i]);
  }
}

void Block::globalInAllocation(Warp &warp, Allocation &allocation, const Addresses &addresses, Mask mask,
                               unsigned bytes, Access access) {
  if (reads(access)) {
    checkWritten(warp, allocation, addresses, mask, bytes);
  }
  if (launch.options.races) {
    checkGlobalRaces(warp, allocation, addresses, mask, bytes, access);
  }
  if (writes(access) && !allocation.isHost) {
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      allocation.written.add(addresses.lane[__builtin_ctz(rest)] - allocation.base, bytes);
    }
  }
  countSectors(allocation, addresses, mask, bytes, access);
}

void Block::checkWritten(Warp &warp, const Allocation &allocation, const Addresses &addresses, Mask mask,
                         unsigned bytes) {
  if (!launch.options.initialised || allocation.isHost) {
    return;
  }
  uint64_t highest = 0, low = lowest(addresses, mask, highest);
  if (highest + bytes - low <= 2048 && allocation.written.has(low - allocation.base, highest + bytes - low)) {
    return;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = addresses.lane[lane] - allocation.base, missing = allocation.written.firstMissing(at, bytes);
    if (missing != at + bytes) {
      std::ostringstream text;
      text << "uninitialised: reads " << bytes << " bytes at address 0x" << std::hex << addresses.lane[lane] << std::dec
           << ", of which nobody wrote byte " << missing << " of " << allocation.name << " (" << allocation.bytes
           << " bytes at 0x" << std::hex << allocation.base << ")";
      fault(warp, lane, text.str());
    }
  }
}

void Block::checkGlobalRaces(Warp &warp, Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes,
                             Access access) {
  RaceCheck check(launch, index, access);
  WordAccess *words = allocation.accesses();
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    uint64_t at = addresses.lane[lane] - allocation.base, end = at + bytes;
    for (uint64_t word = at / 4; word * 4 < end; ++word) {
      uint64_t first = std::max(at, word * 4) - word * 4, last = std::min(end, word * 4 + 4) - word * 4;
      int64_t other = check.touch(words[word], ((1u << last) - 1) & ~((1u << first) - 1));
      if (other >= 0) {
        std::ostringstream text;
        text << "race: " << (writes(access) ? "writes " : "reads ") << bytes << " bytes at address 0x" << std::hex
             << addresses.lane[lane] << std::dec << " (byte " << word * 4 + first << " of " << allocation.name
             << "), which ";
        if (uint64_t(other) == Touch::kMany) {
          text << "other blocks";
        } else {
          text << "block no. " << other;
        }
        text << " of the same kernel also " << (writes(access) ? "accessed" : "wrote") << " without synchronisation";
        fault(warp, lane, text.str());
      }
    }
  }
}

void Block::countSectors(Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes, Access access) {
  uint32_t *touched = allocation.sectors();
  uint64_t distinct[2 * kLanes];
  unsigned count = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    uint64_t at = addresses.lane[__builtin_ctz(rest)] - allocation.base;
    uint64_t sector = at / 32;
    bool isKnown = false;
    // Neighbouring lanes are visited in order, so most sectors are found at the first try.
    for (unsigned i = count; i-- > 0 && !isKnown;) {
      isKnown = distinct[i] == sector;
    }
    if (!isKnown) {
      distinct[count++] = sector;
      if (__atomic_load_n(touched + sector, __ATOMIC_RELAXED) != launch.id) {
        __atomic_store_n(touched + sector, launch.id, __ATOMIC_RELAXED);
        ++counts.dramSectors;
      }
    }
  }
  (writes(access) ? counts.storeSectors : counts.loadSectors) += count;
}

} // namespace ptx
