// SPDX-License-Identifier: Apache-2.0
//===- Memory.h - Allocation that can fail --------------------------------===//
//
// libbmrt is built without exceptions, and std::vector can report a lack of memory only by throwing. The two containers
// of this file report it as a result.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_MEMORY_H
#define TESSERA_BMRUNTIME_SRC_CORE_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace bmrt::core {

/// An array of value-initialised elements, of fixed size.
template <typename T>
class Array {
public:
  Array() = default;
  Array(Array &&other) noexcept
      : elements(std::exchange(other.elements, nullptr)), count(std::exchange(other.count, 0)) {}
  Array &operator=(Array &&other) noexcept {
    std::swap(elements, other.elements);
    std::swap(count, other.count);
    return *this;
  }
  ~Array() { clear(); }

  /// Replaces the contents with |newCount| value-initialised elements; returns false if memory has run out.
  [[nodiscard]] bool allocate(size_t newCount) {
    clear();
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if (newCount == 0) {
      return true;
    }
    elements = static_cast<T *>(calloc(newCount, sizeof(T)));
    if (!elements) {
      return false;
    }
    for (; count < newCount; ++count) {
      new (elements + count) T();
    }
    return true;
  }

  void clear() {
    for (size_t i = 0; i < count; ++i) {
      elements[i].~T();
    }
    free(elements);
    elements = nullptr;
    count = 0;
  }

  size_t size() const { return count; }
  T *data() { return elements; }
  const T *data() const { return elements; }
  T &operator[](size_t i) { return elements[i]; }
  const T &operator[](size_t i) const { return elements[i]; }
  T *begin() { return elements; }
  T *end() { return elements + count; }
  const T *begin() const { return elements; }
  const T *end() const { return elements + count; }

private:
  T *elements = nullptr;
  size_t count = 0;
};

/// Returns true if the machine could never back |bytes| bytes. Sizes come from files and callers; rejecting them early
/// avoids being killed when the memory is touched.
bool exceedsMachine(uint64_t bytes);

/// Zeroed bytes aligned to BMRT_ALIGNMENT; physical memory is allocated on first access.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept : bytes(std::exchange(other.bytes, nullptr)), size(std::exchange(other.size, 0)) {}
  Buffer &operator=(Buffer &&other) noexcept {
    std::swap(bytes, other.bytes);
    std::swap(size, other.size);
    return *this;
  }
  ~Buffer();

  /// Returns false if memory has run out, or if the machine could never back |newSize| bytes, unless |isSparse|: the
  /// caller uses only a part of the buffer. An empty buffer also has a valid address.
  [[nodiscard]] bool allocate(uint64_t newSize, bool isSparse = false);
  char *data() const { return bytes; }

private:
  char *bytes = nullptr;
  uint64_t size = 0;
};

/// Constructs one object on the heap, or returns null; destroy with destroyObject.
template <typename T, typename... Args>
T *createObject(Args &&...args) {
  void *memory = aligned_alloc(alignof(T) < 64 ? 64 : alignof(T), (sizeof(T) + 63) / 64 * 64);
  return memory ? new (memory) T(std::forward<Args>(args)...) : nullptr;
}

template <typename T>
void destroyObject(T *object) {
  if (object) {
    object->~T();
    free(object);
  }
}

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_MEMORY_H
