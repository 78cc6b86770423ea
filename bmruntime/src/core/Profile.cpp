// SPDX-License-Identifier: Apache-2.0
//===- Profile.cpp - Times of steps ---------------------------------------===//
#include "Profile.h"

#include "StepInfo.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

using namespace bmrt::core;

namespace {

/// Enough for many runs of all steps of a typical net; bounds the events of an endless loop.
constexpr size_t kMaxEvents = 1 << 16;

void writeQuoted(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') {
      fprintf(out, "\\%c", c);
    } else if (c < 0x20) {
      fprintf(out, "\\u%04x", c);
    } else {
      fputc(c, out);
    }
  }
  fputc('"', out);
}

} // namespace

uint64_t bmrt::core::nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

bmrt_code_t Profile::enable(bool on, size_t steps, bmrt_status_t *status) {
  enabled = false;
  if (!on) {
    return BMRT_OK;
  }
  eventCount = 0;
  times.clear();
  parts.clear();
  events.clear();
  if (!times.allocate(steps) || !parts.allocate(steps) ||
      !events.allocate(steps < kMaxEvents ? kMaxEvents : 2 * steps)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory to profile %zu steps", steps);
  }
  enabled = true;
  return BMRT_OK;
}

static void add(bmrt_step_time_t &time, uint64_t ns) {
  time.min_ns = time.runs == 0 || ns < time.min_ns ? ns : time.min_ns;
  time.last_ns = ns;
  time.total_ns += ns;
  ++time.runs;
}

void Profile::recordPart(uint32_t step, uint32_t index, uint32_t layer, uint64_t ns) {
  Array<Part> &all = parts[step].all;
  if (index >= all.size()) {
    Array<Part> larger;
    if (!larger.allocate(index + 1)) {
      return;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      larger[i] = all[i];
    }
    all = std::move(larger);
    all[index].layer = layer;
  }
  add(all[index].time, ns);
}

void Profile::record(uint32_t step, uint32_t agent, uint64_t beginNs, uint64_t endNs) {
  add(times[step], endNs - beginNs);
  if (const size_t next = eventCount.fetch_add(1, std::memory_order_relaxed); next < events.size()) {
    events[next] = {step, agent, beginNs, endNs};
  }
}

bmrt_code_t Profile::writeTrace(const bmodel::ModelDef &model, const ExecutionPlan &plan, const char *path,
                                bmrt_status_t *status) const {
  if (!hasTimes()) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "no trace to write: switch profiling on and run first");
  }
  FILE *out = fopen(path, "we");
  if (!out) {
    return BMRT_FAIL(status, IO, "failed to write '%.300s': %s", path, strerror(errno));
  }
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
  const size_t total = eventCount < events.size() ? eventCount.load() : events.size();
  uint64_t start = UINT64_MAX;
  uint64_t seen = 0; // by agent; the mask has enough bits for all agents that run concurrently
  for (size_t i = 0; i < total; ++i) {
    start = events[i].begin < start ? events[i].begin : start;
    seen |= uint64_t(1) << events[i].agent;
  }
  for (uint32_t i = 0; i < 64; ++i) {
    if (!(seen >> i & 1)) {
      continue;
    }
    fprintf(out, "\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", i + 1);
    writeQuoted(out, i == 0 ? "host" : model.chips()->Get(i - 1)->name()->c_str());
    fputs("}},", out);
  }
  for (size_t i = 0; i < total; ++i) {
    const Event &event = events[i];
    bmrt_step_info_t info;
    describeStep(plan, event.step, nullptr, info);
    const char *node = bmrt_step_onnx_node(&info, 0);
    fputs(i ? ",\n" : "\n", out);
    fprintf(out, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":", event.agent + 1);
    writeQuoted(out, node ? node : info.kind);
    fprintf(out, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%u,\"device_op\":", double(event.begin - start) / 1e3,
            double(event.end - event.begin) / 1e3, event.step);
    writeQuoted(out, info.device_op);
    fputs(",\"bound\":", out);
    writeQuoted(out, info.bound);
    fprintf(out, ",\"flops\":%llu,\"bytes\":%llu,\"estimated_us\":%.3f}}", static_cast<unsigned long long>(info.flops),
            static_cast<unsigned long long>(info.bytes), info.estimated_ns / 1e3);
  }
  fputs("\n]}\n", out);
  const bool failed = ferror(out);
  if (fclose(out) != 0 || failed) {
    return BMRT_FAIL(status, IO, "failed to write '%.300s': %s", path, strerror(errno));
  }
  return BMRT_OK;
}
