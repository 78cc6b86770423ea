//===- BuildProgram.cpp - Conversion of streams to IR and back ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Transforms/Programs.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

constexpr uint64_t kOffsetMask = (uint64_t(1) << kBufferShift) - 1;

/// Returns the block argument for an off-chip region: constants, workspace, then the caller's buffers.
unsigned argumentOf(Region region) {
  return region == Region::constants   ? 0
         : region == Region::workspace ? 1
                                       : 2 + unsigned(region) - unsigned(Region::io);
}

Region regionOf(unsigned argument) {
  return argument == 0   ? Region::constants
         : argument == 1 ? Region::workspace
                         : Region(unsigned(Region::io) + argument - 2);
}

class Builder {
public:
  Builder(MLIRContext *context, const CommandStream &stream)
      : builder(context), stream(stream), values(std::max<size_t>(stream.buffers.size(), 1)) {
    for (const std::string &name : stream.layers) {
      locations.push_back(name.empty() ? builder.getUnknownLoc() : Location(NameLoc::get(builder.getStringAttr(name))));
    }
  }

  void build(ModuleOp module, const ProgramFrame &frame);

private:
  void addBuffers();
  void addCommands(ArrayRef<Descriptor> commands, uint32_t layer, mlir::Region &region);

  OpBuilder builder;
  const CommandStream &stream;
  std::vector<Value> values; ///< by number of the buffer
  SmallVector<Location> locations;
  Block *body = nullptr;
};

void Builder::build(ModuleOp module, const ProgramFrame &frame) {
  builder.setInsertionPointToStart(module.getBody());
  SmallVector<StringRef> layers(stream.layers.begin(), stream.layers.end());
  auto program = ProgramOp::create(
      builder, module.getLoc(), builder.getStringAttr(frame.name), PhaseAttr::get(builder.getContext(), Phase::staged),
      builder.getStringAttr(ProgramOp::nameChip(stream.chip)), builder.getI32IntegerAttr(int32_t(frame.inputs)),
      builder.getStrArrayAttr(layers), frame.overlap.prefetch ? builder.getUnitAttr() : UnitAttr(),
      frame.overlap.disjointStores ? builder.getUnitAttr() : UnitAttr(),
      frame.overlap.crossLayerPrefetch ? builder.getUnitAttr() : UnitAttr(),
      frame.overlap.holdStores ? builder.getUnitAttr() : UnitAttr(), ElementsAttr());
  body = &program.getBody().emplaceBlock();
  for (unsigned i = 0; i < 2 + frame.inputs + frame.outputs; ++i) {
    body->addArgument(MemoryType::get(builder.getContext()), module.getLoc());
  }
  builder.setInsertionPointToStart(body);
  addBuffers();
  for (const Stage &step : stream.stages) {
    auto stage = StageOp::create(builder, locations[step.layer], step.hoisted, step.isIndependent);
    addCommands(step.loads, step.layer, stage.getLoads());
    addCommands(step.computes, step.layer, stage.getComputes());
    addCommands(step.stores, step.layer, stage.getStores());
    builder.setInsertionPointAfter(stage);
  }
}

/// Adds the buffers that commands use, in the order of their numbers.
void Builder::addBuffers() {
  std::vector<bool> used(values.size(), false);
  for (const Stage &step : stream.stages) {
    for (const auto *part : {&step.loads, &step.computes, &step.stores}) {
      for (Descriptor command : *part) {
        eachTensor(command, [&](const char *, Tensor &tensor) {
          if (tensor.region == Region::local) {
            used[tensor.offset >> kBufferShift] = true;
          }
        });
      }
    }
  }
  for (size_t number = 1; number < values.size(); ++number) {
    if (used[number]) {
      const LocalBuffer &buffer = stream.buffers[number];
      SmallVector<int64_t> sizes(std::begin(buffer.shape.dims), std::end(buffer.shape.dims));
      values[number] =
          BufferOp::create(builder, builder.getUnknownLoc(), MemoryType::get(builder.getContext()),
                           builder.getI64IntegerAttr(int64_t(buffer.bytes)), builder.getDenseI64ArrayAttr(sizes),
                           builder.getStringAttr(hw::nameOf(buffer.type)), builder.getI32IntegerAttr(buffer.lane),
                           IntegerAttr(), DenseI64ArrayAttr());
    }
  }
}

