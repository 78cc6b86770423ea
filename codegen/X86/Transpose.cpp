//===- Transpose.cpp - Moving strided rectangles --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transpose.h"

#include "device_dialect/IR/Layout.h"

using namespace mlir;

namespace tessera::x86 {

constexpr int64_t kElementsPerTile = 16384;

/// Elements move as integers of their size, so that no bit changes and f16 needs no conversion.
static Type storageType(KernelBuilder &kb, Type elementType) { return kb.b.getIntegerType(8 * device::elementBytes(elementType)); }

TiledMove planMove(KernelBuilder &kb, const LoopNest &nest, Value from, Value to, Type elementType) {
  Type storage = storageType(kb, elementType);
  unsigned lanes = std::min(64u, 2 * kb.target.lanes(storage.getIntOrFloatBitWidth()));
  Tiling tiling = chooseTiling(nest, kElementsPerTile);
  return {tiling.tiles(), [=, &kb](Value tile) {
            emitVectorTile(kb, nest, lanes, tiling, tile,
                           {[&](unsigned, int64_t stride, const VectorStep &step) {
                              return loadLanes(kb, storage, from, stride, step, step.offsets[0]);
                            },
                            [](ValueRange values, const VectorStep &) { return values[0]; },
                            [&](Value value, int64_t stride, const VectorStep &step) {
                              storeLanes(kb, storage, value, to, stride, step, step.offsets.back());
                            }});
          }};
}

TiledMove planFill(KernelBuilder &kb, const LoopNest &nest, Value value, Value to, Type elementType) {
  unsigned lanes = 2 * kb.target.lanes(32);
  Tiling tiling = chooseTiling(nest, kElementsPerTile);
  return {tiling.tiles(), [=, &kb](Value tile) {
            emitVectorTile(kb, nest, lanes, tiling, tile,
                           {nullptr, [&](ValueRange, const VectorStep &step) { return kb.splat(value, step.lanes); },
                            [&](Value vector, int64_t stride, const VectorStep &step) {
                              storeLanes(kb, elementType, vector, to, stride, step, step.offsets.back());
                            }});
          }};
}

} // namespace tessera::x86
