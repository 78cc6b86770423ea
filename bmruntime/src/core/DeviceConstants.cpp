// SPDX-License-Identifier: Apache-2.0
//===- DeviceConstants.cpp - Constants in the memory of chips -------------===//
#include "DeviceConstants.h"

#include "Count.h"
#include "StageProgram.h"

#include <algorithm>
#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Constants with a smaller distance than this become one block.
constexpr uint64_t kGap = kSegmentAlignment;

bool isForChip(const TensorDef &tensor) {
  return tensor.place() == Place::Segment && tensor.view_of() < 0 && tensor.chip() != kHostMemory;
}

template <typename Use>
void forConstants(const StageDef &stage, Use use) {
  for (uint32_t i = 0; i < count(stage.tensors()); ++i) {
    if (const TensorDef &tensor = *stage.tensors()->Get(i); isForChip(tensor)) {
      use(tensor);
    }
  }
}

} // namespace

bmrt_code_t DeviceConstants::describe(const ModelView &, const Array<StageProgram> &stages, bmrt_status_t *status) {
  size_t total = 0, used = 0;
  for (const StageProgram &stage : stages) {
    forConstants(*stage.def, [&](const TensorDef &) { total += stage.rejection.code == BMRT_OK; });
  }
  Array<Block> all;
  if (!all.allocate(total)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %zu constants of chips", total);
  }
  for (const StageProgram &stage : stages) {
    forConstants(*stage.def, [&](const TensorDef &tensor) {
      if (stage.rejection.code == BMRT_OK) {
        Block &block = all[used++];
        block.chip = uint32_t(tensor.chip()), block.segment = tensor.place_index();
        block.begin = tensor.offset(), block.end = tensor.offset() + tensor.bytes();
      }
    });
  }
  std::sort(all.begin(), all.end(), [](const Block &a, const Block &b) {
    return a.chip != b.chip ? a.chip < b.chip : a.segment != b.segment ? a.segment < b.segment : a.begin < b.begin;
  });
  size_t result = 0;
  for (const Block &each : all) {
    Block *last = result ? &all[result - 1] : nullptr;
    if (last && last->chip == each.chip && last->segment == each.segment && each.begin < last->end + kGap) {
      last->end = std::max(last->end, each.end);
    } else {
      Block &next = all[result++];
      next.chip = each.chip, next.segment = each.segment, next.begin = each.begin, next.end = each.end;
    }
  }
  if (!blocks.allocate(result)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %zu constants of chips", result);
  }
  std::move(all.begin(), all.begin() + result, blocks.begin());
  return BMRT_OK;
}

const DeviceConstants::Block &DeviceConstants::blockOf(const TensorDef &tensor) const {
  const Block *found = std::partition_point(blocks.begin(), blocks.end(), [&](const Block &block) {
    return block.chip != uint32_t(tensor.chip())   ? block.chip < uint32_t(tensor.chip())
           : block.segment != tensor.place_index() ? block.segment < tensor.place_index()
                                                   : block.begin <= tensor.offset();
  });
  return found[-1];
}

char *DeviceConstants::address(const TensorDef &tensor) const {
  const Block &block = blockOf(tensor);
  return block.memory.address() + (tensor.offset() - block.begin);
}

bmrt_code_t DeviceConstants::copy(const ModelView &view, const Device &device, Block &block, bmrt_status_t *status) {
  Queue queue;
  DeviceBuffer memory;
  const char *from = reinterpret_cast<const char *>(view.segment(block.segment) + block.begin);
  const uint64_t bytes = block.end - block.begin;
  BMRT_RETURN_IF_ERROR(memory.allocate(device, bytes, status));
  BMRT_RETURN_IF_ERROR(queue.open(device, status));
  bmrt_code_t code = queue.copy(BMRT_COPY_TO_CHIP, memory.address(), from, bytes, status);
  code = code == BMRT_OK ? queue.wait(nullptr, status) : code;
  if (code == BMRT_OK) {
    block.memory = std::move(memory);
  }
  return code;
}

bmrt_code_t DeviceConstants::place(const ModelView &view, const StageProgram &stage, bmrt_status_t *status) {
  if (blocks.size() == 0) {
    return BMRT_OK;
  }
  bmrt_code_t code = BMRT_OK;
  pthread_mutex_lock(&mutex);
  forConstants(*stage.def, [&](const TensorDef &tensor) {
    Block &block = const_cast<Block &>(blockOf(tensor));
    if (code == BMRT_OK && !block.memory.address()) {
      code = copy(view, *stage.devices[block.chip], block, status);
    }
  });
  pthread_mutex_unlock(&mutex);
  return code;
}
