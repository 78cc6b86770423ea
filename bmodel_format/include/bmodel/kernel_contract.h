// SPDX-License-Identifier: Apache-2.0
//===- kernel_contract.h - What the code of a kernel relies on ------------===//
//
// Written by the compiler as an ELF note beside the code of the kernel, in the same segment, and compared by the loader
// with every launch. The tables of a file say how a kernel is called; this says how it must be called. As it is a part
// of the code, nobody can alter the one for the other without altering the code.
//
// Plain C, so that kernels written by hand can have one, too.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_KERNEL_CONTRACT_H
#define BMODEL_KERNEL_CONTRACT_H

#include <stdint.h>

/// Section, owner and type of the note; its alignment is 4. Its contents are a bm_kernel_contract, then |arg_count|
/// times bm_kernel_arg, then the kernel's symbol with its final 0, padded with zeros to a multiple of 4. Little endian.
#define BM_CONTRACT_SECTION ".note.tessera"
#define BM_CONTRACT_OWNER "Tessera"
#define BM_CONTRACT_NOTE 1

#define BM_CONTRACT_VERSION 1

/// Code of which one kernel has a contract has one for each.
typedef struct bm_kernel_contract {
  uint32_t version;       ///< BM_CONTRACT_VERSION
  uint32_t arg_count;     ///< length of LaunchDef.args; there are no dims
  uint64_t tiles;         ///< of the whole launch: every call is for tiles below
  uint64_t scratch_bytes; ///< per thread
  uint64_t cpu_features;  ///< bits of cpu_features.inc, all needed
  uint32_t alignment;     ///< of scratch and of every argument that names none, at most BM_ALIGNMENT
  uint32_t symbol_bytes;  ///< with the final 0, without padding
} bm_kernel_contract;

/// What a kernel does with an argument.
#define BM_ARG_READ 1u
#define BM_ARG_WRITE 2u

typedef struct bm_kernel_arg {
  uint64_t bytes; ///< of the tensor: no byte beyond is touched
  uint32_t access;
  uint32_t alignment; ///< a power of two, at most the contract's; 0, as older compilers write: the contract's
} bm_kernel_arg;

#endif // BMODEL_KERNEL_CONTRACT_H
