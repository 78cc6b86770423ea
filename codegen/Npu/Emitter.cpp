//===- Emitter.cpp - Device ops as commands of the NPU --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"

#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;

std::optional<Type> typeOf(mlir::Type element) {
  if (element.isF32()) {
    return Type::f32;
  }
  if (element.isF16() || element.isBF16()) {
    return element.isF16() ? Type::f16 : Type::bf16;
  }
  if (element.isUnsignedInteger(8) || element.isInteger(1)) {
    return Type::u8; // a truth value is a byte, 0 or 1
  }
  return element.isSignlessInteger(8)    ? std::optional(Type::i8)
         : element.isSignlessInteger(16) ? std::optional(Type::i16)
         : element.isSignlessInteger(32) ? std::optional(Type::i32)
                                         : std::nullopt;
}

/// One reason a time: operands may share it.
static std::string reasonsOf(llvm::Error error) {
  SmallVector<std::string> reasons;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &each) { reasons.push_back(each.message()); });
  reasons.erase(llvm::unique(reasons), reasons.end());
  return llvm::join(reasons, "; ");
}

const Emitter::Slice *Emitter::sliceOf(Value value) const {
  std::optional<unsigned> family = plan.familyOf(value);
  auto found = family ? slices.find(*family) : slices.end();
  return found == slices.end() ? nullptr : &found->second;
}

std::optional<Place> Emitter::placeLocal(Value value, const View &view, int64_t offset, Access access,
                                         const Tensor &outside) {
  if (const Slice *slice = access == Access::readOutside ? nullptr : sliceOf(value)) {
    Place made = slice->place;
    made.tensor.offset -= uint64_t(slice->rows.begin) * uint64_t(made.tensor.strides[2]);
    made = npu::slice(made, 1, uint32_t(plan.channelOf(value, offset)), uint32_t(view.sizes[1]), chip);
    std::copy(std::begin(view.sizes), std::end(view.sizes), made.shape.dims);
    std::fill(std::begin(made.at), std::end(made.at), 0);
    const ValuePlan::Family &family = plan.families()[*plan.familyOf(value)];
    if (access == Access::write && (family.stored || family.last > groupEnd)) {
      made.copy = outside;
    }
    return made;
  }
  std::optional<ValuePlan::Stay> stay = plan.find(value, view, offset, access);
  if (!stay) {
    return std::nullopt;
  }
  const ValuePlan::Family &family = plan.families()[stay->family];
  auto [entry, isNew] = locals.try_emplace(stay->family);
  if (isNew) {
    Shape shape;
    std::copy(std::begin(family.view.sizes), std::end(family.view.sizes), shape.dims);
    entry->second = stream.addLocal(shape, family.type, 0);
  }
  Place made = entry->second;
  int64_t size = int64_t(hw::sizeOf(family.type));
  for (int i = 0; i < 4; ++i) {
    bool repeats = view.sizes[i] > 1 && view.strides[i] == 0;
    bool asOutside = family.dense && i >= 2;
    made.shape.dims[i] = uint32_t(view.sizes[i]);
    made.tensor.strides[i] = repeats ? 0 : asOutside ? int32_t(view.strides[i] * size) : made.tensor.strides[i];
  }
  made = slice(made, 1, uint32_t(stay->channel), uint32_t(view.sizes[1]), chip);
  made.tensor.offset += uint64_t(stay->inPlane);
  if (access == Access::write && family.stored) {
    made.copy = outside;
  }
  return made;
}

std::optional<Tensor> Emitter::outsideOf(Value value) {
  std::optional<device::Address> address = device::getAddress(value);
  if (!address) {
    return std::nullopt;
  }
  // Arguments come before results among the buffers of the caller.
  int64_t buffer =
      address->memory < 0 ? -address->memory - 1 : int64_t(function.getNumArguments()) + address->memory - 1;
  Tensor made;
  made.region = address->memory == 0 ? Region::workspace : Region(int64_t(Region::io) + buffer);
  made.offset = tiler.surveys ? address->offset : plan.outsideOf(value).value_or(address->offset);
  return made;
}

