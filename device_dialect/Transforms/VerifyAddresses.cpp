//===- VerifyAddresses.cpp - Checking assigned addresses ------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Executes the program on marks instead of bytes: every step marks the bytes that it writes with (result, byte of it),
// and checks that the bytes of each operand have the marks of the value's producer. The check does not depend on how
// addresses were chosen.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/State.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

namespace tessera::device {
#define GEN_PASS_DEF_VERIFYADDRESSESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// |bytes| bytes of a value, from |from| on, that some step computed.
struct Part {
  Value value;
  int64_t from, bytes;
};

/// Marks of one memory: maps the first byte of each run to the run's end and the origin of its first byte.
class Marks {
public:
  void write(int64_t begin, int64_t bytes, Value value) {
    split(begin);
    split(begin + bytes);
    runs.erase(runs.lower_bound(begin), runs.lower_bound(begin + bytes));
    if (bytes > 0) {
      runs[begin] = {begin + bytes, value, 0};
    }
  }

  /// Returns true if the bytes from |begin| on are |part|; otherwise |found| is the value found instead (null: none).
  bool holds(int64_t begin, const Part &part, Value &found) const {
    int64_t end = begin + part.bytes;
    for (int64_t at = begin; at < end;) {
      auto run = runs.upper_bound(at);
      if (run == runs.begin() || (--run)->second.end <= at) {
        found = Value();
        return false;
      }
      found = run->second.value;
      if (found != part.value || run->second.from + (at - run->first) != part.from + (at - begin)) {
        return false;
      }
      at = run->second.end;
    }
    return true;
  }

private:
  struct Run {
    int64_t end;
    Value value;
    int64_t from;
  };

  void split(int64_t at) {
    auto run = runs.upper_bound(at);
    if (run == runs.begin() || (--run)->second.end <= at || run->first == at) {
      return;
    }
    Run rest = run->second;
    rest.from += at - run->first;
    run->second.end = at;
    runs[at] = rest;
  }

  std::map<int64_t, Run> runs;
};

class VerifyAddresses : public impl::VerifyAddressesPassBase<VerifyAddresses> {
public:
  using VerifyAddressesPassBase::VerifyAddressesPassBase;

  void runOnOperation() override {
    memories.clear();
    contents.clear();
    for (BlockArgument argument : getOperation().getArguments()) {
      int64_t bytes = physicalBytes(cast<RankedTensorType>(argument.getType()));
      contents[argument] = {{argument, 0, bytes}};
      memories[getAddress(argument)->memory].write(0, bytes, argument);
    }
    for (Operation &op : getOperation().getBody().front()) {
      if (failed(step(op))) {
        return signalPassFailure();
      }
    }
  }

private:
  LogicalResult step(Operation &op) {
    bool computes = op.getNumResults() > 0 && !getConstantRoot(op.getResult(0));
    for (Value result : computes ? op.getResults() : ResultRange(op.getResults().end(), op.getResults().end())) {
      if (failed(inside(op, result))) {
        return failure();
      }
    }
    if (computes && isElided(&op)) {
      contents[op.getResult(0)] = partsOfView(op);
      return holds(op, op.getResult(0), "result");
    }
    for (OpOperand &operand : op.getOpOperands()) {
      if (isa<RankedTensorType>(operand.get().getType()) && !getConstantRoot(operand.get()) &&
          (failed(holds(op, operand.get(), "operand")) || failed(apart(op, operand)))) {
        return failure();
      }
    }
    if (!computes) {
      return success();
    }
    for (Value result : op.getResults()) {
      Address address = *getAddress(result);
      int64_t bytes = physicalBytes(cast<RankedTensorType>(result.getType()));
      contents[result] = {{result, 0, bytes}};
      memories[address.memory].write(address.offset, bytes, result);
    }
    for (Value result : op.getResults()) {
      if (failed(holds(op, result, "result"))) {
        return failure();
      }
    }
    return success();
  }

