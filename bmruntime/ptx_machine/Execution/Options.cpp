//===- Options.cpp - Options from environment variables -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Options.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace ptx {
namespace {

uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Returns 80 for "8.0", "80" and "8".
int capability(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  if (!text || !*text) {
    return otherwise;
  }
  char *end = nullptr;
  long major = std::strtol(text, &end, 10);
  if (*end == '.') {
    return int(10 * major + std::strtol(end + 1, nullptr, 10));
  }
  return int(major < 10 ? 10 * major : major);
}

Options::Clock clockOf(const char *name) {
  const char *text = std::getenv(name);
  const std::string wanted = text ? text : "";
  return wanted == "issue" ? Options::Issue : wanted == "blocks" ? Options::Blocks : Options::Host;
}

} // namespace

Options readOptions() {
  Options result;
  bool checks = number("PTX_MACHINE_CHECKS", 1) != 0;
  result.bounds = number("PTX_MACHINE_CHECK_BOUNDS", checks) != 0;
  result.initialised = number("PTX_MACHINE_CHECK_INITIALISED", checks) != 0;
  result.alignment = number("PTX_MACHINE_CHECK_ALIGNMENT", checks) != 0;
  result.races = number("PTX_MACHINE_CHECK_RACES", checks) != 0;
  result.divergence = number("PTX_MACHINE_CHECK_DIVERGENCE", checks) != 0;
  result.async = number("PTX_MACHINE_CHECK_ASYNC", checks) != 0;
  result.seed = number("PTX_MACHINE_SEED", result.seed);
  result.threads = unsigned(number("PTX_MACHINE_THREADS", std::clamp(std::thread::hardware_concurrency(), 1u, 16u)));
  result.stepLimit = number("PTX_MACHINE_STEP_LIMIT", uint64_t(1) << 36);
  result.memoryBytes = number("PTX_MACHINE_MEMORY", uint64_t(16) << 30);
  result.failAllocation = number("PTX_MACHINE_FAIL_ALLOC", 0);
  result.failLaunch = number("PTX_MACHINE_FAIL_LAUNCH", 0);
  result.faultLaunch = number("PTX_MACHINE_FAULT_LAUNCH", 0);
  result.devices = int(number("PTX_MACHINE_DEVICES", 1));
  result.hasDevice = number("PTX_MACHINE_NO_DEVICE", 0) == 0 && result.devices > 0;
  result.driverVersion = int(number("PTX_MACHINE_DRIVER_VERSION", uint64_t(result.driverVersion)));
  result.capability = capability("PTX_MACHINE_COMPUTE_CAPABILITY", result.capability);
  result.clock = clockOf("PTX_MACHINE_CLOCK");
  const char *counts = std::getenv("PTX_MACHINE_COUNTS");
  result.countsFile = counts ? counts : "";
  return result;
}

} // namespace ptx
