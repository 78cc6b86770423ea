//===- OnnxControl.cpp - Handlers of control flow ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/Import/Onnx/Control/CarriedSizes.h"
#include "top_dialect/Import/Onnx/Control/Subgraphs.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// Imports the body with carried types that are valid for every iteration: dims that an iteration changes are opened
/// and the body is imported again, until no dim changes. |check| may reject the body.
std::unique_ptr<mlir::Region> importBody(NodeImporter &n, const onnx::GraphProto &graph, CarriedSizes &sizes,
                                         llvm::function_ref<void(mlir::Region &)> check) {
  while (true) {
    if (!n.graph.takeLoopImport()) {
      n.unsupported("its nested loops change too many dims; fix the dims with --input_shapes");
    }
    llvm::SmallVector<mlir::Type> types{mlir::RankedTensorType::get({}, n.b.getI64Type()),
                                        mlir::RankedTensorType::get({}, n.b.getI1Type())};
    llvm::append_range(types, sizes.argumentTypes());
    auto region = importRegion(n, graph, types);
    if (!n.failed()) {
      check(*region);
    }
    if (n.failed() || !sizes.update(region->front().getTerminator()->getOperands().drop_front())) {
      return region;
    }
  }
}

/// Returns a symbol for the number of passes of a loop, the size |name|.
Dim declarePasses(NodeImporter &n, llvm::StringRef name, PassLimit &limit) {
  RunTimeSizes &sizes = n.graph.model.state->runTimeSizes;
  int64_t most = sizes.givenRange(name) ? 1 : limit.most();
  if (most == INT64_MAX) {
    n.unsupported(
        llvm::formatv("it stacks a value of each pass, and the number of passes has no bound: give its range, "
                      "--dims '{0}=0..MAX'{1}",
                      name, limit.advice()));
    return 1;
  }
  return sizes.declare(n.b.getContext(), name, {0, most, 1, most});
}

/// Gives the stacked results of |op| their sizes, with a symbol for an open number of passes.
void openStacks(NodeImporter &n, LoopOp op, PassLimit &limit) {
  size_t carried = op.getInit().size();
  auto own = symbolsSetIn(op.getBody());
  own.set_union(symbolsSetBy(op)); // a carried value may have another size in each pass
  bool isCounted = !op.getCond();
  for (auto [i, result] : llvm::enumerate(op.getResults().drop_front(carried))) {
    auto dims = NodeImporter::sizes(result);
    std::string name = n.graph.nameOf(n.node.output(static_cast<int>(carried + i)));
    llvm::SetVector<SizeSymbolAttr> used;
    collectSymbols(result, used);
    if (llvm::any_of(used, [&](SizeSymbolAttr symbol) { return own.contains(symbol); })) {
      n.unsupported(llvm::formatv("it stacks '{0}', whose size a pass computes", name));
      return;
    }
    if (!dims[0].isUnknown()) {
      continue;
    }
    if (dims[0] = isCounted ? limit.count() : Dim(mlir::ShapedType::kDynamic); dims[0].isUnknown()) {
      dims[0] = declarePasses(n, llvm::formatv("{0}.0", name).str(), limit);
      op->setAttr(kOpenPassesAttr, n.b.getUnitAttr());
    }
    result.setType(tensorType(dims, NodeImporter::elementType(result)));
  }
}

/// Gives the results of |op| their sizes: symbols for those that a pass changes, and for an open number of passes.
void openResults(NodeImporter &n, LoopOp op, CarriedSizes &sizes, PassLimit &limit) {
  for (auto [i, result] : llvm::enumerate(op.getResults().take_front(op.getInit().size()))) {
    result.setType(sizes.resultType(i));
  }
  openStacks(n, op, limit);
}

/// A value that a loop carries: a tensor, or a sequence of tensors.
struct Carried {
  Value tensor; ///< null for a sequence
  Values sequence;
};
using CarriedValues = llvm::SmallVector<Carried>;

