// SPDX-License-Identifier: Apache-2.0
//===- CpuDetection.h - CPU features of this machine ----------------------===//
//
// Implemented by one file for each kind of machine, which CMakeLists.txt selects.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_CPUDETECTION_H
#define TESSERA_BMODEL_FORMAT_SRC_CPUDETECTION_H

#include <cstdint>

namespace bmodel {

/// Returns the features that the CPU has and whose registers the operating system saves.
uint64_t detectCpuFeatures();

/// Asks the operating system for the permissions that |features| need. Returns the features that this process may use.
uint64_t permittedCpuFeatures(uint64_t features);

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_CPUDETECTION_H
