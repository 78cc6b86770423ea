// SPDX-License-Identifier: Apache-2.0
//===- Mirrors.h - Host copies of tensors on chips ------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_MIRRORS_H
#define TESSERA_BMRUNTIME_SRC_CORE_MIRRORS_H

#include "Memory.h"
#include "Status.h"

namespace bmrt::core {

/// Tensors in the memory of chips, by slot.
class ChipTensors {
public:
  virtual uint32_t tensorCount() const = 0;
  virtual uint64_t largestBytes(uint32_t slot) const = 0; ///< at any sizes
  /// Copy tensor |slot| to or from |bytes| in the host's memory.
  virtual bmrt_code_t fetchTensor(uint32_t slot, char *bytes, bmrt_status_t *status) = 0;
  virtual bmrt_code_t storeTensor(uint32_t slot, const char *bytes, bmrt_status_t *status) = 0;

protected:
  ~ChipTensors() = default;
};

/// Host copies of tensors in a chip's memory, for callers that read or change the tensors that steps wrote. A copy is
/// created when its tensor is first requested, and synchronised whenever a run or a hook begins or ends.
class Mirrors {
public:
  /// Returns the current bytes of tensor |slot|. With |isKept|, the caller may change them, and later steps see the
  /// changes.
  bmrt_code_t look(ChipTensors &tensors, uint32_t slot, bool isKept, char **out, bmrt_status_t *status);

  /// Bracket a hook. endHook() writes back only the copies requested in this hook: steps may have overwritten the
  /// tensors of older copies since.
  void beginHook() { ++round; }
  bmrt_code_t endHook(ChipTensors &tensors, bmrt_status_t *status);

  /// Copy the kept tensors to the chip before steps run, and back after a run.
  bmrt_code_t store(ChipTensors &tensors, bmrt_status_t *status);
  bmrt_code_t fetch(ChipTensors &tensors, bmrt_status_t *status);

private:
  struct Mirror {
    Buffer bytes;
    bool isKept = false;
    uint64_t round = 0; ///< the round of the last request
  };

  Array<Mirror> mirrors; ///< by slot; empty until the first request
  uint64_t round = 0, lastKept = 0;
  bool hasKept = false;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_MIRRORS_H
