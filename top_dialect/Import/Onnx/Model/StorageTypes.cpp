//===- StorageTypes.cpp - ONNX element types that a module has no type for --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"

#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

using S = StorageType;
/// The codes are those of TensorProto.DataType, which the protobuf classes of libonnx do not contain.
constexpr StorageType kTypes[] = {
    {17, "float8e4m3fn", S::floating, 8, 3, -6, 448, false, 0x7f},
    {18, "float8e4m3fnuz", S::floating, 8, 3, -7, 240, false, 0x80, false},
    {19, "float8e5m2", S::floating, 8, 2, -14, 57344, true, 0x7f},
    {20, "float8e5m2fnuz", S::floating, 8, 2, -15, 57344, false, 0x80, false},
    {21, "uint4", S::unsignedInteger, 4},
    {22, "int4", S::signedInteger, 4},
    {23, "float4e2m1", S::floating, 4, 1, 0, 6},
    {24, "float8e8m0", S::powerOfTwo, 8, 0, -127, 0x1p127, false, 0xff, false},
    {25, "uint2", S::unsignedInteger, 2},
    {26, "int2", S::signedInteger, 2},
};

double floatOf(const StorageType &type, int code) {
  if (type.kind == S::powerOfTwo) {
    return code == type.nanCode ? kNan : std::ldexp(1.0, code + type.leastExponent);
  }
  int sign = 1 << (type.bits - 1), magnitude = code & (sign - 1);
  int exponent = magnitude >> type.mantissaBits, fraction = magnitude & ((1 << type.mantissaBits) - 1);
  if (!type.hasNegativeZero ? code == type.nanCode : magnitude == type.nanCode) {
    return kNan;
  }
  int implicit = exponent ? 1 << type.mantissaBits : 0;
  double value = std::ldexp(implicit + fraction, type.leastExponent - type.mantissaBits + std::max(exponent - 1, 0));
  value = value <= type.largest ? value : fraction ? kNan : kInf;
  return code & sign ? -value : value;
}

Value scalar(NodeImporter &n, mlir::Type element, double value) { return n.scalar(element, value); }

/// The parts of f32 numbers that determine the rounding: the largest power of two not above the magnitude, and the
/// distance between neighbouring numbers in the target type.
struct Parts {
  Value exponentBits; ///< i32, at their position in the f32 format
  Value power;
  Value unit;
};

Parts partsOf(NodeImporter &n, Value x, const StorageType &type) {
  mlir::Type f32 = n.b.getF32Type(), i32 = n.b.getI32Type();
  Value exponentBits = n.create<AndOp>(n.create<BitcastOp>(x, i32), scalar(n, i32, 0x7f800000));
  Value power = n.create<BitcastOp>(exponentBits, f32);
  Value least = scalar(n, f32, std::ldexp(1.0, type.leastExponent));
  Value unit = n.create<MulOp>(n.create<MaxOp>(power, least), scalar(n, f32, std::ldexp(1.0, -type.mantissaBits)));
  return {exponentBits, power, unit};
}

Value clip(NodeImporter &n, Value x, double limit) {
  return n.create<ClipOp>(x, llvm::APFloat(-limit), llvm::APFloat(limit));
}

Value isBeyond(NodeImporter &n, Value x, const StorageType &type) {
  return n.create<CompareOp>(n.create<AbsOp>(x), scalar(n, n.b.getF32Type(), type.largest), CompareKind::gt);
}

/// Rounds to nearest, ties to even. Beyond the largest number, the attribute saturate determines the result.
Value roundFloat(NodeImporter &n, Value x, const StorageType &type) {
  mlir::Type f32 = n.b.getF32Type();
  Value bounded = clip(n, x, 4 * type.largest);
  Value unit = partsOf(n, bounded, type).unit;
  Value y = n.create<MulOp>(n.create<RoundOp>(n.create<DivOp>(bounded, unit)), unit);
  if (n.intAttr("saturate", 1) != 0 || type.nanCode < 0) {
    y = clip(n, y, type.largest);
  } else {
    Value beyond = n.create<MulOp>(y, scalar(n, f32, type.hasInfinity ? kInf : kNan));
    y = n.create<WhereOp>(isBeyond(n, y, type), beyond, y);
  }
  if (type.nanCode < 0) {
    y = n.create<WhereOp>(n.create<IsNanOp>(x), scalar(n, f32, -0.0), y);
  }
  if (!type.hasNegativeZero) {
    Value zero = scalar(n, f32, 0.0);
    y = n.create<WhereOp>(n.create<CompareOp>(y, zero, CompareKind::eq), zero, y);
  }
  return y;
}

