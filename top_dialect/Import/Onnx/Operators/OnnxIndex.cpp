//===- OnnxIndex.cpp - Handlers of gathering, scattering and einsum ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cctype>
#include <map>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Fails if |indices| are constant and the i-th of each dims.size() of them is outside [-dims[i], dims[i]). Indices
/// known only at run time are clamped then (docs/numerics.md).
void checkIndices(NodeImporter &n, Value indices, llvm::ArrayRef<int64_t> dims) {
  auto known = n.failed() || dims.empty() ? std::nullopt : getConstantInts(indices);
  if (!known) {
    return;
  }
  for (auto [i, index] : llvm::enumerate(*known)) {
    int64_t dim = dims[i % dims.size()];
    if (!mlir::ShapedType::isDynamic(dim) && (index < -dim || index >= dim)) {
      n.fail(llvm::formatv("its constant index {0} (element {1} of input 1, tensor '{2}') is outside {3}..{4}, the "
                           "indices of a dim of size {5}",
                           index, i, n.inputName(1), -dim, dim - 1, dim));
      return;
    }
  }
}

/// Checks tuples of indices into the dims from |batch| on.
void checkTuples(NodeImporter &n, Value x, Value indices, int64_t batch) {
  int64_t depth = NodeImporter::rank(indices) > 0 ? NodeImporter::shape(indices).back() : 0;
  if (batch >= 0 && depth > 0 && depth <= NodeImporter::rank(x) - batch) { // otherwise shape inference reports the
                                                                           // error
    checkIndices(n, indices, NodeImporter::shape(x).slice(batch, depth));
  }
}

template <typename OpTy>
void gatherAlong(NodeImporter &n) {
  Value x = n.input(0), indices = n.input(1);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  checkIndices(n, indices, {NodeImporter::dim(x, axis)});
  n.setOutput(0, n.create<OpTy>(x, indices, axis));
}

void gatherNd(NodeImporter &n) {
  Value x = n.input(0), indices = n.input(1);
  int64_t batch = n.intAttr("batch_dims", 0);
  checkTuples(n, x, indices, batch);
  n.setOutput(0, n.create<GatherNdOp>(x, indices, batch));
}

ScatterReduction reduction(NodeImporter &n) {
  std::string text = n.stringAttr("reduction", "none");
  auto kind = llvm::StringSwitch<std::optional<ScatterReduction>>(text)
                  .Case("none", ScatterReduction::none)
                  .Case("add", ScatterReduction::add)
                  .Case("mul", ScatterReduction::mul)
                  .Case("min", ScatterReduction::min)
                  .Case("max", ScatterReduction::max)
                  .Default(std::nullopt);
  if (!kind) {
    n.fail(llvm::formatv("reduction '{0}' is unknown; allowed are none, add, mul, min and max", text));
  }
  return kind.value_or(ScatterReduction::none);
}

void scatterElements(NodeImporter &n) {
  Value x = n.input(0), indices = n.input(1);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  checkIndices(n, indices, {NodeImporter::dim(x, axis)});
  n.setOutput(0, n.create<ScatterElementsOp>(x, indices, n.input(2), axis, reduction(n)));
}

void scatterNd(NodeImporter &n) {
  Value x = n.input(0), indices = n.input(1);
  checkTuples(n, x, indices, 0);
  n.setOutput(0, n.create<ScatterNdOp>(x, indices, n.input(2), reduction(n)));
}

void oneHot(NodeImporter &n) {
  Value indices = n.input(0);
  if (isRunTime(n, 1)) {
    oneHotRunTime(n, n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(indices) + 1));
    return;
  }
  auto depths = n.constantDoubles(1, "the depth"); // of any numeric type
  if (depths.size() != 1 || !(depths[0] >= 1 && depths[0] < 0x1p53)) {
    n.fail("the depth is not a single positive number");
    return;
  }
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(indices) + 1);
  n.setOutput(0,
              n.create<OneHotOp>(n.cast(indices, n.b.getI64Type()), n.input(2), static_cast<int64_t>(depths[0]), axis));
}

/// An equation after replacing "..." by letters that do not occur in the text.
struct EinsumEquation {
  llvm::SmallVector<std::string> terms; ///< of the operands
  std::string result;
  std::string ellipsis; ///< letters of the dims that "..." represents
};

/// Returns the letters that occur once in the terms |left|, in alphabetical order. This is the result if the text does
/// not contain one.
std::string implicitResult(llvm::StringRef left) {
  std::map<char, int> count;
  for (char c : left) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      ++count[c];
    }
  }
  std::string result;
  for (auto [letter, times] : count) {
    if (times == 1) {
      result += letter;
    }
  }
  return result;
}

