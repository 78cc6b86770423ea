//===- Lanes.h - One operation on 32 lanes --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// Loops compute all lanes, so that the compiler vectorises them, and then store those of the mask.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_LANES_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_LANES_H

#include "bmruntime/ptx_machine/Execution/Warp.h"
#include "bmruntime/ptx_machine/Frontend/Decoder.h"

namespace ptx {

template <class To, class A, class Op>
void unaryLanes(Warp &warp, const Instruction &in, Mask mask) {
  const A *a = warp.reg<A>(in.a);
  alignas(64) To result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = Op()(a[i]);
  }
  warp.write(in.to, result, mask);
}

template <class To, class A, class B, class Op>
void binaryLanes(Warp &warp, const Instruction &in, Mask mask) {
  const A *a = warp.reg<A>(in.a);
  const B *b = warp.reg<B>(in.b);
  alignas(64) To result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = Op()(a[i], b[i]);
  }
  warp.write(in.to, result, mask);
}

template <class To, class A, class B, class C, class Op>
void ternaryLanes(Warp &warp, const Instruction &in, Mask mask) {
  const A *a = warp.reg<A>(in.a);
  const B *b = warp.reg<B>(in.b);
  const C *c = warp.reg<C>(in.c);
  alignas(64) To result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = Op()(a[i], b[i], c[i]);
  }
  warp.write(in.to, result, mask);
}

/// Decode operands of one type: to, a[, b[, c]].
inline void decodeUnary(Decoding &d, Run run, const std::string &type, const std::string &result) {
  d.instruction.run = run;
  d.instruction.to = d.destination(0, typeBytes(result));
  d.instruction.a = d.source(1, type);
}
inline void decodeBinary(Decoding &d, Run run, const std::string &type) {
  decodeUnary(d, run, type, type);
  d.instruction.b = d.source(2, type);
}
inline void decodeTernary(Decoding &d, Run run, const std::string &type) {
  decodeBinary(d, run, type);
  d.instruction.c = d.source(3, type);
}

/// Returns the instance of Op, a template of the lane type, for |type|; null if there is none.
template <template <class> class Op, template <class, class> class Make>
Run forInteger(const std::string &type) {
  if (type == "u16") {
    return Make<uint16_t, Op<uint16_t>>::run;
  }
  if (type == "s16") {
    return Make<int16_t, Op<int16_t>>::run;
  }
  if (type == "u32") {
    return Make<uint32_t, Op<uint32_t>>::run;
  }
  if (type == "s32") {
    return Make<int32_t, Op<int32_t>>::run;
  }
  if (type == "u64") {
    return Make<uint64_t, Op<uint64_t>>::run;
  }
  if (type == "s64") {
    return Make<int64_t, Op<int64_t>>::run;
  }
  return nullptr;
}

template <class T, class Op>
struct Unary {
  static constexpr Run run = unaryLanes<T, T, Op>;
};
template <class T, class Op>
struct Binary {
  static constexpr Run run = binaryLanes<T, T, T, Op>;
};
template <class T, class Op>
struct Ternary {
  static constexpr Run run = ternaryLanes<T, T, T, T, Op>;
};

/// Decodes float variants of instructions that integers and floats share by name; returns false if |type| has none.
bool decodeFloat(Decoding &d, const std::string &type);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_LANES_H
