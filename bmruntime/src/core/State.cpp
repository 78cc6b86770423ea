// SPDX-License-Identifier: Apache-2.0
//===- State.cpp - Reset, save and load of a stage's states ---------------===//
#include "StageContext.h"

#include "Count.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Start of saved states. The bytes of all states follow, in the order of their tensors and without padding.
struct SavedState {
  uint64_t magic;
  uint32_t version;
  uint32_t stage; ///< index among all stages of the file
  uint64_t model; ///< hash in the file's header
  uint64_t bytes; ///< of everything
};

constexpr uint64_t kStateMagic = 0x544154535452'4d42; // "BMRTSTAT" in the file
constexpr uint32_t kStateVersion = 1;

} // namespace

/// Allocates a state area in each memory. The area of a chip ends with its last tensor.
bmrt_code_t StageContext::allocateState(bmrt_status_t *status) {
  Array<uint64_t> ends;
  uint32_t found = 0;
  for (uint32_t i = 0; i < data.size(); ++i) {
    found += tensor(i).place() == Place::State && tensor(i).view_of() < 0;
  }
  if (!stateSlots.allocate(found) || !state.allocate(stage->state_bytes()) || !ends.allocate(program->devices.size()) ||
      !chipStates.allocate(program->devices.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for states of %" PRIu64 " bytes", stage->state_bytes());
  }
  for (uint32_t i = 0, next = 0; next < found; ++i) {
    const TensorDef &def = tensor(i);
    if (def.place() != Place::State || def.view_of() >= 0) {
      continue;
    }
    stateSlots[next++] = i;
    if (def.chip() != kHostMemory) {
      uint64_t &end = ends[size_t(def.chip())];
      end = def.offset() + def.bytes() > end ? def.offset() + def.bytes() : end;
    }
  }
  for (uint32_t i = 0; i < ends.size(); ++i) {
    if (ends[i] > 0) {
      BMRT_RETURN_IF_ERROR(chipStates[i].allocate(*program->devices[i], ends[i], status));
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::resetChipState(uint32_t slot, bmrt_status_t *status) {
  const TensorDef &def = tensor(slot);
  Queue &queue = resources.queueOf(uint32_t(def.chip() + 1));
  BMRT_RETURN_IF_ERROR(def.initial() >= 0 ? queue.copy(BMRT_COPY_TO_CHIP, data[slot],
                                                       fileBytes(uint32_t(def.initial())), def.bytes(), status)
                                          : queue.fillZero(data[slot], def.bytes(), status));
  return queue.wait(nullptr, status);
}

bmrt_code_t StageContext::resetState(bmrt_status_t *status) {
  // Fresh host memory is zero. Clear only the tensors, so that other pages are never touched.
  for (const uint32_t slot : stateSlots) {
    const TensorDef &def = tensor(slot);
    if (def.chip() != kHostMemory) {
      BMRT_RETURN_IF_ERROR(resetChipState(slot, status));
    } else if (def.initial() >= 0) {
      memcpy(data[slot], fileBytes(uint32_t(def.initial())), def.bytes());
    } else if (!stateIsFresh) {
      memset(data[slot], 0, def.bytes());
    }
  }
  stateIsFresh = true;
  return BMRT_OK;
}

uint64_t StageContext::savedStateBytes() const {
  uint64_t bytes = sizeof(SavedState);
  for (const uint32_t slot : stateSlots) {
    bytes += sizes.bytesOf(slot);
  }
  return bytes;
}

/// Copies the states to |bytes|, or from there.
bmrt_code_t StageContext::transferStates(char *bytes, bool toBytes, bmrt_status_t *status) {
  for (const uint32_t slot : stateSlots) {
    if (tensor(slot).chip() != kHostMemory) {
      BMRT_RETURN_IF_ERROR(toBytes ? fetchTensor(slot, bytes, status) : storeTensor(slot, bytes, status));
    } else {
      memcpy(toBytes ? bytes : data[slot], toBytes ? data[slot] : bytes, sizes.bytesOf(slot));
    }
    bytes += sizes.bytesOf(slot);
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::saveState(char *out, bmrt_status_t *status) {
  const uint32_t number = uint32_t(program - resources.getModel().getStages().data());
  const SavedState head = {kStateMagic, kStateVersion, number, resources.getModel().view.header->hash,
                           savedStateBytes()};
  memcpy(out, &head, sizeof(head));
  return transferStates(out + sizeof(head), /*toBytes=*/true, status);
}

bmrt_code_t StageContext::loadState(const char *saved, uint64_t bytes, bmrt_status_t *status) {
  // Check everything that the bytes say about themselves before anything is changed.
  SavedState head = {};
  if (bytes >= sizeof(head)) {
    memcpy(&head, saved, sizeof(head));
  }
  if (head.magic != kStateMagic || head.version != kStateVersion) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "the %" PRIu64 " bytes are not a saved state of version %" PRIu32, bytes,
                     kStateVersion);
  }
  if (head.model != resources.getModel().view.header->hash ||
      head.stage != uint32_t(program - resources.getModel().getStages().data())) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "the saved state is of another model or stage");
  }
  if (head.bytes != bytes || bytes != savedStateBytes()) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "the saved state has %" PRIu64 " bytes and says that it has %" PRIu64 "; the stage's has %" PRIu64,
                     bytes, head.bytes, savedStateBytes());
  }
  stateIsFresh = false;
  return transferStates(const_cast<char *>(saved) + sizeof(head), /*toBytes=*/false, status);
}
