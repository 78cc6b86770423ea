//===- RefinePieces.cpp - Copy regions under finer dims -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/RefinePieces.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <numeric>
#include <set>

using namespace mlir;

namespace tessera::device {
namespace {

/// Returns the part of |piece| that begins at step |first| along dim |d| of the result and takes |count| steps.
Piece stepsOf(const Piece &piece, size_t d, int64_t first, int64_t count) {
  Piece part = piece;
  part.sizes[d] = count, part.dstOffsets[d] += first * piece.dstSteps[d];
  if (piece.srcDims[d] >= 0) {
    part.srcOffsets[size_t(piece.srcDims[d])] += first * piece.srcSteps[d];
  }
  return part;
}

/// Splits dim |d| of the result, of n * |low| elements, into dims n and |low|. |piece| must stay within one n or cover
/// whole |low|.
Piece splitResultDim(const Piece &piece, size_t d, int64_t low) {
  Piece result = piece;
  auto insert = [&](SmallVector<int64_t> &of, int64_t value) { of.insert(of.begin() + int64_t(d) + 1, value); };
  bool isWithin = piece.sizes[d] <= low - piece.dstOffsets[d] % low;
  result.sizes[d] = isWithin ? 1 : piece.sizes[d] / low;
  result.dstOffsets[d] = piece.dstOffsets[d] / low;
  result.srcSteps[d] = piece.srcSteps[d] * low;
  insert(result.sizes, isWithin ? piece.sizes[d] : low), insert(result.dstOffsets, piece.dstOffsets[d] % low);
  insert(result.dstSteps, 1), insert(result.srcDims, piece.srcDims[d]), insert(result.srcSteps, piece.srcSteps[d]);
  return result;
}

/// Splits dim |d| of the result for a region at any position, and appends the regions to |to|. Parts of a block of
/// |low| at the begin and end of the region become separate regions. Returns false if the region has steps other
/// than 1.
bool splitResultDim(const Piece &piece, size_t d, int64_t low, std::vector<Piece> &to) {
  int64_t offset = piece.dstOffsets[d], size = piece.sizes[d];
  if (size == 1) {
    to.push_back(splitResultDim(piece, d, low));
    to.back().dstSteps[d] = 1;
    return true;
  }
  if (piece.dstSteps[d] != 1) {
    return false;
  }
  int64_t head = std::min(size, (low - offset % low) % low), whole = (size - head) / low * low;
  for (auto [first, count] :
       {std::pair(int64_t(0), head), std::pair(head, whole), std::pair(head + whole, size - head - whole)}) {
    if (count > 0) {
      to.push_back(splitResultDim(stepsOf(piece, d, first, count), d, low));
    }
  }
  return true;
}

/// Returns the dims of the result along which |piece| advances in dim |s| of its source.
SmallVector<size_t> walksOf(const Piece &piece, size_t s) {
  SmallVector<size_t> walks;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    if (piece.srcDims[d] == int64_t(s) && piece.sizes[d] > 1) {
      walks.push_back(d);
    }
  }
  return walks;
}

/// Splits dim |s| of the source, of n * |low| elements, into dims n and |low|; appends parts of |piece| to |to| such
/// that each advances along one of the two. Returns false if a part would cross from one n to the next.
bool splitSourceDim(const Piece &piece, size_t s, int64_t low, std::vector<Piece> &to) {
  int64_t begin = piece.srcOffsets[s] % low;
  std::optional<size_t> inside; // the dim that advances within n
  for (size_t d : walksOf(piece, s)) {
    if (piece.srcSteps[d] % low == 0) {
      continue;
    }
    if (inside || piece.srcSteps[d] < 0) {
      return false;
    }
    inside = d;
  }
  if (inside) {
    int64_t step = piece.srcSteps[*inside], size = piece.sizes[*inside], fits = (low - begin + step - 1) / step;
    if (size > fits) { // the rest begins in the next n
      return size * step <= low && splitSourceDim(stepsOf(piece, *inside, 0, fits), s, low, to) &&
             splitSourceDim(stepsOf(piece, *inside, fits, size - fits), s, low, to);
    }
  }
  Piece result = piece;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    if (piece.srcDims[d] > int64_t(s)) {
      ++result.srcDims[d];
    } else if (piece.srcDims[d] == int64_t(s) && piece.sizes[d] > 1) {
      bool isInside = inside == d;
      result.srcDims[d] += isInside, result.srcSteps[d] /= isInside ? 1 : low;
    }
  }
  result.srcOffsets[s] = piece.srcOffsets[s] / low;
  result.srcOffsets.insert(result.srcOffsets.begin() + int64_t(s) + 1, begin);
  to.push_back(std::move(result));
  return true;
}

/// Returns the dim of the result along which a region advances in dim |s| of its source beyond |low| with step 1.
std::optional<size_t> longWalkOf(ArrayRef<Piece> pieces, size_t s, int64_t low) {
  for (const Piece &piece : pieces) {
    for (size_t d : walksOf(piece, s)) {
      if (piece.srcSteps[d] == 1 && piece.srcOffsets[s] % low + piece.sizes[d] > low) {
        return d;
      }
    }
  }
  return std::nullopt;
}

