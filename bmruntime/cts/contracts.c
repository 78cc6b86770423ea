// SPDX-License-Identifier: Apache-2.0
//===- contracts.c - The kernels of kernels.c with contracts --------------===//
//
// Most contracts are for 1024 floats in 64 tiles, in the format that the compiler writes (bmodel/kernel_contract.h).
//
//===----------------------------------------------------------------------===//
#include "kernels.c"

#include "bmodel/kernel_contract.h"

#define CONTRACT(kernel, tiles, args, scratch, ...)                                                                    \
  __attribute__((used, aligned(4), section(BM_CONTRACT_SECTION))) static const struct {                                \
    uint32_t ownerBytes, contentBytes, type;                                                                           \
    char owner[sizeof(BM_CONTRACT_OWNER)];                                                                             \
    bm_kernel_contract head __attribute__((packed, aligned(4)));                                                       \
    bm_kernel_arg arg[args] __attribute__((packed, aligned(4)));                                                       \
    char symbol[sizeof(#kernel)];                                                                                      \
  } __attribute__((packed, aligned(4))) kernel##_contract = {                                                          \
      sizeof(BM_CONTRACT_OWNER),                                                                                       \
      sizeof(bm_kernel_contract) + (args) * sizeof(bm_kernel_arg) + sizeof(#kernel),                                   \
      BM_CONTRACT_NOTE,                                                                                                \
      BM_CONTRACT_OWNER,                                                                                               \
      {BM_CONTRACT_VERSION, args, tiles, scratch, 1, 64, sizeof(#kernel)},                                             \
      {__VA_ARGS__},                                                                                                   \
      #kernel};

// Kernels with one tile.
CONTRACT(increment, 1, 1, 0, {8, BM_ARG_READ | BM_ARG_WRITE, 0})
CONTRACT(less_than_five, 1, 2, 0, {8, BM_ARG_READ, 0}, {1, BM_ARG_READ | BM_ARG_WRITE, 0})

#define READ {4096, BM_ARG_READ, 4}
#define WRITTEN {4096, BM_ARG_READ | BM_ARG_WRITE, 4}
// Written by older compilers: the alignment is that of the kernel's contract.
#define OLDER {4096, BM_ARG_READ, 0}

CONTRACT(add, 64, 3, 0, READ, OLDER, WRITTEN)
CONTRACT(relu, 64, 2, 0, READ, WRITTEN)
CONTRACT(copy_by_scratch, 64, 2, 64, READ, WRITTEN)
