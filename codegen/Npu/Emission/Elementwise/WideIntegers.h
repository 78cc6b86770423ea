//===- WideIntegers.h - 64-bit integers on the NPU --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The NPU has no 64-bit element type, but ids, positions and masks are 64-bit integers. Maps read each number as its
// 32- or 16-bit parts and hold the nearest f32 in a register, as for i32. 64-bit values are never resident in local
// memory.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_WIDEINTEGERS_H
#define TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_WIDEINTEGERS_H

#include "codegen/Npu/Emission/EmissionContext.h"

namespace tessera::npu {

/// Returns true if the elements of a value are 64-bit signless integers.
bool isWide(mlir::Value value);

/// Places the lowest part of each element of a 64-bit value in off-chip memory: as i32 if the current op computes the
/// value or its elements are known to fit 32 bits, else as i16. |sizes|, |strides| and |offset| count 64-bit elements.
llvm::Expected<TileView> placeWide(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                   int64_t offset, EmissionContext &context);

/// Places a 64-bit value as i32 halves. |sizes|, |strides| and |offset| count i32 elements.
llvm::Expected<TileView> placeHalves(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                     int64_t offset, EmissionContext &context);

/// Loads a view from placeWide into local memory as a map reads it: as i32, or as f32, each number rounded once.
TileView loadWide(const TileView &from, CommandStream &stream, LocalBudget &localBudget, Tile &tile);

/// Allocates the buffer that a map writes before storeWide: i32 within 2^24, with the shape of |to|.
TileView resultOfWide(const TileView &to, LocalBudget &localBudget);
/// Sign-extends |local|, a buffer from resultOfWide, to 64 bits and stores it at |to|.
void storeWide(const TileView &local, const TileView &to, CommandStream &stream, Tile &tile);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_WIDEINTEGERS_H
