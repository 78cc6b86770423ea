// SPDX-License-Identifier: Apache-2.0
//===- State.cpp - Reset, save and load of a stage's states ---------------===//
#include "StageContext.h"

#include "Count.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Start of saved states. The lengths of growing states follow as int64_t, in the order of their dim slots, then the
/// bytes in use of all states, in the order of their tensors and without padding.
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
  uint32_t counted = 0;
  for (uint32_t i = 0; i < count(stage->dims()); ++i) {
    counted += stage->dims()->Get(i)->next() >= 0;
  }
  if (!lengthSlots.allocate(counted) || !stateSlots.allocate(found) || !state.allocate(stage->state_bytes()) ||
      !ends.allocate(program->devices.size()) || !chipStates.allocate(program->devices.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for states of %" PRIu64 " bytes", stage->state_bytes());
  }
  for (uint32_t i = 0, next = 0; next < counted; ++i) {
    if (stage->dims()->Get(i)->next() >= 0) {
      lengthSlots[next++] = i;
    }
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

bmrt_state_growth_t StageContext::growthOf(uint32_t slot) const {
  const TensorDef &def = tensor(slot);
  if (def.length() < 0) {
    return {-1, 0, 0};
  }
  return {def.length_axis(), sizes.lengthOf(uint32_t(def.length())), stage->dims()->Get(uint32_t(def.length()))->max()};
}

StageContext::Extent StageContext::extentOf(uint32_t slot, int64_t from, int64_t to) const {
  const TensorDef &def = tensor(slot);
  if (def.length() < 0) {
    return {0, 1, sizes.bytesOf(slot), 0};
  }
  uint64_t runs = 1;
  for (uint32_t i = 0; i < def.length_axis(); ++i) {
    runs *= uint64_t(def.shape()->Get(i)->value());
  }
  const uint64_t stride = runs == 0 ? 0 : def.bytes() / runs;
  const uint64_t bytes = stride / uint64_t(def.shape()->Get(def.length_axis())->value());
  return {uint64_t(from) * bytes, runs, uint64_t(to - from) * bytes, stride};
}

StageContext::Extent StageContext::usedExtentOf(uint32_t slot) const {
  return extentOf(slot, 0, growthOf(slot).length);
}

uint64_t StageContext::usedBytesOf(uint32_t slot) const {
  const Extent used = usedExtentOf(slot);
  return used.count * used.bytes;
}

/// Clears indices [from, to) of a growing state, or all of another.
void StageContext::clearState(uint32_t slot, int64_t from, int64_t to) {
  const Extent extent = extentOf(slot, from, to);
  for (uint64_t i = 0; i < extent.count; ++i) {
    memset(data[slot] + extent.offset + i * extent.stride, 0, extent.bytes);
  }
}

bmrt_code_t StageContext::setStateLength(uint32_t slot, int64_t length, bmrt_status_t *status) {
  const bmrt_state_growth_t growth = growthOf(slot);
  const char *name = tensor(slot).name()->c_str();
  if (growth.axis < 0) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "state '%.100s' does not grow", name);
  }
  if (length < 0 || length > growth.capacity) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "state '%.100s' has at most %" PRId64 " indices, not %" PRId64, name,
                     growth.capacity, length);
  }
  for (const uint32_t other : stateSlots) {
    if (tensor(other).length() == tensor(slot).length() && length > growth.length) {
      clearState(other, growth.length, length);
    }
  }
  sizes.setLength(uint32_t(tensor(slot).length()), length);
  stateIsFresh = false;
  return BMRT_OK;
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
      clearState(slot, 0, def.length() < 0 ? 0 : sizes.longestOf(uint32_t(def.length())));
    }
  }
  stateIsFresh = true;
  sizes.resetLengths();
  return BMRT_OK;
}

uint64_t StageContext::savedStateBytes() const {
  uint64_t bytes = sizeof(SavedState) + lengthSlots.size() * sizeof(int64_t);
  for (const uint32_t slot : stateSlots) {
    bytes += usedBytesOf(slot);
  }
  return bytes;
}

/// Copies the bytes in use of the states to |bytes|, or from there.
bmrt_code_t StageContext::transferStates(char *bytes, bool toBytes, bmrt_status_t *status) {
  for (const uint32_t slot : stateSlots) {
    const Extent used = usedExtentOf(slot);
    if (tensor(slot).chip() != kHostMemory) {
      BMRT_RETURN_IF_ERROR(toBytes ? fetchTensor(slot, bytes, status) : storeTensor(slot, bytes, status));
      bytes += used.bytes;
      continue;
    }
    for (uint64_t i = 0; i < used.count; ++i, bytes += used.bytes) {
      char *own = data[slot] + i * used.stride;
      memcpy(toBytes ? bytes : own, toBytes ? own : bytes, used.bytes);
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::saveState(char *out, bmrt_status_t *status) {
  const uint32_t number = uint32_t(program - resources.getModel().getStages().data());
  const SavedState head = {kStateMagic, kStateVersion, number, resources.getModel().view.header->hash,
                           savedStateBytes()};
  memcpy(out, &head, sizeof(head));
  out += sizeof(head);
  for (const uint32_t slot : lengthSlots) {
    const int64_t length = sizes.lengthOf(slot);
    memcpy(out, &length, sizeof(length));
    out += sizeof(length);
  }
  return transferStates(out, /*toBytes=*/true, status);
}

/// Returns the bytes that saved states of these lengths have, or 0 if a length is not possible.
uint64_t StageContext::bytesForLengths(const int64_t *saved) const {
  uint64_t bytes = sizeof(SavedState) + lengthSlots.size() * sizeof(int64_t);
  for (uint32_t i = 0; i < lengthSlots.size(); ++i) {
    if (!isInRange(*stage->dims()->Get(lengthSlots[i]), saved[i])) {
      return 0;
    }
  }
  for (const uint32_t slot : stateSlots) {
    uint32_t number = 0;
    while (number < lengthSlots.size() && int64_t(lengthSlots[number]) != tensor(slot).length()) {
      ++number;
    }
    const Extent extent = extentOf(slot, 0, number < lengthSlots.size() ? saved[number] : 0);
    bytes += extent.count * extent.bytes;
  }
  return bytes;
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
  Array<int64_t> lengths;
  if (!lengths.allocate(lengthSlots.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the lengths of states");
  }
  const uint64_t begin = sizeof(head) + lengths.size() * sizeof(int64_t);
  if (bytes >= begin && lengths.size() > 0) {
    memcpy(lengths.data(), saved + sizeof(head), lengths.size() * sizeof(int64_t));
  }
  const uint64_t wanted = bytesForLengths(lengths.data());
  if (head.bytes != bytes || bytes != wanted) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "the saved state has %" PRIu64 " bytes and says that it has %" PRIu64 "; the stage's has %" PRIu64,
                     bytes, head.bytes, wanted);
  }
  for (uint32_t i = 0; i < lengthSlots.size(); ++i) {
    sizes.setLength(lengthSlots[i], lengths[i]);
  }
  stateIsFresh = false;
  return transferStates(const_cast<char *>(saved) + begin, /*toBytes=*/false, status);
}