/// Splits |text| and replaces "..." in each term by unused capital letters, from the right.
std::optional<EinsumEquation> explicitEquation(NodeImporter &n, llvm::StringRef text) {
  std::string equation;
  for (char c : text) {
    if (c != ' ') {
      equation += c;
    }
  }
  auto [left, right] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.numInputs()) {
    n.fail(llvm::formatv("equation '{0}' has {1} terms for {2} inputs", text, terms.size(), n.numInputs()));
    return std::nullopt;
  }
  std::string fresh;
  for (char c = 'A'; c <= 'Z'; ++c) {
    if (llvm::StringRef(equation).find(c) == llvm::StringRef::npos) {
      fresh += c;
    }
  }
  std::optional<size_t> covered; // number of dims of the ellipsis
  EinsumEquation result;
  for (auto [i, term] : llvm::enumerate(terms)) {
    size_t rank = NodeImporter::rank(n.input(i));
    auto [before, after] = term.split("...");
    bool ellipsis = term.contains("...");
    size_t letters = before.size() + after.size();
    if (ellipsis ? rank < letters : rank != letters) {
      n.fail(llvm::formatv("term '{0}' of equation '{1}' does not fit its operand of rank {2}", term, text, rank));
      return std::nullopt;
    }
    size_t count = ellipsis ? rank - letters : 0;
    if (count > fresh.size()) {
      n.fail("the equation needs more than 52 letters");
      return std::nullopt;
    }
    if (ellipsis && covered.value_or(count) != count) {
      n.fail(llvm::formatv("the ellipsis of equation '{0}' represents {1} dims in operand {2} and {3} before it; it "
                           "must represent the same number",
                           text, count, i, *covered));
      return std::nullopt;
    }
    covered = ellipsis ? count : covered;
    result.terms.push_back(before.str() + fresh.substr(fresh.size() - count) + after.str());
  }
  result.ellipsis = fresh.substr(fresh.size() - covered.value_or(0));
  if (equation.find("->") == std::string::npos) {
    result.result = result.ellipsis + implicitResult(left);
    return result;
  }
  auto [before, after] = right.split("...");
  result.result = before.str() + (right.contains("...") ? result.ellipsis : "") + after.str();
  return result;
}

/// Returns the largest size of each letter. It is an error if a letter has two different sizes other than 1.
std::map<char, int64_t> einsumSizes(NodeImporter &n, const EinsumEquation &equation, llvm::StringRef text) {
  std::map<char, int64_t> sizes;
  for (auto [i, term] : llvm::enumerate(equation.terms)) {
    for (auto [letter, dim] : llvm::zip_equal(term, NodeImporter::shape(n.input(i)))) {
      auto [it, isNew] = sizes.try_emplace(letter, dim);
      if (it->second == dim || dim == 1 || mlir::ShapedType::isDynamic(dim)) {
        continue;
      }
      if (it->second != 1 && !mlir::ShapedType::isDynamic(it->second)) {
        size_t place = equation.ellipsis.find(letter);
        std::string what = place == std::string::npos ? llvm::formatv("index '{0}'", letter).str()
                                                      : llvm::formatv("dim {0} of the ellipsis", place).str();
        n.fail(llvm::formatv("{0} of equation '{1}' has size {2} and size {3} (in operand {4}); sizes must be equal, "
                             "or 1",
                             what, text, it->second, dim, i));
        return sizes;
      }
      it->second = dim;
    }
  }
  return sizes;
}

/// Removes from each operand the dims of size 1 whose letter has a larger size elsewhere, because they broadcast.
llvm::SmallVector<Value> broadcastTerms(NodeImporter &n, EinsumEquation &equation, llvm::StringRef text) {
  std::map<char, int64_t> sizes = einsumSizes(n, equation, text);
  llvm::SmallVector<Value> operands = n.inputs();
  for (auto [operand, term] : llvm::zip_equal(operands, equation.terms)) {
    std::string letters;
    llvm::SmallVector<Dim> dims;
    for (auto [letter, dim] : llvm::zip_equal(term, NodeImporter::sizes(operand))) {
      if (!dim.is(1) || sizes[letter] == 1) {
        letters += letter;
        dims.push_back(dim);
      }
    }
    if (letters != term && !n.failed()) {
      operand = n.reshapeTo(operand, dims);
      term = letters;
    }
  }
  return operands;
}

/// Takes the diagonals of |x| along open dims, which no lowering can slice. Removes the second letter of each.
Value takeOpenDiagonals(NodeImporter &n, Value x, std::string &term) {
  for (size_t i = 0; i < term.size() && !n.failed(); ++i) {
    size_t j = term.find(term[i], i + 1);
    auto sizes = NodeImporter::sizes(x);
    if (j == std::string::npos || (sizes[i].isKnown() && sizes[j].isKnown())) {
      continue;
    }
    Ints perm = {int64_t(i), int64_t(j)};
    llvm::SmallVector<Dim> rows = {sizes[i] * sizes[j]};
    std::string letters(1, term[i]);
    for (size_t d = 0; d < term.size(); ++d) {
      if (d != i && d != j) {
        perm.push_back(int64_t(d)), rows.push_back(sizes[d]), letters += term[d];
      }
    }
    Arithmetic a{n};
    Value places = a.add(a.mul(iotaTo(n, sizes[i]), sizeVector(n, {sizes[j]})), iotaTo(n, sizes[j]));
    x = n.create<GatherOp>(n.reshapeTo(n.transpose(x, perm), rows), places, 0);
    term = letters, i = size_t(-1); // the letter may occur again
  }
  return x;
}

void einsum(NodeImporter &n) {
  std::string text = n.stringAttr("equation", "");
  auto equation = explicitEquation(n, text);
  if (!equation || n.failed()) {
    return;
  }
  llvm::SmallVector<Value> operands = broadcastTerms(n, *equation, text);
  for (auto [operand, term] : llvm::zip_equal(operands, equation->terms)) {
    operand = takeOpenDiagonals(n, operand, term);
  }
  n.setOutput(0, n.create<EinsumOp>(operands, llvm::join(equation->terms, ",") + "->" + equation->result));
}

} // namespace

llvm::ArrayRef<HandlerEntry> indexHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Gather", gatherAlong<GatherOp>},
      {"", "GatherElements", gatherAlong<GatherElementsOp>},
      {"", "GatherND", gatherNd},
      {"", "Scatter", scatterElements},
      {"", "ScatterElements", scatterElements},
      {"", "ScatterND", scatterNd},
      {"", "OneHot", oneHot},
      {"", "Einsum", einsum},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
