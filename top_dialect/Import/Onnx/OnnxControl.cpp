//===- OnnxControl.cpp - Handlers of control flow ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Values = llvm::SmallVector<Value>;

const onnx::GraphProto *subgraph(NodeImporter &n, StringRef name) {
  const onnx::AttributeProto *attribute = n.typedAttr(name, onnx::AttributeProto::GRAPH);
  if (!attribute || !attribute->has_g()) {
    n.fail(llvm::formatv("attribute '{0}' with a graph is missing", name));
    return nullptr;
  }
  return &attribute->g();
}

/// Imports the nodes of |graph| at |builder| and returns its outputs; nothing on an error.
Values importInto(NodeImporter &n, const onnx::GraphProto &graph, mlir::OpBuilder &builder,
                  llvm::ArrayRef<Value> arguments) {
  GraphImporter importer(n.graph.model, graph, builder, &n.graph);
  for (auto [input, value] : llvm::zip(graph.input(), arguments)) {
    importer.bind(input.name(), value);
  }
  if (llvm::Error error = importer.importNodes()) {
    n.fail(std::move(error));
    return {};
  }
  auto outputs = importer.outputs();
  if (!outputs) {
    n.fail(outputs.takeError());
    return {};
  }
  return *outputs;
}

/// Imports |graph| as the one block of a new region. The region is built before its op: constants of
/// the enclosing graph that it asks for first land in front of the op, where both may use them.
std::unique_ptr<mlir::Region> importRegion(NodeImporter &n, const onnx::GraphProto &graph,
                                           llvm::ArrayRef<mlir::Type> argumentTypes) {
  auto region = std::make_unique<mlir::Region>();
  mlir::Block &block = region->emplaceBlock();
  Values arguments;
  for (mlir::Type type : argumentTypes) {
    arguments.push_back(block.addArgument(type, n.loc));
  }
  mlir::OpBuilder builder(n.b.getContext());
  builder.setInsertionPointToEnd(&block);
  Values outputs = importInto(n, graph, builder, arguments);
  YieldOp::create(builder, n.loc, outputs);
  return region;
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

void importIf(NodeImporter &n) {
  Value cond = n.input(0);
  const onnx::GraphProto *thenGraph = subgraph(n, "then_branch");
  const onnx::GraphProto *elseGraph = subgraph(n, "else_branch");
  if (n.failed()) {
    return;
  }
  Values outputs;
  auto known = getConstantInts(cond);
  if (known && known->size() == 1) {
    outputs = importInto(n, known->front() ? *thenGraph : *elseGraph, n.b, {});
  } else {
    auto thenRegion = importRegion(n, *thenGraph, {});
    auto elseRegion = importRegion(n, *elseGraph, {});
    if (n.failed()) {
      return;
    }
    llvm::SmallVector<mlir::Type> types(thenGraph->output_size(), NodeImporter::placeholder(n.b));
    auto op = IfOp::create(n.b, n.loc, types, cond);
    op.getThenRegion().takeBody(*thenRegion);
    op.getElseRegion().takeBody(*elseRegion);
    outputs = n.finish(op);
  }
  for (auto [i, value] : llvm::enumerate(outputs)) {
    n.setOutput(i, value);
  }
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// |a| with `?` where |b| differs; |a| itself where they are of different rank or element (the
/// inference says so).
mlir::Type widen(mlir::Type a, mlir::Type b) {
  auto first = mlir::cast<mlir::RankedTensorType>(a);
  auto second = mlir::cast<mlir::RankedTensorType>(b);
  if (first.getRank() != second.getRank()) {
    return a;
  }
  llvm::SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(first.getShape(), second.getShape())) {
    shape.push_back(x == y ? x : mlir::ShapedType::kDynamic);
  }
  return first.clone(shape);
}

/// The body with carried types that hold for every iteration: dims that an iteration changes are
/// opened, and the body imported again, until none changes. Each round opens at least one dim.
std::unique_ptr<mlir::Region> importBody(NodeImporter &n, const onnx::GraphProto &graph,
                                         llvm::SmallVector<mlir::Type> types) {
  while (true) {
    if (!n.graph.takeLoopImport()) {
      n.unsupported("its nested loops change too many dims; fix the dims with --input_shapes");
    }
    auto region = importRegion(n, graph, types);
    if (n.failed()) {
      return region;
    }
    mlir::OperandRange yielded = region->front().getTerminator()->getOperands();
    bool changed = false;
    for (size_t i = 2; i < types.size() && i - 1 < yielded.size(); ++i) {
      mlir::Type wide = widen(types[i], yielded[i - 1].getType());
      changed |= wide != types[i];
      types[i] = wide;
    }
    if (!changed) {
      return region;
    }
  }
}

void importLoop(NodeImporter &n) {
  const onnx::GraphProto *body = subgraph(n, "body");
  Value trips = n.optionalInput(0);
  Value cond = n.optionalInput(1);
  Values init;
  for (unsigned i = 2; i < n.numInputs(); ++i) {
    init.push_back(n.input(i));
  }
  if (n.failed()) {
    return;
  }
  if (body->input_size() != static_cast<int>(init.size()) + 2 || body->output_size() < static_cast<int>(init.size()) + 1) {
    n.fail(llvm::formatv("its body has {0} inputs and {1} outputs; {2} carried values need {3} inputs and at least {4} "
                         "outputs", body->input_size(), body->output_size(), init.size(), init.size() + 2, init.size() + 1));
    return;
  }
  llvm::SmallVector<mlir::Type> types{mlir::RankedTensorType::get({}, n.b.getI64Type()),
                                      mlir::RankedTensorType::get({}, n.b.getI1Type())};
  llvm::append_range(types, mlir::ValueRange(init).getTypes());
  auto region = importBody(n, *body, types);
  if (n.failed()) {
    return;
  }
  llvm::SmallVector<mlir::Type> results(body->output_size() - 1, NodeImporter::placeholder(n.b));
  auto op = LoopOp::create(n.b, n.loc, results, trips, cond, init);
  op.getBody().takeBody(*region);
  for (auto [i, value] : llvm::enumerate(n.finish(op))) {
    n.setOutput(i, value);
  }
}

constexpr HandlerEntry kHandlers[] = {
    {"", "If", importIf},
    {"", "Loop", importLoop},
};

} // namespace

llvm::ArrayRef<HandlerEntry> controlHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
