// SPDX-License-Identifier: Apache-2.0
//===- Integrity.h - Hash checks of a model at memory speed ---------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H
#define TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H

#include "bmodel/reader.h"

namespace bmrt::core {

/// Compares all chunk hashes, with a second thread if there is much data. With |trustConstants|, skips constants and
/// attachments and does not touch their pages.
bool checkIntegrity(const bmodel::ModelView &view, bool trustConstants, bmodel::Status &status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_INTEGRITY_H
