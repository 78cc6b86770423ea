// SPDX-License-Identifier: Apache-2.0
//===- memory_report.h - What lies where and when during a stream -----------===//
#ifndef BMODEL_NPU_MEMORY_REPORT_H
#define BMODEL_NPU_MEMORY_REPORT_H

#include "bmodel/npu/latency.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace bmodel::npu {

/// Bytes [begin, end) of a memory that hold something: from the start of the command that wrote it to the end of the
/// last one that read it, in cycles. Of local memory the bytes are those of one lane.
struct Rectangle {
  uint64_t begin = 0, end = 0;
  double from = 0, to = 0;
  size_t command = 0;          ///< the writer
  bool isReadByOthers = false; ///< of the workspace: a layer reads it that did not write it
};

/// One memory during a stream.
struct MemoryUse {
  std::vector<Rectangle> rectangles; ///< no two share a byte at the same time
  uint64_t peak = 0;                 ///< bytes in use at once, at most
  uint64_t top = 0;                  ///< behind the highest byte ever in use
};

/// Where a layer's operands come from and its results go to.
struct LayerLinks {
  uint32_t stream = 0;     ///< of several that are told as one
  std::set<uint32_t> from; ///< other layers whose bytes it reads, in local memory or the workspace
  std::set<uint32_t> buffersRead, buffersWritten; ///< of the caller, by number
};

struct MemoryReport {
  MemoryUse local, workspace;
  /// Each byte of the caller's buffers that is touched, once, and each byte of constants once for every layer that
  /// reads it: layers whose weights happen to be equal share their bytes in the file, and read them all the same.
  uint64_t ddrLowerBound = 0;
  /// By layer, the bytes of DDR that it cannot do without: each byte that it reads of the caller's buffers, of
  /// constants and of other layers' values once, and each that it writes for the caller or for other layers once.
  /// Values that a layer parks in DDR for itself count as nothing, and so do those that pass between layers of one
  /// name: they are parts of one op.
  std::map<uint32_t, uint64_t> leastDdrBytes;
  std::map<uint32_t, LayerLinks> links; ///< by layer
};

/// Of a stream that checkStream has passed, with the spans that schedule gave. names: of layers, by number; those
/// beyond its end have none.
MemoryReport memoryReportOf(const Descriptor *commands, const Span *spans, size_t count, const Chip &chip,
                            const std::vector<std::string> &names = {});

/// Joins what one layer wrote side by side, tile by tile, to what it is for people: a tensor, from its first byte
/// written to its last one read.
MemoryUse joined(MemoryUse use, const Descriptor *commands);

/// A picture (SVG): time from left to right, addresses upwards, one colour a layer; pointing at a rectangle tells what
/// it is. `bytes`: of the memory.
std::string memorySvg(const MemoryUse &use, const std::string &title, uint64_t bytes, uint32_t banks,
                      const Descriptor *commands, const Chip &chip, const std::vector<std::string> &names = {});

/// The same of both memories as JSON: rows of layer, microseconds from and to, bytes begin and end. What a layer puts
/// to the same bytes again before a gap could be seen is one row; where that leaves too many, they are as joined() has
/// them.
std::string memoryJson(const MemoryReport &memory, const Descriptor *commands, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_MEMORY_REPORT_H
