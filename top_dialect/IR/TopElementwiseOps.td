//===- TopElementwiseOps.td - Elementwise ops ------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_ELEMENTWISE_OPS
#define TOP_ELEMENTWISE_OPS

include "top_dialect/IR/TopBase.td"

// --- Arithmetic --------------------------------------------------------------
def Top_AddOp : Top_BinaryOp<"add", "Sum", "a + b"> { let hasFolder = 1; }
def Top_SubOp : Top_BinaryOp<"sub", "Difference", "a - b"> { let hasFolder = 1; }
def Top_MulOp : Top_BinaryOp<"mul", "Product", "a * b"> { let hasFolder = 1; }
def Top_DivOp : Top_BinaryOp<"div", "Quotient", "a / b; integers truncate towards zero"> { let hasFolder = 1; }
def Top_PowOp : Top_BinaryOp<"pow", "Power", "a ^ b, in the type of a", 1>;
def Top_ModOp : Top_BinaryOp<"mod", "Remainder", "a - b * floor(a / b), or C fmod when `fmod` is set"> {
  let arguments = (ins Top_Tensor:$a, Top_Tensor:$b, DefaultValuedAttr<BoolAttr, "false">:$fmod);
}
def Top_MinOp : Top_BinaryOp<"min", "Minimum of two operands", "min(a, b), NaN if either is NaN">;
def Top_MaxOp : Top_BinaryOp<"max", "Maximum of two operands", "max(a, b), NaN if either is NaN">;
def Top_BitShiftOp : Top_BinaryOp<"bit_shift", "Shift of integers",
    "left ? a << b : a >> b; signed integers keep their sign, and b < 0 or b >= width shifts out all bits"> {
  let arguments = (ins Top_Tensor:$a, Top_Tensor:$b, BoolAttr:$left);
}
def Top_PReluOp : Top_BinaryOp<"prelu", "Parametric ReLU", "a < 0 ? b * a : a; b broadcasts to a">;

// --- Logic and comparison (result i1) ------------------------------------------
def Top_AndOp : Top_BinaryOp<"and", "Bitwise or logical and", "a & b">;
def Top_OrOp : Top_BinaryOp<"or", "Bitwise or logical or", "a | b">;
def Top_XorOp : Top_BinaryOp<"xor", "Bitwise or logical exclusive or", "a ^ b">;
def Top_NotOp : Top_UnaryOp<"not", "Bitwise or logical complement", "~x">;

def Top_CompareKind : I32EnumAttr<"CompareKind", "kind of comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::tessera::top";
}
def Top_CompareOp : Top_ScalarOp<"compare", [], "::mlir::IntegerType::get(getContext(), 1)"> {
  let summary = "Comparison, result i1";
  let description = "`y = a <kind> b`, elementwise; the operands broadcast as in numpy.";
  let arguments = (ins Top_Tensor:$a, Top_Tensor:$b, Top_CompareKind:$kind);
  let results = (outs Top_Tensor:$y);
}
def Top_WhereOp : Top_ScalarOp<"where", [], "detail::elementOf(getA())", 1> {
  let summary = "Selection by a condition";
  let description = "`y = cond ? a : b`, elementwise; the operands broadcast as in numpy.";
  let arguments = (ins Top_Tensor:$cond, Top_Tensor:$a, Top_Tensor:$b);
  let results = (outs Top_Tensor:$y);
}
def Top_IsInfOp : Top_UnaryOp<"is_inf", "Test for infinity, result i1", "isinf(x)",
    "::mlir::IntegerType::get(getContext(), 1)"> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$detectNegative,
                       DefaultValuedAttr<BoolAttr, "true">:$detectPositive);
}
def Top_IsNanOp : Top_UnaryOp<"is_nan", "Test for NaN, result i1", "isnan(x)",
    "::mlir::IntegerType::get(getContext(), 1)">;

