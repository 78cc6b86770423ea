// SPDX-License-Identifier: Apache-2.0
//===- Program.h - Reader of compiled code and streams --------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H
#define TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H

#include "Command.h"
#include "bmrt/backend.h"

#include <vector>

namespace bmrt::cuda {

/// The tables at the start of a code segment, in file order.
struct Tables {
  uint32_t version = bmodel::cuda::kVersion;
  std::vector<bmodel::cuda::Image> images;
  std::vector<bmodel::cuda::Kernel> kernels;
};

/// Reads and checks the tables of an untrusted code segment.
bmrt_code_t readTables(const unsigned char *code, uint64_t bytes, Tables &out, bmrt_status_t *status);

/// Reads an untrusted stream as it is in the file. Checks that all launches use kernels in |tables| with the right
/// number of arguments and valid grids, and that pointers whose reach is constant stay inside the stream's tensors and
/// workspace.
bmrt_code_t verifyStream(const Tables &tables, const bmrt_stream_t &stream, std::vector<Command> &out,
                         bmrt_status_t *status);

/// Reads the launches of a stream that verifyStream() accepted, at the sizes that the stream has now: the result has
/// constant grids and pointers of constant reach only. Fails if a size is not one for which the kernels were compiled,
/// or if a pointer leaves its tensor at these sizes.
bmrt_code_t readCommands(const Tables &tables, const bmrt_stream_t &stream, std::vector<Command> &out,
                         bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H
