//===- PlanValues.cpp - Which values stay in local memory -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/PlanValues.h"

#include "codegen/Npu/IR/NpuDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/PlaceBuffers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

int64_t bytesOf(Value value, hw::Type type) {
  return cast<RankedTensorType>(value.getType()).getNumElements() * int64_t(hw::sizeOf(type));
}

/// Sets the stride of every unit dimension to 0.
View plain(View view) {
  for (int i = 0; i < 4; ++i) {
    view.strides[i] = view.sizes[i] == 1 ? 0 : view.strides[i];
  }
  return view;
}

/// Returns the number of elements of a plane (rows and columns) if they are contiguous, else 0.
int64_t planeOf(const View &view) {
  bool columns = view.sizes[3] == 1 || view.strides[3] == 1;
  bool rows = view.sizes[2] == 1 || view.strides[2] == view.sizes[3];
  return columns && rows ? view.sizes[2] * view.sizes[3] : 0;
}

/// Returns true if the images are parts of the same rows, side by side, e.g. heads of attention.
bool sharesRows(const View &view) {
  return view.sizes[0] > 1 && view.sizes[1] > 1 && view.sizes[2] == 1 && planeOf(view) == view.strides[0] &&
         view.strides[1] == view.sizes[0] * view.strides[0];
}

/// Returns the view of the whole value that |write| is a part of.
View wholeOf(const View &write, Value value) {
  if (sharesRows(write)) {
    return plain({{1, write.sizes[1], 1, write.strides[1]}, {0, write.strides[1], 0, 1}});
  }
  ArrayRef<int64_t> dims = cast<RankedTensorType>(value.getType()).getShape();
  if (planeOf(write) || dims.size() != 4) {
    return write;
  }
  return plain({{dims[0], dims[1], dims[2], dims[3]}, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}});
}

} // namespace

ValuePlan::ValuePlan(func::FuncOp function, const Chip &chip)
    : function(function), chip(chip), preservesAll(function->hasAttr(NpuDialect::kPreservedAttr)) {
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      add(result);
    }
    if (!device::isElided(&op)) {
      continue;
    }
    for (Value operand : op.getOperands()) {
      join(operand, op.getResult(0));
    }
  }
  for (auto &[value, member] : members) {
    member.offset -= known[member.aliasSet].offChip.begin;
  }
}

/// Adds a value. Returns false for values without storage of their own, i.e. constants and function arguments.
bool ValuePlan::add(Value value) {
  std::optional<device::Address> address = device::getAddress(value);
  if (device::getConstantRoot(value) || !address || address->memory < 0) {
    return false;
  }
  auto type = cast<RankedTensorType>(value.getType()); // i1 is stored as a byte
  int64_t bytes = type.getNumElements() * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  members[value] = {unsigned(known.size()), address->offset};
  AliasSet aliasSet;
  aliasSet.offChip.memory = address->memory, aliasSet.offChip.begin = address->offset,
  aliasSet.offChip.end = address->offset + bytes;
  known.push_back(aliasSet);
  return true;
}

void ValuePlan::join(Value a, Value b) {
  if (!members.contains(a) || !members.contains(b) || members[a].aliasSet == members[b].aliasSet) {
    return;
  }
  unsigned from = members[a].aliasSet, to = members[b].aliasSet;
  known[to].offChip.begin = std::min(known[to].offChip.begin, known[from].offChip.begin);
  known[to].offChip.end = std::max(known[to].offChip.end, known[from].offChip.end);
  known[from].offChip.end = known[from].offChip.begin;
  for (auto &[value, member] : members) {
    member.aliasSet = member.aliasSet == from ? to : member.aliasSet;
  }
}

void ValuePlan::note(uint32_t op, Value value, const View &view, int64_t offset, Access access, hw::Type type) {
  auto member = members.find(value);
  if (member == members.end()) {
    return;
  }
  AliasSet &aliasSet = known[member->second.aliasSet];
  aliasSet.type = type, aliasSet.isRead = aliasSet.isRead || access != Access::write;
  requests.push_back({op, value, plain(view), offset, access});
}

