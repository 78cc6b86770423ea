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

/// Section, owner and type of the note; the note's alignment is 4. The note contains a bm_kernel_contract, |arg_count|
/// bm_kernel_args, and the kernel's symbol with its terminating 0, padded with zeros to a multiple of 4. All fields are
/// little endian.
#define BM_CONTRACT_SECTION ".note.tessera"
#define BM_CONTRACT_OWNER "Tessera"
#define BM_CONTRACT_NOTE 1

#define BM_CONTRACT_VERSION 1

/// The contract of one kernel. If one kernel of a code segment has a contract, every kernel must have one.
typedef struct bm_kernel_contract {
  uint32_t version;       ///< BM_CONTRACT_VERSION
  uint32_t arg_count;     ///< length of LaunchDef.args; a launch with a contract has no dims
  uint64_t tiles;         ///< tiles of the whole launch: tile_end of a call is at most this
  uint64_t scratch_bytes; ///< scratch bytes per thread
  uint64_t cpu_features;  ///< bits of cpu_features.inc; all are required
  uint32_t alignment;     ///< of scratch and of every argument whose own alignment is 0; at most BM_ALIGNMENT
  uint32_t symbol_bytes;  ///< length of the symbol with its terminating 0, without padding
} bm_kernel_contract;

/// Accesses of a kernel to an argument: a bit set.
#define BM_ARG_READ 1u
#define BM_ARG_WRITE 2u

typedef struct bm_kernel_arg {
  uint64_t bytes; ///< size of the tensor; the kernel accesses no byte beyond it
  uint32_t access;
  uint32_t alignment; ///< a power of two, at most the contract's; 0 (written by older compilers): the contract's
} bm_kernel_arg;

#endif // BMODEL_KERNEL_CONTRACT_H
