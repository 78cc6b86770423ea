// SPDX-License-Identifier: Apache-2.0
//===- report.h - What a stream did with its time ---------------------------===//
#ifndef BMODEL_NPU_REPORT_H
#define BMODEL_NPU_REPORT_H

#include "bmodel/npu/latency.h"

#include <map>
#include <string>
#include <vector>

namespace bmodel::npu {

/// Why bytes of DDR are moved.
enum class Purpose : uint8_t { weights, input, output, intermediate };
inline constexpr int kPurposes = 4;
const char *nameOf(Purpose purpose);

/// A stream, or one layer of it. Cycles of commands that ran at the same time count in each.
struct Counters {
  double busy[2] = {};        ///< cycles in which each queue had a command at work
  double stalled = 0;         ///< of these, cycles that DMA commands lost to a bank in use
  double boundCycles[7] = {}; ///< of these, by what bound the command: index is Bound
  uint64_t commands[2] = {};  ///< by queue
  uint64_t products = 0;
  Traffic traffic[kPurposes]; ///< index is Purpose
};

struct Report {
  double cycles = 0;     ///< from the first start to the last end
  double waited[2] = {}; ///< cycles before the last end in which each queue had nothing at work
  Counters all;
  std::map<uint32_t, Counters> layers; ///< by Header::layer
};

/// Of a stream with the costs and spans that costOf and schedule gave; buffers of the caller below `inputs` are inputs.
Report reportOf(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count, uint32_t inputs);

/// The report as JSON. `names`: of layers, by number; those beyond its end have none.
std::string reportJson(const Report &report, const Chip &chip, const std::vector<std::string> &names = {});

/// For chrome://tracing and Perfetto: one row for each queue, one event a command, in microseconds.
std::string chromeTrace(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const Chip &chip, const std::vector<std::string> &names = {});

} // namespace bmodel::npu

#endif // BMODEL_NPU_REPORT_H
