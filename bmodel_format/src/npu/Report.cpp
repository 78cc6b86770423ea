// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - How a stream spends its time ----------------------------===//
#include "bmodel/npu/report.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kQueues[] = {"dma", "compute"};

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

/// Attributes every moment of the stream to a share. Relies on each queue running its commands one after another.
void share(Report &report, const Descriptor *commands, const Cost *costs, const Span *spans, size_t count) {
  std::vector<size_t> queues[2];
  for (size_t i = 0; i < count; ++i) {
    queues[int(findCommand(commands[i].header.opcode)->queue)].push_back(i);
  }
  auto account = [&](double cycles, int share, const size_t *command) {
    report.all.shares[share] += cycles;
    if (command) {
      report.layers[commands[*command].header.layer].shares[share] += cycles;
    }
  };
  const std::vector<size_t> &dma = queues[int(Queue::dma)];
  double now = 0;
  size_t next = 0;
  // Attributes the time up to `end`, in which no compute command runs.
  auto fill = [&](double end) {
    while (now < end) {
      for (; next < dma.size() && spans[dma[next]].end <= now; ++next) {
      }
      double begin = next < dma.size() ? std::min(spans[dma[next]].begin, end) : end;
      if (begin > now) {
        account(begin - now, kIdle, nullptr);
        now = begin;
        continue;
      }
      double behind = std::min(spans[dma[next]].end, end);
      account(behind - now, int(costs[dma[next]].bound), &dma[next]);
      now = behind;
    }
  };
  for (size_t i : queues[int(Queue::compute)]) {
    fill(spans[i].begin);
    account(spans[i].end - now, int(costs[i].bound), &i);
    now = spans[i].end;
  }
  fill(report.cycles);
}

/// Rounds to three decimals: readable, and identical on every machine.
double rounded(double value) { return std::round(value * 1000) / 1000; }

/// Returns a CSV cell, quoted if necessary.
std::string quoted(const std::string &text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (char each : text) {
    result += each == '"' ? std::string("\"\"") : std::string(1, each);
  }
  return result + "\"";
}

std::string nameOfLayer(uint32_t layer, const std::vector<std::string> &names) {
  return layer < names.size() ? names[layer] : "";
}

double utilisation(uint64_t macs, double cycles, const Chip &chip) {
  double peak = cycles * chip.lanes * chip.macsPerLane();
  return peak > 0 ? rounded(double(macs) / peak) : 0;
}

Json jsonOf(const Traffic &traffic) { return {{"asked", traffic.asked}, {"moved", traffic.moved}}; }

Json jsonOf(const Counters &counters) {
  Json result;
  for (int queue = 0; queue < 2; ++queue) {
    result[kQueues[queue]] = {{"commands", counters.commands[queue]}, {"busy_cycles", rounded(counters.busy[queue])}};
  }
  result["dma"]["stalled_cycles"] = rounded(counters.stalled);
  // Write both keys even for a layer that costs nothing: readers expect them.
  result["bound_cycles"] = result["time_cycles"] = Json::object();
  for (int bound = 0; bound < kBounds; ++bound) {
    if (counters.boundCycles[bound] > 0) {
      result["bound_cycles"][nameOf(Bound(bound))] = rounded(counters.boundCycles[bound]);
    }
  }
  for (int share = 0; share < kShares; ++share) {
    if (counters.shares[share] > 0) {
      result["time_cycles"][nameOfShare(share)] = rounded(counters.shares[share]);
    }
  }
  result["products"] = counters.macs;
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    result["ddr_bytes"][nameOf(Purpose(purpose))] = jsonOf(counters.traffic[purpose]);
  }
  return result;
}

void addMatrixCycles(Json &entry, const Roofline *roofline, uint32_t layer) {
  if (roofline) {
    auto found = roofline->matrixOfLayer.find(layer);
    entry["matrix_least_cycles"] = found == roofline->matrixOfLayer.end() ? 0 : rounded(found->second);
  }
}

