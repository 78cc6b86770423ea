//===- OperatorImporter.h - Access of a handler to its operator -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_OPERATORIMPORTER_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_OPERATORIMPORTER_H

#include "top_dialect/Builder/GraphBuilder.h"
#include "top_dialect/Import/Tflite/TfliteFile.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera::top::tflite_import {

using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

/// One operator that is being imported. Errors are sticky, as in GraphBuilder: accessors return placeholders after the
/// first one, so handlers need no checks between calls.
class OperatorImporter {
public:
  OperatorImporter(GraphBuilder &builder, const TfliteFile &file, const tflite::Operator &op,
                   llvm::DenseMap<int32_t, Value> &values, bool dequantises = false)
      : b(builder), file(file), op(op), values(values), dequantises(dequantises) {}

  GraphBuilder &b;
  const TfliteFile &file;
  const tflite::Operator &op;

  //--- errors ---
  bool failed() const { return b.hasFailed(); }
  void fail(const llvm::Twine &message);
  void fail(llvm::Error cause);
  /// Records an error about a valid model that Tessera does not support.
  void unsupported(const llvm::Twine &message);

  //--- inputs and options ---
  unsigned numInputs() const { return op.inputs()->size(); }
  unsigned numOutputs() const { return op.outputs()->size(); }
  bool hasInput(unsigned i) const { return i < numInputs() && op.inputs()->Get(i) >= 0; }
  /// Returns the i-th input. It is an error if it is absent.
  Value input(unsigned i);
  Value optionalInput(unsigned i) { return hasInput(i) ? input(i) : Value(); }
  /// Returns |x|, the i-th input, whose integers are quantised, as f32.
  Value dequantise(Value x, unsigned i);
  llvm::SmallVector<Value> inputs();
  /// Returns the constant input |i| as integers. The error for other inputs uses |what| to name the input's purpose.
  Ints constantInts(unsigned i, llvm::StringRef what);
  int64_t constantInt(unsigned i, llvm::StringRef what);
  static llvm::ArrayRef<int64_t> shape(Value value);
  static int64_t rank(Value value) { return static_cast<int64_t>(shape(value).size()); }
  static mlir::Type elementType(Value value);
  static bool isFloat(Value value) { return llvm::isa<mlir::FloatType>(elementType(value)); }
  /// Returns |axis|, which counts from the end if it is negative. Values outside the rank are an error.
  int64_t normalizeAxis(int64_t axis, int64_t rank);
  bool requireRank(Value value, int64_t rank);

  /// Returns the options of type T. It is an error if they are absent, or set an option that the schema here lacks.
  template <typename T>
  const T &options() {
    constexpr auto kType = tflite::BuiltinOptionsTraits<T>::enum_value;
    if (op.builtin_options_type() != kType || !op.builtin_options()) {
      return failOptions<T>(tflite::EnumNameBuiltinOptions(kType));
    }
    const auto &table = *static_cast<const flatbuffers::Table *>(op.builtin_options());
    if (hasUnknownField(table, T::MiniReflectTypeTable()->num_elems)) {
      unsupported(llvm::Twine("its ") + tflite::EnumNameBuiltinOptions(kType) +
                  " set an option of a newer version of the format");
    }
    return *static_cast<const T *>(op.builtin_options());
  }

  //--- building ---
  /// Creates an op with one result. A small integer result of constants becomes a constant, so that shape arithmetic
  /// disappears.
  template <typename OpTy, typename... Args>
  Value create(Args &&...args) {
    return fold(b.create<OpTy>(std::forward<Args>(args)...));
  }
  Value reshape(Value x, llvm::ArrayRef<int64_t> dims) { return fold(b.reshape(x, toSizes(dims))); }
  Value slice(Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> steps);
  Value cast(Value x, mlir::Type type);
  Value expand(Value x, llvm::ArrayRef<int64_t> dims);
  Value toChannelsFirst(Value x) { return b.transpose(x, {0, 3, 1, 2}); }
  Value toChannelsLast(Value x) { return b.transpose(x, {0, 2, 3, 1}); }
  Value activate(Value x, tflite::ActivationFunctionType activation);
  Value clip(Value x, double low, double high);

  /// Sets output |i| to |value| and checks that the file declares its type.
  void setOutput(unsigned i, Value value);

private:
  static llvm::SmallVector<Dim> toSizes(llvm::ArrayRef<int64_t> dims);
  Value fold(Value value);
  template <typename T>
  const T &failOptions(llvm::StringRef name) {
    fail("its options are not " + name);
    // A table without fields: all options have their defaults.
    alignas(4) static constexpr uint8_t kEmpty[] = {4, 0, 4, 0, 4, 0, 0, 0};
    return *reinterpret_cast<const T *>(kEmpty + 4);
  }

  llvm::DenseMap<int32_t, Value> &values;
  bool dequantises; ///< input() returns quantised weights as f32
};

using Handler = void (*)(OperatorImporter &n);

/// Returns the handler of |code|, or null if the operator is not supported.
Handler findHandler(tflite::BuiltinOperator code);

struct HandlerEntry {
  tflite::BuiltinOperator code;
  Handler handler;
};
/// The handlers of each family.
llvm::ArrayRef<HandlerEntry> convolutionHandlers();
llvm::ArrayRef<HandlerEntry> elementwiseHandlers();
llvm::ArrayRef<HandlerEntry> shapeHandlers();
llvm::ArrayRef<HandlerEntry> indexHandlers();
llvm::ArrayRef<HandlerEntry> reductionHandlers();
/// Returns input 0 padded by input 1 with |value|.
Value padded(OperatorImporter &n, double value);
/// Decodes a sparse constant.
void densify(OperatorImporter &n);
/// Handles the custom operator TFLite_Detection_PostProcess.
void detectionPostProcess(OperatorImporter &n);

} // namespace tessera::top::tflite_import

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_OPERATORIMPORTER_H
