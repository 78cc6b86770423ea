//===- OnnxSequence.cpp - Handlers of sequences and optional values ---===//
// SPDX-License-Identifier: Apache-2.0
//
// A sequence is a list of values that exists only during import. Its length and the indices into it must be known then.
// The same holds for the presence of an optional value.
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Values = llvm::SmallVector<Value>;

/// Limit on the length of a sequence.
constexpr int64_t kLongest = 4096;

Values sequence(NodeImporter &n, unsigned i) {
  const Values *found = n.hasInput(i) ? n.graph.lookupSequence(n.inputName(i)) : nullptr;
  if (!found) {
    n.fail(llvm::formatv("input {0}, '{1}', is not a sequence of tensors", i, n.inputName(i)));
  }
  return found ? *found : Values();
}

void setSequence(NodeImporter &n, unsigned i, Values values) {
  if (!n.failed() && static_cast<int64_t>(values.size()) > kLongest) {
    n.unsupported(llvm::formatv("a sequence of {0} tensors; up to {1} are supported", values.size(), kLongest));
  }
  if (n.wantsOutput(i) && !n.failed()) {
    n.graph.bindSequence(n.node.output(i), std::move(values));
  }
}

/// Returns input |i| as an index in 0..last, or |byDefault| if it is absent. Negative values count from the end.
int64_t place(NodeImporter &n, unsigned i, int64_t last, int64_t length, int64_t byDefault) {
  if (!n.hasInput(i)) {
    return byDefault;
  }
  Ints given = n.constantInts(i, "the position");
  int64_t position = given.size() == 1 ? given.front() : last + 1;
  position += position < 0 ? length : 0;
  if (!n.failed() && (given.size() != 1 || position < 0 || position > last)) {
    n.fail(llvm::formatv("the position {0} is outside a sequence of {1} tensors", given.size() == 1 ? given.front() : 0,
                         length));
  }
  return n.failed() ? 0 : position;
}

void sequenceConstruct(NodeImporter &n) { setSequence(n, 0, Values(n.inputs())); }

void sequenceEmpty(NodeImporter &n) { setSequence(n, 0, {}); }

void sequenceInsert(NodeImporter &n) {
  Values values = sequence(n, 0);
  auto length = static_cast<int64_t>(values.size());
  int64_t at = place(n, 2, length, length, length);
  Value tensor = n.input(1);
  if (!n.failed()) {
    values.insert(values.begin() + at, tensor);
  }
  setSequence(n, 0, std::move(values));
}

void sequenceErase(NodeImporter &n) {
  Values values = sequence(n, 0);
  auto length = static_cast<int64_t>(values.size());
  int64_t at = place(n, 1, length - 1, length, length - 1);
  if (!n.failed() && values.empty()) {
    n.fail("the sequence is empty");
  }
  if (!n.failed()) {
    values.erase(values.begin() + at);
  }
  setSequence(n, 0, std::move(values));
}

void sequenceAt(NodeImporter &n) {
  Values values = sequence(n, 0);
  auto length = static_cast<int64_t>(values.size());
  int64_t at = place(n, 1, length - 1, length, 0);
  if (!n.failed()) {
    n.setOutput(0, values[at]);
  }
}

void sequenceLength(NodeImporter &n) {
  Values values = sequence(n, 0);
  n.setOutput(0, n.scalar(n.b.getI64Type(), static_cast<double>(values.size())));
}

/// Splits into pieces of given sizes, of one size, or into single slices. Single slices lose the dim unless keepdims is
/// set.
void splitToSequence(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x)), size = NodeImporter::dim(x, axis);
  bool single = !n.hasInput(1);
  Ints sizes = single ? Ints{1} : n.constantInts(1, "the list of sizes");
  if (!n.failed() && llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic)) {
    n.unsupported("needs static dims: fix them with --input_shapes");
  }
  bool equal = single || NodeImporter::rank(n.input(1)) == 0;
  if (!n.failed() && (sizes.empty() || llvm::any_of(sizes, [&](int64_t s) { return s < (equal ? 1 : 0); }))) {
    n.fail("the sizes of its pieces are missing or not positive");
  }
  if (n.failed()) {
    return;
  }
  if (equal) {
    int64_t piece = sizes.front();
    if (size / piece > kLongest) {
      n.unsupported(llvm::formatv("{0} pieces; up to {1} are supported", size / piece, kLongest));
      return;
    }
    sizes.assign(size / piece, piece);
    if (size % piece != 0) {
      sizes.push_back(size % piece);
    }
  }
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != size) {
    n.fail(llvm::formatv("its pieces do not add up to the {0} entries of axis {1}", size, axis));
    return;
  }
  Values pieces;
  Ints dims(NodeImporter::shape(x)), starts(dims.size(), 0), steps(dims.size(), 1), dropped(dims);
  dropped.erase(dropped.begin() + axis);
  for (int64_t piece : sizes) {
    dims[axis] = piece;
    Value part = n.create<SliceOp>(x, starts, dims, steps);
    pieces.push_back(single && n.intAttr("keepdims", 1) == 0 ? n.reshape(part, dropped) : part);
    starts[axis] += piece;
  }
  setSequence(n, 0, std::move(pieces));
}

void concatFromSequence(NodeImporter &n) {
  Values values = sequence(n, 0);
  bool newAxis = n.intAttr("new_axis", 0) != 0;
  if (!n.failed() && values.empty()) {
    n.fail("the sequence is empty");
  }
  if (n.failed()) {
    return;
  }
  int64_t axis = n.normalizeAxis(n.requiredInt("axis"), NodeImporter::rank(values.front()) + (newAxis ? 1 : 0));
  for (Value &value : values) {
    Ints dims(NodeImporter::shape(value));
    if (newAxis && !n.failed() && axis <= static_cast<int64_t>(dims.size())) {
      dims.insert(dims.begin() + axis, 1);
      value = n.reshape(value, dims);
    }
  }
  n.setOutput(0, values.size() == 1 ? values.front() : n.create<ConcatOp>(values, axis));
}

//===----------------------------------------------------------------------===//
// Optional values
//===----------------------------------------------------------------------===//

/// Returns the same tensor or sequence.
void pass(NodeImporter &n) {
  if (!n.hasInput(0)) {
    n.unsupported("an optional value that is absent");
  } else if (const Values *values = n.graph.lookupSequence(n.inputName(0))) {
    setSequence(n, 0, *values);
  } else {
    n.setOutput(0, n.input(0));
  }
}

void optionalHasElement(NodeImporter &n) { n.setOutput(0, n.scalar(n.b.getI1Type(), n.hasInput(0) ? 1 : 0)); }

constexpr HandlerEntry kHandlers[] = {
    {"", "SequenceConstruct", sequenceConstruct, 11},
    {"", "SequenceEmpty", sequenceEmpty, 11},
    {"", "SequenceInsert", sequenceInsert, 11},
    {"", "SequenceErase", sequenceErase, 11},
    {"", "SequenceAt", sequenceAt, 11},
    {"", "SequenceLength", sequenceLength, 11},
    {"", "SplitToSequence", splitToSequence, 11},
    {"", "ConcatFromSequence", concatFromSequence, 11},
    {"", "Optional", pass, 15},
    {"", "OptionalGetElement", pass, 15},
    {"", "OptionalHasElement", optionalHasElement, 15},
};

} // namespace

llvm::ArrayRef<HandlerEntry> sequenceHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
