// SPDX-License-Identifier: Apache-2.0
//===- Contract.h - Checks launches against kernel contracts --------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H
#define TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H

#include "StageProgram.h"
#include "Status.h"

namespace bmrt::core {

/// Reads the contracts of the kernels of |subnet| and compares every launch with them: tiles, scratch, the bytes of
/// each tensor, and accesses. Afterwards no call of unaltered code accesses a byte outside its tensors, whatever the
/// tables of the file contain; checkSizes (SizeCheck.h) checks what depends on sizes that are known at run time. Code
/// without contracts is accepted as is. |stage| must have been validated, and its dims classified.
bmrt_code_t checkContracts(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status);

/// Computes the alignment that the steps of |stage| require of each tensor in the caller's memory: if only launches use
/// the tensor, the alignment in their contracts, otherwise BMRT_ALIGNMENT. Requires checked contracts.
bmrt_code_t findAlignments(StageProgram &stage, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H
