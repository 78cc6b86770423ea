// SPDX-License-Identifier: Apache-2.0
//===- ChipApi.cpp - The C interface to memory and streams of chips -------===//
#include "Context.h"

#include <cinttypes>

using namespace bmrt::core;

struct bmrt_chip_buffer_t {
  bmrt_model_t *model = nullptr;
  DeviceBuffer memory;
};

namespace {

/// Finds port |index| of a context; fails if a run is in flight.
bmrt_code_t findPort(bmrt_context_t *context, bool isInput, uint32_t index, Port **out, bmrt_status_t *status) {
  if (context->isPending()) {
    return BMRT_FAIL(status, FAILED_PRECONDITION,
                     "a launched run has not been waited for: call bmrt_context_wait first");
  }
  Array<Port> &ports = isInput ? context->stage().inputs : context->stage().outputs;
  if (index >= ports.size()) {
    return BMRT_FAIL(status, NOT_FOUND, "%s %" PRIu32 " of %zu", isInput ? "input" : "output", index, ports.size());
  }
  *out = &ports[index];
  return BMRT_OK;
}

bmrt_code_t bind(bmrt_context_t *context, bool isInput, uint32_t index, void *data, uint64_t bytes,
                 bmrt_status_t *status) {
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(findPort(context, isInput, index, &port, status));
  BMRT_RETURN_IF_ERROR(context->stage().bindOnChip(*port, data, bytes, status));
  return succeed(status);
}

} // namespace

bmrt_code_t bmrt_context_bind_chip_input(bmrt_context_t *context, uint32_t input, const void *data, uint64_t bytes,
                                         bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  return bind(context, /*isInput=*/true, input, const_cast<void *>(data), bytes, out_status); // only read
}

bmrt_code_t bmrt_context_bind_chip_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                          bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  return bind(context, /*isInput=*/false, output, data, bytes, out_status);
}

bmrt_code_t bmrt_context_set_stream(bmrt_context_t *context, void *stream, bmrt_status_t *out_status) {
  BMRT_REQUIRE(context);
  if (context->isPending()) {
    return BMRT_FAIL(out_status, FAILED_PRECONDITION,
                     "a launched run has not been waited for: call bmrt_context_wait first");
  }
  BMRT_RETURN_IF_ERROR(context->resources.setStream(stream, out_status));
  return succeed(out_status);
}

bmrt_code_t bmrt_context_allocate_chip_output(bmrt_context_t *context, uint32_t output, bmrt_chip_buffer_t **out_buffer,
                                              bmrt_status_t *out_status) {
  BMRT_REQUIRE(context && out_buffer);
  Port *port = nullptr;
  BMRT_RETURN_IF_ERROR(findPort(context, /*isInput=*/false, output, &port, out_status));
  const Device *chip = context->stage().chipOfPort(*port);
  if (!chip) {
    return BMRT_FAIL(out_status, UNSUPPORTED, "output '%.100s' is not copied from a chip's memory",
                     port->def->name()->c_str());
  }
  DeviceBuffer memory;
  BMRT_RETURN_IF_ERROR(memory.allocate(*chip, port->def->bytes(), out_status));
  bmrt_chip_buffer_t *result = createObject<bmrt_chip_buffer_t>();
  if (!result) {
    return BMRT_FAIL(out_status, NO_MEMORY, "no memory for a buffer of a chip");
  }
  result->memory = std::move(memory);
  result->model = &context->resources.getModel();
  bmrt_model_retain(result->model);
  *out_buffer = result;
  return succeed(out_status);
}

void *bmrt_chip_buffer_data(const bmrt_chip_buffer_t *buffer) { return buffer ? buffer->memory.address() : nullptr; }

void bmrt_chip_buffer_release(bmrt_chip_buffer_t *buffer) {
  if (buffer) {
    bmrt_model_t *model = buffer->model;
    destroyObject(buffer); // before its chip, which the model owns
    bmrt_model_release(model);
  }
}
