// SPDX-License-Identifier: Apache-2.0
//===- CombinedFile.h - One of the files that become one ------------------===//
#ifndef BMODEL_COMBINEDFILE_H
#define BMODEL_COMBINEDFILE_H

#include "CodeRelocation.h"
#include "bmodel/combine.h"

#include <memory>

namespace bmodel {

/// Where a segment of a file goes: which of the segments of its kind.
struct Target {
  SegmentKind kind = SegmentKind::Code;
  uint32_t index = 0;
};

/// A file, and what becomes of its parts.
struct CombinedFile {
  explicit CombinedFile(const NamedModel &given);

  /// Notes what code names of the constants, and which segments are such code.
  MaybeRefusal readCode();
  /// Notes which constants are tensors.
  void readTensors();
  /// The code of a segment, which names constants where they are placed now.
  std::vector<char> moveCode(uint32_t segment) const;

  std::string name; ///< in quotes
  ModelView view;
  std::unique_ptr<ModelDefT> model;
  std::vector<uint32_t> chips;           ///< by its number in the file: that in the result
  std::vector<ConstantPieces> constants; ///< by segment
  std::vector<Target> targets;           ///< likewise
  int64_t namedConstants = -1;           ///< the segment that code names, if there is such code
  std::vector<bool> namesConstants;      ///< by segment: code that does
  bool hasKnownChip = false;             ///< a file before it has one of its chips
};

} // namespace bmodel

#endif // BMODEL_COMBINEDFILE_H
