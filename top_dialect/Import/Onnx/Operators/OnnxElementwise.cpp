//===- OnnxElementwise.cpp - Handlers of elementwise operators ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include <limits>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

template <typename OpTy>
void unary(NodeImporter &n) {
  n.setOutput(0, n.create<OpTy>(n.input(0)));
}

template <typename OpTy>
void binary(NodeImporter &n) {
  n.setOutput(0, n.create<OpTy>(n.input(0), n.input(1)));
}

/// Sum, Min and Max, with any number of operands.
template <typename OpTy>
Value foldLeft(NodeImporter &n) {
  Value result = n.input(0);
  for (unsigned i = 1; i < n.numInputs(); ++i) {
    result = n.create<OpTy>(result, n.input(i));
  }
  return result;
}

template <typename OpTy>
void variadic(NodeImporter &n) {
  n.setOutput(0, foldLeft<OpTy>(n));
}

void mean(NodeImporter &n) {
  Value sum = foldLeft<AddOp>(n);
  n.setOutput(0, n.create<DivOp>(sum, n.scalarLike(sum, n.numInputs())));
}

template <CompareKind kind>
void compare(NodeImporter &n) {
  n.setOutput(0, n.create<CompareOp>(n.input(0), n.input(1), kind));
}

void pow(NodeImporter &n) { n.setOutput(0, n.create<PowOp>(n.input(0), n.input(1))); }

void mod(NodeImporter &n) { n.setOutput(0, n.create<ModOp>(n.input(0), n.input(1), n.intAttr("fmod", 0) != 0)); }

void bitShift(NodeImporter &n) {
  n.setOutput(0, n.create<BitShiftOp>(n.input(0), n.input(1), n.stringAttr("direction", "LEFT") == "LEFT"));
}

template <typename OpTy>
void alpha(NodeImporter &n, double byDefault) {
  n.setOutput(0, n.create<OpTy>(n.input(0), llvm::APFloat(static_cast<float>(n.floatAttr("alpha", byDefault)))));
}
void leakyRelu(NodeImporter &n) { alpha<LeakyReluOp>(n, 0.01); }
void elu(NodeImporter &n) { alpha<EluOp>(n, 1.0); }
void celu(NodeImporter &n) { alpha<CeluOp>(n, 1.0); }
void thresholdedRelu(NodeImporter &n) { alpha<ThresholdedReluOp>(n, 1.0); }

template <typename OpTy>
void twoFloats(NodeImporter &n, const char *first, double firstDefault, const char *second, double secondDefault) {
  n.setOutput(0, n.create<OpTy>(n.input(0), llvm::APFloat(static_cast<float>(n.floatAttr(first, firstDefault))),
                                llvm::APFloat(static_cast<float>(n.floatAttr(second, secondDefault)))));
}
void selu(NodeImporter &n) {
  twoFloats<SeluOp>(n, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875);
}
void hardSigmoid(NodeImporter &n) { twoFloats<HardSigmoidOp>(n, "alpha", 0.2, "beta", 0.5); }
void shrink(NodeImporter &n) { twoFloats<ShrinkOp>(n, "bias", 0.0, "lambd", 0.5); }

void isInf(NodeImporter &n) {
  n.setOutput(
      0, n.create<IsInfOp>(n.input(0), n.intAttr("detect_negative", 1) != 0, n.intAttr("detect_positive", 1) != 0));
}

void gelu(NodeImporter &n) {
  n.setOutput(0, n.create<GeluOp>(n.input(0), n.stringAttr("approximate", "none") == "tanh"));
}

void prelu(NodeImporter &n) {
  // Older exporters write one slope per channel as [C]. ONNX broadcasts from the right, so [C, 1, 1] is meant.
  n.setOutput(0, n.create<PReluOp>(n.input(0), n.input(1)));
}

void where(NodeImporter &n) { n.setOutput(0, n.create<WhereOp>(n.input(0), n.input(1), n.input(2))); }

void castTo(NodeImporter &n, mlir::Type type, const StorageType *storage) {
  n.setOutputStorage(0, storage);
  n.setOutput(0, storage ? roundToStorage(n, n.input(0), *storage) : n.cast(n.input(0), type));
}

void cast(NodeImporter &n) {
  int64_t to = n.requiredInt("to");
  castTo(n, n.typeOf(to), findStorageType(static_cast<int>(to)));
}

void castLike(NodeImporter &n) { castTo(n, NodeImporter::elementType(n.input(1)), n.inputStorage(1)); }

