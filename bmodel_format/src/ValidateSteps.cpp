// SPDX-License-Identifier: Apache-2.0
//===- ValidateSteps.cpp - The rules of subnets and of their steps --------===//
#include "Validator.h"

#include "bmodel/kernel_abi.h"

#include <cinttypes>

using namespace bmodel;

namespace {

constexpr uint64_t kMaxScratchBytes = uint64_t(1) << 32;
/// Far below the value at which the threads' tile counters would overflow.
constexpr int64_t kMaxTiles = int64_t(1) << 48;

/// Returns true if the subnet has kernels that its code must contain.
bool hasCompiledKernels(const SubnetDef &def) {
  for (uint32_t i = 0; i < count(def.kernels()); ++i) {
    if (!def.kernels()->Get(i)->custom()) {
      return true;
    }
  }
  return false;
}

} // namespace

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

bool Validator::loop(const LoopDef &def) {
  return callee(def.body(), "loop body") &&
         (def.trip_count() != -1 || def.condition() != -1 ||
          FAIL("a loop has neither a trip count nor a condition: it would never end")) &&
         (def.trip_count() == -1 || scalarSlot(def.trip_count(), DType::I64, "trip count")) &&
         (def.condition() == -1 || scalarSlot(def.condition(), DType::Bool, "condition")) &&
         (def.iteration() == -1 ||
          (scalarSlot(def.iteration(), DType::I64, "iteration") && writableSlot(def.iteration(), "iteration")));
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

/// Checks that a call goes to a higher index, so that calls cannot recurse.
bool Validator::callee(int64_t index, const char *what) {
  return (index > subnetIndex && index < int64_t(count(current->subnets()))) ||
         FAIL("%s is subnet %" PRId64 ", must be above %" PRId64 " and below %" PRIu32, what, index, subnetIndex,
              count(current->subnets()));
}
