//===- QuantisedImporter.cpp - Building integer arithmetic ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/QuantisedImporter.h"

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/TopFixedPointOps.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

namespace tessera::top::tflite_import {

Quantisation QuantisedImporter::parameters(const flatbuffers::Vector<int32_t> &tensors, unsigned i) {
  Quantisation none{{1.0f}, {0}, 0};
  if (n.failed() || i >= tensors.size() || tensors.Get(i) < 0) {
    n.fail(llvm::formatv("it lacks operand {0}", i));
    return none;
  }
  auto found = quantisationOf(n.file.tensor(tensors.Get(i)));
  if (found) {
    return *found;
  }
  std::string message = "'" + tensorName(n.file, tensors.Get(i)) + "': ";
  n.fail(prefixed(found.takeError(), message));
  return none;
}

mlir::Type QuantisedImporter::outputType(unsigned i) {
  mlir::Type type = i < n.numOutputs()
                        ? elementType(n.file.tensor(n.op.outputs()->Get(i)).type(), n.b.getBuilder().getContext())
                        : mlir::Type();
  bool isKnown = type && llvm::isa<mlir::IntegerType>(type) && type.getIntOrFloatBitWidth() >= 8 &&
                 type.getIntOrFloatBitWidth() <= 32;
  if (!isKnown) {
    n.fail("its operands are integers, but its result is not");
  }
  return isKnown ? type : i32();
}

Range QuantisedImporter::outputRange(tflite::ActivationFunctionType activation) {
  auto range = rangeOf(output(), outputType(), activation);
  if (!range) {
    n.unsupported(llvm::formatv("the fused activation {0} is not supported; supported are RELU, RELU6 and RELU_N1_TO_1",
                                int(activation)));
  }
  return range.value_or(Range{0, 0, 0});
}

Value QuantisedImporter::centred(Value x, int64_t zero) {
  if (!n.failed() && !llvm::isa<mlir::IntegerType>(n.elementType(x))) {
    n.fail("some of its operands are integers, others are not");
  }
  Value wide = n.cast(x, i32());
  return zero == 0 ? wide : n.create<SubOp>(wide, number(zero));
}

Value QuantisedImporter::constant(mlir::Type element, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> values,
                                  llvm::StringRef name) {
  HostTensor tensor(mlir::RankedTensorType::get(dims, element));
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  for (auto [i, value] : llvm::enumerate(values)) {
    std::memcpy(tensor.getBytes().data() + i * bytes, &value, bytes);
  }
  return n.b.constant(tensor.getType(), std::vector<char>(tensor.getBytes().begin(), tensor.getBytes().end()), name);
}

Value QuantisedImporter::requantise(Value x, llvm::ArrayRef<FixedFactor> factors, int64_t axis, const Range &range,
                                    mlir::Type type) {
  Ints mantissas, shifts;
  for (FixedFactor fixed : factors) {
    if (fixed.shift < 1) {
      n.unsupported("its scales differ too much");
      return x;
    }
    mantissas.push_back(fixed.mantissa), shifts.push_back(fixed.shift);
  }
  Ints dims = channelDims(x, factors.size(), axis);
  return n.create<RequantizeOp>(x, constant(i32(), dims, mantissas, "mantissas"),
                                constant(i32(), dims, shifts, "shifts"), range.zero, range.low, range.high, type);
}

Ints QuantisedImporter::channelDims(Value x, size_t count, int64_t axis) {
  Ints dims;
  if (count > 1) {
    dims.assign(n.rank(x) - axis, 1);
    dims.front() = int64_t(count);
  }
  return dims;
}

/// Adding 0.5 would round some numbers below one half upwards.
Value QuantisedImporter::roundedAway(Value x) {
  auto number = [&](double value) { return n.b.scalar(n.elementType(x), value); };
  Value magnitude = n.create<AbsOp>(x), whole = n.create<FloorOp>(magnitude);
  Value isUp = n.create<CompareOp>(n.create<SubOp>(magnitude, whole), number(0.5), CompareKind::ge);
  Value rounded = n.create<AddOp>(whole, n.create<CastOp>(isUp, n.elementType(x)));
  return n.create<WhereOp>(isNegative(x), n.create<NegOp>(rounded), rounded);
}

Value QuantisedImporter::requantiseInDoubles(Value x, llvm::ArrayRef<double> factors, int64_t axis, const Range &range,
                                             mlir::Type type) {
  mlir::Type f64 = n.b.getBuilder().getF64Type();
  auto dims = channelDims(x, factors.size(), axis);
  auto bytes = llvm::ArrayRef(reinterpret_cast<const char *>(factors.data()), factors.size() * sizeof(double));
  Value factor =
      n.b.constant(mlir::RankedTensorType::get(dims, f64), std::vector<char>(bytes.begin(), bytes.end()), "factors");
  Value steps = roundedAway(n.create<MulOp>(n.create<CastOp>(x, f64), factor));
  Value shifted = n.create<AddOp>(steps, n.b.scalar(f64, double(range.zero)));
  return n.cast(n.clip(shifted, double(range.low), double(range.high)), type);
}

Value QuantisedImporter::saturate(Value x, const Range &range, mlir::Type type) {
  return n.cast(n.clip(x, double(range.low), double(range.high)), type);
}

Value QuantisedImporter::roundedQuotient(Value x, Value count, Value half) {
  Value offset = n.create<WhereOp>(isNegative(x), n.create<NegOp>(half), half);
  return n.create<DivOp>(n.create<AddOp>(x, offset), count);
}

Value QuantisedImporter::lookUp(Value x, llvm::ArrayRef<int64_t> table, mlir::Type type) {
  mlir::Type element = n.elementType(x);
  if (n.failed() || !llvm::isa<mlir::IntegerType>(element) || element.getIntOrFloatBitWidth() > 16) {
    n.fail("its operand does not have 8 or 16-bit integers");
    return x;
  }
  return n.create<GatherOp>(constant(type, {int64_t(table.size())}, table, "table"),
                            centred(x, limitsOf(element).first), 0);
}

static constexpr tflite::BuiltinOperator kMoving[] = {
    tflite::BuiltinOperator::DENSIFY,
    tflite::BuiltinOperator::RESHAPE,
    tflite::BuiltinOperator::SQUEEZE,
    tflite::BuiltinOperator::EXPAND_DIMS,
    tflite::BuiltinOperator::TRANSPOSE,
    tflite::BuiltinOperator::PACK,
    tflite::BuiltinOperator::UNPACK,
    tflite::BuiltinOperator::SPLIT,
    tflite::BuiltinOperator::SPLIT_V,
    tflite::BuiltinOperator::PADV2,
    tflite::BuiltinOperator::MIRROR_PAD,
    tflite::BuiltinOperator::TILE,
    tflite::BuiltinOperator::BROADCAST_TO,
    tflite::BuiltinOperator::SLICE,
    tflite::BuiltinOperator::STRIDED_SLICE,
    tflite::BuiltinOperator::GATHER,
    tflite::BuiltinOperator::GATHER_ND,
    tflite::BuiltinOperator::REVERSE_V2,
    tflite::BuiltinOperator::DEPTH_TO_SPACE,
    tflite::BuiltinOperator::SPACE_TO_DEPTH,
    tflite::BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
    tflite::BuiltinOperator::SELECT,
    tflite::BuiltinOperator::SELECT_V2,
    tflite::BuiltinOperator::MAXIMUM,
    tflite::BuiltinOperator::MINIMUM,
    tflite::BuiltinOperator::REDUCE_MAX,
    tflite::BuiltinOperator::REDUCE_MIN,
};

bool movesIntegers(tflite::BuiltinOperator code) { return llvm::is_contained(kMoving, code); }

/// Returns true for operators whose result says where elements are, whatever their quantisation.
static bool isIndependent(tflite::BuiltinOperator code) {
  using Code = tflite::BuiltinOperator;
  return code == Code::ARG_MAX || code == Code::ARG_MIN || code == Code::SHAPE;
}

bool takesQuantisedWeights(tflite::BuiltinOperator code) {
  using Code = tflite::BuiltinOperator;
  return code == Code::CONV_2D || code == Code::DEPTHWISE_CONV_2D || code == Code::FULLY_CONNECTED ||
         code == Code::TRANSPOSE_CONV || code == Code::BATCH_MATMUL;
}

/// Handles an operator that moves integers: all its quantised tensors must have one quantisation.
static void move(OperatorImporter &n) {
  std::optional<Quantisation> common;
  for (const auto *list : {n.op.inputs(), n.op.outputs()}) {
    for (int32_t index : *list) {
      if (index < 0 || !isQuantised(n.file.tensor(index))) {
        continue;
      }
      auto found = quantisationOf(n.file.tensor(index));
      if (!found) {
        return n.fail(prefixed(found.takeError(), "'" + tensorName(n.file, index) + "': "));
      }
      if (common && (common->scales != found->scales || common->zeros != found->zeros)) {
        return n.unsupported("its tensors have different scales or zero points");
      }
      common = std::move(*found);
    }
  }
  findHandler(n.file.code(n.op))(n);
}

Handler findQuantisedHandler(tflite::BuiltinOperator code) {
  if (movesIntegers(code)) {
    return move;
  }
  if (isIndependent(code)) {
    return findHandler(code);
  }
  if (code == tflite::BuiltinOperator::SOFTMAX) {
    return quantisedSoftmax;
  }
  for (llvm::ArrayRef<HandlerEntry> family : {quantisedContractionHandlers(), quantisedElementwiseHandlers(),
                                              quantisedTableHandlers(), quantisedShapeHandlers()}) {
    for (const HandlerEntry &entry : family) {
      if (entry.code == code) {
        return entry.handler;
      }
    }
  }
  return nullptr;
}

} // namespace tessera::top::tflite_import
