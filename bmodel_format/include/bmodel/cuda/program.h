// SPDX-License-Identifier: Apache-2.0
//===- program.h - Programs of the family cuda ----------------------------===//
//
// What the compiler (codegen/Cuda) and the runtime (bmruntime/src/cuda) agree on. Little endian, without padding.
//
// The segment of code of a model begins with a Directory, then its images and its kernels. An image is PTX text, ended
// by a zero byte, or machine code (a cubin) of one compute capability. The kernels are those of every image, by name.
//
// A stream (RunStreamOnDef) is a list of launches, each followed by its arguments, done one after another. Tensors are
// numbered as the step lists them, what it reads first; constants are among those. Behind them comes the streams' own
// workspace, as one more.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CUDA_PROGRAM_H
#define BMODEL_CUDA_PROGRAM_H

#include <cstdint>

namespace bmodel::cuda {

/// SubnetDef.kernel_abi.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kMagic = 0x41445543; ///< "CUDA"

/// At the start of the segment. Behind it stand imageCount Images, then kernelCount Kernels.
struct Directory {
  uint32_t magic, version;
  uint32_t imageCount, kernelCount;
};
static_assert(sizeof(Directory) == 16);

/// Code of all kernels, [offset, offset + bytes) of the segment.
struct Image {
  uint32_t computeCapability; ///< 80 for 8.0: of PTX the least, of machine code the major one is the device's
  uint32_t isMachineCode;     ///< 0: PTX text
  uint64_t offset, bytes;     ///< the zero byte at the end of PTX is counted
};
static_assert(sizeof(Image) == 24);

/// A function of the images. Its name, ended by a zero byte, begins at nameOffset of the segment.
struct Kernel {
  uint32_t nameOffset;
  uint32_t argumentCount;
};
static_assert(sizeof(Kernel) == 8);

/// A launch of a kernel on grid blocks of block threads; its arguments follow.
struct Launch {
  uint32_t kernel; ///< of the Directory
  uint32_t argumentCount;
  uint32_t grid[3], block[3];
  uint32_t sharedBytes; ///< that the launch gives each block, beside what the kernel declares
  uint32_t layer;       ///< of the step's ONNX nodes, for messages; kNoLayer: none
};
static_assert(sizeof(Launch) == 40);
inline constexpr uint32_t kNoLayer = ~uint32_t(0);

enum class ArgumentKind : uint32_t {
  pointer, ///< address of byte |value| of tensor |index|, of which the kernel touches |reach| bytes
  value32, ///< the low 32 bits of |value|
  value64, ///< |value|
  dim      ///< the 64 bits of dim |index| of the step
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
