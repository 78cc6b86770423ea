//===- SubnetEmitter.h - Emits a placed function as a stream of launches ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_STREAM_SUBNETEMITTER_H
#define TESSERA_CODEGEN_CUDA_STREAM_SUBNETEMITTER_H

#include "codegen/Cuda/Stream/PtxKernels.h"
#include "codegen/Target/ConstantSection.h"
#include "codegen/Target/Target.h"

namespace tessera::cuda {

/// Sections of the program.
enum Section : uint32_t { kCode, kConstants, kReport };

/// Adds the subnet to |program|: one step that launches the kernels of its ops, and copies for results that are views.
llvm::Error emitSubnet(const codegen::Subnet &subnet, const PtxKernels &kernels, codegen::ConstantSection &constants,
                       codegen::TargetProgram &program);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_STREAM_SUBNETEMITTER_H
