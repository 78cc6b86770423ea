// SPDX-License-Identifier: Apache-2.0
//===- TensorInfo.h - Tensor definitions as the C interface shows them ----===//
#ifndef BMRT_CORE_TENSORINFO_H
#define BMRT_CORE_TENSORINFO_H

#include "bmodel/bmodel_generated.h"
#include "bmrt/bmrt.h"

namespace bmrt::core {

/// Describes |def|. |dims| holds the values of the stage's dim slots, -1 where unknown; null means
/// that none is known.
void describeTensor(const bmodel::TensorDef &def, const int64_t *dims, bmrt_tensor_info_t &out);

/// Stored bytes of |def| for the dim values |dims|; the largest size while one of them is unknown.
uint64_t currentBytes(const bmodel::TensorDef &def, const int64_t *dims);

/// "1x3x224x224" (or "scalar") into |buffer|, cut off at |size|; -1 becomes "?". Returns |buffer|.
const char *formatShape(const int64_t *shape, uint32_t rank, char *buffer, size_t size);

} // namespace bmrt::core

#endif // BMRT_CORE_TENSORINFO_H
