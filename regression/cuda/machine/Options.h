//===- Options.h - What the environment asks of the machine ----------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_OPTIONS_H
#define TESSERA_REGRESSION_CUDA_MACHINE_OPTIONS_H

#include <cstdint>
#include <string>

namespace ptx {

/// Read once, at cuInit. README.md lists the variables.
struct Options {
  /// What events tell the time of: the host, or a clock of the device that its kernels alone move on: by the time that
  /// their busiest SM takes to issue their instructions, or by a microsecond a block.
  enum Clock : uint8_t { Host, Issue, Blocks } clock = Host;
  bool bounds = true, initialised = true, alignment = true, races = true, divergence = true, async = true;
  uint64_t seed = 1;
  unsigned threads = 0;     ///< host threads that execute blocks
  uint64_t stepLimit = 0;   ///< instructions of a warp in one launch, beyond which the kernel is said not to end
  uint64_t memoryBytes = 0; ///< of a device
  uint64_t failAllocation = 0, failLaunch = 0; ///< which one fails, from 1; 0 for none
  uint64_t faultLaunch = 0;                    ///< which kernel faults when it is executed, likewise
  bool hasDevice = true;
  int devices = 1;
  int driverVersion = 13000;
  int capability = 80; ///< 10 * major + minor
  std::string countsFile;
};

Options readOptions();

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_OPTIONS_H
