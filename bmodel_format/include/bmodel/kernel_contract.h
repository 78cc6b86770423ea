// SPDX-License-Identifier: Apache-2.0
//===- kernel_contract.h - Requirements of a kernel's code ----------------===//
//
// The compiler writes the contract as an ELF note beside the code of the kernel, in the same segment; the loader
// compares it with every launch. The flatbuffer states how a kernel is called; the contract states how it must be
// called. As the contract is part of the code segment, a change to the flatbuffer alone cannot make the loader call a
// kernel in a way that its code does not support.
//
// The header is plain C, so that hand-written kernels can have a contract, too.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_KERNEL_CONTRACT_H
#define BMODEL_KERNEL_CONTRACT_H

#include <stdint.h>

/// Section, owner and type of the note; the note's alignment is 4. All fields are little endian, without padding
/// between the parts. The note contains, in this order:
///
///     bm_kernel_contract head
///     bm_kernel_arg      args[head.arg_count]
///     uint32_t           param_count                 version 2 only
///     bm_kernel_param    params[param_count]         version 2 only
///     uint32_t           lengths[1 + head.arg_count] version 2 only
///     bm_dim_term        terms[sum of lengths]       version 2 only
///     char               symbol[head.symbol_bytes], padded with zeros to a multiple of 4
#define BM_CONTRACT_SECTION ".note.tessera"
#define BM_CONTRACT_OWNER "Tessera"
#define BM_CONTRACT_NOTE 1

/// Versions of a contract. Kernels without dims have version 1, which all runtimes can read. Kernels with dims have
/// version 2.
#define BM_CONTRACT_VERSION 1
#define BM_CONTRACT_VERSION_DIMS 2

/// The contract of one kernel. If one kernel of a code segment has a contract, every kernel must have one.
typedef struct bm_kernel_contract {
  uint32_t version;       ///< BM_CONTRACT_VERSION or BM_CONTRACT_VERSION_DIMS
  uint32_t arg_count;     ///< length of LaunchDef.args
  uint64_t tiles;         ///< tiles of the whole launch, unless an expression computes them: tile_end is at most this
  uint64_t scratch_bytes; ///< scratch bytes per thread, enough for all sizes
  uint64_t cpu_features;  ///< bits of cpu_features.inc; all are required
  uint32_t alignment;     ///< of scratch and of every argument whose own alignment is 0; at most BM_ALIGNMENT
  uint32_t symbol_bytes;  ///< length of the symbol with its terminating 0, without padding
} bm_kernel_contract;

/// Accesses of a kernel to an argument: a bit set.
#define BM_ARG_READ 1u
#define BM_ARG_WRITE 2u

typedef struct bm_kernel_arg {
  uint64_t bytes; ///< size of the tensor, unless an expression computes it; the kernel accesses no byte beyond it
  uint32_t access;
  uint32_t alignment; ///< a power of two, at most the contract's; 0 (written by older compilers): the contract's
} bm_kernel_arg;

/// Version 2. Parameter i is the i-th of LaunchDef.dims: the code relies on min <= dims[i] <= max, 0 <= min.
typedef struct bm_kernel_param {
  int64_t min, max;
} bm_kernel_param;

/// Version 2. A term of a postfix expression over the parameters; the layout of bmodel::DimTerm. lengths[0] is the
/// number of terms of the expression for the tiles, lengths[1 + i] that for the bytes of argument i; the terms follow
/// each other in this order. A length of 0 stands for the constant in head.tiles or args[i].bytes. A launch is allowed
/// if its tile count equals the value of the first expression, and if every argument's tensor has at least the bytes
/// that its expression yields.
typedef struct bm_dim_term {
  int64_t value;   ///< BM_DIM_CONST: the number; BM_DIM_PARAM: the index of the parameter
  uint8_t op;      ///< one of the following; the values of bmodel::DimOp
  uint8_t zero[7]; ///< 0
} bm_dim_term;

/// Operations of terms. The first two push a value; the others pop two (a below b) and push `a op b`.
#define BM_DIM_CONST 0
#define BM_DIM_PARAM 1
#define BM_DIM_ADD 2
#define BM_DIM_SUB 3
#define BM_DIM_MUL 4
#define BM_DIM_FLOOR_DIV 5
#define BM_DIM_CEIL_DIV 6
#define BM_DIM_MOD 7
#define BM_DIM_MIN 8
#define BM_DIM_MAX 9

#endif // BMODEL_KERNEL_CONTRACT_H
