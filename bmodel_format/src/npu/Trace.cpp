// SPDX-License-Identifier: Apache-2.0
//===- Trace.cpp - Timeline of a stream for Perfetto ------------------------===//
#include "bmodel/npu/report.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
constexpr int kFirstQueue = 1; ///< track numbers; 0 would be the idle thread
constexpr int kFirstLayer = 3;

/// Builds events of the Chrome trace format. Times are rounded once, to whole nanoseconds, and written in microseconds
/// as the format requires: slices without a gap between them neither overlap nor get one.
class Trace {
public:
  Trace(const Chip &chip, const std::vector<std::string> &names) : chip(chip), names(names) {
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", kProcess}, {"args", {{"name", chip.name}}}});
    nameTrack(kFirstQueue, "dma");
    nameTrack(kFirstQueue + 1, "compute");
  }

  void addCommands(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                   const std::vector<size_t> &firsts);
  void addLayers(const Descriptor *commands, const Span *spans, size_t count);
  void addTraffic(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count);
  void addUse(const MemoryUse &use, const char *name);
  std::string text() { return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump() + "\n"; }

private:
  int64_t nanoseconds(double cycles) const { return std::llround(chip.secondsOf(cycles) * 1e9); }
  static double micro(int64_t nanoseconds) { return double(nanoseconds) / 1000; }
  static int trackOf(const Descriptor &command) { return kFirstQueue + int(findCommand(command.header.opcode)->queue); }

  std::string nameOfLayer(uint32_t layer) const { return layer < names.size() ? names[layer] : ""; }

  /// Names a track and sets its position: Perfetto shows tracks in the order of their numbers, not of their first
  /// events.
  void nameTrack(int track, const std::string &name) {
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"args", {{"name", name}}}});
    events.push_back({{"name", "thread_sort_index"},
                      {"ph", "M"},
                      {"pid", kProcess},
                      {"tid", track},
                      {"args", {{"sort_index", track}}}});
  }

  void addSlice(const std::string &name, const char *category, int track, const Span &span, Json args) {
    int64_t begin = nanoseconds(span.begin);
    events.push_back({{"name", name},
                      {"cat", category},
                      {"ph", "X"},
                      {"ts", micro(begin)},
                      {"dur", micro(nanoseconds(span.end) - begin)},
                      {"pid", kProcess},
                      {"tid", track},
                      {"args", std::move(args)}});
  }

  /// Adds an arrow from the end of a command to the start of a command that waited for it.
  void addFlow(const Descriptor &from, const Span &ended, const Descriptor &to, const Span &begun) {
    // Start the arrow 1 ns before the end: a slice that ends exactly at that time would not be found.
    int64_t end = std::max(nanoseconds(ended.end) - 1, nanoseconds(ended.begin));
    for (bool begins : {true, false}) {
      Json event = {{"name", "wait"},
                    {"cat", "wait"},
                    {"ph", begins ? "s" : "f"},
                    {"id", flows},
                    {"pid", kProcess},
                    {"tid", trackOf(begins ? from : to)},
                    {"ts", micro(begins ? end : nanoseconds(begun.begin))}};
      if (!begins) {
        event["bp"] = "e"; // binds to the enclosing slice, not to the next one
      }
      events.push_back(std::move(event));
    }
    ++flows;
  }

  void addCounter(const char *name, const char *unit, const std::map<int64_t, double> &values) {
    double last = -1;
    for (auto [time, value] : values) {
      if (value != last) {
        events.push_back(
            {{"name", name}, {"ph", "C"}, {"pid", kProcess}, {"ts", micro(time)}, {"args", {{unit, value}}}});
      }
      last = value;
    }
  }

  const Chip &chip;
  const std::vector<std::string> &names;
  Json events = Json::array();
  uint64_t flows = 1;
};