/// Truth values take one byte each.
void bitCast(NodeImporter &n) {
  Value x = n.input(0);
  mlir::Type from = NodeImporter::elementType(x), to = n.typeOf(n.requiredInt("to"));
  bool fromBool = from.isInteger(1), toBool = to.isInteger(1);
  if (!n.failed() && (from.isF16() || from.isBF16() || to.isF16() || to.isBF16())) {
    n.unsupported("the bits of float16 and bfloat16 are not supported");
  } else if (!n.failed() && (fromBool || toBool) && from != to && (fromBool ? to : from).getIntOrFloatBitWidth() != 8) {
    n.fail("its types have different sizes");
  }
  n.setOutput(0, fromBool || toBool ? n.cast(x, to) : n.create<BitcastOp>(x, to));
}

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Clip 6: the bounds are attributes.
void clipAttributes(NodeImporter &n) {
  n.setOutput(0, n.create<ClipOp>(n.input(0), llvm::APFloat(n.floatAttr("min", -kInf)),
                                  llvm::APFloat(n.floatAttr("max", kInf))));
}

/// Clip 11: the bounds are inputs. Constant bounds become attributes.
void clip(NodeImporter &n) {
  Value x = n.input(0);
  double lo = -kInf, hi = kInf;
  Value dynamicLo, dynamicHi;
  auto bound = [&](unsigned i, double &value, Value &dynamic) {
    if (!n.hasInput(i)) {
      return;
    }
    auto constant = getConstantDoubles(n.input(i));
    if (constant && constant->size() == 1) {
      value = constant->front();
    } else {
      dynamic = n.input(i);
    }
  };
  bound(1, lo, dynamicLo);
  bound(2, hi, dynamicHi);
  // 64-bit integer bounds do not fit in a double, so compare as integers.
  if (!NodeImporter::isFloat(x)) {
    x = n.hasInput(1) ? n.create<MaxOp>(x, n.input(1)) : x;
    x = n.hasInput(2) ? n.create<MinOp>(x, n.input(2)) : x;
    n.setOutput(0, x);
    return;
  }
  x = dynamicLo ? n.create<MaxOp>(x, dynamicLo) : x;
  if (lo != -kInf || hi != kInf) {
    x = n.create<ClipOp>(x, llvm::APFloat(lo), llvm::APFloat(hi));
  }
  x = dynamicHi ? n.create<MinOp>(x, dynamicHi) : x;
  n.setOutput(0, x);
}

void identity(NodeImporter &n) { n.setOutput(0, n.input(0)); }

/// Returns whether the node drops elements at random: training_mode is true and the ratio is not 0.
bool dropsElements(NodeImporter &n) {
  if (!n.hasInput(2) || n.opset < 12) {
    return false;
  }
  Ints training = n.constantInts(2, "training_mode");
  if (n.failed() || (training.size() == 1 && training.front() == 0)) {
    return false;
  }
  auto ratio = n.hasInput(1) ? n.constantDoubles(1, "the ratio") : llvm::SmallVector<double>{0.5};
  return !n.failed() && (ratio.size() != 1 || ratio.front() != 0.0);
}

void dropout(NodeImporter &n) {
  if (dropsElements(n)) {
    n.unsupported("training_mode is set; export the model for inference (model.eval())");
    return;
  }
  // In inference this is the identity and the mask is all true.
  n.setOutput(0, n.input(0));
  if (n.wantsOutput(1)) {
    auto type = mlir::RankedTensorType::get(NodeImporter::shape(n.input(0)), n.b.getI1Type());
    if (byteSize(type) < 0) {
      n.unsupported("its mask output needs static dims: fix them with --input_shapes");
      return;
    }
    n.setOutput(1, createConstant(n.b, n.loc, type, std::vector<char>(byteSize(type), 1), nodeName(n.node)));
  }
}

/// com.microsoft BiasGelu, FastGelu: gelu(x + bias).
template <bool tanh>
void biasGelu(NodeImporter &n) {
  Value x = n.hasInput(1) ? n.create<AddOp>(n.input(0), n.input(1)) : n.input(0);
  n.setOutput(0, n.create<GeluOp>(x, tanh));
}

/// com.microsoft QuickGelu: x * sigmoid(alpha x).
void quickGelu(NodeImporter &n) {
  Value x = n.input(0);
  Value scaled = n.create<MulOp>(x, n.scalarLike(x, n.floatAttr("alpha", 1.702)));
  n.setOutput(0, n.create<MulOp>(x, n.create<SigmoidOp>(scaled)));
}

