// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - What a stream did with its time -------------------------===//
#include "bmodel/npu/report.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kQueues[] = {"dma", "compute"};
constexpr int kBounds = int(std::size(Counters().boundCycles));

Purpose purposeOf(Region region, uint32_t inputs) {
  if (region == Region::constants) {
    return Purpose::weights;
  }
  if (region >= Region::io) {
    return uint32_t(region) - uint32_t(Region::io) < inputs ? Purpose::input : Purpose::output;
  }
  return Purpose::intermediate;
}

void add(Traffic &to, const Traffic &from) { to.asked += from.asked, to.moved += from.moved; }

void addTraffic(Counters &counters, const Descriptor &command, const Cost &cost, uint32_t inputs) {
  Operand operands[kMostOperands];
  size_t number = operandsOf(command, operands);
  add(counters.traffic[int(purposeOf(operands[0].tensor.region, inputs))], cost.written);
  if (number > 1) {
    add(counters.traffic[int(purposeOf(operands[1].tensor.region, inputs))], cost.read);
  }
}

/// Three digits behind the point: a file is to be read, and the same on every machine.
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string nameOfLayer(uint32_t layer, const std::vector<std::string> &names) {
  return layer < names.size() ? names[layer] : "";
}

Json jsonOf(const Traffic &traffic) { return {{"asked", traffic.asked}, {"moved", traffic.moved}}; }

Json jsonOf(const Counters &counters) {
  Json made;
  for (int queue = 0; queue < 2; ++queue) {
    made[kQueues[queue]] = {{"commands", counters.commands[queue]}, {"busy_cycles", rounded(counters.busy[queue])}};
  }
  made["dma"]["stalled_cycles"] = rounded(counters.stalled);
  for (int bound = 0; bound < kBounds; ++bound) {
    if (counters.boundCycles[bound] > 0) {
      made["bound_cycles"][nameOf(Bound(bound))] = rounded(counters.boundCycles[bound]);
    }
  }
  made["products"] = counters.products;
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    made["ddr_bytes"][nameOf(Purpose(purpose))] = jsonOf(counters.traffic[purpose]);
  }
  return made;
}

} // namespace

const char *nameOf(Purpose purpose) {
  constexpr const char *names[] = {"weights", "input", "output", "intermediate"};
  return names[int(purpose)];
}

Report reportOf(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count, uint32_t inputs) {
  Report report;
  for (size_t i = 0; i < count; ++i) {
    report.cycles = std::max(report.cycles, spans[i].end);
    int queue = int(findCommand(commands[i].header.opcode)->queue);
    for (Counters *each : {&report.all, &report.layers[commands[i].header.layer]}) {
      double cycles = spans[i].end - spans[i].begin;
      each->busy[queue] += cycles, each->stalled += spans[i].stalled;
      each->boundCycles[int(costs[i].bound)] += cycles;
      ++each->commands[queue];
      each->products += costs[i].products;
      addTraffic(*each, commands[i], costs[i], inputs);
    }
  }
  for (int queue = 0; queue < 2; ++queue) {
    report.waited[queue] = report.cycles - report.all.busy[queue];
  }
  return report;
}

std::string reportJson(const Report &report, const Chip &chip, const std::vector<std::string> &names) {
  Json made = {{"chip", chip.name},
               {"cycles", rounded(report.cycles)},
               {"microseconds", rounded(chip.secondsOf(report.cycles) * 1e6)}};
  double peak = report.cycles * chip.lanes * chip.macsPerLane();
  made["mac_utilisation"] = peak > 0 ? rounded(double(report.all.products) / peak) : 0;
  made.update(jsonOf(report.all));
  for (int queue = 0; queue < 2; ++queue) {
    made[kQueues[queue]]["idle_cycles"] = rounded(report.waited[queue]);
  }
  made["layers"] = Json::array();
  for (const auto &[layer, counters] : report.layers) {
    Json entry = {{"layer", layer}, {"name", nameOfLayer(layer, names)}};
    entry.update(jsonOf(counters));
    made["layers"].push_back(std::move(entry));
  }
  return made.dump(2) + "\n";
}

std::string chromeTrace(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const Chip &chip, const std::vector<std::string> &names) {
  Json events = Json::array();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", chip.name}}}});
  for (int queue = 0; queue < 2; ++queue) {
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", queue}, {"args", {{"name", kQueues[queue]}}}});
  }
  auto micro = [&](double cycles) { return rounded(chip.secondsOf(cycles) * 1e6); };
  for (size_t i = 0; i < count; ++i) {
    const CommandText &text = *findCommand(commands[i].header.opcode);
    std::string layer = nameOfLayer(commands[i].header.layer, names);
    events.push_back({{"name", layer.empty() ? text.name : text.name + (" " + layer)},
                      {"cat", nameOf(costs[i].bound)},
                      {"ph", "X"},
                      {"ts", micro(spans[i].begin)},
                      {"dur", micro(spans[i].end - spans[i].begin)},
                      {"pid", 1},
                      {"tid", int(text.queue)},
                      {"args",
                       {{"id", commands[i].header.id},
                        {"wait", commands[i].header.wait},
                        {"layer", commands[i].header.layer},
                        {"cycles", rounded(spans[i].end - spans[i].begin)},
                        {"stalled", rounded(spans[i].stalled)},
                        {"bound", nameOf(costs[i].bound)}}}});
  }
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

} // namespace bmodel::npu
