// SPDX-License-Identifier: Apache-2.0
//===- StreamSizes.h - Sizes of a stream that are known at run time -------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_STREAMSIZES_H
#define TESSERA_BMRUNTIME_SRC_CUDA_STREAMSIZES_H

#include "Command.h"
#include "Cursor.h"
#include "bmodel/dim_terms.h"
#include "bmodel/kernel_contract.h"
#include "bmrt/backend.h"

namespace bmrt::cuda {

inline constexpr uint32_t kMostGridX = 0x7fffffff; ///< limit of the first dim of a grid

/// The sizes at the start of a stream of version 2. Streams of version 1 have none.
class StreamSizes {
public:
  /// Reads and checks the structure of an untrusted size table.
  bmrt_code_t read(Cursor &cursor, const bmrt_stream_t &stream, bmrt_status_t *status);

  uint32_t count() const { return uint32_t(sizes.size()); }

  /// Replaces the sizes of |commands|, which verifyStream() accepted, by their values for the stream's dims, and drops
  /// launches without tiles.
  bmrt_code_t apply(const bmrt_stream_t &stream, std::vector<Command> &commands, bmrt_status_t *status) const;

private:
  bmrt_code_t evaluateAll(const bmrt_stream_t &stream, std::vector<uint64_t> &values, bmrt_status_t *status) const;

  std::vector<bm_kernel_param> params;
  std::vector<bmodel::DimExpression> sizes; ///< they point into the stream
};

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_STREAMSIZES_H
