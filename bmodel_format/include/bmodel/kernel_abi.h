// SPDX-License-Identifier: Apache-2.0
//===- kernel_abi.h - How the runtime calls a compiled CPU kernel ---------===//
//
// The contract between generated x86 code and libbmrt; both sides include it. It depends only on <stdint.h> and is
// versioned: a change raises BM_KERNEL_ABI_VERSION, which every CPU subnet stores and the loader compares.
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

/// Alignment in bytes of |scratch| and of every pointer in |args|, unless the kernel's contract (kernel_contract.h)
/// requires less for that pointer. It is the size of one cache line and of one zmm register.
#define BM_ALIGNMENT 64

/// Computes the tiles [tile_begin, tile_end) of one launch.
///
/// |args| holds one base pointer per tensor slot of the launch, in the order of LaunchDef.args: by convention operands,
/// then results. If the launch has LaunchDef.dims, one more pointer follows; it points to an int64_t array with the
/// values of these dim slots. See BM_ALIGNMENT for the alignment. Tensors may be views. Constants are mapped read-only:
/// a store to a constant terminates the process.
///
/// Tiles are independent: the runtime may split them arbitrarily and run them in any order and on several threads at
/// once. The results must be bit-identical for every split.
///
/// |scratch| is private to the calling thread for the duration of the call. It is aligned to BM_ALIGNMENT, at least
/// LaunchDef.scratch_bytes long, and its contents are undefined; it is null if scratch_bytes is 0.
///
/// A kernel is called with MXCSR = 0x1F80 (round to nearest, denormals kept) and must leave it unchanged. It may call
/// only memcpy, memset and memmove (the loader provides no other symbols), and must neither use thread-local storage
/// nor unwind.
typedef void (*bm_kernel_fn)(void *const *args, int64_t tile_begin, int64_t tile_end, void *scratch);

#ifdef __cplusplus
}
#endif

#endif // BMODEL_KERNEL_ABI_H
