//===- WideIntegers.h - Integers of 64 bits on the NPU ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The chip has no element of 64 bits. Ids, positions and masks have: maps read them as what they are made of, and a
// register holds the nearest f32, as of an i32. They are never in local memory from one op to another.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_WIDEINTEGERS_H
#define TESSERA_CODEGEN_NPU_EMISSION_WIDEINTEGERS_H

#include "codegen/Npu/Emission/EmissionContext.h"

namespace tessera::npu {

/// Whether a value's elements are signless integers of 64 bits.
bool isWide(mlir::Value value);

/// Where a wide value is outside the chip, seen as the first part of each element: as i32 where it is what the op
/// makes or holds no other numbers, else as i16. |sizes|, |strides| and |offset| are in elements of 64 bits.
llvm::Expected<TileView> placeWide(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                   int64_t offset, EmissionContext &context);

/// The same seen as halves: |sizes|, |strides| and |offset| are in i32.
llvm::Expected<TileView> placeHalves(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                     int64_t offset, EmissionContext &context);

/// Loads what placeWide has placed, as a map reads it: i32, or each number rounded once to f32.
TileView loadWide(const TileView &from, Stream &stream, LocalBudget &localBudget, Tile &tile);

/// What a map writes before storeWide: i32 within 2^24, of |to|'s shape in local memory.
TileView resultOfWide(const TileView &to, LocalBudget &localBudget);
/// Extends |local|, which resultOfWide has made, and stores it at |to|.
void storeWide(const TileView &local, const TileView &to, Stream &stream, Tile &tile);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_WIDEINTEGERS_H
