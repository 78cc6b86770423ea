// SPDX-License-Identifier: Apache-2.0
//===- npu-perf.cpp - Performance report of an NPU model --------------------===//
//
//   npu-perf FILE.bmodel [--stage N] [--chip-set FIELD=VALUE]... [--report FOLDER]
//   npu-perf FILE.bmodel [--stage N] --commands [--numbered]
//
// N counts all stages of the file from 0; the default is the first stage for an NPU. The second form prints one command
// per line, followed by its layer. With --numbered each line starts with the numbers of the stream, of the layer in the
// stream and of the command in the stream, and a tab. The first form prints the report as JSON. With --report it also
// writes the report, the layers as CSV, a Chrome trace and pictures of the memories into an existing folder. If the
// host runs part of the model, the NPU's streams are reported as if they ran one after another. Nothing is executed, as
// times do not depend on data. Exit codes: 0 for success, 1 with a message on stderr, 2 for wrong arguments. model_tool
// and model_deploy present the results to users.
//
//===----------------------------------------------------------------------===//
#include "MapFile.h"
#include "Program.h"

#include "bmodel/npu/check.h"
#include "bmodel/npu/model_stream.h"
#include "bmodel/npu/report.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

int fail(const std::string &message) {
  std::cerr << message << "\n";
  return 1;
}

/// Parses the file's chip and applies changes, which must leave the program valid.
std::string findChip(const ModelView &view, const StageDef &stage, const std::vector<std::string> &changes,
                     Chip &chip) {
  const ChipDef &def = *view.model->chips()->Get(stage.chip());
  std::string text = def.description() ? def.description()->str() : "", error;
  std::string recorded = def.fingerprint() ? def.fingerprint()->str() : "";
  if (!parseChip(text, "the file's chip", chip, error)) {
    return error;
  }
  if (fingerprint(chip) != recorded) {
    return "the file's chip has the fingerprint " + fingerprint(chip) + ", its program is for " + recorded;
  }
  for (const std::string &change : changes) {
    if (!setField(text, change, error)) {
      return "--chip-set " + change + ": " + error;
    }
    if (!parseChip(text, "--chip-set " + change, chip, error)) {
      return error;
    }
    if (fingerprint(chip) != recorded) {
      return "--chip-set " + change + " makes it a chip that the program does not fit: deploy the model for that chip";
    }
  }
  return "";
}

/// Finds the stage with the given number; without a number, the first stage for an NPU.
std::string chooseStage(const ModelView &view, const std::string &number, const StageDef *&stage) {
  std::string known;
  for (const NumberedStage &each : findNpuStages(view)) {
    if (number.empty() || number == std::to_string(each.number)) {
      stage = each.stage;
      return "";
    }
    known += (known.empty() ? "" : ", ") + std::to_string(each.number);
  }
  return known.empty() ? "the file has no program for an NPU; only NPU programs have a time estimate"
                       : "stage " + number + " of the file is not for an NPU; the stages for an NPU are: " + known;
}

/// Prints the commands of a stream; with |number|, prefixes each with that stream number.
int printCommands(const ModelStream &stream, std::optional<size_t> number) {
  Status status;
  if (!verifyStream(stream.commands, stream.count, status)) {
    return fail(status.message);
  }
  for (size_t i = 0; i < stream.count; ++i) {
    uint32_t layer = stream.commands[i].header.layer;
    if (number) {
      std::cout << *number << " " << layer << " " << i << "\t";
    }
    std::cout << disassemble(stream.commands[i]) << (layer < stream.layers.size() ? "  # " + stream.layers[layer] : "")
              << "\n";
  }
  return 0;
}

bool writeFile(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return bool(file);
}

/// The streams of a file, concatenated in time.
struct Joined {
  std::vector<Descriptor> commands;
  std::vector<Cost> costs;
  std::vector<Span> spans;
  std::vector<std::string> layers;
  Report report;
  Roofline roofline;
  MemoryReport memory;
  std::vector<size_t> firsts; ///< index of the first command of each stream
};

/// Pictures of one stream's memories: the texts of local.svg and ddr.svg.
using Pictures = std::pair<std::string, std::string>;

