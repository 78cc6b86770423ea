//===- LayerSchedule.h - What a plan of the NPU decides -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_LAYERSCHEDULE_H
#define TESSERA_CODEGEN_NPU_LAYERSCHEDULE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera::npu {

/// Which values stay in local memory. Layers are numbered in the order of the program.
struct LayerSchedule {
  /// A value that stays whole.
  struct ResidentValue {
    uint32_t first, last; ///< from the layer that makes it to the last that reads it in local memory
    uint64_t bytes = 0;   ///< of a lane
    bool stored = false;  ///< also outside the chip
  };
  /// Layers that run slice by slice.
  struct Group {
    uint32_t first, last, slices;
  };
  std::vector<ResidentValue> whole;
  std::vector<Group> groups;
  std::map<uint32_t, std::string> names; ///< of layers above, where it is known

  /// Appends decisions whose layers count from |first| on.
  void append(const LayerSchedule &other, uint32_t first);
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_LAYERSCHEDULE_H
