// SPDX-License-Identifier: Apache-2.0
//===- CApi.cpp - The C interface over Model and Context ------------------===//
//
// Checks arguments and handles; the classes do the work.
//
//===----------------------------------------------------------------------===//
#include "Context.h"
#include "Count.h"
#include "Memory.h"
#include "Model.h"
#include "StepInfo.h"
#include "TensorInfo.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;

namespace {

/// Reads caller options. A caller compiled against an older header passes a shorter struct; the missing members keep
/// their defaults.
template <typename Options>
void readOptions(const Options *given, Options &out) {
  if (given) {
    const size_t size = given->struct_size < sizeof(Options) ? given->struct_size : sizeof(Options);
    memcpy(&out, given, size);
  }
}

bmrt_code_t openModel(MappedFile file, const char *name, const bmrt_open_options_t *given, bmrt_model_t **out,
                      bmrt_status_t *status) {
  bmrt_open_options_t options = {};
  readOptions(given, options);
  bmrt_model_t *model = createObject<bmrt_model_t>();
  if (!model) {
    return BMRT_FAIL(status, NO_MEMORY, "failed to load '%.200s': no memory", name);
  }
  const bmrt_code_t code = model->open(std::move(file), name, options, status);
  if (code != BMRT_OK) {
    destroyObject(model);
    return code;
  }
  *out = model;
  return succeed(status);
}

bmrt_code_t findStage(const bmrt_model_t *model, uint32_t net, uint32_t stage, const StageProgram **out,
                      bmrt_status_t *status) {
  *out = model->stage(net, stage);
  return *out ? BMRT_OK
              : BMRT_FAIL(status, NOT_FOUND, "the model has no net %" PRIu32 " with a stage %" PRIu32, net, stage);
}

bmrt_code_t describePort(const bmodel::StageDef &stage, const flatbuffers::Vector<uint32_t> *slots, const char *what,
                         uint32_t index, const int64_t *dims, bmrt_tensor_info_t *out, bmrt_status_t *status) {
  if (index >= count(slots)) {
    return BMRT_FAIL(status, NOT_FOUND, "%s %" PRIu32 " of %" PRIu32, what, index, count(slots));
  }
  describeTensor(*stage.tensors()->Get(slots->Get(index)), dims, *out);
  return succeed(status);
}

/// Writes "'a', 'b' and 3 more" to |buffer|, with as many names as fit.
const char *listNames(const Array<Port> &ports, char *buffer, size_t size) {
  size_t used = 0;
  buffer[0] = 0;
  for (size_t i = 0; i < ports.size(); ++i) {
    const char *name = ports[i].def->name()->c_str();
    if (used + strlen(name) + 24 > size) {
      snprintf(buffer + used, size - used, " and %zu more", ports.size() - i);
      break;
    }
    used += size_t(snprintf(buffer + used, size - used, "%s'%s'", i ? ", " : "", name));
  }
  return buffer;
}

bmrt_code_t findPort(const Array<Port> &ports, const char *what, const char *name, uint32_t *out,
                     bmrt_status_t *status) {
  for (uint32_t i = 0; i < ports.size(); ++i) {
    if (strcmp(ports[i].def->name()->c_str(), name) == 0) {
      *out = i;
      return succeed(status);
    }
  }
  char names[280];
  return BMRT_FAIL(status, NOT_FOUND, "the model has no %s '%.100s'; it has %s", what, name,
                   listNames(ports, names, sizeof(names)));
}

bmrt_code_t getPort(Array<Port> &ports, const char *what, uint32_t index, Port **out, bmrt_status_t *status) {
  if (index >= ports.size()) {
    return BMRT_FAIL(status, NOT_FOUND, "%s %" PRIu32 " of %zu", what, index, ports.size());
  }
  *out = &ports[index];
  return BMRT_OK;
}

/// While a run is in flight, only wait may use the context.
bmrt_code_t checkIdle(const bmrt_context_t *context, bmrt_status_t *status) {
  return context->isPending() ? BMRT_FAIL(status, FAILED_PRECONDITION,
                                          "a launched run has not been waited for: call bmrt_context_wait first")
                              : BMRT_OK;
}

} // namespace

//===- Model --------------------------------------------------------------===//

bmrt_code_t bmrt_model_open(const char *path, const bmrt_open_options_t *options, bmrt_model_t **out_model,
                            bmrt_status_t *out_status) {
  BMRT_REQUIRE(path && out_model);
  MappedFile file;
  BMRT_RETURN_IF_ERROR(MappedFile::open(path, file, out_status));
  return openModel(std::move(file), path, options, out_model, out_status);
}

