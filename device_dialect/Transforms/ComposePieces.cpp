//===- ComposePieces.cpp - Composing copies of copies ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/ComposePieces.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::device {
namespace {

/// Steps [begin, end) of an iteration.
struct Interval {
  int64_t begin, end;
};

/// Returns the i in [0, size) for which offset + i * step equals start + j * stride for some j in [0, count); nothing
/// if they do not form an interval.
std::optional<Interval> stepsInside(int64_t offset, int64_t step, int64_t size, int64_t start, int64_t stride,
                                    int64_t count) {
  if (size > 1 && step % stride != 0) {
    return std::nullopt;
  }
  if ((offset - start) % stride != 0) {
    return Interval{0, 0};
  }
  int64_t first = (offset - start) / stride, by = step / stride; // j = first + i * by
  if (size == 1 || by == 0) {
    return first >= 0 && first < count ? Interval{0, size} : Interval{0, 0};
  }
  auto reaches = [&](int64_t bound) { // smallest i with j at or beyond |bound| in the direction of iteration
    int64_t distance = by > 0 ? bound - first : first - bound;
    return distance <= 0 ? 0 : std::min<int64_t>(size, llvm::divideCeil(distance, std::abs(by)));
  };
  return by > 0 ? Interval{reaches(0), reaches(count)} : Interval{reaches(count - 1), reaches(-1)};
}

enum class Meeting { Some, None, Unknown };

/// Computes the part of |outer| that reads elements written by |inner|.
Meeting meet(const Piece &outer, const Piece &inner, Piece &part) {
  size_t rank = outer.sizes.size();
  part = outer;
  part.source = inner.source;
  part.srcOffsets = inner.srcOffsets;
  part.srcDims.assign(rank, -1);
  part.srcSteps.assign(rank, 1);
  for (size_t s = 0; s < inner.sizes.size(); ++s) {
    int64_t driver = -1;
    for (size_t d = 0; d < rank; ++d) {
      if (outer.srcDims[d] != static_cast<int64_t>(s)) {
        continue;
      }
      if (outer.sizes[d] > 1 && driver >= 0) {
        return Meeting::Unknown;
      }
      driver = outer.sizes[d] > 1 ? d : driver;
      part.srcDims[d] = inner.srcDims[s];
    }
    int64_t step = driver < 0 ? 0 : outer.srcSteps[driver], size = driver < 0 ? 1 : outer.sizes[driver];
    std::optional<Interval> steps =
        stepsInside(outer.srcOffsets[s], step, size, inner.dstOffsets[s], inner.dstSteps[s], inner.sizes[s]);
    if (!steps) {
      return Meeting::Unknown;
    }
    if (steps->begin >= steps->end) {
      return Meeting::None;
    }
    int64_t first = (outer.srcOffsets[s] + steps->begin * step - inner.dstOffsets[s]) / inner.dstSteps[s];
    if (inner.srcDims[s] >= 0) {
      part.srcOffsets[inner.srcDims[s]] += first * inner.srcSteps[s];
    }
    if (driver >= 0) {
      part.sizes[driver] = steps->end - steps->begin;
      part.dstOffsets[driver] += steps->begin * outer.dstSteps[driver];
      part.srcSteps[driver] = step / inner.dstSteps[s] * inner.srcSteps[s];
    }
  }
  return Meeting::Some;
}

} // namespace

std::optional<std::vector<Piece>> composePieces(const Piece &outer, ArrayRef<Piece> inner) {
  std::vector<Piece> parts;
  for (const Piece &piece : inner) {
    Piece part;
    switch (meet(outer, piece, part)) {
    case Meeting::Unknown:
      return std::nullopt;
    case Meeting::Some:
      parts.push_back(part);
      break;
    case Meeting::None:
      break;
    }
  }
  return parts;
}

std::optional<Piece> readUnderDims(const Piece &piece, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> place(from.size(), -1); // dim of |from| -> dim of |to|
  size_t t = 0;
  for (size_t s = 0; s < from.size(); ++s) {
    if (from[s] == 1) {
      continue;
    }
    while (t < to.size() && to[t] == 1) {
      ++t;
    }
    if (t == to.size() || to[t] != from[s]) {
      return std::nullopt;
    }
    place[s] = t++;
  }
  for (; t < to.size(); ++t) {
    if (to[t] != 1) {
      return std::nullopt;
    }
  }
  Piece result = piece;
  result.srcOffsets.assign(to.size(), 0);
  for (size_t s = 0; s < from.size(); ++s) {
    if (place[s] >= 0) {
      result.srcOffsets[place[s]] = piece.srcOffsets[s];
    }
  }
  for (int64_t &dim : result.srcDims) {
    dim = dim < 0 ? -1 : place[dim];
  }
  return result;
}

bool keepsByteOrder(CopyOp copy) {
  auto y = cast<RankedTensorType>(copy.getY().getType());
  if (copy.getSources().size() != 1 || copy.getPieces().size() != 1) {
    return false;
  }
  auto x = cast<RankedTensorType>(copy.getSources().front().getType());
  auto attr = cast<PieceAttr>(copy.getPieces()[0]);
  if (!attr.isKnown() || isBlocked(x) || isBlocked(y) || !Shape(x).isKnown() || !Shape(y).isKnown() ||
      numElements(x) != numElements(y) || !sameSizes(attr.getSizes(), y)) {
    return false;
  }
  Piece piece(attr);
  // Iterating y from its last dim, each dim must advance in x by the number of elements passed so far.
  SmallVector<int64_t> strides(x.getRank());
  int64_t unit = 1;
  for (int64_t s = x.getRank() - 1; s >= 0; --s) {
    strides[s] = unit;
    unit *= Shape(x)[s].value();
  }
  unit = 1;
  for (int64_t d = y.getRank() - 1; d >= 0; --d) {
    if (piece.sizes[d] == 1) {
      continue;
    }
    if (piece.srcDims[d] < 0 || piece.srcSteps[d] * strides[piece.srcDims[d]] != unit) {
      return false;
    }
    unit *= piece.sizes[d];
  }
  return llvm::all_of(piece.srcOffsets, [](int64_t offset) { return offset == 0; });
}

} // namespace tessera::device
