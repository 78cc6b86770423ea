//===- Options.h - Options from environment variables ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_OPTIONS_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_OPTIONS_H

#include <cstdint>
#include <string>

namespace ptx {

/// Options of the machine, read once by cuInit. README.md lists the variables.
struct Options {
  /// The clock of events: that of the host, or a device clock that only kernels advance, by the time that their busiest
  /// SM takes to issue their instructions (Issue), or by a microsecond per block (Blocks).
  enum Clock : uint8_t { Host, Issue, Blocks } clock = Host;
  bool bounds = true, initialised = true, alignment = true, races = true, divergence = true, async = true;
  uint64_t seed = 1;
  unsigned threads = 0;     ///< host threads that execute blocks
  uint64_t stepLimit = 0;   ///< warp instructions of a launch after which the kernel is reported not to end
  uint64_t memoryBytes = 0; ///< bytes of device memory
  uint64_t failAllocation = 0, failLaunch = 0; ///< number of the call that fails, from 1; 0: none
  uint64_t faultLaunch = 0;                    ///< number of the executed kernel that faults, from 1; 0: none
  bool hasDevice = true;
  int devices = 1;
  int driverVersion = 13000;
  int capability = 80; ///< 10 * major + minor
  std::string countsFile;
};

Options readOptions();

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_OPTIONS_H