CarriedValues asCarried(const Values &tensors) {
  return llvm::map_to_vector(tensors, [](Value tensor) { return Carried{tensor, {}}; });
}

/// Imports |body| and returns its outputs, or nothing on an error.
CarriedValues importBodyInto(NodeImporter &n, const onnx::GraphProto &body, llvm::ArrayRef<Carried> arguments) {
  GraphImporter importer(n.graph.model, body, n.b, &n.graph);
  for (auto [input, value] : llvm::zip(body.input(), arguments)) {
    if (value.tensor) {
      importer.bind(input.name(), value.tensor);
    } else {
      importer.bindSequence(input.name(), value.sequence);
    }
  }
  if (llvm::Error error = importer.importNodes()) {
    n.fail(std::move(error));
    return {};
  }
  CarriedValues outputs;
  for (const auto &declared : body.output()) {
    if (const Values *sequence = importer.lookupSequence(declared.name())) {
      outputs.push_back({Value(), *sequence});
      continue;
    }
    auto value = importer.output(declared.name());
    if (!value) {
      n.fail(value.takeError());
      return {};
    }
    outputs.push_back({*value, {}});
  }
  return outputs;
}

/// Imports one iteration of |body| inline. Its tensors exist once per iteration, so they get no names.
CarriedValues importIteration(NodeImporter &n, const onnx::GraphProto &body, llvm::ArrayRef<Carried> arguments) {
  mlir::Block *block = n.b.getInsertionBlock();
  mlir::Operation *before = block->empty() ? nullptr : &block->back();
  CarriedValues outputs = importBodyInto(n, body, arguments);
  for (mlir::Operation *op = before ? before->getNextNode() : (block->empty() ? nullptr : &block->front()); op;
       op = op->getNextNode()) {
    op->removeAttr(TopDialect::kOutputsAttr);
  }
  return outputs;
}

/// The values of one scanned output, one for each iteration.
using Slices = CarriedValues;

/// Stacks |slices| along a new first dim.
Value stack(NodeImporter &n, const Slices &slices) {
  Values parts;
  for (const Carried &slice : slices) {
    if (!slice.tensor) {
      n.unsupported("a scanned output is a sequence of tensors; only tensors are supported");
      return {};
    }
    Ints shape(NodeImporter::shape(slice.tensor));
    shape.insert(shape.begin(), 1);
    parts.push_back(n.reshape(slice.tensor, shape));
  }
  return parts.size() == 1 ? parts.front() : n.create<ConcatOp>(parts, 0);
}

void setOutputs(NodeImporter &n, llvm::ArrayRef<Carried> carried, llvm::ArrayRef<Slices> scanned) {
  for (auto [i, value] : llvm::enumerate(carried)) {
    if (value.tensor) {
      n.setOutput(i, value.tensor);
    } else if (n.wantsOutput(i)) {
      n.graph.bindSequence(n.node.output(static_cast<int>(i)), value.sequence);
    }
  }
  for (auto [i, slices] : llvm::enumerate(scanned)) {
    if (Value value = stack(n, slices)) {
      n.setOutput(carried.size() + i, value);
    }
  }
}

/// Limit on the number of nodes of an unrolled loop. Loops above it stay loops.
constexpr int64_t kMaxUnrolledNodes = 4096;

bool mayUnroll(int64_t trips, const onnx::GraphProto &body) {
  return trips > 0 && trips <= kMaxUnrolledNodes / std::max(body.node_size(), 1);
}

/// Returns the value of a flag, or nothing if it is computed at run time. A missing flag is true.
std::optional<bool> knownFlag(Value flag) {
  auto known = flag ? getConstantInts(flag) : std::optional(Ints{1});
  return known && known->size() == 1 ? std::optional(known->front() != 0) : std::nullopt;
}

