//===- Grid.h - Executes the grid of a kernel -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_GRID_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_GRID_H

#include "bmruntime/ptx_machine/Execution/Launch.h"

namespace ptx {

/// Runs all blocks on |options.threads| host threads. Returns their costs, and adds them to |counts|. Throws Fault.
Counts execute(Launch &launch, const Options &options, uint32_t residentBlocks, CountTable &counts);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_GRID_H
