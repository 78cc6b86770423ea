//===- CoreModel.h - Issue rates of a CPU core ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_COREMODEL_H
#define TESSERA_CODEGEN_NATIVE_COREMODEL_H

namespace tessera::native {

/// Rates of a core in cycles, by which register tiles and algorithms are chosen. Only ratios matter.
struct CoreModel {
  double multiplyAdds = 2; ///< vector multiply-adds that begin per cycle
  double loads = 2;        ///< vector loads per cycle
  double latency = 4;      ///< cycles until the next multiply-add can add to a sum
  double streamBytes = 8;  ///< bytes per cycle from beyond the second-level cache
};

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_COREMODEL_H
