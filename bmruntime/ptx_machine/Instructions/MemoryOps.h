//===- MemoryOps.h - Helpers of instructions that access memory -----------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_MEMORYOPS_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_MEMORYOPS_H

#include "bmruntime/ptx_machine/Execution/Block.h"
#include "bmruntime/ptx_machine/Frontend/Decoder.h"

namespace ptx {

/// Computes a + immediate for all lanes.
void addressesOf(Warp &warp, const Instruction &in, Addresses &addresses);
/// Returns the space that the opcode names; Generic if it names none.
Space spaceOf(Decoding &d);
/// Consumes .relaxed, .acquire and similar modifiers and their scopes; returns true if there was one.
bool takeOrdering(Decoding &d);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_MEMORYOPS_H