  /// Checks that |result| has an aligned address inside a memory that may be written.
  LogicalResult inside(Operation &op, Value result) {
    std::optional<Address> address = getAddress(result);
    if (!address) {
      return op.emitError() << "result of type " << result.getType() << " has no address";
    }
    if (address->offset % alignment.getValue()) {
      return op.emitError() << "address " << address->offset << " is not a multiple of " << alignment.getValue();
    }
    func::FuncOp function = getOperation();
    int64_t memory = address->memory, limit = 0;
    if (memory == 0) {
      auto workspace = function->getAttrOfType<IntegerAttr>(DeviceDialect::kWorkspaceBytesAttr);
      limit = workspace ? workspace.getInt() : 0;
    } else if (memory > 0 && memory <= function.getNumResults()) {
      limit = physicalBytes(cast<RankedTensorType>(function.getResultTypes()[memory - 1]));
    } else if (memory < 0 && -memory <= function.getNumArguments() &&
               (isElided(&op) ||
                (writesInPlace(&op) && function.getArgAttr(unsigned(-memory - 1), top::kInPlaceAttr)))) {
      limit = physicalBytes(cast<RankedTensorType>(function.getArgumentTypes()[-memory - 1]));
    } else {
      return op.emitError() << "memory " << memory << " does not exist or may not be written by this op";
    }
    int64_t end = address->offset + physicalBytes(cast<RankedTensorType>(result.getType()));
    if (address->offset < 0 || end > limit) {
      return op.emitError() << "result takes bytes " << address->offset << ".." << end << " of a memory of " << limit;
    }
    return success();
  }

  /// Checks that the bytes of |value| still are the computed ones.
  LogicalResult holds(Operation &op, Value value, StringRef what) {
    Address address = *getAddress(value);
    int64_t at = address.offset;
    for (const Part &part : contents.lookup(value)) {
      Value found;
      if (!memories[address.memory].holds(at, part, found)) {
        InFlightDiagnostic error = op.emitError()
                                   << "reads " << what << " of type " << value.getType() << " at " << address.offset
                                   << " of memory " << address.memory << ", which does not hold this value";
        if (found) {
          error.attachNote(found.getLoc()) << "written here";
        }
        return error;
      }
      at += part.bytes;
    }
    return success();
  }

  /// Checks that no result overwrites |operand|, unless the op is marked for it and can do it.
  LogicalResult apart(Operation &op, OpOperand &operand) {
    Address read = *getAddress(operand.get());
    int64_t readEnd = read.offset + physicalBytes(cast<RankedTensorType>(operand.get().getType()));
    for (Value result : op.getResults()) {
      Address written = *getAddress(result);
      int64_t writtenEnd = written.offset + physicalBytes(cast<RankedTensorType>(result.getType()));
      if (read.memory != written.memory || readEnd <= written.offset || writtenEnd <= read.offset) {
        continue;
      }
      auto inplace = op.getAttrOfType<IntegerAttr>(DeviceDialect::kInplaceAttr);
      bool meant =
          inplace && inplace.getInt() < op.getNumOperands() && op.getOperand(inplace.getInt()) == operand.get();
      if (!meant || read.offset != written.offset || !canWriteOver(&op, operand.getOperandNumber())) {
        return op.emitError() << "overwrites operand " << operand.getOperandNumber() << " at " << written.offset
                              << " while it reads it";
      }
    }
    return success();
  }

  /// Returns the parts that make up a view or an elided copy.
  std::vector<Part> partsOfView(Operation &op) {
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      return contents.lookup(reshape.getX());
    }
    auto copy = cast<CopyOp>(op);
    if (std::optional<int64_t> offset = sliceOffset(copy)) {
      return cut(contents.lookup(copy.getSources().front()), *offset,
                 physicalBytes(cast<RankedTensorType>(copy.getY().getType())));
    }
    std::map<int64_t, std::vector<Part>> inOrder;
    for (auto piece : copy.getPieces().getAsRange<PieceAttr>()) {
      if (std::optional<int64_t> offset = partOffset(copy, piece)) {
        inOrder[*offset] = contents.lookup(copy.getSources()[piece.getSource()]);
      }
    }
    std::vector<Part> parts;
    for (auto &[offset, more] : inOrder) {
      llvm::append_range(parts, more);
    }
    return parts;
  }

  static std::vector<Part> cut(const std::vector<Part> &parts, int64_t begin, int64_t bytes) {
    std::vector<Part> result;
    int64_t at = 0;
    for (const Part &part : parts) {
      int64_t from = std::max(begin, at), to = std::min(begin + bytes, at + part.bytes);
      if (from < to) {
        result.push_back({part.value, part.from + from - at, to - from});
      }
      at += part.bytes;
    }
    return result;
  }

  std::map<int64_t, Marks> memories;
  llvm::DenseMap<Value, std::vector<Part>> contents;
};

} // namespace
} // namespace tessera::device
