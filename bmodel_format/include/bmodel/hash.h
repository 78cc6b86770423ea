// SPDX-License-Identifier: Apache-2.0
//===- hash.h - XXH3-64 with the widest vectors of this CPU ---------------===//
#ifndef BMODEL_HASH_H
#define BMODEL_HASH_H

#include <cstddef>
#include <cstdint>

namespace bmodel {

/// Returns the XXH3-64 of |size| bytes, which is the same on every machine. Runs at memory speed.
uint64_t hashBytes(const void *data, size_t size, uint64_t seed = 0);

} // namespace bmodel

#endif // BMODEL_HASH_H
