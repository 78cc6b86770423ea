//===- LayerSchedule.h - Decisions of a plan of the NPU ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_LAYERSCHEDULE_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_LAYERSCHEDULE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera::npu {

/// Values that are resident in local memory, and slice groups. Layers are numbered in program order.
struct LayerSchedule {
  /// A value that stays whole.
  struct ResidentValue {
    uint32_t first, last; ///< first layer that writes it, last layer that reads it in local memory
    uint64_t bytes = 0;   ///< per lane
    bool stored = false;  ///< also in off-chip memory
  };
  /// Layers that run slice by slice.
  struct Group {
    uint32_t first, last, slices;
  };
  std::vector<ResidentValue> whole;
  std::vector<Group> groups;
  std::map<uint32_t, std::string> names; ///< of layers that occur above, if known

  /// Appends the decisions of another schedule, with |first| added to its layer numbers.
  void append(const LayerSchedule &other, uint32_t first);
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_LAYERSCHEDULE_H