std::string join(const ModelStream &stream, const Chip &chip, Joined &joinedStreams, Pictures &pictures) {
  Status status;
  if (!checkOperands(stream.commands, stream.count, chip, stream.sizes, status)) {
    return status.message;
  }
  std::vector<Cost> costs;
  for (size_t i = 0; i < stream.count; ++i) {
    costs.push_back(costOf(stream.commands[i], chip));
  }
  const Descriptor *commands = stream.commands;
  std::vector<Span> spans = schedule(commands, costs.data(), stream.count, chip);
  Report result = reportOf(commands, costs.data(), spans.data(), stream.count, stream.sizes.inputs);
  MemoryReport memory = memoryReportOf(commands, spans.data(), stream.count, chip, stream.layers);
  Roofline roofline = rooflineOf(commands, stream.count, memory, chip);
  pictures = {memorySvg(memory.local, chip.name + ", local memory of a lane", chip.laneBytes, chip.banks, commands,
                        chip, stream.layers),
              memorySvg(joined(memory.workspace, commands), chip.name + ", intermediate results in DDR",
                        stream.sizes.workspace, 0, commands, chip, stream.layers)};
  Joined &all = joinedStreams;
  auto layer = uint32_t(all.layers.size());
  const double begin = all.report.cycles;
  all.firsts.push_back(all.commands.size());
  for (size_t i = 0; i < stream.count; ++i) {
    all.commands.push_back(commands[i]);
    all.commands.back().header.layer += layer;
    all.spans.push_back({spans[i].begin + begin, spans[i].end + begin, spans[i].stalled});
  }
  all.costs.insert(all.costs.end(), costs.begin(), costs.end());
  all.layers.insert(all.layers.end(), stream.layers.begin(), stream.layers.end());
  append(all.report, result, layer);
  all.roofline.compute += roofline.compute, all.roofline.ddr += roofline.ddr;
  all.roofline.dense += roofline.dense, all.roofline.depthwise += roofline.depthwise;
  all.roofline.vector += roofline.vector;
  for (auto [each, cycles] : roofline.matrixOfLayer) {
    all.roofline.matrixOfLayer[layer + each] = cycles;
  }
  all.memory.ddrLowerBound += memory.ddrLowerBound;
  for (auto [each, bytes] : memory.leastDdrBytes) {
    all.memory.leastDdrBytes[layer + each] = bytes;
  }
  for (const auto &[each, links] : memory.links) {
    LayerLinks &mine = all.memory.links[layer + each] = links;
    mine.stream = uint32_t(all.firsts.size() - 1), mine.from.clear();
    for (uint32_t from : links.from) {
      mine.from.insert(layer + from);
    }
  }
  for (auto [to, from] : {std::pair(&all.memory.local, &memory.local), {&all.memory.workspace, &memory.workspace}}) {
    to->peak = std::max(to->peak, from->peak), to->top = std::max(to->top, from->top);
    for (Rectangle each : from->rectangles) {
      each.from += begin, each.to += begin, each.command += all.firsts.back();
      to->rectangles.push_back(each);
    }
  }
  return "";
}

int report(const std::vector<ModelStream> &streams, const HostShare &host, const Chip &chip,
           const std::string &folder) {
  Joined all;
  std::vector<Pictures> pictures(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    if (std::string message = join(streams[i], chip, all, pictures[i]); !message.empty()) {
      return fail(message);
    }
  }
  std::string json = reportJson(all.report, chip, all.layers, &all.memory, &all.roofline, &host);
  std::cout << json;
  if (folder.empty()) {
    return 0;
  }
  std::vector<std::pair<std::string, std::string>> files = {
      {"report.json", json},
      {"layers.csv", layersCsv(all.report, chip, all.layers)},
      {"memory.json", memoryJson(all.memory, all.commands.data(), chip)},
      {"trace.json", chromeTrace(all.commands.data(), all.costs.data(), all.spans.data(), all.commands.size(), chip,
                                 all.layers, &all.memory, all.firsts)}};
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::string number = i ? "-" + std::to_string(i + 1) : "";
    files.emplace_back("local" + number + ".svg", pictures[i].first);
    files.emplace_back("ddr" + number + ".svg", pictures[i].second);
  }
  for (const auto &[name, text] : files) {
    if (!writeFile(folder + "/" + name, text)) {
      return fail("failed to write " + folder + "/" + name);
    }
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::string path, folder;
  std::vector<std::string> changes;
  bool commands = false, numbered = false;
  std::string number;
  const std::vector<std::string> arguments = program::begin("npu-perf", argc, argv);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &word = arguments[i];
    bool hasValue = i + 1 < arguments.size();
    if (word == "--report" && hasValue) {
      folder = arguments[++i];
    } else if (word == "--chip-set" && hasValue) {
      changes.push_back(arguments[++i]);
    } else if (word == "--stage" && hasValue) {
      number = arguments[++i];
    } else if (word == "--commands") {
      commands = true;
    } else if (word == "--numbered") {
      numbered = true;
    } else if (path.empty() && word.rfind("--", 0) != 0) {
      path = word;
    } else {
      std::cerr << "usage: npu-perf FILE.bmodel [--stage N] [--chip-set FIELD=VALUE]... [--report FOLDER] | --commands "
                   "[--numbered]\n";
      return 2;
    }
  }
  uint64_t bytes = 0;
  const void *data = mapFile(path.c_str(), bytes);
  ModelView view;
  Status status;
  if (!data) {
    return fail("failed to read the file, or it is empty");
  }
  if (!openModel(data, bytes, view, status)) {
    return fail(status.message);
  }
  std::vector<ModelStream> streams;
  Chip chip;
  const StageDef *stage = nullptr;
  std::string message = chooseStage(view, number, stage);
  if (message.empty()) {
    message = findStreams(view, *stage, streams);
  }
  if (message.empty() && commands) {
    int code = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      code = code ? code : printCommands(streams[i], numbered ? std::optional(i) : std::nullopt);
    }
    return code;
  }
  if (message.empty()) {
    message = findChip(view, *stage, changes, chip);
  }
  return message.empty() ? report(streams, findHostShare(*stage), chip, folder) : fail(message);
}
