// SPDX-License-Identifier: Apache-2.0
//===- Program.h - Reader of compiled code and streams --------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H
#define TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H

#include "bmodel/cuda/program.h"
#include "bmrt/backend.h"

#include <vector>

namespace bmrt::cuda {

/// The tables at the start of a code segment, in file order.
struct Tables {
  std::vector<bmodel::cuda::Image> images;
  std::vector<bmodel::cuda::Kernel> kernels;
};

/// Reads and checks the tables of an untrusted code segment.
bmrt_code_t readTables(const unsigned char *code, uint64_t bytes, Tables &out, bmrt_status_t *status);

/// A launch with its arguments.
struct Command {
  bmodel::cuda::Launch launch;
  std::vector<bmodel::cuda::Argument> arguments;
};

/// Reads the launches of an untrusted stream; fails if the last one is truncated.
bmrt_code_t readCommands(const bmrt_stream_t &stream, std::vector<Command> &out, bmrt_status_t *status);

/// Checks that all launches use kernels in |tables| with the right number of arguments and valid grids, and that
/// pointers stay inside the stream's tensors and workspace.
bmrt_code_t verifyStream(const Tables &tables, const bmrt_stream_t &stream, bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_PROGRAM_H
