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
Meeting meet(const SymbolicPiece &outer, const SymbolicPiece &inner, SymbolicPiece &part) {
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
      bool moves = !outer.sizes[d].is(1);
      if (moves && driver >= 0) {
        return Meeting::Unknown;
      }
      driver = moves ? int64_t(d) : driver;
      part.srcDims[d] = inner.srcDims[s];
    }
    int64_t step = driver < 0 ? 0 : outer.srcSteps[driver];
    Dim size = driver < 0 ? Dim(1) : outer.sizes[driver];
    if (!outer.srcOffsets[s].isKnown() || !size.isKnown() || !inner.dstOffsets[s].isKnown() ||
        !inner.sizes[s].isKnown()) {
      bool isWhole = step == 1 && inner.dstSteps[s] == 1 && sameSize(outer.srcOffsets[s], inner.dstOffsets[s]) &&
                     sameSize(size, inner.sizes[s]);
      if (!isWhole) {
        return Meeting::Unknown;
      }
      part.srcSteps[driver] = inner.srcSteps[s];
      continue;
    }
    int64_t offset = outer.srcOffsets[s].value(), start = inner.dstOffsets[s].value();
    std::optional<Interval> steps =
        stepsInside(offset, step, size.value(), start, inner.dstSteps[s], inner.sizes[s].value());
    if (!steps) {
      return Meeting::Unknown;
    }
    if (steps->begin >= steps->end) {
      return Meeting::None;
    }
    int64_t first = (offset + steps->begin * step - start) / inner.dstSteps[s];
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

std::optional<std::vector<SymbolicPiece>> composePieces(const SymbolicPiece &outer, ArrayRef<SymbolicPiece> inner) {
  std::vector<SymbolicPiece> parts;
  for (const SymbolicPiece &piece : inner) {
    SymbolicPiece part;
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

/// Calls |convert|(to, from) for the lists of two regions that hold sizes and offsets, and copies the others.
template <typename To, typename From, typename Convert>
static To converted(const From &from, Convert convert) {
  To to;
  to.source = from.source, to.dstSteps = from.dstSteps, to.srcDims = from.srcDims, to.srcSteps = from.srcSteps;
  convert(to.sizes, from.sizes), convert(to.dstOffsets, from.dstOffsets), convert(to.srcOffsets, from.srcOffsets);
  return to;
}

std::optional<std::vector<Piece>> composePieces(const Piece &outer, ArrayRef<Piece> inner) {
  auto widen = [](const Piece &piece) {
    return converted<SymbolicPiece>(
        piece, [](SmallVector<Dim> &to, const SmallVector<int64_t> &from) { to.assign(from.begin(), from.end()); });
  };
  std::vector<SymbolicPiece> wide;
  llvm::transform(inner, std::back_inserter(wide), widen);
  auto parts = composePieces(widen(outer), wide);
  if (!parts) {
    return std::nullopt;
  }
  std::vector<Piece> known;
  for (const SymbolicPiece &part : *parts) {
    known.push_back(converted<Piece>(part, [](SmallVector<int64_t> &to, const SmallVector<Dim> &from) {
      to = llvm::map_to_vector(from, [](Dim number) { return number.value(); });
    }));
  }
  return known;
}

std::optional<SymbolicPiece> readUnderDims(const SymbolicPiece &piece, Shape from, Shape to) {
  SmallVector<int64_t> place(from.rank(), -1); // dim of |from| -> dim of |to|
  size_t t = 0;
  for (size_t s = 0; s < from.rank(); ++s) {
    if (from[s].is(1)) {
      continue;
    }
    while (t < to.rank() && to[t].is(1)) {
      ++t;
    }
    if (t == to.rank() || !sameSize(to[t], from[s])) {
      return std::nullopt;
    }
    place[s] = t++;
  }
  for (; t < to.rank(); ++t) {
    if (!to[t].is(1)) {
      return std::nullopt;
    }
  }
  SymbolicPiece result = piece;
  result.srcOffsets.assign(to.rank(), 0);
  for (size_t s = 0; s < from.rank(); ++s) {
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
