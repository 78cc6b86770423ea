// SPDX-License-Identifier: Apache-2.0
//===- bmrt_bench.cpp - Latency of a .bmodel ------------------------------===//
//
// For an NPU stage, reports the estimated time first: the measured time is that of the simulator.
//
// Exit codes: 0 success, 1 error in the model or an input, 2 usage error, 71 out of memory, 130 ended by SIGINT or
// SIGTERM.
//
//===----------------------------------------------------------------------===//
#include "bmodel/npu/model_stream.h"
#include "bmodel_format/tools/MapFile.h"
#include "bmodel_format/tools/Program.h"
#include "bmrt/bmrt.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string model, trace;
  std::vector<std::string> inputs; ///< NAME=FILE
  std::vector<std::string> shapes; ///< NAME=1x3x224x224
  std::string chip;
  uint32_t threads = 1, iterations = 50, warmup = 5;
  double seconds = 0;
  bool json = false, profile = false, trust = false;
};

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

volatile sig_atomic_t interrupted = 0;

struct Interrupted {};

/// Runs once; throws Interrupted if the run was cancelled.
void runOnce(bmrt::Net &net) {
  bmrt_status_t status;
  const bmrt_code_t code = interrupted ? BMRT_CANCELLED : bmrt_context_run(net.get(), &status);
  if (code == BMRT_CANCELLED) {
    throw Interrupted();
  }
  if (code != BMRT_OK) {
    throw bmrt::Error(status);
  }
}

/// Ends the program on signals: a signal between two runs is noticed before the next run, a signal during a run by its
/// poll function.
void endOnSignals(bmrt::Net &net) {
  for (int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      action.sa_handler = [](int) { interrupted = 1; };
      sigaction(number, &action, nullptr);
    }
  }
  bmrt_context_set_poll(net.get(), [](void *) { return interrupted != 0; }, nullptr);
}

[[noreturn]] void fail(const std::string &message) { throw std::runtime_error(message); }

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    if (static_cast<unsigned char>(c) >= 0x20) {
      result += c;
    }
  }
  return result + '"';
}

/// Fills the input with floats in [-1, 1) or integers in [0, 8), the same in every run.
void fillRandom(const bmrt_tensor_info_t &info, char *data) {
  std::minstd_rand random(1);
  const uint32_t width = bmrt_dtype_bytes(info.dtype);
  for (uint64_t i = 0; i < info.bytes / width; ++i) {
    const float real = float(random() % 20000) / 10000 - 1;
    const double wide = real;
    const uint64_t whole = info.dtype == BMRT_BOOL ? random() % 2 : random() % 8;
    uint32_t bits;
    memcpy(&bits, &real, sizeof(bits));
    const uint16_t bfloat = uint16_t(bits >> 16);
    const uint16_t half = uint16_t(0x3800 | random() % 0x400); // [0.5, 1)
    const void *value = info.dtype == BMRT_F32    ? static_cast<const void *>(&real)
                        : info.dtype == BMRT_F64  ? static_cast<const void *>(&wide)
                        : info.dtype == BMRT_BF16 ? static_cast<const void *>(&bfloat)
                        : info.dtype == BMRT_F16  ? static_cast<const void *>(&half)
                                                  : static_cast<const void *>(&whole);
    memcpy(data + i * width, value, width);
  }
}

void readInput(const bmrt_tensor_info_t &info, const std::string &path, char *data) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fail("failed to open '" + path + "'");
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() != info.bytes) {
    fail("'" + path + "' has " + std::to_string(bytes.size()) + " bytes, input '" + info.name + "' takes " +
         std::to_string(info.bytes) + " (" + bmrt_dtype_name(info.dtype) + ")");
  }
  std::copy(bytes.begin(), bytes.end(), data);
}

/// Selects the stage and the sizes of --shape: sets all shapes at once. Other inputs have their largest sizes.
void setShapes(bmrt::Net &net, const Options &options) {
  std::vector<std::vector<int64_t>> shapes;
  for (const bmrt_tensor_info_t &info : net.inputs()) {
    shapes.emplace_back(info.max_shape, info.max_shape + info.rank);
  }
  for (const std::string &text : options.shapes) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      fail("--shape takes NAME=1x3x224x224, not '" + text + "'");
    }
    std::vector<int64_t> &shape = shapes[net.findInput(text.substr(0, equals))];
    shape.clear();
    for (size_t at = equals + 1; at <= text.size();) {
      const size_t end = std::min(text.find('x', at), text.size());
      char *behind = nullptr;
      shape.push_back(strtoll(text.c_str() + at, &behind, 10));
      if (end == at || behind != text.c_str() + end) {
        fail("--shape takes NAME=1x3x224x224, not '" + text + "'");
      }
      at = end + 1;
    }
  }
  std::vector<const int64_t *> pointers;
  std::vector<uint32_t> ranks;
  for (const std::vector<int64_t> &shape : shapes) {
    pointers.push_back(shape.data());
    ranks.push_back(uint32_t(shape.size()));
  }
  bmrt::check(bmrt_context_set_input_shapes, net.get(), pointers.data(), ranks.data(), uint32_t(shapes.size()));
}

