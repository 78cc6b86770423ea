// SPDX-License-Identifier: Apache-2.0
//===- kernels.c - Kernels of the conformance suite's models --------------===//
//
// Compiled into a shared object without libraries, like kernels of the compiler.
//
//===----------------------------------------------------------------------===//
#include "bmodel/kernel_abi.h"

void *memcpy(void *to, const void *from, unsigned long bytes);

// Computes z = x + y, 16 floats per tile.
void add(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *x = args[0], *y = args[1];
  float *z = args[2];
  for (int64_t i = begin * 16; i < end * 16; ++i) {
    z[i] = x[i] + y[i];
  }
}

// Computes y = max(x, 0), 16 floats per tile.
void relu(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *x = args[0];
  float *y = args[1];
  for (int64_t i = begin * 16; i < end * 16; ++i) {
    y[i] = x[i] > 0 ? x[i] : 0;
  }
}

// Copies x to y through 64 bytes of scratch and an imported function, 16 floats per tile.
void copy_by_scratch(void *const *args, int64_t begin, int64_t end, void *scratch) {
  for (int64_t i = begin; i < end; ++i) {
    memcpy(scratch, (const char *)args[0] + 64 * i, 64);
    memcpy((char *)args[1] + 64 * i, scratch, 64);
  }
}

// Calls through a table of function addresses, which the loader must relocate.
static float twice(float x) { return 2 * x; }
static float negate(float x) { return -x; }
static float (*volatile const table[])(float) = {twice, negate};
void double_or_negate(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *x = args[0];
  float *y = args[1];
  for (int64_t i = begin * 16; i < end * 16; ++i) {
    y[i] = table[i & 1](x[i]);
  }
}

// Computes *x += 1, int64.
void increment(void *const *args, int64_t begin, int64_t end, void *scratch) { *(int64_t *)args[0] += 1; }

// Computes *less = *x < 5, int64 to bool.
void less_than_five(void *const *args, int64_t begin, int64_t end, void *scratch) {
  *(unsigned char *)args[1] = *(const int64_t *)args[0] < 5;
}

// Computes y[i] = x[i] + dims[0]; one float per tile.
void add_dim(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *x = args[0];
  float *y = args[1];
  const int64_t *dims = args[2];
  for (int64_t i = begin; i < end; ++i) {
    y[i] = x[i] + (float)dims[0];
  }
}

// Computes y[i] = x[i] * 1e-30f * 1e-10f, which is a denormal unless the float mode is wrong.
void make_denormal(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const volatile float *x = args[0];
  float *y = args[1];
  for (int64_t i = begin * 16; i < end * 16; ++i) {
    y[i] = x[i] * 1e-30f * 1e-10f;
  }
}
