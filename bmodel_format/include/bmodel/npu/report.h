// SPDX-License-Identifier: Apache-2.0
//===- report.h - What a stream did with its time ---------------------------===//
#ifndef BMODEL_NPU_REPORT_H
#define BMODEL_NPU_REPORT_H

#include "bmodel/npu/memory_report.h"

#include <map>
#include <string>
#include <vector>

namespace bmodel::npu {

/// Why bytes of DDR are moved.
enum class Purpose : uint8_t { weights, input, output, intermediate };
inline constexpr int kPurposes = 4;
const char *nameOf(Purpose purpose);

/// What a moment is told as: what bounds the compute command at work, else the DMA command at work, else idle.
inline constexpr int kBounds = 7, kShares = kBounds + 1, kIdle = kBounds;
const char *nameOfShare(int share);

/// A stream, or one layer of it. Cycles of commands that ran at the same time count in each, but in `shares`.
struct Counters {
  double begin = 0, end = 0;        ///< of its first command, of its last
  double shares[kShares] = {};      ///< cycles by what they are told as; of layers, moments told as one of its commands
  double busy[2] = {};              ///< cycles in which each queue had a command at work
  double stalled = 0;               ///< of these, cycles that DMA commands lost to a bank in use
  double boundCycles[kBounds] = {}; ///< of these, by what bound the command: index is Bound
  uint64_t commands[2] = {};        ///< by queue
  uint64_t products = 0;
  Traffic traffic[kPurposes]; ///< index is Purpose

  /// Cycles of the stream that are told as it: those of all layers and the idle ones are all there are.
  double cycles() const;
  /// What most of these are told as.
  int largestShare() const;
  uint64_t ddrBytes() const; ///< moved
};

struct Report {
  double cycles = 0;     ///< from the first start to the last end
  double waited[2] = {}; ///< cycles before the last end in which each queue had nothing at work
  Counters all;
  std::map<uint32_t, Counters> layers; ///< by Header::layer
};

/// Of a stream with the costs and spans that costOf and schedule gave; buffers of the caller below `inputs` are inputs.
Report reportOf(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count, uint32_t inputs);

/// Puts the report on a stream that runs behind those of |report|; its layers get numbers from |layer| on.
void append(Report &report, const Report &next, uint32_t layer);

/// Of the names in reportJson. Raised when one goes or means something else; the Python tools read this one only
/// (REPORT_VERSION in tessera/npu_perf.py).
inline constexpr int kReportVersion = 1;

/// What no schedule can be faster than, in cycles.
struct Roofline {
  double compute = 0; ///< every command at its unit's peak rate for its class (dense, depthwise, vector), all summed
  double dense = 0, depthwise = 0, vector = 0; ///< its parts; pools are depthwise
  double ddr = 0;                              ///< MemoryReport::ddrLowerBound at the peak bandwidth
  std::map<uint32_t, double> matrixOfLayer;    ///< of `dense` and `depthwise`, by Header::layer
  double cycles() const { return compute > ddr ? compute : ddr; }
};
/// Of the work that a stream does: what it computes twice counts twice.
Roofline rooflineOf(const Descriptor *commands, size_t count, const MemoryReport &memory, const Chip &chip);

/// What a file leaves to the host of its chip, and how long that takes by the compiler's rough model of a host: no
/// counterpart to the cycles of streams, which a chip keeps to.
struct HostShare {
  uint32_t subnets = 0, steps = 0;
  double microseconds = 0, handOverMicroseconds = 0;
};

/// The report as JSON. `names`: of layers, by number; those beyond its end have none. `memory`,
/// `roofline` and `host` may be absent.
std::string reportJson(const Report &report, const Chip &chip, const std::vector<std::string> &names = {},
                       const MemoryReport *memory = nullptr, const Roofline *roofline = nullptr,
                       const HostShare *host = nullptr);

/// One line a layer, in the order in which they begin.
std::string layersCsv(const Report &report, const Chip &chip, const std::vector<std::string> &names = {});

/// For Perfetto and chrome://tracing: a track a queue with a slice a command, arrows for what commands waited for,
/// tracks of layers, and counters of the DDR's rate and of what the memories hold (where `memory` is given). firsts:
/// where a stream begins behind another one, the number of its first command.
std::string chromeTrace(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const Chip &chip, const std::vector<std::string> &names = {},
                        const MemoryReport *memory = nullptr, const std::vector<size_t> &firsts = {});

} // namespace bmodel::npu

#endif // BMODEL_NPU_REPORT_H
