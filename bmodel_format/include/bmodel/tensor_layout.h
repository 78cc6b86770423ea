// SPDX-License-Identifier: Apache-2.0
//===- tensor_layout.h - Sizes of element types and layouts ---------------===//
#ifndef BMODEL_TENSOR_LAYOUT_H
#define BMODEL_TENSOR_LAYOUT_H

#include "bmodel/bmodel_generated.h"

#include <cstdint>

namespace bmodel {

/// Returns the bytes of one element; 0 for a value that this version does not know.
uint32_t dtypeBytes(DType dtype);

/// Returns "f32", "i8", "bool", ...; "?" for a value that this version does not know.
const char *dtypeName(DType dtype);

/// Sets |bytes| to the memory that a tensor takes, padding lanes included. |shape| has |rank| dims. Returns false if a
/// dim is negative, the layout does not fit the rank, the layout is packed (its size is not determined by the shape),
/// or the size exceeds 2^62.
bool storedBytes(DType dtype, const int64_t *shape, uint32_t rank, LayoutKind layout, uint32_t block,
                 uint32_t blockAxis, uint64_t &bytes);

/// Copies the elements of a ChannelBlocked tensor to |to| in row-major order. |from| has the shape [d0 ..
/// ceil(d[axis]/block) .. d(rank-1), block]; padding lanes are dropped. |shape| is the logical shape. The buffers must
/// not overlap; |to| must hold prod(shape) * elementBytes bytes.
void unblock(const void *from, void *to, uint32_t elementBytes, const int64_t *shape, uint32_t rank, uint32_t block,
             uint32_t blockAxis);

} // namespace bmodel

#endif // BMODEL_TENSOR_LAYOUT_H
