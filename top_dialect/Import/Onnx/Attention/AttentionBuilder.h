//===- AttentionBuilder.h - Shared building blocks of the attention operators --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_ATTENTION_ATTENTIONBUILDER_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_ATTENTION_ATTENTIONBUILDER_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Fails unless all non-null |values| have static dims.
bool requireStaticDims(NodeImporter &n, llvm::ArrayRef<mlir::Value> values);
/// Fails unless the dims of all non-null |values| are static or have ranges.
bool requireSizes(NodeImporter &n, llvm::ArrayRef<mlir::Value> values);
/// Makes two sizes equal if a symbol of an input can be replaced; returns false otherwise. |user| needs them equal.
bool makeEqual(NodeImporter &n, Dim a, Dim b, mlir::Value user);
/// Lets runs fail in which an integer of |values| differs from |expected|. Errors show the formula |difference|.
void requireEqual(NodeImporter &n, mlir::Value values, mlir::Value expected, llvm::StringRef difference);
/// Reshapes |x| unless it has these sizes.
mlir::Value reshapeTo(NodeImporter &n, mlir::Value x, llvm::ArrayRef<Dim> sizes);
/// Returns the i64 numbers from |start| to |limit| - 1 as a tensor of |sizes|.
mlir::Value numbers(NodeImporter &n, Dim start, Dim limit, llvm::ArrayRef<Dim> sizes);

/// Reshapes [B, S, heads * E] to [B, heads, S, E]. A tensor of rank 4 is already in this form and is returned as it is.
/// |what| names the number of heads in errors.
mlir::Value splitHeads(NodeImporter &n, mlir::Value x, int64_t heads, llvm::StringRef what);
/// Reshapes [B, heads, S, E] to [B, S, heads * E].
mlir::Value joinHeads(NodeImporter &n, mlir::Value x);
/// Returns the elements |begin| to |end| - 1 along |axis|.
mlir::Value sliceRange(NodeImporter &n, mlir::Value x, int64_t axis, Dim begin, Dim end);
/// Returns a mask that is 0 where |allowed| is true, and |hidden| elsewhere.
mlir::Value maskOf(NodeImporter &n, mlir::Value allowed, mlir::Type element, double hidden);
mlir::Value plus(NodeImporter &n, mlir::Value a, mlir::Value b); ///< returns a + b; either may be null

/// The keys that a query attends to, given by distance: query i is at position i + offset and attends to the keys from
/// position - left to position + right. -1 means no limit on that side.
struct KeyWindow {
  int64_t left = -1, right = -1;
  bool isOpen() const { return left < 0 && right < 0; }
};
/// Returns the mask [queries, keys] of a window at an offset that is a number or a size.
mlir::Value windowMask(NodeImporter &n, mlir::Type element, Dim queries, Dim keys, KeyWindow window, Dim offset);
/// Returns the mask [B, 1, queries, keys] of a window at |offsets| (i64 [B]) known at run time.
mlir::Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window,
                       mlir::Value offsets);
/// Returns the mask [B, 1, 1, keys] that hides the keys at index |lengths| (i64 [B]) and after it.
mlir::Value lengthMask(NodeImporter &n, mlir::Type element, int64_t keys, mlir::Value lengths, double hidden);

/// Attention of q [B, H, S, E] to k [B, G, T, E] and v [B, G, T, F], where G divides H. The results keep this layout.
struct Attention {
  enum Scores { none, products, capped, biased, probabilities };

  mlir::Value q, k, v;
  mlir::Value bias;         ///< added to the scores, broadcast to [B, H, S, T]; may be null
  bool mayHideRows = false; ///< a row of the output is 0 where the bias hides all keys (-inf)
  double scale = 1;
  double softcap = 0;     ///< 0 means none
  mlir::Value sink;       ///< [H]: an extra score per head that takes part in the softmax but has no value; may be null
  mlir::Type softmaxType; ///< the type in which the softmax is computed at least; null means that of q
  Scores wanted = none;

  /// Sets the scale to |given|, or to 1 / sqrt(E) if it is 0.
  void setScale(double given);
};
struct AttentionResults {
  mlir::Value y;
  mlir::Value scores; ///< [B, H, S, T], at the step chosen by Attention::wanted
};
AttentionResults makeAttention(NodeImporter &n, const Attention &attention);

/// Rotates the first |dims| elements (0 means all) of the rows of |x| [B, H, S, E] by the angles whose cosines and
/// sines are |cos| and |sin|, both [B or 1, S, dims / 2].
mlir::Value makeRotary(NodeImporter &n, mlir::Value x, mlir::Value cos, mlir::Value sin, int64_t dims,
                       bool interleaved);
/// Returns the rows |positions| [B, S] of a table of angles [positions, dims / 2].
mlir::Value gatherAngles(NodeImporter &n, mlir::Value table, mlir::Value positions);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_ATTENTION_ATTENTIONBUILDER_H
