//===- FormTables.cpp - Byte functions as tables --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Reference/ScalarInterpreter.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::device {
#define GEN_PASS_DEF_FORMTABLESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;
using tessera::top::HostTensor;

namespace tessera::device {
namespace {

bool isByte(Value value) { return typeOf(value).getElementType().isInteger(8); }

/// Returns a constant as operand of a byte function: one element if all are equal, otherwise [channels, 1].
HostTensor operandOf(const top::TensorData &data) {
  size_t size = top::elementBytes(data.type.getElementType());
  ArrayRef<char> first = data.bytes.take_front(size);
  bool isSplat = true;
  for (size_t at = size; at < data.bytes.size() && isSplat; at += size) {
    isSplat = data.bytes.slice(at, size) == first;
  }
  Type element = data.type.getElementType();
  return isSplat ? HostTensor(RankedTensorType::get({1}, element), first)
                 : HostTensor(RankedTensorType::get({numElements(data.type), 1}, element), data.bytes);
}

/// A map with byte results and the maps from which it is computed, down to one tensor of bytes.
class Function {
public:
  Function(MapOp root, bool perChannel) : root(root), perChannel(perChannel) {
    valid = visit(root) && argument &&
            channels * 256 * 4 <= std::max<int64_t>(likelyCount(countElements(root.getY())), 1024);
  }

  bool isTable() const { return valid; }
  Value getArgument() const { return argument; }

  /// Evaluates the results for the bytes 0 to 255, per channel if channels differ; on failure reports an error.
  FailureOr<HostTensor> evaluate() {
    DenseMap<Value, HostTensor> values;
    SmallVector<int64_t> dims = {256};
    if (channels > 1) {
      dims.insert(dims.begin(), channels);
    }
    HostTensor &bytes = values[argument] = HostTensor(typeOf(argument).getElementType(), {256});
    for (int i = 0; i < 256; ++i) {
      bytes.getBytes()[i] = static_cast<char>(i);
    }
    for (MapOp map : maps) {
      SmallVector<HostTensor> operands;
      SmallVector<const HostTensor *> pointers;
      for (Value input : map.getInputs()) {
        // The argument itself may be a constant, of any size.
        std::optional<top::TensorData> data = values.contains(input) ? std::nullopt : top::getConstantData(input);
        operands.push_back(data ? operandOf(*data) : values.lookup(input));
      }
      for (const HostTensor &operand : operands) {
        pointers.push_back(&operand);
      }
      HostTensor result(typeOf(map.getY()).getElementType(), dims);
      if (failed(runScalarRegion(map.getBody(), pointers, result))) {
        return failure();
      }
      values[map.getY()] = std::move(result);
    }
    return values.lookup(root.getY());
  }

  ArrayRef<MapOp> getMaps() const { return maps.getArrayRef(); }

private:
  bool visit(MapOp map) {
    for (Value input : map.getInputs()) {
      if (!visitInput(input)) {
        return false;
      }
    }
    maps.insert(map); // after the maps that it reads
    return true;
  }

  bool visitInput(Value input) {
    RankedTensorType type = typeOf(input);
    if (knownNumElements(type) == 1 && top::isConstant(input)) {
      return true;
    }
    if (perChannel && isOfChannels(input)) {
      bool isSplat = operandOf(*top::getConstantData(input)).getRank() == 1;
      channels = isSplat ? channels : numElements(type);
      return true;
    }
    if (!sameSizes(type, root.getY())) {
      return false;
    }
    if (isByte(input)) {
      bool same = !argument || argument == input;
      argument = input;
      return same;
    }
    auto map = input.getDefiningOp<MapOp>();
    return map && (maps.contains(map) || visit(map));
  }

  /// Returns true if the value is a constant with one element per channel of a 4-D result.
  bool isOfChannels(Value value) {
    Shape y = root.getY(), dims = value;
    if (y.rank() != 4 || dims.rank() < 3 || !top::getConstantData(value)) {
      return false;
    }
    return sameSize(countElements(dims), y[1]) && sameSize(dims[dims.rank() - 3], y[1]);
  }

  MapOp root;
  bool perChannel;
  int64_t channels = 1; ///< channels with different functions
  Value argument;
  llvm::SetVector<MapOp> maps;
  bool valid = false;
};

class FormTables : public impl::FormTablesPassBase<FormTables> {
public:
  using FormTablesPassBase::FormTablesPassBase;

  void runOnOperation() override {
    SmallVector<MapOp> roots;
    getOperation().walk([&](MapOp map) {
      if (isByte(map.getY()) && Shape(map.getY()).isDetermined()) {
        roots.push_back(map);
      }
    });
    for (MapOp root : roots) {
      Function function(root, perChannel);
      if (!function.isTable()) {
        continue;
      }
      FailureOr<HostTensor> table = function.evaluate();
      if (failed(table)) {
        return signalPassFailure();
      }
      replace(root, function, *table);
    }
  }

private:
  void replace(MapOp root, Function &function, const HostTensor &table) {
    OpBuilder builder(root);
    Value constant = top::createConstant(builder, root.getLoc(), table.getType(), table.getBytes(), "table");
    auto lut = LutOp::create(builder, root.getLoc(), root.getY().getType(), function.getArgument(), constant);
    SmallVector<Operation *> maps(function.getMaps().begin(), function.getMaps().end());
    top::copyNames(maps, lut);
    root.getY().replaceAllUsesWith(lut.getY());
    for (Operation *map : llvm::reverse(maps)) {
      if (map->use_empty()) {
        map->erase();
      }
    }
    ++numTables;
  }
};

} // namespace
} // namespace tessera::device
