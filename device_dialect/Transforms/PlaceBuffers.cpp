//===- PlaceBuffers.cpp - Offsets for buffers with lifetimes --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/PlaceBuffers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <numeric>
#include <random>

namespace tessera::device {
namespace {

using Order = llvm::SmallVector<unsigned>;

class Placer {
public:
  Placer(llvm::ArrayRef<Buffer> buffers, int64_t alignment) : buffers(buffers), conflicts(buffers.size()) {
    for (const Buffer &buffer : buffers) {
      sizes.push_back(llvm::alignTo(buffer.bytes, alignment));
    }
    findConflicts();
  }

  /// Places each buffer in turn at the lowest free offset. Gives up once the size reaches |limit|, leaving offsets at
  /// -1.
  Placement place(llvm::ArrayRef<unsigned> order, int64_t limit = INT64_MAX) {
    Placement result;
    result.offsets.assign(buffers.size(), -1);
    llvm::SmallVector<std::pair<int64_t, int64_t>> taken;
    for (unsigned buffer : order) {
      taken.clear();
      for (unsigned other : conflicts[buffer]) {
        if (result.offsets[other] >= 0) {
          taken.push_back({result.offsets[other], result.offsets[other] + sizes[other]});
        }
      }
      work += conflicts[buffer].size() + taken.size();
      llvm::sort(taken);
      int64_t offset = 0;
      for (auto [begin, end] : taken) {
        if (begin - offset >= sizes[buffer]) {
          break;
        }
        offset = std::max(offset, end);
      }
      result.offsets[buffer] = offset;
      result.bytes = std::max(result.bytes, offset + sizes[buffer]);
      if (result.bytes >= limit) {
        return result;
      }
    }
    return result;
  }

  Order bySize() const {
    return sorted([&](unsigned a, unsigned b) {
      return std::tuple(-sizes[a], buffers[a].first, a) < std::tuple(-sizes[b], buffers[b].first, b);
    });
  }

  Order byTime() const {
    return sorted([&](unsigned a, unsigned b) {
      return std::tuple(buffers[a].first, -sizes[a], a) < std::tuple(buffers[b].first, -sizes[b], b);
    });
  }

  /// Moves buffers that reach the top towards the front of the order and swaps two random ones, until |goal| or the
  /// work limit is reached.
  void search(Order order, Placement &best, int64_t goal) {
    constexpr int64_t kMaxWork = 2'000'000;
    std::mt19937 random(1);
    work = 0;
    Placement current = best;
    while (best.bytes > goal && work < kMaxWork) {
      Order candidate = order;
      for (unsigned i = 0; i < candidate.size(); ++i) {
        unsigned buffer = candidate[i];
        if (current.offsets[buffer] + sizes[buffer] == current.bytes) {
          unsigned to = random() % (i + 1);
          std::rotate(candidate.begin() + to, candidate.begin() + i, candidate.begin() + i + 1);
          break;
        }
      }
      std::swap(candidate[random() % candidate.size()], candidate[random() % candidate.size()]);
      Placement placed = place(candidate, best.bytes + best.bytes / 64 + 1);
      work += candidate.size();
      // Accept equal and sometimes worse placements, so that the search does not get stuck.
      if (llvm::is_contained(placed.offsets, -1)) {
        continue;
      }
      if (placed.bytes <= current.bytes || random() % 16 == 0) {
        order = candidate, current = placed;
      }
      if (placed.bytes < best.bytes) {
        best = placed;
      }
    }
  }

private:
  template <typename Less>
  Order sorted(Less less) const {
    Order order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, less);
    return order;
  }

  /// Finds the pairs of buffers needed at the same step, in order of time.
  void findConflicts() {
    Order order = byTime();
    llvm::SmallVector<unsigned> alive;
    for (unsigned buffer : order) {
      llvm::erase_if(alive, [&](unsigned other) { return buffers[other].last < buffers[buffer].first; });
      for (unsigned other : alive) {
        conflicts[other].push_back(buffer);
        conflicts[buffer].push_back(other);
      }
      alive.push_back(buffer);
    }
  }

  llvm::ArrayRef<Buffer> buffers;
  llvm::SmallVector<int64_t> sizes;
  std::vector<llvm::SmallVector<unsigned>> conflicts;
  int64_t work = 0;
};

} // namespace

Placement placeBuffers(llvm::ArrayRef<Buffer> buffers, int64_t alignment) {
  if (buffers.empty()) {
    return {};
  }
  Placer placer(buffers, alignment);
  Order sizes = placer.bySize(), times = placer.byTime();
  Placement bySize = placer.place(sizes), byTime = placer.place(times);
  bool largeFirst = bySize.bytes <= byTime.bytes;
  Placement best = largeFirst ? bySize : byTime;
  placer.search(largeFirst ? sizes : times, best, lowerBound(buffers, alignment));
  return best;
}

int64_t lowerBound(llvm::ArrayRef<Buffer> buffers, int64_t alignment) {
  std::map<int64_t, int64_t> changes;
  for (const Buffer &buffer : buffers) {
    int64_t bytes = llvm::alignTo(buffer.bytes, alignment);
    changes[buffer.first] += bytes;
    changes[buffer.last + 1] -= bytes;
  }
  int64_t alive = 0, most = 0;
  for (auto [step, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

} // namespace tessera::device
