// SPDX-License-Identifier: Apache-2.0
//===- ValidateTensors.cpp - The rules of tensors and of the interface ----===//
#include "Validator.h"

#include "bmodel/tensor_layout.h"

#include <cinttypes>

using namespace bmodel;

namespace {

/// Limit of inputs and of outputs. Larger than any network's interface, and keeps the pairwise check for duplicates
/// cheap.
constexpr uint32_t kMaxInterface = 4096;
constexpr uint32_t kMaxRank = 16;
/// Limit of state memory on a chip. The allocator of that memory knows the actual capacity.
constexpr uint64_t kMaxChipState = uint64_t(1) << 40;

} // namespace

bool Validator::tensor(const TensorDef &def) {
  tensorName = def.name()->c_str();
  if (def.role() > TensorRole::MAX || def.place() > Place::MAX) {
    return FAIL("unknown role %u or place %u", unsigned(def.role()), unsigned(def.place()));
  }
  if (def.initial() >= 0) {
    if (def.role() != TensorRole::State || def.initial() >= int64_t(count(current->tensors()))) {
      return FAIL("initial value %" PRId32 ": the tensor is not a state, or the value is not a tensor", def.initial());
    }
    const TensorDef &from = *current->tensors()->Get(uint32_t(def.initial()));
    if (def.view_of() >= 0) {
      return FAIL("a view cannot have an initial value");
    }
    if (from.role() != TensorRole::Constant || from.bytes() != def.bytes()) {
      return FAIL("its initial value '%.60s' is not a constant of the same size", from.name()->c_str());
    }
  }
  return tensorSize(def) && tensorPlace(def) && tensorMemory(def) && tensorQuant(def) &&
         (def.length() == -1 || stateLength(def));
}

/// Checks TensorDef.chip: only tensors whose memory is not determined otherwise may name a chip.
bool Validator::tensorMemory(const TensorDef &def) {
  if (def.chip() == kHostMemory) {
    return true;
  }
  if (def.view_of() >= 0 || (def.place() != Place::Segment && def.place() != Place::State)) {
    return FAIL("only constants and states that are not views may name a chip for their memory");
  }
  return hasMemory(def.chip()) ||
         FAIL("it is in the memory of chip %" PRId32 " of %" PRIu32 ", which does not have its own memory", def.chip(),
              count(model.chips()));
}

bool Validator::tensorSize(const TensorDef &def) {
  const uint32_t rank = count(def.shape());
  if (dtypeBytes(def.dtype()) == 0) {
    return FAIL("unknown element type %u", unsigned(def.dtype()));
  }
  if (rank > kMaxRank) {
    return FAIL("rank %" PRIu32 " exceeds %" PRIu32, rank, kMaxRank);
  }
  if (!isAligned(def.shape())) {
    return FAIL("its shape is misaligned");
  }
  int64_t shape[kMaxRank];
  for (uint32_t i = 0; i < rank; ++i) {
    const Dim &dim = *def.shape()->Get(i);
    shape[i] = dim.value();
    if (dim.value() < 0 || dim.slot() < -1 || dim.slot() >= int64_t(count(current->dims()))) {
      return FAIL("dimension %" PRIu32 " is %" PRId64 " (dim slot %" PRId32 " of %" PRIu32 ")", i, dim.value(),
                  dim.slot(), count(current->dims()));
    }
    if (dim.slot() >= 0 && current->dims()->Get(uint32_t(dim.slot()))->max() > dim.value()) {
      return FAIL("dimension %" PRIu32 " is laid out for %" PRId64 ", its dim slot reaches %" PRId64, i, dim.value(),
                  current->dims()->Get(uint32_t(dim.slot()))->max());
    }
  }
  if (def.layout() == LayoutKind::Packed) {
    if (def.role() == TensorRole::Input || def.role() == TensorRole::Output) {
      return FAIL("an input or output cannot have a packed layout");
    }
    return true;
  }
  uint64_t expected = 0;
  if (!storedBytes(def.dtype(), shape, rank, def.layout(), def.block(), def.block_axis(), expected)) {
    return FAIL("its shape is too large, or its layout (%u, blocks of %u along %u) does not fit it",
                unsigned(def.layout()), unsigned(def.block()), unsigned(def.block_axis()));
  }
  if (expected != def.bytes()) {
    return FAIL("it takes %" PRIu64 " bytes, its shape and layout need %" PRIu64, def.bytes(), expected);
  }
  return true;
}

