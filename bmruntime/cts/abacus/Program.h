// SPDX-License-Identifier: Apache-2.0
//===- Program.h - Checks and runs the commands of an Abacus --------------===//
#ifndef TESSERA_BMRUNTIME_CTS_ABACUS_PROGRAM_H
#define TESSERA_BMRUNTIME_CTS_ABACUS_PROGRAM_H

#include "bmodel/abacus/program.h"

#include <cstddef>

namespace bmrt::abacus {

/// Returns what is wrong with a command on tensors of these sizes, or null. The first |inputs| tensors are read-only.
const char *faultOf(const bmodel::abacus::Command &command, const uint64_t *tensorBytes, uint32_t inputs,
                    uint32_t tensors);

/// Runs a checked command. |tensors| are the addresses of the tensors' contents.
void run(const bmodel::abacus::Command &command, char *const *tensors);

} // namespace bmrt::abacus

#endif // TESSERA_BMRUNTIME_CTS_ABACUS_PROGRAM_H