void Builder::addCommands(ArrayRef<Descriptor> commands, uint32_t layer, mlir::Region &region) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&region.emplaceBlock());
  for (Descriptor command : commands) {
    SmallVector<Value, hw::kMostOperands> memories;
    eachTensor(command, [&](const char *, Tensor &tensor) {
      if (tensor.region == Region::none) {
        return;
      }
      if (tensor.region == Region::local) {
        memories.push_back(values[tensor.offset >> kBufferShift]);
        tensor.offset = (tensor.offset & kOffsetMask) - kBufferBegin;
      } else {
        memories.push_back(body->getArgument(argumentOf(tensor.region)));
      }
      tensor.region = Region::local;
    });
    command.header.layer = layer;
    CommandOp::create(builder, locations[layer], memories, CommandCode{command});
  }
}

} // namespace

OwningOpRef<ModuleOp> buildProgram(MLIRContext *context, const CommandStream &stream, const ProgramFrame &frame) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  Builder(context, stream).build(*module, frame);
  return module;
}

/// Returns the command with the regions and offsets of its memories. |begin|: returns the first byte of a buffer.
static Descriptor withAddresses(CommandOp command, llvm::function_ref<uint64_t(Value)> begin) {
  Descriptor result = command.getDescriptor();
  unsigned memory = 0;
  eachTensor(result, [&](const char *, Tensor &tensor) {
    if (tensor.region != Region::none) {
      Value value = command.getMemories()[memory++];
      auto argument = dyn_cast<BlockArgument>(value);
      tensor.region = argument ? regionOf(argument.getArgNumber()) : Region::local;
      tensor.offset += argument ? 0 : begin(value);
    }
  });
  return result;
}

hw::Chip chipOf(ProgramOp program) {
  hw::Chip chip;
  std::string error;
  ProgramOp::readChip(program.getChip(), chip, error); // the verifier has checked it
  return chip;
}

StagedProgram::StagedProgram(ProgramOp program)
    : program(program), chip(chipOf(program)), stream(chip, constants),
      overlap{program.getPrefetch(), program.getDisjointStores(), program.getCrossLayerPrefetch(),
              program.getHoldStores()},
      buffers(1) {
  llvm::DenseMap<Value, uint64_t> begins;
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    LocalBuffer result;
    result.bytes = uint64_t(buffer.getBytes());
    begins[buffer.getMemory()] = stream.addBuffer(result);
    buffers.push_back(buffer);
  }
  auto begin = [&](Value buffer) { return begins.lookup(buffer); };
  for (auto stage : program.getBody().getOps<StageOp>()) {
    Stage &step = stream.stages.emplace_back();
    step.hoisted = stage.getOverlapped(), step.isIndependent = stage.getIndependent();
    std::vector<Descriptor> *parts[] = {&step.loads, &step.computes, &step.stores};
    for (auto [part, region] : llvm::zip_equal(parts, stage->getRegions())) {
      for (auto command : region.getOps<CommandOp>()) {
        part->push_back(withAddresses(command, begin));
        commands.push_back(command);
      }
    }
  }
}

std::vector<Descriptor> encodeProgram(ProgramOp program) {
  std::vector<Descriptor> result;
  auto begin = [](Value buffer) { return uint64_t(*buffer.getDefiningOp<BufferOp>().getAddress()); };
  for (auto command : program.getBody().getOps<CommandOp>()) {
    result.push_back(withAddresses(command, begin));
  }
  return result;
}

} // namespace tessera::npu
