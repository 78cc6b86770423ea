//===- TfIdf.cpp - Handler of TfIdfVectorizer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// The n-grams of one length. They are contiguous in the pool.
struct Pool {
  int64_t length;
  llvm::ArrayRef<int64_t> items;
  int64_t count() const { return static_cast<int64_t>(items.size()) / length; }
};

/// Counts how often each n-gram of |pool| occurs in the rows of |x| [B, C] with its items |step| apart, as f32 [B,
/// count].
Value countMatches(NodeImporter &n, Value x, const Pool &pool, int64_t step) {
  int64_t batch = NodeImporter::dim(x, 0), starts = NodeImporter::dim(x, 1) - (pool.length - 1) * step;
  if (starts < 1) {
    return n.floatConstant(n.b.getF32Type(), {batch, pool.count()}, llvm::SmallVector<double>(batch * pool.count(), 0));
  }
  Value matches;
  for (int64_t k = 0; k < pool.length; ++k) {
    Ints keys;
    for (int64_t i = 0; i < pool.count(); ++i) {
      keys.push_back(pool.items[i * pool.length + k]);
    }
    Value items = n.create<SliceOp>(x, Ints{0, k * step}, Ints{batch, starts}, Ints{1, 1});
    Value isEqual = n.create<CompareOp>(n.reshape(items, {batch, starts, 1}), n.intVector(keys), CompareKind::eq);
    matches = matches ? n.create<AndOp>(matches, isEqual) : isEqual;
  }
  return n.create<ReduceOp>(n.cast(matches, n.b.getF32Type()), ReduceKind::sum, Ints{1}, false);
}

/// Returns the pools for the lengths 1, 2, ... from the attributes ngram_counts, which holds the begin of each, and
/// pool_int64s.
llvm::SmallVector<Pool> readPools(NodeImporter &n, const Ints &items) {
  Ints begins = n.intsAttr("ngram_counts");
  begins.push_back(static_cast<int64_t>(items.size()));
  llvm::SmallVector<Pool> pools;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    auto length = static_cast<int64_t>(i) + 1;
    if (begins[i] < 0 || begins[i] > begins[i + 1] || (begins[i + 1] - begins[i]) % length != 0) {
      n.fail(llvm::formatv("attribute 'ngram_counts' assigns items {1} to {2} of {3} to the {0}-grams", length,
                           begins[i], begins[i + 1] - 1, items.size()));
      return {};
    }
    pools.push_back({length, llvm::ArrayRef<int64_t>(items).slice(begins[i], begins[i + 1] - begins[i])});
  }
  return pools;
}

/// Returns the weights by output column instead of by n-gram.
Value weightsByColumn(NodeImporter &n, llvm::ArrayRef<double> weights, const Ints &columns, int64_t width) {
  llvm::SmallVector<double> byColumn(width, 0.0);
  std::vector<bool> isTaken(width, false);
  for (size_t i = 0; i < columns.size() && i < weights.size(); ++i) {
    if (isTaken[columns[i]]) {
      n.unsupported(llvm::formatv("several n-grams with weights have the same column {0}", columns[i]));
    }
    isTaken[columns[i]] = true;
    byColumn[columns[i]] = weights[i];
  }
  if (weights.size() != columns.size()) {
    n.fail(llvm::formatv("it has {0} weights for {1} n-grams", weights.size(), columns.size()));
  }
  return n.floatConstant(n.b.getF32Type(), {width}, byColumn);
}

/// Range of lengths of the n-grams that count, and the largest number of items skipped between two items of an n-gram.
struct GramLimits {
  int64_t least, most, skips;
};

/// Returns how often the n-grams of each column occur in the rows of |x|, as f32 [rows, width], or null if none counts.
Value countsByColumn(NodeImporter &n, Value x, llvm::ArrayRef<Pool> pools, llvm::ArrayRef<int64_t> columns,
                     GramLimits limits, int64_t width) {
  int64_t first = 0;
  Value counts;
  for (const Pool &pool : pools) {
    llvm::SmallVector<double> places(pool.count() * width, 0.0);
    for (int64_t i = 0; i < pool.count(); ++i) {
      places[i * width + columns[first + i]] = 1.0;
    }
    first += pool.count();
    if (pool.length < limits.least || pool.length > limits.most || pool.count() == 0) {
      continue;
    }
    Value found;
    for (int64_t step = 1; step <= (pool.length == 1 ? 1 : limits.skips + 1); ++step) {
      Value more = countMatches(n, x, pool, step);
      found = found ? n.create<AddOp>(found, more) : more;
    }
    Value matrix = n.floatConstant(n.b.getF32Type(), {pool.count(), width}, places);
    Value placed = n.create<MatMulOp>(found, matrix, Value(), false, false, false, llvm::APFloat(-1.0));
    counts = counts ? n.create<AddOp>(counts, placed) : placed;
  }
  return counts;
}

void tfIdf(NodeImporter &n) {
  if (n.hasAttr("pool_strings")) {
    n.unsupported("attribute 'pool_strings': strings are not supported");
  }
  Value x = n.cast(n.input(0), n.b.getI64Type());
  bool isVector = NodeImporter::rank(x) == 1;
  x = isVector ? n.reshape(x, {1, NodeImporter::dim(x, 0)}) : x;
  Ints items = n.intsAttr("pool_int64s"), columns = n.intsAttr("ngram_indexes");
  llvm::SmallVector<Pool> pools = readPools(n, items);
  int64_t least = n.requiredInt("min_gram_length"), most = n.requiredInt("max_gram_length"), grams = 0,
          skips = n.requiredInt("max_skip_count");
  std::string mode = n.stringAttr("mode", "");
  for (const Pool &pool : pools) {
    grams += pool.count();
  }
  if (!n.failed() && llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic)) {
    n.unsupported("needs static dims: fix them with --input_shapes");
  }
  if (!n.failed() && (NodeImporter::rank(x) != 2 || grams != static_cast<int64_t>(columns.size()) || grams == 0 ||
                      llvm::any_of(columns, [](int64_t column) { return column < 0; }) || least < 1 || most < least ||
                      skips < 0 || (mode != "TF" && mode != "IDF" && mode != "TFIDF"))) {
    n.fail(
        llvm::formatv("{0} n-grams for {1} columns, of lengths {2} to {3} with up to {4} skips in mode '{5}', do not "
                      "fit together or an input of rank {6}",
                      grams, columns.size(), least, most, skips, mode, NodeImporter::rank(x)));
  }
  if (n.failed()) {
    return;
  }
  int64_t width = *llvm::max_element(columns) + 1;
  Value counts = countsByColumn(n, x, pools, columns, {least, most, skips}, width);
  int64_t batch = NodeImporter::dim(x, 0);
  counts = counts ? counts
                  : n.floatConstant(n.b.getF32Type(), {batch, width}, llvm::SmallVector<double>(batch * width, 0.0));
  llvm::SmallVector<double> weights = n.floatsAttr("weights");
  if (mode == "IDF") {
    Value isThere = n.create<CompareOp>(counts, n.scalarLike(counts, 0), CompareKind::gt);
    counts = n.cast(isThere, n.b.getF32Type());
  }
  if (mode != "TF" && !weights.empty()) {
    counts = n.create<MulOp>(counts, weightsByColumn(n, weights, columns, width));
  }
  n.setOutput(0, isVector ? n.reshape(counts, {width}) : counts);
}

constexpr HandlerEntry kHandlers[] = {{"", "TfIdfVectorizer", tfIdf, 9}};

} // namespace

llvm::ArrayRef<HandlerEntry> tfIdfHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
