//===- BarrierFlags.h - Variants of bar and barrier -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BARRIERFLAGS_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BARRIERFLAGS_H

#include <cstdint>

namespace ptx {

enum BarrierFlags : uint32_t {
  kBarrierAligned = 1,   ///< all threads of a warp execute it together
  kBarrierArrive = 2,    ///< does not wait
  kBarrierReduction = 4, ///< reduces c into `to`
  kBarrierPopc = 8,
  kBarrierAnd = 16,
  kBarrierNegated = 32 ///< c is negated
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BARRIERFLAGS_H
