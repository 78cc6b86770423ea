//===- Memory.cpp - Device memory and the state of its bytes --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Memory/Memory.h"

#include <algorithm>
#include <cstring>

namespace ptx {
namespace {

constexpr uint64_t kAlignment = 512; ///< alignment of device memory, the same as the driver's

/// Returns a mask of |count| bits from bit |first| of a word on.
uint64_t bits(unsigned first, uint64_t count) {
  return (count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << first;
}

} // namespace

bool WrittenBytes::has(uint64_t at, uint64_t count) const { return firstMissing(at, count) == at + count; }

uint64_t WrittenBytes::firstMissing(uint64_t at, uint64_t count) const {
  for (uint64_t end = at + count; at < end;) {
    auto first = unsigned(at % 64);
    uint64_t here = std::min<uint64_t>(64 - first, end - at);
    uint64_t missing = ~words.get()[at / 64] & bits(first, here);
    if (missing != 0) {
      return at / 64 * 64 + unsigned(__builtin_ctzll(missing));
    }
    at += here;
  }
  return at;
}

void WrittenBytes::add(uint64_t at, uint64_t count) {
  for (uint64_t end = at + count; at < end;) {
    auto first = unsigned(at % 64);
    uint64_t here = std::min<uint64_t>(64 - first, end - at), mask = bits(first, here);
    uint64_t *word = words.get() + at / 64;
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) != mask) {
      __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
    }
    at += here;
  }
}

void WrittenBytes::copy(uint64_t at, const WrittenBytes &from, uint64_t fromAt, uint64_t count) {
  if (from.has(fromAt, count)) {
    return add(at, count);
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bit = uint64_t(1) << ((at + i) % 64);
    uint64_t *word = words.get() + (at + i) / 64;
    if (from.has(fromAt + i, 1)) {
      __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    } else {
      __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
    }
  }
}

void WrittenBytes::clear() { std::memset(words.get(), 0, (bytes / 64 + 2) * 8); }

Allocation::Allocation(uint64_t base, uint64_t bytes, std::string name)
    : base(base), bytes(bytes), name(std::move(name)), written(bytes) {}

Allocation::~Allocation() {
  std::free(words);
  std::free(touched);
  std::free(owned);
}

void Allocation::make() {
  std::call_once(created, [&] {
    words = static_cast<WordAccess *>(std::calloc(bytes / 4 + 2, sizeof(WordAccess)));
    touched = static_cast<uint32_t *>(std::calloc(bytes / 32 + 2, sizeof(uint32_t)));
  });
}

WordAccess *Allocation::accesses() {
  make();
  return words;
}

uint32_t *Allocation::sectors() {
  make();
  return touched;
}

AllocationRef Memory::allocate(uint64_t bytes, const std::string &name, uint64_t limit) {
  std::lock_guard lock(mutex);
  uint64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (size < bytes || bytesUsed + size > limit) {
    return nullptr;
  }
  void *data = std::aligned_alloc(kAlignment, size);
  if (!data) {
    return nullptr;
  }
  auto created = std::make_shared<Allocation>(reinterpret_cast<uint64_t>(data), bytes, name);
  created->owned = data;
  bytesUsed += size;
  allocations[created->base] = created;
  return created;
}

AllocationRef Memory::adopt(void *data, uint64_t bytes, const std::string &name) {
  std::lock_guard lock(mutex);
  auto created = std::make_shared<Allocation>(reinterpret_cast<uint64_t>(data), bytes, name);
  created->isHost = true;
  allocations[created->base] = created;
  return created;
}

bool Memory::release(uint64_t base) {
  std::lock_guard lock(mutex);
  auto found = allocations.find(base);
  if (found == allocations.end()) {
    return false;
  }
  if (!found->second->isHost) {
    bytesUsed -= (found->second->bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  allocations.erase(found);
  return true;
}

AllocationRef Memory::before(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto found = allocations.upper_bound(address);
  return found == allocations.begin() ? nullptr : std::prev(found)->second;
}

AllocationRef Memory::find(uint64_t address) const {
  AllocationRef found = before(address);
  return found && address - found->base < found->bytes ? found : nullptr;
}

std::vector<AllocationRef> Memory::all() const {
  std::lock_guard lock(mutex);
  std::vector<AllocationRef> result;
  for (auto &each : allocations) {
    result.push_back(each.second);
  }
  return result;
}

uint64_t Memory::used() const {
  std::lock_guard lock(mutex);
  return bytesUsed;
}

} // namespace ptx
