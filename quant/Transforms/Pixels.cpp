//===- Pixels.cpp - Fuses pre-processing into the model -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/InputsOutputs.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// The fields of the record (see python_tools/tessera/preprocess.py) that become ops.
struct Record {
  llvm::json::Object all;
  SmallVector<float> mean, scale; ///< one value, or one per channel
  std::string order;              ///< "rgb", "bgr", "gray"
  bool isPacked = false;          ///< layout of the model's input

  int64_t channels() const { return order == "gray" ? 1 : 3; }
};

llvm::Expected<Record> readRecord(StringRef text, StringRef input) {
  auto fault = [&] { return llvm::createStringError("input '" + input + "' has a malformed pre-processing record"); };
  llvm::Expected<llvm::json::Value> parsed = top::parseJson(text);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return fault();
  }
  Record record;
  const llvm::json::Object *object = parsed->getAsObject();
  const llvm::json::Array *mean = object ? object->getArray("mean") : nullptr;
  const llvm::json::Array *scale = object ? object->getArray("scale") : nullptr;
  if (!mean || !scale || !object->getString("pixel_format") || !object->getString("channel_format")) {
    return fault();
  }
  record.all = *object;
  record.order = object->getString("pixel_format")->str();
  record.isPacked = *object->getString("channel_format") == "nhwc";
  for (auto [list, values] : {std::pair(mean, &record.mean), std::pair(scale, &record.scale)}) {
    for (const llvm::json::Value &value : *list) {
      values->push_back(static_cast<float>(value.getAsNumber().value_or(0)));
    }
    if (values->size() != 1 && int64_t(values->size()) != record.channels()) {
      return fault();
    }
  }
  return record;
}

struct Format {
  std::string order; ///< empty for the model's order
  bool isPacked;
};

std::optional<Format> parseFormat(StringRef text) {
  Format format;
  auto [order, layout] = text.contains('_') ? text.split('_') : std::pair(StringRef(), text);
  format.order = order.str();
  format.isPacked = layout == "packed";
  bool known = (layout == "packed" || layout == "planar") &&
               (order.empty() ? !text.contains('_') : order == "rgb" || order == "bgr");
  return known ? std::optional(format) : std::nullopt;
}

/// Creates a constant [1, C, 1, 1] or [1, 1, 1, C], or of one value.
Value perChannel(OpBuilder &builder, Location loc, ArrayRef<float> values, bool isPacked) {
  int64_t count = values.size();
  auto type = RankedTensorType::get(
      isPacked ? SmallVector<int64_t>{1, 1, 1, count} : SmallVector<int64_t>{1, count, 1, 1}, builder.getF32Type());
  return top::createConstant(builder, loc, type,
                             ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)),
                             "preprocess");
}

Value transpose(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> perm) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : perm) {
    shape.push_back(type.getDimSize(dim));
  }
  return top::TransposeOp::create(builder, loc, type.clone(shape), x, builder.getDenseI64ArrayAttr(perm));
}

Value reverse(OpBuilder &builder, Location loc, Value x, int64_t dim) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  starts[dim] = type.getDimSize(dim) - 1;
  steps[dim] = -1;
  return top::SliceOp::create(builder, loc, type, x, builder.getDenseI64ArrayAttr(starts),
                              builder.getDenseI64ArrayAttr(type.getShape()), builder.getDenseI64ArrayAttr(steps));
}