void Trace::addCommands(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const std::vector<size_t> &firsts) {
  std::vector<size_t> queues[2]; // of the current stream: a wait counts the commands of the other queue
  for (size_t i = 0; i < count; ++i) {
    const Header &header = commands[i].header;
    const CommandText &text = *findCommand(header.opcode);
    std::string layer = nameOfLayer(header.layer);
    if (std::find(firsts.begin(), firsts.end(), i) != firsts.end()) {
      queues[0].clear(), queues[1].clear();
    }
    std::vector<size_t> &mine = queues[int(text.queue)], &others = queues[1 - int(text.queue)];
    mine.push_back(i);
    addSlice(layer.empty() ? text.name : text.name + (" " + layer), nameOf(costs[i].bound), trackOf(commands[i]),
             spans[i],
             {{"id", header.id},
              {"wait", header.wait},
              {"layer", header.layer},
              {"cycles", std::round((spans[i].end - spans[i].begin) * 1000) / 1000},
              {"stalled", std::round(spans[i].stalled * 1000) / 1000},
              {"bound", nameOf(costs[i].bound)}});
    if (header.wait && header.wait <= others.size()) {
      size_t from = others[header.wait - 1];
      addFlow(commands[from], spans[from], commands[i], spans[i]);
    }
  }
}

/// Layers overlap if one is loaded while another computes; each layer goes to the first free track.
void Trace::addLayers(const Descriptor *commands, const Span *spans, size_t count) {
  std::map<uint32_t, Span> layers;
  for (size_t i = 0; i < count; ++i) {
    auto [found, isNew] = layers.emplace(commands[i].header.layer, spans[i]);
    Span &span = found->second;
    span = {std::min(span.begin, spans[i].begin), std::max(span.end, spans[i].end), 0};
  }
  std::vector<std::pair<Span, uint32_t>> order;
  for (const auto &[layer, span] : layers) {
    order.emplace_back(span, layer);
  }
  std::sort(order.begin(), order.end(),
            [](auto &a, auto &b) { return std::pair(a.first.begin, a.second) < std::pair(b.first.begin, b.second); });
  std::vector<int64_t> ends; // by track
  for (const auto &[span, layer] : order) {
    auto free = std::find_if(ends.begin(), ends.end(),
                             [&, begin = nanoseconds(span.begin)](int64_t end) { return end <= begin; });
    int track = kFirstLayer + int(free - ends.begin());
    if (free == ends.end()) {
      free = ends.insert(ends.end(), 0);
      nameTrack(track, "layers " + std::to_string(ends.size()));
    }
    *free = nanoseconds(span.end);
    std::string name = nameOfLayer(layer);
    addSlice(name.empty() ? "layer " + std::to_string(layer) : name, "layer", track, span, {{"layer", layer}});
  }
}

/// Adds a counter of the DDR rate in bytes per nanosecond while a DMA command runs.
void Trace::addTraffic(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count) {
  std::map<int64_t, double> values;
  for (size_t i = 0; i < count; ++i) {
    int64_t begin = nanoseconds(spans[i].begin), end = nanoseconds(spans[i].end);
    if (findCommand(commands[i].header.opcode)->queue == Queue::dma && end > begin) {
      double rate = double(costs[i].read.moved + costs[i].written.moved) / double(end - begin);
      values[begin] = std::round(rate * 1000) / 1000;
      values.emplace(end, 0);
    }
  }
  addCounter("DDR, GB/s", "GB/s", values);
}

/// Adds a counter of the bytes in use.
void Trace::addUse(const MemoryUse &use, const char *name) {
  std::map<int64_t, double> changes;
  for (const Rectangle &each : use.rectangles) {
    changes[nanoseconds(each.from)] += double(each.end - each.begin);
    changes[nanoseconds(each.to)] -= double(each.end - each.begin);
  }
  double used = 0;
  for (auto &[time, bytes] : changes) {
    bytes = used += bytes;
  }
  addCounter(name, "bytes", changes);
}

} // namespace

std::string chromeTrace(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const Chip &chip, const std::vector<std::string> &names, const MemoryReport *memory,
                        const std::vector<size_t> &firsts) {
  Trace trace(chip, names);
  trace.addCommands(commands, costs, spans, count, firsts);
  trace.addLayers(commands, spans, count);
  trace.addTraffic(commands, costs, spans, count);
  if (memory) {
    trace.addUse(memory->local, "local memory of a lane, bytes");
    trace.addUse(memory->workspace, "intermediate results in DDR, bytes");
  }
  return trace.text();
}

} // namespace bmodel::npu
