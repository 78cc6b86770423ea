// SPDX-License-Identifier: Apache-2.0
//===- Footprint.h - The bytes that a command touches -----------------------===//
#ifndef BMODEL_NPU_FOOTPRINT_H
#define BMODEL_NPU_FOOTPRINT_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// Bytes of one region, [begin, end); of local memory all lanes one after another.
struct Interval {
  uint64_t begin, end;
};

/// The bytes of one operand: sorted, apart from each other.
struct Footprint {
  Region region{};
  bool written = false;
  const char *name = "";
  std::vector<Interval> intervals;
  Interval inLane{0, UINT64_MAX}; ///< they are within these bytes of each lane; outside memory counts as one lane
};

std::vector<Footprint> footprintsOf(const Descriptor &command, const Chip &chip);

/// The first byte that both have, or false.
bool meet(const Footprint &a, const Footprint &b, uint64_t &at);

/// Whether the two commands must keep their order: one writes what the other touches.
bool conflict(const std::vector<Footprint> &a, const std::vector<Footprint> &b);

} // namespace bmodel::npu

#endif // BMODEL_NPU_FOOTPRINT_H
