// SPDX-License-Identifier: Apache-2.0
//===- Count.h - Length of a flatbuffers vector ---------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_COUNT_H
#define TESSERA_BMRUNTIME_SRC_CORE_COUNT_H

#include "bmodel/bmodel_generated.h"

namespace bmrt::core {

/// Returns the length of a vector; an absent vector is empty.
template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_COUNT_H
