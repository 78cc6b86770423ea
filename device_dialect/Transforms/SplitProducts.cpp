//===- SplitProducts.cpp - Splitting matmuls by columns -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/ComposePieces.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include <cstring>
#include <map>

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_SPLITPRODUCTSPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

/// Columns [first, first + count) of a matmul.
struct Columns {
  int64_t first, count;
  bool operator<(const Columns &other) const { return std::pair(first, count) < std::pair(other.first, other.count); }
};

/// A copy that reads columns of a matmul through a view whose dims from |first| on are the columns.
struct Reader {
  CopyOp copy;
  Value source; ///< the matmul's result or a view of it
  size_t first;
  std::vector<Piece> pieces;
};

/// Returns the first of the dims of a view that form a matmul's columns; nothing if they are not the last dims.
std::optional<size_t> columnsOf(ArrayRef<int64_t> dims, int64_t columns) {
  int64_t count = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    count *= dims[d];
    if (count == columns) {
      return d;
    }
  }
  return std::nullopt;
}

/// Returns the columns that a region reads, given that dims from |first| on are columns; nothing if they are not
/// contiguous.
std::optional<Columns> columnsOf(const Piece &piece, ArrayRef<int64_t> dims, size_t first) {
  SmallVector<int64_t> sizes(dims.size(), 1);
  for (auto [size, dim] : llvm::zip_equal(piece.sizes, piece.srcDims)) {
    if (dim >= 0) {
      sizes[size_t(dim)] = size;
    }
  }
  Columns result{0, 1};
  bool isPart = false; // an outer dim is taken in part
  for (size_t d = first; d < dims.size(); ++d) {
    bool isAll = sizes[d] == dims[d] && piece.srcOffsets[d] == 0;
    auto dim = llvm::find(piece.srcDims, int64_t(d)) - piece.srcDims.begin();
    bool hasStep = size_t(dim) < piece.srcDims.size() && piece.srcSteps[size_t(dim)] != 1;
    if (hasStep || (isPart && !isAll)) {
      return std::nullopt;
    }
    isPart = isPart || sizes[d] > 1;
    result.first = result.first * dims[d] + piece.srcOffsets[d], result.count *= sizes[d];
  }
  return result;
}

class ContractionSplitter {
public:
  explicit ContractionSplitter(MatMulOp contraction) : contraction(contraction), builder(contraction) {}

  /// Splits the matmul; returns false if it stays as it is.
  bool run() {
    if (!Shape(contraction.getY()).isKnown() || !Shape(contraction.getB()).isKnown()) {
      return false;
    }
    ArrayRef<int64_t> b = Shape(contraction.getB()).values();
    columns = typeOf(contraction.getY()).getShape().back();
    bool isPlain = b.size() == 2 && getConstantRoot(contraction.getB()) && !contraction.getScales() &&
                   !contraction.getPacking() && (!contraction.getBias() || getConstantRoot(contraction.getBias()));
    bool hasRows = typeOf(contraction.getY()).getNumElements() > columns; // with a single row, the column ranges are
                                                                          // already contiguous
    if (!isPlain || !hasRows || !findReaders(contraction.getY()) || !coverAll() ||
        !llvm::all_of(contraction.getExtras(), canSlice())) {
      return false;
    }
    for (auto &[range, part] : parts) {
      part = partOf(range);
    }
    for (Reader &reader : readers) {
      redirect(reader);
    }
    for (ReshapeOp view : views) {
      view.erase();
    }
    contraction.erase();
    return true;
  }

private:
  /// Returns true if all readers of |value| are copies of columns.
  bool findReaders(Value value) {
    std::optional<size_t> first = columnsOf(typeOf(value).getShape(), columns);
    for (Operation *user : value.getUsers()) {
      if (auto view = dyn_cast<ReshapeOp>(user); view && findReaders(view->getResult(0))) {
        views.push_back(view);
        continue;
      }
      auto copy = dyn_cast<CopyOp>(user);
      bool isKnown = llvm::any_of(readers, [&](const Reader &reader) { return reader.copy == copy; });
      if (!copy || !first || isKnown) {
        return false;
      }
      Reader reader{copy, value, *first, {}};
      for (Attribute each : copy.getPieces()) {
        if (!cast<PieceAttr>(each).isKnown()) {
          return false;
        }
        reader.pieces.emplace_back(cast<PieceAttr>(each));
        const Piece &piece = reader.pieces.back();
        if (copy.getSources()[size_t(piece.source)] == value) {
          std::optional<Columns> range = columnsOf(piece, typeOf(value).getShape(), *first);
          if (!range) {
            return false;
          }
          parts[*range];
        }
      }
      readers.push_back(std::move(reader));
    }
    return true;
  }

  /// Returns true if there are several ranges and each column is in exactly one.
  bool coverAll() const {
    int64_t next = 0;
    for (const auto &[range, part] : parts) {
      if (range.first != next) {
        return false;
      }
      next += range.count;
    }
    return parts.size() > 1 && next == columns;
  }

