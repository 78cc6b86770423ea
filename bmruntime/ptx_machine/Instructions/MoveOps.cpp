//===- MoveOps.cpp - Moves and addresses ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Block.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <chrono>

namespace ptx {

void decodePredicateMove(Decoding &d);

namespace {

template <class T>
struct Copy {
  T operator()(T a) const { return a; }
};
template <class T>
constexpr Run kCopy = unaryLanes<T, T, Copy<T>>;

Run copyOf(unsigned bytes) {
  return bytes == 2 ? kCopy<uint16_t> : bytes == 4 ? kCopy<uint32_t> : bytes == 8 ? kCopy<uint64_t> : nullptr;
}

/// Packs parts into a whole, the first part lowest.
template <class Whole, class Part>
void packLanes(Warp &warp, const Instruction &in, Mask mask) {
  Whole result[kLanes] = {};
  for (unsigned part = 0; part < in.elements; ++part) {
    const Part *from = warp.reg<Part>(in.more[part]);
    for (unsigned i = 0; i < kLanes; ++i) {
      result[i] |= Whole(from[i]) << (8 * sizeof(Part) * part);
    }
  }
  warp.write(in.to, result, mask);
}
template <class Whole, class Part>
void unpackLanes(Warp &warp, const Instruction &in, Mask mask) {
  Whole from[kLanes]; // a part may be the same register as the whole
  std::memcpy(from, warp.reg<Whole>(in.a), sizeof from);
  for (unsigned part = 0; part < in.elements; ++part) {
    Part result[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) {
      result[i] = Part(from[i] >> (8 * sizeof(Part) * part));
    }
    warp.write(in.more[part], result, mask);
  }
}

void movePack(Decoding &d, unsigned bytes, bool isPack) {
  const Operand &vector = d.operand(isPack ? 1 : 0);
  d.instruction.elements = uint8_t(vector.parts.size());
  unsigned part = bytes / unsigned(vector.parts.size());
  if (part == 8 && bytes == 16) {
    d.reject();
  }
  if (bytes == 8 && part == 4) {
    d.instruction.run = isPack ? packLanes<uint64_t, uint32_t> : unpackLanes<uint64_t, uint32_t>;
  } else if (bytes == 8 && part == 2) {
    d.instruction.run = isPack ? packLanes<uint64_t, uint16_t> : unpackLanes<uint64_t, uint16_t>;
  } else if (bytes == 4 && part == 2) {
    d.instruction.run = isPack ? packLanes<uint32_t, uint16_t> : unpackLanes<uint32_t, uint16_t>;
  } else {
    d.reject();
  }
  std::string type = "b" + std::to_string(8 * part);
  for (size_t i = 0; i < vector.parts.size(); ++i) {
    d.instruction.more[i] = isPack ? d.source(vector.parts[i], type) : d.destination(vector.parts[i], part);
  }
  std::string whole = "b" + std::to_string(8 * bytes);
  (isPack ? d.instruction.to : d.instruction.a) = isPack ? d.destination(0, bytes) : d.source(1, whole);
}

template <class T>
void clockLanes(Warp &warp, const Instruction &in, Mask mask) {
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  T values[kLanes];
  std::fill(values, values + kLanes, T(now));
  warp.write(in.to, values, mask);
}

void mov(Decoding &d) {
  d.instruction.kind = Kind::Move;
  std::string type = d.type();
  if (type == "pred") {
    return decodePredicateMove(d);
  }
  unsigned bytes = typeBytes(type);
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (to.kind == Operand::Vector || from.kind == Operand::Vector) {
    return movePack(d, bytes, from.kind == Operand::Vector);
  }
  bool isClock = !from.variable && (from.name == "%clock" || from.name == "%clock64" || from.name == "%globaltimer" ||
                                    from.name == "%globaltimer_lo");
  if (isClock) {
    d.instruction.to = d.destination(0, bytes);
    d.instruction.run = bytes == 8 ? clockLanes<uint64_t> : clockLanes<uint32_t>;
    return;
  }
  d.instruction.run = copyOf(bytes);
  if (!d.instruction.run) {
    d.reject();
  }
  d.instruction.to = d.destination(0, bytes);
  uint8_t width = 0;
  d.instruction.a = d.anySource(from, type, width);
  if (width > bytes || (width < bytes && width != 4)) {
    d.reject("has operands of different widths");
  }
  if (width < bytes) { // a 32-bit special register
    struct Widen {
      uint64_t operator()(uint32_t a) const { return a; }
    };
    d.instruction.run = unaryLanes<uint64_t, uint32_t, Widen>;
  }
}

template <class From, class To, uint64_t kWindow>
struct ToGeneric {
  To operator()(From a) const { return To(uint64_t(a) + kWindow); }
};
template <class T>
struct FromGeneric {
  T operator()(uint64_t a) const { return T(a & ~kWindowMask); }
};

void cvta(Decoding &d) {
  std::string type = d.type();
  bool isTo = d.has("to");
  uint64_t window = d.has("shared") || d.has("shared::cta") ? kSharedWindow
                    : d.has("local")                        ? kLocalWindow
                    : d.has("param")                        ? kParameterWindow
                    : d.has("global") || d.has("const")     ? 0
                                                            : 1;
  if (typeBytes(type) != 8 || window == 1) {
    d.reject();
  }
  Run run = window == 0               ? kCopy<uint64_t>
            : isTo                    ? unaryLanes<uint64_t, uint64_t, FromGeneric<uint64_t>>
            : window == kSharedWindow ? unaryLanes<uint64_t, uint64_t, ToGeneric<uint64_t, uint64_t, kSharedWindow>>
            : window == kLocalWindow  ? unaryLanes<uint64_t, uint64_t, ToGeneric<uint64_t, uint64_t, kLocalWindow>>
                                      : unaryLanes<uint64_t, uint64_t, ToGeneric<uint64_t, uint64_t, kParameterWindow>>;
  decodeUnary(d, run, "b64", "b64");
}

void isspacepLanes(Warp &warp, const Instruction &in, Mask mask) {
  const auto *a = warp.reg<uint64_t>(in.a);
  Mask result = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    result |= Mask((a[i] & kWindowMask) == uint64_t(in.immediate)) << i;
  }
  warp.writePred(in.to, result, mask);
}

void isspacep(Decoding &d) {
  d.instruction.immediate = int64_t(d.has("shared") || d.has("shared::cta") ? kSharedWindow
                                    : d.has("local")                        ? kLocalWindow
                                    : d.has("param")                        ? kParameterWindow
                                    : d.has("global")                       ? 0
                                                                            : ~uint64_t(0));
  d.instruction.run = isspacepLanes;
  d.instruction.to = d.predicate(d.operand(0));
  d.instruction.a = d.source(1, "b64");
}

} // namespace

const DecodeTable &moveInstructions() {
  static const DecodeTable table = {{"mov", mov}, {"cvta", cvta}, {"isspacep", isspacep}};
  return table;
}

} // namespace ptx
