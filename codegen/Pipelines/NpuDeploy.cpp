//===- NpuDeploy.cpp - From NAME_top.mlir to a .bmodel for an NPU ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/NpuDeploy.h"

#include "codegen/Npu/Npu.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::codegen {
namespace {

constexpr uint32_t kCodeSegment = 0;

/// Makes the file's structure of a program.
class NpuPlanner {
public:
  NpuPlanner(func::FuncOp function, const NpuDeployOptions &options, const npu::NpuProgram &program)
      : function(function), options(options), program(program) {}

  llvm::Expected<bmodel::ModelDefT> plan() {
    createFrame();
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (llvm::Error error = addPort(i, false)) {
        return std::move(error);
      }
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (llvm::Error error = addPort(i, true)) {
        return std::move(error);
      }
    }
    auto step = std::make_unique<bmodel::StepDefT>();
    bmodel::RunStreamDefT stream;
    stream.bytes = program.commands.size() * hw::kDescriptorBytes;
    step->op.Set(std::move(stream));
    step->writes = stage->outputs;
    step->debug = std::make_unique<bmodel::StepDebugDefT>();
    step->debug->onnx_nodes = program.layers; // entry i: of the commands of layer i
    step->debug->device_op = "npu stream of " + std::to_string(program.commands.size()) + " commands";
    stage->subnets.back()->plan.push_back(std::move(step));
    return std::move(model);
  }

private:
  void createFrame() {
    auto module = function->getParentOfType<ModuleOp>();
    auto name = module->getAttrOfType<StringAttr>(top::TopDialect::kModelNameAttr);
    model.name = name && !name.getValue().empty() ? name.str() : "model";
    model.producer = "tessera " TESSERA_VERSION;
    auto chip = std::make_unique<bmodel::ChipDefT>();
    chip->name = options.chip.name, chip->family = "npu", chip->description = options.description;
    chip->fingerprint = hw::fingerprint(options.chip);
    model.chips.push_back(std::move(chip));
    auto net = std::make_unique<bmodel::NetDefT>();
    net->name = model.name;
    net->stages.push_back(std::make_unique<bmodel::StageDefT>());
    stage = net->stages.back().get();
    stage->name = "static";
    auto workspace = std::make_unique<bmodel::WorkspaceDefT>();
    workspace->bytes = program.sizes.workspace;
    auto bound = function->getAttrOfType<IntegerAttr>(device::DeviceDialect::kWorkspaceLowerBoundAttr);
    workspace->lower_bound = bound ? uint64_t(bound.getInt()) : 0;
    stage->workspaces.push_back(std::move(workspace));
    auto subnet = std::make_unique<bmodel::SubnetDefT>();
    subnet->name = "main", subnet->kind = bmodel::SubnetKind::Npu, subnet->isa = options.chip.name;
    subnet->kernel_abi = hw::kIsaVersion, subnet->code_segment = int32_t(kCodeSegment);
    stage->subnets.push_back(std::move(subnet));
    model.nets.push_back(std::move(net));
  }

  llvm::Error addPort(unsigned index, bool isOutput) {
    auto text = [&](StringRef attribute) {
      auto found = isOutput ? function.getResultAttrOfType<StringAttr>(index, attribute)
                            : function.getArgAttrOfType<StringAttr>(index, attribute);
      return found ? found.str() : std::string();
    };
    std::string name = text(top::TopDialect::kNameAttr);
    auto type =
        cast<RankedTensorType>(isOutput ? function.getResultTypes()[index] : function.getArgumentTypes()[index]);
    std::optional<bmodel::DType> dtype = dtypeOf(type.getElementType());
    if (!dtype) {
      return top::unsupported("'" + name + "' has a type that no model holds");
    }
    uint32_t slot = bmodel::addTensor(*stage, name, *dtype, type.getShape());
    bmodel::TensorDefT &tensor = *stage->tensors[slot];
    tensor.role = isOutput ? bmodel::TensorRole::Output : bmodel::TensorRole::Input;
    tensor.place = bmodel::Place::Caller;
    tensor.bytes = uint64_t(device::physicalBytes(type));
    tensor.onnx_names = {name};
    if (!isOutput) {
      tensor.preprocess = text(top::TopDialect::kPreprocessAttr);
    }
    (isOutput ? stage->outputs : stage->inputs).push_back(slot);
    return llvm::Error::success();
  }