bool splitAll(std::vector<Piece> &pieces, llvm::function_ref<bool(const Piece &, std::vector<Piece> &)> split) {
  std::vector<Piece> result;
  bool done = llvm::all_of(pieces, [&](const Piece &piece) { return split(piece, result); });
  pieces = std::move(result);
  return done;
}

/// Removes the dims of size 1 in |dims| from the result's side.
Piece withoutResultDims(Piece piece, ArrayRef<int64_t> dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) {
      for (auto *of : {&piece.sizes, &piece.dstOffsets, &piece.dstSteps, &piece.srcDims, &piece.srcSteps}) {
        of->erase(of->begin() + int64_t(d));
      }
    }
  }
  return piece;
}

Piece withoutSourceDims(Piece piece, ArrayRef<int64_t> dims) {
  for (size_t s = dims.size(); s-- > 0;) {
    if (dims[s] == 1) {
      piece.srcOffsets.erase(piece.srcOffsets.begin() + int64_t(s));
      for (int64_t &dim : piece.srcDims) {
        dim = dim == int64_t(s) ? -1 : dim - (dim > int64_t(s));
      }
    }
  }
  return piece;
}

Dims withoutOnes(ArrayRef<int64_t> dims) {
  Dims result(dims);
  llvm::erase(result, 1);
  return result;
}

/// Returns how many of |fine|, counted from the back, make up each of |dims|; nothing if they do not.
std::optional<Dims> countsOf(ArrayRef<int64_t> dims, ArrayRef<int64_t> fine) {
  Dims counts;
  for (int64_t dim : llvm::reverse(dims)) {
    int64_t size = 1, count = 0;
    while (size < dim && !fine.empty()) {
      size *= fine.back(), ++count, fine = fine.drop_back();
    }
    if (size != dim) {
      return std::nullopt;
    }
    counts.push_back(count);
  }
  return fine.empty() ? std::optional(counts) : std::nullopt;
}

} // namespace

std::optional<Dims> commonDims(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  std::set<int64_t> ends; // number of elements from the beginning of each dim to the end
  for (ArrayRef<int64_t> dims : {a, b}) {
    for (size_t d = 0; d < dims.size(); ++d) {
      ends.insert(ShapedType::getNumElements(dims.drop_front(d)));
    }
  }
  ends.insert(1);
  Dims result;
  for (auto end = std::next(ends.begin()); end != ends.end(); ++end) {
    if (*std::prev(end) == 0 || *end % *std::prev(end) != 0) {
      return std::nullopt;
    }
    result.insert(result.begin(), *end / *std::prev(end));
  }
  return ShapedType::getNumElements(a) == ShapedType::getNumElements(b) ? std::optional(result) : std::nullopt;
}

std::optional<std::vector<Piece>> writeRefined(ArrayRef<Piece> pieces, ArrayRef<int64_t> dims, ArrayRef<int64_t> fine) {
  Dims coarse = withoutOnes(dims);
  std::optional<Dims> counts = countsOf(coarse, fine);
  if (!counts) {
    return std::nullopt;
  }
  std::vector<Piece> result;
  for (const Piece &piece : pieces) {
    result.push_back(withoutResultDims(piece, dims));
  }
  size_t end = fine.size();
  for (size_t d = coarse.size(); d-- > 0;) {
    int64_t count = (*counts)[coarse.size() - 1 - d];
    for (int64_t i = 1; i < count; ++i, --end) {
      auto split = [&](const Piece &piece, std::vector<Piece> &to) {
        return splitResultDim(piece, d, fine[end - 1], to);
      };
      if (!splitAll(result, split)) {
        return std::nullopt;
      }
    }
    --end;
  }
  return result;
}

std::optional<RefinedCopy> readRefined(ArrayRef<Piece> pieces, ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                       ArrayRef<int64_t> fine) {
  Dims coarse = withoutOnes(from);
  std::optional<Dims> counts = countsOf(coarse, fine);
  if (!counts) {
    return std::nullopt;
  }
  RefinedCopy result{{}, Dims(to)};
  for (const Piece &piece : pieces) {
    result.pieces.push_back(withoutSourceDims(piece, from));
  }
  size_t end = fine.size();
  for (size_t s = coarse.size(); s-- > 0; --end) {
    int64_t count = (*counts)[coarse.size() - 1 - s];
    for (int64_t i = 1; i < count; ++i, --end) {
      int64_t low = fine[end - 1];
      if (std::optional<size_t> d = longWalkOf(result.pieces, s, low)) {
        int64_t size = result.resultDims[*d];
        auto split = [&](const Piece &piece, std::vector<Piece> &to) { return splitResultDim(piece, *d, low, to); };
        if (size % low != 0 || !splitAll(result.pieces, split)) {
          return std::nullopt;
        }
        result.resultDims[*d] = size / low;
        result.resultDims.insert(result.resultDims.begin() + int64_t(*d) + 1, low);
      }
      auto split = [&](const Piece &piece, std::vector<Piece> &to) { return splitSourceDim(piece, s, low, to); };
      if (!splitAll(result.pieces, split)) {
        return std::nullopt;
      }
    }
  }
  bool isSingle = llvm::all_of(result.pieces, [&](const Piece &piece) {
    return llvm::all_of(llvm::seq<size_t>(0, fine.size()), [&](size_t s) { return walksOf(piece, s).size() <= 1; });
  });
  return isSingle ? std::optional(std::move(result)) : std::nullopt;
}

} // namespace tessera::device
