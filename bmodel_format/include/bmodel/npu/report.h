// SPDX-License-Identifier: Apache-2.0
//===- report.h - How a stream spends its time ------------------------------===//
#ifndef BMODEL_NPU_REPORT_H
#define BMODEL_NPU_REPORT_H

#include "bmodel/npu/memory_report.h"

#include <map>
#include <string>
#include <vector>

namespace bmodel::npu {

/// The reason for a transfer from or to DDR.
enum class Purpose : uint8_t { weights, input, output, intermediate };
inline constexpr int kPurposes = 4;
const char *nameOf(Purpose purpose);

/// Each moment of a stream is attributed to one share: the bound of the running compute command; if there is none, the
/// bound of the running DMA command; otherwise idle.
inline constexpr int kBounds = 7, kShares = kBounds + 1, kIdle = kBounds;
const char *nameOfShare(int share);

/// Counters of a stream or of one of its layers. Cycles in which two commands run count for both, except in `shares`.
struct Counters {
  double begin = 0, end = 0;        ///< start of the first command, end of the last
  double shares[kShares] = {};      ///< cycles by share; for a layer, the cycles attributed to its commands
  double busy[2] = {};              ///< cycles in which each queue ran a command
  double stalled = 0;               ///< part of `busy`: cycles that DMA commands lost because a bank was in use
  double boundCycles[kBounds] = {}; ///< part of `busy`: cycles by the bound of the command, indexed by Bound
  uint64_t commands[2] = {};        ///< indexed by queue
  uint64_t macs = 0;
  Traffic traffic[kPurposes]; ///< indexed by Purpose

  /// Returns the cycles attributed to this layer. The cycles of all layers and the idle cycles add up to the stream's.
  double cycles() const;
  /// Returns the share with the most attributed cycles.
  int largestShare() const;
  uint64_t ddrBytes() const; ///< bytes moved
};

struct Report {
  double cycles = 0;     ///< from the first start to the last end
  double waited[2] = {}; ///< cycles before the last end in which each queue ran no command
  Counters all;
  std::map<uint32_t, Counters> layers; ///< by Header::layer
};

/// Computes the report of a stream from the results of costOf and schedule. Buffers of the caller below `inputs` are
/// inputs.
Report reportOf(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count, uint32_t inputs);

/// Appends the report of a stream that runs after those of |report|; its layers are renumbered from |layer| on.
void append(Report &report, const Report &next, uint32_t layer);

/// Version of the keys of reportJson. Raised when a key is removed or changes its meaning; the Python tools read only
/// this version (REPORT_VERSION in tessera/families/npu.py).
inline constexpr int kReportVersion = 1;

/// Lower bounds of the time of any schedule, in cycles.
struct Roofline {
  double compute = 0; ///< sum over all commands, each at the peak rate of its unit and class (dense, depthwise, vector)
  double dense = 0, depthwise = 0, vector = 0; ///< the parts of `compute`; pools count as depthwise
  double ddr = 0;                              ///< MemoryReport::ddrLowerBound at the peak bandwidth
  std::map<uint32_t, double> matrixOfLayer;    ///< dense and depthwise cycles of each layer, by Header::layer
  double cycles() const { return compute > ddr ? compute : ddr; }
};
/// Computes the bounds for the commands of a stream. Recomputed values count each time.
Roofline rooflineOf(const Descriptor *commands, size_t count, const MemoryReport &memory, const Chip &chip);

/// The part of a model that runs on the host of its chip. The times come from the compiler's rough model of a host CPU
/// and are less accurate than the simulated cycles of streams.
struct HostShare {
  uint32_t subnets = 0, steps = 0;
  double microseconds = 0, handOverMicroseconds = 0;
};

/// Returns the report as JSON. `names` holds the names of layers by number; a layer beyond its end has no name.
/// `memory`, `roofline` and `host` may be null.
std::string reportJson(const Report &report, const Chip &chip, const std::vector<std::string> &names = {},
                       const MemoryReport *memory = nullptr, const Roofline *roofline = nullptr,
                       const HostShare *host = nullptr);

/// Returns a CSV table with one line per layer, ordered by start.
std::string layersCsv(const Report &report, const Chip &chip, const std::vector<std::string> &names = {});

/// Returns a trace for Perfetto and chrome://tracing: one track per queue with a slice per command, arrows from each
/// command to those that waited for it, tracks of layers, and counters of the DDR rate and (if `memory` is given) of
/// the bytes that the memories hold. If the trace joins several streams, `firsts` lists the number of the first command
/// of each stream after the first.
std::string chromeTrace(const Descriptor *commands, const Cost *costs, const Span *spans, size_t count,
                        const Chip &chip, const std::vector<std::string> &names = {},
                        const MemoryReport *memory = nullptr, const std::vector<size_t> &firsts = {});

} // namespace bmodel::npu

#endif // BMODEL_NPU_REPORT_H