void ValuePlan::keepOutside(Value value) {
  if (auto member = members.find(value); member != members.end()) {
    known[member->second.aliasSet].residency.isExcluded = true;
  }
}

void ValuePlan::addDirectStore(Value value, const DirectStore &directStore) {
  directStores[value].push_back(directStore);
  known[members.lookup(value).aliasSet].storedDirectly = true;
}

ArrayRef<DirectStore> ValuePlan::directStoresOf(Value value) const {
  auto found = directStores.find(value);
  return found == directStores.end() ? ArrayRef<DirectStore>() : ArrayRef<DirectStore>(found->second);
}

bool ValuePlan::onlyStoredDirectly(Value value) const {
  auto member = members.find(value);
  return member != members.end() && onlyStoredDirectly(known[member->second.aliasSet]);
}

void ValuePlan::noteOp(uint32_t number, Operation *op, const Shape &whole, uint32_t appends, uint64_t requirement,
                       uint64_t used, uint64_t liveAcross) {
  byOp.resize(std::max<size_t>(byOp.size(), number + 1));
  byOp[number] = {op, whole, appends, requirement, used, liveAcross, {}};
}

bool ValuePlan::isInsidePlanes(const AliasSet &aliasSet, const View &view) {
  return aliasSet.local.dense && aliasSet.local.view.sizes[0] == 1 && view.sizes[0] > 1 && view.strides[0] != 0;
}

/// Returns true if the local form of an alias set provides a view that begins |offset| bytes into it.
bool ValuePlan::matches(const AliasSet &aliasSet, int64_t offset, const View &view, bool isWrite) const {
  int64_t size = int64_t(hw::sizeOf(aliasSet.type));
  const View &whole = aliasSet.local.view;
  if (!aliasSet.local.dense) {
    return offset == 0 && llvm::all_of(llvm::seq(0, 4), [&](int i) {
             bool repeats = !isWrite && i != 1 && view.strides[i] == 0;
             return repeats || (view.sizes[i] == whole.sizes[i] && view.strides[i] == whole.strides[i]);
           });
  }
  int64_t plane = planeOf(whole), channel = offset / (plane * size), inPlane = offset / size % plane;
  bool channels = view.sizes[1] == 1 || view.strides[1] == plane;
  bool inside = isInsidePlanes(aliasSet, view);
  bool images = view.strides[0] == 0 ? !isWrite || whole.sizes[0] == 1
                : inside             ? view.strides[0] > 0
                                     : view.strides[0] == whole.strides[0] && view.sizes[0] == whole.sizes[0];
  int64_t last = inPlane + (view.sizes[2] - 1) * view.strides[2] + (view.sizes[3] - 1) * view.strides[3] +
                 (inside ? (view.sizes[0] - 1) * view.strides[0] : 0);
  bool forward = view.strides[2] >= 0 && view.strides[3] >= 0;
  return channels && images && forward && last < plane && channel + view.sizes[1] <= whole.sizes[1];
}