bool Validator::tensorPlace(const TensorDef &def) {
  if (def.offset() % kTensorAlignment != 0) {
    return FAIL("offset %" PRIu64 " is not a multiple of %" PRIu64, def.offset(), kTensorAlignment);
  }
  if (def.view_of() < -1 || def.view_of() >= int64_t(count(current->tensors()))) {
    return FAIL("it is a view of tensor %" PRId32 " of %" PRIu32, def.view_of(), count(current->tensors()));
  }
  const TensorRole role = def.role();
  if (def.view_of() >= 0) {
    const TensorDef &root = rootOf(def);
    if (root.view_of() >= 0) {
      return FAIL("it is a view of '%.60s', which is itself a view", root.name()->c_str());
    }
    if (!inRange(def.offset(), def.bytes(), root.bytes())) {
      return FAIL("%" PRIu64 " bytes at %" PRIu64 " exceed the %" PRIu64 " bytes of '%.60s'", def.bytes(), def.offset(),
                  root.bytes(), root.name()->c_str());
    }
    if (role == TensorRole::Input || (role == TensorRole::Constant) != (root.role() == TensorRole::Constant)) {
      return FAIL("a %s cannot be a view of a %s", EnumNameTensorRole(role), EnumNameTensorRole(root.role()));
    }
    return true;
  }
  uint64_t limit = 0;
  switch (def.place()) {
  case Place::Workspace:
    if (def.place_index() >= count(current->workspaces())) {
      return FAIL("workspace %" PRIu32 " of %" PRIu32, def.place_index(), count(current->workspaces()));
    }
    limit = current->workspaces()->Get(def.place_index())->bytes();
    break;
  case Place::Segment:
    if (def.place_index() >= count(model.segments()) ||
        model.segments()->Get(def.place_index())->kind() != SegmentKind::Constants) {
      return FAIL("segment %" PRIu32 " of %" PRIu32 " is not a segment of constants", def.place_index(),
                  count(model.segments()));
    }
    limit = model.segments()->Get(def.place_index())->bytes();
    break;
  case Place::State:
    limit = def.chip() == kHostMemory ? current->state_bytes() : kMaxChipState;
    break;
  case Place::Caller:
    limit = def.offset() == 0 ? def.bytes() : 0;
    break;
  }
  if (!inRange(def.offset(), def.bytes(), limit)) {
    return FAIL("%" PRIu64 " bytes at %" PRIu64 " exceed the %" PRIu64 " bytes of its %s", def.bytes(), def.offset(),
                limit, EnumNamePlace(def.place()));
  }
  if ((role == TensorRole::State) != (def.place() == Place::State)) {
    return FAIL("role %s cannot be in place %s", EnumNameTensorRole(role), EnumNamePlace(def.place()));
  }
  const bool caller = def.place() == Place::Caller;
  if ((role == TensorRole::Constant) != (def.place() == Place::Segment) || (role == TensorRole::Input && !caller) ||
      (caller && role != TensorRole::Input && role != TensorRole::Output)) {
    return FAIL("role %s cannot be in place %s", EnumNameTensorRole(role), EnumNamePlace(def.place()));
  }
  return true;
}

bool Validator::tensorQuant(const TensorDef &def) {
  const QuantDef *quant = def.quant();
  if (!quant) {
    return true;
  }
  if (quant->axis() < -1 || quant->axis() >= int64_t(count(def.shape()))) {
    return FAIL("quantised along axis %" PRId32 " of rank %" PRIu32, quant->axis(), count(def.shape()));
  }
  const int64_t entries = quant->axis() < 0 ? 1 : def.shape()->Get(uint32_t(quant->axis()))->value();
  if (count(quant->scales()) != entries || count(quant->zero_points()) != entries) {
    return FAIL("%" PRIu32 " scales and %" PRIu32 " zero points for %" PRId64 " channels", count(quant->scales()),
                count(quant->zero_points()), entries);
  }
  if (!isAligned(quant->zero_points())) {
    return FAIL("its zero points are misaligned");
  }
  return true;
}

