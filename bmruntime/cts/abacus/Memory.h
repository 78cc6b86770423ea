// SPDX-License-Identifier: Apache-2.0
//===- Memory.h - Memory that the host cannot access ----------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_ABACUS_MEMORY_H
#define TESSERA_BMRUNTIME_CTS_ABACUS_MEMORY_H

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>

namespace bmrt::abacus {

/// The memory of one Abacus. The addresses that it hands out are pages without access rights: reading or writing there
/// ends the process. The contents are elsewhere, where only the back end accesses them.
class ChipMemory {
public:
  ~ChipMemory() {
    while (!blocks.empty()) {
      release(blocks.begin()->first);
    }
  }

  /// Returns null if there is not enough memory.
  char *allocate(uint64_t bytes) {
    constexpr uint64_t page = 4096, most = uint64_t(1) << 36;
    const uint64_t size = (bytes + page - 1) / page * page;
    if (bytes > most) {
      return nullptr;
    }
    void *address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *contents = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED || contents == MAP_FAILED) {
      return nullptr;
    }
    const std::lock_guard lock(mutex);
    blocks[static_cast<char *>(address)] = {static_cast<char *>(contents), bytes, size};
    return static_cast<char *>(address);
  }

  void release(char *address) {
    const std::lock_guard lock(mutex);
    const auto block = blocks.find(address);
    munmap(address, block->second.mapped);
    munmap(block->second.contents, block->second.mapped);
    blocks.erase(block);
  }

  /// Returns the address of the contents of [address, address + bytes); null unless the range lies in one block.
  char *contentsOf(const void *pointer, uint64_t bytes) {
    char *address = const_cast<char *>(static_cast<const char *>(pointer));
    const std::lock_guard lock(mutex);
    auto block = blocks.upper_bound(address);
    if (block == blocks.begin()) {
      return nullptr;
    }
    block = std::prev(block);
    const uint64_t offset = uint64_t(address - block->first);
    return offset <= block->second.bytes && bytes <= block->second.bytes - offset ? block->second.contents + offset
                                                                                  : nullptr;
  }

private:
  struct Block {
    char *contents;
    uint64_t bytes, mapped;
  };

  std::mutex mutex;
  std::map<char *, Block> blocks;
};

} // namespace bmrt::abacus

#endif // TESSERA_BMRUNTIME_CTS_ABACUS_MEMORY_H
