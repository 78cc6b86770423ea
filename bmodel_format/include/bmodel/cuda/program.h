// SPDX-License-Identifier: Apache-2.0
//===- program.h - Programs of the family cuda ----------------------------===//
//
// The interface between the compiler (codegen/Cuda) and the runtime (bmruntime/src/cuda). All fields are little endian,
// without padding.
//
// The code segment of a model begins with a Directory, followed by its images and its kernels. An image is PTX text,
// terminated by a zero byte, or machine code (a cubin) for one compute capability. Every image contains all kernels;
// the kernel table lists their names.
//
// A stream (RunStreamOnDef) is a list of launches, each followed by its arguments, executed one after another.
// Arguments refer to a tensor by its position in the step's list: inputs (constants included) first, then outputs. If
// the subnet has a stream workspace, the workspace is one more tensor after them.
//
// Version 2 adds sizes that are known at run time. A stream of this version begins with a SizeTable, followed by
//
//     bm_kernel_param params[paramCount]    ranges of the step's dims (kernel_contract.h), on which the kernels rely
//     uint32_t        lengths[sizeCount]    numbers of terms
//     bm_dim_term     terms[sum of lengths]
//
// Size i is the value of its lengths[i] terms over the step's dims. Each Launch is followed by a Grid, then by its
// arguments. Sizes are part of the code, like the reach of a pointer: a change to the rest of the file cannot make a
// kernel access bytes that it was not compiled for.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CUDA_PROGRAM_H
#define BMODEL_CUDA_PROGRAM_H

#include <cstdint>

namespace bmodel::cuda {

/// SubnetDef.kernel_abi and Directory.version: programs whose sizes are all constants have version 1.
inline constexpr uint32_t kVersion = 1, kVersionSizes = 2;
inline constexpr uint32_t kMagic = 0x41445543; ///< "CUDA"

/// The start of the code segment; imageCount Images and then kernelCount Kernels follow.
struct Directory {
  uint32_t magic, version;
  uint32_t imageCount, kernelCount;
};
static_assert(sizeof(Directory) == 16);

/// An image with the code of all kernels, at [offset, offset + bytes) of the segment.
struct Image {
  uint32_t computeCapability; ///< 80 means 8.0: the minimum for PTX, the same major version for machine code
  uint32_t isMachineCode;     ///< 0: PTX text
  uint64_t offset, bytes;     ///< bytes include the zero byte at the end of PTX
};
static_assert(sizeof(Image) == 24);

/// A kernel function. Its zero-terminated name begins at nameOffset of the segment.
struct Kernel {
  uint32_t nameOffset;
  uint32_t argumentCount;
};
static_assert(sizeof(Kernel) == 8);

/// A kernel launch on `grid` blocks of `block` threads each; its arguments follow in the stream.
struct Launch {
  uint32_t kernel; ///< index into the Directory's kernels
  uint32_t argumentCount;
  uint32_t grid[3], block[3];
  uint32_t sharedBytes; ///< dynamic shared memory per block, in addition to what the kernel declares
  uint32_t layer;       ///< index into the step's ONNX nodes, for messages; kNoLayer: none
};
static_assert(sizeof(Launch) == 40);
inline constexpr uint32_t kNoLayer = ~uint32_t(0);

/// The start of a stream of version 2.
struct SizeTable {
  uint32_t paramCount, sizeCount;
};
static_assert(sizeof(SizeTable) == 8);

/// The first dim of a launch's grid, version 2: enough blocks for the tiles that size |tiles| counts. A launch of no
/// tiles is skipped. kConstantGrid: Launch.grid is the whole grid.
struct Grid {
  uint32_t tiles;
  uint32_t tilesPerBlock;
};
static_assert(sizeof(Grid) == 8);
inline constexpr uint32_t kConstantGrid = ~uint32_t(0);

enum class ArgumentKind : uint32_t {
  pointer, ///< address of byte |value| of tensor |index|; the kernel accesses |reach| bytes from there
  value32, ///< the low 32 bits of |value|
  value64, ///< |value|
  dim,     ///< the 64-bit value of dim |index| of the step
  size,    ///< version 2: the 64-bit value of size |index|
  sized    ///< version 2: like pointer, but the kernel accesses as many bytes as size |reach| says
};

struct Argument {
  ArgumentKind kind;
  uint32_t index;
  uint64_t value;
  uint64_t reach;
};
static_assert(sizeof(Argument) == 24);

} // namespace bmodel::cuda

#endif // BMODEL_CUDA_PROGRAM_H