/// Rounds to a power of two. The attribute round_mode determines the direction.
Value roundToPower(NodeImporter &n, Value x, const StorageType &type) {
  std::string mode = n.stringAttr("round_mode", "up");
  if (mode != "up" && mode != "down") {
    n.unsupported(llvm::formatv("round_mode '{0}' is not supported; supported are up and down", mode));
  }
  mlir::Type f32 = n.b.getF32Type();
  Value least = scalar(n, f32, std::ldexp(1.0, type.leastExponent)), largest = scalar(n, f32, type.largest);
  Value bounded = n.create<MinOp>(n.create<MaxOp>(x, least), largest);
  Value power = n.create<MaxOp>(partsOf(n, bounded, type).power, least);
  if (mode == "up") {
    Value isBelow = n.create<CompareOp>(power, bounded, CompareKind::lt);
    power = n.create<WhereOp>(isBelow, n.create<AddOp>(power, power), power);
  }
  return n.create<WhereOp>(n.create<IsNanOp>(x), scalar(n, f32, kNan), power);
}

/// ONNX does not define the rounding of fractions or the result for values out of range. onnxruntime rounds halves away
/// from zero. ONNX's own tests saturate up to opset 24 and wrap around in later opsets.
Value roundInteger(NodeImporter &n, Value x, const StorageType &type) {
  mlir::Type i32 = n.b.getI32Type();
  int levels = 1 << type.bits, low = type.kind == S::signedInteger ? -levels / 2 : 0;
  bool saturates = n.opset < 25;
  if (NodeImporter::isFloat(x)) {
    Value wide = clip(n, n.cast(x, n.b.getF32Type()), 0x1p30);
    Value half = n.create<MulOp>(n.create<SignOp>(wide), n.scalarLike(wide, 0.5));
    x = n.create<AddOp>(wide, half); // the cast truncates
  }
  if (saturates && NodeImporter::elementType(x).getIntOrFloatBitWidth() > 32) {
    Value bounded = n.create<MaxOp>(x, n.scalarLike(x, NodeImporter::elementType(x).isUnsignedInteger() ? 0 : low));
    x = n.create<MinOp>(bounded, n.scalarLike(x, low + levels - 1));
  }
  Value y = n.cast(x, i32);
  if (saturates) {
    y = n.create<MinOp>(n.create<MaxOp>(y, scalar(n, i32, low)), scalar(n, i32, low + levels - 1));
  } else {
    Value code = n.create<AndOp>(n.create<SubOp>(y, scalar(n, i32, low)), scalar(n, i32, levels - 1));
    y = n.create<AddOp>(code, scalar(n, i32, low));
  }
  return n.cast(y, type.carrier(n.b.getContext()));
}

} // namespace

const StorageType *findStorageType(int dataType) {
  const auto *found = llvm::find_if(kTypes, [&](const StorageType &type) { return type.dataType == dataType; });
  return found == std::end(kTypes) ? nullptr : found;
}

mlir::Type StorageType::carrier(mlir::MLIRContext *context) const {
  return isFloat() ? mlir::Type(mlir::Float32Type::get(context)) : boundary(context);
}

mlir::Type StorageType::boundary(mlir::MLIRContext *context) const {
  return mlir::IntegerType::get(context, 8,
                                kind == signedInteger ? mlir::IntegerType::Signless : mlir::IntegerType::Unsigned);
}

llvm::SmallVector<double> StorageType::values() const {
  llvm::SmallVector<double> all;
  for (int code = 0; code < 1 << bits; ++code) {
    bool isNegative = kind == signedInteger && code >> (bits - 1);
    all.push_back(isFloat() ? floatOf(*this, code) : code - (isNegative ? 1 << bits : 0));
  }
  return all;
}

