// SPDX-License-Identifier: Apache-2.0
//===- Device.h - Chips, their memory and their queues --------------------===//
//
// What back ends hand out (bmrt/backend.h), owned.
//
//===----------------------------------------------------------------------===//
#ifndef BMRT_CORE_DEVICE_H
#define BMRT_CORE_DEVICE_H

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

  /// |ordinal|: as in bmrt_chip_t.
  bmrt_code_t open(const bmrt_backend_t &newBackend, const bmodel::ChipDef &chip, uint32_t ordinal,
                   bmrt_status_t *status);
  bool isOpen() const { return backend; }

  const bmrt_backend_t *backend = nullptr;
  bmrt_device_t *handle = nullptr; ///< null where the back end has nothing to open
};

/// Bytes in a chip's memory, of any contents. Only their address is known here.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept;
  ~DeviceBuffer();

  /// Replaces what it holds.
  bmrt_code_t allocate(const Device &newDevice, uint64_t bytes, bmrt_status_t *status);
  char *address() const { return base; }
  uint64_t bytes() const { return size; }

private:
  const Device *device = nullptr;
  char *base = nullptr;
  uint64_t size = 0;
  Buffer host; ///< of chips that work on the host's memory
};

/// A queue of a chip, for one context. What is given to it may be done later; |wait| says so.
class Queue {
public:
  Queue() = default;
  Queue(const Queue &) = delete;
  Queue &operator=(const Queue &) = delete;
  ~Queue();

  bmrt_code_t open(const Device &newDevice, bmrt_status_t *status);
  bool isOpen() const { return device; }
  const Device &getDevice() const { return *device; }

  /// Gives its work to a stream of the caller's, or to its own again (null). BMRT_UNSUPPORTED of a family without any.
  bmrt_code_t useStream(void *stream, bmrt_status_t *status);

  bmrt_code_t run(bmrt_program_t *program, const bmrt_stream_t &stream, bmrt_status_t *status);
  /// As |run|, to its end; the chip's times of its parts. False of |tellsTimes|: there are none.
  bmrt_code_t runTimed(bmrt_program_t *program, const bmrt_stream_t &stream, const bmrt_part_sink_t &sink,
                       bmrt_status_t *status);
  bool tellsTimes() const { return device->backend->run_timed; }
  bmrt_code_t launch(const bmrt_launch_t &launch, bmrt_status_t *status);
  bmrt_code_t copy(bmrt_copy_t direction, char *to, const char *from, uint64_t bytes, bmrt_status_t *status);
  bmrt_code_t fillZero(char *to, uint64_t bytes, bmrt_status_t *status);
  /// Until all of it is done; the first error of it. Nothing is in flight afterwards, whatever it returns.
  bmrt_code_t wait(const bmrt_interrupt_t *interrupt, bmrt_status_t *status);
  bool isDone() const { return device->backend->is_done && device->backend->is_done(handle); }

private:
  const Device *device = nullptr;
  bmrt_queue_t *handle = nullptr;
};

/// The status that back ends may count on, where the caller wants none.
class StatusOrOwn {
public:
  explicit StatusOrOwn(bmrt_status_t *given) : used(given ? given : &own) {}
  operator bmrt_status_t *() const { return used; }

private:
  bmrt_status_t own;
  bmrt_status_t *used;
};

} // namespace bmrt::core

#endif // BMRT_CORE_DEVICE_H
