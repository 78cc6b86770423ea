// SPDX-License-Identifier: Apache-2.0
//===- CombinedFile.h - One of the files that become one ------------------===//
#ifndef BMODEL_COMBINEDFILE_H
#define BMODEL_COMBINEDFILE_H

#include "SharedConstants.h"
#include "bmodel/combine.h"
#include "bmodel/npu/chip.h"

#include <memory>
#include <optional>

namespace bmodel {

struct Refusal {
  Fault fault;
  std::string message;
};
using MaybeRefusal = std::optional<Refusal>;

#define RETURN_IF_REFUSED(expression)                                                                                  \
  if (MaybeRefusal refusal = (expression)) {                                                                           \
    return refusal;                                                                                                    \
  }

/// Where a segment of a file goes: which of the segments of its kind.
struct Target {
  SegmentKind kind = SegmentKind::Code;
  uint32_t index = 0;
};

/// A file, and what becomes of its parts.
struct CombinedFile {
  explicit CombinedFile(const NamedModel &given);

  /// Notes what commands read of the constants, and which segments are commands.
  MaybeRefusal readStreams();
  /// Notes which constants are tensors.
  void readTensors();
  /// The commands of a segment, which read constants where they are placed now.
  std::vector<char> moveStreams(uint32_t segment) const;

  std::string name; ///< in quotes
  ModelView view;
  std::unique_ptr<ModelDefT> model;
  std::vector<uint32_t> chips;           ///< by its number in the file: that in the result
  std::vector<ConstantPieces> constants; ///< by segment
  std::vector<Target> targets;           ///< likewise
  int64_t streamConstants = -1;          ///< the segment that commands read, if there are any
  std::vector<bool> isStreams;           ///< by segment: commands of the NPU
  bool hasKnownChip = false;             ///< a file before it has one of its chips

private:
  MaybeRefusal readStream(const StageDef &stage, const SubnetDef &subnet, const StreamCall &call);
  MaybeRefusal findChip(const SubnetDef &subnet, npu::Chip &chip) const;
};

} // namespace bmodel

#endif // BMODEL_COMBINEDFILE_H
