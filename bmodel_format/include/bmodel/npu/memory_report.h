// SPDX-License-Identifier: Apache-2.0
//===- memory_report.h - Contents of the memories during a stream -----------===//
#ifndef BMODEL_NPU_MEMORY_REPORT_H
#define BMODEL_NPU_MEMORY_REPORT_H

#include "bmodel/npu/latency.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace bmodel::npu {

/// A byte range [begin, end) of a memory while it holds a value: from the start of the command that wrote it to the end
/// of the last command that read it, in cycles. In local memory the range is that of one lane.
struct Rectangle {
  uint64_t begin = 0, end = 0;
  double from = 0, to = 0;
  size_t command = 0;          ///< the writer
  bool isReadByOthers = false; ///< in the workspace: a layer other than the writer's reads it
};

/// One memory during a stream.
struct MemoryUse {
  std::vector<Rectangle> rectangles; ///< no two share a byte at the same time
  uint64_t peak = 0;                 ///< maximum number of bytes in use at one time
  uint64_t top = 0;                  ///< end of the highest byte ever used
};

/// Sources of a layer's operands and destinations of its results.
struct LayerLinks {
  uint32_t stream = 0;     ///< number of the layer's stream, if one report covers several streams
  std::set<uint32_t> from; ///< other layers whose bytes it reads, in local memory or the workspace
  std::set<uint32_t> buffersRead, buffersWritten; ///< numbers of the caller's buffers
};

struct MemoryReport {
  MemoryUse local, workspace;
  /// Counts each byte of the caller's buffers that is accessed once, and each byte of constants once per layer that
  /// reads it. Layers with equal weights share their bytes in the file, but each layer has to read them.
  uint64_t ddrLowerBound = 0;
  /// For each layer, the DDR bytes that it must move at least: each byte of the caller's buffers, of constants and of
  /// other layers' values that it reads, once; and each byte that it writes for the caller or for other layers, once.
  /// Values that a layer spills to DDR for its own use do not count, nor do values passed between layers of the same
  /// name, which are parts of one op.
  std::map<uint32_t, uint64_t> leastDdrBytes;
  std::map<uint32_t, LayerLinks> links; ///< by layer
};

/// Computes the report of a stream that has passed checkStream, from the spans that schedule computed. `names` holds
/// the names of layers by number; a layer beyond its end has no name.
MemoryReport memoryReportOf(const Descriptor *commands, const Span *spans, size_t count, const Chip &chip,
                            const std::vector<std::string> &names = {});

/// Merges the tiles of a tensor that one layer wrote into one rectangle for display, from the first write to the last
/// read.
MemoryUse joined(MemoryUse use, const Descriptor *commands);

/// Returns a picture (SVG) with time on the horizontal and addresses on the vertical axis, and one colour per layer. A
/// tooltip describes each rectangle. `bytes` is the size of the memory.
std::string memorySvg(const MemoryUse &use, const std::string &title, uint64_t bytes, uint32_t banks,
                      const Descriptor *commands, const Chip &chip, const std::vector<std::string> &names = {});

/// Returns the uses of both memories as JSON rows: layer, begin and end in microseconds, first and last byte. Uses of
/// the same bytes by one layer are merged into one row if the gap between them is too short to be visible. If too many
/// rows remain, they are merged as by joined().
std::string memoryJson(const MemoryReport &memory, const Descriptor *commands, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_MEMORY_REPORT_H
