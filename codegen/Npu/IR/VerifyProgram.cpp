//===- VerifyProgram.cpp - Checks of programs, by phase -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/IR/NpuOps.h"

#include "llvm/ADT/DenseMap.h"
#include <map>

using namespace mlir;
using namespace tessera::npu;
namespace hw = bmodel::npu;

namespace {

/// Returns the range of a lane's bytes that a tensor touches.
std::pair<int64_t, int64_t> extentOf(const hw::Tensor &tensor, const hw::Shape &shape, uint32_t lanes) {
  int64_t low = int64_t(tensor.offset), high = low + int64_t(hw::sizeOf(tensor.type));
  for (int i = 0; i < 4; ++i) {
    bool isChannel = i == 1; // channels advance from lane to lane
    int64_t first = isChannel ? tensor.lane / lanes : 0, last = int64_t(shape.dims[i]) - 1;
    last = isChannel ? (int64_t(tensor.lane) + last) / lanes : last;
    int64_t a = first * tensor.strides[i], b = last * tensor.strides[i];
    low += std::min(a, b), high += std::max(a, b);
  }
  return {low, high};
}

class Verifier {
public:
  Verifier(ProgramOp program, const hw::Chip &chip) : program(program), phase(program.getPhase()), chip(chip) {}

  LogicalResult run();

private:
  LogicalResult check(BufferOp buffer);
  LogicalResult check(CommandOp command);
  LogicalResult checkStage(StageOp stage);
  LogicalResult checkOverlaps();
  bool hasStages() const { return phase == Phase::staged || phase == Phase::allocated; }

  ProgramOp program;
  Phase phase;
  const hw::Chip &chip;
  int64_t stage = 0; ///< number of stages seen so far
  int64_t early = 0; ///< number of stages by which commands of this region may run early
  SmallVector<BufferOp> buffers;
};

LogicalResult Verifier::check(BufferOp buffer) {
  if (buffer.getAddress().has_value() != (phase != Phase::staged)) {
    return buffer.emitOpError() << (buffer.getAddress() ? "has an" : "has no") << " address in a program that is "
                                << stringifyPhase(phase);
  }
  if (buffer.getAddress() && *buffer.getAddress() + buffer.getBytes() > chip.laneBytes) {
    return buffer.emitOpError() << "ends at " << *buffer.getAddress() + buffer.getBytes() << ", a lane has "
                                << chip.laneBytes << " bytes";
  }
  buffers.push_back(buffer);
  return success();
}

/// Checks that local tensors stay inside their buffers, which must be in use at this stage.
LogicalResult Verifier::check(CommandOp command) {
  hw::Descriptor descriptor = command.getDescriptor();
  hw::Operand operands[hw::kMostOperands];
  size_t count = hw::operandsOf(descriptor, operands), memory = 0;
  LogicalResult result = success();
  eachTensor(descriptor, [&](StringRef name, const hw::Tensor &tensor) {
    if (tensor.region == hw::Region::none || failed(result)) {
      return;
    }
    auto buffer = command.getMemories()[memory++].getDefiningOp<BufferOp>();
    auto operand = llvm::find_if(ArrayRef(operands, count), [&](const auto &each) { return name == each.name; });
    if (!buffer || operand == ArrayRef(operands, count).end()) {
      return;
    }
    auto [low, high] = extentOf(tensor, operand->shape, chip.lanes);
    if (low < 0 || high > int64_t(buffer.getBytes())) {
      result = command.emitOpError() << "touches bytes " << low << " to " << high << " as " << name
                                     << ", its buffer has " << buffer.getBytes();
    } else if (phase == Phase::allocated &&
               (stage < (*buffer.getLive())[0] || stage - early > (*buffer.getLive())[1])) {
      result = command.emitOpError() << "is in stage " << stage << ", but the buffer of " << name
                                     << " is only in use in stages " << (*buffer.getLive())[0] << " to "
                                     << (*buffer.getLive())[1];
    }
  });
  if (succeeded(result) && (descriptor.header.id != 0) != (phase == Phase::numbered)) {
    return command.emitOpError() << (descriptor.header.id ? "has an" : "has no") << " id in a program that is "
                                 << stringifyPhase(phase);
  }
  if (succeeded(result) && descriptor.header.layer >= program.getLayers().size()) {
    return command.emitOpError() << "is of layer " << descriptor.header.layer
                                 << ", but the program's number of layers is " << program.getLayers().size();
  }
  return result;
}

LogicalResult Verifier::checkStage(StageOp op) {
  for (Region &region : op->getRegions()) {
    early = &region == &op.getLoads() && (op.getOverlapped() || op.getIndependent());
    for (Operation &each : region.front()) {
      auto command = dyn_cast<CommandOp>(each);
      if (!command) {
        return each.emitOpError("is not a command; stages only contain commands");
      }
      if (failed(check(command))) {
        return failure();
      }
    }
  }
  ++stage;
  return success();
}

/// Checks that buffers which are in use at the same time do not overlap.
LogicalResult Verifier::checkOverlaps() {
  llvm::stable_sort(buffers, [](BufferOp a, BufferOp b) { return (*a.getLive())[0] < (*b.getLive())[0]; });
  std::multimap<int64_t, BufferOp> byEnd; ///< buffers in use, by their last stage
  std::map<int64_t, BufferOp> byAddress;  ///< buffers in use, by address
  for (BufferOp buffer : buffers) {
    int64_t first = (*buffer.getLive())[0], begin = int64_t(*buffer.getAddress()),
            end = begin + int64_t(buffer.getBytes());
    while (!byEnd.empty() && byEnd.begin()->first < first) {
      byAddress.erase(int64_t(*byEnd.begin()->second.getAddress()));
      byEnd.erase(byEnd.begin());
    }
    auto behind = byAddress.lower_bound(begin);
    auto before = behind == byAddress.begin() ? byAddress.end() : std::prev(behind);
    BufferOp other = behind != byAddress.end() && behind->first < end ? behind->second : BufferOp();
    if (before != byAddress.end() && before->first + int64_t(before->second.getBytes()) > begin) {
      other = before->second;
    }
    if (other) {
      InFlightDiagnostic error = buffer.emitOpError("shares bytes with another buffer that is in use at the same time");
      error.attachNote(other.getLoc()) << "this one, from " << *other.getAddress() << " on";
      return error;
    }
    byEnd.insert({(*buffer.getLive())[1], buffer}), byAddress.insert({begin, buffer});
  }
  return success();
}

LogicalResult Verifier::run() {
  for (Operation &op : program.getBody().front()) {
    auto stageOp = dyn_cast<StageOp>(op);
    auto command = dyn_cast<CommandOp>(op);
    if (auto buffer = dyn_cast<BufferOp>(op)) {
      if (failed(check(buffer))) {
        return failure();
      }
    } else if (hasStages() ? !stageOp : !command) {
      return op.emitOpError() << "is in a program that is " << stringifyPhase(phase) << ", which consists of "
                              << (hasStages() ? "stages" : "commands");
    } else if (failed(stageOp ? checkStage(stageOp) : check(command))) {
      return failure();
    }
  }
  return phase == Phase::staged ? success() : checkOverlaps();
}

} // namespace

LogicalResult ProgramOp::verifyRegions() {
  hw::Chip chip;
  std::string error;
  readChip(getChip(), chip, error); // verify has already reported errors
  return Verifier(*this, chip).run();
}