bool Emitter::makes(Value value) const {
  const Folds::Tail *tail = current ? folds.tailOf(current) : nullptr;
  return tail ? llvm::any_of(tail->targets, [&](const Seen &target) { return target.value == value; })
              : value.getDefiningOp() == current;
}

std::string Emitter::nameOf(Operation *op) const {
  SmallVector<Operation *> ops = folds.readThrough(op);
  ops.push_back(op);
  if (const Folds::Tail *tail = folds.tailOf(op)) {
    llvm::append_range(ops, tail->ops);
  }
  SmallVector<std::string> names;
  for (Operation *each : ops) {
    if (std::string name = top::getDisplayName(each->getLoc()); !llvm::is_contained(names, name)) {
      names.push_back(name);
    }
  }
  return llvm::join(names, "+");
}

llvm::Expected<Place> Emitter::placeFor(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, Access access,
                                        int64_t offset, std::optional<Type> as) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<Type> element = as ? as : typeOf(type.getElementType());
  if (!element) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getElementType();
    return refuse("has a tensor of " + text + ", which the chip has not");
  }
  Place made;
  if (Value constant = device::getConstantRoot(value)) {
    std::optional<top::TensorData> data = top::getConstantData(constant);
    if (!data) {
      return refuse("has a constant without data");
    }
    made.tensor.region = Region::constants;
    made.tensor.offset = stream.addConstant(data->bytes);
  } else {
    std::optional<Tensor> outside = outsideOf(value);
    if (!outside) {
      return refuse("has a tensor without an address");
    }
    made.tensor = *outside;
  }
  made.tensor.type = *element;
  for (int i = 0; i < 4; ++i) {
    made.shape.dims[i] = uint32_t(sizes[i]);
    int64_t stride = strides[i] * int64_t(hw::sizeOf(*element));
    if (stride > INT32_MAX) {
      return refuse("has a tensor larger than a stride of 2 GiB");
    }
    made.tensor.strides[i] = int32_t(stride);
  }
  made.tensor.offset += uint64_t(offset * int64_t(hw::sizeOf(*element)));
  View view;
  std::copy(sizes.begin(), sizes.end(), view.sizes), std::copy(strides.begin(), strides.end(), view.strides);
  access = makes(value) ? Access::write : access;
  if (tiler.surveys) {
    plan.note(number, value, view, offset, access, *element);
    return made;
  }
  made = placeLocal(value, view, offset, access, made.tensor).value_or(made);
  if (access == Access::write) {
    std::fill(std::begin(made.at), std::end(made.at), 0);
    made.outlets = plan.outletsOf(value);
    made.tensor.region = plan.onlyLeaves(value) ? Region::none : made.tensor.region;
  }
  return made;
}

llvm::Expected<Place> Emitter::placeBroadcast(Value value, const Shape &shape, ArrayRef<unsigned> axes) {
  ArrayRef<int64_t> dims = cast<RankedTensorType>(value.getType()).getShape();
  int64_t sizes[4], strides[4] = {0, 0, 0, 0}, stride = 1;
  std::copy(std::begin(shape.dims), std::end(shape.dims), sizes);
  for (size_t back = 1; back <= dims.size(); ++back) {
    int64_t size = dims[dims.size() - back];
    if (size != 1) {
      strides[axes[axes.size() - back]] = stride;
      stride *= size;
    }
  }
  return place(value, sizes, strides);
}

/// The name that chip descriptions have for an element type; null where all chips have it.
static const char *nameInChips(Type type) {
  switch (type) {
  case Type::i8:
  case Type::u8:
    return "int8";
  case Type::i16:
    return "int16";
  case Type::bf16:
    return "bf16";
  case Type::f16:
    return "f16";
  case Type::f32:
    return "f32";
  case Type::i32:
    break;
  }
  return nullptr;
}

