//===- ScalarInterpreter.cpp - Interpreter of scalar regions --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Reference/ScalarInterpreter.h"
#include "device_dialect/IR/ScalarPatterns.h"
#include "device_dialect/Reference/ScalarOps.h"
#include "top_dialect/Reference/Support.h"

using namespace mlir;
using namespace tessera::device::reference;
using tessera::top::HostTensor;
namespace ref = tessera::top::reference;

namespace {

/// Number of elements computed at once, few enough to stay in the cache.
constexpr int64_t kChunk = 2048;

/// An argument tensor broadcast to the result's shape.
class Argument {
public:
  Argument(const HostTensor &tensor, ArrayRef<int64_t> shape) : tensor(tensor), shape(shape) {
    direct = tensor.getShape() == shape;
    isFloat = isa<FloatType>(tensor.getElementType());
    if (!direct) {
      // Broadcast operands are usually small and are read once.
      whole.f = isFloat ? ref::read<double>(tensor) : std::vector<double>();
      whole.i = isFloat ? std::vector<int64_t>() : ref::read<int64_t>(tensor);
      strides = ref::broadcastStrides(tensor.getShape(), shape);
    }
  }

  /// Reads elements [begin, begin + size) in the result's row-major order.
  void read(int64_t begin, int64_t size, Column &column) const {
    column.resize(size);
    if (direct) {
      isFloat ? ref::readRange(tensor, begin, 1, size, column.f.data())
              : ref::readRange(tensor, begin, 1, size, column.i.data());
    } else {
      readBroadcast(begin, size, column);
    }
    if (!isFloat) {
      const Wrapping wrapped(tensor.getElementType());
      for (int64_t &value : column.i) {
        value = wrapped(value);
      }
    }
  }

private:
  void readBroadcast(int64_t begin, int64_t size, Column &column) const {
    SmallVector<int64_t> index(shape.size());
    int64_t rest = begin;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      index[d] = rest % shape[d];
    }
    for (int64_t k = 0; k < size; ++k) {
      int64_t offset = ref::dot(index, strides);
      isFloat ? void(column.f[k] = whole.f[offset]) : void(column.i[k] = whole.i[offset]);
      ref::nextIndex(index, shape);
    }
  }

  const HostTensor &tensor;
  ArrayRef<int64_t> shape;
  bool direct, isFloat;
  Column whole;
  ref::Dims strides;
};

/// One op of the region, prepared for execution.
struct Step {
  ColumnFunction function;
  SmallVector<unsigned> operands;
  unsigned result;
};

/// A region as a list of steps over numbered columns; the first columns are the arguments.
struct Program {
  std::vector<Step> steps;
  unsigned columns = 0, yielded = 0;

  LogicalResult compile(Region &region) {
    if (region.empty()) {
      columns = 1;
      return success();
    }
    DenseMap<Value, unsigned> numbers;
    for (BlockArgument argument : region.front().getArguments()) {
      numbers[argument] = columns++;
    }
    for (Operation &op : region.front().without_terminator()) {
      if (Value x = tessera::device::matchSigmoid(dyn_cast<arith::DivFOp>(op))) {
        steps.push_back({sigmoidColumn(), {numbers.lookup(x)}, columns});
        numbers[op.getResult(0)] = columns++;
        continue;
      }
      Step step{getColumnFunction(&op), {}, columns};
      if (!step.function) {
        return op.emitError() << "the reference evaluation does not support '" << op.getName() << "'";
      }
      for (Value operand : op.getOperands()) {
        step.operands.push_back(numbers.lookup(operand));
      }
      numbers[op.getResult(0)] = columns++;
      steps.push_back(std::move(step));
    }
    yielded = numbers.lookup(region.front().getTerminator()->getOperand(0));
    return success();
  }

  void run(std::vector<Column> &values, int64_t size) const {
    for (const Step &step : steps) {
      SmallVector<const Column *> operands;
      for (unsigned number : step.operands) {
        operands.push_back(&values[number]);
      }
      values[step.result].resize(size);
      step.function(operands, values[step.result], size);
    }
  }
};

} // namespace

LogicalResult tessera::device::runScalarRegion(Region &region, ArrayRef<const HostTensor *> arguments,
                                               HostTensor &result) {
  Program program;
  if (failed(program.compile(region))) {
    return failure();
  }
  std::vector<Argument> readers;
  for (const HostTensor *argument : arguments) {
    readers.emplace_back(*argument, result.getShape());
  }
  bool isFloat = isa<FloatType>(result.getElementType());
  std::vector<Column> values(program.columns);
  for (int64_t begin = 0, count = result.getNumElements(); begin < count; begin += kChunk) {
    int64_t size = std::min(kChunk, count - begin);
    for (auto [i, reader] : llvm::enumerate(readers)) {
      reader.read(begin, size, values[i]);
    }
    program.run(values, size);
    const Column &y = values[program.yielded];
    isFloat ? ref::writeRange(result, begin, size, y.f.data()) : ref::writeRange(result, begin, size, y.i.data());
  }
  return success();
}
