//===- FusedOps.cpp - Handlers of operators that onnxruntime's optimiser creates --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Returns |x| with its first dim moved after the other batch dims if |rotate|, and then with its last two dims swapped
/// if |swap|.
Value arrange(NodeImporter &n, Value x, bool swap, bool rotate) {
  int64_t rank = NodeImporter::rank(x);
  if (n.failed() || rank < 2) {
    return x; // vectors are unchanged
  }
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (rotate) {
    std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  }
  if (swap) {
    std::swap(perm[rank - 2], perm[rank - 1]);
  }
  return n.transpose(x, perm);
}

void fusedMatMul(NodeImporter &n) {
  n.allowOnly({"alpha", "transA", "transB", "transBatchA", "transBatchB"}, 2);
  Value a = arrange(n, n.input(0), n.intAttr("transA", 0) != 0, n.intAttr("transBatchA", 0) != 0);
  Value b = arrange(n, n.input(1), n.intAttr("transB", 0) != 0, n.intAttr("transBatchB", 0) != 0);
  Value y = makeNumpyMatMul(n, a, b);
  double alpha = n.floatAttr("alpha", 1.0);
  n.setOutput(0, alpha == 1.0 ? y : n.create<MulOp>(y, n.scalarLike(y, alpha)));
}

void fusedGemm(NodeImporter &n) {
  n.allowOnly(
      {"activation", "activation_alpha", "activation_beta", "activation_gamma", "alpha", "beta", "transA", "transB"},
      3);
  llvm::SmallVector<double> params;
  for (const char *name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (n.hasAttr(name)) {
      params.push_back(n.floatAttr(name, 0));
    }
  }
  n.setOutput(0, makeFusedActivation(n, makeGemm(n), params));
}

/// Returns the number of leading ones in each row of the mask [B, S] as i32.
Value countReal(NodeImporter &n, Value mask) {
  Value isHidden = n.create<CompareOp>(mask, n.scalarLike(mask, 0), CompareKind::eq);
  Value before = n.create<CumSumOp>(n.cast(isHidden, n.b.getI32Type()), 1, false, false);
  Value isLeading = n.create<CompareOp>(before, n.scalarLike(before, 0), CompareKind::eq);
  return n.create<ReduceOp>(n.cast(isLeading, n.b.getI32Type()), ReduceKind::sum, Ints{1}, false);
}

/// Adds rows of up to three tables and normalises the sum.
void embedLayerNorm(NodeImporter &n) {
  n.allowOnly({"epsilon", "mask_index_type"}, 9);
  Value ids = n.input(0);
  Ints dims(NodeImporter::shape(ids));
  if (!n.failed() && (dims.size() != 2 || llvm::any_of(dims, mlir::ShapedType::isDynamic))) {
    n.unsupported("its input_ids need rank 2 and static dims: fix them with --input_shapes");
  }
  if (!n.failed() && n.hasInput(1) != n.hasInput(4)) {
    n.fail("segment_ids and segment_embedding must be given together");
  }
  if (n.failed()) {
    return;
  }
  Value positions = n.optionalInput(8);
  if (!positions) {
    Ints numbers(dims[1]);
    std::iota(numbers.begin(), numbers.end(), 0);
    positions = n.reshape(n.intVector(numbers), {1, dims[1]});
  }
  Value words = n.create<GatherOp>(n.input(2), ids, 0), places = n.create<GatherOp>(n.input(3), positions, 0);
  Value sum = n.create<AddOp>(words, places);
  if (n.hasInput(1)) {
    sum = n.create<AddOp>(sum, n.create<GatherOp>(n.input(4), n.input(1), 0));
  }
  double epsilon = n.floatAttr("epsilon", 1e-12);
  n.setOutput(0, n.create<LayerNormOp>(sum, n.input(5), n.input(6), 2, llvm::APFloat(epsilon), false));
  if (n.wantsOutput(1)) {
    mlir::Type i32 = n.b.getI32Type();
    Value zeros = n.create<ConstantOfShapeOp>(n.intVector({dims[0]}),
                                              mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({1}, i32), 0));
    n.setOutput(1, n.hasInput(7) ? countReal(n, n.input(7)) : zeros);
  }
  n.setOutput(2, sum);
}

constexpr llvm::StringLiteral kDomain = "com.microsoft";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "FusedMatMul", fusedMatMul},
    {kDomain, "TransposeMatMul", fusedMatMul},
    {kDomain, "FusedGemm", fusedGemm},
    {kDomain, "EmbedLayerNormalization", embedLayerNorm},
};

} // namespace

llvm::ArrayRef<HandlerEntry> microsoftHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
