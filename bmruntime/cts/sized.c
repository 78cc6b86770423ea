// SPDX-License-Identifier: Apache-2.0
//===- sized.c - Kernels whose sizes are known at run time ----------------===//
//
// Their contracts have version 2 (bmodel/kernel_contract.h). Parameter 0 is n, from 0 to 2^40, parameter 1 is m, from 0
// to 11.
//
//===----------------------------------------------------------------------===//
#include "bmodel/kernel_abi.h"
#include "bmodel/kernel_contract.h"

#define CONST(value) {value, BM_DIM_CONST, {0}}
#define N {0, BM_DIM_PARAM, {0}}
#define M {1, BM_DIM_PARAM, {0}}
#define ADD {0, BM_DIM_ADD, {0}}
#define MUL {0, BM_DIM_MUL, {0}}
#define CEIL_DIV {0, BM_DIM_CEIL_DIV, {0}}

// Expressions and their lengths: n, 12 * n * m, 4 * (n + m), n * ceil(3 * m / 2), and four times that.
#define ROWS N
#define ROWS_TERMS 1
#define MATRIX CONST(12), N, MUL, M, MUL
#define MATRIX_TERMS 5
#define SUM CONST(4), N, M, ADD, MUL
#define SUM_TERMS 5
#define HALVES N, CONST(3), M, MUL, CONST(2), CEIL_DIV, MUL
#define HALVES_TERMS 7
#define HALVES_BYTES CONST(4), HALVES, MUL
#define HALVES_BYTES_TERMS 9

#define READ(bytes) {bytes, BM_ARG_READ, 4}
#define WRITTEN(bytes) {bytes, BM_ARG_READ | BM_ARG_WRITE, 4}
#define LIST(...) {__VA_ARGS__}

#define CONTRACT(kernel, arg_list, arg_total, length_list, term_list, term_total)                                      \
  struct kernel##_contents {                                                                                           \
    bm_kernel_contract head;                                                                                           \
    bm_kernel_arg args[arg_total];                                                                                     \
    uint32_t param_count;                                                                                              \
    bm_kernel_param params[2];                                                                                         \
    uint32_t lengths[1 + arg_total];                                                                                   \
    bm_dim_term terms[term_total];                                                                                     \
    char symbol[sizeof(#kernel)];                                                                                      \
  } __attribute__((packed));                                                                                           \
  __attribute__((used, aligned(4), section(BM_CONTRACT_SECTION))) static const struct {                                \
    uint32_t owner_bytes, content_bytes, type;                                                                         \
    char owner[sizeof(BM_CONTRACT_OWNER)];                                                                             \
    struct kernel##_contents contents;                                                                                 \
  } __attribute__((packed, aligned(4))) kernel##_contract = {                                                          \
      sizeof(BM_CONTRACT_OWNER),                                                                                       \
      sizeof(struct kernel##_contents),                                                                                \
      BM_CONTRACT_NOTE,                                                                                                \
      BM_CONTRACT_OWNER,                                                                                               \
      {{BM_CONTRACT_VERSION_DIMS, arg_total, 0, 0, 1, 64, sizeof(#kernel)},                                            \
       arg_list,                                                                                                       \
       2,                                                                                                              \
       {{0, (int64_t)1 << 40}, {0, 11}},                                                                               \
       length_list,                                                                                                    \
       term_list,                                                                                                      \
       #kernel}};

// Computes s[i][j] = x[i][j] + b[j % 3] for rows of 3 * m floats, one row per tile.
void add_bias(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *x = args[0], *b = args[1];
  float *s = args[2];
  const int64_t *dims = args[3], width = 3 * dims[1];
  for (int64_t i = begin * width; i < end * width; ++i) {
    s[i] = x[i] + b[i % 3];
  }
}
CONTRACT(add_bias, LIST(READ(0), READ(12), WRITTEN(0)), 3, LIST(ROWS_TERMS, MATRIX_TERMS, 0, MATRIX_TERMS),
         LIST(ROWS, MATRIX, MATRIX), 11)

// Computes y[i][k] = s[i][2 * k] + s[i][2 * k + 1] + t[i] + t[n + m - 1]; s is 0 beyond a row. One float per tile.
void add_pairs(void *const *args, int64_t begin, int64_t end, void *scratch) {
  const float *s = args[0], *t = args[1];
  float *y = args[2];
  const int64_t *dims = args[3], width = 3 * dims[1], halves = (width + 1) / 2;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = i / halves, k = 2 * (i % halves);
    const float *pair = s + row * width + k;
    y[i] = pair[0] + (k + 1 < width ? pair[1] : 0) + t[row] + t[dims[0] + dims[1] - 1];
  }
}
CONTRACT(add_pairs, LIST(READ(0), READ(0), WRITTEN(0)), 3,
         LIST(HALVES_TERMS, MATRIX_TERMS, SUM_TERMS, HALVES_BYTES_TERMS), LIST(HALVES, MATRIX, SUM, HALVES_BYTES), 26)

// Copies 16 floats. Its contract has version 1.
void copy_line(void *const *args, int64_t begin, int64_t end, void *scratch) {
  for (int i = 0; i < 16; ++i) {
    ((float *)args[1])[i] = ((const float *)args[0])[i];
  }
}
__attribute__((used, aligned(4), section(BM_CONTRACT_SECTION))) static const struct {
  uint32_t owner_bytes, content_bytes, type;
  char owner[sizeof(BM_CONTRACT_OWNER)];
  struct {
    bm_kernel_contract head;
    bm_kernel_arg args[2];
    char symbol[sizeof("copy_line")];
  } __attribute__((packed)) contents;
} __attribute__((packed, aligned(4))) copy_line_contract = {
    sizeof(BM_CONTRACT_OWNER),
    sizeof(bm_kernel_contract) + 2 * sizeof(bm_kernel_arg) + sizeof("copy_line"),
    BM_CONTRACT_NOTE,
    BM_CONTRACT_OWNER,
    {{BM_CONTRACT_VERSION, 2, 1, 0, 1, 64, sizeof("copy_line")}, {READ(64), WRITTEN(64)}, "copy_line"}};
