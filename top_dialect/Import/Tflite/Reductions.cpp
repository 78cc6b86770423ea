//===- Reductions.cpp - Handlers of reductions ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include <set>

namespace tessera::top::tflite_import {
namespace {

template <ReduceKind kind>
void reduce(OperatorImporter &n) {
  Value x = n.input(0);
  if (!n.failed() && kind == ReduceKind::mean && !n.isFloat(x)) {
    n.unsupported("the mean of integers is not supported");
  }
  std::set<int64_t> axes;
  for (int64_t axis : n.constantInts(1, "the axes")) {
    axes.insert(n.normalizeAxis(axis, n.rank(x)));
  }
  bool keepsDims = n.options<tflite::ReducerOptions>().keep_dims();
  n.setOutput(0, n.create<ReduceOp>(x, kind, Ints(axes.begin(), axes.end()), keepsDims));
}

template <typename Options, bool min>
void argReduce(OperatorImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.constantInt(1, "the axis"), n.rank(x));
  auto type = n.options<Options>().output_type();
  if (type != tflite::TensorType::INT32 && type != tflite::TensorType::INT64) {
    return n.fail("its output type must be INT32 or INT64");
  }
  Value index = n.create<ArgReduceOp>(x, axis, min, false, false);
  n.setOutput(0, n.cast(index, elementType(type, n.b.getBuilder().getContext())));
}

void cumsum(OperatorImporter &n) {
  const auto &options = n.options<tflite::CumsumOptions>();
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.constantInt(1, "the axis"), n.rank(x));
  n.setOutput(0, n.create<CumSumOp>(x, axis, options.exclusive(), options.reverse()));
}

} // namespace

llvm::ArrayRef<HandlerEntry> reductionHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::MEAN, reduce<ReduceKind::mean>},
      {Code::SUM, reduce<ReduceKind::sum>},
      {Code::REDUCE_MAX, reduce<ReduceKind::max>},
      {Code::REDUCE_MIN, reduce<ReduceKind::min>},
      {Code::REDUCE_PROD, reduce<ReduceKind::prod>},
      {Code::ARG_MAX, argReduce<tflite::ArgMaxOptions, false>},
      {Code::ARG_MIN, argReduce<tflite::ArgMinOptions, true>},
      {Code::CUMSUM, cumsum},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
