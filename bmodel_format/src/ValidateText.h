// SPDX-License-Identifier: Apache-2.0
//===- ValidateText.h - All text of a file is UTF-8 -----------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_VALIDATETEXT_H
#define TESSERA_BMODEL_FORMAT_SRC_VALIDATETEXT_H

#include "bmodel/bmodel_generated.h"

namespace bmodel {

/// Returns a description of a field of |model| whose text is not UTF-8 ("the name of a tensor"), or null. The
/// flatbuffer must have passed its verifier, which guarantees a terminating 0 byte after each text.
const char *textThatIsNoUtf8(const ModelDef &model);

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_VALIDATETEXT_H
