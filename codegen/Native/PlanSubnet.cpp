//===- PlanSubnet.cpp - Turns a placed function into the steps of a subnet --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/PlanSubnet.h"

#include "bmodel/kernel_abi.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/DeviceCustomOps.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopShapeOps.h"

using namespace mlir;

namespace tessera::native {

using namespace kernels;

namespace {

class SubnetPlanner {
public:
  SubnetPlanner(func::FuncOp function, const KernelSet &kernels, codegen::ConstantSection &constants,
                std::function<double(Operation *)> secondsOf, codegen::SubnetProgram &planned)
      : function(function), kernels(kernels), constants(constants), secondsOf(std::move(secondsOf)), planned(planned),
        ports(function.getNumArguments() + function.getNumResults()) {}

  LogicalResult plan() {
    bindPorts();
    return success(succeeded(addSteps()) && succeeded(addCopies()));
  }

private:
  void bindPorts();
  LogicalResult addSteps();
  LogicalResult addStep(Operation *op);
  LogicalResult addCustomStep(device::CustomOp op);
  LogicalResult collectArguments(Operation *op);
  void describeStep(Operation *op, bmodel::StepDefT &step);
  LogicalResult addView(Operation *op);
  LogicalResult addRead(top::BindOp op);
  LogicalResult addCopies();

  /// Returns the tensor slot of |value|; adds one on first use.
  FailureOr<uint32_t> slotOf(Value value);
  LogicalResult placeValue(Value value, bmodel::TensorDefT &tensor);
  uint64_t bytesOf(uint32_t slot);

  func::FuncOp function;
  const KernelSet &kernels;
  codegen::ConstantSection &constants;
  std::function<double(Operation *)> secondsOf;
  codegen::SubnetProgram &planned;
  const uint32_t ports; ///< number of slots of arguments and results, which precede those of |planned|
  DenseMap<Value, uint32_t> slots;
  DenseMap<int64_t, uint32_t> callerSlots; ///< memory number of a port -> slot of the port
  DenseMap<Value, size_t> writers;         ///< index of the step that completes a value
  std::vector<uint32_t> arguments, writes; ///< slots of the step that is being added
  uint64_t bytes = 0;                      ///< of these slots
};

void SubnetPlanner::bindPorts() {
  for (BlockArgument argument : function.getArguments()) {
    slots[argument] = argument.getArgNumber();
    callerSlots[device::getAddress(argument)->memory] = argument.getArgNumber();
  }
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    uint32_t slot = function.getNumArguments() + result.getOperandNumber();
    int64_t memory = int64_t(result.getOperandNumber()) + 1;
    callerSlots[memory] = slot;
    std::optional<device::Address> address = device::getAddress(result.get());
    if (address && address->memory == memory && address->offset == 0) {
      slots[result.get()] = slot;
    }
  }
}

uint64_t SubnetPlanner::bytesOf(uint32_t slot) {
  if (slot >= ports) {
    return planned.tensors[slot - ports].bytes;
  }
  bool isArgument = slot < function.getNumArguments();
  Type type =
      isArgument ? function.getArgumentTypes()[slot] : function.getResultTypes()[slot - function.getNumArguments()];
  return uint64_t(device::physicalBytes(cast<RankedTensorType>(type)));
}

LogicalResult SubnetPlanner::placeValue(Value value, bmodel::TensorDefT &tensor) {
  std::optional<device::Address> address = device::getAddress(value);
  auto caller = address ? callerSlots.find(address->memory) : callerSlots.end();
  if (!address || (address->memory != 0 && caller == callerSlots.end())) {
    return emitError(value.getLoc()) << "internal error: a value of type " << value.getType() << " has no address";
  }
  tensor.place = bmodel::Place::Workspace;
  tensor.offset = uint64_t(address->offset);
  if (address->memory != 0) {
    tensor.view_of = int32_t(caller->second);
  }
  return success();
}

FailureOr<uint32_t> SubnetPlanner::slotOf(Value value) {
  if (auto it = slots.find(value); it != slots.end()) {
    return it->second;
  }
  Value constant = device::getConstantRoot(value);
  std::string name = top::getTensorName(value).str();
  if (auto weight = value.getDefiningOp<top::WeightOp>()) {
    name = weight.getKey().str();
  }
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<bmodel::TensorDefT> tensor =
      codegen::describeTensor(type, name, [&](Dim size) { return planned.sizes.toFile(size); });
  if (!tensor) {
    return emitError(value.getLoc()) << "tensor '" << name << "' of type " << type
                                     << " cannot be stored: its element type or a dim is not supported";
  }
  tensor->role = constant ? bmodel::TensorRole::Constant : bmodel::TensorRole::Workspace;
  if (StringRef onnx = top::getTensorName(value); !onnx.empty()) {
    tensor->onnx_names.push_back(onnx.str());
  }
  if (!constant) {
    if (failed(placeValue(value, *tensor))) {
      return failure();
    }
  } else if (std::optional<top::TensorData> data = top::getConstantData(constant)) {
    constants.place(*data, *tensor);
  } else {
    return constant.getDefiningOp()->emitError("internal error: the weight store lacks this constant");
  }
  uint32_t slot = ports + uint32_t(planned.tensors.size());
  planned.tensors.push_back(std::move(*tensor));
  slots[value] = slot;
  return slot;
}

/// Returns a text for profiles, e.g. "device.conv 1x64x56x56 f32".
std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  llvm::raw_string_ostream os(text);
  os << ' ';
  llvm::interleave(Shape(type).dims(), os, [&](Dim size) { os << toText(size); }, "x");
  os << ' ' << type.getElementType();
  return text;
}