/// Unrolls a loop whose number of iterations is known: from its trip count, or because each iteration's condition is.
/// Returns false, with nothing bound, if the number depends on data or is 0 or too large.
bool unrollLoop(NodeImporter &n, const onnx::GraphProto &body, Value trips, Value cond, CarriedValues carried) {
  auto count = trips ? getConstantInts(trips) : std::optional(Ints{INT64_MAX});
  if (!count || count->size() != 1 || count->front() < 1 || knownFlag(cond) != true || (!trips && !cond)) {
    return false;
  }
  if (trips && count->front() != INT64_MAX && !mayUnroll(count->front(), body)) {
    return false;
  }
  size_t states = carried.size();
  llvm::SmallVector<Slices> scanned(body.output_size() - 1 - states);
  Value always = createScalar(n.b, n.loc, n.b.getI1Type(), 1);
  std::optional<bool> goesOn = true;
  for (int64_t trip = 0; trip < count->front() && *goesOn; ++trip) {
    if (!mayUnroll(trip + 1, body) || !n.graph.takeLoopImport()) {
      return false;
    }
    CarriedValues arguments = asCarried({n.scalar(n.b.getI64Type(), static_cast<double>(trip)), always});
    llvm::append_range(arguments, carried);
    CarriedValues outputs = importIteration(n, body, arguments);
    if (n.failed()) {
      return false;
    }
    goesOn = outputs[0].tensor ? knownFlag(outputs[0].tensor) : std::nullopt;
    bool isEndless = !trips && outputs[0].tensor == always;
    if (!goesOn || isEndless) {
      return false;
    }
    carried.assign(outputs.begin() + 1, outputs.begin() + 1 + states);
    for (auto [slices, value] : llvm::zip(scanned, llvm::drop_begin(outputs, 1 + states))) {
      slices.push_back(value);
    }
  }
  setOutputs(n, carried, scanned);
  return true;
}

/// Returns true if the condition of a loop is true before each pass: then only the trip count ends the loop.
bool staysTrue(Value cond, mlir::Region &body) {
  Value next = body.front().getTerminator()->getOperand(0);
  return knownFlag(cond) == true && (next == body.getArgument(1) || knownFlag(next) == true);
}

/// Returns whether a loop without a trip count never ends: its condition is missing, or true and unchanged by |body|.
bool isEndless(Value cond, mlir::Region &body) {
  Value next = body.front().getTerminator()->getOperand(0);
  return knownFlag(cond) == true && (!cond || next == body.getArgument(1) || knownFlag(next) == true);
}