/// Whether the chip computes with what the op reads and makes; copies only move it.
llvm::Error Emitter::checkTypes(Operation *op) const {
  if (isa<device::CopyOp>(op)) {
    return llvm::Error::success();
  }
  for (mlir::Type type : llvm::concat<const mlir::Type>(op->getOperandTypes(), op->getResultTypes())) {
    std::optional<Type> element = typeOf(cast<RankedTensorType>(type).getElementType());
    const char *name = element ? nameInChips(*element) : nullptr;
    if (name && !chip.computes(name)) {
      return refuse(llvm::Twine("computes with ") + name + ", which the chip does not");
    }
  }
  return llvm::Error::success();
}

llvm::Error Emitter::emit(Operation *op) {
  if (llvm::Error error = checkTypes(op)) {
    return error;
  }
  return llvm::TypeSwitch<Operation *, llvm::Error>(op)
      .Case([&](device::ConvOp conv) { return emitConv(conv); })
      .Case([&](device::MatMulOp matmul) { return emitMatMul(matmul); })
      .Case([&](device::PoolOp pool) { return emitPool(pool); })
      .Case([&](device::ReduceOp reduce) { return emitReduce(reduce); })
      .Case([&](device::MapOp map) { return emitMap(map); })
      .Case([&](device::LutOp lut) { return emitLut(lut); })
      .Case([&](device::SoftmaxOp softmax) { return emitSoftmax(softmax); })
      .Case([&](device::NormOp norm) { return emitNorm(norm); })
      .Case([&](device::AttentionOp attention) { return emitAttention(attention); })
      .Case([&](device::GatherOp gather) { return emitGather(gather); })
      .Case([&](device::CopyOp copy) { return emitCopy(copy); })
      .Case([&](device::ResizeOp resize) { return emitResize(resize); })
      .Default([](Operation *) { return refuse("has no form on the NPU yet"); });
}

/// Outputs that share the memory of another one are copied out.
llvm::Error Emitter::emitOutputs() {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  for (auto [index, value] : llvm::enumerate(terminator.getOperands())) {
    std::optional<device::Address> address = device::getAddress(value);
    if (address && address->memory == int64_t(index) + 1 && address->offset == 0) {
      continue;
    }
    // Element by element of memory outside: no op sees a value so that stays in local memory. Byte by byte where the
    // chip does not have its type: copied it may be.
    auto type = cast<RankedTensorType>(value.getType());
    std::optional<Type> bytes = typeOf(type.getElementType()) ? std::nullopt : std::optional(Type::u8);
    int64_t count = bytes ? top::byteSize(type) : type.getNumElements();
    llvm::Expected<Place> from = placeFor(value, {1, 1, 1, count}, {0, 0, 0, 1}, Access::read, 0, bytes);
    if (!from) {
      refusedOutput = value.getDefiningOp();
      return from.takeError();
    }
    hw::copy_command copy;
    copy.x = copy.y = from->tensor, copy.shape = from->shape;
    copy.y.region = Region(size_t(Region::io) + function.getNumArguments() + index), copy.y.offset = 0;
    copy.y.lane = 0;
    stream.beginLayer("output");
    Tile tile;
    tile.stores.push_back(hw::encode(copy));
    stream.append({tile}, false);
  }
  return llvm::Error::success();
}

/// Emits one op with what the plan leaves it of local memory.
llvm::Error Emitter::emitWith(Operation *op, llvm::function_ref<llvm::Error()> emit) {
  current = op, tiler.least = tiler.used = tiler.kept = tiler.appends = 0;
  tiler.budget = chip.laneBytes - plan.bytesAt(number);
  tiler.overlaps = !plan.isTight(number);
  llvm::Error error = emit();
  if (tiler.surveys) {
    plan.noteOp(number, op, tiler.whole, tiler.appends, tiler.least, tiler.used, tiler.kept);
  } else if (error && plan.drop(number, number)) {
    llvm::consumeError(std::move(error));
    wantsRetry = true;
    error = llvm::Error::success();
  }
  return error;
}

