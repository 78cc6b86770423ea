// SPDX-License-Identifier: Apache-2.0
//===- CodeRelocation.h - Constants that code names by itself -------------===//
//
// Most code is given its constants as tensors. That of some families names them by their place in the file's first
// segment of constants; where files become one, these places change.
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CODERELOCATION_H
#define BMODEL_CODERELOCATION_H

#include "SharedConstants.h"
#include "bmodel/reader.h"

#include <optional>
#include <string>
#include <string_view>

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

/// Code that a step of a subnet runs: |call| says where it lies in the subnet's code segment.
struct CodeUse {
  const std::string &file; ///< in quotes
  const ModelView &view;
  const StageDef &stage;
  const SubnetDef &subnet;
  const StreamCall &call;
};

class CodeRelocation {
public:
  virtual ~CodeRelocation() = default;

  /// Adds to |pieces| what the code names in a segment of |constantBytes|. Refuses code that it does not understand.
  virtual MaybeRefusal collect(const CodeUse &use, uint64_t constantBytes, ConstantPieces &pieces) const = 0;
  /// Writes the code to |moved| (call.bytes of them), with the places that |pieces| have now. It has been collected.
  virtual void relocate(const CodeUse &use, const ConstantPieces &pieces, char *moved) const = 0;
};

/// That of a family (familyOf); null: its code names no constants.
const CodeRelocation *findCodeRelocation(std::string_view family);

} // namespace bmodel

#endif // BMODEL_CODERELOCATION_H