void importLoop(NodeImporter &n) {
  const onnx::GraphProto *body = subgraph(n, "body");
  Value trips = n.optionalInput(0);
  Value cond = n.optionalInput(1);
  CarriedValues init;
  for (unsigned i = 2; i < n.numInputs(); ++i) {
    const Values *sequence = n.graph.lookupSequence(n.inputName(i));
    init.push_back(sequence ? Carried{Value(), *sequence} : Carried{n.input(i), {}});
  }
  if (n.failed()) {
    return;
  }
  if (body->input_size() != static_cast<int>(init.size()) + 2 ||
      body->output_size() < static_cast<int>(init.size()) + 1) {
    n.fail(llvm::formatv("its body has {0} inputs and {1} outputs; {2} carried values need {3} inputs and at least {4} "
                         "outputs",
                         body->input_size(), body->output_size(), init.size(), init.size() + 2, init.size() + 1));
    return;
  }
  if (unrollLoop(n, *body, trips, cond, init) || n.failed()) {
    return;
  }
  Values tensors;
  for (auto [i, value] : llvm::enumerate(init)) {
    if (!value.tensor) {
      n.unsupported(llvm::formatv("it carries the sequence of tensors '{0}', so it must be unrolled; allowed: a number "
                                  "of iterations that is known and at most {1} nodes in all",
                                  n.inputName(i + 2), kMaxUnrolledNodes));
      return;
    }
    tensors.push_back(value.tensor);
  }
  PassLimit limit(n, trips);
  CarriedSizes sizes(n, tensors, *body, limit);
  auto region = importBody(n, *body, sizes, [&](mlir::Region &imported) {
    if (!trips && isEndless(cond, imported)) {
      n.fail("it has neither a trip count nor a condition that could end it: it never ends");
    }
  });
  if (n.failed()) {
    return;
  }
  if (body->output_size() > static_cast<int>(1 + init.size()) && limit.count().isUnknown()) {
    (void)limit.most(); // stacked values may need a limit, which is checked before the loop
  }
  llvm::SmallVector<mlir::Type> results(body->output_size() - 1, NodeImporter::placeholder(n.b));
  bool isCounted = trips && staysTrue(cond, *region);
  Value first = isCounted || cond ? cond : createScalar(n.b, n.loc, n.b.getI1Type(), 1);
  auto op = LoopOp::create(n.b, n.loc, results, trips, isCounted ? Value() : first, tensors);
  op.getBody().takeBody(*region);
  Values outputs = n.finish(op);
  if (!n.failed()) {
    openResults(n, op, sizes, limit);
  }
  for (auto [i, value] : llvm::enumerate(outputs)) {
    n.setOutput(i, value);
  }
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

/// Returns the slice |at| of |x| along |axis|, without that dim.
Value sliceOf(NodeImporter &n, Value x, int64_t axis, int64_t at) {
  return n.create<GatherOp>(x, n.scalar(n.b.getI64Type(), static_cast<double>(at)), axis);
}

/// The scanned inputs of a scan and how it walks over them.
struct Scanned {
  mlir::ValueRange inputs;
  llvm::ArrayRef<int64_t> axes, reversed;
};

/// Returns the length of the scanned inputs, which a run compares where it is not known to be equal.
Value scannedLength(NodeImporter &n, const Scanned &scanned) {
  auto lengthOf = [&](size_t i) { return n.create<ShapeOp>(scanned.inputs[i], scanned.axes[i], scanned.axes[i] + 1); };
  Value length = lengthOf(0);
  for (size_t i = 1; i < scanned.inputs.size(); ++i) {
    require(n, Arithmetic{n}.sub(lengthOf(i), length), 0, "difference of scanned lengths");
  }
  return n.reshape(length, {});
}

/// Imports the scan as a loop that reads a slice of each scanned input in each pass.
void importScanAsLoop(NodeImporter &n, const onnx::GraphProto &graph, mlir::ValueRange states, const Scanned &scanned) {
  Value trips = scannedLength(n, scanned), last = n.create<SubOp>(trips, n.scalar(n.b.getI64Type(), 1));
  auto flag = mlir::RankedTensorType::get({}, n.b.getI1Type());
  llvm::SmallVector<mlir::Type> types{flag.clone(n.b.getI64Type()), flag};
  llvm::append_range(types, states.getTypes());
  auto region = importRegion(n, types, [&](mlir::OpBuilder &builder, const Values &arguments) {
    Values read(llvm::drop_begin(arguments, 2));
    {
      mlir::OpBuilder::InsertionGuard guard(n.b);
      n.b.setInsertionPointToEnd(builder.getInsertionBlock());
      for (auto [input, axis, isReversed] : llvm::zip_equal(scanned.inputs, scanned.axes, scanned.reversed)) {
        Value at = isReversed ? n.create<SubOp>(last, arguments[0]) : arguments[0];
        read.push_back(n.create<GatherOp>(input, at, axis));
      }
    }
    Values outputs = importInto(n, graph, builder, read);
    outputs.insert(outputs.begin(), arguments[1]);
    return outputs;
  });
  if (n.failed()) {
    return;
  }
  PassLimit limit(n, trips);
  llvm::SmallVector<mlir::Type> results(graph.output_size(), NodeImporter::placeholder(n.b));
  auto op = LoopOp::create(n.b, n.loc, results, trips, Value(), states);
  op.getBody().takeBody(*region);
  Values outputs = n.finish(op);
  if (!n.failed()) {
    openStacks(n, op, limit);
  }
  for (auto [i, value] : llvm::enumerate(outputs)) {
    n.setOutput(i, value);
  }
}

/// Unrolls the scan unless it is too long, or its length, that of the scanned inputs, is open.
void importScan(NodeImporter &n) {
  const onnx::GraphProto *body = subgraph(n, "body");
  int64_t scans = n.requiredInt("num_scan_inputs"), states = static_cast<int64_t>(n.numInputs()) - scans;
  Values inputs(n.inputs());
  if (n.failed()) {
    return;
  }
  if (scans < 1 || states < 0 || body->input_size() != static_cast<int>(inputs.size()) ||
      body->output_size() < states) {
    n.fail(llvm::formatv("its body has {0} inputs and {1} outputs for {2} states and {3} scanned inputs",
                         body->input_size(), body->output_size(), states, scans));
    return;
  }
  Ints axes = n.intsAttr("scan_input_axes", Ints(scans, 0)),
       reversed = n.intsAttr("scan_input_directions", Ints(scans, 0));
  if (llvm::any_of(n.intsAttr("scan_output_axes"), [](int64_t axis) { return axis != 0; }) ||
      llvm::any_of(n.intsAttr("scan_output_directions"), [](int64_t direction) { return direction != 0; })) {
    n.unsupported("scan_output_axes and scan_output_directions other than 0 are not supported");
    return;
  }
  if (static_cast<int64_t>(axes.size()) != scans || static_cast<int64_t>(reversed.size()) != scans) {
    n.fail(llvm::formatv("scan_input_axes and scan_input_directions need {0} entries", scans));
    return;
  }
  for (int64_t i = 0; i < scans; ++i) {
    axes[i] = n.normalizeAxis(axes[i], NodeImporter::rank(inputs[states + i]));
  }
  if (n.failed()) {
    return;
  }
  Dim length = NodeImporter::sizes(inputs[states])[axes[0]];
  if (length.isUnknown()) {
    n.unsupported("the number of its iterations is known only at run time; give the size of the scanned inputs a range "
                  "with --dims, or fix it with --input_shapes");
    return;
  }
  if (!length.isKnown() || !mayUnroll(length.value(), *body)) {
    mlir::ValueRange all(inputs);
    return importScanAsLoop(n, *body, all.take_front(states), {all.drop_front(states), axes, reversed});
  }
  int64_t trips = length.value();
  CarriedValues carried = asCarried(Values(inputs.begin(), inputs.begin() + states));
  llvm::SmallVector<Slices> scanned(body->output_size() - states);
  for (int64_t trip = 0; trip < trips; ++trip) {
    CarriedValues arguments(carried);
    for (int64_t i = 0; i < scans; ++i) {
      arguments.push_back({sliceOf(n, inputs[states + i], axes[i], reversed[i] ? trips - 1 - trip : trip), {}});
    }
    CarriedValues outputs = n.graph.takeLoopImport() ? importIteration(n, *body, arguments) : CarriedValues();
    if (n.failed() || outputs.empty()) {
      n.fail("its nested loops are too long to unroll");
      return;
    }
    carried.assign(outputs.begin(), outputs.begin() + states);
    for (auto [slices, value] : llvm::zip(scanned, llvm::drop_begin(outputs, states))) {
      slices.push_back(value);
    }
  }
  setOutputs(n, carried, scanned);
}

constexpr HandlerEntry kHandlers[] = {
    {"", "If", importIf},
    {"", "Loop", importLoop},
    {"", "Scan", importScan, 9},
};

} // namespace

llvm::ArrayRef<HandlerEntry> controlHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
