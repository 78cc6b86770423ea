//===- SharedRaces.cpp - Detects races on shared memory -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Memory/SharedRaces.h"

#include <algorithm>

namespace ptx {

SharedRaces::SharedRaces(uint64_t bytes, unsigned warps, bool isOn)
    : isOn(isOn), warps(warps), seen(size_t(warps) * warps), words(isOn ? bytes / 4 + 1 : 0),
      parts(isOn ? bytes + 4 : 0) {}

void SharedRaces::begin() {
  // A new time that all warps have seen makes older accesses ordered, without clearing the cells.
  ++now;
  if (now > ~0u / 2) {
    std::fill(words.begin(), words.end(), Cell{});
    std::fill(parts.begin(), parts.end(), Cell{});
    now = 1;
  }
  std::fill(seen.begin(), seen.end(), now);
}

void SharedRaces::synchronize(uint64_t mask) {
  ++now;
  std::vector<uint32_t> known(warps);
  for (unsigned w = 0; w < warps; ++w) {
    for (unsigned v = 0; (mask >> w & 1) && v < warps; ++v) {
      known[v] = std::max(known[v], seen[w * warps + v]);
    }
  }
  for (unsigned v = 0; v < warps; ++v) {
    known[v] = (mask >> v & 1) ? now : known[v];
  }
  for (unsigned w = 0; w < warps; ++w) {
    if (mask >> w & 1) {
      std::copy(known.begin(), known.end(), seen.begin() + w * warps);
    }
  }
}

/// Returns true if |thread| is ordered after what |other| did at |time|.
bool SharedRaces::knows(unsigned thread, unsigned other, uint32_t time) const {
  return thread == other || time < seen[(thread / 32) * warps + other / 32];
}

unsigned SharedRaces::lastReader(const Cell &cell, unsigned thread) const {
  if (cell.reader == kNobody) {
    return kNoRace;
  }
  if (cell.reader != kMany) {
    return knows(thread, cell.reader, cell.readTime) ? kNoRace : cell.reader;
  }
  for (uint32_t rest = cell.readers; rest != 0; rest &= rest - 1) {
    auto warp = unsigned(__builtin_ctz(rest));
    // If several threads of the same warp read the cell, at least one of them is another thread.
    if (cell.readTime >= seen[(thread / 32) * warps + warp]) {
      return warp * 32 + (warp == thread / 32 && thread % 32 == 0);
    }
  }
  return kNoRace;
}

unsigned SharedRaces::readCell(Cell &cell, unsigned thread) {
  if (!knows(thread, cell.writer, cell.writeTime)) {
    return cell.writer;
  }
  unsigned warp = thread / 32;
  bool isNoted = cell.reader == kMany && (cell.readers >> warp & 1) && cell.readTime >= seen[warp * warps + warp];
  if (isNoted) {
    return kNoRace;
  }
  bool isNew = cell.reader == kNobody || lastReader(cell, thread) == kNoRace;
  if (isNew) { // whoever is ordered after this reader is ordered after earlier ones
    cell.reader = uint16_t(thread);
    cell.readTime = now;
  } else if (cell.reader != thread) {
    if (cell.reader != kMany) {
      cell.readers = 1u << (cell.reader / 32);
      cell.reader = kMany;
    }
    cell.readers |= 1u << warp;
  }
  return kNoRace;
}

unsigned SharedRaces::writeCell(Cell &cell, unsigned thread, bool isAtomic) {
  bool bothAtomic = isAtomic && cell.isAtomic;
  if (!bothAtomic && !knows(thread, cell.writer, cell.writeTime)) {
    return cell.writer;
  }
  unsigned reader = lastReader(cell, thread);
  if (reader != kNoRace) {
    return reader;
  }
  cell = {now, 0, uint16_t(thread), kNobody, 0, isAtomic, cell.isSplit};
  return kNoRace;
}

/// Calls |visit| for the cells of a range: whole words that were never accessed in parts, else single bytes.
template <class Visit>
unsigned SharedRaces::each(uint64_t at, unsigned bytes, Visit visit) {
  for (uint64_t end = at + bytes; at < end;) {
    Cell &word = words[at / 4];
    auto count = unsigned(std::min<uint64_t>(4 - at % 4, end - at));
    if (count < 4 && !word.isSplit) {
      Cell part = word;
      for (unsigned i = 0; i < 4; ++i) {
        parts[at / 4 * 4 + i] = part;
      }
      word.isSplit = true;
    }
    if (!word.isSplit) {
      unsigned other = visit(word);
      if (other != kNoRace) {
        return other;
      }
    } else {
      for (unsigned i = 0; i < count; ++i) {
        unsigned other = visit(parts[at + i]);
        if (other != kNoRace) {
          return other;
        }
      }
    }
    at += count;
  }
  return kNoRace;
}

unsigned SharedRaces::read(unsigned thread, uint64_t at, unsigned bytes) {
  return isOn ? each(at, bytes, [&](Cell &cell) { return readCell(cell, thread); }) : kNoRace;
}

unsigned SharedRaces::write(unsigned thread, uint64_t at, unsigned bytes) {
  return isOn ? each(at, bytes, [&](Cell &cell) { return writeCell(cell, thread, false); }) : kNoRace;
}

unsigned SharedRaces::atomic(unsigned thread, uint64_t at, unsigned bytes) {
  return isOn ? each(at, bytes, [&](Cell &cell) { return writeCell(cell, thread, true); }) : kNoRace;
}

} // namespace ptx
