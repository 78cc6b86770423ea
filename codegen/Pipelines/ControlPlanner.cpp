//===- ControlPlanner.cpp - Control flow of a stage -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/ControlPlanner.h"

#include "codegen/Pipelines/PartPlanner.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::codegen {

ControlPlanner::ControlPlanner(StageBuilder &builder, ArrayRef<PlannedPart> parts) : builder(builder) {
  for (const PlannedPart &part : parts) {
    this->parts[part.name] = &part;
  }
}

llvm::Error ControlPlanner::plan(func::FuncOp function) {
  Block &body = function.getBody().front();
  for (auto [argument, slot] : llvm::zip_equal(body.getArguments(), builder.getArguments())) {
    slots[argument] = slot;
  }
  bmodel::SubnetDefT &main = builder.addControlSubnet("main");
  Results results;
  for (auto [value, slot] : llvm::zip_equal(body.getTerminator()->getOperands(), builder.getResults())) {
    results.add(value, value, slot);
  }
  if (llvm::Error error = planBlock(body, results, {}, main)) {
    return error;
  }
  auto placed = llvm::map_to_vector(variables, [](const auto &each) { return each.first; });
  auto buffers = llvm::map_to_vector(variables, [](const auto &each) { return each.second; });
  if (!placed.empty()) {
    builder.place(builder.addWorkspace(kHostMemory), placed, buffers);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void ControlPlanner::touch(uint32_t slot) {
  auto variable = variables.find(slot);
  if (variable == variables.end()) {
    return;
  }
  variable->second.last = now;
  for (OpenLoop &loop : loops) {
    if (variable->second.first < loop.begin) {
      loop.used.insert(slot);
    }
  }
}

void ControlPlanner::closeLoop() {
  ++now;
  OpenLoop closed = loops.pop_back_val();
  llvm::for_each(closed.used, [&](uint32_t slot) { touch(slot); });
}

llvm::Expected<uint32_t> ControlPlanner::addVariable(Value like) {
  auto slot = builder.addTensor(like, top::getTensorName(like), bmodel::TensorRole::Workspace);
  if (slot) {
    variables[*slot] = {device::physicalBytes(like), now, now};
  }
  return slot;
}

llvm::Expected<uint32_t> ControlPlanner::slotOf(Value value) {
  auto known = slots.find(value);
  if (known == slots.end()) {
    auto constant = builder.addConstant(value);
    if (constant) {
      slots[value] = *constant;
    }
    return constant;
  }
  touch(known->second);
  return known->second;
}

llvm::Expected<uint32_t> ControlPlanner::storeOf(Value value) {
  auto known = destinations.find(value);
  auto slot = known == destinations.end() ? addVariable(value) : llvm::Expected<uint32_t>(known->second);
  if (slot) {
    slots[value] = *slot;
    touch(*slot);
  }
  return slot;
}

template <typename Find>
static llvm::Expected<SmallVector<uint32_t>> findSlots(ValueRange values, Find find) {
  SmallVector<uint32_t> found;
  for (Value value : values) {
    llvm::Expected<uint32_t> slot = find(value);
    if (!slot) {
      return slot.takeError();
    }
    found.push_back(*slot);
  }
  return found;
}

llvm::Expected<ControlPlanner::Slots> ControlPlanner::slotsOf(ValueRange values) {
  return findSlots(values, [&](Value value) { return slotOf(value); });
}

llvm::Expected<ControlPlanner::Slots> ControlPlanner::storesOf(ValueRange values) {
  return findSlots(values, [&](Value value) { return storeOf(value); });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Returns true if |argument| is read by |op|, inside its regions, or by a later op of its block.
static bool isReadFrom(BlockArgument argument, Operation *op) {
  Block *block = argument.getOwner();
  return llvm::any_of(argument.getUsers(),
                      [&](Operation *user) { return !block->findAncestorOpInBlock(*user)->isBeforeInBlock(op); });
}

/// Decides which ops of the block write directly to the slot in which their result is returned. That is safe unless the
/// slot holds an argument of the block that is still read, or has sizes that are set at the end of the block. If all
/// tensors are kept, every result is copied instead, so that each has a tensor of its name.
void ControlPlanner::chooseDestinations(Block &block, const Results &results) {
  if (builder.keepsEveryTensor()) {
    return;
  }
  for (auto [value, like, slot] : llvm::zip_equal(results.values, results.like, results.to)) {
    Operation *op = value.getDefiningOp();
    bool isWritten = op && op->getBlock() == &block && !top::isConstant(value) && value.getType() == like.getType();
    bool isHeld = isWritten && llvm::any_of(block.getArguments(), [&, slot = slot](BlockArgument argument) {
                    auto known = slots.find(argument);
                    return known != slots.end() && known->second == slot && isReadFrom(argument, op);
                  });
    if (isWritten && !isHeld) {
      destinations.try_emplace(value, slot);
    }
  }
}

/// Copies the results that are not in their slots yet. Values that lie in a target of another copy are saved first.
llvm::Error ControlPlanner::copyResults(const Results &results, bmodel::SubnetDefT &subnet) {
  ++now;
  SmallVector<std::pair<uint32_t, uint32_t>> copies;
  for (auto [value, slot] : llvm::zip_equal(results.values, results.to)) {
    llvm::Expected<uint32_t> from = slotOf(value);
    if (!from) {
      return from.takeError();
    }
    bool isTarget = llvm::is_contained(results.to, *from);
    if (*from != slot && isTarget) {
      llvm::Expected<uint32_t> saved = addVariable(value);
      if (!saved) {
        return saved.takeError();
      }
      subnet.plan.push_back(copyStep(*from, *saved));
      from = *saved;
    }
    if (*from != slot) {
      copies.emplace_back(*from, slot);
    }
  }
  ++now;
  for (auto [from, slot] : copies) {
    touch(from), touch(slot);
    subnet.plan.push_back(copyStep(from, slot));
  }
  return llvm::Error::success();
}

llvm::Error ControlPlanner::planOp(Operation *op, bmodel::SubnetDefT &subnet) {
  if (auto call = dyn_cast<func::CallOp>(op)) {
    return planCall(call, subnet);
  }
  if (auto branch = dyn_cast<top::IfOp>(op)) {
    return planIf(branch, subnet);
  }
  if (auto loop = dyn_cast<top::LoopOp>(op)) {
    return planLoop(loop, subnet);
  }
  if (auto bind = dyn_cast<top::BindOp>(op)) {
    return planBind(bind, subnet);
  }
  if (top::isSizeCast(op)) {
    return planSizeCast(op, subnet);
  }
  return llvm::Error::success(); // a constant
}

void ControlPlanner::addUpdates(ArrayRef<top::SizeUpdate> updates, bmodel::SubnetDefT &subnet) {
  llvm::move(builder.updateSteps(updates), std::back_inserter(subnet.plan));
}

llvm::Error ControlPlanner::planBlock(Block &block, const Results &results, ArrayRef<top::SizeUpdate> updates,
                                      bmodel::SubnetDefT &subnet) {
  chooseDestinations(block, results);
  for (Operation &op : block.without_terminator()) {
    if (llvm::Error error = planOp(&op, subnet)) {
      return error;
    }
  }
  addUpdates(updates, subnet);
  return copyResults(results, subnet);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void ControlPlanner::addStep(bmodel::SubnetDefT &subnet, bmodel::StepOpUnion op, Operation *from,
                             ArrayRef<uint32_t> to) {
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op = std::move(op);
  step->writes = to.vec();
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  for (StringRef node : top::getNodeNames(from->getLoc())) {
    step->debug->onnx_nodes.push_back(node.str());
  }
  step->debug->top_op = from->getName().getStringRef().str();
  subnet.plan.push_back(std::move(step));
}

llvm::Error ControlPlanner::planCall(func::CallOp call, bmodel::SubnetDefT &subnet) {
  ++now;
  llvm::Expected<Slots> inputs = slotsOf(call.getOperands());
  if (!inputs) {
    return inputs.takeError();
  }
  llvm::Expected<Slots> outputs = storesOf(call.getResults());
  if (!outputs) {
    return outputs.takeError();
  }
  return PartPlanner(builder, *parts.at(call.getCallee()), &subnet).plan(*inputs, *outputs);
}

static std::string displayName(Operation *op) {
  std::string name = top::getDisplayName(op->getLoc());
  return name.empty() ? op->getName().stripDialect().str() : name;
}

/// Adds steps that fail unless both sides of a cast have equal sizes, and a copy.
llvm::Error ControlPlanner::planSizeCast(Operation *op, bmodel::SubnetDefT &subnet) {
  ++now;
  llvm::Expected<uint32_t> from = slotOf(op->getOperand(0));
  llvm::Expected<uint32_t> to = from ? storeOf(op->getResult(0)) : llvm::Expected<uint32_t>(from.takeError());
  if (!to) {
    return to.takeError();
  }
  llvm::move(builder.checkSteps(op->getOperand(0), op->getResult(0)), std::back_inserter(subnet.plan));
  subnet.plan.push_back(copyStep(*from, *to));
  return llvm::Error::success();
}

llvm::Error ControlPlanner::planBind(top::BindOp op, bmodel::SubnetDefT &subnet) {
  ++now;
  llvm::Expected<uint32_t> from = slotOf(op.getValues());
  if (from) {
    subnet.plan.push_back(builder.readStep(op, *from));
  }
  return from.takeError();
}

/// Plans a branch. Sizes of its results that are known when it begins, and within their ranges, are set first, so that
/// ops can write the results to their slots.
llvm::Expected<uint32_t> ControlPlanner::planBranch(Region &region, const Twine &name, ValueRange results,
                                                    ArrayRef<uint32_t> to) {
  bmodel::SubnetDefT &subnet = builder.addControlSubnet(name.str());
  uint32_t number = builder.lastSubnet();
  ValueRange yielded = region.front().getTerminator()->getOperands();
  auto inner = top::symbolsSetIn(region);
  auto updates = top::findUpdates(results.getTypes(), yielded.getTypes());
  top::SizeUpdates early, late;
  for (const top::SizeUpdate &update : *updates) {
    llvm::SetVector<top::SizeSymbolAttr> used;
    collectSymbols(update.size, used);
    bool isLate = maxOf(update.size) > update.symbol.getMax() ||
                  llvm::any_of(used, [&](top::SizeSymbolAttr symbol) { return inner.contains(symbol); });
    (isLate ? late : early).push_back(update);
  }
  addUpdates(early, subnet);
  Results returned;
  for (auto [value, result, slot] : llvm::zip_equal(yielded, results, to)) {
    auto own = top::findUpdates(result.getType(), value.getType());
    bool isSetBefore = llvm::none_of(*own, [&](const top::SizeUpdate &update) {
      return llvm::any_of(late, [&](const top::SizeUpdate &other) { return other.symbol == update.symbol; });
    });
    // A chip's stream has buffers of constant size: its result is copied to a tensor of open size.
    returned.add(value, isSetBefore && !Shape(value).isKnown() ? value : result, slot);
  }
  if (llvm::Error error = planBlock(region.front(), returned, late, subnet)) {
    return std::move(error);
  }
  return number;
}

llvm::Error ControlPlanner::planIf(top::IfOp op, bmodel::SubnetDefT &subnet) {
  ++now;
  llvm::Expected<uint32_t> condition = slotOf(op.getCond());
  if (!condition) {
    return condition.takeError();
  }
  llvm::Expected<Slots> to = storesOf(op.getResults());
  if (!to) {
    return to.takeError();
  }
  bmodel::BranchDefT branch;
  branch.condition = *condition;
  for (auto [region, name, number] : {std::tuple(&op.getThenRegion(), ".then", &branch.then_subnet),
                                      std::tuple(&op.getElseRegion(), ".else", &branch.else_subnet)}) {
    llvm::Expected<uint32_t> planned = planBranch(*region, displayName(op) + name, op.getResults(), *to);
    if (!planned) {
      return planned.takeError();
    }
    *number = int32_t(*planned);
  }
  llvm::for_each(*to, [&](uint32_t slot) { touch(slot); });
  bmodel::StepOpUnion step;
  step.Set(branch);
  addStep(subnet, std::move(step), op, *to);
  return llvm::Error::success();
}

static bool isAlwaysTrue(Value flag) {
  auto known = flag ? top::getConstantInts(flag) : std::nullopt;
  return known && known->size() == 1 && known->front() != 0;
}

/// Adds the variables of a loop and the steps that give them their first values.
llvm::Expected<bmodel::LoopDefT> ControlPlanner::openLoop(top::LoopOp op, bmodel::SubnetDefT &subnet) {
  Block &body = op.getBody().front();
  BlockArgument iteration = body.getArgument(0), going = body.getArgument(1);
  Value next = body.getTerminator()->getOperand(0);
  OpBuilder constants(op);
  Value first = op.getCond();
  if (!first) {
    first = top::createScalar(constants, op.getLoc(), constants.getI1Type(), 1);
  }
  bmodel::LoopDefT loop;
  bool isConditional = !isAlwaysTrue(first) || !(isAlwaysTrue(next) || next == going) || !op.getTripCount();
  auto carry = [&](Value from, Value argument) -> llvm::Expected<uint32_t> {
    llvm::Expected<uint32_t> source = slotOf(from);
    llvm::Expected<uint32_t> variable = source ? addVariable(argument) : llvm::Expected<uint32_t>(source.takeError());
    if (variable) {
      subnet.plan.push_back(copyStep(*source, *variable));
      slots[argument] = *variable;
    }
    return variable;
  };
  if (isConditional || !going.use_empty()) {
    llvm::Expected<uint32_t> condition = carry(first, going);
    if (!condition) {
      return condition.takeError();
    }
    loop.condition = isConditional ? int32_t(*condition) : -1;
  }
  if (op.getTripCount()) {
    llvm::Expected<uint32_t> trips = slotOf(op.getTripCount());
    if (!trips) {
      return trips.takeError();
    }
    loop.trip_count = int32_t(*trips);
  }
  if (!iteration.use_empty()) {
    llvm::Expected<uint32_t> variable = addVariable(iteration);
    if (!variable) {
      return variable.takeError();
    }
    loop.iteration = int32_t(slots[iteration] = *variable);
  }
  return loop;
}

/// Adds the steps that store the first values of carried values.
llvm::Error ControlPlanner::enterLoop(top::LoopOp op, const Carried &carried, bmodel::SubnetDefT &subnet) {
  llvm::Expected<Slots> inits = slotsOf(carried.init);
  if (!inits) {
    return inits.takeError();
  }
  addUpdates(*top::findUpdates(carried.results.getTypes(), carried.init.getTypes()), subnet);
  for (auto [from, to] : llvm::zip_equal(*inits, carried.slots)) {
    subnet.plan.push_back(copyStep(from, to));
    if (!builder.keepsEveryTensor()) {
      subnet.plan.back()->writes.clear(); // a first value, which tools must not take for the result
    }
  }
  return llvm::Error::success();
}

/// Gives each argument of a loop's body its slot: that of the result, unless a pass changes the value's size. Then it
/// is a copy of the result of the previous pass.
llvm::Error ControlPlanner::beginPass(const Carried &carried, bmodel::SubnetDefT &body) {
  addUpdates(*top::findUpdates(carried.arguments.getTypes(), carried.results.getTypes()), body);
  for (auto [argument, result, slot] : llvm::zip_equal(carried.arguments, carried.results, carried.slots)) {
    slots[argument] = slot;
    if (argument.getType() != result.getType()) {
      llvm::Expected<uint32_t> copy = addVariable(argument);
      if (!copy) {
        return copy.takeError();
      }
      touch(slot);
      body.plan.push_back(copyStep(slot, slots[argument] = *copy));
    }
  }
  return llvm::Error::success();
}

llvm::Error ControlPlanner::planLoop(top::LoopOp op, bmodel::SubnetDefT &subnet) {
  ++now;
  Block &body = op.getBody().front();
  llvm::Expected<bmodel::LoopDefT> loop = openLoop(op, subnet);
  if (!loop) {
    return loop.takeError();
  }
  llvm::Expected<Slots> stores = storesOf(op.getResults());
  if (!stores) {
    return stores.takeError();
  }
  Carried carried{op.getInit(), body.getArguments().drop_front(2), op.getResults(), *stores};
  if (llvm::Error error = enterLoop(op, carried, subnet)) {
    return error;
  }
  loops.push_back({++now, {}}); // the loop's own variables begin before it, too
  bmodel::SubnetDefT &pass = builder.addControlSubnet(displayName(op) + ".body");
  loop->body = builder.lastSubnet();
  if (llvm::Error error = beginPass(carried, pass)) {
    return error;
  }
  ValueRange yielded = body.getTerminator()->getOperands();
  Results results;
  if (loop->condition >= 0) {
    results.add(yielded[0], body.getArgument(1), uint32_t(loop->condition));
  }
  for (auto [value, result, slot] : llvm::zip_equal(yielded.drop_front(), carried.results, carried.slots)) {
    results.add(value, result, slot);
  }
  auto updates = top::findUpdates(carried.results.getTypes(), yielded.drop_front().getTypes());
  if (llvm::Error error = planBlock(body, results, *updates, pass)) {
    return error;
  }
  closeLoop();
  for (int32_t slot : {loop->condition, loop->iteration, loop->trip_count}) {
    if (slot >= 0) {
      touch(uint32_t(slot));
    }
  }
  llvm::for_each(carried.slots, [&](uint32_t slot) { touch(slot); });
  bmodel::StepOpUnion step;
  step.Set(*loop);
  addStep(subnet, std::move(step), op, carried.slots);
  return llvm::Error::success();
}

} // namespace tessera::codegen