bmrt_code_t bmrt_model_open_memory(const void *data, uint64_t bytes, const bmrt_open_options_t *options,
                                   bmrt_model_t **out_model, bmrt_status_t *out_status) {
  BMRT_REQUIRE(data && out_model);
  if (reinterpret_cast<uintptr_t>(data) % BMRT_ALIGNMENT != 0) {
    return BMRT_FAIL(out_status, INVALID_ARGUMENT, "the model at %p is not aligned to %d bytes", data, BMRT_ALIGNMENT);
  }
  return openModel(MappedFile(data, bytes), "memory", options, out_model, out_status);
}

void bmrt_model_retain(bmrt_model_t *model) {
  if (model) {
    model->references.fetch_add(1, std::memory_order_relaxed);
  }
}

void bmrt_model_release(bmrt_model_t *model) {
  if (model && model->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    destroyObject(model);
  }
}

uint32_t bmrt_model_net_count(const bmrt_model_t *model) { return model ? count(model->view.model->nets()) : 0; }

const char *bmrt_model_net_name(const bmrt_model_t *model, uint32_t net) {
  if (!model) {
    return nullptr;
  }
  const bmodel::NetDef *def = model->net(net);
  return def ? def->name()->c_str() : nullptr;
}

uint32_t bmrt_model_stage_count(const bmrt_model_t *model, uint32_t net) {
  if (!model) {
    return 0;
  }
  const bmodel::NetDef *def = model->net(net);
  return def ? count(def->stages()) : 0;
}

bmrt_code_t bmrt_model_stage_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, bmrt_stage_info_t *out_info,
                                  bmrt_status_t *out_status) {
  BMRT_REQUIRE(model && out_info);
  const StageProgram *program = nullptr;
  BMRT_RETURN_IF_ERROR(findStage(model, net, stage, &program, out_status));
  const bmodel::StageDef &def = *program->def;
  bmrt_stage_info_t info = {};
  info.name = def.name() ? def.name()->c_str() : "";
  info.chip = model->view.model->chips()->Get(def.chip())->name()->c_str();
  info.input_count = count(def.inputs());
  info.output_count = count(def.outputs());
  for (uint32_t i = 0; i < count(def.tensors()); ++i) {
    const bmodel::TensorDef &tensor = *def.tensors()->Get(i);
    const bool constant = tensor.place() == bmodel::Place::Segment && tensor.view_of() < 0;
    info.constant_bytes += constant ? tensor.bytes() : 0;
  }
  info.workspace_bytes = workspaceBytes(def);
  for (uint32_t i = 0; i < count(def.workspaces()); ++i) {
    info.workspace_lower_bound += def.workspaces()->Get(i)->lower_bound();
  }
  info.state_bytes = def.state_bytes();
  info.runnable = program->rejection.code == BMRT_OK;
  *out_info = info;
  return succeed(out_status);
}

bmrt_code_t bmrt_model_input_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t input,
                                  bmrt_tensor_info_t *out_info, bmrt_status_t *out_status) {
  BMRT_REQUIRE(model && out_info);
  const StageProgram *program = nullptr;
  BMRT_RETURN_IF_ERROR(findStage(model, net, stage, &program, out_status));
  return describePort(*program->def, program->def->inputs(), "input", input, nullptr, out_info, out_status);
}

bmrt_code_t bmrt_model_output_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t output,
                                   bmrt_tensor_info_t *out_info, bmrt_status_t *out_status) {
  BMRT_REQUIRE(model && out_info);
  const StageProgram *program = nullptr;
  BMRT_RETURN_IF_ERROR(findStage(model, net, stage, &program, out_status));
  return describePort(*program->def, program->def->outputs(), "output", output, nullptr, out_info, out_status);
}

//===- Context ------------------------------------------------------------===//

bmrt_code_t bmrt_context_create(bmrt_model_t *model, const bmrt_context_options_t *given, bmrt_context_t **out_context,
                                bmrt_status_t *out_status) {
  BMRT_REQUIRE(model && out_context);
  bmrt_context_options_t options = {};
  options.stage = BMRT_FIRST_RUNNABLE_STAGE;
  readOptions(given, options);
  bmrt_context_t *context = createObject<bmrt_context_t>();
  if (!context) {
    return BMRT_FAIL(out_status, NO_MEMORY, "no memory for a context");
  }
  const bmrt_code_t code = context->create(model, options, out_status);
  if (code != BMRT_OK) {
    destroyObject(context);
    return code;
  }
  *out_context = context;
  return succeed(out_status);
}