// --- Unary mathematics -----------------------------------------------------------
def Top_AbsOp : Top_UnaryOp<"abs", "Absolute value", "|x|">;
def Top_NegOp : Top_UnaryOp<"neg", "Negation", "-x">;
def Top_SignOp : Top_UnaryOp<"sign", "Sign", "x > 0 ? 1 : x < 0 ? -1 : 0">;
def Top_CeilOp : Top_UnaryOp<"ceil", "Round up", "ceil(x)">;
def Top_FloorOp : Top_UnaryOp<"floor", "Round down", "floor(x)">;
def Top_RoundOp : Top_UnaryOp<"round", "Round half to even", "rint(x)">;
def Top_ReciprocalOp : Top_UnaryOp<"reciprocal", "Reciprocal", "1 / x">;
def Top_SqrtOp : Top_UnaryOp<"sqrt", "Square root", "sqrt(x)">;
def Top_RsqrtOp : Top_UnaryOp<"rsqrt", "Reciprocal square root", "1 / sqrt(x)">;
def Top_ExpOp : Top_UnaryOp<"exp", "Exponential", "e^x">;
def Top_LogOp : Top_UnaryOp<"log", "Natural logarithm", "ln(x)">;
def Top_SinOp : Top_UnaryOp<"sin", "Sine", "sin(x)">;
def Top_CosOp : Top_UnaryOp<"cos", "Cosine", "cos(x)">;
def Top_TanOp : Top_UnaryOp<"tan", "Tangent", "tan(x)">;
def Top_AsinOp : Top_UnaryOp<"asin", "Inverse sine", "asin(x)">;
def Top_AcosOp : Top_UnaryOp<"acos", "Inverse cosine", "acos(x)">;
def Top_AtanOp : Top_UnaryOp<"atan", "Inverse tangent", "atan(x)">;
def Top_SinhOp : Top_UnaryOp<"sinh", "Hyperbolic sine", "sinh(x)">;
def Top_CoshOp : Top_UnaryOp<"cosh", "Hyperbolic cosine", "cosh(x)">;
def Top_TanhOp : Top_UnaryOp<"tanh", "Hyperbolic tangent", "tanh(x)">;
def Top_AsinhOp : Top_UnaryOp<"asinh", "Inverse hyperbolic sine", "asinh(x)">;
def Top_AcoshOp : Top_UnaryOp<"acosh", "Inverse hyperbolic cosine", "acosh(x)">;
def Top_AtanhOp : Top_UnaryOp<"atanh", "Inverse hyperbolic tangent", "atanh(x)">;
def Top_ErfOp : Top_UnaryOp<"erf", "Error function", "erf(x)">;

// --- Activations -------------------------------------------------------------------
def Top_ReluOp : Top_UnaryOp<"relu", "Rectifier", "max(x, 0)">;
def Top_SigmoidOp : Top_UnaryOp<"sigmoid", "Logistic function", "1 / (1 + e^-x)">;
def Top_SiluOp : Top_UnaryOp<"silu", "SiLU (Swish with beta = 1)", "x * sigmoid(x)">;
def Top_HardSwishOp : Top_UnaryOp<"hard_swish", "Hard Swish", "x * min(max(x / 6 + 0.5, 0), 1)">;
def Top_MishOp : Top_UnaryOp<"mish", "Mish", "x * tanh(ln(1 + e^x))">;
def Top_SoftplusOp : Top_UnaryOp<"softplus", "Softplus", "ln(1 + e^x)">;
def Top_SoftsignOp : Top_UnaryOp<"softsign", "Softsign", "x / (1 + |x|)">;
def Top_GeluOp : Top_UnaryOp<"gelu", "Gaussian error linear unit",
    "0.5 x (1 + erf(x / sqrt 2)), or 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) when `tanh` is set"> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<BoolAttr, "false">:$tanh);
}
class Top_AlphaOp<string mnemonic, string what, string formula, string alpha> : Top_UnaryOp<mnemonic, what, formula> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<F32Attr, alpha>:$alpha);
}
def Top_LeakyReluOp : Top_AlphaOp<"leaky_relu", "Leaky rectifier", "x < 0 ? alpha x : x", "0.01f">;
def Top_EluOp : Top_AlphaOp<"elu", "Exponential linear unit", "x < 0 ? alpha (e^x - 1) : x", "1.0f">;
def Top_CeluOp : Top_AlphaOp<"celu", "Continuously differentiable ELU", "max(0, x) + min(0, alpha (e^(x / alpha) - 1))", "1.0f">;
def Top_ThresholdedReluOp : Top_AlphaOp<"thresholded_relu", "Thresholded rectifier", "x > alpha ? x : 0", "1.0f">;
def Top_SeluOp : Top_UnaryOp<"selu", "Scaled ELU", "gamma (x > 0 ? x : alpha (e^x - 1))"> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<F32Attr, "1.67326319217681884765625f">:$alpha,
                       DefaultValuedAttr<F32Attr, "1.05070102214813232421875f">:$gamma);
}
def Top_HardSigmoidOp : Top_UnaryOp<"hard_sigmoid", "Hard sigmoid", "min(max(alpha x + beta, 0), 1)"> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<F32Attr, "0.2f">:$alpha,
                       DefaultValuedAttr<F32Attr, "0.5f">:$beta);
}
def Top_ShrinkOp : Top_UnaryOp<"shrink", "Shrink", "x < -lambd ? x + bias : x > lambd ? x - bias : 0"> {
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<F32Attr, "0.0f">:$bias,
                       DefaultValuedAttr<F32Attr, "0.5f">:$lambd);
}
def Top_ClipOp : Top_UnaryOp<"clip", "Clamp to constants", "min(max(x, lo), hi)"> {
  let description = [{
    Computes `y = min(max(x, lo), hi)`, elementwise. The bounds are doubles; an absent bound is -inf or +inf. Bounds
    that are not constant are imported as `top.max` and `top.min`.
  }];
  let arguments = (ins Top_Tensor:$x, F64Attr:$lo, F64Attr:$hi);
}
def Top_CastOp : Top_UnaryOp<"cast", "Element type conversion",
    "(type of y) x; float to integer truncates, to i1 tests for non-zero", "getTo()"> {
  let arguments = (ins Top_Tensor:$x, TypeAttr:$to);
  let hasFolder = 1;
}

