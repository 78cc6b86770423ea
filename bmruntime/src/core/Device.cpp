// SPDX-License-Identifier: Apache-2.0
//===- Device.cpp - Chips, their memory and their queues ------------------===//
#include "Device.h"

#include "Status.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;

namespace {

const char *text(const flatbuffers::String *string) { return string ? string->c_str() : ""; }

constexpr uint64_t kZeroBytes = 1 << 16;
alignas(64) char zeros[kZeroBytes]; // never written; not const, so that the zeros take no space in the library's file

} // namespace

Device::~Device() {
  if (backend && backend->close && handle) {
    backend->close(handle);
  }
}

bmrt_code_t Device::open(const bmrt_backend_t &newBackend, const bmodel::ChipDef &def, uint32_t ordinal,
                         bmrt_status_t *status) {
  if (newBackend.open) {
    const bmrt_chip_t chip = {
        sizeof(chip), text(def.name()), text(def.family()), text(def.description()), text(def.fingerprint()), ordinal};
    BMRT_RETURN_IF_ERROR(newBackend.open(&chip, &handle, StatusOrOwn(status)));
  }
  backend = &newBackend;
  return BMRT_OK;
}

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) noexcept {
  std::swap(device, other.device);
  std::swap(base, other.base);
  std::swap(size, other.size);
  std::swap(host, other.host);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (base && !worksOnHostMemory(*device->backend)) {
    device->backend->release(device->handle, base);
  }
}

bmrt_code_t DeviceBuffer::allocate(const Device &newDevice, uint64_t bytes, bmrt_status_t *status) {
  DeviceBuffer fresh;
  bytes = bytes ? bytes : BMRT_ALIGNMENT;
  if (bytes > UINT64_MAX / 4) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu64 " bytes of a chip", bytes);
  }
  if (worksOnHostMemory(*newDevice.backend)) {
    if (!fresh.host.allocate(bytes)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu64 " bytes of a chip", bytes);
    }
    fresh.base = fresh.host.data();
  } else {
    void *address = nullptr;
    BMRT_RETURN_IF_ERROR(newDevice.backend->allocate(newDevice.handle, bytes, &address, StatusOrOwn(status)));
    fresh.base = static_cast<char *>(address);
  }
  fresh.device = &newDevice;
  fresh.size = bytes;
  *this = std::move(fresh);
  return BMRT_OK;
}

Queue::~Queue() {
  if (handle) {
    device->backend->destroy_queue(handle);
  }
}

bmrt_code_t Queue::open(const Device &newDevice, bmrt_status_t *status) {
  if (newDevice.backend->make_queue) {
    BMRT_RETURN_IF_ERROR(newDevice.backend->make_queue(newDevice.handle, &handle, StatusOrOwn(status)));
  }
  device = &newDevice;
  return BMRT_OK;
}

bmrt_code_t Queue::useStream(void *stream, bmrt_status_t *status) {
  if (!device->backend->use_stream) {
    return BMRT_FAIL(status, UNSUPPORTED, "chips of family '%.40s' do not support streams of the caller",
                     device->backend->family);
  }
  return device->backend->use_stream(handle, stream, StatusOrOwn(status));
}

bmrt_code_t Queue::run(bmrt_program_t *program, const bmrt_stream_t &stream, bmrt_status_t *status) {
  return device->backend->run(handle, program, &stream, StatusOrOwn(status));
}

bmrt_code_t Queue::runTimed(bmrt_program_t *program, const bmrt_stream_t &stream, const bmrt_part_sink_t &sink,
                            bmrt_status_t *status) {
  return device->backend->run_timed(handle, program, &stream, &sink, StatusOrOwn(status));
}

bmrt_code_t Queue::launch(const bmrt_launch_t &launch, bmrt_status_t *status) {
  return device->backend->launch(handle, &launch, StatusOrOwn(status));
}

bmrt_code_t Queue::copy(bmrt_copy_t direction, char *to, const char *from, uint64_t bytes, bmrt_status_t *status) {
  if (!worksOnHostMemory(*device->backend)) {
    return device->backend->copy(handle, direction, to, from, bytes, StatusOrOwn(status));
  }
  BMRT_RETURN_IF_ERROR(wait(nullptr, status));
  memmove(to, from, bytes);
  return BMRT_OK;
}

bmrt_code_t Queue::fillZero(char *to, uint64_t bytes, bmrt_status_t *status) {
  for (uint64_t at = 0; at < bytes; at += kZeroBytes) {
    const uint64_t left = bytes - at;
    BMRT_RETURN_IF_ERROR(copy(BMRT_COPY_TO_CHIP, to + at, zeros, left < kZeroBytes ? left : kZeroBytes, status));
  }
  return BMRT_OK;
}

bmrt_code_t Queue::wait(const bmrt_interrupt_t *interrupt, bmrt_status_t *status) {
  return device->backend->wait ? device->backend->wait(handle, interrupt, StatusOrOwn(status)) : BMRT_OK;
}
