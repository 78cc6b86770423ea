//===- BlockQuantization.h - Rows quantised by blocks --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The constants of top.block_matmul's arithmetic, which the reference and every kernel share. docs/numerics.md defines
// the arithmetic.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_BLOCKQUANTIZATION_H
#define TESSERA_TOP_DIALECT_IR_BLOCKQUANTIZATION_H

#include <cstdint>

namespace tessera::top {

/// Largest number of entries per block: with more, a sum of products of two i8 could exceed i32.
inline constexpr int64_t kMostOfBlock = 65536;
/// Largest magnitude of a quantised entry of a row.
inline constexpr float kLargestOfRow = 127;
/// Blocks whose largest magnitude is below this number are quantised to 0, so that 127 / magnitude is finite.
inline constexpr float kSmallestOfBlock = 0x1p-120f;
/// x + kRounding, for |x| < 2^22, rounds x to an integer, which is then the low bits of the sum.
inline constexpr float kRounding = 0x1.8p23f;

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_BLOCKQUANTIZATION_H
