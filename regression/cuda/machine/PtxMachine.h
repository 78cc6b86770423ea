//===- PtxMachine.h - What the machine exports beside the driver's API -----===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_PTXMACHINE_H
#define TESSERA_REGRESSION_CUDA_MACHINE_PTXMACHINE_H

extern "C" {

/// Whether the processor has what the machine is compiled for (x86-64-v3). If not, cuInit fails and no other call may
/// be made.
__attribute__((visibility("default"))) bool ptxMachineProcessorSuffices(void);
/// The last finding or load error, "" if there was none. Valid until the thread's next call.
__attribute__((visibility("default"))) const char *ptxMachineLastFinding(void);
__attribute__((visibility("default"))) void ptxMachineClearFinding(void);
/// Counts of all kernels so far, as JSON. Valid until the thread's next call.
__attribute__((visibility("default"))) const char *ptxMachineCounts(void);
__attribute__((visibility("default"))) void ptxMachineClearCounts(void);
/// Reads the environment again and counts allocations, launches and kernels anew; for tests.
__attribute__((visibility("default"))) void ptxMachineReadOptions(void);

} // extern "C"

#endif // TESSERA_REGRESSION_CUDA_MACHINE_PTXMACHINE_H
