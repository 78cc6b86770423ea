//===- FoldConstants.cpp - Folds constant ops, types and no-ops -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Simplify.h"
#include "top_dialect/Transforms/Values.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera::top {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// Limit of the bytes by which all folded results together may exceed their operands. Ops beyond it are not folded.
constexpr int64_t kMaxTotal = int64_t(4) << 30;

bool isTop(Operation *op) { return isa_and_nonnull<TopDialect>(op->getDialect()); }

/// Returns the number of multiplications per result element, if there is more than one.
int64_t workPerElement(Operation *op) {
  if (auto matmul = dyn_cast<MatMulOp>(op)) {
    ArrayRef<int64_t> dims = dimsOf(matmul.getA());
    return std::max<int64_t>(dims[dims.size() - (matmul.getTransA() ? 2 : 1)], 1);
  }
  if (isa<ConvOp, ConvTransposeOp>(op)) {
    RankedTensorType weight = typeOf(op->getOperand(1));
    return std::max<int64_t>(weight.getNumElements() / std::max<int64_t>(weight.getDimSize(0), 1), 1);
  }
  int64_t largest = 1; // For einsum and rnn, assume at most one multiplication per operand element.
  if (isa<EinsumOp, RnnOp>(op)) {
    for (Value operand : op->getOperands()) {
      largest = std::max(largest, typeOf(operand).getNumElements());
    }
  }
  return largest;
}

/// Returns a key for the constant that replaces `op`.
std::string hintFor(Operation *op, Value result) {
  StringRef tensor = getTensorName(result);
  std::string name = tensor.empty() ? getDisplayName(op->getLoc()) : tensor.str();
  return name.empty() ? op->getName().stripDialect().str() : name;
}

/// Checks whether an op that may compute on integers reads `v`, directly, through moves, or after the addition of
/// constant minima.
bool feedsIntegerOp(Value v) {
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (auto add = dyn_cast<AddOp>(user)) {
      return isConstant(add.getA() == v ? add.getB() : add.getA()) && feedsIntegerOp(add.getY());
    }
    if (isa<ConvOp, ConvTransposeOp, MatMulOp, GatherOp, GatherElementsOp, GatherNdOp>(user)) {
      return true;
    }
    return isa<TransposeOp, ReshapeOp, SliceOp, ConcatOp, PadOp, ExpandOp>(user) && feedsIntegerOp(user->getResult(0));
  });
}

/// Checks for a dequantised weight. If it were folded to one f32 constant, it would no longer be known to be integers.
bool isQuantizedWeight(Operation *op) {
  auto dequantize = dyn_cast<DequantizeOp>(op);
  return dequantize && typeOf(dequantize.getX()).getElementTypeBitWidth() <= 16 && feedsIntegerOp(dequantize);
}

/// Returns true if the elements of `v` can be read, or if it does not have any.
bool isKnown(Value v) { return isReadable(v) || isEmpty(v); }

class FoldConstantsPass : public impl::FoldConstantsPassBase<FoldConstantsPass> {
public:
  using FoldConstantsPassBase::FoldConstantsPassBase;

private:
  /// Checks that the operands are known, and that the growth in bytes and the work are within bounds.
  bool isWorthEvaluating(Operation *op) {
    if (!isTop(op) || !isa<ReferenceInterface>(op) || op->getNumRegions() != 0 || op->getNumOperands() == 0 ||
        isQuantizedWeight(op) || !llvm::all_of(op->getOperands(), isKnown) || dependsOnSizes(op)) {
      return false;
    }
    int64_t growth = 0, elements = 0;
    llvm::SmallPtrSet<Value, 4> distinct(op->operand_begin(), op->operand_end()); // an operand used twice is freed only
                                                                                  // once
    for (Value operand : distinct) {
      growth -= byteSize(typeOf(operand));
    }
    for (Value result : op->getResults()) {
      int64_t bytes = byteSize(typeOf(result));
      if (bytes < 0 && typeOf(result).hasStaticShape()) {
        return false;
      }
      growth += std::max<int64_t>(bytes, 0); // Results of unknown size are those of index ops, which are small.
      elements += bytes < 0 ? 0 : typeOf(result).getNumElements();
    }
    int64_t limit = std::min<int64_t>(isa<ConstantOfShapeOp>(op) ? maxFill : maxGrowth, kMaxTotal - grown);
    if (growth > limit || elements > maxWork / workPerElement(op)) {
      return false;
    }
    grown += std::max<int64_t>(growth, 0);
    return true;
  }

