//===- PlanReport.h - What is told of tiles -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_PLANREPORT_H
#define TESSERA_CODEGEN_CUDA_PLANREPORT_H

#include "codegen/Target/FileCache.h"
#include "codegen/Target/Target.h"

#include "llvm/Support/JSON.h"

namespace tessera::cuda {

/// The plan of the subnets' products (TilePlan.h), each with its layers. With options.candidates: the machine's device,
/// and of each product the tile that |cache| knows as measured there, or else the tiles to measure. With
/// options.isMeasured |cache| keeps the tiles for that device and this build of the compiler. A warning at the function
/// where options.plan has products that are not there.
llvm::Expected<llvm::json::Object> planReport(llvm::ArrayRef<codegen::Subnet> subnets,
                                              const codegen::CompileOptions &options, codegen::FileCache &cache);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_PLANREPORT_H
