// SPDX-License-Identifier: Apache-2.0
//===- Validate.cpp - The rules between the fields of a model -------------===//
//
// flatbuffers has verified that every offset stays inside the buffer. This file checks the relations between fields, so
// that the runtime can use every index, range and size without further checks. Takes time linear in the size of the
// tables and allocates no memory.
//
//===----------------------------------------------------------------------===//
#include "Validator.h"

#include "ValidateText.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

using namespace bmodel;

namespace {

/// Bounds the stack memory that runBounds() takes.
constexpr uint32_t kMaxSubnets = 4096;

uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

} // namespace

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

bool bmodel::validateModel(const ModelDef &model, uint64_t tableEnd, uint64_t fileBytes, Status &status) {
  return Validator(model, status).validate(tableEnd, fileBytes);
}