  func::FuncOp function;
  const NpuDeployOptions &options;
  const npu::NpuProgram &program;
  bmodel::ModelDefT model;
  bmodel::StageDefT *stage = nullptr;
};

hw::Report estimate(const npu::NpuProgram &program, const hw::Chip &chip) {
  std::vector<hw::Cost> costs;
  for (const hw::Descriptor &command : program.commands) {
    costs.push_back(hw::costOf(command, chip));
  }
  const hw::Descriptor *commands = program.commands.data();
  std::vector<hw::Span> spans = hw::schedule(commands, costs.data(), costs.size(), chip);
  return hw::reportOf(commands, costs.data(), spans.data(), costs.size(), program.sizes.inputs);
}

} // namespace

std::optional<std::string> findNpuChip(StringRef name) {
  static const std::pair<StringRef, StringRef> chips[] = {
#include "NpuChips.inc"
  };
  for (const auto &[known, text] : chips) {
    if (known == name) {
      return text.str();
    }
  }
  return std::nullopt;
}

llvm::Expected<NpuDeployResult> deployNpu(ModuleOp module, const NpuDeployOptions &options,
                                          const PhaseObserver &observer) {
  llvm::Expected<func::FuncOp> function = deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  auto quantization = prepareModel(*function, options.quantization, options.inputsOutputs, observer);
  if (!quantization) {
    return quantization.takeError();
  }
  NpuDeployResult result;
  result.quantization = std::move(**quantization);
  {
    Phase phase(observer, "lower");
    PassManager passes(module.getContext());
    npu::buildNpuPipeline(passes);
    if (failed(passes.run(module))) {
      return llvm::createStringError("failed to lower the model to device operations");
    }
  }
  if (!options.deviceMlir.empty()) {
    if (llvm::Error error = writeText(module, options.deviceMlir)) {
      return std::move(error);
    }
  }
  observer.begin("emit");
  FailureOr<npu::NpuProgram> program = npu::emitProgram(*function, options.chip);
  observer.end();
  if (failed(program)) {
    return top::unsupported("chip '" + options.chip.name +
                            "' cannot run the whole model, and nothing is left to the host yet");
  }
  Phase phase(observer, "write");
  llvm::Expected<bmodel::ModelDefT> model = NpuPlanner(*function, options, *program).plan();
  if (!model) {
    return model.takeError();
  }
  addScales(*model->nets.front()->stages.front(), result.quantization);
  std::vector<bmodel::SegmentContents> segments;
  segments.emplace_back(bmodel::SegmentKind::Code);
  segments.emplace_back(bmodel::SegmentKind::Constants);
  segments[0].append(
      {reinterpret_cast<const char *>(program->commands.data()), program->commands.size() * hw::kDescriptorBytes});
  segments[1].append({program->constants.data(), program->constants.size()});
  if (std::string message = bmodel::writeModel(*model, segments, options.output); !message.empty()) {
    return llvm::createStringError("failed to write '" + options.output + "': " + message);
  }
  result.workspaceBytes = program->sizes.workspace;
  result.workspaceLowerBound = model->nets.front()->stages.front()->workspaces.front()->lower_bound;
  result.codeBytes = segments[0].getBytes(), result.constantBytes = segments[1].getBytes();
  result.commands = program->commands.size();
  result.report = estimate(*program, options.chip);
  return result;
}

} // namespace tessera::codegen
