//===- LowerMatMul.cpp - Matmul and einsum --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopShapeOps.h"
#include <numeric>

using namespace mlir;

namespace tessera::device {
namespace {

using Ints = SmallVector<int64_t>;
using Dims = SmallVector<Dim>;

struct LowerMatMulOp : OpRewritePattern<top::MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::MatMulOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto matmul = MatMulOp::create(rewriter, lower.loc, Lowering::type(op.getY()), op.getA(), op.getB(), op.getBias(),
                                   ValueRange(), Value(), op.getTransA(), op.getTransB(),
                                   /*packing=*/PackingInterface(), IntegerAttr());
    if (op.getRelu()) {
      double limit = op.getReluLimit().convertToDouble();
      lower.setEpilogue(
          matmul, [&](OpBuilder &b, Location loc, ValueRange values) { return emitRelu(b, loc, values[0], limit); });
    } else {
      lower.setEpilogue(matmul, nullptr);
    }
    return lower.replace(matmul.getY());
  }
};

struct LowerBlockMatMulOp : OpRewritePattern<top::BlockMatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::BlockMatMulOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto matmul = BlockMatMulOp::create(rewriter, lower.loc, Lowering::type(op.getY()), op.getX(), op.getW(),
                                        op.getScales(), op.getMins(), ValueRange(), op.getBlock(),
                                        /*packing=*/PackingInterface());
    lower.setEpilogue(matmul, nullptr);
    return lower.replace(matmul.getY());
  }
};

/// A tensor whose dims are named by letters.
struct Term {
  Value value;
  std::string letters;

  Dim dim(char letter) const { return Lowering::shape(value)[letters.find(letter)]; }
  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
};

/// Lowers einsum: joins terms two at a time by a batched matmul. A letter that neither a later term nor the result has
/// is summed as early as possible.
class EinsumLowering {
public:
  EinsumLowering(Lowering &lower, top::EinsumOp op) : lower(lower) {
    auto [inputs, output] = op.getEquation().split("->");
    result = output.str();
    SmallVector<StringRef> parts;
    inputs.split(parts, ',');
    for (auto [part, value] : llvm::zip(parts, op.getInputs())) {
      terms.push_back(diagonal({value, part.str()}));
    }
  }

  Value run() {
    Term joined = terms.front();
    for (size_t i = 1; i <= terms.size(); ++i) {
      joined = sumUnneeded(joined, i);
      if (i < terms.size()) {
        joined = join(joined, sumUnneeded(terms[i], i, &joined), i + 1);
      }
    }
    return arrange(joined, result).value;
  }

private:
  /// Takes the diagonal of a term with two equal letters.
  Term diagonal(Term term) {
    for (size_t i = 0; i < term.letters.size(); ++i) {
      size_t j = term.letters.find(term.letters[i], i + 1);
      if (j == std::string::npos) {
        continue;
      }
      // Move both dims to the end: [..., n, n] -> [..., n * n], and take every (n + 1)-th element.
      Ints perm;
      for (size_t d = 0; d < term.letters.size(); ++d) {
        if (d != i && d != j) {
          perm.push_back(d);
        }
      }
      perm.append({static_cast<int64_t>(i), static_cast<int64_t>(j)});
      Value value = lower.transpose(term.value, perm);
      Dims dims = Lowering::shape(value).dims();
      int64_t n = dims.pop_back_val().value();
      dims.back() = n * n;
      Dims sizes(dims);
      Ints starts(dims.size(), 0), steps(dims.size(), 1);
      sizes.back() = n;
      steps.back() = n + 1;
      value = lower.slice(lower.reshape(value, dims), starts, sizes, steps);
      std::string letters;
      for (int64_t d : ArrayRef<int64_t>(perm).drop_back()) {
        letters += term.letters[d];
      }
      return diagonal({value, letters});
    }
    return term;
  }

  bool neededFrom(char letter, size_t next) const {
    return result.find(letter) != std::string::npos ||
           llvm::any_of(llvm::drop_begin(terms, next), [&](const Term &term) { return term.has(letter); });
  }

  /// Sums over the letters that no other term needs.
  Term sumUnneeded(Term term, size_t next, const Term *other = nullptr) {
    Ints axes;
    Dims dims;
    std::string letters;
    for (auto [d, letter] : llvm::enumerate(term.letters)) {
      bool needed = neededFrom(letter, other ? next + 1 : next) || (other && other->has(letter));
      if (needed) {
        letters += letter;
        dims.push_back(term.dim(letter));
      } else {
        axes.push_back(d);
      }
    }
    if (axes.empty()) {
      return term;
    }
    Value sum = lower.reduce(term.value, ReduceKind::sum, axes, Lowering::element(term.value));
    return {lower.reshape(sum, dims), letters};
  }

  Term arrange(const Term &term, const std::string &letters) {
    Ints perm;
    for (char letter : letters) {
      perm.push_back(term.letters.find(letter));
    }
    return {lower.transpose(term.value, perm), letters};
  }

  static Dim product(const Term &term, const std::string &letters) {
    Dim count = 1;
    for (char letter : letters) {
      count *= term.dim(letter);
    }
    return count;
  }

  /// Joins a [batch, left, common] and b [batch, common, right] to [batch, left, right].
  Term join(const Term &a, const Term &b, size_t next) {
    std::string batch, common, left, right;
    for (char letter : a.letters) {
      bool shared = b.has(letter);
      (!shared ? left : neededFrom(letter, next) ? batch : common) += letter;
    }
    for (char letter : b.letters) {
      if (!a.has(letter)) {
        right += letter;
      }
    }
    // Use the order of the last two groups that needs no move.
    bool transA = a.letters == batch + common + left && a.letters != batch + left + common;
    bool transB = b.letters == batch + right + common && b.letters != batch + common + right;
    Dim n = product(a, batch), k = product(a, common), l = product(a, left), r = product(b, right);
    Value lhs = arrange(a, transA ? batch + common + left : batch + left + common).value;
    Value rhs = arrange(b, transB ? batch + right + common : batch + common + right).value;
    lhs = lower.reshape(lhs, transA ? Dims{n, k, l} : Dims{n, l, k});
    rhs = lower.reshape(rhs, transB ? Dims{n, r, k} : Dims{n, k, r});
    RankedTensorType type = tensorType({n, l, r}, Lowering::element(a.value));
    auto matmul =
        MatMulOp::create(lower.rewriter, lower.loc, type, lhs, rhs, Value(), ValueRange(), Value(), transA, transB,
                         /*packing=*/PackingInterface(), IntegerAttr());
    lower.setEpilogue(matmul, nullptr);
    Dims dims;
    for (char letter : batch + left + right) {
      dims.push_back(a.has(letter) ? a.dim(letter) : b.dim(letter));
    }
    return {lower.reshape(matmul.getY(), dims), batch + left + right};
  }

  Lowering &lower;
  SmallVector<Term> terms;
  std::string result;
};

struct LowerEinsumOp : OpRewritePattern<top::EinsumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::EinsumOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(EinsumLowering(lower, op).run());
  }
};

} // namespace

void populateMatMulPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerMatMulOp, LowerBlockMatMulOp, LowerEinsumOp>(patterns.getContext());
}

} // namespace tessera::device
