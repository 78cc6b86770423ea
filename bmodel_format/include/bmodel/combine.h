// SPDX-License-Identifier: Apache-2.0
//===- combine.h - Several .bmodel files of one network as one ------------===//
//
// The stages of the files, each for a chip and a set of input shapes, become stages of one file. Constants that are
// equal are stored once: those of tensors as whole tensors, those of command streams by what the commands read. Code
// stays as it is, but for the places of constants in commands.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_COMBINE_H
#define BMODEL_COMBINE_H

#include "bmodel/reader.h"

#include <span>
#include <string>
#include <vector>

namespace bmodel {

/// A file that has passed openModel and checkSegments; its bytes stay there meanwhile.
struct NamedModel {
  std::string name; ///< for messages
  ModelView view;
};

struct CombineResult {
  Fault fault = Fault::None;
  std::string message; ///< empty where the file was written

  /// What became of the constants of a file.
  struct FileResult {
    uint64_t constantBytes = 0; ///< that its stages refer to
    uint64_t newBytes = 0;      ///< of them such as no file before it has
    bool hasKnownChip = false;  ///< a file before it has stages for one of its chips
  };
  std::vector<FileResult> files;
};

/// Writes the union of two or more files to |path|. Stages stand in the order of the files; that is also the order in
/// which a runtime prefers those of the same shapes.
///
/// Refused are files whose nets, inputs or outputs (names, types, ranks) differ, chips of one name with different
/// fingerprints, two stages of the same chip and shapes, and commands of another version.
CombineResult combineModels(std::span<const NamedModel> files, const std::string &path);

} // namespace bmodel

#endif // BMODEL_COMBINE_H
