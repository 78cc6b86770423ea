//===- HoistInputs.cpp - Multiplies the inputs of all recurrent steps at once --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ChoosePacking.h"
#include "codegen/X86/Transforms/MoveBuilder.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/Exact.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_HOISTINPUTSPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Builds sums [steps, batch, directions * gates * hidden] = x [steps, batch, inputs] times w, plus the biases.
class InputContraction {
public:
  explicit InputContraction(device::RecurrentOp op)
      : op(op), build(op), directions(op.getNumDirections()), rows(op.getNumGates() * int64_t(op.getHiddenSize())) {}

  void replace() {
    OpBuilder &b = build.builder;
    Shape x = op.getX();
    Value w = op.getW(), bias = op.getBias();
    top::TensorData data = *top::getConstantData(w);
    auto flat = RankedTensorType::get({directions * rows, x[2].value()}, data.type.getElementType());
    auto sums = tensorType({x[0], x[1], directions * rows}, b.getF32Type());
    auto product = device::MatMulOp::create(b, op.getLoc(), sums, op.getX(),
                                            top::createConstant(b, w.getLoc(), flat, data.bytes, "input_weights"),
                                            bias ? biases({directions * rows}, true) : Value(), ValueRange(), Value(),
                                            false, /*transB=*/true, device::PackingInterface(), IntegerAttr(), 0);
    Value ofState = bias && addsBiasInside() ? biases({directions, rows}, false) : Value();
    op.getXMutable().assign(product.getY());
    op.getWMutable().clear();
    ofState ? op.getBiasMutable().assign(ofState) : op.getBiasMutable().clear();
    for (Value old : {w, bias}) {
      if (old) {
        top::releaseWeight(old);
        if (old.use_empty()) {
          old.getDefiningOp()->erase();
        }
      }
    }
  }

private:
  /// Returns true if the op is a GRU whose reset gate multiplies the state's bias of the candidate gate.
  bool addsBiasInside() { return op.getKind() == "gru" && op.getLinearBeforeReset(); }

  /// If |outside|, returns the input biases plus the state biases, except the state biases that the reset gate
  /// multiplies. Otherwise returns only these exceptions.
  Value biases(ArrayRef<int64_t> dims, bool outside) {
    constexpr int64_t kCandidate = 2;
    SmallVector<double> both = *top::getConstantDoubles(op.getBias());
    std::vector<float> values(directions * rows);
    for (int64_t i = 0; i < directions * rows; ++i) {
      int64_t direction = i / rows, row = i % rows, at = direction * 2 * rows + row;
      bool isInside = addsBiasInside() && row / int64_t(op.getHiddenSize()) == kCandidate;
      values[i] = float(outside ? both[at] + (isInside ? 0.0 : both[at + rows]) : isInside ? both[at + rows] : 0.0);
    }
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    OpBuilder &b = build.builder;
    return top::createConstant(b, op.getBias().getLoc(), RankedTensorType::get(dims, b.getF32Type()), bytes, "bias");
  }

  device::RecurrentOp op;
  MoveBuilder build;
  int64_t directions, rows;
};

class HoistInputs : public impl::HoistInputsPassBase<HoistInputs> {
public:
  using HoistInputsPassBase::HoistInputsPassBase;

  void runOnOperation() override {
    SmallVector<device::RecurrentOp> ops;
    getOperation().walk([&](device::RecurrentOp op) { ops.push_back(op); });
    for (device::RecurrentOp op : ops) {
      if (canReplace(op)) {
        InputContraction(op).replace();
        ++numHoisted;
      }
    }
  }

private:
  bool canReplace(device::RecurrentOp op) {
    Value w = op.getW();
    bool constant = w && top::isConstant(w) && (!op.getBias() || top::isConstant(op.getBias()));
    // Exact functions need fused ordered sums, which requires FMA.
    constexpr int64_t kBytesWithoutFma = 16;
    return constant && hasTileTypes(op.getX(), typeOf(w).getElementType(), Value(), op.getY()) &&
           hasRegisterTile(op, {.vectorBytes = vectorBytes}) &&
           !(vectorBytes == kBytesWithoutFma && device::isExact(op));
  }
};

} // namespace
} // namespace tessera::x86