void swish(NodeImporter &n) {
  Value x = n.input(0);
  double factor = n.floatAttr("alpha", 1.0);
  Value scaled = factor == 1.0 ? x : n.create<MulOp>(x, n.scalarLike(x, factor));
  n.setOutput(0, factor == 1.0 ? n.create<SiluOp>(x) : n.create<MulOp>(x, n.create<SigmoidOp>(scaled)));
}

constexpr HandlerEntry kEntries[] = {
    {"", "Add", binary<AddOp>},
    {"", "Sub", binary<SubOp>},
    {"", "Mul", binary<MulOp>},
    {"", "Div", binary<DivOp>},
    {"", "Pow", pow},
    {"", "Mod", mod},
    {"", "Sum", variadic<AddOp>},
    {"", "Mean", mean},
    {"", "Min", variadic<MinOp>},
    {"", "Max", variadic<MaxOp>},
    {"", "And", binary<AndOp>},
    {"", "Or", binary<OrOp>},
    {"", "Xor", binary<XorOp>},
    {"", "Not", unary<NotOp>},
    {"", "BitwiseAnd", binary<AndOp>},
    {"", "BitwiseOr", binary<OrOp>},
    {"", "BitwiseXor", binary<XorOp>},
    {"", "BitwiseNot", unary<NotOp>},
    {"", "BitShift", bitShift},
    {"", "Equal", compare<CompareKind::eq>},
    {"", "Less", compare<CompareKind::lt>},
    {"", "LessOrEqual", compare<CompareKind::le>},
    {"", "Greater", compare<CompareKind::gt>},
    {"", "GreaterOrEqual", compare<CompareKind::ge>},
    {"", "Where", where},
    {"", "IsInf", isInf},
    {"", "IsNaN", unary<IsNanOp>},
    {"", "Abs", unary<AbsOp>},
    {"", "Neg", unary<NegOp>},
    {"", "Sign", unary<SignOp>},
    {"", "Ceil", unary<CeilOp>},
    {"", "Floor", unary<FloorOp>},
    {"", "Round", unary<RoundOp>},
    {"", "Reciprocal", unary<ReciprocalOp>},
    {"", "Sqrt", unary<SqrtOp>},
    {"", "Exp", unary<ExpOp>},
    {"", "Log", unary<LogOp>},
    {"", "Sin", unary<SinOp>},
    {"", "Cos", unary<CosOp>},
    {"", "Tan", unary<TanOp>},
    {"", "Asin", unary<AsinOp>},
    {"", "Acos", unary<AcosOp>},
    {"", "Atan", unary<AtanOp>},
    {"", "Sinh", unary<SinhOp>},
    {"", "Cosh", unary<CoshOp>},
    {"", "Tanh", unary<TanhOp>},
    {"", "Asinh", unary<AsinhOp>},
    {"", "Acosh", unary<AcoshOp>},
    {"", "Atanh", unary<AtanhOp>},
    {"", "Erf", unary<ErfOp>},
    {"", "Relu", unary<ReluOp>},
    {"", "Sigmoid", unary<SigmoidOp>},
    {"", "HardSwish", unary<HardSwishOp>},
    {"", "Mish", unary<MishOp>},
    {"", "Softplus", unary<SoftplusOp>},
    {"", "Softsign", unary<SoftsignOp>},
    {"", "Gelu", gelu},
    {"", "Swish", swish},
    {"", "LeakyRelu", leakyRelu},
    {"", "Elu", elu},
    {"", "Celu", celu},
    {"", "Selu", selu},
    {"", "ThresholdedRelu", thresholdedRelu},
    {"", "HardSigmoid", hardSigmoid},
    {"", "Shrink", shrink},
    {"", "PRelu", prelu},
    {"", "Clip", clipAttributes},
    {"", "Clip", clip, 11},
    {"", "Cast", cast},
    {"", "CastLike", castLike},
    {"", "BitCast", bitCast, 26},
    {"", "Identity", identity},
    {"", "Dropout", dropout},
    {"com.microsoft", "Gelu", biasGelu<false>},
    {"com.microsoft", "BiasGelu", biasGelu<false>},
    {"com.microsoft", "FastGelu", biasGelu<true>},
    {"com.microsoft", "QuickGelu", quickGelu},
};

} // namespace

llvm::ArrayRef<HandlerEntry> elementwiseHandlers() { return kEntries; }

} // namespace tessera::top::onnx_import
