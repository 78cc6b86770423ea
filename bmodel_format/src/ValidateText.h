// SPDX-License-Identifier: Apache-2.0
//===- ValidateText.h - All text of a file is UTF-8 -----------------------===//
#ifndef BMODEL_SRC_VALIDATETEXT_H
#define BMODEL_SRC_VALIDATETEXT_H

#include "bmodel/bmodel_generated.h"

namespace bmodel {

/// A field of |model| whose text is not UTF-8, in words ("the name of a tensor"), or null if there is none. The
/// flatbuffer must have passed its verifier: behind each text stands a byte of 0.
const char *textThatIsNoUtf8(const ModelDef &model);

} // namespace bmodel

#endif // BMODEL_SRC_VALIDATETEXT_H