void bmrt_context_destroy(bmrt_context_t *context) { destroyObject(context); }

uint32_t bmrt_context_input_count(const bmrt_context_t *context) {
  return context ? uint32_t(context->stage().inputs.size()) : 0;
}

uint32_t bmrt_context_output_count(const bmrt_context_t *context) {
  return context ? uint32_t(context->stage().outputs.size()) : 0;
}

bmrt_code_t bmrt_context_input_info(const bmrt_context_t *context, uint32_t input, bmrt_tensor_info_t *out_info,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_info);
  const bmodel::StageDef &stage = *context->stage().program->def;
  return describePort(stage, stage.inputs(), "input", input, context->stage().sizes.dims(), out_info, out_status);
}

bmrt_code_t bmrt_context_output_info(const bmrt_context_t *context, uint32_t output, bmrt_tensor_info_t *out_info,
                                     bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_info);
  const bmodel::StageDef &stage = *context->stage().program->def;
  return describePort(stage, stage.outputs(), "output", output, context->stage().sizes.dims(), out_info, out_status);
}

bmrt_code_t bmrt_context_find_input(const bmrt_context_t *context, const char *name, uint32_t *out_input,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && name && out_input);
  return findPort(context->stage().inputs, "input", name, out_input, out_status);
}

bmrt_code_t bmrt_context_find_output(const bmrt_context_t *context, const char *name, uint32_t *out_output,
                                     bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && name && out_output);
  return findPort(context->stage().outputs, "output", name, out_output, out_status);
}