/// Checks inputs and outputs: the slots exist and are distinct, and every tensor in the caller's memory is one of them.
bool Validator::interface() {
  const flatbuffers::Vector<uint32_t> *lists[] = {current->inputs(), current->outputs()};
  uint32_t inCallerMemory = 0;
  for (int which = 0; which < 2; ++which) {
    const auto *list = lists[which];
    const char *what = which == 0 ? "input" : "output";
    if (count(list) > kMaxInterface) {
      return FAIL("%" PRIu32 " %ss exceed %" PRIu32, count(list), what, kMaxInterface);
    }
    for (uint32_t i = 0; i < count(list); ++i) {
      if (!slot(list->Get(i), what)) {
        return false;
      }
      const TensorDef &def = *current->tensors()->Get(list->Get(i));
      if (which == 0 && def.role() != TensorRole::Input) {
        return FAIL("input '%.60s' has role %s", def.name()->c_str(), EnumNameTensorRole(def.role()));
      }
      if (which == 1 && def.layout() == LayoutKind::Packed) {
        return FAIL("output '%.60s' has a packed layout", def.name()->c_str());
      }
      if (!slotIn(kHostMemory, list->Get(i), what)) {
        return false;
      }
      for (uint32_t j = 0; j < i; ++j) {
        if (current->tensors()->Get(list->Get(j))->name()->string_view() == def.name()->string_view()) {
          return FAIL("two %ss are called '%.60s'", what, def.name()->c_str());
        }
      }
      const bool counted = which == 1 && def.role() == TensorRole::Input;
      inCallerMemory += def.view_of() < 0 && def.place() == Place::Caller && !counted;
    }
  }
  uint32_t needed = 0;
  for (uint32_t i = 0; i < count(current->tensors()); ++i) {
    const TensorDef &def = *current->tensors()->Get(i);
    needed += def.view_of() < 0 && def.place() == Place::Caller;
  }
  if (needed != inCallerMemory) {
    return FAIL("%" PRIu32 " tensors are in memory of the caller, %" PRIu32 " of them are inputs or outputs", needed,
                inCallerMemory);
  }
  return true;
}

bool Validator::slot(int64_t index, const char *what) {
  return (index >= 0 && index < int64_t(count(current->tensors()))) ||
         FAIL("%s is tensor %" PRId64 " of %" PRIu32, what, index, count(current->tensors()));
}

/// Checks that a tensor is in the memory that the step's executor can access; a copy step must move other tensors
/// there.
bool Validator::slotIn(int32_t memory, int64_t index, const char *what) {
  if (!slot(index, what)) {
    return false;
  }
  const TensorDef &def = *current->tensors()->Get(uint32_t(index));
  const int32_t actual = memoryOf(*current, def);
  char actualName[80], wantedName[80];
  return actual == memory || FAIL("%s '%.60s' is in %s, not in %s: a copy step must bring it there", what,
                                  def.name()->c_str(), memoryName(actual, actualName), memoryName(memory, wantedName));
}

const char *Validator::memoryName(int32_t memory, char (&buffer)[80]) const {
  if (memory == kHostMemory) {
    return "the host's memory";
  }
  snprintf(buffer, sizeof(buffer), "the memory of chip '%.40s'", model.chips()->Get(uint32_t(memory))->name()->c_str());
  return buffer;
}

/// Checks a tensor that the host's interpreter reads: a single element of |dtype| in host memory.
bool Validator::scalarSlot(int64_t index, DType dtype, const char *what) {
  if (!slotIn(kHostMemory, index, what)) {
    return false;
  }
  const TensorDef &def = *current->tensors()->Get(uint32_t(index));
  return (def.dtype() == dtype && def.bytes() == dtypeBytes(dtype) && !isSymbolic(def)) ||
         FAIL("%s '%.60s' is not one element of type %s", what, def.name()->c_str(), dtypeName(dtype));
}

bool Validator::writableSlot(int64_t index, const char *what) {
  if (!slot(index, what)) {
    return false;
  }
  const TensorDef &def = *current->tensors()->Get(uint32_t(index));
  const TensorRole role = rootOf(def).role();
  return (role != TensorRole::Constant && role != TensorRole::Input) ||
         FAIL("%s '%.60s' is a%s", what, def.name()->c_str(), role == TensorRole::Input ? "n input" : " constant");
}
