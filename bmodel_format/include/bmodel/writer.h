// SPDX-License-Identifier: Apache-2.0
//===- writer.h - Writing of .bmodel files --------------------------------===//
//
// The model is described through flatc's object API (ModelDefT and its parts); code and constants
// come as pieces that are referred to, never copied. Not part of the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_WRITER_H
#define BMODEL_WRITER_H

#include "bmodel/bmodel_generated.h"
#include "bmodel/file_header.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bmodel {

/// The contents of one segment: pieces of memory that the caller keeps alive and unchanged until
/// writeModel has returned. Gaps between the pieces become zeros.
class SegmentContents {
public:
  struct Piece {
    uint64_t offset;
    std::span<const char> bytes;
  };

  explicit SegmentContents(SegmentKind kind) : kind(kind) {}

  /// Places |bytes| at the next multiple of |alignment| (a power of two); returns its offset, which
  /// is what TensorDef.offset wants.
  uint64_t append(std::span<const char> bytes, uint64_t alignment = kTensorAlignment);

  SegmentKind getKind() const { return kind; }
  uint64_t getBytes() const { return end; }
  const std::vector<Piece> &getPieces() const { return pieces; }

private:
  SegmentKind kind;
  uint64_t end = 0;
  std::vector<Piece> pieces;
};

/// Writes |model| with |segments| to |path|; returns an empty string, or what went wrong.
///
/// Segment i of the file is segments[i]: TensorDef.place_index, SubnetDef.code_segment and
/// BlobDef.segment refer to that index. model.segments and model.schema_hash are filled in here
/// (and so changed). A model that the loader would refuse is not written: the message is then the
/// loader's. The same input gives the same bytes.
///
/// The file appears at |path| complete or not at all: it is written under a temporary name in the
/// same folder, flushed and renamed; the temporary is removed after an error and when SIGINT,
/// SIGTERM or SIGHUP end the process.
[[nodiscard]] std::string writeModel(ModelDefT &model, std::span<const SegmentContents> segments,
                                     const std::string &path);

// Shorthands for filling the object API; each returns the index that other fields refer to.

/// Appends a kernel, or finds the one of that name.
uint32_t addKernel(SubnetDefT &subnet, std::string_view symbol, uint32_t argCount);

/// Appends a tensor with a constant row-major shape and its stored size; the caller sets role and
/// place.
uint32_t addTensor(StageDefT &stage, std::string_view name, DType dtype, std::span<const int64_t> shape);

/// Appends a launch step; further fields can be set through the returned reference.
StepDefT &addLaunch(SubnetDefT &subnet, uint32_t kernel, std::vector<uint32_t> args, int64_t tileCount,
                    std::vector<uint32_t> writes);

/// A dimension that is the same in every run.
inline Dim constantDim(int64_t value) { return Dim(value, -1); }

} // namespace bmodel

#endif // BMODEL_WRITER_H
