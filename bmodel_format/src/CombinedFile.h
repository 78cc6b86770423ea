// SPDX-License-Identifier: Apache-2.0
//===- CombinedFile.h - One of the files that become one ------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_COMBINEDFILE_H
#define TESSERA_BMODEL_FORMAT_SRC_COMBINEDFILE_H

#include "CodeRelocation.h"
#include "bmodel/combine.h"

#include <memory>

namespace bmodel {

/// The destination of a segment: its kind and its index among the segments of that kind.
struct Target {
  SegmentKind kind = SegmentKind::Code;
  uint32_t index = 0;
};

/// An input file and the destinations of its parts.
struct CombinedFile {
  explicit CombinedFile(const NamedModel &given);

  /// Records the constant ranges that code reads, and the segments that contain such code.
  MaybeRejection readCode();
  /// Records the constant ranges that are tensors.
  void readTensors();
  /// Returns the code of a segment, patched with the final constant offsets.
  std::vector<char> moveCode(uint32_t segment) const;

  std::string name; ///< in quotes
  ModelView view;
  std::unique_ptr<ModelDefT> model;
  std::vector<uint32_t> chips;           ///< chip number in the result, by chip number in the file
  std::vector<ConstantPieces> constants; ///< by segment of the file
  std::vector<Target> targets;           ///< by segment of the file
  int64_t namedConstants = -1;           ///< the constants segment that code refers to, or -1
  std::vector<bool> namesConstants;      ///< by segment: whether it is code that refers to constants by address
  bool hasKnownChip = false;             ///< a stage of an earlier file is for the chip of one of its stages
};

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_COMBINEDFILE_H
