// SPDX-License-Identifier: Apache-2.0
//===- SharedConstants.cpp - Deduplication of constants -------------------===//
#include "SharedConstants.h"

#include <algorithm>
#include <cassert>

namespace bmodel {

void ConstantPieces::add(uint64_t begin, uint64_t end) {
  if (begin < end) {
    // Align the start downwards so that the slice keeps its alignment: bursts and vectors rely on it.
    pieces.push_back({begin & ~(kTensorAlignment - 1), end});
  }
}

void ConstantPieces::close() {
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Piece &piece : pieces) {
    if (kept && piece.begin < pieces[kept - 1].end) {
      pieces[kept - 1].end = std::max(pieces[kept - 1].end, piece.end);
    } else {
      pieces[kept++] = piece;
    }
  }
  pieces.resize(kept);
}

uint64_t ConstantPieces::relocate(uint64_t offset) const {
  auto behind = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                 [](uint64_t at, const Piece &piece) { return at < piece.begin; });
  assert(behind != pieces.begin());
  return (behind - 1)->place + (offset - (behind - 1)->begin);
}

void SharedConstants::take(ConstantPieces &pieces, const unsigned char *data) {
  isUsed = true;
  for (ConstantPieces::Piece &piece : pieces.pieces) {
    const std::string_view bytes(reinterpret_cast<const char *>(data) + piece.begin, piece.end - piece.begin);
    auto [entry, isNew] = known.try_emplace(bytes, 0);
    if (isNew) {
      entry->second = segment.append({bytes.data(), bytes.size()});
      storedBytes += bytes.size();
    }
    piece.place = entry->second;
    takenBytes += bytes.size();
  }
}

} // namespace bmodel
