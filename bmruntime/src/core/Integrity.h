// SPDX-License-Identifier: Apache-2.0
//===- Integrity.h - Hash checks of a model at memory speed ---------------===//
#ifndef BMRT_CORE_INTEGRITY_H
#define BMRT_CORE_INTEGRITY_H

#include "bmodel/reader.h"

namespace bmrt::core {

/// Compares all chunk hashes, on a second thread too where there is much to do. With
/// |trustConstants| those of constants and attachments are left out, and their pages untouched.
bool checkIntegrity(const bmodel::ModelView &view, bool trustConstants, bmodel::Status &status);

} // namespace bmrt::core

#endif // BMRT_CORE_INTEGRITY_H
