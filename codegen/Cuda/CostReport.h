//===- CostReport.h - Reports the estimated cost of each launch ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_COSTREPORT_H
#define TESSERA_CODEGEN_CUDA_COSTREPORT_H

#include "codegen/Cuda/CudaCost.h"
#include "codegen/Cuda/Stream/PtxKernels.h"
#include "codegen/Target/Target.h"

namespace tessera::cuda {

/// Version of the keys in costReport(). Raise it when a key is removed or changes its meaning; the Python tools read
/// only this version (REPORT_VERSION in tessera/families/cuda.py).
inline constexpr int kReportVersion = 1;

/// Name of the blob of a model that holds its report.
inline constexpr llvm::StringRef kReportBlob = "cuda estimate";

/// Returns the estimated seconds of one run of the subnet.
double secondsOf(const codegen::Subnet &subnet, const CudaChip &chip);

/// Reports all launches of these subnets in order ("layers"), and their totals. docs/cuda.md lists the keys.
llvm::json::Object costReport(llvm::ArrayRef<codegen::Subnet> subnets, const PtxKernels &kernels, const CudaChip &chip);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_COSTREPORT_H
