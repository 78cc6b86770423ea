//===- PtxMachine.h - Functions beyond the driver API ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_PTXMACHINE_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_PTXMACHINE_H

extern "C" {

/// Returns true if the processor has the features that the machine is compiled for (x86-64-v3). If not, cuInit fails
/// and no other function may be called.
__attribute__((visibility("default"))) bool ptxMachineProcessorSuffices(void);
/// Returns the last finding or load error, "" if there was none. Valid until the thread's next call.
__attribute__((visibility("default"))) const char *ptxMachineLastFinding(void);
__attribute__((visibility("default"))) void ptxMachineClearFinding(void);
/// Returns the counts of all kernels so far as JSON. Valid until the thread's next call.
__attribute__((visibility("default"))) const char *ptxMachineCounts(void);
__attribute__((visibility("default"))) void ptxMachineClearCounts(void);
/// Reads the environment again and resets the counts of allocations, launches and executed kernels; for tests.
__attribute__((visibility("default"))) void ptxMachineReadOptions(void);

} // extern "C"

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_PTXMACHINE_H