/// Determines the local form of an alias set and its uses. Returns false if it cannot be resident.
bool ValuePlan::analyzeResidency(unsigned index, ArrayRef<Request> all) {
  AliasSet &aliasSet = known[index];
  int64_t size = int64_t(hw::sizeOf(aliasSet.type)), total = aliasSet.offChip.bytes() / size;
  // An op may write only part of each plane; an earlier op has then filled the rest.
  auto write = llvm::find_if(all, [](const Request &each) { return each.access == Access::write; });
  if (write == all.end() || aliasSet.residency.isExcluded) {
    return false;
  }
  aliasSet.local.view = wholeOf(write->view, write->value);
  int64_t plane = planeOf(aliasSet.local.view);
  aliasSet.local.dense = plane && (aliasSet.local.view.sizes[1] == 1 || aliasSet.local.view.strides[1] == plane);
  if (aliasSet.local.dense) {
    int64_t images = aliasSet.local.view.sizes[0], channels = total / (images * plane);
    aliasSet.local.view.sizes[1] = channels, aliasSet.local.view.strides[1] = channels == 1 ? 0 : plane;
    aliasSet.local.view.strides[0] = images == 1 ? 0 : channels * plane;
  }
  aliasSet.stored = aliasSet.offChip.memory > 0 || preservesAll, aliasSet.first = UINT32_MAX, aliasSet.last = 0,
  aliasSet.residency.spared = 0, aliasSet.writers = 0;
  bool isRead = false;
  for (const Request &each : all) {
    bool fits =
        each.access != Access::readOutside && matches(aliasSet, members.lookup(each.value).offset + each.offset * size,
                                                      each.view, each.access == Access::write);
    uint64_t bytes = uint64_t(bytesOf(each.value, aliasSet.type));
    if (each.access == Access::write) {
      if (!fits) {
        return false;
      }
      aliasSet.first = std::min(aliasSet.first, each.op), aliasSet.last = std::max(aliasSet.last, each.op);
      ++aliasSet.writers;
    } else if (fits) {
      isRead = true;
      aliasSet.last = std::max(aliasSet.last, each.op), aliasSet.residency.spared += bytes;
    } else {
      aliasSet.stored = true;
    }
  }
  const int64_t *sizes = aliasSet.local.view.sizes;
  aliasSet.local.bytes = llvm::alignTo(
      uint64_t(sizes[2] * sizes[3] * size) * llvm::divideCeil(sizes[1], chip.lanes) * sizes[0], chip.portBytes);
  aliasSet.residency.spared += aliasSet.stored ? 0 : uint64_t(total * size);
  return isRead;
}

void ValuePlan::keep(AliasSet &aliasSet, bool isResident) {
  aliasSet.residency.isChosen = isResident;
  for (uint32_t op = aliasSet.first; op <= aliasSet.last; ++op) {
    live[op] += isResident ? aliasSet.local.bytes : -aliasSet.local.bytes;
  }
}

void ValuePlan::analyzeResidency(bool mayBeResident) {
  std::vector<std::vector<Request>> byFamily(known.size());
  for (const Request &each : requests) {
    byFamily[members.lookup(each.value).aliasSet].push_back(each);
  }
  live.assign(byOp.size(), 0);
  for (unsigned index = 0; index < known.size(); ++index) {
    known[index].residency.isPossible = analyzeResidency(index, byFamily[index]) && mayBeResident;
  }
  findUses();
}

bool ValuePlan::hasRoom(const AliasSet &aliasSet, uint64_t reserve) const {
  return llvm::all_of(llvm::seq(aliasSet.first, aliasSet.last + 1), [&](uint32_t op) {
    return live[op] + aliasSet.local.bytes + std::max(reserve, 2 * byOp[op].requirement) <= chip.laneBytes;
  });
}

void ValuePlan::choose(double share) {
  std::vector<unsigned> order;
  for (unsigned index = 0; index < known.size(); ++index) {
    if (known[index].residency.isPossible) {
      order.push_back(index);
    }
  }
  auto worth = [&](unsigned index) {
    const AliasSet &aliasSet = known[index];
    return double(aliasSet.residency.spared) / (double(aliasSet.local.bytes) * (aliasSet.last - aliasSet.first + 1));
  };
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return worth(a) > worth(b); });
  for (unsigned index : order) {
    if (hasRoom(known[index], uint64_t(double(chip.laneBytes) * (1 - share)))) {
      keep(known[index], true);
    }
  }
}

void ValuePlan::choose(ArrayRef<unsigned> aliasSets) {
  for (unsigned index : aliasSets) {
    if (known[index].residency.isPossible && hasRoom(known[index], 0)) {
      keep(known[index], true);
    }
  }
}

/// Returns the bytes of a channel's plane. A value that is not dense can only be viewed as a whole.
static int64_t planeBytes(const ValuePlan::AliasSet &aliasSet) {
  return aliasSet.local.dense ? planeOf(aliasSet.local.view) * int64_t(hw::sizeOf(aliasSet.type)) : INT64_MAX;
}

void ValuePlan::findUses() {
  for (bool writes : {true, false}) {
    for (const Request &each : requests) {
      if ((each.access == Access::write) != writes) {
        continue;
      }
      Member member = members.lookup(each.value);
      const AliasSet &aliasSet = known[member.aliasSet];
      int64_t at = member.offset + each.offset * int64_t(hw::sizeOf(aliasSet.type));
      bool fits = aliasSet.residency.isPossible && each.access != Access::readOutside &&
                  matches(aliasSet, at, each.view, writes);
      int64_t channel = fits ? at / planeBytes(aliasSet) : 0;
      byOp[each.op].uses.push_back({each.value, each.view, member.aliasSet, each.access, fits, channel,
                                    uint64_t(bytesOf(each.value, aliasSet.type))});
    }
  }
}