bmrt_code_t bmrt_context_set_input_shape(bmrt_context_t *context, uint32_t input, const int64_t *shape, uint32_t rank,
                                         bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && (shape || rank == 0));
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(getPort(context->stage().inputs, "input", input, &port, out_status));
  BMRT_RETURN_IF_ERROR(context->setInputShape(input, shape, rank, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_set_input_shapes(bmrt_context_t *context, const int64_t *const *shapes, const uint32_t *ranks,
                                          uint32_t count, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && ((shapes && ranks) || count == 0));
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  if (count != context->stage().inputs.size()) {
    return BMRT_FAIL(out_status, INVALID_ARGUMENT, "%" PRIu32 " shapes for %zu inputs", count,
                     context->stage().inputs.size());
  }
  BMRT_RETURN_IF_ERROR(context->setInputShapes(shapes, ranks, out_status));
  return succeed(out_status);
}

uint32_t bmrt_context_stage(const bmrt_context_t *context) {
  return context ? context->stage().program->stageIndex : 0;
}

bmrt_code_t bmrt_context_set_stage(bmrt_context_t *context, uint32_t stage, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(context->setStage(stage, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_bind_input(bmrt_context_t *context, uint32_t input, const void *data, uint64_t bytes,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(getPort(context->stage().inputs, "input", input, &port, out_status));
  // The buffer is only read: inputs are never among the tensors that a step writes (validateModel).
  BMRT_RETURN_IF_ERROR(context->stage().bind(*port, const_cast<void *>(data), bytes, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_bind_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                     bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(getPort(context->stage().outputs, "output", output, &port, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().bind(*port, data, bytes, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_input_buffer(bmrt_context_t *context, uint32_t input, void **out_data,
                                      bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_data);
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(getPort(context->stage().inputs, "input", input, &port, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().ensureOwn(*port, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().bind(*port, nullptr, 0, out_status));
  *out_data = port->own.data();
  return succeed(out_status);
}

bmrt_code_t bmrt_context_output_data(bmrt_context_t *context, uint32_t output, const void **out_data,
                                     bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_data);
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(getPort(context->stage().outputs, "output", output, &port, out_status));
  const void *data = context->stage().outputAddress(*port);
  if (!data) {
    return BMRT_FAIL(out_status, FAILED_PRECONDITION, "output '%.100s' has no data before a run",
                     port->def->name()->c_str());
  }
  *out_data = data;
  return succeed(out_status);
}

bmrt_code_t bmrt_context_run(bmrt_context_t *context, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  context->resources.interrupt.begin();
  BMRT_RETURN_IF_ERROR(context->stage().run(out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_launch(bmrt_context_t *context, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  context->resources.interrupt.begin(); // before the launch, so that a later cancel applies to this run
  BMRT_RETURN_IF_ERROR(context->launch(out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_wait(bmrt_context_t *context, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  return context->wait(out_status);
}

bool bmrt_context_is_done(bmrt_context_t *context) { return context ? context->isDone() : true; }

void bmrt_context_cancel(bmrt_context_t *context) {
  if (context) {
    context->resources.interrupt.request();
  }
}

void bmrt_context_set_poll(bmrt_context_t *context, bmrt_poll_t poll, void *user) {
  if (context) {
    context->resources.interrupt.setPoll(poll, user);
  }
}

bmrt_code_t bmrt_context_reset_state(bmrt_context_t *context, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().resetState(out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_save_state(bmrt_context_t *context, void *out, uint64_t capacity, uint64_t *out_bytes,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && (out_bytes || out));
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  const uint64_t bytes = context->stage().savedStateBytes();
  if (out && capacity < bytes) {
    return BMRT_FAIL(out_status, INVALID_ARGUMENT, "the buffer has %" PRIu64 " bytes, the saved state takes %" PRIu64,
                     capacity, bytes);
  }
  if (out) {
    BMRT_RETURN_IF_ERROR(context->stage().saveState(static_cast<char *>(out), out_status));
  }
  if (out_bytes) {
    *out_bytes = bytes;
  }
  return succeed(out_status);
}

bmrt_code_t bmrt_context_load_state(bmrt_context_t *context, const void *saved, uint64_t bytes,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && saved);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().loadState(static_cast<const char *>(saved), bytes, out_status));
  return succeed(out_status);
}

uint32_t bmrt_context_state_count(const bmrt_context_t *context) {
  return context ? uint32_t(context->stage().getStateSlots().size()) : 0;
}

static bmrt_code_t checkState(const bmrt_context_t *context, uint32_t state, bmrt_status_t *status) {
  const uint32_t total = bmrt_context_state_count(context);
  return state < total ? BMRT_OK : BMRT_FAIL(status, NOT_FOUND, "state %" PRIu32 " of %" PRIu32, state, total);
}

bmrt_code_t bmrt_context_state_info(const bmrt_context_t *context, uint32_t state, bmrt_tensor_info_t *out_info,
                                    bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_info);
  BMRT_RETURN_IF_ERROR(checkState(context, state, out_status));
  const uint32_t slot = context->stage().getStateSlots()[state];
  describeTensor(context->stage().tensor(slot), context->stage().sizes.dims(), *out_info);
  const bmrt_state_growth_t growth = context->stage().growthOf(slot);
  if (growth.axis >= 0) {
    out_info->shape[growth.axis] = growth.length, out_info->max_shape[growth.axis] = growth.capacity;
    out_info->bytes = context->stage().usedBytesOf(slot);
  }
  return succeed(out_status);
}

bmrt_code_t bmrt_context_state_growth(const bmrt_context_t *context, uint32_t state, bmrt_state_growth_t *out_growth,
                                      bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_growth);
  BMRT_RETURN_IF_ERROR(checkState(context, state, out_status));
  *out_growth = context->stage().growthOf(context->stage().getStateSlots()[state]);
  return succeed(out_status);
}

bmrt_code_t bmrt_context_set_state_length(bmrt_context_t *context, uint32_t state, int64_t length,
                                          bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(checkState(context, state, out_status));
  BMRT_RETURN_IF_ERROR(context->stage().setStateLength(context->stage().getStateSlots()[state], length, out_status));
  return succeed(out_status);
}

//===- Steps --------------------------------------------------------------===//

uint32_t bmrt_context_step_count(const bmrt_context_t *context) {
  return context ? uint32_t(context->stage().plan.getSteps().size()) : 0;
}

static bmrt_code_t checkStep(const bmrt_context_t *context, uint32_t step, bmrt_status_t *status) {
  const uint32_t total = bmrt_context_step_count(context);
  return step < total ? BMRT_OK : BMRT_FAIL(status, NOT_FOUND, "step %" PRIu32 " of %" PRIu32, step, total);
}

bmrt_code_t bmrt_context_step_info(const bmrt_context_t *context, uint32_t step, bmrt_step_info_t *out_info,
                                   bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_info);
  BMRT_RETURN_IF_ERROR(checkStep(context, step, out_status));
  describeStep(context->stage().plan, step, context->stage().sizes.dims(), *out_info);
  return succeed(out_status);
}

/// Returns the slot and bytes of tensor |index| that a step wrote; |isKept|: for modification.
static bmrt_code_t lookAtWrite(const bmrt_context_t *context, const bmrt_step_info_t *step, uint32_t index, bool isKept,
                               uint32_t *slot, void **data, bmrt_status_t *out_status) {
  BMRT_RETURN_IF_ERROR(checkStep(context, step->index, out_status));
  const auto *writes = context->stage().plan.getSteps()[step->index].def->writes();
  if (index >= count(writes)) {
    return BMRT_FAIL(out_status, NOT_FOUND, "step %" PRIu32 " writes %" PRIu32 " tensors, not %" PRIu32, step->index,
                     count(writes), index);
  }
  *slot = writes->Get(index);
  return context->stage().look(*slot, isKept, data, out_status);
}

bmrt_code_t bmrt_context_step_write(const bmrt_context_t *context, const bmrt_step_info_t *step, uint32_t index,
                                    bmrt_tensor_view_t *out_view, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && step && out_view);
  uint32_t slot = 0;
  void *data = nullptr;
  BMRT_RETURN_IF_ERROR(lookAtWrite(context, step, index, /*isKept=*/false, &slot, &data, out_status));
  describeTensor(*context->stage().program->def->tensors()->Get(slot), context->stage().sizes.dims(), out_view->info);
  out_view->data = data;
  return succeed(out_status);
}

bmrt_code_t bmrt_context_step_data(bmrt_context_t *context, const bmrt_step_info_t *step, uint32_t index,
                                   void **out_data, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && step && out_data);
  uint32_t slot = 0;
  // Steps write only to memory of the context or to bound outputs (validateModel).
  BMRT_RETURN_IF_ERROR(lookAtWrite(context, step, index, /*isKept=*/true, &slot, out_data, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_run_steps(bmrt_context_t *context, uint32_t begin, uint32_t end, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  context->resources.interrupt.begin();
  BMRT_RETURN_IF_ERROR(context->stage().runSteps(begin, end, out_status));
  return succeed(out_status);
}

void bmrt_context_set_step_hook(bmrt_context_t *context, bmrt_step_hook_t hook, void *user) {
  if (context) {
    context->resources.hook.function = hook;
    context->resources.hook.user = user;
  }
}

bmrt_code_t bmrt_context_set_profiling(bmrt_context_t *context, bool enabled, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  BMRT_RETURN_IF_ERROR(checkIdle(context, out_status));
  BMRT_RETURN_IF_ERROR(context->setProfiling(enabled, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_step_time(const bmrt_context_t *context, uint32_t step, bmrt_step_time_t *out_time,
                                   bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_time);
  BMRT_RETURN_IF_ERROR(checkStep(context, step, out_status));
  if (!context->stage().profile.hasTimes()) {
    return BMRT_FAIL(out_status, FAILED_PRECONDITION, "no times: switch profiling on and run first");
  }
  *out_time = context->stage().profile.time(step);
  return succeed(out_status);
}

uint32_t bmrt_context_step_part_count(const bmrt_context_t *context, uint32_t step) {
  if (!context) {
    return 0;
  }
  const StageContext &stage = context->stage();
  return stage.profile.hasTimes() && step < stage.plan.getSteps().size() ? uint32_t(stage.profile.partsOf(step).size())
                                                                         : 0;
}

bmrt_code_t bmrt_context_step_part_time(const bmrt_context_t *context, uint32_t step, uint32_t part,
                                        const char **out_node, bmrt_step_time_t *out_time, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_node && out_time);
  const uint32_t total = bmrt_context_step_part_count(context, step);
  if (part >= total) {
    return BMRT_FAIL(out_status, NOT_FOUND, "part %" PRIu32 " of step %" PRIu32 ", which has %" PRIu32, part, step,
                     total);
  }
  const Profile::Part &found = context->stage().profile.partsOf(step)[part];
  bmrt_step_info_t info;
  describeStep(context->stage().plan, step, context->stage().sizes.dims(), info);
  const char *node = bmrt_step_onnx_node(&info, found.layer);
  *out_node = node ? node : "";
  *out_time = found.time;
  return succeed(out_status);
}

bmrt_code_t bmrt_context_write_trace(const bmrt_context_t *context, const char *path, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && path);
  BMRT_RETURN_IF_ERROR(context->stage().profile.writeTrace(*context->resources.getModel().view.model,
                                                           context->stage().plan, path, out_status));
  return succeed(out_status);
}
