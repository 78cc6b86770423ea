//===- QuantisedImporter.h - Building integer arithmetic --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// An operator on quantised tensors becomes the integer arithmetic of LiteRT's reference kernels, so that every engine
// computes LiteRT's integers. Contractions are sums of i32 that a top.requantize scales.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISEDIMPORTER_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISEDIMPORTER_H

#include "top_dialect/Import/Tflite/OperatorImporter.h"
#include "top_dialect/Import/Tflite/Quantisation.h"

namespace tessera::top::tflite_import {

/// Access of a handler to the quantisation of its operator's tensors, and arithmetic on their integers.
class QuantisedImporter {
public:
  explicit QuantisedImporter(OperatorImporter &n) : n(n) {}

  OperatorImporter &n;

  /// Return the quantisation of input or output |i|; one without meaning after an error.
  Quantisation input(unsigned i) { return parameters(*n.op.inputs(), i); }
  Quantisation output(unsigned i = 0) { return parameters(*n.op.outputs(), i); }
  /// Returns the declared element type of output |i|.
  mlir::Type outputType(unsigned i = 0);
  /// Returns the bounds of the result 0 with |activation|, which may be unsupported.
  Range outputRange(tflite::ActivationFunctionType activation = tflite::ActivationFunctionType::NONE);

  mlir::Type i32() { return n.b.getBuilder().getI32Type(); }
  mlir::Type i64() { return n.b.getBuilder().getI64Type(); }
  Value number(int64_t value) { return n.b.scalar(i32(), double(value)); }
  /// Returns x - zero in i32.
  Value centred(Value x, int64_t zero);
  Value centredInput(unsigned i) { return centred(n.input(i), input(i).zero()); }
  /// Returns a constant of |element| with dims |dims|.
  Value constant(mlir::Type element, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> values,
                 llvm::StringRef name);

  /// Scales |x|, an i32 (rounded twice) or i64 (rounded once), and saturates it to a result of |type|. |factors| are
  /// one, or one per entry of dim |axis|.
  Value requantise(Value x, llvm::ArrayRef<FixedFactor> factors, int64_t axis, const Range &range, mlir::Type type);
  Value requantise(Value x, double factor, const Range &range, mlir::Type type) {
    return requantise(x, toFixedFactor(factor), 0, range, type);
  }
  /// Scales |x| in double precision, with one rounding, halves away from zero. |factors| are as above.
  Value requantiseInDoubles(Value x, llvm::ArrayRef<double> factors, int64_t axis, const Range &range, mlir::Type type);
  /// Returns the floats |x| rounded to integers, with halves away from zero.
  Value roundedAway(Value x);
  /// Scales an i32 to an i32.
  Value scaled(Value x, double factor) { return requantise(x, factor, {0, INT32_MIN, INT32_MAX}, i32()); }
  /// Returns i32 |x| clamped to |range| (whose zero point is not added) in |type|.
  Value saturate(Value x, const Range &range, mlir::Type type);
  /// Returns x / count, rounded with halves away from zero.
  Value roundedQuotient(Value x, Value count, Value half);
  Value isNegative(Value x) { return n.create<CompareOp>(x, n.b.scalar(n.elementType(x), 0), CompareKind::lt); }
  /// Looks up each integer of |x|, of 8 or 16 bits, in a table that begins with the smallest integer.
  Value lookUp(Value x, llvm::ArrayRef<int64_t> table, mlir::Type type);

private:
  /// Returns the dims that make |count| entries broadcast along dim |axis| of |x|; none for a single one.
  Ints channelDims(Value x, size_t count, int64_t axis);
  Quantisation parameters(const flatbuffers::Vector<int32_t> &tensors, unsigned i);
};

/// Returns the handler of |code| for quantised tensors, or null.
Handler findQuantisedHandler(tflite::BuiltinOperator code);
/// Returns true if |code| moves or compares the integers of quantised tensors as those of any others.
bool movesIntegers(tflite::BuiltinOperator code);
/// Returns true if |code| multiplies by weights, which may be quantised although its other operands are floats.
bool takesQuantisedWeights(tflite::BuiltinOperator code);

/// The handlers of each family.
llvm::ArrayRef<HandlerEntry> quantisedContractionHandlers();
llvm::ArrayRef<HandlerEntry> quantisedElementwiseHandlers();
llvm::ArrayRef<HandlerEntry> quantisedTableHandlers();
llvm::ArrayRef<HandlerEntry> quantisedShapeHandlers();
/// Computes the softmax of 8-bit integers in fixed-point arithmetic.
void quantisedSoftmax(OperatorImporter &n);

} // namespace tessera::top::tflite_import

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISEDIMPORTER_H
