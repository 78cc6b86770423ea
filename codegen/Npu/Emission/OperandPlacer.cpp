//===- OperandPlacer.cpp - Locations of operands and results --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/OperandPlacer.h"

#include "codegen/Npu/ElementTypes.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;

const OperandPlacer::Slice *OperandPlacer::sliceOf(Value value) const {
  std::optional<unsigned> aliasSet = plan.aliasSetOf(value);
  auto found = aliasSet ? slices.find(*aliasSet) : slices.end();
  return found == slices.end() ? nullptr : &found->second;
}

bool OperandPlacer::isResident(Value value, const View &view) const {
  Access access = value.getDefiningOp() == current ? Access::write : Access::read;
  return plan.find(value, view, 0, access) || sliceOf(value);
}

bool OperandPlacer::makes(Value value) const {
  const FusedOps::FusedConsumers *consumers = current ? fusedOps.consumersOf(current) : nullptr;
  return consumers ? llvm::any_of(consumers->targets, [&](const StridedView &target) { return target.value == value; })
                   : value.getDefiningOp() == current;
}

std::optional<Tensor> OperandPlacer::outsideOf(Value value) {
  std::optional<device::Address> address = device::getAddress(value);
  if (!address) {
    return std::nullopt;
  }
  // Among the caller's buffers, arguments come before results.
  int64_t buffer =
      address->memory < 0 ? -address->memory - 1 : int64_t(function.getNumArguments()) + address->memory - 1;
  Tensor result;
  result.region = address->memory == 0 ? Region::workspace : Region(int64_t(Region::io) + buffer);
  result.offset = surveys ? address->offset : plan.outsideOf(value).value_or(address->offset);
  return result;
}

/// Returns the off-chip location of a value: that of its constant, or its address.
llvm::Expected<Tensor> OperandPlacer::baseOf(Value value) {
  if (Value constant = device::getConstantRoot(value)) {
    std::optional<top::TensorData> data = top::getConstantData(constant);
    if (!data) {
      return reject("has a constant without data");
    }
    return Tensor{.offset = stream.addConstant(data->bytes), .region = Region::constants};
  }
  std::optional<Tensor> outside = outsideOf(value);
  if (!outside) {
    return reject("has a tensor without an address");
  }
  return *outside;
}

TileView OperandPlacer::placeInSlice(Value value, const Slice &slice, const View &view, int64_t offset, Access access,
                                     const Tensor &outside) const {
  TileView result = slice.place;
  result.tensor.offset -= uint64_t(slice.rows.begin) * uint64_t(result.tensor.strides[2]);
  result = npu::slice(result, 1, uint32_t(plan.channelOf(value, offset)), uint32_t(view.sizes[1]), chip);
  std::copy(std::begin(view.sizes), std::end(view.sizes), result.shape.dims);
  std::fill(std::begin(result.at), std::end(result.at), 0);
  const ValuePlan::AliasSet &aliasSet = plan.aliasSets()[*plan.aliasSetOf(value)];
  if (access == Access::write && (aliasSet.stored || aliasSet.last > groupEnd)) {
    result.copy = outside;
  }
  return result;
}

/// Returns the view in local memory, or nothing if the value is not resident.
std::optional<TileView> OperandPlacer::placeLocal(Value value, const View &view, int64_t offset, Access access,
                                                  const Tensor &outside) {
  if (const Slice *slice = access == Access::readOutside ? nullptr : sliceOf(value)) {
    return placeInSlice(value, *slice, view, offset, access, outside);
  }
  std::optional<ValuePlan::Resident> stay = plan.find(value, view, offset, access);
  if (!stay) {
    return std::nullopt;
  }
  const ValuePlan::AliasSet &aliasSet = plan.aliasSets()[stay->aliasSet];
  auto [entry, isNew] = locals.try_emplace(stay->aliasSet);
  if (isNew) {
    Shape shape;
    std::copy(std::begin(aliasSet.local.view.sizes), std::end(aliasSet.local.view.sizes), shape.dims);
    entry->second = stream.addLocal(shape, aliasSet.type, 0);
  }
  TileView result = entry->second;
  int64_t size = int64_t(hw::sizeOf(aliasSet.type));
  for (int i = 0; i < 4; ++i) {
    bool repeats = view.sizes[i] > 1 && view.strides[i] == 0;
    bool asOutside = aliasSet.local.dense && (i >= 2 || (i == 0 && ValuePlan::isInsidePlanes(aliasSet, view)));
    result.shape.dims[i] = uint32_t(view.sizes[i]);
    result.tensor.strides[i] = repeats ? 0 : asOutside ? int32_t(view.strides[i] * size) : result.tensor.strides[i];
  }
  result = slice(result, 1, uint32_t(stay->channel), uint32_t(view.sizes[1]), chip);
  result.tensor.offset += uint64_t(stay->inPlane);
  if (access == Access::write && aliasSet.stored) {
    result.copy = outside;
  }
  return result;
}

