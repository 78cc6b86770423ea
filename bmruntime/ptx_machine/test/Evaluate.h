//===- Evaluate.h - Evaluates single instructions -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_TEST_EVALUATE_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_TEST_EVALUATE_H

#include "bmruntime/ptx_machine/test/Gpu.h"

namespace ptx::test {

using Words = std::vector<uint32_t>;
using Longs = std::vector<uint64_t>;

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Executes |body| in a warp and returns %d of each lane. Lane i finds element i of each input in %a, %b, %c; shorter
/// inputs are repeated. These four registers are .b32, or .b64 if T is uint64_t. Free registers: %p, %q, %x, %y (.b32),
/// %h0 to %h3 (.b16), %l (.b64).
template <class T = uint32_t>
std::vector<T> evaluate(const std::string &body, std::vector<T> a, std::vector<T> b = {0}, std::vector<T> c = {0}) {
  Gpu gpu;
  std::string type = sizeof(T) == 8 ? ".b64" : ".b32", size = std::to_string(sizeof(T));
  std::string text = ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
                     ".reg .pred %p, %q; .reg .b16 %h<4>; .reg .b32 %t, %x, %y; .reg .b64 %i, %o, %w, %l;\n.reg " +
                     type + " %a, %b, %c, %d;\n" +
                     "ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, " + size +
                     ";\nadd.u64 %i, %i, %w; add.u64 %o, %o, %w;\n";
  unsigned offset = 0;
  for (const char *name : {"%a", "%b", "%c"}) {
    text += "ld.global" + type + " " + name + ", [%i+" + std::to_string(offset) + "];\n";
    offset += 32 * unsigned(sizeof(T));
  }
  text += body + "\nst.global" + type + " [%o], %d;\nret;\n}\n";
  std::vector<T> inputs;
  for (const std::vector<T> *each : {&a, &b, &c}) {
    for (size_t i = 0; i < 32; ++i) {
      inputs.push_back((*each)[i % each->size()]);
    }
  }
  std::string log;
  EXPECT_EQ(gpu.load(text, &log), CUDA_SUCCESS) << log;
  CUdeviceptr out = gpu.allocate(32 * sizeof(T));
  EXPECT_EQ(gpu.run("k", 32, gpu.upload(inputs), out), CUDA_SUCCESS) << Gpu::finding();
  std::vector<T> result = gpu.download<T>(out, 32);
  result.resize(std::max(a.size(), std::max(b.size(), c.size())));
  return result;
}

/// As evaluate(), with float inputs.
inline std::vector<uint32_t> evaluateFloats(const std::string &body, const std::vector<float> &a,
                                            const std::vector<float> &b = {0}, const std::vector<float> &c = {0}) {
  auto bits = [](const std::vector<float> &values) {
    Words words;
    for (float value : values) {
      words.push_back(bitsOf(value));
    }
    return words;
  };
  return evaluate(body, bits(a), bits(b), bits(c));
}

} // namespace ptx::test

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_TEST_EVALUATE_H
