//===- PlanValues.cpp - Which values stay in local memory -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/PlanValues.h"

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

/// Without strides of dims of one element.
View plain(View view) {
  for (int i = 0; i < 4; ++i) {
    view.strides[i] = view.sizes[i] == 1 ? 0 : view.strides[i];
  }
  return view;
}

/// Elements of a plane (rows and columns) if they lie one after another; 0: they do not.
int64_t planeOf(const View &view) {
  bool columns = view.sizes[3] == 1 || view.strides[3] == 1;
  bool rows = view.sizes[2] == 1 || view.strides[2] == view.sizes[3];
  return columns && rows ? view.sizes[2] * view.sizes[3] : 0;
}

} // namespace

ValuePlan::ValuePlan(func::FuncOp function, const Chip &chip) : function(function), chip(chip) {
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
    member.offset -= known[member.family].begin;
  }
}

/// False where the value has no place of its own: constants and arguments.
bool ValuePlan::add(Value value) {
  std::optional<device::Address> address = device::getAddress(value);
  if (device::getConstantRoot(value) || !address || address->memory < 0) {
    return false;
  }
  auto type = cast<RankedTensorType>(value.getType()); // a truth value is a byte, too
  int64_t bytes = type.getNumElements() * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  members[value] = {unsigned(known.size()), address->offset};
  Family family;
  family.memory = address->memory, family.begin = address->offset, family.end = address->offset + bytes;
  known.push_back(family);
  return true;
}

void ValuePlan::join(Value a, Value b) {
  if (!members.contains(a) || !members.contains(b) || members[a].family == members[b].family) {
    return;
  }
  unsigned from = members[a].family, to = members[b].family;
  known[to].begin = std::min(known[to].begin, known[from].begin);
  known[to].end = std::max(known[to].end, known[from].end);
  known[from].end = known[from].begin;
  for (auto &[value, member] : members) {
    member.family = member.family == from ? to : member.family;
  }
}

void ValuePlan::note(uint32_t op, Value value, const View &view, int64_t offset, Access access, hw::Type type) {
  auto member = members.find(value);
  if (member == members.end()) {
    return;
  }
  Family &family = known[member->second.family];
  family.type = type, family.isRead = family.isRead || access != Access::write;
  requests.push_back({op, value, plain(view), offset, access});
}

void ValuePlan::keepOutside(Value value) {
  if (auto member = members.find(value); member != members.end()) {
    known[member->second.family].isApart = true;
  }
}

void ValuePlan::addOutlet(Value value, const Outlet &outlet) {
  outlets[value].push_back(outlet);
  known[members.lookup(value).family].leaves = true;
}

ArrayRef<Outlet> ValuePlan::outletsOf(Value value) const {
  auto found = outlets.find(value);
  return found == outlets.end() ? ArrayRef<Outlet>() : ArrayRef<Outlet>(found->second);
}

bool ValuePlan::onlyLeaves(Value value) const {
  auto member = members.find(value);
  return member != members.end() && onlyLeaves(known[member->second.family]);
}

void ValuePlan::noteOp(uint32_t number, Operation *op, const Shape &whole, uint32_t appends, uint64_t need,
                       uint64_t used, uint64_t kept) {
  byOp.resize(std::max<size_t>(byOp.size(), number + 1));
  byOp[number] = {op, whole, appends, need, used, kept, {}};
}

/// Whether a view, |offset| bytes into the family, can be had of its local form.
bool ValuePlan::matches(const Family &family, int64_t offset, const View &view, bool isWrite) const {
  int64_t size = int64_t(hw::sizeOf(family.type));
  const View &whole = family.view;
  if (!family.dense) {
    return offset == 0 && llvm::all_of(llvm::seq(0, 4), [&](int i) {
             bool repeats = !isWrite && i != 1 && view.strides[i] == 0;
             return repeats || (view.sizes[i] == whole.sizes[i] && view.strides[i] == whole.strides[i]);
           });
  }
  int64_t plane = planeOf(whole), channel = offset / (plane * size), inPlane = offset / size % plane;
  bool channels = view.sizes[1] == 1 || view.strides[1] == plane;
  bool images = view.strides[0] == 0 ? !isWrite || whole.sizes[0] == 1
                                     : view.strides[0] == whole.strides[0] && view.sizes[0] == whole.sizes[0];
  int64_t last = inPlane + (view.sizes[2] - 1) * view.strides[2] + (view.sizes[3] - 1) * view.strides[3];
  bool forward = view.strides[2] >= 0 && view.strides[3] >= 0;
  return channels && images && forward && last < plane && channel + view.sizes[1] <= whole.sizes[1];
}

