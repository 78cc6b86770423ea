// SPDX-License-Identifier: Apache-2.0
//===- Validate.cpp - The rules between the fields of a model -------------===//
//
// flatbuffers has verified that every offset stays inside the buffer. This file checks the relations between fields, so
// that the runtime can use every index, range and size without further checks. Takes time linear in the size of the
// tables and allocates no memory.
//
//===----------------------------------------------------------------------===//
#include "ValidateText.h"

#include "bmodel/dim_terms.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/reader.h"
#include "bmodel/tensor_layout.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using namespace bmodel;

namespace {

/// Limit of inputs and of outputs. Larger than any network's interface, and keeps the pairwise check for duplicates
/// cheap.
constexpr uint32_t kMaxInterface = 4096;
constexpr uint32_t kMaxRank = 16;
/// Limits of the buffers that a stream can name: NPU commands, and programs of other families.
constexpr uint32_t kMaxStreamTensors = 240, kMaxProgramTensors = 1 << 16;
/// Limit of the tensors of a custom operator, whose places are compared in pairs.
constexpr uint32_t kMaxCustomTensors = 256;
constexpr uint64_t kMaxScratchBytes = uint64_t(1) << 32;
/// Limit of state memory on a chip. The allocator of that memory knows the actual capacity.
constexpr uint64_t kMaxChipState = uint64_t(1) << 40;
/// Far below the value at which the threads' tile counters would overflow.
constexpr int64_t kMaxTiles = int64_t(1) << 48;
/// Bounds the stack memory that runBounds() takes.
constexpr uint32_t kMaxSubnets = 4096;

template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// Returns true if elements of 8 bytes are aligned to 8. The verifier of flatbuffers checks only the alignment of a
/// vector's length field.
template <typename T>
bool isAligned(const flatbuffers::Vector<T> *vector) {
  return count(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

/// Returns true if [offset, offset + bytes) lies in [0, limit).
bool inRange(uint64_t offset, uint64_t bytes, uint64_t limit) { return offset <= limit && bytes <= limit - offset; }

/// Returns true if the size of the tensor depends on dim slots.
bool isSymbolic(const TensorDef &tensor) {
  for (uint32_t i = 0; i < count(tensor.shape()); ++i) {
    if (tensor.shape()->Get(i)->slot() >= 0) {
      return true;
    }
  }
  return false;
}

uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

class Validator {
public:
  Validator(const ModelDef &model, Status &status) : model(model), status(status) {}

  bool validate(uint64_t tableEnd, uint64_t fileBytes);

private:
  bool segments(uint64_t tableEnd, uint64_t fileBytes);
  bool chips();
  bool stage(const StageDef &def);
  bool dims();
  bool derivedDim(const DimSlotDef &def, uint32_t slots);
  bool stateDim(const DimSlotDef &def);
  bool stateLength(const TensorDef &def);
  bool expression(const flatbuffers::Vector<const DimTerm *> *terms, uint32_t slots, const char *name);
  bool workspaces();
  bool stateSize();
  bool runBounds();
  bool tensor(const TensorDef &def);
  bool tensorSize(const TensorDef &def);
  bool tensorPlace(const TensorDef &def);
  bool tensorMemory(const TensorDef &def);
  bool tensorQuant(const TensorDef &def);
  bool interface();
  bool subnet(const SubnetDef &def);
  bool subnetChip(const SubnetDef &def);
  bool step(const SubnetDef &net, const StepDef &def);
  bool launch(const SubnetDef &net, const LaunchDef &def);
  bool customLaunch(const SubnetDef &net, const LaunchDef &def, const KernelDef &kernel);
  bool runStream(const SubnetDef &net, const StepDef &def);
  bool streamTensors(const SubnetDef &net, const StreamCall &call);
  bool streamsOwn(const SubnetDef &net, const TensorDef &tensor);
  bool shareBytes(const TensorDef &a, const TensorDef &b) const;
  bool loop(const LoopDef &def);
  bool settableDim(uint32_t index);
  bool evalDim(const EvalDimDef &def);
  bool dimElement(uint32_t slot, uint64_t index, const char *what);
  bool copy(const CopyDef &def);

  /// The following checks fail unless |index| is a tensor slot and, where they take a type or memory, has that type or
  /// is in that memory; |what| names the slot's purpose in the message.
  bool slot(int64_t index, const char *what);
  bool slotIn(int32_t memory, int64_t index, const char *what);
  bool scalarSlot(int64_t index, DType dtype, const char *what);
  bool writableSlot(int64_t index, const char *what);
  bool dimSlot(int64_t index, const char *what);
  bool callee(int64_t index, const char *what);
  const TensorDef &rootOf(const TensorDef &def) const {
    return def.view_of() < 0 ? def : *current->tensors()->Get(uint32_t(def.view_of()));
  }

  /// Writes "the host's memory" or "the memory of chip 'gpu'" to |buffer| and returns it.
  const char *memoryName(int32_t memory, char (&buffer)[80]) const;
  /// Returns true if |chip| is the index of a chip with its own memory.
  bool hasMemory(int64_t chip) const {
    return chip >= 0 && chip < int64_t(count(model.chips())) &&
           model.chips()->Get(uint32_t(chip))->memory() == MemoryKind::Device;
  }

  /// Records an error with the position in front, e.g. "net 'm' stage 0 tensor 'x': ", and returns false.
  [[gnu::format(printf, 3, 4)]] bool failAt(int line, const char *format, ...);

  const ModelDef &model;
  Status &status;
  const NetDef *net = nullptr;
  const StageDef *current = nullptr;
  const char *tensorName = nullptr;
  uint32_t stageIndex = 0;
  int64_t subnetIndex = -1, stepIndex = -1;
};

#define FAIL(...) failAt(__LINE__, __VA_ARGS__)

bool Validator::failAt(int line, const char *format, ...) {
  char text[320];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  char where[160] = "";
  int used = 0;
  auto add = [&](auto... parts) {
    const int n = snprintf(where + used, sizeof(where) - used, parts...);
    used = n < 0 || used + n >= int(sizeof(where)) ? int(sizeof(where)) - 1 : used + n;
  };
  if (current) {
    add("net '%.40s' stage %" PRIu32, net->name()->c_str(), stageIndex);
  }
  if (tensorName) {
    add(" tensor '%.60s'", tensorName);
  }
  if (subnetIndex >= 0) {
    add(" subnet %" PRId64, subnetIndex);
  }
  if (stepIndex >= 0) {
    add(" step %" PRId64, stepIndex);
  }
  return status.fail(Fault::Corrupt, __FILE_NAME__, line, "invalid model: %s%s%s", where, current ? ": " : "", text);
}

bool Validator::validate(uint64_t tableEnd, uint64_t fileBytes) {
  if (const char *field = textThatIsNoUtf8(model)) { // first, because messages quote names
    return FAIL("%s is not UTF-8", field);
  }
  if (!segments(tableEnd, fileBytes) || !chips()) {
    return false;
  }
  for (uint32_t i = 0; i < count(model.blobs()); ++i) {
    const BlobDef *blob = model.blobs()->Get(i);
    if (blob->segment() >= count(model.segments())) {
      return FAIL("blob '%.60s' refers to segment %" PRIu32 " of %" PRIu32, blob->name()->c_str(), blob->segment(),
                  count(model.segments()));
    }
  }
  if (count(model.nets()) == 0) {
    return FAIL("it contains no net");
  }
  for (const NetDef *def : *model.nets()) {
    net = def;
    if (count(net->stages()) == 0) {
      return FAIL("net '%.60s' has no stage", net->name()->c_str());
    }
    for (stageIndex = 0; stageIndex < net->stages()->size(); ++stageIndex) {
      if (!stage(*net->stages()->Get(stageIndex))) {
        return false;
      }
      current = nullptr;
    }
  }
  return true;
}

bool Validator::segments(uint64_t tableEnd, uint64_t fileBytes) {
  uint64_t end = tableEnd;
  for (uint32_t i = 0; i < count(model.segments()); ++i) {
    const SegmentDef &def = *model.segments()->Get(i);
    if (def.kind() > SegmentKind::MAX) {
      return FAIL("segment %" PRIu32 " has unknown kind %u", i, unsigned(def.kind()));
    }
    if (def.offset() % kSegmentAlignment != 0 || def.offset() < end || !inRange(def.offset(), def.bytes(), fileBytes)) {
      return FAIL("segment %" PRIu32 " of %" PRIu64 " bytes at %" PRIu64
                  " is misaligned, out of order or outside of the file of %" PRIu64 " bytes",
                  i, def.bytes(), def.offset(), fileBytes);
    }
    end = def.offset() + def.bytes();
    if (def.bytes() > 0 && def.chunk_bytes() == 0) {
      return FAIL("segment %" PRIu32 " has no chunk size", i);
    }
    const uint64_t chunks = def.bytes() == 0 ? 0 : (def.bytes() - 1) / def.chunk_bytes() + 1;
    if (!isAligned(def.chunk_xxh3())) {
      return FAIL("segment %" PRIu32 " has misaligned hashes", i);
    }
    if (count(def.chunk_xxh3()) != chunks || count(def.sha256()) != 32) {
      return FAIL("segment %" PRIu32 " has %" PRIu32 " hashes for %" PRIu64 " chunks and a digest of %" PRIu32 " bytes",
                  i, count(def.chunk_xxh3()), chunks, count(def.sha256()));
    }
  }
  if (alignUp(end, kSegmentAlignment) != fileBytes) {
    return FAIL("its parts end at %" PRIu64 ", the file at %" PRIu64, end, fileBytes);
  }
  return true;
}

bool Validator::chips() {
  for (uint32_t i = 0; i < count(model.chips()); ++i) {
    const ChipDef &def = *model.chips()->Get(i);
    if (def.memory() > MemoryKind::MAX) {
      return FAIL("chip '%.60s' has unknown memory %u", def.name()->c_str(), unsigned(def.memory()));
    }
  }
  return true;
}

bool Validator::stage(const StageDef &def) {
  current = &def;
  if (def.chip() >= count(model.chips())) {
    return FAIL("chip %" PRIu32 " of %" PRIu32, def.chip(), count(model.chips()));
  }
  if (!dims() || !workspaces()) {
    return false;
  }
  for (uint32_t i = 0; i < count(def.tensors()); ++i) {
    if (!tensor(*def.tensors()->Get(i))) {
      return false;
    }
  }
  tensorName = nullptr;
  if (!stateSize() || !interface()) {
    return false;
  }
  if (count(def.subnets()) == 0) {
    return FAIL("it has no subnet to run");
  }
  if (count(def.subnets()) > kMaxSubnets) {
    return FAIL("it has %" PRIu32 " subnets, allowed are %" PRIu32, count(def.subnets()), kMaxSubnets);
  }
  for (uint32_t i = 0; i < count(def.subnets()); ++i) {
    subnetIndex = i;
    if (!subnet(*def.subnets()->Get(i))) {
      return false;
    }
  }
  subnetIndex = -1;
  return runBounds();
}

/// Checks the limits of one run, counting each loop body once. Calls go only to higher subnets, but a small file could
/// still describe a tree of calls that takes practically forever.
bool Validator::runBounds() {
  uint64_t steps[kMaxSubnets];
  uint32_t depths[kMaxSubnets];
  for (subnetIndex = int64_t(count(current->subnets())) - 1; subnetIndex >= 0; --subnetIndex) {
    uint64_t total = 0;
    uint32_t depth = 0;
    auto enter = [&](int64_t callee) {
      depth = callee >= 0 && depths[callee] + 1 > depth ? depths[callee] + 1 : depth;
      return callee >= 0 ? steps[callee] : 0;
    };
    const auto *plan = current->subnets()->Get(uint32_t(subnetIndex))->plan();
    for (uint32_t i = 0; i < count(plan) && total <= kMaxRunSteps; ++i) {
      const StepDef &def = *plan->Get(i);
      uint64_t inside = 0;
      if (const CallSubnetDef *call = def.op_as_CallSubnetDef()) {
        inside = enter(call->subnet());
      } else if (const LoopDef *loop = def.op_as_LoopDef()) {
        inside = enter(loop->body());
      } else if (const BranchDef *branch = def.op_as_BranchDef()) {
        const uint64_t taken = enter(branch->then_subnet()), other = enter(branch->else_subnet());
        inside = taken > other ? taken : other;
      }
      total += 1 + inside;
    }
    if (total > kMaxRunSteps) {
      return FAIL("its calls add up to more than the %" PRIu64 " steps that a run may have", kMaxRunSteps);
    }
    if (depth > kMaxCallDepth) {
      return FAIL("its calls are nested more than %" PRIu32 " deep", kMaxCallDepth);
    }
    steps[subnetIndex] = total, depths[subnetIndex] = depth;
  }
  return true;
}

/// Checks that the host's state area ends with its last tensor, up to rounding. Every context allocates this area.
bool Validator::stateSize() {
  uint64_t end = 0;
  for (uint32_t i = 0; i < count(current->tensors()); ++i) {
    const TensorDef &def = *current->tensors()->Get(i);
    const bool isState = def.place() == Place::State && def.view_of() < 0 && def.chip() == kHostMemory;
    end = isState && def.offset() + def.bytes() > end ? def.offset() + def.bytes() : end;
  }
  return current->state_bytes() - end < kSegmentAlignment ||
         FAIL("its states take %" PRIu64 " bytes, their tensors end at %" PRIu64, current->state_bytes(), end);
}

bool Validator::workspaces() {
  for (uint32_t i = 0; i < count(current->workspaces()); ++i) {
    const WorkspaceDef &def = *current->workspaces()->Get(i);
    if (def.memory() > MemoryKind::MAX) {
      return FAIL("workspace %" PRIu32 " is in unknown memory %u", i, unsigned(def.memory()));
    }
    if (def.memory() == MemoryKind::Device && !hasMemory(def.chip())) {
      return FAIL("workspace %" PRIu32 " is in the memory of chip %" PRIu32 " of %" PRIu32
                  ", which does not have its own memory",
                  i, def.chip(), count(model.chips()));
    }
  }
  return true;
}

bool Validator::dims() {
  for (uint32_t i = 0; i < count(current->dims()); ++i) {
    const DimSlotDef &def = *current->dims()->Get(i);
    if (def.min() < 0 || def.divisor() < 1 || def.max() / def.divisor() * def.divisor() < def.min()) {
      return FAIL("dim '%.60s' ranges from %" PRId64 " to %" PRId64 " in steps of %" PRId64, def.name()->c_str(),
                  def.min(), def.max(), def.divisor());
    }
    if (def.likely() != -1 &&
        (def.likely() < def.min() || def.likely() > def.max() || def.likely() % def.divisor() != 0)) {
      return FAIL("the likely value %" PRId64 " of dim '%.60s' is not one of its values", def.likely(),
                  def.name()->c_str());
    }
    if (count(def.terms()) > 0 && !derivedDim(def, i)) {
      return false;
    }
    if (def.next() != -1 && !stateDim(def)) {
      return false;
    }
  }
  return true;
}

/// Checks a dim that the context keeps between runs, from 0 to the values of the derived slot `next`.
bool Validator::stateDim(const DimSlotDef &def) {
  if (def.next() < 0 || def.next() >= int64_t(count(current->dims()))) {
    return FAIL("after a run, dim '%.60s' becomes dim slot %" PRId32 " of %" PRIu32, def.name()->c_str(), def.next(),
                count(current->dims()));
  }
  const DimSlotDef &next = *current->dims()->Get(uint32_t(def.next()));
  return (count(def.terms()) == 0 && def.min() == 0 && def.divisor() == 1 && count(next.terms()) > 0 &&
          next.max() <= def.max()) ||
         FAIL("dim '%.60s' from %" PRId64 " to %" PRId64 " cannot become '%.60s' of at most %" PRId64 " after a run",
              def.name()->c_str(), def.min(), def.max(), next.name()->c_str(), next.max());
}

/// Checks the expression of a derived slot, which may refer only to the |slots| slots before it, so that there are no
/// cycles. Rejects expressions that overflow at a corner of the ranges of these slots.
bool Validator::derivedDim(const DimSlotDef &def, uint32_t slots) {
  if (!expression(def.terms(), slots, def.name()->c_str())) {
    return false;
  }
  auto rangeOf = [](const void *stage, uint32_t slot) {
    const DimSlotDef &operand = *static_cast<const StageDef *>(stage)->dims()->Get(slot);
    return DimRange{operand.min(), operand.max()};
  };
  DimRange range;
  if (!findRange(DimExpression(def.terms()), rangeOf, current, range)) {
    return FAIL("dim '%.60s' may overflow or divide by zero", def.name()->c_str());
  }
  return (range.min <= def.max() && range.max >= def.min()) ||
         FAIL("dim '%.60s' ranges from %" PRId64 " to %" PRId64 ", its expression only from %" PRId64 " to %" PRId64,
              def.name()->c_str(), def.min(), def.max(), range.min, range.max);
}

/// Checks the structure of the expression for dim |name|, whose terms may refer to slots below |slots|.
bool Validator::expression(const flatbuffers::Vector<const DimTerm *> *terms, uint32_t slots, const char *name) {
  if (!isAligned(terms)) {
    return FAIL("the expression of dim '%.60s' is misaligned", name);
  }
  const char *fault = findFault(DimExpression(terms), slots);
  return !fault || FAIL("the expression of dim '%.60s' %s", name, fault);
}

/// Checks a state that grows along one of its dims.
bool Validator::stateLength(const TensorDef &def) {
  const bool isState = def.role() == TensorRole::State && def.view_of() < 0 && def.chip() == kHostMemory &&
                       def.layout() == LayoutKind::RowMajor && def.initial() < 0;
  if (!isState || def.length() < 0 || def.length() >= int64_t(count(current->dims())) ||
      def.length_axis() >= count(def.shape())) {
    return FAIL("dim slot %" PRId32 " of %" PRIu32 " cannot be the length of its dim %u", def.length(),
                count(current->dims()), unsigned(def.length_axis()));
  }
  for (const Dim *dim : *def.shape()) {
    if (dim->slot() >= 0) {
      return FAIL("a state that grows has the dim slot %" PRId32, dim->slot());
    }
  }
  const DimSlotDef &length = *current->dims()->Get(uint32_t(def.length()));
  const int64_t capacity = def.shape()->Get(def.length_axis())->value();
  return (length.next() >= 0 && length.max() <= capacity && capacity > 0) ||
         FAIL("its dim %u of %" PRId64 " cannot hold the length '%.60s' of at most %" PRId64,
              unsigned(def.length_axis()), capacity, length.name()->c_str(), length.max());
}

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

/// Returns true if the subnet has kernels that its code must contain.
bool hasCompiledKernels(const SubnetDef &def) {
  for (uint32_t i = 0; i < count(def.kernels()); ++i) {
    if (!def.kernels()->Get(i)->custom()) {
      return true;
    }
  }
  return false;
}

/// Checks that the kind of a subnet fits its chip, and that the workspace of its streams exists.
bool Validator::subnetChip(const SubnetDef &def) {
  const ChipDef &chip = *model.chips()->Get(def.chip());
  const bool isDevice = def.kind() == SubnetKind::Device;
  if (isDevice && (!chip.family() || chip.family()->size() == 0)) {
    return FAIL("chip '%.60s' has no family, so no back end can run its code", chip.name()->c_str());
  }
  if (!isDevice && def.kind() != SubnetKind::Control && chip.memory() != MemoryKind::Host) {
    return FAIL("a %s subnet runs on the host's memory, chip '%.60s' has its own", EnumNameSubnetKind(def.kind()),
                chip.name()->c_str());
  }
  if (!isDevice && def.workspace() != 0) {
    return FAIL("a %s subnet must reserve workspace 0 for its streams, not %" PRId32, EnumNameSubnetKind(def.kind()),
                def.workspace());
  }
  if (def.workspace() < -1 || (def.workspace() > 0 && def.workspace() >= int64_t(count(current->workspaces())))) {
    return FAIL("the workspace reserved for its streams is %" PRId32 " of %" PRIu32, def.workspace(),
                count(current->workspaces()));
  }
  return true;
}

bool Validator::subnet(const SubnetDef &def) {
  if (def.kind() > SubnetKind::MAX || def.chip() >= count(model.chips())) {
    return FAIL("unknown kind %u, or chip %" PRIu32 " of %" PRIu32, unsigned(def.kind()), def.chip(),
                count(model.chips()));
  }
  if (!subnetChip(def)) {
    return false;
  }
  if (def.code_segment() >= 0 ? uint32_t(def.code_segment()) >= count(model.segments()) ||
                                    model.segments()->Get(uint32_t(def.code_segment()))->kind() != SegmentKind::Code
                              : def.code_segment() < -1 || hasCompiledKernels(def)) {
    return FAIL("its code segment is %" PRId32 ", which is not a segment of code", def.code_segment());
  }
  const bool cpu = def.kind() == SubnetKind::X86 || def.kind() == SubnetKind::Host;
  if (cpu && hasCompiledKernels(def) && def.kernel_abi() != BM_KERNEL_ABI_VERSION) {
    return FAIL("its code is for kernel interface %" PRIu32 ", this runtime supports %d", def.kernel_abi(),
                BM_KERNEL_ABI_VERSION);
  }
  for (uint32_t i = 0; i < count(def.plan()); ++i) {
    stepIndex = i;
    if (!step(def, *def.plan()->Get(i))) {
      return false;
    }
  }
  stepIndex = -1;
  return true;
}

bool Validator::step(const SubnetDef &net, const StepDef &def) {
  for (uint32_t i = 0; i < count(def.writes()); ++i) {
    if (!writableSlot(def.writes()->Get(i), "written tensor")) {
      return false;
    }
  }
  switch (def.op_type()) {
  case StepOp::LaunchDef:
    return launch(net, *def.op_as_LaunchDef());
  case StepOp::RunStreamDef:
  case StepOp::RunStreamOnDef:
    return runStream(net, def);
  case StepOp::CallSubnetDef:
    return callee(def.op_as_CallSubnetDef()->subnet(), "called subnet");
  case StepOp::BranchDef: {
    const BranchDef &branch = *def.op_as_BranchDef();
    return scalarSlot(branch.condition(), DType::Bool, "condition") &&
           (branch.then_subnet() == -1 || callee(branch.then_subnet(), "then branch")) &&
           (branch.else_subnet() == -1 || callee(branch.else_subnet(), "else branch"));
  }
  case StepOp::LoopDef:
    return loop(*def.op_as_LoopDef());
  case StepOp::EvalDimDef:
    return evalDim(*def.op_as_EvalDimDef());
  case StepOp::CopyDef:
    return copy(*def.op_as_CopyDef());
  case StepOp::ReadDimDef: {
    const ReadDimDef &read = *def.op_as_ReadDimDef();
    return settableDim(read.slot()) && dimElement(read.from(), read.index(), "source of a dim");
  }
  case StepOp::WriteDimDef: {
    const WriteDimDef &write = *def.op_as_WriteDimDef();
    return dimSlot(write.slot(), "source") && dimElement(write.to(), write.index(), "target of a dim") &&
           writableSlot(write.to(), "target of a dim");
  }
  case StepOp::NONE:
    break;
  }
  return FAIL("unknown kind of step %u", unsigned(def.op_type()));
}

bool Validator::launch(const SubnetDef &net, const LaunchDef &def) {
  if (net.kind() == SubnetKind::Npu || net.kind() == SubnetKind::Control) {
    return FAIL("a %s subnet cannot launch kernels", EnumNameSubnetKind(net.kind()));
  }
  if (def.kernel() >= count(net.kernels())) {
    return FAIL("kernel %" PRIu32 " of %" PRIu32, def.kernel(), count(net.kernels()));
  }
  const KernelDef &kernel = *net.kernels()->Get(def.kernel());
  if (count(def.args()) != kernel.arg_count()) {
    return FAIL("kernel '%.80s' takes %" PRIu32 " arguments, is given %" PRIu32, kernel.symbol()->c_str(),
                kernel.arg_count(), count(def.args()));
  }
  for (uint32_t i = 0; i < count(def.args()); ++i) {
    if (!slotIn(memoryOf(model, net), def.args()->Get(i), "argument")) {
      return false;
    }
  }
  for (uint32_t i = 0; i < count(def.dims()); ++i) {
    if (!dimSlot(def.dims()->Get(i), "dim argument")) {
      return false;
    }
  }
  if (def.tile_count() < 0 || def.tile_count() > kMaxTiles || def.grain() < 0 || def.grain() > kMaxTiles ||
      def.scratch_bytes() > kMaxScratchBytes) {
    return FAIL("%" PRId64 " tiles in grains of %" PRId64 " with %" PRIu64 " bytes of scratch", def.tile_count(),
                def.grain(), def.scratch_bytes());
  }
  if (kernel.custom()) {
    return customLaunch(net, def, kernel);
  }
  if (def.tile_count_slot() == -1) {
    return true;
  }
  if (!dimSlot(def.tile_count_slot(), "tile count")) {
    return false;
  }
  const DimSlotDef &tiles = *current->dims()->Get(uint32_t(def.tile_count_slot()));
  return tiles.max() <= kMaxTiles || FAIL("tile count '%.60s' reaches %" PRId64, tiles.name()->c_str(), tiles.max());
}

bool Validator::runStream(const SubnetDef &net, const StepDef &def) {
  StreamCall call;
  findStreamCall(*current, def, call);
  const bool isDevice = net.kind() == SubnetKind::Device;
  if ((!isDevice && net.kind() != SubnetKind::Npu) || net.code_segment() < 0) {
    return FAIL("a %s subnet cannot run a command stream", EnumNameSubnetKind(net.kind()));
  }
  const uint64_t limit = model.segments()->Get(uint32_t(net.code_segment()))->bytes();
  if (!inRange(call.offset, call.bytes, limit)) {
    return FAIL("stream of %" PRIu64 " bytes at %" PRIu64 " exceeds the %" PRIu64 " bytes of its segment", call.bytes,
                call.offset, limit);
  }
  if (!isDevice && count(call.dims) > 0) {
    return FAIL("a stream of a %s subnet takes no dims", EnumNameSubnetKind(net.kind()));
  }
  for (uint32_t i = 0; i < count(call.dims); ++i) {
    if (!dimSlot(call.dims->Get(i), "a stream's dim")) {
      return false;
    }
  }
  return streamTensors(net, call);
}

/// Returns true if the tensors share a byte in any run of the stage.
bool Validator::shareBytes(const TensorDef &a, const TensorDef &b) const {
  const TensorDef &x = rootOf(a), &y = rootOf(b);
  const uint64_t xBegin = x.offset() + (&x == &a ? 0 : a.offset()), yBegin = y.offset() + (&y == &b ? 0 : b.offset());
  const bool samePlace =
      x.place() == y.place() && x.place_index() == y.place_index() && (x.place() != Place::Caller || &x == &y);
  return samePlace && xBegin < yBegin + b.bytes() && yBegin < xBegin + a.bytes();
}

/// Checks the arguments of a custom operator, which sees row-major tensors of the host that do not overlap what it
/// writes.
bool Validator::customLaunch(const SubnetDef &net, const LaunchDef &def, const KernelDef &kernel) {
  const uint32_t total = count(def.args()), inputs = kernel.custom()->inputs();
  if (inputs > total || total > kMaxCustomTensors || memoryOf(model, net) != kHostMemory) {
    return FAIL("custom operator '%.80s' has %" PRIu32 " tensors, %" PRIu32 " of them inputs; allowed are %" PRIu32
                " in the host's memory",
                kernel.symbol()->c_str(), total, inputs, kMaxCustomTensors);
  }
  if (def.tile_count() != 1 || def.tile_count_slot() != -1 || count(def.dims()) > 0 || def.scratch_bytes() > 0) {
    return FAIL("custom operator '%.80s' is launched with tiles, dims or scratch", kernel.symbol()->c_str());
  }
  for (uint32_t i = 0; i < total; ++i) {
    const TensorDef &tensor = *current->tensors()->Get(def.args()->Get(i));
    if (tensor.layout() != LayoutKind::RowMajor || isSymbolic(tensor)) {
      return FAIL("tensor '%.60s' of custom operator '%.80s' is not row-major or its size is not a constant",
                  tensor.name()->c_str(), kernel.symbol()->c_str());
    }
    if (i >= inputs && !writableSlot(def.args()->Get(i), "output")) {
      return false;
    }
    for (uint32_t j = 0; i >= inputs && j < i; ++j) {
      if (const TensorDef &other = *current->tensors()->Get(def.args()->Get(j)); shareBytes(tensor, other)) {
        return FAIL("output '%.60s' of custom operator '%.80s' shares bytes with '%.60s'", tensor.name()->c_str(),
                    kernel.symbol()->c_str(), other.name()->c_str());
      }
    }
  }
  return true;
}

/// Checks that a tensor does not lie in the workspace that is reserved for streams, nor in a buffer of the caller that
/// may be smaller than the tensor's largest size, which the stream accesses.
bool Validator::streamsOwn(const SubnetDef &net, const TensorDef &tensor) {
  const TensorDef &root = rootOf(tensor);
  if (root.place() == Place::Caller && isSymbolic(root)) {
    return FAIL(
        "tensor '%.60s' of a stream has symbolic dimensions: a copy step must move it out of the caller's memory",
        root.name()->c_str());
  }
  return root.place() != Place::Workspace || int64_t(root.place_index()) != net.workspace() ||
         FAIL("tensor '%.60s' of a stream lies in workspace %" PRId32 ", which is reserved for streams",
              tensor.name()->c_str(), net.workspace());
}

/// Checks the tensors of a stream. The NPU's stream checks assume that buffers do not overlap, which this function
/// ensures.
bool Validator::streamTensors(const SubnetDef &net, const StreamCall &call) {
  const bool isDevice = net.kind() == SubnetKind::Device;
  const uint32_t inputs = count(call.inputs), total = inputs + count(call.outputs);
  const uint32_t limit = isDevice ? kMaxProgramTensors : kMaxStreamTensors;
  if (total > limit) {
    return FAIL("a stream on %" PRIu32 " tensors exceeds %" PRIu32, total, limit);
  }
  if (const WorkspaceDef *own = streamWorkspace(*current, net); own && memoryOf(*own) != memoryOf(model, net)) {
    return FAIL("workspace %" PRId32 ", reserved for its streams, is not in the memory of its chip", net.workspace());
  }
  auto at = [&](uint32_t i) { return i < inputs ? call.inputs->Get(i) : call.outputs->Get(i - inputs); };
  for (uint32_t i = 0; i < total; ++i) {
    if (!(i < inputs ? slot(at(i), "a stream's input") : writableSlot(at(i), "a stream's output"))) {
      return false;
    }
    const TensorDef &tensor = *current->tensors()->Get(at(i));
    if (!slotIn(memoryOf(model, net), at(i), i < inputs ? "a stream's input" : "a stream's output") ||
        !streamsOwn(net, tensor)) {
      return false;
    }
    for (uint32_t j = 0; !isDevice && i >= inputs && j < i; ++j) {
      if (shareBytes(tensor, *current->tensors()->Get(at(j)))) {
        return FAIL("output '%.60s' of a stream shares bytes with '%.60s'", tensor.name()->c_str(),
                    current->tensors()->Get(at(j))->name()->c_str());
      }
    }
  }
  return true;
}

bool Validator::loop(const LoopDef &def) {
  return callee(def.body(), "loop body") &&
         (def.trip_count() != -1 || def.condition() != -1 ||
          FAIL("a loop has neither a trip count nor a condition: it would never end")) &&
         (def.trip_count() == -1 || scalarSlot(def.trip_count(), DType::I64, "trip count")) &&
         (def.condition() == -1 || scalarSlot(def.condition(), DType::Bool, "condition")) &&
         (def.iteration() == -1 ||
          (scalarSlot(def.iteration(), DType::I64, "iteration") && writableSlot(def.iteration(), "iteration")));
}

/// Checks that a step may set dim slot |index|.
bool Validator::settableDim(uint32_t index) {
  if (!dimSlot(index, "target")) {
    return false;
  }
  const DimSlotDef &target = *current->dims()->Get(index);
  if (count(target.terms()) > 0 || target.next() != -1) {
    return FAIL("a step sets dim '%.60s', which follows from other dims", target.name()->c_str());
  }
  // Dims of inputs are bound to the caller's buffers and must not change during a run.
  for (uint32_t i = 0; i < count(current->inputs()); ++i) {
    const TensorDef &input = *current->tensors()->Get(current->inputs()->Get(i));
    for (uint32_t d = 0; d < count(input.shape()); ++d) {
      if (input.shape()->Get(d)->slot() == int64_t(index)) {
        return FAIL("a step changes dimension %" PRIu32 " of input '%.60s'", d, input.name()->c_str());
      }
    }
  }
  return true;
}

bool Validator::evalDim(const EvalDimDef &def) {
  return settableDim(def.slot()) &&
         expression(def.terms(), count(current->dims()), current->dims()->Get(def.slot())->name()->c_str());
}

/// Checks the element of a tensor that a step reads as a dim, or to which it writes a dim.
bool Validator::dimElement(uint32_t slot, uint64_t index, const char *what) {
  if (!slotIn(kHostMemory, slot, what)) {
    return false;
  }
  const TensorDef &def = *current->tensors()->Get(slot);
  const uint64_t elements = def.bytes() / sizeof(int64_t);
  if (def.dtype() != DType::I64 || def.layout() != LayoutKind::RowMajor || isSymbolic(def)) {
    return FAIL("%s '%.60s' is not an I64 tensor of constant size", what, def.name()->c_str());
  }
  return index < elements ||
         FAIL("element %" PRIu64 " of %s '%.60s', which has %" PRIu64, index, what, def.name()->c_str(), elements);
}

bool Validator::copy(const CopyDef &def) {
  if (!slot(def.from(), "source") || !writableSlot(def.to(), "target")) {
    return false;
  }
  const uint64_t from = current->tensors()->Get(def.from())->bytes();
  const uint64_t to = current->tensors()->Get(def.to())->bytes();
  const int32_t source = memoryOf(*current, *current->tensors()->Get(def.from()));
  const int32_t target = memoryOf(*current, *current->tensors()->Get(def.to()));
  if (source != target && source != kHostMemory && target != kHostMemory) {
    return FAIL("a copy from chip %" PRId32 " to chip %" PRId32 " must be two copy steps via the host's memory", source,
                target);
  }
  const bool isOpen =
      isSymbolic(*current->tensors()->Get(def.from())) || isSymbolic(*current->tensors()->Get(def.to()));
  return from == to || isOpen || FAIL("copy of %" PRIu64 " bytes to a tensor of %" PRIu64, from, to);
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

bool Validator::dimSlot(int64_t index, const char *what) {
  return (index >= 0 && index < int64_t(count(current->dims()))) ||
         FAIL("%s is dim slot %" PRId64 " of %" PRIu32, what, index, count(current->dims()));
}

/// Checks that a call goes to a higher index, so that calls cannot recurse.
bool Validator::callee(int64_t index, const char *what) {
  return (index > subnetIndex && index < int64_t(count(current->subnets()))) ||
         FAIL("%s is subnet %" PRId64 ", must be above %" PRId64 " and below %" PRIu32, what, index, subnetIndex,
              count(current->subnets()));
}

} // namespace

bool bmodel::validateModel(const ModelDef &model, uint64_t tableEnd, uint64_t fileBytes, Status &status) {
  return Validator(model, status).validate(tableEnd, fileBytes);
}
