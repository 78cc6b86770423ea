//===- Pieces.cpp - Arithmetic on the regions of a copy -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Pieces.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <numeric>

using namespace mlir;

namespace tessera::device {

template <>
BasicPiece<int64_t>::BasicPiece(PieceAttr attr)
    : source(attr.getSource()), sizes(attr.getSizes()), dstOffsets(attr.getDstOffsets()), dstSteps(attr.getDstSteps()),
      srcDims(attr.getSrcDims()), srcOffsets(attr.getSrcOffsets()), srcSteps(attr.getSrcSteps()) {
  assert(attr.isKnown() && "the region is symbolic");
}

template <>
PieceAttr BasicPiece<int64_t>::get(MLIRContext *context) const {
  return PieceAttr::get(context, source, sizes, dstOffsets, dstSteps, srcDims, srcOffsets, srcSteps);
}

template <>
BasicPiece<Dim>::BasicPiece(PieceAttr attr)
    : source(attr.getSource()), dstSteps(attr.getDstSteps()), srcDims(attr.getSrcDims()), srcSteps(attr.getSrcSteps()) {
  ArrayRef<top::SizeAttr> symbolic = attr.getSymbolic();
  auto read = [&](ArrayRef<int64_t> numbers, SmallVector<Dim> &to) {
    for (int64_t number : numbers) {
      to.push_back(ShapedType::isDynamic(number) ? Dim(symbolic.consume_front()) : Dim(number));
    }
  };
  read(attr.getSizes(), sizes), read(attr.getDstOffsets(), dstOffsets), read(attr.getSrcOffsets(), srcOffsets);
}

template <>
PieceAttr BasicPiece<Dim>::get(MLIRContext *context) const {
  SmallVector<top::SizeAttr> symbolic;
  auto numbersOf = [&](ArrayRef<Dim> dims) {
    return llvm::map_to_vector(dims, [&](Dim dim) -> int64_t {
      assert(!dim.isUnknown() && "a region has known or symbolic sizes");
      if (dim.isKnown()) {
        return dim.value();
      }
      symbolic.push_back(dim.expression());
      return ShapedType::kDynamic;
    });
  };
  SmallVector<int64_t> numbers = numbersOf(sizes), to = numbersOf(dstOffsets), from = numbersOf(srcOffsets);
  return PieceAttr::get(context, source, numbers, to, dstSteps, srcDims, from, srcSteps, symbolic);
}

PieceAttr identityPiece(RankedTensorType type) {
  return SymbolicPiece::identity(0, Shape(type).dims()).get(type.getContext());
}

SmallVector<Range> sourceRanges(PieceAttr piece, size_t sourceRank) {
  SmallVector<Range> ranges;
  for (size_t s = 0; s < sourceRank; ++s) {
    ranges.push_back({piece.getSrcOffsets()[s], piece.getSrcOffsets()[s]});
  }
  for (size_t d = 0; d < piece.getSizes().size(); ++d) {
    if (piece.getSrcDims()[d] < 0) {
      continue;
    }
    Range &range = ranges[piece.getSrcDims()[d]];
    int64_t reach = (piece.getSizes()[d] - 1) * piece.getSrcSteps()[d];
    (reach < 0 ? range.first : range.last) += reach;
  }
  return ranges;
}

int64_t pieceElements(PieceAttr piece) {
  int64_t count = 1;
  for (int64_t size : piece.getSizes()) {
    count *= size;
  }
  return count;
}

SmallVector<int64_t> denseStrides(ArrayRef<int64_t> dims, int64_t unit) {
  SmallVector<int64_t> strides(dims.size());
  for (size_t d = dims.size(); d-- > 0; unit *= dims[d]) {
    strides[d] = unit;
  }
  return strides;
}

/// Two address sequences over one iteration space, in bytes.
struct Walk {
  SmallVector<int64_t> sizes, from, to;
};

static void moveAlong(const Walk &walk, size_t dim, const char *source, char *result, int64_t bytes) {
  if (dim == walk.sizes.size()) {
    std::memcpy(result, source, bytes);
    return;
  }
  bool row = dim + 1 == walk.sizes.size() && walk.from[dim] == bytes && walk.to[dim] == bytes;
  if (row) {
    std::memcpy(result, source, walk.sizes[dim] * bytes);
    return;
  }
  for (int64_t i = 0; i < walk.sizes[dim]; ++i) {
    moveAlong(walk, dim + 1, source + i * walk.from[dim], result + i * walk.to[dim], bytes);
  }
}

void movePiece(PieceAttr piece, const char *source, ArrayRef<int64_t> sourceDims, char *result,
               ArrayRef<int64_t> resultDims, int64_t elementBytes) {
  SmallVector<int64_t> from = denseStrides(sourceDims, elementBytes);
  SmallVector<int64_t> to = denseStrides(resultDims, elementBytes);
  for (size_t s = 0; s < from.size(); ++s) {
    source += piece.getSrcOffsets()[s] * from[s];
  }
  Walk walk;
  for (size_t d = 0; d < to.size(); ++d) {
    int64_t s = piece.getSrcDims()[d];
    result += piece.getDstOffsets()[d] * to[d];
    walk.sizes.push_back(piece.getSizes()[d]);
    walk.from.push_back(s < 0 ? 0 : piece.getSrcSteps()[d] * from[s]);
    walk.to.push_back(piece.getDstSteps()[d] * to[d]);
  }
  moveAlong(walk, 0, source, result, elementBytes);
}

/// Returns true if {offsetA + i stepA} and {offsetB + j stepB} have a common element.
static bool meet(int64_t offsetA, int64_t sizeA, int64_t stepA, int64_t offsetB, int64_t sizeB, int64_t stepB) {
  int64_t first = std::max(offsetA, offsetB);
  int64_t last = std::min(offsetA + (sizeA - 1) * stepA, offsetB + (sizeB - 1) * stepB);
  if (first > last || (offsetA - offsetB) % std::gcd(stepA, stepB) != 0) {
    return false;
  }
  // Common elements repeat with period lcm, so stepB steps of A suffice.
  int64_t start = offsetA + (first - offsetA + stepA - 1) / stepA * stepA;
  for (int64_t k = 0, at = start; k < stepB && at <= last; ++k, at += stepA) {
    if ((at - offsetB) % stepB == 0) {
      return true;
    }
  }
  return false;
}

static bool overlap(PieceAttr a, PieceAttr b) {
  for (size_t d = 0; d < a.getSizes().size(); ++d) {
    if (!meet(a.getDstOffsets()[d], a.getSizes()[d], a.getDstSteps()[d], b.getDstOffsets()[d], b.getSizes()[d],
              b.getDstSteps()[d])) {
      return false;
    }
  }
  return true;
}

std::optional<std::pair<size_t, size_t>> findOverlap(ArrayRef<PieceAttr> pieces) {
  if (pieces.empty() || pieces.front().getSizes().empty()) {
    return pieces.size() > 1 ? std::optional(std::make_pair<size_t, size_t>(0, 1)) : std::nullopt;
  }
  // Sweep along the dim in which the regions differ most, so that a concatenation of n tensors takes n log n
  // comparisons.
  size_t rank = pieces.front().getSizes().size(), sweep = 0, most = 0;
  for (size_t d = 0; d < rank; ++d) {
    SmallVector<int64_t> starts;
    for (PieceAttr piece : pieces) {
      starts.push_back(piece.getDstOffsets()[d]);
    }
    llvm::sort(starts);
    size_t distinct = std::unique(starts.begin(), starts.end()) - starts.begin();
    if (distinct > most) {
      most = distinct;
      sweep = d;
    }
  }
  SmallVector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order,
             [&](size_t a, size_t b) { return pieces[a].getDstOffsets()[sweep] < pieces[b].getDstOffsets()[sweep]; });
  auto end = [&](size_t i) {
    PieceAttr piece = pieces[i];
    return piece.getDstOffsets()[sweep] + (piece.getSizes()[sweep] - 1) * piece.getDstSteps()[sweep];
  };
  SmallVector<size_t> open;
  for (size_t i : order) {
    llvm::erase_if(open, [&](size_t j) { return end(j) < pieces[i].getDstOffsets()[sweep]; });
    for (size_t j : open) {
      if (overlap(pieces[i], pieces[j])) {
        return std::make_pair(std::min(i, j), std::max(i, j));
      }
    }
    open.push_back(i);
  }
  return std::nullopt;
}

} // namespace tessera::device