void fillInputs(bmrt::Net &net, const Options &options) {
  for (const bmrt_tensor_info_t &info : net.inputs()) {
    void *data = nullptr;
    bmrt::check(bmrt_context_input_buffer, net.get(), net.findInput(info.name), &data);
    fillRandom(info, static_cast<char *>(data));
  }
  for (const std::string &input : options.inputs) {
    const size_t equals = input.rfind('=');
    if (equals == std::string::npos) {
      fail("--input takes NAME=FILE, not '" + input + "'");
    }
    const uint32_t index = net.findInput(input.substr(0, equals));
    void *data = nullptr;
    bmrt::check(bmrt_context_input_buffer, net.get(), index, &data);
    readInput(net.inputs()[index], input.substr(equals + 1), static_cast<char *>(data));
  }
}

/// Returns the seconds of each measured run, sorted.
std::vector<double> measure(bmrt::Net &net, const Options &options) {
  for (uint32_t i = 0; i < options.warmup; ++i) {
    runOnce(net);
  }
  if (options.profile || !options.trace.empty()) {
    bmrt::check(bmrt_context_set_profiling, net.get(), true);
  }
  std::vector<double> times;
  const double begin = secondsNow();
  while (times.size() < options.iterations || (options.seconds > 0 && secondsNow() - begin < options.seconds)) {
    const double start = secondsNow();
    runOnce(net);
    times.push_back(secondsNow() - start);
  }
  std::sort(times.begin(), times.end());
  return times;
}

double quantile(const std::vector<double> &sorted, double q) {
  return sorted[std::min(sorted.size() - 1, size_t(q * double(sorted.size())))];
}

/// Returns the peak memory of this program alone; getrusage would include the memory of the parent process before exec.
double peakMib() {
  std::ifstream file("/proc/self/status");
  std::string word;
  double kib = 0;
  while (file >> word) {
    if (word == "VmHWM:") {
      file >> kib;
    }
  }
  return kib / 1024;
}

/// Returns the estimated microseconds of a run of the context's stage on its chip; nothing if the chip is this machine
/// itself.
std::optional<double> estimate(const bmrt::Net &net, const std::string &path) {
  uint64_t bytes = 0;
  const void *data = mapFile(path.c_str(), bytes);
  bmodel::ModelView view;
  bmodel::Status status;
  if (!data || !bmodel::openModel(data, bytes, view, status)) {
    fail("'" + path + "' has changed while it was measured");
  }
  std::optional<double> microseconds;
  // Contexts use the first net, so its stage numbers equal those of the file.
  for (const bmodel::npu::NumberedStage &each : bmodel::npu::findNpuStages(view)) {
    if (each.number == net.stage()) {
      const std::string message = bmodel::npu::estimateMicroseconds(view, *each.stage, microseconds.emplace());
      if (!message.empty()) {
        fail("'" + path + "': " + message);
      }
    }
  }
  munmap(const_cast<void *>(data), bytes);
  return microseconds;
}

/// Prints the parts of a step that the chip timed separately, as rows below the step or as a JSON member.
void printParts(const bmrt::Net &net, uint32_t step, bool json) {
  const uint32_t total = bmrt_context_step_part_count(net.get(), step);
  for (uint32_t i = 0; i < total; ++i) {
    const char *node = nullptr;
    bmrt_step_time_t time;
    bmrt::check(bmrt_context_step_part_time, net.get(), step, i, &node, &time);
    const double least = double(time.min_ns) / 1e3;
    if (json) {
      printf("%s{\"node\":%s,\"min_us\":%.3f}%s", i ? "," : ",\"parts\":[", quoted(node).c_str(), least,
             i + 1 == total ? "]" : "");
    } else {
      printf("%5s %9.1f %9s  %s\n", "", least, "", node);
    }
  }
}

/// |simulator| is the prefix of the names of times: "simulator_" or "".
void printSteps(const bmrt::Net &net, bool json, const std::string &simulator) {
  const uint32_t total = bmrt_context_step_count(net.get());
  if (!json) {
    printf("\n%5s %9s %9s  %-28s %s\n", "step", simulator.empty() ? "min us" : "sim. us", "GFLOP/s", "node",
           "device op");
  }
  for (uint32_t i = 0; i < total; ++i) {
    bmrt_step_info_t info;
    bmrt_step_time_t time;
    bmrt::check(bmrt_context_step_info, net.get(), i, &info);
    bmrt::check(bmrt_context_step_time, net.get(), i, &time);
    const char *node = bmrt_step_onnx_node(&info, 0);
    const double rate = time.min_ns ? double(info.flops) / double(time.min_ns) : 0;
    if (json) {
      printf("%s{\"step\":%u,\"%smin_us\":%.3f,\"node\":%s,\"device_op\":%s,\"flops\":%llu", i ? "," : "", i,
             simulator.c_str(), double(time.min_ns) / 1e3, quoted(node ? node : "").c_str(),
             quoted(info.device_op).c_str(), static_cast<unsigned long long>(info.flops));
      printParts(net, i, json);
      fputs("}", stdout);
    } else {
      printf("%5u %9.1f %9.1f  %-28s %s\n", i, double(time.min_ns) / 1e3, rate, node ? node : info.kind,
             info.device_op);
      printParts(net, i, json);
    }
  }
}