/// Sets |arguments|, |writes| and |bytes| to those of the op's step, which is the next one.
LogicalResult SubnetPlanner::collectArguments(Operation *op) {
  arguments.clear(), writes.clear(), bytes = 0;
  for (Value operand : op->getOperands()) {
    FailureOr<uint32_t> slot = slotOf(operand);
    if (failed(slot)) {
      return failure();
    }
    arguments.push_back(*slot);
    bytes += bytesOf(*slot);
  }
  for (Value result : op->getResults()) {
    FailureOr<uint32_t> slot = slotOf(result);
    if (failed(slot)) {
      return failure();
    }
    writers[result] = planned.subnet.plan.size();
    arguments.push_back(*slot);
    writes.push_back(*slot);
    bytes += bytesOf(*slot);
  }
  return success();
}

/// Adds names and estimates to the step of |op|.
void SubnetPlanner::describeStep(Operation *op, bmodel::StepDefT &step) {
  step.debug = std::make_unique<bmodel::StepDebugDefT>();
  for (StringRef name : top::getNodeNames(op->getLoc())) {
    step.debug->onnx_nodes.push_back(name.str());
  }
  step.debug->device_op = describe(op);
  step.debug->flops = uint64_t(cast<device::WorkInterface>(op).countFlops());
  step.debug->bytes = bytes;
  step.debug->estimated_ns = secondsOf ? secondsOf(op) * 1e9 : 0;
  ++planned.ops;
}

LogicalResult SubnetPlanner::addCustomStep(device::CustomOp op) {
  if (failed(collectArguments(op))) {
    return failure();
  }
  bmodel::CustomOpDefT call;
  call.domain = op.getOpDomain().str(), call.name = op.getOpName().str();
  call.version = int64_t(op.getOpVersion()), call.attributes = op.getOpAttributes().str();
  call.inputs = op.getInputs().size();
  describeStep(op, bmodel::addCustomCall(planned.subnet, std::move(call), arguments, writes));
  return success();
}

LogicalResult SubnetPlanner::addStep(Operation *op) {
  if (failed(collectArguments(op))) {
    return failure();
  }
  const KernelFrame &frame = kernels.frameOf(op);
  uint32_t kernel = bmodel::addKernel(planned.subnet, frame.symbol, uint32_t(arguments.size()));
  std::vector<uint32_t> dims;
  for (top::SizeSymbolAttr symbol : symbolsOf(op)) {
    dims.push_back(planned.sizes.slotOf(sizeOf(symbol)));
  }
  bmodel::StepDefT &step =
      bmodel::addLaunch(planned.subnet, kernel, arguments, dims, planned.sizes.toFile(frame.tilesOf(op)), writes);
  step.op.AsLaunchDef()->scratch_bytes = uint64_t(frame.scratchBytes);
  describeStep(op, step);
  return success();
}

/// Adds a view that has a name; the step that writes the last of its bytes also writes the view.
LogicalResult SubnetPlanner::addView(Operation *op) {
  Value result = op->getResult(0);
  std::optional<size_t> writer;
  for (Value operand : op->getOperands()) {
    if (auto known = writers.find(operand); known != writers.end()) {
      writer = std::max(writer.value_or(0), known->second);
    }
  }
  if (!writer) {
    return success(); // a view of an input or a constant
  }
  writers[result] = *writer;
  if (top::getTensorName(result).empty()) {
    return success();
  }
  FailureOr<uint32_t> slot = slotOf(result);
  if (failed(slot)) {
    return failure();
  }
  std::vector<uint32_t> &writes = planned.subnet.plan[*writer]->writes;
  if (!llvm::is_contained(writes, *slot)) {
    writes.push_back(*slot);
  }
  return success();
}

/// Adds the step that reads the size which |op| binds.
LogicalResult SubnetPlanner::addRead(top::BindOp op) {
  FailureOr<uint32_t> from = slotOf(op.getValues());
  if (failed(from)) {
    return failure();
  }
  bmodel::ReadDimDefT read;
  read.slot = planned.sizes.slotOf(sizeOf(op.getSymbol())), read.from = *from, read.index = op.getIndex();
  planned.subnet.plan.push_back(std::make_unique<bmodel::StepDefT>());
  planned.subnet.plan.back()->op.Set(read);
  return success();
}

LogicalResult SubnetPlanner::addSteps() {
  for (Operation &op : function.getBody().front()) {
    auto bind = dyn_cast<top::BindOp>(op);
    bool isView = op.getNumResults() && device::isElided(&op);
    auto custom = dyn_cast<device::CustomOp>(op);
    if (failed(bind               ? addRead(bind)
               : needsKernel(&op) ? addStep(&op)
               : custom           ? addCustomStep(custom)
               : isView           ? addView(&op)
                                  : success())) {
      return failure();
    }
  }
  codegen::setWorkspaceSizes(function, planned);
  return success();
}

/// Adds copies to results whose bytes are elsewhere: views of arguments and of other results.
LogicalResult SubnetPlanner::addCopies() {
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    FailureOr<uint32_t> from = slotOf(result.get());
    if (failed(from)) {
      return failure();
    }
    if (uint32_t to = function.getNumArguments() + result.getOperandNumber(); *from != to) {
      planned.subnet.plan.push_back(codegen::copyStep(*from, to));
    }
  }
  return success();
}

} // namespace

LogicalResult planSubnet(func::FuncOp function, const KernelSet &kernels, codegen::ConstantSection &constants,
                         std::function<double(Operation *)> secondsOf, codegen::SubnetProgram &planned) {
  return SubnetPlanner(function, kernels, constants, std::move(secondsOf), planned).plan();
}

} // namespace tessera::native
