//===- MemoryOps.cpp - Loads and stores -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Instructions/MemoryOps.h"

#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <algorithm>

namespace ptx {

void addressesOf(Warp &warp, const Instruction &in, Addresses &addresses) {
  auto offset = uint64_t(in.immediate);
  if (in.addressBytes == 4) {
    const auto *base = warp.reg<uint32_t>(in.a);
    for (unsigned i = 0; i < kLanes; ++i) {
      addresses.lane[i] = base[i] + offset;
    }
  } else {
    const auto *base = warp.reg<uint64_t>(in.a);
    for (unsigned i = 0; i < kLanes; ++i) {
      addresses.lane[i] = base[i] + offset;
    }
  }
}

Space spaceOf(Decoding &d) {
  static const std::pair<const char *, Space> names[] = {
      {"global", Space::Global},         {"shared", Space::Shared},         {"shared::cta", Space::Shared},
      {"local", Space::Local},           {"const", Space::Constant},        {"param", Space::Parameter},
      {"param::func", Space::Parameter}, {"param::entry", Space::Parameter}};
  for (auto &[name, space] : names) {
    if (d.has(name)) {
      return space;
    }
  }
  return Space::Generic;
}

bool takeOrdering(Decoding &d) {
  bool isStrong = false;
  for (const char *each : {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}) {
    isStrong = d.has(each) || isStrong;
  }
  for (const char *each : {"cta", "gpu", "sys", "cluster"}) {
    d.has(each);
  }
  return isStrong;
}

namespace {

enum MemoryFlags : uint32_t { kStrong = 1, kAcquire = 2, kRelease = 4 };

/// Loads elements into registers, sign- or zero-extended by their type.
template <class Element, class Register>
void moveIn(Warp &warp, const Instruction &in, Mask mask, const Pointers &pointers) {
  for (unsigned element = 0; element < in.elements; ++element) {
    alignas(64) Register values[kLanes];
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      auto lane = unsigned(__builtin_ctz(rest));
      Element value;
      std::memcpy(&value, pointers.lane[lane] + element * sizeof(Element), sizeof value);
      values[lane] = Register(value);
    }
    warp.write(in.more[element], values, mask);
  }
}

template <class Element, class Register>
void moveOut(Warp &warp, const Instruction &in, Mask mask, const Pointers &pointers) {
  for (unsigned element = 0; element < in.elements; ++element) {
    const Register *values = warp.reg<Register>(in.more[element]);
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      auto lane = unsigned(__builtin_ctz(rest));
      auto value = Element(values[lane]);
      std::memcpy(pointers.lane[lane] + element * sizeof(Element), &value, sizeof value);
    }
  }
}

template <class Element, class Register>
void load(Warp &warp, const Instruction &in, Mask mask) {
  Addresses addresses;
  Pointers pointers;
  addressesOf(warp, in, addresses);
  warp.block->resolve(warp, in.space, addresses, mask, unsigned(sizeof(Element)) * in.elements,
                      in.flags & kStrong ? Access::StrongRead : Access::Read, pointers);
  moveIn<Element, Register>(warp, in, mask, pointers);
  if (in.flags & kAcquire) {
    warp.block->fence();
  }
}

template <class Element, class Register>
void store(Warp &warp, const Instruction &in, Mask mask) {
  if (in.flags & kRelease) {
    warp.block->fence();
  }
  Addresses addresses;
  Pointers pointers;
  addressesOf(warp, in, addresses);
  warp.block->resolve(warp, in.space, addresses, mask, unsigned(sizeof(Element)) * in.elements,
                      in.flags & kStrong ? Access::StrongWrite : Access::Write, pointers);
  moveOut<Element, Register>(warp, in, mask, pointers);
}

/// Loads a parameter of the kernel, which is the same for all lanes.
template <class Element, class Register>
void loadParameter(Warp &warp, const Instruction &in, Mask mask) {
  const uint8_t *from = warp.block->launch.parameters.data() + in.immediate;
  for (unsigned element = 0; element < in.elements; ++element) {
    Element value;
    std::memcpy(&value, from + element * sizeof(Element), sizeof value);
    Register values[kLanes];
    std::fill(values, values + kLanes, Register(value));
    warp.write(in.more[element], values, mask);
  }
}

enum class What : uint8_t { Load, Store, Parameter };

template <class Element, class Register>
Run runOf(What what) {
  return what == What::Load    ? load<Element, Register>
         : what == What::Store ? store<Element, Register>
                               : loadParameter<Element, Register>;
}

