// SPDX-License-Identifier: Apache-2.0
//===- NpuOrders.cpp - Runs a model's commands in other legal orders ------===//
//
// bmrt_npu_orders FILE.bmodel COUNT: runs the command stream in its own order and in COUNT other orders that its waits
// allow, each with different initial garbage in the memories. The outputs must be equal. Without the waits they must
// differ, otherwise the test would be blind. Then lowers waits one at a time: checkStream must reject each such stream.
// Exit code 0, or 1 with a message.
//
//===----------------------------------------------------------------------===//
#include "../src/npu/Simulator.h"
#include "bmodel/npu/model_stream.h"
#include "bmodel_format/tools/MapFile.h"

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

using Bytes = std::vector<unsigned char>;

/// Returns small numbers that do not saturate everywhere; the bytes are filled with floats, whatever the tensor's type.
Bytes someInput(uint64_t bytes) {
  std::minstd_rand random(1);
  Bytes result(bytes);
  for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
    float value = float(random() % 20000) / 10000 - 1;
    memcpy(result.data() + i, &value, sizeof value);
  }
  return result;
}

class OrderTester {
public:
  OrderTester(const ModelStream &stream, const Chip &chip) : stream(stream), chip(chip) {
    for (uint32_t i = 0; i < stream.sizes.inputs; ++i) {
      inputs.push_back(someInput(stream.sizes.io[i]));
    }
  }

  /// Returns the outputs of a run; empty if it fails. `rubbish` is the initial contents of the memories.
  std::vector<Bytes> run(const std::vector<Descriptor> &commands, const size_t *order, unsigned char rubbish) const {
    bmrt::npu::Simulator simulator(chip);
    Bytes workspace(stream.sizes.workspace, rubbish);
    std::vector<Bytes> io = inputs;
    for (size_t i = inputs.size(); i < stream.sizes.io.size(); ++i) {
      io.emplace_back(stream.sizes.io[i], rubbish);
    }
    std::vector<bmrt::npu::Area> areas;
    for (Bytes &each : io) {
      areas.push_back({each.data(), each.size()});
    }
    Status status;
    bool done = simulator.allocate() &&
                simulator.run(commands.data(), commands.size(),
                              {.constants = {const_cast<unsigned char *>(stream.constants), stream.sizes.constants},
                               .workspace = {workspace.data(), workspace.size()},
                               .io = areas.data(),
                               .ioCount = uint32_t(areas.size())},
                              status, order);
    if (!done) {
      fprintf(stderr, "%s\n", status.message);
      return {};
    }
    return {io.begin() + std::ptrdiff_t(inputs.size()), io.end()};
  }

private:
  const ModelStream &stream;
  const Chip &chip;
  std::vector<Bytes> inputs;
};

int check(const ModelStream &stream, const Chip &chip, unsigned count) {
  std::vector<Descriptor> commands(stream.commands, stream.commands + stream.count);
  OrderTester bench(stream, chip);
  std::vector<Bytes> wanted = bench.run(commands, nullptr, 0);
  if (wanted.empty()) {
    return 1;
  }
  std::vector<Descriptor> loose = commands;
  for (Descriptor &each : loose) {
    each.header.wait = 0;
  }
  unsigned moved = 0, differ = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    std::vector<size_t> order = legalOrder(commands.data(), commands.size(), seed);
    if (bench.run(commands, order.data(), (unsigned char)(seed * 37 + 1)) != wanted) {
      fprintf(stderr, "the legal order %u gives another result\n", seed);
      return 1;
    }
    for (size_t i = 0; i < order.size(); ++i) {
      moved += order[i] != i;
    }
    order = legalOrder(loose.data(), loose.size(), seed);
    differ += bench.run(loose, order.data(), 0) != wanted;
  }
  printf("%zu commands, %u orders alike, %u commands elsewhere; without waits %u differ\n", stream.count, count, moved,
         differ);
  if (!moved || !differ) {
    fprintf(stderr, "the orders test nothing: %s\n",
            moved ? "without waits all have the same result" : "all are the same");
    return 1;
  }
  return 0;
}

/// Maximum number of waits to lower, spread over the stream.
constexpr size_t kLowered = 40;

int lowerWaits(const ModelStream &stream, const Chip &chip) {
  std::vector<Descriptor> commands(stream.commands, stream.commands + stream.count);
  std::vector<size_t> waiting;
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].header.wait) {
      waiting.push_back(i);
    }
  }
  size_t step = (waiting.size() + kLowered - 1) / kLowered, lowered = 0;
  for (size_t k = 0; k < waiting.size(); k += step, ++lowered) {
    Header &header = commands[waiting[k]].header;
    --header.wait;
    Status status;
    if (checkOrder(commands.data(), commands.size(), chip, stream.sizes, status)) {
      fprintf(stderr, "command %zu waits for %u, but %u passes as well\n", waiting[k], header.wait + 1, header.wait);
      return 1;
    }
    ++header.wait;
  }
  printf("%zu of %zu waits lowered, each refused\n", lowered, waiting.size());
  return 0;
}

int fail(const std::string &message) {
  fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    return fail("usage: bmrt_npu_orders FILE.bmodel COUNT");
  }
  uint64_t bytes = 0;
  const void *data = mapFile(argv[1], bytes);
  ModelView view;
  Status status;
  if (!data || !openModel(data, bytes, view, status)) {
    return fail(data ? status.message : "failed to read the file");
  }
  std::vector<ModelStream> streams;
  for (const NumberedStage &each : findNpuStages(view)) {
    if (std::string message = findStreams(view, *each.stage, streams); !message.empty()) {
      return fail(message);
    }
  }
  if (streams.empty()) {
    return fail("the file has no stream");
  }
  int code = 0;
  for (size_t i = 0; i < streams.size() && !code; ++i) {
    const ModelStream &stream = streams[i];
    Chip chip;
    std::string error;
    if (!parseChip(stream.chip, "chip", chip, error)) {
      return fail(error);
    }
    if (!checkStream(stream.commands, stream.count, chip, stream.sizes, stream.constants, status)) {
      return fail(status.message);
    }
    code = check(stream, chip, unsigned(atoi(argv[2])));
    code = code ? code : lowerWaits(stream, chip);
  }
  return code;
}