  /// Accepts constants per column, and values that are the same for all columns.
  std::function<bool(Value)> canSlice() {
    return [this](Value extra) {
      ArrayRef<int64_t> dims = typeOf(extra).getShape();
      bool isPerColumn = !dims.empty() && dims.back() == columns;
      return !isPerColumn ? dims.empty() || dims.back() == 1
                          : typeOf(extra).getNumElements() == columns && getConstantRoot(extra);
    };
  }

  /// Returns columns of a constant whose rows have |columns| entries, or that stores the columns as rows.
  Value slice(Value value, Columns range, bool asRows) {
    top::TensorData data = *top::getConstantData(getConstantRoot(value));
    RankedTensorType type = typeOf(value);
    size_t element = size_t(type.getElementTypeBitWidth() / 8);
    int64_t rows = type.getNumElements() / columns;
    size_t step = element * (asRows ? size_t(rows) : 1), times = asRows ? 1 : size_t(rows);
    std::vector<char> bytes;
    for (size_t row = 0; row < times; ++row) {
      const char *from = data.bytes.data() + (row * size_t(columns) + size_t(range.first)) * step;
      bytes.insert(bytes.end(), from, from + size_t(range.count) * step);
    }
    SmallVector<int64_t> dims(type.getShape());
    (asRows ? dims.front() : dims.back()) = range.count;
    return top::createConstant(builder, contraction.getLoc(), RankedTensorType::get(dims, type.getElementType()), bytes,
                               "columns");
  }

  Value partOf(Columns range) {
    SmallVector<Value> extras;
    for (Value extra : contraction.getExtras()) {
      ArrayRef<int64_t> dims = typeOf(extra).getShape();
      extras.push_back(!dims.empty() && dims.back() == columns ? slice(extra, range, false) : extra);
    }
    Value b = slice(contraction.getB(), range, contraction.getTransB());
    Value bias = contraction.getBias() ? slice(contraction.getBias(), range, false) : Value();
    auto part = cast<MatMulOp>(builder.clone(*contraction));
    part->removeAttr("top.outputs");
    part.getBMutable().assign(b);
    part.getExtrasMutable().assign(extras);
    if (bias) {
      part.getBiasMutable().assign(bias);
    }
    RankedTensorType type = typeOf(contraction.getY());
    SmallVector<int64_t> dims(type.getShape());
    dims.back() = range.count;
    part.getY().setType(RankedTensorType::get(dims, type.getElementType()));
    return part.getY();
  }

  /// Returns the split part in the dims with which the reader sees the matmul.
  Value viewOf(Reader &reader, const Piece &piece, Columns range) {
    SmallVector<int64_t> dims(typeOf(reader.source).getShape());
    std::fill(dims.begin() + int64_t(reader.first), dims.end(), 1);
    for (auto [size, dim] : llvm::zip_equal(piece.sizes, piece.srcDims)) {
      if (dim >= int64_t(reader.first)) {
        dims[size_t(dim)] = size;
      }
    }
    builder.setInsertionPoint(reader.copy);
    auto type = RankedTensorType::get(dims, typeOf(reader.source).getElementType());
    Value part = parts.at(range);
    return type == part.getType() ? part : ReshapeOp::create(builder, reader.copy.getLoc(), type, part).getResult();
  }

  void redirect(Reader &reader) {
    SmallVector<Value> sources(reader.copy.getSources());
    SmallVector<Attribute> pieces;
    for (Piece &piece : reader.pieces) {
      if (sources[size_t(piece.source)] == reader.source) {
        Columns range = *columnsOf(piece, typeOf(reader.source).getShape(), reader.first);
        sources.push_back(viewOf(reader, piece, range));
        piece.source = int64_t(sources.size()) - 1;
        std::fill(piece.srcOffsets.begin() + int64_t(reader.first), piece.srcOffsets.end(), 0);
      }
    }
    SmallVector<Value> used;
    for (Piece &piece : reader.pieces) {
      Value source = sources[size_t(piece.source)];
      size_t at = size_t(llvm::find(used, source) - used.begin());
      if (at == used.size()) {
        used.push_back(source);
      }
      piece.source = int64_t(at);
      pieces.push_back(piece.get(reader.copy.getContext()));
    }
    reader.copy.getSourcesMutable().assign(used);
    reader.copy.setPiecesAttr(builder.getArrayAttr(pieces));
  }

  MatMulOp contraction;
  OpBuilder builder;
  int64_t columns = 0;
  std::vector<Reader> readers;
  SmallVector<ReshapeOp> views; ///< views of views come before their sources
  std::map<Columns, Value> parts;
};

struct SplitProductsPass : impl::SplitProductsPassBase<SplitProductsPass> {
  void runOnOperation() override {
    for (MatMulOp contraction : llvm::to_vector(getOperation().getBody().getOps<MatMulOp>())) {
      numSplit += ContractionSplitter(contraction).run();
    }
  }
};

} // namespace
} // namespace tessera::device
