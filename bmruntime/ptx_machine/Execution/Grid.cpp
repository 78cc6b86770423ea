//===- Grid.cpp - Executes the grid of a kernel ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Grid.h"

#include "bmruntime/ptx_machine/Execution/Block.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>

namespace ptx {
namespace {

/// Warp instructions of a block before other blocks get a turn, because the block may be waiting for them.
constexpr uint64_t kBlockBudget = 4000000;

std::atomic<uint32_t> launches{0};

class Grid {
public:
  Grid(Launch &launch, uint32_t residentBlocks, uint64_t seed)
      : launch(launch), resident(std::max(residentBlocks, 1u)), offset(seed ? seed * 0x9e3779b97f4a7c15 >> 33 : 0) {
    // A step without a common factor with the number of blocks visits every block.
    step = seed ? (offset | 1) % launch.blocks() : 1;
    while (std::gcd(step, launch.blocks()) != 1) {
      ++step;
    }
  }

  void work(Counts &counts) {
    counts.executed.resize(launch.kernel->code.size());
    std::deque<std::unique_ptr<Block>> waiting;
    std::vector<std::unique_ptr<Block>> spare;
    try {
      while (!launch.isCancelled) {
        std::unique_ptr<Block> block = takeNew(counts, waiting.size(), spare);
        if (!block) {
          if (waiting.empty()) {
            return;
          }
          block = std::move(waiting.front());
          waiting.pop_front();
        }
        if (block->run(kBlockBudget)) {
          spare.push_back(std::move(block));
        } else {
          waiting.push_back(std::move(block));
        }
      }
    } catch (Fault &fault) {
      std::lock_guard lock(mutex);
      // If several threads fault, keep the first fault; any of them would do.
      first = first ? std::move(first) : std::make_unique<Fault>(std::move(fault));
      launch.isCancelled = true;
    }
  }

  std::unique_ptr<Fault> first;

private:
  std::unique_ptr<Block> takeNew(Counts &counts, size_t waiting, std::vector<std::unique_ptr<Block>> &spare) {
    if (waiting >= resident) {
      return nullptr;
    }
    uint64_t index = next.fetch_add(1);
    if (index >= launch.blocks()) {
      return nullptr;
    }
    std::unique_ptr<Block> block;
    if (spare.empty()) {
      block = std::make_unique<Block>(launch, counts);
    } else {
      block = std::move(spare.back());
      spare.pop_back();
    }
    block->begin((offset + index * step) % launch.blocks());
    return block;
  }

  Launch &launch;
  uint32_t resident;
  uint64_t offset, step; ///< the order in which blocks begin
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
};

} // namespace

Counts execute(Launch &launch, const Options &options, uint32_t residentBlocks, CountTable &counts) {
  launch.options = options;
  launch.id = ++launches & 0xffffff;
  launch.order = std::make_unique<BlockOrder>(launch.blocks());
  unsigned threads = unsigned(std::min<uint64_t>(std::max(options.threads, 1u), launch.blocks()));
  Grid grid(launch, (residentBlocks + threads - 1) / threads, options.seed);
  std::vector<Counts> shares(threads);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { grid.work(shares[i]); });
  }
  grid.work(shares[0]);
  for (std::thread &each : others) {
    each.join();
  }
  Counts sum;
  for (const Counts &each : shares) {
    sum.add(each);
  }
  sum.launches = 1;
  counts.add(*launch.kernel, sum);
  if (grid.first) {
    throw *grid.first;
  }
  return sum;
}

} // namespace ptx