  LogicalResult evaluate(Operation *op, RewriterBase &rewriter) {
    SmallVector<HostTensor> inputs, outputs;
    SmallVector<const HostTensor *> pointers; // Pointers into `inputs`, taken when it is complete.
    for (Value operand : op->getOperands()) {
      if (isEmpty(operand)) {
        inputs.emplace_back(typeOf(operand));
        continue;
      }
      TensorData data = *getConstantData(operand);
      inputs.push_back(HostTensor::borrow(data.type, data.bytes, data.owner));
    }
    for (const HostTensor &input : inputs) {
      pointers.push_back(&input);
    }
    for (Value result : op->getResults()) {
      RankedTensorType type = typeOf(result);
      outputs.push_back(type.hasStaticShape() ? HostTensor(type) : HostTensor(type.getElementType(), {0}));
    }
    if (failed(cast<ReferenceInterface>(op).evaluate(pointers, outputs))) {
      return failure();
    }
    SmallVector<Value> constants;
    for (auto [result, output] : llvm::zip_equal(op->getResults(), outputs)) {
      constants.push_back(
          createConstant(rewriter, op->getLoc(), output.getType(), output.getBytes(), hintFor(op, result)));
    }
    replaceAndErase(rewriter, op, constants);
    ++evaluated;
    return success();
  }

  /// Replaces results without elements by constants, so that no kernel has to handle them.
  bool replaceEmpty(Operation *op, RewriterBase &rewriter) {
    if (!isTop(op) || isConstant(op->getResult(0)) || !llvm::all_of(op->getResults(), isEmpty)) {
      return false;
    }
    SmallVector<Value> constants;
    for (Value result : op->getResults()) {
      constants.push_back(
          createConstant(rewriter, op->getLoc(), typeOf(result), std::vector<char>(), hintFor(op, result)));
    }
    replaceAndErase(rewriter, op, constants);
    ++evaluated;
    return true;
  }

  /// Folds a shape op if the dims of its operand are known, even if the elements are not.
  bool foldShape(ShapeOp op, RewriterBase &rewriter) {
    ArrayRef<int64_t> dims = dimsOf(op.getX()).slice(op.getStart(), op.getEnd() - op.getStart());
    if (llvm::any_of(dims, ShapedType::isDynamic)) {
      return false;
    }
    replaceAndErase(rewriter, op, createIntVector(rewriter, op.getLoc(), dims));
    ++evaluated;
    return true;
  }

  bool foldIf(IfOp op, RewriterBase &rewriter) {
    std::optional<SmallVector<int64_t>> cond = getConstantInts(op.getCond());
    if (!cond || cond->size() != 1) {
      return false;
    }
    Block &taken = (cond->front() ? op.getThenRegion() : op.getElseRegion()).front();
    Operation *yield = taken.getTerminator();
    SmallVector<Value> results(yield->getOperands());
    if (auto updates = findUpdates(op.getResultTypes(), yield->getOperandTypes()); updates && !updates->empty()) {
      replaceSymbols(op->getParentOfType<func::FuncOp>(), [&](SizeSymbolAttr symbol) {
        auto *update = llvm::find_if(*updates, [&](const SizeUpdate &each) { return each.symbol == symbol; });
        return update == updates->end() ? sizeOf(symbol) : update->size;
      });
    }
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&taken, op);
    replaceAndErase(rewriter, op, results);
    ++simplified;
    return true;
  }

  /// Infers dynamic result types again, as they may have become more static, except where |op| sets their sizes.
  LogicalResult refine(Operation *op) {
    auto shape = dyn_cast<ShapeInterface>(op);
    bool isDynamic = llvm::any_of(op->getResultTypes(), [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && !tensor.hasStaticShape();
    });
    if (!shape || !isDynamic || !symbolsSetBy(op).empty()) {
      return success();
    }
    SmallVector<RankedTensorType> types;
    if (failed(shape.inferShapes(types))) {
      return failure();
    }
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
      if (type.getNumDynamicDims() < typeOf(result).getNumDynamicDims()) {
        result.setType(type);
        ++refined;
      }
    }
    return success();
  }

  bool visit(Operation *op, RewriterBase &rewriter) {
    if (failed(refine(op))) {
      hasFailed = true;
      return false;
    }
    if (auto shape = dyn_cast<ShapeOp>(op)) {
      return foldShape(shape, rewriter);
    }
    if (auto ifOp = dyn_cast<IfOp>(op)) {
      return foldIf(ifOp, rewriter);
    }
    if (op->getNumResults() && replaceEmpty(op, rewriter)) {
      return true;
    }
    if (isWorthEvaluating(op)) {
      hasFailed |= failed(evaluate(op, rewriter));
      return true;
    }
    if (isTop(op) && simplify(op, rewriter)) {
      ++simplified;
      return true;
    }
    return false;
  }

  void runOnOperation() override {
    hasFailed = false;
    grown = 0;
    rewriteForward(getOperation(),
                   [&](Operation *op, RewriterBase &rewriter) { return !hasFailed && visit(op, rewriter); });
    if (hasFailed) {
      return signalPassFailure();
    }
    // Update the result types of functions.
    getOperation().walk([](func::ReturnOp op) {
      auto function = op->getParentOfType<func::FuncOp>();
      function.setType(FunctionType::get(op.getContext(), function.getArgumentTypes(), op.getOperandTypes()));
    });
  }

  bool hasFailed = false;
  int64_t grown = 0; ///< bytes by which all folded results exceed their operands
};
} // namespace
} // namespace tessera::top
