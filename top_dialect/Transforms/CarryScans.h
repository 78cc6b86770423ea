//===- CarryScans.h - Stacked values of loops as carried values -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_CARRYSCANS_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_CARRYSCANS_H

#include "top_dialect/IR/TopConstOps.h"

namespace tessera::top {

/// Replaces a loop that stacks values by one that carries the stacked tensors instead and writes a slice in each pass.
/// The sizes of the stacked tensors must be known. Returns the loop itself if it does not stack values.
LoopOp carryScans(LoopOp loop);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_CARRYSCANS_H
