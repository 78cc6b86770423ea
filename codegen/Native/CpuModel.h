//===- CpuModel.h - Speed of a CPU ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_CPUMODEL_H
#define TESSERA_CODEGEN_NATIVE_CPUMODEL_H

#include "codegen/Native/CoreModel.h"
#include "codegen/Target/Target.h"

namespace tessera::native {

/// Speed of a CPU. All cost models of a family derive from it: the choice of register tiles from |core|, the precision
/// search from |rates|, the partition from seconds().
struct CpuModel {
  CoreModel core = {};
  codegen::MachineModel rates = {}; ///< of the kernels' inner loops
  double operations = 8;            ///< operations per nanosecond in ops without multiply-adds
  double launchSeconds = 2e-6;      ///< per op

  /// Returns the time of an op with |macs| integer multiply-adds, or with |otherOperations| if it has none, that reads
  /// and writes |bytes| bytes.
  double seconds(double macs, double otherOperations, double bytes) const;
};

/// Returns a coarse model of the host next to an accelerator, because the actual host is unknown: two cores with
/// 128-bit vectors at about 1.5 GHz. It only decides where ops run.
CpuModel unknownHost();

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_CPUMODEL_H