void addLinks(Json &entry, const std::map<uint32_t, LayerLinks> &links, uint32_t layer) {
  auto found = links.find(layer);
  const LayerLinks &known = found == links.end() ? LayerLinks() : found->second;
  entry["stream"] = known.stream;
  entry["reads_layers"] = known.from, entry["reads_buffers"] = known.buffersRead;
  entry["writes_buffers"] = known.buffersWritten;
}

} // namespace

const char *nameOf(Purpose purpose) {
  constexpr const char *names[] = {"weights", "input", "output", "intermediate"};
  return names[int(purpose)];
}

const char *nameOfShare(int share) { return share == kIdle ? "idle" : nameOf(Bound(share)); }

double Counters::cycles() const { return std::accumulate(std::begin(shares), std::end(shares), 0.0); }

int Counters::largestShare() const { return int(std::max_element(std::begin(shares), std::end(shares)) - shares); }

uint64_t Counters::ddrBytes() const {
  uint64_t bytes = 0;
  for (const Traffic &each : traffic) {
    bytes += each.moved;
  }
  return bytes;
}

Report reportOf(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count, uint32_t inputs) {
  Report report;
  for (size_t i = 0; i < count; ++i) {
    report.cycles = std::max(report.cycles, spans[i].end);
    int queue = int(findCommand(commands[i].header.opcode)->queue);
    for (Counters *each : {&report.all, &report.layers[commands[i].header.layer]}) {
      bool isFirst = each->commands[0] + each->commands[1] == 0;
      each->begin = isFirst ? spans[i].begin : std::min(each->begin, spans[i].begin);
      each->end = std::max(each->end, spans[i].end);
      double cycles = spans[i].end - spans[i].begin;
      each->busy[queue] += cycles, each->stalled += spans[i].stalled;
      each->boundCycles[int(costs[i].bound)] += cycles;
      ++each->commands[queue];
      each->macs += costs[i].macs;
      addTraffic(*each, commands[i], costs[i], inputs);
    }
  }
  for (int queue = 0; queue < 2; ++queue) {
    report.waited[queue] = report.cycles - report.all.busy[queue];
  }
  share(report, commands, costs, spans, count);
  return report;
}

void append(Report &report, const Report &next, uint32_t layer) {
  auto addTo = [&](Counters &to, const Counters &from, bool isNew) {
    to.begin = isNew ? report.cycles + from.begin : to.begin;
    to.end = report.cycles + from.end;
    std::transform(std::begin(from.shares), std::end(from.shares), to.shares, to.shares, std::plus<>());
    std::transform(std::begin(from.boundCycles), std::end(from.boundCycles), to.boundCycles, to.boundCycles,
                   std::plus<>());
    for (int queue = 0; queue < 2; ++queue) {
      to.busy[queue] += from.busy[queue], to.commands[queue] += from.commands[queue];
    }
    to.stalled += from.stalled, to.macs += from.macs;
    for (int purpose = 0; purpose < kPurposes; ++purpose) {
      to.traffic[purpose].asked += from.traffic[purpose].asked;
      to.traffic[purpose].moved += from.traffic[purpose].moved;
    }
  };
  addTo(report.all, next.all, report.cycles == 0);
  for (const auto &[number, counters] : next.layers) {
    addTo(report.layers[layer + number], counters, true);
  }
  report.cycles += next.cycles;
  for (int queue = 0; queue < 2; ++queue) {
    report.waited[queue] += next.waited[queue];
  }
}

