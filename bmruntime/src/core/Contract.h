// SPDX-License-Identifier: Apache-2.0
//===- Contract.h - Whether launches are what their code relies on --------===//
#ifndef BMRT_CORE_CONTRACT_H
#define BMRT_CORE_CONTRACT_H

#include "Backend.h"

namespace bmrt::core {

/// Compares every launch of |subnet| with the contract that |code| has for its kernel: tiles, scratch, the bytes of
/// each tensor, what is written, the CPU. Afterwards no call of unaltered code touches a byte outside of its tensors,
/// whatever the tables of the file say. Code without contracts is taken as it is. |stage| and |subnet| have been
/// validated.
bmrt_code_t checkContracts(const bmodel::StageDef &stage, const bmodel::SubnetDef &subnet, const CodeImage &code,
                           bmrt_status_t *status);

} // namespace bmrt::core

#endif // BMRT_CORE_CONTRACT_H
