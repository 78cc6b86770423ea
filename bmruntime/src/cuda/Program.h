// SPDX-License-Identifier: Apache-2.0
//===- Program.h - Reads what the compiler wrote --------------------------===//
#ifndef BMRT_CUDA_PROGRAM_H
#define BMRT_CUDA_PROGRAM_H

#include "bmodel/cuda/program.h"
#include "bmrt/backend.h"

#include <vector>

namespace bmrt::cuda {

/// The tables at the start of a segment of code, in order.
struct Tables {
  std::vector<bmodel::cuda::Image> images;
  std::vector<bmodel::cuda::Kernel> kernels;
};

/// Reads and checks them; |code| may hold anything.
bmrt_code_t readTables(const unsigned char *code, uint64_t bytes, Tables &out, bmrt_status_t *status);

/// A launch with its arguments.
struct Command {
  bmodel::cuda::Launch launch;
  std::vector<bmodel::cuda::Argument> arguments;
};

/// Reads the launches of a stream, which may hold anything. An error if one is cut off.
bmrt_code_t readCommands(const bmrt_stream_t &stream, std::vector<Command> &out, bmrt_status_t *status);

/// Whether all launches are of kernels that |tables| has, with their arguments, in grids that a GPU takes, on pointers
/// into the stream's tensors and workspace.
bmrt_code_t verifyStream(const Tables &tables, const bmrt_stream_t &stream, bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // BMRT_CUDA_PROGRAM_H
