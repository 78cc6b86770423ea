// SPDX-License-Identifier: Apache-2.0
//===- Device.h - Chips, their memory and their queues --------------------===//
//
// Owning wrappers of the objects that back ends create (bmrt/backend.h).
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_DEVICE_H
#define TESSERA_BMRUNTIME_SRC_CORE_DEVICE_H

#include "Backend.h"
#include "Interrupt.h"
#include "Memory.h"
#include "bmodel/bmodel_generated.h"

namespace bmrt::core {

/// A chip of a model, opened by the back end of its family; shared by all contexts.
class Device {
public:
  Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device();

  /// |ordinal|: see bmrt_chip_t.
  bmrt_code_t open(const bmrt_backend_t &newBackend, const bmodel::ChipDef &chip, uint32_t ordinal,
                   bmrt_status_t *status);
  bool isOpen() const { return backend; }

  const bmrt_backend_t *backend = nullptr;
  bmrt_device_t *handle = nullptr; ///< null if the back end has nothing to open
};

/// A buffer in a chip's memory, with undefined contents. The runtime does not access it directly.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept;
  ~DeviceBuffer();

  /// Replaces the buffer.
  bmrt_code_t allocate(const Device &newDevice, uint64_t bytes, bmrt_status_t *status);
  char *address() const { return base; }
  uint64_t bytes() const { return size; }

private:
  const Device *device = nullptr;
  char *base = nullptr;
  uint64_t size = 0;
  Buffer host; ///< for chips that work on the host's memory
};

/// A queue of a chip, for one context. Commands may execute asynchronously; |wait| synchronises.
class Queue {
public:
  Queue() = default;
  Queue(const Queue &) = delete;
  Queue &operator=(const Queue &) = delete;
  ~Queue();

  bmrt_code_t open(const Device &newDevice, bmrt_status_t *status);
  bool isOpen() const { return device; }
  const Device &getDevice() const { return *device; }

  /// Submits later commands to a stream of the caller, or to the queue's own stream (null). BMRT_UNSUPPORTED if the
  /// family does not support this.
  bmrt_code_t useStream(void *stream, bmrt_status_t *status);

  bmrt_code_t run(bmrt_program_t *program, const bmrt_stream_t &stream, bmrt_status_t *status);
  /// Like |run|, but waits for completion and reports the times of the stream's parts. Requires |reportsTimes|.
  bmrt_code_t runTimed(bmrt_program_t *program, const bmrt_stream_t &stream, const bmrt_part_sink_t &sink,
                       bmrt_status_t *status);
  bool reportsTimes() const { return device->backend->run_timed; }
  bmrt_code_t launch(const bmrt_launch_t &launch, bmrt_status_t *status);
  bmrt_code_t copy(bmrt_copy_t direction, char *to, const char *from, uint64_t bytes, bmrt_status_t *status);
  bmrt_code_t fillZero(char *to, uint64_t bytes, bmrt_status_t *status);
  /// Waits for all submitted commands and returns their first error. Afterwards nothing is in flight, whatever the
  /// result.
  bmrt_code_t wait(const bmrt_interrupt_t *interrupt, bmrt_status_t *status);
  bool isDone() const { return device->backend->is_done && device->backend->is_done(handle); }

private:
  const Device *device = nullptr;
  bmrt_queue_t *handle = nullptr;
};

/// A status that is never null, for calls of back ends: the caller's, or a local one if the caller passed null.
class StatusOrOwn {
public:
  explicit StatusOrOwn(bmrt_status_t *given) : used(given ? given : &own) {}
  operator bmrt_status_t *() const { return used; }

private:
  bmrt_status_t own;
  bmrt_status_t *used;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_DEVICE_H
