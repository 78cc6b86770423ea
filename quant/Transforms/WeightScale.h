//===- WeightScale.h - The scale with the least squared error ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/ArrayRef.h"

namespace tessera::quant {

/// The scale with which integers of |bits|, in [-2^(bits - 1), 2^(bits - 1) - 1], stand for |values|, which are finite:
/// of those tried, the one with the least squared error. It may be negative.
float weightScale(llvm::ArrayRef<float> values, int bits);

} // namespace tessera::quant
