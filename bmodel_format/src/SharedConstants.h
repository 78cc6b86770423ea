// SPDX-License-Identifier: Apache-2.0
//===- SharedConstants.h - Constants of several files, equal ones once ----===//
#ifndef BMODEL_SHAREDCONSTANTS_H
#define BMODEL_SHAREDCONSTANTS_H

#include "bmodel/writer.h"

#include <string_view>
#include <unordered_map>

namespace bmodel {

/// The constants of one segment of one file, cut where neither a tensor nor what code reads goes across.
class ConstantPieces {
public:
  struct Piece {
    uint64_t begin, end;
    uint64_t place = 0; ///< in the segment that all files share
  };

  /// [begin, end) is read as one.
  void add(uint64_t begin, uint64_t end);
  /// Makes pieces of all that was added.
  void close();

  /// Where the byte at |offset| of the file's segment is in the shared one. It must belong to a piece.
  uint64_t relocate(uint64_t offset) const;

  std::vector<Piece> pieces;
};

/// A segment in which equal pieces are stored once.
class SharedConstants {
public:
  /// Gives the pieces of |data|, a file's segment, their places.
  void take(ConstantPieces &pieces, const unsigned char *data);

  SegmentContents segment{SegmentKind::Constants};
  bool isUsed = false; ///< by any file
  uint64_t takenBytes = 0, storedBytes = 0;

private:
  std::unordered_map<std::string_view, uint64_t> known; ///< bytes -> place
};

} // namespace bmodel

#endif // BMODEL_SHAREDCONSTANTS_H
