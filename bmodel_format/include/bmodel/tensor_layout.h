// SPDX-License-Identifier: Apache-2.0
//===- tensor_layout.h - Sizes of element types and layouts ---------------===//
#ifndef BMODEL_TENSOR_LAYOUT_H
#define BMODEL_TENSOR_LAYOUT_H

#include "bmodel/bmodel_generated.h"

#include <cstdint>

namespace bmodel {

/// Bytes of one element; 0 for a value that this version does not know.
uint32_t dtypeBytes(DType dtype);

/// "f32", "i8", "bool", ...; "?" for a value that this version does not know.
const char *dtypeName(DType dtype);

/// Sets |bytes| to the memory that |rank| dims of |shape| take as |dtype| in |layout|, padding
/// lanes included; false if a dim is negative, the layout does not fit the rank, or the size
/// exceeds 2^62. Packed layouts have no size of their own: false.
bool storedBytes(DType dtype, const int64_t *shape, uint32_t rank, LayoutKind layout, uint32_t block,
                 uint32_t blockAxis, uint64_t &bytes);

/// Writes the row-major elements of a ChannelBlocked tensor to |to|: |from| holds
/// [d0 .. ceil(d[axis]/block) .. d(rank-1), block]; padding lanes are dropped. |shape| is logical.
/// The buffers must not overlap; |to| needs prod(shape) * elementBytes bytes.
void unblock(const void *from, void *to, uint32_t elementBytes, const int64_t *shape, uint32_t rank, uint32_t block,
             uint32_t blockAxis);

} // namespace bmodel

#endif // BMODEL_TENSOR_LAYOUT_H
