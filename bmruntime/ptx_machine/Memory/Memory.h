//===- Memory.h - Device memory and the state of its bytes ----------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_MEMORY_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_MEMORY_H

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ptx {

/// One bit per byte, set once the byte has been written.
class WrittenBytes {
public:
  explicit WrittenBytes(uint64_t bytes)
      : words(static_cast<uint64_t *>(std::calloc(bytes / 64 + 2, 8)), &std::free), bytes(bytes) {}

  bool has(uint64_t at, uint64_t count) const;
  /// Returns the first unwritten byte of the range; |at| + |count| if there is none.
  uint64_t firstMissing(uint64_t at, uint64_t count) const;
  /// Marks bytes as written. Safe against concurrent calls for the same word.
  void add(uint64_t at, uint64_t count);
  /// Copies the state of |count| bytes of |from|.
  void copy(uint64_t at, const WrittenBytes &from, uint64_t fromAt, uint64_t count);
  void clear();

private:
  std::unique_ptr<uint64_t, void (*)(void *)> words;
  uint64_t bytes;
};

/// The last accesses to a 4-byte word of device memory in the running kernel.
struct WordAccess {
  uint64_t writer, readers[2]; ///< packed, see GlobalAccess.cpp
};

/// Device memory, or host memory that the device can access.
struct Allocation {
  Allocation(uint64_t base, uint64_t bytes, std::string name);

  uint64_t base, bytes;
  std::string name;      ///< name in findings, e.g. "cuMemAlloc no. 3"
  void *owned = nullptr; ///< memory to free in the end
  bool isHost = false;
  int device = 0;
  WrittenBytes written;
  /// Returns the accesses of each word. They are allocated when a kernel first uses the allocation, and pages that are
  /// never touched take no memory.
  WordAccess *accesses();
  /// Returns the launch that last touched each sector of 32 bytes.
  uint32_t *sectors();
  ~Allocation();

private:
  std::once_flag created;
  WordAccess *words = nullptr;
  uint32_t *touched = nullptr;
  void make();
};

using AllocationRef = std::shared_ptr<Allocation>;

/// All allocations. Thread-safe.
class Memory {
public:
  /// Allocates device memory; returns null if the device is full.
  AllocationRef allocate(uint64_t bytes, const std::string &name, uint64_t limit);
  /// Makes memory of the caller accessible to the device.
  AllocationRef adopt(void *data, uint64_t bytes, const std::string &name);
  /// Returns false if |base| is not the first byte of an allocation.
  bool release(uint64_t base);
  /// Returns the allocation that contains |address|, or null.
  AllocationRef find(uint64_t address) const;
  /// Returns the last allocation that begins at or before |address|, or null; for findings.
  AllocationRef before(uint64_t address) const;
  /// Returns all allocations, sorted by address.
  std::vector<AllocationRef> all() const;
  uint64_t used() const;

private:
  mutable std::mutex mutex;
  std::map<uint64_t, AllocationRef> allocations;
  uint64_t bytesUsed = 0;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_MEMORY_H