void report(const bmrt::Net &net, const std::vector<double> &times, double loadSeconds, const Options &options) {
  const std::optional<double> estimated = estimate(net, options.model);
  // Times of the simulator get different names, so that nobody mistakes them for the chip's.
  const std::string simulator = estimated ? "simulator_" : "";
  const double minimum = times[0] * 1e3, median = quantile(times, 0.5) * 1e3;
  const double p90 = quantile(times, 0.9) * 1e3;
  if (options.json) {
    printf("{\"model\":%s,\"stage\":%u,\"threads\":%u,\"iterations\":%zu,\"load_ms\":%.3f,\"%smin_ms\":%.4f,"
           "\"%smedian_ms\":%.4f,\"%sp90_ms\":%.4f,\"peak_mib\":%.1f",
           quoted(options.model).c_str(), net.stage(), options.threads, times.size(), loadSeconds * 1e3,
           simulator.c_str(), minimum, simulator.c_str(), median, simulator.c_str(), p90, peakMib());
    if (estimated) {
      printf(",\"estimated_ms\":%.6f", *estimated / 1e3);
    }
  } else if (estimated) {
    printf("%s: estimated %.3f ms per run on the chip, by the latency model that compiler and simulator share\n"
           "  its simulator on this machine (not a latency of the chip): %u thread%s, %zu runs: median %.3f ms, min "
           "%.3f ms, "
           "p90 %.3f ms; loaded in %.2f ms; peak %.0f MiB\n",
           options.model.c_str(), *estimated / 1e3, options.threads, options.threads == 1 ? "" : "s", times.size(),
           median, minimum, p90, loadSeconds * 1e3, peakMib());
  } else {
    printf("%s: %u thread%s, %zu runs: median %.3f ms, min %.3f ms, p90 %.3f ms; loaded in %.2f ms; "
           "peak %.0f MiB\n",
           options.model.c_str(), options.threads, options.threads == 1 ? "" : "s", times.size(), median, minimum, p90,
           loadSeconds * 1e3, peakMib());
  }
  if (options.profile) {
    fputs(options.json ? ",\"steps\":[" : "", stdout);
    printSteps(net, options.json, simulator);
    fputs(options.json ? "]" : "", stdout);
  }
  if (options.json) {
    puts("}");
  }
}

int run(const Options &options) {
  const double begin = secondsNow();
  const bmrt::Model model(options.model, options.trust);
  bmrt::Net net(model, {.threads = options.threads, .chip = options.chip});
  setShapes(net, options);
  const double loadSeconds = secondsNow() - begin;
  fillInputs(net, options);
  endOnSignals(net);
  const std::vector<double> times = measure(net, options);
  report(net, times, loadSeconds, options);
  if (!options.trace.empty()) {
    bmrt::check(bmrt_context_write_trace, net.get(), options.trace.c_str());
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> arguments = bmodel::program::begin("bmrt_bench", argc, argv);
  std::reverse(arguments.begin(), arguments.end()); // CLI11 expects the reverse order
  Options options;
  CLI::App app{"Measures the latency of a .bmodel on random or given inputs.", "bmrt_bench"};
  app.add_option("model,--model", options.model, "the .bmodel")->required();
  app.add_option(
      "--shape", options.shapes,
      "NAME=1x3x224x224: input shape, by default the largest; it selects the stage of a model for several shapes");
  app.add_option("--chip", options.chip, "use only the model's stages for this chip, given by name or family");
  app.add_option("--threads", options.threads, "threads, including the caller's")->check(CLI::Range(1, 1024));
  app.add_option("--iters", options.iterations, "minimum number of measured runs")->check(CLI::Range(1, 1000000000));
  app.add_option("--warmup", options.warmup, "runs before the measured ones");
  app.add_option("--seconds", options.seconds, "minimum duration of the measurement");
  app.add_option("--input", options.inputs, "NAME=FILE: raw little-endian bytes of an input");
  app.add_flag("--profile", options.profile,
               "print the time of every step, and of each kernel launch on a GPU, run one by one");
  app.add_option("--trace", options.trace, "write the last run for chrome://tracing");
  app.add_flag("--trust", options.trust, "skip the hashes of the constants");
  app.add_flag("--json", options.json, "print one JSON object");
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return run(options);
  } catch (const Interrupted &) {
    return 130;
  } catch (const bmrt::Error &error) {
    fprintf(stderr, "error: %s\n", error.what());
    return error.code() == BMRT_NO_MEMORY ? bmodel::program::kOutOfMemory : 1;
  } catch (const std::exception &error) {
    fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
