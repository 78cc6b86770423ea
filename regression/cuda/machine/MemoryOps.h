//===- MemoryOps.h - What instructions that touch memory share -------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_MEMORYOPS_H
#define TESSERA_REGRESSION_CUDA_MACHINE_MEMORYOPS_H

#include "regression/cuda/machine/Block.h"
#include "regression/cuda/machine/Decoder.h"

namespace ptx {

/// a + immediate, of all lanes.
void addressesOf(Warp &warp, const Instruction &in, Addresses &addresses);
/// The space that the opcode names; Generic if none.
Space spaceOf(Decoding &d);
/// Takes .relaxed, .acquire and the like with their scopes; whether there was one.
bool takeOrdering(Decoding &d);

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_MEMORYOPS_H
