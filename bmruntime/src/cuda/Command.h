// SPDX-License-Identifier: Apache-2.0
//===- Command.h - A launch of a stream -----------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_COMMAND_H
#define TESSERA_BMRUNTIME_SRC_CUDA_COMMAND_H

#include "bmodel/cuda/program.h"

#include <vector>

namespace bmrt::cuda {

/// A launch with its arguments.
struct Command {
  bmodel::cuda::Launch launch;
  bmodel::cuda::Grid grid = {bmodel::cuda::kConstantGrid, 1};
  std::vector<bmodel::cuda::Argument> arguments;
};

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_COMMAND_H