/// Converts pixels to the model's former input: (pixels - mean) * scale in f32, in the order in which the tools compute
/// it.
Value convert(OpBuilder &builder, Value pixels, RankedTensorType wanted, const Record &record, const Format &format) {
  Location loc = pixels.getLoc();
  Value x = pixels;
  if (!format.order.empty() && format.order != record.order) {
    x = reverse(builder, loc, x, format.isPacked ? 3 : 1);
  }
  if (format.isPacked != record.isPacked) {
    x = transpose(builder, loc, x, format.isPacked ? ArrayRef<int64_t>{0, 3, 1, 2} : ArrayRef<int64_t>{0, 2, 3, 1});
  }
  x = top::CastOp::create(builder, loc, wanted, x, TypeAttr::get(builder.getF32Type()));
  if (llvm::any_of(record.mean, [](float m) { return m != 0; })) {
    x = top::SubOp::create(builder, loc, wanted, x, perChannel(builder, loc, record.mean, record.isPacked));
  }
  if (llvm::any_of(record.scale, [](float s) { return s != 1; })) {
    x = top::MulOp::create(builder, loc, wanted, x, perChannel(builder, loc, record.scale, record.isPacked));
  }
  return x;
}

/// Returns the record of the pre-processing that is left to the caller.
std::string remaining(Record &record, const Format &format) {
  record.all["mean"] = llvm::json::Array{0.0};
  record.all["scale"] = llvm::json::Array{1.0};
  record.all["pixel_format"] = format.order.empty() ? record.order : format.order;
  record.all["channel_format"] = format.isPacked ? "nhwc" : "nchw";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(record.all));
  return text;
}

llvm::Error fuse(func::FuncOp function, BlockArgument argument, StringRef name, Record record, const Format &format) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  int64_t channelDim = record.isPacked ? 3 : 1;
  if (!type || type.getRank() != 4 || !type.hasStaticShape() || !type.getElementType().isF32() ||
      type.getDimSize(channelDim) != record.channels()) {
    return llvm::createStringError("input '" + name +
                                   "' cannot be given as pixels: expected a static f32 tensor of rank 4 with " +
                                   llvm::Twine(record.channels()) + " channel(s), as for " + record.order + " images");
  }
  if (record.order == "gray" && !format.order.empty()) {
    return llvm::createStringError("input '" + name +
                                   "' takes grey images, which do not have a channel order; allowed: packed, planar");
  }
  int64_t n = type.getDimSize(0), c = type.getDimSize(channelDim), h = type.getDimSize(record.isPacked ? 1 : 2),
          w = type.getDimSize(record.isPacked ? 2 : 3);
  OpBuilder builder = OpBuilder::atBlockBegin(argument.getOwner());
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : argument.getUses()) {
    uses.push_back(&use);
  }
  Type pixel = builder.getIntegerType(8, /*isSigned=*/false);
  argument.setType(RankedTensorType::get(
      format.isPacked ? SmallVector<int64_t>{n, h, w, c} : SmallVector<int64_t>{n, c, h, w}, pixel));
  Value x = convert(builder, argument, type, record, format);
  for (OpOperand *use : uses) {
    use->set(x);
  }
  function.setArgAttr(argument.getArgNumber(), top::TopDialect::kPreprocessAttr,
                      builder.getStringAttr(remaining(record, format)));
  return llvm::Error::success();
}

} // namespace

llvm::Error fusePreprocess(func::FuncOp function, StringRef text) {
  std::optional<Format> format = parseFormat(text);
  if (!format) {
    return llvm::createStringError(
        "'" + text +
        "' is not a pixel format; allowed: packed, planar, rgb_packed, rgb_planar, bgr_packed, bgr_planar");
  }
  bool found = false;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto recorded = function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kPreprocessAttr);
    if (!recorded) {
      continue;
    }
    found = true;
    auto name = function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
    StringRef input = name ? name.getValue() : "";
    llvm::Expected<Record> record = readRecord(recorded.getValue(), input);
    if (!record) {
      return record.takeError();
    }
    if (llvm::Error error = fuse(function, argument, input, std::move(*record), *format)) {
      return error;
    }
  }
  if (!found) {
    return llvm::createStringError("the model has no pre-processing to fuse; pass it to model_transform "
                                   "(--mean, --scale, --pixel_format)");
  }
  OpBuilder builder(function.getContext());
  function.setFunctionType(builder.getFunctionType(function.getBody().getArgumentTypes(),
                                                   function.getBody().front().getTerminator()->getOperandTypes()));
  return llvm::Error::success();
}

} // namespace tessera::quant
