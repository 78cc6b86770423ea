//===- CostReport.h - What a model costs on a GPU, by launch ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_COSTREPORT_H
#define TESSERA_CODEGEN_CUDA_COSTREPORT_H

#include "codegen/Cuda/CudaCost.h"
#include "codegen/Cuda/PtxKernels.h"
#include "codegen/Target/Target.h"

namespace tessera::cuda {

/// Of the names in costReport. Raised when one goes or means something else; the Python tools read this one only
/// (REPORT_VERSION in tessera/cuda_perf.py).
inline constexpr int kReportVersion = 1;

/// The blob of a model that holds its report.
inline constexpr llvm::StringRef kReportBlob = "cuda estimate";

/// Seconds of a run of the subnet.
double secondsOf(const codegen::Subnet &subnet, const CudaChip &chip);

/// Of all launches of these subnets, in their order ("layers"), and of the whole. docs/cuda.md lists the names.
llvm::json::Object costReport(llvm::ArrayRef<codegen::Subnet> subnets, const PtxKernels &kernels, const CudaChip &chip);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_COSTREPORT_H
