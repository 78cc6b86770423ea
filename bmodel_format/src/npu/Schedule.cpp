// SPDX-License-Identifier: Apache-2.0
//===- Schedule.cpp - When each command of a stream runs --------------------===//
#include "bmodel/npu/latency.h"

#include <algorithm>
#include <limits>

namespace bmodel::npu {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Smallest rate of a DMA command, relative to its full speed, even if a compute command uses the bank all the time.
constexpr double kLeastShare = 0.125;

/// One of the two queues; at most one of its commands runs at a time.
struct Runner {
  std::vector<size_t> order; ///< indices of its commands
  size_t next = 0;           ///< index into `order` of the running command, or of the next one
  bool active = false;
  double left = 0; ///< remaining cycles of the running command
  double rate = 1;

  bool finished() const { return next == order.size(); }
};

class Timeline {
public:
  Timeline(const Descriptor *commands, const Cost *costs, size_t count)
      : commands(commands), costs(costs), spans(count) {
    for (size_t i = 0; i < count; ++i) {
      queues[int(findCommand(commands[i].header.opcode)->queue)].order.push_back(i);
    }
  }

  std::vector<Span> run() {
    double now = 0;
    while (!queues[0].finished() || !queues[1].finished()) {
      begin(now, 0);
      begin(now, 1);
      setRates();
      double step = std::min(untilEnd(queues[0]), untilEnd(queues[1]));
      if (step == kNever) {
        break; // cannot happen after verifyStream
      }
      now += step;
      advance(queues[0], step, now);
      advance(queues[1], step, now);
    }
    return std::move(spans);
  }

private:
  void begin(double now, int which) {
    Runner &queue = queues[which];
    if (queue.active || queue.finished()) {
      return;
    }
    size_t index = queue.order[queue.next];
    if (commands[index].header.wait > queues[1 - which].next) {
      return; // `next` commands of the other queue have ended
    }
    queue.active = true, queue.left = costs[index].cycles;
    spans[index].begin = now;
  }

  void setRates() {
    queues[0].rate = queues[1].rate = 1;
    if (!queues[0].active || !queues[1].active) {
      return;
    }
    const Cost &dma = costs[queues[0].order[queues[0].next]], &compute = costs[queues[1].order[queues[1].next]];
    for (size_t bank = 0; bank < std::min(dma.ports.size(), compute.ports.size()); ++bank) {
      double wanted = dma.ports[bank] / dma.cycles, taken = compute.ports[bank] / compute.cycles;
      if (wanted + taken > 1) {
        queues[0].rate = std::min(queues[0].rate, std::max((1 - taken) / wanted, kLeastShare));
      }
    }
  }

  static double untilEnd(const Runner &queue) { return queue.active ? queue.left / queue.rate : kNever; }

  void advance(Runner &queue, double step, double now) {
    if (!queue.active) {
      return;
    }
    Span &span = spans[queue.order[queue.next]];
    double end = queue.left / queue.rate;
    span.stalled += step * (1 - queue.rate);
    queue.left -= step * queue.rate;
    if (end <= step) {
      span.end = now;
      queue.active = false;
      ++queue.next;
    }
  }

  const Descriptor *commands;
  const Cost *costs;
  std::vector<Span> spans;
  Runner queues[2];
};

} // namespace

std::vector<Span> schedule(const Descriptor *commands, const Cost *costs, size_t count, const Chip &chip) {
  return Timeline(commands, costs, count).run();
}

} // namespace bmodel::npu
