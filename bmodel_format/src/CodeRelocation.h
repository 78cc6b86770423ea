// SPDX-License-Identifier: Apache-2.0
//===- CodeRelocation.h - Constants that code refers to by address --------===//
//
// Most families pass constants to their code as tensors. The code of some families refers to constants by their offset
// in the file's first constants segment; combining files changes these offsets, so the code must be patched.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_CODERELOCATION_H
#define TESSERA_BMODEL_FORMAT_SRC_CODERELOCATION_H

#include "SharedConstants.h"
#include "bmodel/reader.h"

#include <optional>
#include <string>
#include <string_view>

namespace bmodel {

struct Rejection {
  Fault fault;
  std::string message;
};
using MaybeRejection = std::optional<Rejection>;

#define RETURN_IF_REJECTED(expression)                                                                                 \
  if (MaybeRejection rejection = (expression)) {                                                                       \
    return rejection;                                                                                                  \
  }

/// Code that a step of a subnet runs; |call| is its position in the subnet's code segment.
struct CodeUse {
  const std::string &file; ///< name for messages, in quotes
  const ModelView &view;
  const StageDef &stage;
  const SubnetDef &subnet;
  const StreamCall &call;
};

/// Finds and patches the constant addresses in the code of one chip family.
class CodeRelocation {
public:
  virtual ~CodeRelocation() = default;

  /// Adds the constant ranges that the code reads to |pieces|. |constantBytes| is the size of the segment. Rejects code
  /// that it does not understand.
  virtual MaybeRejection collect(const CodeUse &use, uint64_t constantBytes, ConstantPieces &pieces) const = 0;
  /// Copies the code to |moved| (call.bytes long) and replaces the constant addresses by those in |pieces|. Requires
  /// that collect() has accepted the code.
  virtual void relocate(const CodeUse &use, const ConstantPieces &pieces, char *moved) const = 0;
};

/// Returns the relocation of a family (familyOf), or null if the family's code does not refer to constants by address.
const CodeRelocation *findCodeRelocation(std::string_view family);

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_CODERELOCATION_H
