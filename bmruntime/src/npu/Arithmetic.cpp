// SPDX-License-Identifier: Apache-2.0
//===- Arithmetic.cpp - Vectorised element-wise functions -------------------===//
//
// Compiled without contraction: each multiplication and addition is rounded, as bmodel/numerics_float.h requires.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"

#include "EveryWidth.h"
#include "SmallFloat.h"
#include "bmodel/numerics_float.h"

#include <bit>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;
namespace numerics = bmodel::numerics;

using numerics::Single;

/// Computes y = compute(a, b, c) element by element; simple enough for the auto-vectoriser.
template <typename Compute>
[[gnu::always_inline]] inline void forEach(float *y, const float *a, const float *b, const float *c, uint32_t count,
                                           Compute compute) {
  for (uint32_t i = 0; i < count; ++i) {
    y[i] = compute(Single{a[i]}, Single{b[i]}, Single{c[i]}).v;
  }
}

/// Returns the larger value: NaN if either is NaN; +0 is larger than -0.
inline Single maximum(Single x, Single y) {
  Single larger = x > y ? x : y > x ? y : Single{std::signbit(x.v) ? y.v : x.v};
  return x.v != x.v ? x : y.v != y.v ? y : larger;
}

inline Single one(bool condition) { return {condition ? 1.0f : 0.0f}; }
inline Single silu(Single x) { return x * numerics::sigmoid(x); }
inline Single gelu(Single x) {
  return x.lit(0.5) * x * (x.lit(1.0) + numerics::erf(x * x.lit(0.70710678118654752440)));
}
inline Single clampTo(Single x, float lower, float upper) { return -maximum(-maximum(x, {lower}), {-upper}); }

} // namespace

#define NPU_CASE(name, expression)                                                                                     \
  case Op::name:                                                                                                       \
    return forEach(y, a, b, c, count, [](Single p, Single q, Single r) -> Single { return expression; });

NPU_EVERY_WIDTH void apply(const Instruction &instruction, float *y, const float *a, const float *b, const float *c,
                           uint32_t count) {
  switch (instruction.op) {
  case Op::constant: {
    Single value{std::bit_cast<float>(instruction.extra)};
    return forEach(y, a, b, c, count, [value](Single, Single, Single) { return value; });
  }
    NPU_CASE(add, p + q)
    NPU_CASE(sub, p - q)
    NPU_CASE(mul, p * q)
    NPU_CASE(div, p / q)
    NPU_CASE(maximum, maximum(p, q))
    NPU_CASE(minimum, -maximum(-p, -q))
    NPU_CASE(neg, -p)
    NPU_CASE(abs, numerics::abs(p))
    NPU_CASE(floor, Single{std::floor(p.v)})
    NPU_CASE(ceil, Single{std::ceil(p.v)})
    NPU_CASE(roundEven, numerics::roundEven(p))
    NPU_CASE(truncate, Single{std::trunc(p.v)})
    NPU_CASE(copySign, numerics::copySign(p, q))
    NPU_CASE(sqrt, Single{std::sqrt(p.v)})
    NPU_CASE(mulAdd, mulAdd(p, q, r))
    NPU_CASE(exp, numerics::exp(p))
    NPU_CASE(expNegative, numerics::expOfNegative(p))
    NPU_CASE(log, numerics::log(p))
    NPU_CASE(tanh, numerics::tanh(p))
    NPU_CASE(erf, numerics::erf(p))
    NPU_CASE(sigmoid, numerics::sigmoid(p))
    NPU_CASE(less, one(p < q))
    NPU_CASE(lessEqual, one(p.v <= q.v))
    NPU_CASE(equal, one(p == q))
    NPU_CASE(select, numerics::select(p.v != 0.0f, q, r))
    NPU_CASE(roundBf16, Single{toFloat(fromFloat<Bf16>(p.v))})
    NPU_CASE(roundF16, Single{toFloat(fromFloat<F16>(p.v))})
  }
}
#undef NPU_CASE

NPU_EVERY_WIDTH void apply(Function function, float alpha, float *v, uint32_t count) {
  auto run = [&](auto compute) { forEach(v, v, v, v, count, [&](Single x, Single, Single) { return compute(x); }); };
  switch (function) {
  case Function::none:
    return;
  case Function::relu:
    return run([](Single x) { return maximum(x, x.lit(0.0)); });
  case Function::leakyRelu:
    return run([alpha](Single x) { return numerics::select(x < x.lit(0.0), x * Single{alpha}, x); });
  case Function::sigmoid:
    return run([](Single x) { return numerics::sigmoid(x); });
  case Function::silu:
    return run([](Single x) { return silu(x); });
  case Function::tanh:
    return run([](Single x) { return numerics::tanh(x); });
  case Function::gelu:
    return run([](Single x) { return gelu(x); });
  case Function::hardSigmoid:
    return run([alpha](Single x) { return clampTo(x * Single{alpha} + x.lit(0.5), 0, 1); });
  case Function::hardSwish:
    return run([](Single x) { return x * clampTo(x * x.lit(1.0 / 6) + x.lit(0.5), 0, 1); });
  case Function::exp:
    return run([](Single x) { return numerics::exp(x); });
  }
}

NPU_EVERY_WIDTH void toFloats(float *v, const int32_t *sums, int32_t bias, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    v[i] = float(int32_t(uint32_t(sums[i]) + uint32_t(bias)));
  }
}

NPU_EVERY_WIDTH void scale(float *v, float factor, uint32_t count) {
  forEach(v, v, v, v, count, [factor](Single x, Single, Single) { return x * Single{factor}; });
}

NPU_EVERY_WIDTH void addScaled(float *v, const float *r, float zero, float scale, uint32_t count) {
  forEach(v, v, r, v, count, [=](Single x, Single y, Single) { return x + (y - Single{zero}) * Single{scale}; });
}

NPU_EVERY_WIDTH void addScaledRow(float *sums, const float *row, float factor, uint32_t count) {
  forEach(sums, sums, row, sums, count, [factor](Single x, Single y, Single) { return mulAdd(Single{factor}, y, x); });
}

NPU_EVERY_WIDTH void clamp(float *v, float lower, float upper, uint32_t count) {
  forEach(v, v, v, v, count, [=](Single x, Single, Single) { return clampTo(x, lower, upper); });
}

NPU_EVERY_WIDTH void quantise(float *v, float divisor, float zeroPoint, uint32_t count) {
  forEach(v, v, v, v, count, [=](Single x, Single, Single) {
    x = divisor == 1 ? x : x / Single{divisor};
    return numerics::roundEven(x) + Single{zeroPoint};
  });
}

} // namespace bmrt::npu
