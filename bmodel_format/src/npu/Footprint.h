// SPDX-License-Identifier: Apache-2.0
//===- Footprint.h - The bytes that a command accesses ----------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_NPU_FOOTPRINT_H
#define TESSERA_BMODEL_FORMAT_SRC_NPU_FOOTPRINT_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// A byte range [begin, end) of one region. Local memory counts all lanes one after another.
struct Interval {
  uint64_t begin, end;
};

/// The bytes of one operand, as sorted intervals that do not touch.
struct Footprint {
  Region region{};
  bool written = false;
  const char *name = "";
  std::vector<Interval> intervals;
  Interval inLane{0, UINT64_MAX}; ///< covers the intervals within each lane; regions outside the chip count as one lane
};

std::vector<Footprint> footprintsOf(const Descriptor &command, const Chip &chip);

/// Returns true if the footprints share a byte, and sets `at` to the first shared byte.
bool meet(const Footprint &a, const Footprint &b, uint64_t &at);

/// Returns true if the two commands must keep their order because one writes bytes that the other accesses.
bool conflict(const std::vector<Footprint> &a, const std::vector<Footprint> &b);

} // namespace bmodel::npu

#endif // TESSERA_BMODEL_FORMAT_SRC_NPU_FOOTPRINT_H
