//===- CudaChip.h - GPUs that programs are made for -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CUDACHIP_H
#define TESSERA_CODEGEN_CUDA_CUDACHIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tessera::cuda {

/// What programs are made for, and the card whose figures decide where ops run.
struct CudaChip {
  llvm::StringRef name;
  unsigned computeCapability; ///< 80 for 8.0
  bool wantsMachineCode;      ///< beside PTX, where NVIDIA's assembler is found
  double flops;               ///< of f32, a second: multiplications and additions
  double bandwidth;           ///< of DRAM, bytes a second
};

/// Figures as NVIDIA publishes them: A100 40 GB, RTX 3090, L4, H100 SXM. PTX alone is priced as the smallest of them.
inline constexpr CudaChip kChips[] = {{"cuda", 80, false, 19.5e12, 300e9},
                                      {"cuda-sm80", 80, true, 19.5e12, 1555e9},
                                      {"cuda-sm86", 86, true, 35.6e12, 936e9},
                                      {"cuda-sm89", 89, true, 30.3e12, 300e9},
                                      {"cuda-sm90", 90, true, 66.9e12, 3352e9}};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CUDACHIP_H