// --- Quantisation --------------------------------------------------------------------
def Top_BitcastOp : Top_Op<"bitcast", [DeclareOpInterfaceMethods<ScalarInterface>]> {
  let summary = "Reinterpretation of the bits as another element type";
  let description = [{
    (C1) The element types of `x` and `y` have the same number of bits, and are f32, f64 or integers of at least 8 bits.
  }];
  let arguments = (ins Top_Tensor:$x, TypeAttr:$to);
  let results = (outs Top_Tensor:$y);
}

class Top_QuantizationOp<string mnemonic> : Top_Op<mnemonic, [DeclareOpInterfaceMethods<ScalarInterface>]> {
  dag parameters = (ins Top_Tensor:$scale, Top_Tensor:$zeroPoint, DefaultValuedAttr<I64Attr, "0">:$levels);
  let results = (outs Top_Tensor:$y);
}
def Top_QuantizeOp : Top_QuantizationOp<"quantize"> {
  let summary = "Float to integers with a scale and a zero point";
  let description = [{
    `y = sat(rne(x / scale) + zeroPoint)`, elementwise in f32. `rne` rounds half to even. `sat` clamps to
    [-levels, levels] if `levels` is not 0, else to the range of the element type, which is that of `zeroPoint`. NaN
    becomes 0. Scale and zero point broadcast to `x`: one for the tensor, one per channel, or one per element.
    (C1) `x` and `scale` are f32. (C2) `zeroPoint` is i8 (which is signed), ui8, i16 or ui16.
    (C3) The dims of `scale` and `zeroPoint` broadcast to those of `x`. (C4) `levels` is 0, or a positive value of a
    signed element type.
  }];
  let arguments = !con((ins Top_Tensor:$x), parameters);
}
def Top_DequantizeOp : Top_QuantizationOp<"dequantize"> {
  let summary = "Integers with a scale and a zero point to float";
  let description = [{
    `y = f32(x - zeroPoint) * scale`, elementwise. The difference is i32 and wraps around. Scale and zero point
    broadcast to `x`. If `levels` is not 0, the values of `x` lie in [-levels, levels].
    A dequantize of a constant that a convolution, matmul or gather reads is not folded: it marks the constant as
    integers.
    (C1) `scale` is f32. (C2) `x` and `zeroPoint` have one element type: i8 (which is signed), ui8, i16, ui16 or i32.
    (C3) The dims of `scale` and `zeroPoint` broadcast to those of `x`. (C4) `levels` is 0, or a positive value of a
    signed element type.
  }];
  let arguments = !con((ins Top_Tensor:$x), parameters);
}

#endif // TOP_ELEMENTWISE_OPS
