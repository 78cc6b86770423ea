//===- ProductEpilogue.cpp - How sums of products become results ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Product.h"

#include "top_dialect/IR/Constants.h"

#include <cstring>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Output;

namespace {

mlir::Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

bool isRepeated(const Place &place, unsigned dim) {
  return place.tensor.strides[dim] == 0 && place.shape.dims[dim] > 1;
}

/// Each element of y has one of its own.
bool isWhole(const Place &place) {
  return llvm::none_of(llvm::seq(0u, 4u), [&](unsigned dim) { return isRepeated(place, dim); });
}

/// One value for each channel.
bool isPerChannel(const Place &place) {
  const int32_t *strides = place.tensor.strides;
  return strides[0] == 0 && strides[2] == 0 && strides[3] == 0 && !isRepeated(place, 1);
}

/// Whether the output stage computes it all; then the product says how.
llvm::Expected<bool> useStage(Product &product, mlir::Region &epilogue, ValueRange extras, mlir::Type result,
                              PlaceExtra placeExtra) {
  if (epilogue.empty() && result.isInteger(32)) {
    product.stage = Output{.flags = Output::raw};
    return true;
  }
  std::optional<StageForm> form = matchStage(epilogue, result);
  if (!form || (form->factorExtra >= 0) + (form->residualExtra >= 0) != int(extras.size())) {
    return false;
  }
  if (form->factorExtra >= 0) {
    Value extra = extras[form->factorExtra];
    llvm::Expected<Place> place = placeExtra(extra);
    llvm::Expected<std::vector<float>> factors = constantValues<float>(extra, "a factor");
    if (!place || !factors) {
      return llvm::joinErrors(place.takeError(), factors.takeError());
    }
    if (!isPerChannel(*place)) {
      return false;
    }
    product.factors = std::move(*factors);
  }
  if (form->residualExtra >= 0) {
    llvm::Expected<Place> residual = placeExtra(extras[form->residualExtra]);
    if (!residual) {
      return residual.takeError();
    }
    if (!isWhole(*residual)) {
      return false;
    }
    product.residual = *residual;
  }
  product.stage = form->output;
  return true;
}

} // namespace

template <typename T>
llvm::Expected<std::vector<T>> constantValues(Value value, const char *what) {
  std::optional<top::TensorData> data = top::getConstantData(value);
  if (!data || data->bytes.size() % sizeof(T)) {
    return llvm::createStringError(llvm::Twine("has ") + what + " that is no constant");
  }
  std::vector<T> values(data->bytes.size() / sizeof(T));
  std::memcpy(values.data(), data->bytes.data(), data->bytes.size());
  return values;
}
template llvm::Expected<std::vector<float>> constantValues(Value, const char *);
template llvm::Expected<std::vector<char>> constantValues(Value, const char *);
template llvm::Expected<std::vector<int32_t>> constantValues(Value, const char *);

llvm::Error setEpilogue(Product &product, mlir::Region &epilogue, ValueRange extras, mlir::Type result,
                        PlaceExtra placeExtra) {
  llvm::Expected<bool> byStage = useStage(product, epilogue, extras, result, placeExtra);
  if (!byStage || *byStage) {
    return byStage.takeError();
  }
  product.factors.clear(), product.residual.reset();
  if (epilogue.empty() || extras.size() > 3) {
    return llvm::createStringError("has an epilogue of more than three operands, or none, which is not emitted yet");
  }
  SmallVector<Interval> intervals = {intervalOf(IntegerType::get(result.getContext(), 32))};
  for (Value extra : extras) {
    intervals.push_back(intervalOf(elementOf(extra)));
    llvm::Expected<Place> place = placeExtra(extra);
    if (!place) {
      return place.takeError();
    }
    product.extras.push_back(*place);
  }
  llvm::Expected<Instructions> program = programOf(epilogue, intervals, result);
  if (program) {
    product.program = std::move(*program);
  }
  return program.takeError();
}

} // namespace tessera::npu
