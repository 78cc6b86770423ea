//===- AmxTiles.h - Cost model of matmuls on AMX tiles ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_AMXTILES_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_AMXTILES_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/RegisterTiles.h"

namespace tessera::x86 {

/// How K is split for AMX tiles.
struct KSplit {
  int64_t chunk = 0; ///< bytes of K per tile operation
  int64_t count = 0; ///< number of chunks in all of K
};

/// Returns the chunks of contiguous rows of |bytes| bytes, a multiple of 4. Rows are padded only if chunks without
/// padding would be many more.
KSplit chunksOfRow(int64_t bytes);

/// Returns the chunks of a convolution of |kh| x |kw| taps of |channels| channels of |elementBytes|, in a channels-last
/// |order|. |neighbours|: the taps of a kernel row are contiguous.
KSplit chunksOfTaps(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kh, int64_t kw, bool neighbours);

/// Returns the cycles of |contraction| on AMX tiles with |chunks| chunks of K; |copied|: bytes of A that are copied for
/// them.
double amxTileCycles(const TiledContraction &contraction, int64_t chunks, int64_t copied);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_AMXTILES_H