/// Finds the local form of a family, and who uses it; false where it cannot stay.
bool ValuePlan::settle(unsigned index, ArrayRef<Request> all) {
  Family &family = known[index];
  int64_t size = int64_t(hw::sizeOf(family.type)), total = (family.end - family.begin) / size;
  // Of an op that writes a part of each plane only, another one has filled the rest before.
  auto write = llvm::find_if(all, [](const Request &each) { return each.access == Access::write; });
  if (write == all.end() || family.isApart) {
    return false;
  }
  family.view = write->view;
  int64_t plane = planeOf(write->view);
  family.dense = plane && (write->view.sizes[1] == 1 || write->view.strides[1] == plane);
  if (family.dense) {
    int64_t images = write->view.sizes[0], channels = total / (images * plane);
    family.view.sizes[1] = channels, family.view.strides[1] = channels == 1 ? 0 : plane;
    family.view.strides[0] = images == 1 ? 0 : channels * plane;
  }
  family.stored = family.memory > 0, family.first = UINT32_MAX, family.last = 0, family.spared = 0, family.writers = 0;
  bool isRead = false;
  for (const Request &each : all) {
    bool fits =
        each.access != Access::readOutside && matches(family, members.lookup(each.value).offset + each.offset * size,
                                                      each.view, each.access == Access::write);
    uint64_t bytes = uint64_t(bytesOf(each.value, family.type));
    if (each.access == Access::write) {
      if (!fits) {
        return false;
      }
      family.first = std::min(family.first, each.op), family.last = std::max(family.last, each.op);
      ++family.writers;
    } else if (fits) {
      isRead = true;
      family.last = std::max(family.last, each.op), family.spared += bytes;
    } else {
      family.stored = true;
    }
  }
  const int64_t *sizes = family.view.sizes;
  family.bytes = llvm::alignTo(uint64_t(sizes[2] * sizes[3] * size) * llvm::divideCeil(sizes[1], chip.lanes) * sizes[0],
                               chip.portBytes);
  family.spared += family.stored ? 0 : uint64_t(total * size);
  return isRead;
}

void ValuePlan::keep(Family &family, bool stays) {
  family.stays = stays;
  for (uint32_t op = family.first; op <= family.last; ++op) {
    live[op] += stays ? family.bytes : -family.bytes;
  }
}

void ValuePlan::settle(bool mayStay) {
  std::vector<std::vector<Request>> byFamily(known.size());
  for (const Request &each : requests) {
    byFamily[members.lookup(each.value).family].push_back(each);
  }
  live.assign(byOp.size(), 0);
  for (unsigned index = 0; index < known.size(); ++index) {
    known[index].canStay = settle(index, byFamily[index]) && mayStay;
  }
  findUses();
}

bool ValuePlan::hasRoom(const Family &family, uint64_t reserve) const {
  return llvm::all_of(llvm::seq(family.first, family.last + 1), [&](uint32_t op) {
    return live[op] + family.bytes + std::max(reserve, 2 * byOp[op].need) <= chip.laneBytes;
  });
}

void ValuePlan::choose(double share) {
  std::vector<unsigned> order;
  for (unsigned index = 0; index < known.size(); ++index) {
    if (known[index].canStay) {
      order.push_back(index);
    }
  }
  auto worth = [&](unsigned index) {
    const Family &family = known[index];
    return double(family.spared) / (double(family.bytes) * (family.last - family.first + 1));
  };
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return worth(a) > worth(b); });
  for (unsigned index : order) {
    if (hasRoom(known[index], uint64_t(double(chip.laneBytes) * (1 - share)))) {
      keep(known[index], true);
    }
  }
}

void ValuePlan::choose(ArrayRef<unsigned> families) {
  for (unsigned index : families) {
    if (known[index].canStay && hasRoom(known[index], 0)) {
      keep(known[index], true);
    }
  }
}

