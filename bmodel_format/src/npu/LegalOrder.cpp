// SPDX-License-Identifier: Apache-2.0
//===- LegalOrder.cpp - Random legal orders of a stream ---------------------===//
#include "bmodel/npu/check.h"

#include <random>

namespace bmodel::npu {

std::vector<size_t> legalOrder(const Descriptor *commands, size_t count, uint64_t seed) {
  std::vector<size_t> queues[2], order;
  for (size_t i = 0; i < count; ++i) {
    queues[int(findCommand(commands[i].header.opcode)->queue)].push_back(i);
  }
  size_t done[2] = {0, 0};
  auto canGoOn = [&](int queue) {
    return done[queue] < queues[queue].size() && commands[queues[queue][done[queue]]].header.wait <= done[1 - queue];
  };
  std::mt19937_64 generator(seed);
  // Each queue runs several commands at a time, so that commands far apart in the stream also meet.
  while (order.size() < count) {
    int queue = int(generator() % 2);
    for (uint64_t left = 1 + generator() % 16; left > 0 && canGoOn(queue); --left) {
      order.push_back(queues[queue][done[queue]++]);
    }
  }
  return order;
}

} // namespace bmodel::npu
