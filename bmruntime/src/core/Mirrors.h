// SPDX-License-Identifier: Apache-2.0
//===- Mirrors.h - Tensors of chips as the host sees them -----------------===//
#ifndef BMRT_CORE_MIRRORS_H
#define BMRT_CORE_MIRRORS_H

#include "Memory.h"
#include "Status.h"

namespace bmrt::core {

class StageContext;

/// Copies of tensors that lie in a chip's memory, for those who look at steps or change what they wrote: made when a
/// tensor is first asked for, and brought up to date whenever a run or a hook begins or ends.
class Mirrors {
public:
  /// The bytes of tensor |slot|, as they are now. |isKept|: they may be changed, and later steps see it.
  bmrt_code_t look(StageContext &stage, uint32_t slot, bool isKept, char **out, bmrt_status_t *status);

  /// Between them only what was asked for there is kept: older copies are older than what steps have written since.
  void beginHook() { ++round; }
  bmrt_code_t endHook(StageContext &stage, bmrt_status_t *status);

  /// What was kept, to where steps read it; and back after a run.
  bmrt_code_t store(StageContext &stage, bmrt_status_t *status);
  bmrt_code_t fetch(StageContext &stage, bmrt_status_t *status);

private:
  struct Mirror {
    Buffer bytes;
    bool isKept = false;
    uint64_t round = 0; ///< when it was last asked for
  };

  Array<Mirror> mirrors; ///< by slot; empty until one is asked for
  uint64_t round = 0, lastKept = 0;
  bool hasKept = false;
};

} // namespace bmrt::core

#endif // BMRT_CORE_MIRRORS_H
