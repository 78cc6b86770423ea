// SPDX-License-Identifier: Apache-2.0
//===- combine.h - Several .bmodel files of one network as one ------------===//
//
// Each file has stages, each for one chip and one set of input shapes; the combined file contains the stages of all
// files. Equal constants are stored once: constants of tensors are compared as whole tensors, constants of command
// streams by the byte ranges that the commands read. Code is copied unchanged, except that commands get the new
// addresses of their constants.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_COMBINE_H
#define BMODEL_COMBINE_H

#include "bmodel/reader.h"

#include <span>
#include <string>
#include <vector>

namespace bmodel {

/// A file that has passed openModel and checkSegments. Its bytes must stay valid while it is in use.
struct NamedModel {
  std::string name; ///< for messages
  ModelView view;
};

struct CombineResult {
  Fault fault = Fault::None;
  std::string message; ///< empty if the file was written

  /// Statistics of the constants of one input file.
  struct FileResult {
    uint64_t constantBytes = 0; ///< bytes of constants that its stages refer to
    uint64_t newBytes = 0;      ///< bytes of these that no earlier file contains
    bool hasKnownChip = false;  ///< an earlier file has stages for one of this file's chips
  };
  std::vector<FileResult> files;
};

/// Writes the union of two or more files to |path|. The stages keep the order of the files. If several stages match the
/// input shapes, a runtime prefers the earlier one.
///
/// Rejects files whose nets, inputs or outputs differ (names, types, ranks), chips of the same name with different
/// fingerprints, two stages for the same chip and shapes, and commands of another ISA version.
CombineResult combineModels(std::span<const NamedModel> files, const std::string &path);

} // namespace bmodel

#endif // BMODEL_COMBINE_H
