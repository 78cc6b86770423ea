//===- Commands.cpp - Device ops as commands of an Abacus -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"

#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/TensorTypes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bmodel::abacus;
using Code = bmodel::abacus::Op;

namespace tessera::abacus {
namespace {

template <typename... Parts>
llvm::Error reject(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(text);
}

std::optional<Code> codeOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Code>>(op)
      .Case<arith::ConstantOp>([](auto) { return Code::constant; })
      .Case<arith::AddFOp>([](auto) { return Code::add; })
      .Case<arith::SubFOp>([](auto) { return Code::sub; })
      .Case<arith::MulFOp>([](auto) { return Code::mul; })
      .Case<arith::DivFOp>([](auto) { return Code::div; })
      .Case<arith::MinimumFOp>([](auto) { return Code::min; })
      .Case<arith::MaximumFOp>([](auto) { return Code::max; })
      .Case<arith::NegFOp>([](auto) { return Code::neg; })
      .Case<math::AbsFOp>([](auto) { return Code::abs; })
      .Case<math::SqrtOp>([](auto) { return Code::sqrt; })
      .Default(std::nullopt);
}

} // namespace

/// Sets the views of a command that loops over the result. The last loop is number |lastLoop|; operands are f32 and
/// broadcast to the result.
llvm::Error Commands::setViews(Command &command, Value result, ArrayRef<Value> operands, unsigned lastLoop) {
  ArrayRef<int64_t> shape = typeOf(result).getShape();
  std::fill(std::begin(command.sizes), std::end(command.sizes), 1);
  llvm::copy(shape, command.sizes + lastLoop + 1 - shape.size());
  for (size_t i = 0; i <= operands.size(); ++i) {
    Value value = i ? operands[i - 1] : result;
    View &view = i ? command.operands[i - 1] : command.result;
    RankedTensorType type = typeOf(value);
    if (!type.getElementType().isF32() || type.getNumElements() == 0) {
      return reject("has an operand or a result of ", type,
                    "; only tensors of f32 with at least one element are supported");
    }
    values.insert(value);
    view.tensor = uint32_t(std::distance(values.begin(), llvm::find(values, value)));
    uint64_t stride = 1;
    for (auto [back, size] : llvm::enumerate(llvm::reverse(type.getShape()))) {
      view.strides[lastLoop - back] = size == 1 ? 0 : stride;
      stride *= uint64_t(size);
    }
  }
  return llvm::Error::success();
}

llvm::Error Commands::addSteps(Region &body, Command &command) {
  llvm::DenseMap<Value, uint32_t> registers;
  for (BlockArgument argument : body.getArguments()) {
    registers[argument] = argument.getArgNumber();
  }
  auto yield = cast<device::YieldOp>(body.front().getTerminator());
  for (Operation &op : body.front().without_terminator()) {
    std::optional<Code> kind = codeOf(&op);
    if (!kind || !op.getResult(0).getType().isF32()) {
      return reject("computes '", op.getName().getStringRef(), "' of ", op.getResult(0).getType(),
                    ", which an Abacus does not support");
    }
    if (command.stepCount + 1 >= kSteps) {
      return reject("computes more than ", kSteps, " steps");
    }
    Step &step = command.steps[command.stepCount];
    step.op = *kind;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      step.value = cast<FloatAttr>(constant.getValue()).getValue().convertToFloat();
    } else {
      step.a = registers.at(op.getOperand(0)), step.b = registers.at(op.getOperands().back());
    }
    registers[op.getResult(0)] = command.operandCount + command.stepCount++;
  }
  // The last register is the result. If another register x is yielded, min(x, x) copies it.
  uint32_t from = registers.at(yield.getValues()[0]), last = command.operandCount + command.stepCount - 1;
  if (from != last || command.stepCount == 0) {
    command.steps[command.stepCount++] = {Code::min, from, from, 0};
  }
  return llvm::Error::success();
}

llvm::Error Commands::addMap(Region &body, Value result, ArrayRef<Value> operands) {
  ArrayRef<int64_t> shape = typeOf(result).getShape();
  if (shape.size() > kLoops || operands.size() > kOperands) {
    return reject("has ", shape.size(), " dims and ", operands.size(), " operands; supported are up to ", kLoops,
                  " and ", kOperands);
  }
  Command command = {};
  command.kind = Kind::map, command.operandCount = uint32_t(operands.size());
  if (llvm::Error error = setViews(command, result, operands, kLoops - 1)) {
    return error;
  }
  if (llvm::Error error = addSteps(body, command)) {
    return error;
  }
  commands.push_back(command);
  return llvm::Error::success();
}

/// Appends the sums of a matmul, then bias and epilogue, which overwrite the sums.
llvm::Error Commands::addProduct(Operation *op) {
  auto product = cast<device::MatMulOp>(op);
  ArrayRef<int64_t> shape = typeOf(product.getY()).getShape();
  if (shape.size() >= kLoops || product.getScales()) {
    return reject("has ", shape.size(), " dims, or scales of weights; supported are up to ", kLoops - 1,
                  " dims without scales");
  }
  Command sum = {};
  sum.kind = Kind::sum, sum.operandCount = 2;
  if (llvm::Error error = setViews(sum, product.getY(), {product.getA(), product.getB()}, kLoops - 2)) {
    return error;
  }
  sum.sizes[kLoops - 1] = uint64_t(typeOf(product.getA()).getShape().take_back(product.getTransA() ? 2 : 1).front());
  // The loops are rows, columns and the sum. The first operand does not depend on columns, the second not on rows.
  auto turn = [](View &view, bool isSwapped, unsigned kept, unsigned summed) {
    uint64_t strides[2] = {view.strides[kLoops - 3], view.strides[kLoops - 2]};
    view.strides[kLoops - 3] = view.strides[kLoops - 2] = 0;
    view.strides[kept] = strides[isSwapped != (kept == kLoops - 2)];
    view.strides[summed] = strides[isSwapped == (kept == kLoops - 2)];
  };
  turn(sum.operands[0], product.getTransA(), kLoops - 3, kLoops - 1);
  turn(sum.operands[1], product.getTransB(), kLoops - 2, kLoops - 1);
  commands.push_back(sum);
  if (product.getBias()) {
    Command add = sum;
    add.kind = Kind::map, add.operands[0] = add.operands[1] = {};
    if (llvm::Error error = setViews(add, product.getY(), {product.getY(), product.getBias()}, kLoops - 2)) {
      return error;
    }
    add.steps[0] = {Code::add, 0, 1, 0}, add.stepCount = 1;
    commands.push_back(add);
  }
  if (product.getEpilogue().empty()) {
    return llvm::Error::success();
  }
  SmallVector<Value> operands = {product.getY()};
  llvm::append_range(operands, product.getExtras());
  return addMap(product.getEpilogue(), product.getY(), operands);
}

llvm::Error Commands::add(Operation *op) {
  auto map = dyn_cast<device::MapOp>(op);
  return map                         ? addMap(map.getBody(), map.getY(), SmallVector<Value>(map.getInputs()))
         : isa<device::MatMulOp>(op) ? addProduct(op)
                                     : reject("is neither a map nor a matmul, the only ops that an Abacus supports");
}

} // namespace tessera::abacus