std::string reportJson(const Report &report, const Chip &chip, const std::vector<std::string> &names,
                       const MemoryReport *memory, const Roofline *roofline, const HostShare *host) {
  Json result = {{"report_version", kReportVersion},
                 {"chip", chip.name},
                 {"cycles", rounded(report.cycles)},
                 {"microseconds", rounded(chip.secondsOf(report.cycles) * 1e6)}};
  result["runs_per_second"] = report.cycles > 0 ? rounded(1 / chip.secondsOf(report.cycles)) : 0;
  result["mac_utilisation"] = utilisation(report.all.macs, report.cycles, chip);
  result.update(jsonOf(report.all));
  for (int queue = 0; queue < 2; ++queue) {
    result[kQueues[queue]]["idle_cycles"] = rounded(report.waited[queue]);
  }
  if (roofline) {
    double ratio = roofline->cycles() > 0 ? rounded(report.cycles / roofline->cycles()) : 0;
    result["roofline"] = {{"compute_cycles", rounded(roofline->compute)},
                          {"dense_cycles", rounded(roofline->dense)},
                          {"depthwise_cycles", rounded(roofline->depthwise)},
                          {"vector_cycles", rounded(roofline->vector)},
                          {"ddr_cycles", rounded(roofline->ddr)},
                          {"ratio", ratio}};
  }
  result["ddr_moved_bytes"] = report.all.ddrBytes();
  if (memory) {
    result["ddr_lower_bound_bytes"] = memory->ddrLowerBound;
    result["local_memory"] = {
        {"bytes_per_lane", chip.laneBytes}, {"peak_bytes", memory->local.peak}, {"top_bytes", memory->local.top}};
    result["workspace"] = {{"peak_bytes", memory->workspace.peak}, {"top_bytes", memory->workspace.top}};
  }
  if (host && host->subnets) {
    result["host"] = {{"subnets", host->subnets},
                      {"steps", host->steps},
                      {"microseconds", rounded(host->microseconds)},
                      {"hand_over_microseconds", rounded(host->handOverMicroseconds)}};
    result["total_microseconds"] =
        rounded(chip.secondsOf(report.cycles) * 1e6 + host->microseconds + host->handOverMicroseconds);
  }
  result["layers"] = Json::array();
  for (const auto &[layer, counters] : report.layers) {
    Json entry = {{"layer", layer},
                  {"name", nameOfLayer(layer, names)},
                  {"cycles", rounded(counters.cycles())},
                  {"bound", nameOfShare(counters.largestShare())},
                  {"begin_cycle", rounded(counters.begin)},
                  {"end_cycle", rounded(counters.end)},
                  {"mac_utilisation", utilisation(counters.macs, counters.cycles(), chip)}};
    entry.update(jsonOf(counters));
    addMatrixCycles(entry, roofline, layer);
    if (memory) {
      auto least = memory->leastDdrBytes.find(layer);
      // A gather reads fewer bytes than the table that it may access.
      entry["ddr_least_bytes"] =
          least == memory->leastDdrBytes.end() ? 0 : std::min(least->second, counters.ddrBytes());
      addLinks(entry, memory->links, layer);
    }
    result["layers"].push_back(std::move(entry));
  }
  return result.dump(2) + "\n";
}

std::string layersCsv(const Report &report, const Chip &chip, const std::vector<std::string> &names) {
  std::vector<std::pair<uint32_t, const Counters *>> layers;
  for (const auto &[layer, counters] : report.layers) {
    layers.emplace_back(layer, &counters);
  }
  std::sort(layers.begin(), layers.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second->begin, a.first) < std::pair(b.second->begin, b.first);
  });
  std::ostringstream text;
  text << "layer,name,microseconds,share,bound,begin_us,end_us,mac_utilisation,products,compute_commands,dma_commands,"
          "compute_busy_us,dma_busy_us";
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    text << "," << nameOf(Purpose(purpose)) << "_bytes";
  }
  text << "\n";
  auto micro = [&](double cycles) { return rounded(chip.secondsOf(cycles) * 1e6); };
  for (const auto &[layer, counters] : layers) {
    text << layer << "," << quoted(nameOfLayer(layer, names)) << "," << micro(counters->cycles()) << ","
         << rounded(report.cycles > 0 ? counters->cycles() / report.cycles : 0) << ","
         << nameOfShare(counters->largestShare()) << "," << micro(counters->begin) << "," << micro(counters->end) << ","
         << utilisation(counters->macs, counters->cycles(), chip) << "," << counters->macs << ","
         << counters->commands[1] << "," << counters->commands[0] << "," << micro(counters->busy[1]) << ","
         << micro(counters->busy[0]);
    for (const Traffic &traffic : counters->traffic) {
      text << "," << traffic.moved;
    }
    text << "\n";
  }
  return text.str();
}

} // namespace bmodel::npu
