//===- MatrixTiles.h - What a product costs on AMX tiles --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_MATRIXTILES_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_MATRIXTILES_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/RegisterTiles.h"

namespace tessera::x86 {

/// How K of a product is cut for tiles of AMX.
struct ChunkedDepth {
  int64_t chunk = 0; ///< bytes of K that one product of tiles takes
  int64_t count = 0; ///< of chunks in all of K
};

/// The chunks of rows of |bytes| bytes that follow each other in memory, a multiple of 4. Padded only where whole
/// chunks would be many more.
ChunkedDepth chunksOfRow(int64_t bytes);

/// The chunks of a convolution of |kh| x |kw| taps of |channels| channels of |elementBytes|, in an |order| that has
/// channels last. Taps of a kernel row lie beside each other if they are |neighbours|.
ChunkedDepth chunksOfTaps(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kh, int64_t kw,
                          bool neighbours);

/// Cycles of |product|, whose K has |chunks|, on AMX tiles; |copied|: bytes of A that are copied for them.
double matrixTileCycles(const TiledProduct &product, int64_t chunks, int64_t copied);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_MATRIXTILES_H
