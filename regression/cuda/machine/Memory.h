//===- Memory.h - Device memory and what is known of its bytes -------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_MEMORY_H
#define TESSERA_REGRESSION_CUDA_MACHINE_MEMORY_H

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ptx {

/// A bit a byte: whether it was ever written.
class WrittenBytes {
public:
  explicit WrittenBytes(uint64_t bytes)
      : words(static_cast<uint64_t *>(std::calloc(bytes / 64 + 2, 8)), &std::free), bytes(bytes) {}

  bool has(uint64_t at, uint64_t count) const;
  /// The first byte of the range that nobody wrote; |at| + |count| if there is none.
  uint64_t firstMissing(uint64_t at, uint64_t count) const;
  /// Safe against others that add to the same word.
  void add(uint64_t at, uint64_t count);
  /// What |from| knows of its bytes is true of these from now on.
  void copy(uint64_t at, const WrittenBytes &from, uint64_t fromAt, uint64_t count);
  void clear();

private:
  std::unique_ptr<uint64_t, void (*)(void *)> words;
  uint64_t bytes;
};

/// Who touched a 4-byte word of device memory in the running kernel.
struct WordAccess {
  uint64_t writer, readers[2]; ///< packed: GlobalAccess.cpp
};

/// Device memory, or memory of the host that the device sees.
struct Allocation {
  Allocation(uint64_t base, uint64_t bytes, std::string name);

  uint64_t base, bytes;
  std::string name;      ///< for findings: "cuMemAlloc no. 3"
  void *owned = nullptr; ///< what is freed in the end
  bool isHost = false;
  int device = 0;
  WrittenBytes written;
  /// Of each word, made when a kernel first touches the allocation; pages that nobody touches take no memory.
  WordAccess *accesses();
  /// The launch that last touched each sector of 32 bytes.
  uint32_t *sectors();
  ~Allocation();

private:
  std::once_flag made;
  WordAccess *words = nullptr;
  uint32_t *touched = nullptr;
  void make();
};

using AllocationRef = std::shared_ptr<Allocation>;

/// All allocations. Thread-safe.
class Memory {
public:
  /// Null if the device is full.
  AllocationRef allocate(uint64_t bytes, const std::string &name, uint64_t limit);
  /// The caller's memory, that the device may use from now on.
  AllocationRef adopt(void *data, uint64_t bytes, const std::string &name);
  /// False if |base| is no allocation's first byte.
  bool release(uint64_t base);
  /// The allocation that |address| lies in, or null.
  AllocationRef find(uint64_t address) const;
  /// The allocation that begins closest before |address|, for findings; or null.
  AllocationRef before(uint64_t address) const;
  /// Sorted by address.
  std::vector<AllocationRef> all() const;
  uint64_t used() const;

private:
  mutable std::mutex mutex;
  std::map<uint64_t, AllocationRef> allocations;
  uint64_t bytesUsed = 0;
};

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_MEMORY_H
