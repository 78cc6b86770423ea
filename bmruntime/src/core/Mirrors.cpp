// SPDX-License-Identifier: Apache-2.0
//===- Mirrors.cpp - Host copies of tensors on chips ----------------------===//
#include "Mirrors.h"

#include <cinttypes>

using namespace bmrt::core;

bmrt_code_t Mirrors::look(ChipTensors &tensors, uint32_t slot, bool isKept, char **out, bmrt_status_t *status) {
  const uint64_t bytes = tensors.largestBytes(slot);
  if (mirrors.size() == 0 && !mirrors.allocate(tensors.tensorCount())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for copies of a chip's tensors");
  }
  Mirror &mirror = mirrors[slot];
  if (!mirror.bytes.data() && !mirror.bytes.allocate(bytes, /*isSparse=*/true)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a copy of a chip's tensor of %" PRIu64 " bytes", bytes);
  }
  // The caller may have changed a kept copy in this round; do not overwrite it.
  if (!(mirror.isKept && mirror.round == round)) {
    BMRT_RETURN_IF_ERROR(tensors.fetchTensor(slot, mirror.bytes.data(), status));
  }
  mirror.round = round;
  mirror.isKept = mirror.isKept || isKept;
  hasKept = hasKept || isKept;
  lastKept = isKept ? round : lastKept;
  *out = mirror.bytes.data();
  return BMRT_OK;
}

bmrt_code_t Mirrors::endHook(ChipTensors &tensors, bmrt_status_t *status) {
  for (uint32_t i = 0; i < mirrors.size() && lastKept == round; ++i) {
    if (mirrors[i].isKept && mirrors[i].round == round) {
      BMRT_RETURN_IF_ERROR(tensors.storeTensor(i, mirrors[i].bytes.data(), status));
    }
  }
  return BMRT_OK;
}

bmrt_code_t Mirrors::store(ChipTensors &tensors, bmrt_status_t *status) {
  for (uint32_t i = 0; i < mirrors.size() && hasKept; ++i) {
    if (mirrors[i].isKept) {
      BMRT_RETURN_IF_ERROR(tensors.storeTensor(i, mirrors[i].bytes.data(), status));
    }
  }
  return BMRT_OK;
}

bmrt_code_t Mirrors::fetch(ChipTensors &tensors, bmrt_status_t *status) {
  ++round;
  for (uint32_t i = 0; i < mirrors.size() && hasKept; ++i) {
    if (mirrors[i].isKept) {
      BMRT_RETURN_IF_ERROR(tensors.fetchTensor(i, mirrors[i].bytes.data(), status));
      mirrors[i].round = round;
    }
  }
  return BMRT_OK;
}
