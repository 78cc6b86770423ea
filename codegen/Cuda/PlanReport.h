//===- PlanReport.h - Reports the tiles of contractions ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_PLANREPORT_H
#define TESSERA_CODEGEN_CUDA_PLANREPORT_H

#include "codegen/Target/FileCache.h"
#include "codegen/Target/Target.h"

#include "llvm/Support/JSON.h"

namespace tessera::cuda {

/// Returns the plan of the subnets' contractions (TilePlan.h), each with its layers. With options.candidates, adds this
/// machine's device and, for each contraction, the tile that |cache| holds as measured on it, or else the tiles to
/// measure. With options.isMeasured, stores the tiles in |cache| for that device and this build of the compiler. Warns
/// at the function if options.plan has contractions that the subnets do not have.
llvm::Expected<llvm::json::Object> planReport(llvm::ArrayRef<codegen::Subnet> subnets,
                                              const codegen::CompileOptions &options, codegen::FileCache &cache);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_PLANREPORT_H
