//===- SubnetEmitter.cpp - Emits a placed function as a stream of launches --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Stream/SubnetEmitter.h"

#include "bmodel/cuda/program.h"
#include "codegen/Cuda/Stream/StreamSizes.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::cuda {

namespace {

using kernels::needsKernel;

using bmodel::cuda::Argument;
using bmodel::cuda::ArgumentKind;
using bmodel::cuda::Launch;

constexpr uint32_t kMostBlocks = 0x7fffffff; ///< limit of the first dim of a launch's grid
constexpr uint64_t kCounterBytes = 4;

/// Emits one subnet. The tensors of its step are the subnet's arguments, its constants, its results, and the workspace.
class SubnetEmitter {
public:
  SubnetEmitter(const codegen::Subnet &subnet, const PtxKernels &kernels, codegen::ConstantSection &constants,
                codegen::TargetProgram &program)
      : function(subnet.function), kernels(kernels), constants(constants), program(program),
        made(program.subnets.emplace_back()), arguments(function.getNumArguments()), results(function.getNumResults()) {
  }

  llvm::Error emit() {
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (llvm::Error error = needsKernel(&op) ? addConstants(&op) : llvm::Error::success()) {
        return error;
      }
    }
    codegen::setWorkspaceSizes(function, made);
    made.workspaceBytes = placed = llvm::alignTo(made.workspaceBytes, device::kAddressAlignment);
    addClearing();
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (needsKernel(&op)) {
        sizes.addParams(&op);
      }
    }
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (llvm::Error error = needsKernel(&op) ? addLaunch(&op) : llvm::Error::success()) {
        return error;
      }
    }
    made.subnet.kind = bmodel::SubnetKind::Device;
    made.subnet.kernel_abi = kernels.takeSizes() ? bmodel::cuda::kVersionSizes : bmodel::cuda::kVersion;
    made.subnet.code_segment = int32_t(kCode);
    if (made.ops > 0) {
      addStep();
    }
    addCopies();
    return llvm::Error::success();
  }

