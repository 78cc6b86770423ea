// SPDX-License-Identifier: Apache-2.0
//===- TensorInfo.h - Descriptions of tensors for the C interface ---------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_TENSORINFO_H
#define TESSERA_BMRUNTIME_SRC_CORE_TENSORINFO_H

#include "bmodel/bmodel_generated.h"
#include "bmrt/bmrt.h"
#include "tessera_custom_op.h"

namespace bmrt::core {

/// Describes |def|. |dims| holds the values of the stage's dim slots, -1 for unknown; null means that all are unknown.
void describeTensor(const bmodel::TensorDef &def, const int64_t *dims, bmrt_tensor_info_t &out);

/// Describes |def| for custom operators, in the same way; the data is null.
tessera_tensor_t describeCustomTensor(const bmodel::TensorDef &def, const int64_t *dims);

/// Returns true if all dims of |def| are known.
bool isKnown(const bmodel::TensorDef &def, const int64_t *dims);
/// Returns the stored bytes of |def| for the dim values |dims|; the largest possible size while one of them is unknown.
uint64_t currentBytes(const bmodel::TensorDef &def, const int64_t *dims);

/// Writes "1x3x224x224" (or "scalar") to |buffer|, truncated to |size|; -1 becomes "?". Returns |buffer|.
const char *formatShape(const int64_t *shape, uint32_t rank, char *buffer, size_t size);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_TENSORINFO_H
