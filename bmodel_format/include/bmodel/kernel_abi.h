// SPDX-License-Identifier: Apache-2.0
//===- kernel_abi.h - How the runtime calls a compiled CPU kernel ---------===//
//
// The contract between generated x86 code and libbmrt. Included by both sides; depends on nothing
// but <stdint.h>, and is versioned like a schema: a change raises BM_KERNEL_ABI_VERSION, which
// every CPU subnet carries and the loader compares.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_KERNEL_ABI_H
#define BMODEL_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of this header (SubnetDef.kernel_abi).
#define BM_KERNEL_ABI_VERSION 1

/// Alignment in bytes of |scratch|, and of every pointer in |args| for which the kernel's contract
/// (kernel_contract.h) asks no less: one cache line, one zmm register.
#define BM_ALIGNMENT 64

/// A kernel computes the tiles [tile_begin, tile_end) of one launch.
///
/// |args| holds one base pointer per tensor slot of the launch, in the order of LaunchDef.args: by
/// convention operands, then results. A launch with LaunchDef.dims has one pointer more, to an
/// int64_t array with the values of these dim slots. Pointers are aligned as said above;
/// tensors may be views, and constants are mapped read-only (a store to one ends the process).
///
/// Tiles are independent: the runtime may run them in any split, in any order and on several
/// threads at once, and the results must be the same bits for every split.
///
/// |scratch| is private to the calling thread for the duration of the call, aligned to
/// BM_ALIGNMENT, at least LaunchDef.scratch_bytes long, contents undefined; it is null if
/// scratch_bytes is 0.
///
/// A kernel is called with MXCSR = 0x1F80 (round to nearest, denormals kept) and must leave it so.
/// It may call only memcpy, memset and memmove (the loader's whole import table), must not use
/// thread-local storage, and must not unwind.
typedef void (*bm_kernel_fn)(void *const *args, int64_t tile_begin, int64_t tile_end, void *scratch);

#ifdef __cplusplus
}
#endif

#endif // BMODEL_KERNEL_ABI_H
