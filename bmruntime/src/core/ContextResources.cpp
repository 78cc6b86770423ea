// SPDX-License-Identifier: Apache-2.0
//===- ContextResources.cpp - Resources that stages of a context share ----===//
#include "ContextResources.h"

#include "Count.h"

#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

uint64_t bmrt::core::workspaceBytes(const StageDef &stage, int32_t memory) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count(stage.workspaces()); ++i) {
    const WorkspaceDef &workspace = *stage.workspaces()->Get(i);
    const uint64_t bytes = memoryOf(workspace) == memory ? workspace.bytes() : 0;
    if (bytes > UINT64_MAX / 4 || __builtin_add_overflow(total, alignedBytes(bytes), &total)) {
      return UINT64_MAX;
    }
  }
  return total;
}

ContextResources::ContextResources()
    : callersInterrupt{[](void *user) { return static_cast<Interrupt *>(user)->check(); }, &interrupt},
      othersInterrupt{[](void *user) { return static_cast<Interrupt *>(user)->isRequested(); }, &interrupt} {}

ContextResources::~ContextResources() {
  // Release these before the chips that they belong to, which the model owns.
  queues.clear();
  chipWorkspaces.clear();
  bmrt_model_release(model);
}

bmrt_code_t ContextResources::create(bmrt_model_t &newModel, const bmrt_context_options_t &options, uint32_t threads,
                                     bmrt_status_t *status) {
  model = &newModel;
  bmrt_model_retain(model);
  if (!queues.allocate(count(model->view.model->chips())) || !chipWorkspaces.allocate(queues.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a context");
  }
  ownsWorkspace = options.workspace == nullptr;
  workspace = static_cast<char *>(options.workspace);
  workspaceBytes = options.workspace ? options.workspace_bytes : 0;
  // More threads than processors would only take turns on them.
  const uint32_t cpus = ThreadPool::availableCpus();
  return pool.start(threads < cpus ? threads : cpus, status);
}

bmrt_code_t ContextResources::reserveFor(const StageProgram &program, uint64_t scratchBytes, bmrt_status_t *status) {
  const StageDef &stage = *program.def;
  const uint64_t bytes = bmrt::core::workspaceBytes(stage);
  for (uint32_t i = 0; i < program.devices.size(); ++i) {
    if (program.devices[i] && !queues[i].isOpen()) {
      BMRT_RETURN_IF_ERROR(queues[i].open(*program.devices[i], status));
      if (stream) {
        BMRT_RETURN_IF_ERROR(queues[i].useStream(stream, status));
      }
    }
    const uint64_t onChip = bmrt::core::workspaceBytes(stage, int32_t(i));
    if (onChip > chipWorkspaces[i].bytes()) {
      BMRT_RETURN_IF_ERROR(chipWorkspaces[i].allocate(*program.devices[i], onChip, status));
    }
  }
  if (bytes > workspaceBytes && !ownsWorkspace) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "the workspace of %" PRIu64 " bytes is too small: see bmrt_stage_info_t.workspace_bytes",
                     workspaceBytes);
  }
  if (bytes > workspaceBytes) {
    // With symbolic dims the workspaces are laid out for the largest sizes; Sizes checks the sizes in use.
    if (!ownWorkspace.allocate(bytes, /*isSparse=*/count(stage.dims()) > 0)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for workspaces of %" PRIu64 " bytes", bytes);
    }
    workspace = ownWorkspace.data();
    workspaceBytes = bytes;
  }
  return pool.reserveScratch(scratchBytes, status);
}

bmrt_code_t ContextResources::setStream(void *newStream, bmrt_status_t *status) {
  bool hasQueue = false;
  for (Queue &queue : queues) {
    if (queue.isOpen() && (newStream || stream)) {
      BMRT_RETURN_IF_ERROR(queue.useStream(newStream, status));
      hasQueue = true;
    }
  }
  if (newStream && !hasQueue) {
    return BMRT_FAIL(status, UNSUPPORTED, "no chip of the stage supports streams");
  }
  stream = newStream;
  return BMRT_OK;
}