llvm::Expected<TileView> OperandPlacer::placeAs(Value value, const Request &request) {
  mlir::Type type = npu::typeOf(value).getElementType();
  std::optional<Type> element = request.as ? request.as : npu::typeOf(type);
  if (!element) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return reject("has a tensor of " + text + ", an element type that the chip does not support");
  }
  llvm::Expected<Tensor> base = baseOf(value);
  if (!base) {
    return base.takeError();
  }
  TileView result;
  result.tensor = *base, result.tensor.type = *element;
  View view;
  for (int i = 0; i < 4; ++i) {
    view.sizes[i] = request.sizes[size_t(i)], view.strides[i] = request.strides[size_t(i)];
    result.shape.dims[i] = uint32_t(view.sizes[i]);
    int64_t stride = view.strides[i] * int64_t(hw::sizeOf(*element));
    if (stride > INT32_MAX) {
      return reject("has a tensor with a stride of more than 2 GiB");
    }
    result.tensor.strides[i] = int32_t(stride);
  }
  result.tensor.offset += uint64_t(request.offset * int64_t(hw::sizeOf(*element)));
  Access access = makes(value) ? Access::write : request.access;
  if (surveys) {
    plan.note(number, value, view, request.offset, access, *element);
    return result;
  }
  result = placeLocal(value, view, request.offset, access, result.tensor).value_or(result);
  if (access == Access::write) {
    std::fill(std::begin(result.at), std::end(result.at), 0);
    result.directStores = plan.directStoresOf(value);
    result.tensor.region = plan.onlyStoredDirectly(value) ? Region::none : result.tensor.region;
  }
  return result;
}

llvm::Expected<TileView> OperandPlacer::placeBroadcastImages(Value value, ArrayRef<int64_t> dims, int64_t volume) {
  SmallVector<int64_t> strides = broadcastNest({dims, npu::typeOf(value).getShape()}).strides[1];
  if (dims.size() == 4) {
    return place(value, dims, strides);
  }
  return place(value, {dims[2], dims[1], dims[3], dims[4]}, {strides[2], strides[1], strides[3], strides[4]},
               volume * strides[0]);
}

std::vector<Descriptor> OperandPlacer::openSlice(const SliceGroup &group, Operation *op, RowRange rows) {
  std::optional<unsigned> index = plan.aliasSetOf(op->getResult(0));
  if (!index || !group.holds(*index)) {
    return {};
  }
  auto [slice, isNew] = slices.try_emplace(*index);
  Slice old = slice->second;
  if (!isNew && old.rows.begin <= rows.begin && rows.end <= old.rows.end) {
    return {};
  }
  const ValuePlan::AliasSet &aliasSet = plan.aliasSets()[*index];
  Shape shape;
  std::copy(std::begin(aliasSet.local.view.sizes), std::end(aliasSet.local.view.sizes), shape.dims);
  shape.dims[2] = rows.size();
  slice->second = {stream.addLocal(shape, aliasSet.type, 0), rows};
  RowRange again = {std::max(rows.begin, old.rows.begin), std::min(rows.end, old.rows.end)};
  if (isNew || again.isEmpty()) {
    return {};
  }
  hw::copy_command copy;
  TileView to = npu::slice(slice->second.place, 2, again.begin - rows.begin, again.size(), chip);
  copy.y = to.tensor, copy.shape = to.shape;
  copy.x = npu::slice(old.place, 2, again.begin - old.rows.begin, again.size(), chip).tensor;
  return {hw::encode(copy)};
}

} // namespace tessera::npu
