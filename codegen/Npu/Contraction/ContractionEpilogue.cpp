//===- ContractionEpilogue.cpp - Epilogues of contractions ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/Vector/Intervals.h"

#include "top_dialect/IR/Constants.h"

#include <cstring>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Output;

uint32_t ContractionEpilogue::parameters() const {
  if (bias.empty() && factors.empty() && gains.empty()) {
    return 0;
  }
  return stage && stage->flags & (Output::integral | Output::gains) ? 3 : 2;
}

std::array<int32_t, 3> ContractionEpilogue::parametersOf(size_t output) const {
  constexpr int32_t kOne = 0x3f800000; // the bits of 1.0f
  return {bias.empty() ? 0 : bias[output], factors.empty() ? kOne : factors[output],
          gains.empty() ? kOne : gains[output]};
}

namespace {

bool isRepeated(const TileView &place, unsigned dim) {
  return place.tensor.strides[dim] == 0 && place.shape.dims[dim] > 1;
}

/// Returns true if each element of y has its own element of |place|.
bool isWhole(const TileView &place) {
  return llvm::none_of(llvm::seq(0u, 4u), [&](unsigned dim) { return isRepeated(place, dim); });
}

/// Returns true if |place| has one value per output, i.e. only varies along |outputsDim|.
bool isPerOutput(const TileView &place, unsigned outputsDim) {
  return !isRepeated(place, outputsDim) && llvm::all_of(llvm::seq(0u, 4u), [&](unsigned dim) {
    return dim == outputsDim || place.tensor.strides[dim] == 0;
  });
}

/// Returns the elements of a constant extra that has one per output, as raw bits. Returns an empty vector otherwise.
llvm::Expected<std::vector<int32_t>> perOutput(ValueRange extras, int index, const Constants &constants,
                                               unsigned outputsDim, PlaceExtra placeExtra) {
  if (index < 0) {
    return std::vector<int32_t>();
  }
  llvm::Expected<TileView> place = placeExtra(extras[index]);
  if (!place) {
    return place.takeError();
  }
  std::vector<int32_t> numbers;
  if (place->tensor.region != bmodel::npu::Region::constants || !isPerOutput(*place, outputsDim)) {
    return numbers;
  }
  // Starts at the first output of this contraction: in other batches the values may differ.
  const char *first = constants.bytes.data() + place->tensor.offset;
  for (uint32_t output = 0; output < place->dim(outputsDim); ++output) {
    std::memcpy(&numbers.emplace_back(), first + int64_t(output) * place->tensor.strides[outputsDim], sizeof(int32_t));
  }
  return numbers;
}

/// Returns true if the output stage computes the whole epilogue, and sets the stage.
llvm::Expected<bool> useStage(Contraction &contraction, mlir::Region &epilogue, ValueRange extras, mlir::Type result,
                              const CommandStream &stream, PlaceExtra placeExtra) {
  if (epilogue.empty()) {
    bool keeps = contraction.sumsFloats() ? result.isF32() : result.isInteger(32);
    contraction.epilogue.stage = contraction.sumsFloats() ? Output() : Output{.flags = Output::raw};
    return keeps;
  }
  std::optional<StageForm> form = matchStage(epilogue, result, stream.chip.requantise);
  auto used = [&](int extra) { return extra >= 0 ? 1 : 0; };
  if (!form || used(form->factorExtra) + used(form->gainExtra) + used(form->residualExtra) != int(extras.size())) {
    return false;
  }
  for (auto [extra, numbers] : {std::pair(form->factorExtra, &contraction.epilogue.factors),
                                std::pair(form->gainExtra, &contraction.epilogue.gains)}) {
    llvm::Expected<std::vector<int32_t>> values =
        perOutput(extras, extra, stream.constants, contraction.outputsDim, placeExtra);
    if (!values) {
      return values.takeError();
    }
    if (extra >= 0 && values->empty()) {
      return false;
    }
    *numbers = std::move(*values);
  }
  if (form->residualExtra >= 0) {
    llvm::Expected<TileView> residual = placeExtra(extras[form->residualExtra]);
    if (!residual) {
      return residual.takeError();
    }
    if (!isWhole(*residual)) {
      return false;
    }
    contraction.epilogue.residual = *residual;
  }
  contraction.epilogue.stage = form->output;
  return true;
}

} // namespace

template <typename T>
llvm::Expected<std::vector<T>> constantValues(Value value, const char *what) {
  std::optional<top::TensorData> data = top::getConstantData(value);
  if (!data || data->bytes.size() % sizeof(T)) {
    return llvm::createStringError(llvm::Twine("has ") + what + " that is not constant");
  }
  std::vector<T> values(data->bytes.size() / sizeof(T));
  std::memcpy(values.data(), data->bytes.data(), data->bytes.size());
  return values;
}
template llvm::Expected<std::vector<float>> constantValues(Value, const char *);
template llvm::Expected<std::vector<char>> constantValues(Value, const char *);
template llvm::Expected<std::vector<int32_t>> constantValues(Value, const char *);

llvm::Error setEpilogue(Contraction &contraction, mlir::Region &epilogue, ValueRange extras, mlir::Type result,
                        const CommandStream &stream, PlaceExtra placeExtra) {
  llvm::Expected<bool> byStage = useStage(contraction, epilogue, extras, result, stream, placeExtra);
  if (!byStage || *byStage) {
    return byStage.takeError();
  }
  contraction.epilogue.factors.clear(), contraction.epilogue.gains.clear(), contraction.epilogue.residual.reset(),
      contraction.epilogue.stage.reset();
  if (epilogue.empty() || extras.size() > 3) {
    return llvm::createStringError(
        "has more than three epilogue operands, or a result type that needs an epilogue, which is not supported yet");
  }
  bool sumsFloats = contraction.sumsFloats();
  SmallVector<Interval> intervals = {sumsFloats ? intervalOf(epilogue.front().getArgument(0).getType())
                                                : intervalOfSums(epilogue.getParentOp())};
  for (Value extra : extras) {
    intervals.push_back(intervalOf(extra));
    llvm::Expected<TileView> place = placeExtra(extra);
    if (!place) {
      return place.takeError();
    }
    contraction.epilogue.extras.push_back(*place);
  }
  llvm::Expected<Instructions> program = programOf(epilogue, intervals, result);
  if (program) {
    contraction.epilogue.program = std::move(*program);
  }
  return program.takeError();
}

} // namespace tessera::npu
