// SPDX-License-Identifier: Apache-2.0
//===- Program.h - Checks and runs the commands of an Abacus --------------===//
#ifndef BMRT_CTS_ABACUS_PROGRAM_H
#define BMRT_CTS_ABACUS_PROGRAM_H

#include "bmodel/abacus/program.h"

#include <cstddef>

namespace bmrt::abacus {

/// What is wrong with a command on tensors of these sizes, the first |inputs| of which are read only; null if nothing
/// is.
const char *faultOf(const bmodel::abacus::Command &command, const uint64_t *tensorBytes, uint32_t inputs,
                    uint32_t tensors);

/// Runs a command that has been checked, on where the tensors' bytes are.
void run(const bmodel::abacus::Command &command, char *const *tensors);

} // namespace bmrt::abacus

#endif // BMRT_CTS_ABACUS_PROGRAM_H