std::vector<char> unpack(const StorageType &type, llvm::ArrayRef<char> bytes, int64_t count) {
  llvm::SmallVector<double> values = type.values();
  std::vector<char> result(count * (type.isFloat() ? sizeof(float) : 1));
  int64_t perByte = 8 / type.bits;
  for (int64_t i = 0; i < count; ++i) {
    unsigned code = static_cast<unsigned char>(bytes[i / perByte]) >> (i % perByte * type.bits);
    double value = values[code & ((1U << type.bits) - 1)];
    if (type.isFloat()) {
      reinterpret_cast<float *>(result.data())[i] = static_cast<float>(value);
    } else {
      result[i] = static_cast<char>(static_cast<int>(value));
    }
  }
  return result;
}

Value decode(NodeImporter &n, Value codes, const StorageType &type) {
  if (!type.isFloat()) {
    return codes;
  }
  llvm::SmallVector<double> values = type.values();
  Value table = n.floatConstant(n.b.getF32Type(), {static_cast<int64_t>(values.size())}, values);
  return n.create<GatherOp>(table, n.cast(codes, n.b.getI32Type()), 0);
}

Value encode(NodeImporter &n, Value values, const StorageType &type) {
  if (!type.isFloat() || n.failed()) {
    return values;
  }
  mlir::Type i32 = n.b.getI32Type();
  Value finite = clip(n, values, type.largest);
  Parts parts = partsOf(n, finite, type);
  Value exponent = n.create<SubOp>(n.create<DivOp>(parts.exponentBits, scalar(n, i32, 0x1p23)), scalar(n, i32, 127));
  exponent = n.create<MaxOp>(exponent, scalar(n, i32, type.leastExponent));
  Value steps = n.create<SubOp>(exponent, scalar(n, i32, type.leastExponent));
  steps = n.create<MulOp>(steps, scalar(n, i32, 1 << type.mantissaBits));
  Value code = steps;
  if (type.kind == S::floating) {
    Value units = n.cast(n.create<DivOp>(n.create<AbsOp>(finite), parts.unit), i32);
    code = n.create<AddOp>(steps, units);
    if (type.hasInfinity) {
      int infinity = ((1 << (type.bits - 1)) - 1) & ~((1 << type.mantissaBits) - 1);
      code = n.create<WhereOp>(isBeyond(n, values, type), scalar(n, i32, infinity), code);
    }
    Value isNegative = n.create<CompareOp>(n.create<BitcastOp>(values, i32), scalar(n, i32, 0), CompareKind::lt);
    Value signedCode = n.create<AddOp>(code, scalar(n, i32, 1 << (type.bits - 1)));
    code = n.create<WhereOp>(isNegative, signedCode, code);
  }
  if (type.nanCode >= 0) {
    code = n.create<WhereOp>(n.create<IsNanOp>(values), scalar(n, i32, type.nanCode), code);
  }
  return n.cast(code, type.boundary(n.b.getContext()));
}

Value roundToStorage(NodeImporter &n, Value x, const StorageType &type) {
  if (!type.isFloat()) {
    return roundInteger(n, x, type);
  }
  Value wide = n.cast(x, n.b.getF32Type());
  return type.kind == S::powerOfTwo ? roundToPower(n, wide, type) : roundFloat(n, wide, type);
}

Value clampToStorage(NodeImporter &n, Value x, const StorageType &type) {
  int levels = 1 << type.bits, low = type.kind == S::signedInteger ? -levels / 2 : 0;
  return n.create<MinOp>(n.create<MaxOp>(x, n.scalarLike(x, low)), n.scalarLike(x, low + levels - 1));
}

bool movesElements(llvm::StringRef op, unsigned &data) {
  data = op == "Where" ? 1 : 0;
  return llvm::StringSwitch<bool>(op)
      .Cases({"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}, true)
      .Cases({"Concat", "Slice", "Split", "Expand", "Tile", "Gather", "GatherElements", "GatherND"}, true)
      .Cases({"DepthToSpace", "SpaceToDepth", "Pad", "Where", "ScatterElements", "ScatterND", "Compress"}, true)
      .Default(false);
}

bool readsStorage(llvm::StringRef domain, llvm::StringRef op) {
  unsigned data;
  bool converts = op == "QuantizeLinear" || op == "DequantizeLinear";
  if (domain == "com.microsoft") {
    return converts || op == "GatherBlockQuantized";
  }
  return domain.empty() &&
         (converts || op == "Cast" || op == "CastLike" || op == "Shape" || op == "Size" || movesElements(op, data));
}

} // namespace tessera::top::onnx_import