int64_t ValuePlan::channelOf(Value value, int64_t offset) const {
  Member member = members.lookup(value);
  const AliasSet &aliasSet = known[member.aliasSet];
  int64_t size = int64_t(hw::sizeOf(aliasSet.type));
  return (member.offset + offset * size) / (planeOf(aliasSet.local.view) * size);
}

std::optional<unsigned> ValuePlan::aliasSetOf(Value value) const {
  auto member = members.find(value);
  return member == members.end() ? std::nullopt : std::optional(member->second.aliasSet);
}

void ValuePlan::placeOutside(ArrayRef<std::pair<uint32_t, uint32_t>> ranges, ArrayRef<unsigned> sliced) {
  std::vector<device::Buffer> lives(known.size(), {0, INT64_MAX, -1});
  for (uint32_t op = 0; op < byOp.size(); ++op) {
    auto range = llvm::find_if(ranges, [&](auto each) { return each.first <= op && op <= each.second; });
    int64_t first = range == ranges.end() ? op : range->first, last = range == ranges.end() ? op : range->second;
    for (const Use &use : byOp[op].uses) {
      device::Buffer &life = lives[use.aliasSet];
      life.first = std::min(life.first, first), life.last = preservesAll ? INT64_MAX : std::max(life.last, last);
    }
  }
  std::vector<device::Buffer> needed;
  std::vector<unsigned> order;
  for (auto [index, aliasSet] : llvm::enumerate(known)) {
    bool isInside = (aliasSet.residency.isChosen || llvm::is_contained(sliced, index)) && !aliasSet.stored;
    if (aliasSet.offChip.memory == 0 && lives[index].last >= 0 && !isInside && !onlyStoredDirectly(aliasSet)) {
      needed.push_back({aliasSet.offChip.bytes(), lives[index].first, lives[index].last});
      order.push_back(unsigned(index));
    }
  }
  device::Placement placement = device::placeBuffers(needed, device::kAddressAlignment);
  for (auto [index, offset] : llvm::zip_equal(order, placement.offsets)) {
    known[index].offChip.placed = uint64_t(offset);
  }
  workspaceBytes = uint64_t(placement.bytes);
  workspaceLowerBound = uint64_t(device::lowerBound(needed, device::kAddressAlignment));
}

std::optional<uint64_t> ValuePlan::outsideOf(Value value) const {
  auto member = members.find(value);
  if (member == members.end() || known[member->second.aliasSet].offChip.memory != 0) {
    return std::nullopt;
  }
  return known[member->second.aliasSet].offChip.placed + uint64_t(member->second.offset);
}

std::optional<ValuePlan::Resident> ValuePlan::find(Value value, const View &view, int64_t offset, Access access) const {
  auto member = members.find(value);
  if (member == members.end() || !known[member->second.aliasSet].residency.isChosen || access == Access::readOutside) {
    return std::nullopt;
  }
  const AliasSet &aliasSet = known[member->second.aliasSet];
  int64_t at = member->second.offset + offset * int64_t(hw::sizeOf(aliasSet.type));
  if (!matches(aliasSet, at, plain(view), access == Access::write)) {
    return std::nullopt;
  }
  return Resident{member->second.aliasSet, at / planeBytes(aliasSet), at % planeBytes(aliasSet)};
}

bool ValuePlan::drop(uint32_t first, uint32_t last) {
  AliasSet *largest = nullptr;
  for (AliasSet &aliasSet : known) {
    if (aliasSet.residency.isChosen && aliasSet.first <= last && aliasSet.last >= first &&
        (!largest || aliasSet.local.bytes > largest->local.bytes)) {
      largest = &aliasSet;
    }
  }
  if (largest) {
    keep(*largest, false);
  }
  return largest;
}

} // namespace tessera::npu
