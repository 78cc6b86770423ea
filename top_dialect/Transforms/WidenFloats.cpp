//===- WidenFloats.cpp - Computes f16 and bf16 models in f32 --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::top {
#define GEN_PASS_DEF_WIDENFLOATSPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

bool isNarrow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (tensor.getElementType().isF16() || tensor.getElementType().isBF16());
}

Type wide(Type type) { return cast<RankedTensorType>(type).clone(Float32Type::get(type.getContext())); }

CastOp createCast(OpBuilder &builder, Location loc, Value value, Type type) {
  return CastOp::create(builder, loc, type, value, TypeAttr::get(getElementTypeOrSelf(type)));
}

/// Creates the constant |value| in f32 before its op.
Value widenConstant(OpBuilder &builder, Value value) {
  std::optional<TensorData> data = getConstantData(value);
  if (!data) {
    return {};
  }
  const llvm::fltSemantics &from = cast<FloatType>(data->type.getElementType()).getFloatSemantics();
  ArrayRef<uint16_t> narrow = data->data<uint16_t>();
  std::vector<char> bytes(narrow.size() * sizeof(float));
  for (auto [i, bits] : llvm::enumerate(narrow)) {
    APFloat number(from, APInt(16, bits));
    bool loses = false;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &loses);
    float single = number.convertToFloat();
    std::memcpy(bytes.data() + i * sizeof(float), &single, sizeof(float));
  }
  Operation *op = value.getDefiningOp();
  builder.setInsertionPoint(op);
  StringRef name = getTensorName(value);
  std::string hint = (name.empty() ? getDisplayName(op->getLoc()) : name.str()) + "_f32";
  Value result =
      createConstant(builder, op->getLoc(), cast<RankedTensorType>(wide(data->type)), std::move(bytes), hint);
  copyNames(op, result.getDefiningOp());
  return result;
}

class WidenFloatsPass : public impl::WidenFloatsPassBase<WidenFloatsPass> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    WalkResult result = getOperation().walk([&](func::FuncOp function) {
      return failed(widen(function, builder)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted()) {
      signalPassFailure();
    }
  }

  /// Changes types in place: each operand and result of an op either keeps its type or becomes f32, so ops stay
  /// consistent. Constants, casts of the model and the function's interface are handled separately.
  LogicalResult widen(func::FuncOp function, OpBuilder &builder) {
    SmallVector<Operation *> constants;
    SmallVector<CastOp> casts;
    SmallVector<std::pair<CustomOp, SmallVector<Type>>> customs; // with the types that they take
    function.walk([&](CustomOp op) { customs.emplace_back(op, SmallVector<Type>(op->getOperandTypes())); });
    function.walk([&](Operation *op) {
      if (op->getNumResults() == 1 && isConstant(op->getResult(0)) && isNarrow(op->getResult(0).getType())) {
        constants.push_back(op);
        return;
      }
      if (auto cast = dyn_cast<CastOp>(op)) {
        casts.push_back(cast);
        return;
      }
      if (isa<CustomOp>(op)) {
        return;
      }
      for (OpResult value : op->getResults()) {
        widenValue(value);
      }
      for (Region &region : op->getRegions()) {
        for (Block &block : region) {
          if (op != function) {
            llvm::for_each(block.getArguments(), [&](Value value) { widenValue(value); });
          }
        }
      }
    });
    for (Operation *op : constants) {
      Value f32 = widenConstant(builder, op->getResult(0));
      if (!f32) {
        return op->emitOpError("has no data in the weight store");
      }
      op->getResult(0).replaceAllUsesWith(f32);
      op->erase();
      ++widened;
    }
    widenArguments(function, builder);
    llvm::for_each(casts, [&](CastOp cast) { widenCast(cast, builder); });
    for (auto &[custom, types] : customs) {
      surroundCustom(custom, types, builder);
    }
    narrowResults(function, builder);
    return success();
  }

  /// A cast to a narrow type rounds: its result stays narrow, and users read it widened. Any other cast reads the
  /// widened operand.
  void widenCast(CastOp cast, OpBuilder &builder) {
    if (isNarrow(cast.getY().getType())) {
      builder.setInsertionPointAfter(cast);
      CastOp widen = createCast(builder, cast.getLoc(), cast.getY(), wide(cast.getY().getType()));
      cast.getY().replaceAllUsesExcept(widen.getY(), widen);
      if (Attribute names = cast->removeAttr(TopDialect::kOutputsAttr)) {
        widen->setAttr(TopDialect::kOutputsAttr, names); // calibration tables use the names of values that other ops
                                                         // read
      }
      ++widened;
    } else if (cast.getX().getType() == cast.getY().getType()) {
      cast.getY().replaceAllUsesWith(cast.getX());
      cast.erase();
    }
  }

  /// Keeps the types that a custom operator takes and gives: its operands are cast back to |types|, and users read its
  /// results widened.
  void surroundCustom(CustomOp custom, ArrayRef<Type> types, OpBuilder &builder) {
    builder.setInsertionPoint(custom);
    for (auto [operand, type] : llvm::zip_equal(custom->getOpOperands(), types)) {
      if (operand.get().getType() != type) {
        operand.set(createCast(builder, custom.getLoc(), operand.get(), type));
      }
    }
    builder.setInsertionPointAfter(custom);
    for (Value result : custom.getResults()) {
      if (isNarrow(result.getType())) {
        CastOp widen = createCast(builder, custom.getLoc(), result, wide(result.getType()));
        result.replaceAllUsesExcept(widen.getY(), widen);
        ++widened;
      }
    }
  }

  void widenValue(Value value) {
    if (isNarrow(value.getType())) {
      value.setType(wide(value.getType()));
      ++widened;
    }
  }

  /// Casts the arguments of the function to f32. The arguments keep their types.
  static void widenArguments(func::FuncOp function, OpBuilder &builder) {
    Block &entry = function.getBody().front();
    builder.setInsertionPointToStart(&entry);
    for (BlockArgument argument : entry.getArguments()) {
      if (isNarrow(argument.getType()) && !argument.use_empty()) {
        CastOp cast = createCast(builder, argument.getLoc(), argument, wide(argument.getType()));
        argument.replaceAllUsesExcept(cast.getY(), cast);
      }
    }
  }

  /// Casts returned values to the function's result types, which stay.
  static void narrowResults(func::FuncOp function, OpBuilder &builder) {
    Operation *end = function.getBody().front().getTerminator();
    builder.setInsertionPoint(end);
    for (auto [operand, type] : llvm::zip(end->getOpOperands(), function.getResultTypes())) {
      Value exact = operand.get();
      if (exact.getType() == type) {
        continue;
      }
      auto widen = exact.getDefiningOp<CastOp>();
      if (widen && widen.getX().getType() == type) { // rounded by the model, or an argument
        operand.set(widen.getX());
        dropUnused(widen);
        continue;
      }
      Location loc = exact.getDefiningOp() ? exact.getLoc() : end->getLoc();
      operand.set(createCast(builder, loc, exact, type).getY());
    }
  }

  /// Erases a widening cast without users; the narrow value takes over its names.
  static void dropUnused(CastOp widen) {
    if (!widen.getY().use_empty()) {
      return;
    }
    if (Operation *op = widen.getX().getDefiningOp()) {
      copyNames(widen, op);
    }
    widen.erase();
  }
};
} // namespace
} // namespace tessera::top