/// A buffer for rows of the op's result, where these stay slice by slice: with the rows that are there already. The
/// commands move those from where they were.
std::vector<Descriptor> Emitter::openSlice(const SliceGroup &group, Operation *op, RowRange rows) {
  std::optional<unsigned> index = plan.familyOf(op->getResult(0));
  if (!index || !group.holds(*index)) {
    return {};
  }
  auto [slice, isNew] = slices.try_emplace(*index);
  Slice old = slice->second;
  if (!isNew && old.rows.begin <= rows.begin && rows.end <= old.rows.end) {
    return {};
  }
  const ValuePlan::Family &family = plan.families()[*index];
  Shape shape;
  std::copy(std::begin(family.view.sizes), std::end(family.view.sizes), shape.dims);
  shape.dims[2] = rows.size();
  slice->second = {stream.addLocal(shape, family.type, 0), rows};
  RowRange again = {std::max(rows.begin, old.rows.begin), std::min(rows.end, old.rows.end)};
  if (isNew || again.isEmpty()) {
    return {};
  }
  hw::copy_command copy;
  Place to = npu::slice(slice->second.place, 2, again.begin - rows.begin, again.size(), chip);
  copy.y = to.tensor, copy.shape = to.shape;
  copy.x = npu::slice(old.place, 2, again.begin - old.rows.begin, again.size(), chip).tensor;
  return {hw::encode(copy)};
}

llvm::Error Emitter::emitGroup(const SliceGroup &group, ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    stream.beginLayer(top::getDisplayName(op->getLoc()));
  }
  std::vector<std::vector<Place>> shared(ops.size());
  std::vector<bool> begun(ops.size(), false);
  uint32_t before = ~0u;
  groupEnd = group.last;
  for (const std::vector<SlicePart> &slice : group.parts) {
    for (size_t k = 0; k < ops.size(); ++k) {
      const SlicePart &part = slice[k];
      if (part.computes.isEmpty()) {
        continue;
      }
      number = group.first + uint32_t(k);
      stream.enterLayer(number);
      tiler.turn.emplace(Tiler::Turn{part.computes.begin, part.computes.end, openSlice(group, ops[k], part.holds),
                                     shared[k], !begun[k], before == number || before == ~0u});
      llvm::Error error = emitWith(ops[k], [&] { return emit(ops[k]); });
      tiler.turn.reset();
      if (error) {
        return error;
      }
      begun[k] = true, before = number;
    }
  }
  slices.clear();
  number = group.last;
  for (Operation *op : ops) {
    if (llvm::Error error = emitEarlyPieces(op)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Pieces of results behind an op and what is folded into it.
llvm::Error Emitter::emitPiecesBehind(Operation *op) {
  SmallVector<Operation *> ops = {op};
  if (const Folds::Tail *tail = folds.tailOf(op)) {
    llvm::append_range(ops, tail->ops);
  }
  for (Operation *each : ops) {
    if (llvm::Error error = emitEarlyPieces(each)) {
      return error;
    }
  }
  return llvm::Error::success();
}

LogicalResult Emitter::run() {
  findEarlyPieces();
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front()) {
    if (!isa<top::WeightOp, top::ConstantOp, func::ReturnOp>(op) && !device::isElided(&op) && !folds.isFolded(&op)) {
      ops.push_back(&op);
    }
  }
  for (number = 0; number < ops.size(); ++number) {
    Operation *op = ops[number];
    progress(number, ops.size());
    llvm::Error error = llvm::Error::success();
    if (const SliceGroup *group = groups ? groups->at(number) : nullptr) {
      error = emitGroup(*group, ArrayRef(ops).slice(number, group->last - group->first + 1));
    } else {
      stream.beginLayer(nameOf(op));
      error = emitWith(op, [&] {
        llvm::Error failed = emit(op);
        return failed ? std::move(failed) : emitPiecesBehind(op);
      });
    }
    if (error) {
      refusals.push_back({ops[number], reasonsOf(std::move(error))});
    }
  }
  if (llvm::Error error = emitWith(nullptr, [&] { return emitOutputs(); })) {
    refusals.push_back({refusedOutput, reasonsOf(std::move(error))});
  }
  return success(refusals.empty());
}

} // namespace tessera::npu