/// Returns the instance for elements of |type| in registers of |bytes|; null if the register is too narrow.
Run runFor(What what, const std::string &type, unsigned bytes) {
  unsigned size = typeBytes(type);
  bool isSigned = isSignedType(type);
  if (size > bytes) {
    return nullptr;
  }
  switch (size) {
  case 1:
    return bytes == 2   ? (isSigned ? runOf<int8_t, int16_t>(what) : runOf<uint8_t, uint16_t>(what))
           : bytes == 4 ? (isSigned ? runOf<int8_t, int32_t>(what) : runOf<uint8_t, uint32_t>(what))
                        : (isSigned ? runOf<int8_t, int64_t>(what) : runOf<uint8_t, uint64_t>(what));
  case 2:
    return bytes == 2   ? runOf<uint16_t, uint16_t>(what)
           : bytes == 4 ? (isSigned ? runOf<int16_t, int32_t>(what) : runOf<uint16_t, uint32_t>(what))
                        : (isSigned ? runOf<int16_t, int64_t>(what) : runOf<uint16_t, uint64_t>(what));
  case 4:
    return bytes == 4 ? runOf<uint32_t, uint32_t>(what)
                      : (isSigned ? runOf<int32_t, int64_t>(what) : runOf<uint32_t, uint64_t>(what));
  case 8:
    return runOf<uint64_t, uint64_t>(what);
  default:
    return nullptr;
  }
}

void takeCacheHints(Decoding &d) {
  for (const char *each :
       {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_last", "L1::evict_first", "L1::no_allocate",
        "L1::evict_normal", "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B", "weak"}) {
    d.has(each);
  }
}

Kind kindOf(Space space, bool isStore) {
  switch (space) {
  case Space::Shared:
    return isStore ? Kind::SharedStore : Kind::SharedLoad;
  case Space::Local:
    return Kind::LocalMemory;
  case Space::Parameter:
    return Kind::ParameterLoad;
  default:
    return isStore ? Kind::GlobalStore : Kind::GlobalLoad;
  }
}

void decodeMemory(Decoding &d, bool isStore) {
  std::string type = d.type();
  Space space = spaceOf(d);
  takeCacheHints(d);
  bool isAcquire = d.has("acquire"), isRelease = d.has("release");
  uint32_t flags = takeOrdering(d) ? uint32_t(kStrong) : 0;
  d.instruction.flags = flags | (isAcquire ? kAcquire : 0) | (isRelease ? kRelease : 0);
  d.instruction.elements = d.has("v2") ? 2 : d.has("v4") ? 4 : d.has("v8") ? 8 : 1;
  const Operand &address = d.operand(isStore ? 0 : 1), &data = d.operand(isStore ? 1 : 0);
  const Variable *variable = address.kind == Operand::Address ? address.parts[0].variable : nullptr;
  bool isOwn = space == Space::Parameter && variable && variable->space == Space::Parameter &&
               d.decoder.isKernelParameter(*variable);
  if (space == Space::Parameter && !isOwn && variable && variable->space == Space::Parameter) {
    space = Space::Local; // a parameter of an inlined call
  }
  d.address(address);
  d.instruction.space = space;
  d.instruction.kind = kindOf(space, isStore);
  bool isVector = data.kind == Operand::Vector;
  if (isVector ? data.parts.size() != d.instruction.elements : d.instruction.elements != 1) {
    d.reject("has a number of registers that differs from its number of elements");
  }
  uint8_t bytes = uint8_t(std::max(2u, typeBytes(type)));
  for (unsigned i = 0; i < d.instruction.elements; ++i) {
    const Operand &each = isVector ? data.parts[i] : data;
    uint8_t mine = bytes;
    d.instruction.more[i] = isStore ? d.anySource(each, type, mine) : d.anyDestination(each, mine);
    if (i > 0 && mine != bytes) {
      d.reject("has registers of different widths");
    }
    bytes = mine;
  }
  if (isOwn && !isStore) {
    d.instruction.immediate += int64_t(d.decoder.addressOf(address.parts[0], d.statement.line));
    if (uint64_t(d.instruction.immediate) + typeBytes(type) * d.instruction.elements >
        d.decoder.kernel.parameterBytes) {
      d.reject("reads beyond the kernel's parameters");
    }
    d.instruction.run = runFor(What::Parameter, type, bytes);
  } else {
    d.instruction.run = runFor(isStore ? What::Store : What::Load, type, bytes);
  }
  if (!d.instruction.run) {
    d.reject("is not supported by the PTX machine for this type and register");
  }
}

void ld(Decoding &d) { decodeMemory(d, false); }
void st(Decoding &d) { decodeMemory(d, true); }

void nothing(Warp &, const Instruction &, Mask) {}

void prefetch(Decoding &d) {
  spaceOf(d);
  for (const char *each : {"L1", "L2", "L2::evict_last", "L2::evict_normal"}) {
    d.has(each);
  }
  d.address(d.operand(0));
  d.instruction.run = nothing;
}

void fenceLanes(Warp &warp, const Instruction &, Mask) { warp.block->fence(); }

void fence(Decoding &d) {
  bool isBlock = d.has("cta");
  for (const char *each : {"gl", "sys", "gpu", "cluster", "acq_rel", "sc", "acquire", "release"}) {
    d.has(each);
  }
  d.instruction.kind = Kind::Control;
  d.instruction.run = isBlock ? nothing : fenceLanes;
}

} // namespace

const DecodeTable &memoryInstructions() {
  static const DecodeTable table = {
      {"ld", ld},        {"ldu", ld},     {"st", st}, {"prefetch", prefetch}, {"prefetchu", prefetch},
      {"membar", fence}, {"fence", fence}};
  return table;
}

} // namespace ptx
