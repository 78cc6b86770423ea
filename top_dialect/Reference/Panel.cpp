//===- Panel.cpp - Inner loop of convolution and matmul -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Reference/Panel.h"

#include <algorithm>

// Processes four rows at a time, so that an accumulator is loaded and stored once per four multiplications.
#define TESSERA_MULTIPLY_PANEL(T)                                                                                      \
  int64_t k = 0;                                                                                                       \
  for (; k + 4 <= depth; k += 4) {                                                                                     \
    T a = row[k], b = row[k + 1], c = row[k + 2], d = row[k + 3];                                                      \
    const T *p = panel + k * width, *q = p + width, *r = q + width, *s = r + width;                                    \
    for (int64_t i = 0; i < width; ++i) {                                                                              \
      acc[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i];                                                             \
    }                                                                                                                  \
  }                                                                                                                    \
  for (; k < depth; ++k) {                                                                                             \
    for (int64_t i = 0; i < width; ++i) {                                                                              \
      acc[i] += row[k] * panel[k * width + i];                                                                         \
    }                                                                                                                  \
  }

namespace tessera::top::reference {

// The reference of every test should not take minutes: choose the vector width at run time.
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void
multiplyPanel(const double *__restrict row, const double *__restrict panel, int64_t depth, int64_t width,
              double *__restrict acc) {
  TESSERA_MULTIPLY_PANEL(double)
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void
multiplyPanel(const uint64_t *__restrict row, const uint64_t *__restrict panel, int64_t depth, int64_t width,
              uint64_t *__restrict acc) {
  TESSERA_MULTIPLY_PANEL(uint64_t)
}

void multiplyPanel(const int64_t *row, const int64_t *panel, int64_t depth, int64_t width, int64_t *acc) {
  // In two's complement, the wrapped product and sum do not depend on the sign.
  multiplyPanel(reinterpret_cast<const uint64_t *>(row), reinterpret_cast<const uint64_t *>(panel), depth, width,
                reinterpret_cast<uint64_t *>(acc));
}

int64_t panelWidth(int64_t depth, int64_t columns) {
  constexpr int64_t kPanelElements = 1 << 17;
  int64_t width = std::clamp<int64_t>(kPanelElements / std::max<int64_t>(depth, 1), 64, 512);
  return std::min(width, columns);
}

} // namespace tessera::top::reference