/// Of a channel; a family that is not dense is seen as a whole only.
static int64_t planeBytes(const ValuePlan::Family &family) {
  return family.dense ? planeOf(family.view) * int64_t(hw::sizeOf(family.type)) : INT64_MAX;
}

void ValuePlan::findUses() {
  for (bool writes : {true, false}) {
    for (const Request &each : requests) {
      if ((each.access == Access::write) != writes) {
        continue;
      }
      Member member = members.lookup(each.value);
      const Family &family = known[member.family];
      int64_t at = member.offset + each.offset * int64_t(hw::sizeOf(family.type));
      bool fits = family.canStay && each.access != Access::readOutside && matches(family, at, each.view, writes);
      int64_t channel = fits ? at / planeBytes(family) : 0;
      byOp[each.op].uses.push_back({each.value, each.view, member.family, each.access, fits, channel,
                                    uint64_t(bytesOf(each.value, family.type))});
    }
  }
}

int64_t ValuePlan::channelOf(Value value, int64_t offset) const {
  Member member = members.lookup(value);
  const Family &family = known[member.family];
  int64_t size = int64_t(hw::sizeOf(family.type));
  return (member.offset + offset * size) / (planeOf(family.view) * size);
}

std::optional<unsigned> ValuePlan::familyOf(Value value) const {
  auto member = members.find(value);
  return member == members.end() ? std::nullopt : std::optional(member->second.family);
}

void ValuePlan::placeOutside(ArrayRef<std::pair<uint32_t, uint32_t>> ranges, ArrayRef<unsigned> sliced) {
  std::vector<device::Buffer> lives(known.size(), {0, INT64_MAX, -1});
  for (uint32_t op = 0; op < byOp.size(); ++op) {
    auto range = llvm::find_if(ranges, [&](auto each) { return each.first <= op && op <= each.second; });
    int64_t first = range == ranges.end() ? op : range->first, last = range == ranges.end() ? op : range->second;
    for (const Use &use : byOp[op].uses) {
      device::Buffer &life = lives[use.family];
      life.first = std::min(life.first, first), life.last = std::max(life.last, last);
    }
  }
  std::vector<device::Buffer> needed;
  std::vector<unsigned> order;
  for (auto [index, family] : llvm::enumerate(known)) {
    bool isInside = (family.stays || llvm::is_contained(sliced, index)) && !family.stored;
    if (family.memory == 0 && lives[index].last >= 0 && !isInside && !onlyLeaves(family)) {
      needed.push_back({family.end - family.begin, lives[index].first, lives[index].last});
      order.push_back(unsigned(index));
    }
  }
  device::Placement placement = device::placeBuffers(needed, device::kAddressAlignment);
  for (auto [index, offset] : llvm::zip_equal(order, placement.offsets)) {
    known[index].placed = uint64_t(offset);
  }
  workspaceBytes = uint64_t(placement.bytes);
  workspaceLowerBound = uint64_t(device::lowerBound(needed, device::kAddressAlignment));
}

std::optional<uint64_t> ValuePlan::outsideOf(Value value) const {
  auto member = members.find(value);
  if (member == members.end() || known[member->second.family].memory != 0) {
    return std::nullopt;
  }
  return known[member->second.family].placed + uint64_t(member->second.offset);
}

std::optional<ValuePlan::Stay> ValuePlan::find(Value value, const View &view, int64_t offset, Access access) const {
  auto member = members.find(value);
  if (member == members.end() || !known[member->second.family].stays || access == Access::readOutside) {
    return std::nullopt;
  }
  const Family &family = known[member->second.family];
  int64_t at = member->second.offset + offset * int64_t(hw::sizeOf(family.type));
  if (!matches(family, at, plain(view), access == Access::write)) {
    return std::nullopt;
  }
  return Stay{member->second.family, at / planeBytes(family), at % planeBytes(family)};
}

bool ValuePlan::drop(uint32_t first, uint32_t last) {
  Family *largest = nullptr;
  for (Family &family : known) {
    if (family.stays && family.first <= last && family.last >= first && (!largest || family.bytes > largest->bytes)) {
      largest = &family;
    }
  }
  if (largest) {
    keep(*largest, false);
  }
  return largest;
}

} // namespace tessera::npu