private:
  llvm::Error addConstants(Operation *op) {
    for (Value operand : op->getOperands()) {
      Value root = device::getConstantRoot(operand);
      if (!root || slots.contains(root)) {
        continue;
      }
      std::optional<top::TensorData> data = top::getConstantData(root);
      auto tensor = codegen::describeTensor(cast<RankedTensorType>(root.getType()), top::getTensorName(root));
      if (!data || !tensor) {
        return llvm::createStringError("internal error: the weight store lacks a constant");
      }
      tensor->role = bmodel::TensorRole::Constant;
      constants.place(*data, *tensor);
      slots[root] = uint32_t(made.tensors.size());
      made.tensors.push_back(std::move(*tensor));
    }
    return llvm::Error::success();
  }

  /// Places the counters of all ops contiguously before all scratch, and adds a launch that clears them in each run.
  void addClearing() {
    counters = placed;
    int64_t count = 0;
    for (Operation &op : function.getBody().front().without_terminator()) {
      count += needsKernel(&op) ? kernels[kernels.indexOf(&op)].frame.counters : 0;
    }
    if (!count) {
      return;
    }
    uint64_t blocks = llvm::divideCeil(uint64_t(count), kBlock), bytes = blocks * kBlock * kCounterBytes;
    Launch launch = {};
    launch.kernel = uint32_t(*kernels.clearing()), launch.argumentCount = 1, launch.layer = bmodel::cuda::kNoLayer;
    launch.grid[0] = uint32_t(blocks), launch.block[0] = kBlock;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    append(launch);
    if (kernels.takeSizes()) {
      append(bmodel::cuda::Grid{bmodel::cuda::kConstantGrid, 1});
    }
    append(inWorkspace(counters, bytes));
    placed = llvm::alignTo(placed + bytes, device::kAddressAlignment);
    made.workspaceBytes = placed;
  }

  Argument inWorkspace(uint64_t offset, uint64_t bytes) {
    return {ArgumentKind::pointer, uint32_t(arguments + made.tensors.size() + results), offset, bytes};
  }

  /// Returns the argument for the bytes of |value|.
  Argument pointerTo(Value value) {
    Dim bytes = device::symbolicBytes(cast<RankedTensorType>(value.getType()));
    ArgumentKind kind = bytes.isKnown() ? ArgumentKind::pointer : ArgumentKind::sized;
    uint64_t reach = bytes.isKnown() ? uint64_t(bytes.value()) : sizes.indexOf(bytes);
    if (Value root = device::getConstantRoot(value)) {
      return {kind, arguments + slots.at(root), 0, reach};
    }
    device::Address address = *device::getAddress(value);
    auto count = uint32_t(made.tensors.size());
    uint32_t tensor = address.memory < 0 ? uint32_t(-address.memory - 1)
                      : address.memory   ? arguments + count + uint32_t(address.memory - 1)
                                         : arguments + count + results;
    return {kind, tensor, uint64_t(address.offset), reach};
  }

  template <typename T>
  void append(const T &value) {
    stream.insert(stream.end(), reinterpret_cast<const char *>(&value),
                  reinterpret_cast<const char *>(&value) + sizeof(T));
  }

  uint32_t layerOf(Operation *op) {
    SmallVector<StringRef> names = top::getNodeNames(op->getLoc());
    if (names.empty()) {
      return bmodel::cuda::kNoLayer;
    }
    layers.push_back(llvm::join(names, " "));
    return uint32_t(layers.size() - 1);
  }

  llvm::Error addLaunch(Operation *op) {
    size_t index = kernels.indexOf(op);
    const PtxKernel &kernel = kernels[index];
    const kernels::KernelFrame &frame = kernel.frame;
    const Dim tiles = frame.tilesOf(op);
    const uint64_t blocks = tiles.isKnown() ? llvm::divideCeil(uint64_t(tiles.value()), kernel.tilesPerBlock()) : 1;
    if (blocks > kMostBlocks) {
      return llvm::createStringError("%s: its kernel needs %llu blocks of threads, more than one launch can have",
                                     top::getDisplayName(op->getLoc()).c_str(), (unsigned long long)blocks);
    }
    uint64_t scratch = uint64_t(maxOf(tiles)) * uint64_t(frame.scratchBytes);
    Launch launch = {};
    launch.kernel = uint32_t(index), launch.argumentCount = kernel.argumentCount();
    launch.grid[0] = uint32_t(blocks);
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.block[0] = kernel.threads(), launch.sharedBytes = uint32_t(frame.sharedBytes);
    launch.layer = layerOf(op);
    append(launch);
    if (kernels.takeSizes()) {
      append(bmodel::cuda::Grid{tiles.isKnown() ? bmodel::cuda::kConstantGrid : sizes.indexOf(tiles),
                                kernel.tilesPerBlock()});
    }
    for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults()))) {
      append(pointerTo(value));
    }
    append(scratch ? inWorkspace(placed, scratch) : Argument{ArgumentKind::value64, 0, 0, 0});
    if (uint64_t bytes = uint64_t(frame.counters) * kCounterBytes) {
      append(inWorkspace(counters, bytes));
      counters += bytes;
    }
    for (top::SizeSymbolAttr symbol : kernels::symbolsOf(op)) {
      append(Argument{ArgumentKind::dim, sizes.paramOf(symbol), 0, 0});
    }
    if (!frame.tileTerms.empty()) {
      append(Argument{ArgumentKind::size, sizes.indexOf(tiles), 0, 0});
    }
    made.workspaceBytes = std::max(made.workspaceBytes, placed + scratch);
    auto work = cast<device::WorkInterface>(op);
    flops += uint64_t(work.countFlops());
    ++made.ops;
    return llvm::Error::success();
  }

  void addStep() {
    bmodel::RunStreamOnDefT run;
    for (uint32_t slot = 0; slot < arguments + results + made.tensors.size(); ++slot) {
      bool isResult = slot >= arguments && slot < arguments + results;
      (isResult ? run.outputs : run.inputs).push_back(slot);
    }
    if (kernels.takeSizes()) {
      std::vector<char> table = sizes.table();
      stream.insert(stream.begin(), table.begin(), table.end());
      for (top::SizeSymbolAttr symbol : sizes.params()) {
        run.dims.push_back(made.sizes.slotOf(kernels::sizeOf(symbol)));
      }
    }
    program.memory.push_back(std::move(stream));
    run.offset = program.sections[kCode].append(program.memory.back()), run.bytes = program.memory.back().size();
    auto step = std::make_unique<bmodel::StepDefT>();
    step->writes = run.outputs;
    step->op.Set(std::move(run));
    step->debug = std::make_unique<bmodel::StepDebugDefT>();
    step->debug->onnx_nodes = std::move(layers);
    step->debug->flops = flops;
    made.subnet.plan.push_back(std::move(step));
  }

  void addCopies() {
    for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
      Argument from = pointerTo(result.get());
      int64_t wanted = int64_t(result.getOperandNumber()) + 1;
      std::optional<device::Address> address = device::getAddress(result.get());
      if (address && address->memory == wanted) {
        continue;
      }
      uint32_t slot = from.index < arguments
                          ? from.index
                          : from.index - uint32_t(made.tensors.size()); // arguments first, then results
      made.subnet.plan.push_back(codegen::copyStep(slot, arguments + uint32_t(result.getOperandNumber())));
    }
  }

  func::FuncOp function;
  const PtxKernels &kernels;
  codegen::ConstantSection &constants;
  codegen::TargetProgram &program;
  codegen::SubnetProgram &made;
  const uint32_t arguments, results;
  uint64_t placed = 0, flops = 0;
  uint64_t counters = 0; ///< offset of the next op's counters in the workspace
  std::vector<char> stream;
  StreamSizes sizes;
  std::vector<std::string> layers;
  DenseMap<Value, uint32_t> slots; ///< constant -> index in made.tensors
};

} // namespace

llvm::Error emitSubnet(const codegen::Subnet &subnet, const PtxKernels &kernels, codegen::ConstantSection &constants,
                       codegen::TargetProgram &program) {
  return SubnetEmitter(subnet, kernels, constants, program).emit();
}

} // namespace tessera::cuda
