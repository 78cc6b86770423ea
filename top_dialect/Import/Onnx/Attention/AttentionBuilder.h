//===- AttentionBuilder.h - What operators of attention are made of -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Fails unless all |values| that are given have static dims.
bool requireStaticDims(NodeImporter &n, llvm::ArrayRef<mlir::Value> values);

/// [B, S, heads * E] -> [B, heads, S, E]; a tensor of rank 4 has this form already. |what| names the number of heads.
mlir::Value splitHeads(NodeImporter &n, mlir::Value x, int64_t heads, llvm::StringRef what);
/// [B, heads, S, E] -> [B, S, heads * E].
mlir::Value joinHeads(NodeImporter &n, mlir::Value x);
/// Elements |begin| to |end| - 1 along |axis|.
mlir::Value sliceRange(NodeImporter &n, mlir::Value x, int64_t axis, int64_t begin, int64_t end);
/// Returns 0 where |allowed| is true, |hidden| elsewhere.
mlir::Value maskOf(NodeImporter &n, mlir::Value allowed, mlir::Type element, double hidden);
mlir::Value plus(NodeImporter &n, mlir::Value a, mlir::Value b); ///< either may be null

/// The keys that a query may see by their distance: query i sits at position i + offset and sees the keys from
/// position - left to position + right, -1 for all.
struct KeyWindow {
  int64_t left = -1, right = -1;
  bool isOpen() const { return left < 0 && right < 0; }
};
/// The mask [queries, keys] of a window at a constant offset.
mlir::Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window,
                       int64_t offset);
/// The mask [B, 1, queries, keys] of a window at |offsets| (i64 [B]) known at run time.
mlir::Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window,
                       mlir::Value offsets);
/// The mask [B, 1, 1, keys] that hides what lies at |lengths| (i64 [B]) and beyond.
mlir::Value lengthMask(NodeImporter &n, mlir::Type element, int64_t keys, mlir::Value lengths, double hidden);

/// q [B, H, S, E], k [B, G, T, E] and v [B, G, T, F], G a divisor of H; the results keep these forms.
struct Attention {
  enum Scores { none, products, capped, biased, probabilities };

  mlir::Value q, k, v;
  mlir::Value bias;         ///< added to the scores, broadcast to [B, H, S, T]; may be null
  bool mayHideRows = false; ///< rows whose bias is -inf throughout are 0
  double scale = 1;
  double softcap = 0;     ///< 0: none
  mlir::Value sink;       ///< [H]: a score that takes part in the softmax and has no value; may be null
  mlir::Type softmaxType; ///< null: at least that of q
  Scores wanted = none;

  /// Sets the scale to |given|, or to 1 / sqrt(E) if it is 0.
  void setScale(double given);
};
struct AttentionResults {
  mlir::Value y;
  mlir::Value scores; ///< [B, H, S, T] as Attention::wanted says
};
AttentionResults makeAttention(NodeImporter &n, const Attention &attention);

/// Rotates the first |dims| (0: all) elements of the rows of |x| [B, H, S, E] by angles whose |cos| and |sin| are
/// [B or 1, S, dims / 2].
mlir::Value makeRotary(NodeImporter &n, mlir::Value x, mlir::Value cos, mlir::Value sin, int64_t dims,
                       bool interleaved);
/// The rows |positions| [B, S] of a table of angles [positions, dims / 2].
mlir::Value gatherAngles(NodeImporter &n, mlir::Value table, mlir::Value positions);

} // namespace tessera::top::onnx_import
