// SPDX-License-Identifier: Apache-2.0
//===- writer.h - Writer of .bmodel files ---------------------------------===//
//
// The model is described through flatc's object API (ModelDefT and its parts). Code and constants are passed as slices
// that refer to the caller's memory; they are not copied. Not part of the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_WRITER_H
#define BMODEL_WRITER_H

#include "bmodel/bmodel_generated.h"
#include "bmodel/dim_terms.h"
#include "bmodel/file_header.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bmodel {

/// The contents of one segment, as slices of memory that the caller keeps alive and unchanged until writeModel has
/// returned. Gaps between slices become zeros.
class SegmentContents {
public:
  struct Piece {
    uint64_t offset;
    std::span<const char> bytes;
  };

  explicit SegmentContents(SegmentKind kind) : kind(kind) {}

  /// Places |bytes| at the next multiple of |alignment| (a power of two); returns the offset of |bytes|, to be stored
  /// in TensorDef.offset.
  uint64_t append(std::span<const char> bytes, uint64_t alignment = kTensorAlignment);

  SegmentKind getKind() const { return kind; }
  uint64_t getBytes() const { return end; }
  const std::vector<Piece> &getPieces() const { return pieces; }

private:
  SegmentKind kind;
  uint64_t end = 0;
  std::vector<Piece> pieces;
};

/// Writes |model| with |segments| to |path|. Returns an empty string, or an error message.
///
/// Segment i of the file is segments[i]: TensorDef.place_index, SubnetDef.code_segment and BlobDef.segment refer to
/// that index. Sets model.segments and model.schema_hash. Does not write a model that the loader would reject; the
/// message is then the loader's. The same input yields the same bytes.
///
/// The write is atomic: the data goes to a temporary file in the same folder, which is flushed and then renamed to
/// |path|. The temporary file is removed after an error and when SIGINT, SIGTERM or SIGHUP end the process.
[[nodiscard]] std::string writeModel(ModelDefT &model, std::span<const SegmentContents> segments,
                                     const std::string &path);

// Helpers that fill the object API. Each returns the index that other fields refer to.

/// Appends a kernel, or returns the existing kernel with that name.
uint32_t addKernel(SubnetDefT &subnet, std::string_view symbol, uint32_t argCount);

/// Appends a call of a custom operator, |op|, with |args|: its inputs, then its outputs, which are also |writes|.
StepDefT &addCustomCall(SubnetDefT &subnet, CustomOpDefT op, std::vector<uint32_t> args, std::vector<uint32_t> writes);

/// Appends a tensor with a constant row-major shape and its stored size; the caller sets role and place.
uint32_t addTensor(StageDefT &stage, std::string_view name, DType dtype, std::span<const int64_t> shape);

/// Appends a launch step; the returned reference gives access to further fields.
StepDefT &addLaunch(SubnetDefT &subnet, uint32_t kernel, std::vector<uint32_t> args, int64_t tileCount,
                    std::vector<uint32_t> writes);

/// A dimension that is the same in every run.
inline Dim constantDim(int64_t value) { return Dim(value, -1); }

// Sizes that are known at run time.

/// Appends a dim slot that the shapes of inputs bind to a multiple of |divisor| from |min| to |max|.
///
/// An input dimension is a constant or one slot. If the compiler writes it as 32 * h0, bind a slot "h" with the divisor
/// 32, and add h0 as the derived slot h / 32 (addDerivedDim).
uint32_t addDim(StageDefT &stage, std::string_view name, DimRange range, int64_t divisor = 1, int64_t likely = -1);

/// Appends a dim slot that the postfix expression |terms| over existing slots computes, or returns the existing slot
/// with these terms. |range| contains every value. The slot may also be a dimension of an input; a run then requires
/// that the input has the computed size.
uint32_t addDerivedDim(StageDefT &stage, std::string_view name, std::vector<DimTerm> terms, DimRange range,
                       int64_t likely = -1);

/// A dimension whose size is the value of |slot|; memory is laid out for the slot's maximum.
Dim slotDim(const StageDefT &stage, uint32_t slot);

/// Terms of postfix expressions.
inline DimTerm constantTerm(int64_t value) { return DimTerm(value, DimOp::Const); }
inline DimTerm slotTerm(uint32_t slot) { return DimTerm(slot, DimOp::Slot); }
inline DimTerm opTerm(DimOp op) { return DimTerm(0, op); }

/// Appends a row-major tensor like addTensor above; it is stored in its largest size.
uint32_t addTensor(StageDefT &stage, std::string_view name, DType dtype, std::span<const Dim> shape);

/// Appends the launch of a kernel with dims: parameter i of the kernel's contract is slot dims[i], and |tileCount| is a
/// constant or a slot.
StepDefT &addLaunch(SubnetDefT &subnet, uint32_t kernel, std::vector<uint32_t> args, std::vector<uint32_t> dims,
                    Dim tileCount, std::vector<uint32_t> writes);

} // namespace bmodel

#endif // BMODEL_WRITER_H
