// SPDX-License-Identifier: Apache-2.0
//===- Integrity.h - Hash checks of a model at memory speed ---------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H
#define TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H

#include "bmodel/reader.h"

namespace bmrt::core {

/// Compares all chunk hashes, with a second thread if there is much data. With |trustConstants|, skips constants and
/// attachments and does not touch their pages. With |isMapped|, the view is a mapping of a file, and pages of large
/// constants take no memory afterwards until they are read again.
bool checkIntegrity(const bmodel::ModelView &view, bool trustConstants, bool isMapped, bmodel::Status &status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H
