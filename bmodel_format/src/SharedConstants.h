// SPDX-License-Identifier: Apache-2.0
//===- SharedConstants.h - Deduplication of constants ---------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_SHAREDCONSTANTS_H
#define TESSERA_BMODEL_FORMAT_SRC_SHAREDCONSTANTS_H

#include "bmodel/writer.h"

#include <string_view>
#include <unordered_map>

namespace bmodel {

/// The constants of one segment of one file, cut into slices. No tensor and no range that code reads crosses a slice
/// boundary.
class ConstantPieces {
public:
  struct Piece {
    uint64_t begin, end;
    uint64_t place = 0; ///< offset in the shared segment
  };

  /// Marks [begin, end) as a range that must stay contiguous.
  void add(uint64_t begin, uint64_t end);
  /// Merges overlapping ranges into slices. Call once, after the last add().
  void close();

  /// Returns the offset in the shared segment of the byte at |offset| of the file's segment. The byte must belong to a
  /// slice.
  uint64_t relocate(uint64_t offset) const;

  std::vector<Piece> pieces;
};

/// A segment that stores equal slices once.
class SharedConstants {
public:
  /// Assigns every slice of |data|, a file's segment, its place in the shared segment.
  void take(ConstantPieces &pieces, const unsigned char *data);

  SegmentContents segment{SegmentKind::Constants};
  bool isUsed = false; ///< by at least one file
  uint64_t takenBytes = 0, storedBytes = 0;

private:
  std::unordered_map<std::string_view, uint64_t> known; ///< offset in the segment by contents
};

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_SHAREDCONSTANTS_H
