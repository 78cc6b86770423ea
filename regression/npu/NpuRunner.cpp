//===- NpuRunner.cpp - Runs device functions on the NPU simulator ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/NpuRunner.h"

#include "codegen/Npu/Transforms/Programs.h"
#include "regression/npu/NpuReference.h"

#include "bmruntime/src/npu/Simulator.h"
#include "codegen/Npu/Stream/CommandStream.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Reference/Support.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace tessera::npu {
namespace {

using Bytes = std::vector<unsigned char>;

std::string nameOf(func::FuncOp function, bool isResult, unsigned index) {
  auto name = isResult ? function.getResultAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr)
                       : function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
  return name ? name.str() : "";
}

/// Runs the program on zeroed memories and stores the results in |io|.
std::string run(const NpuProgram &program, const bmodel::npu::Chip &chip, std::vector<Bytes> &io, const size_t *order) {
  bmodel::Status status;
  bmrt::npu::Simulator simulator(chip);
  auto *constants = reinterpret_cast<const unsigned char *>(program.constants.data());
  if (!simulator.allocate()) {
    return "no memory";
  }
  Bytes workspace(program.sizes.workspace);
  std::vector<bmrt::npu::Area> areas;
  for (Bytes &each : io) {
    areas.push_back({each.data(), each.size()});
  }
  bmrt::npu::Buffers buffers{{const_cast<unsigned char *>(constants), program.constants.size()},
                             {workspace.data(), workspace.size()},
                             areas.data(),
                             uint32_t(areas.size())};
  return simulator.run(program.commands.data(), program.commands.size(), buffers, status, order) ? "" : status.message;
}

/// Returns the first element whose bits differ, or "". NaNs compare equal, because their bits are unspecified.
std::string compareBits(const std::string &name, const top::HostTensor &wanted, const Bytes &got) {
  top::HostTensor result(wanted.getType());
  std::memcpy(result.getBytes().data(), got.data(), result.getBytes().size());
  if (std::memcmp(result.getBytes().data(), wanted.getBytes().data(), result.getBytes().size()) == 0) {
    return "";
  }
  size_t size = size_t(top::elementBytes(wanted.getElementType()));
  std::vector<double> values = top::reference::read<double>(result), expected = top::reference::read<double>(wanted);
  for (size_t i = 0; i < values.size(); ++i) {
    bool areNumbers = !std::isnan(values[i]) || !std::isnan(expected[i]);
    if (areNumbers && std::memcmp(&got[i * size], wanted.getBytes().data() + i * size, size) != 0) {
      return llvm::formatv("result '{0}' differs from the reference at {1} of {2}: {3}, expected {4}", name, i,
                           values.size(), std::to_string(values[i]), std::to_string(expected[i]));
    }
  }
  return "";
}

std::string compare(func::FuncOp function, const top::TensorMap &expected, const std::vector<Bytes> &io) {
  for (unsigned r = 0; r < function.getNumResults(); ++r) {
    std::string name = nameOf(function, true, r);
    std::string fault = compareBits(name, expected.find(name)->second, io[function.getNumArguments() + r]);
    if (!fault.empty()) {
      return fault;
    }
  }
  return "";
}

/// Compares results with references for all allowed forms of the float convolutions, i.e. for every choice of the
/// convolutions whose kernel rows are folded into channels. Evaluates each form at most once, because an evaluation
/// takes longer than a run.
class References {
public:
  References(func::FuncOp function, const top::TensorMap &inputs) : function(function), inputs(inputs) {}

  /// Returns "" if the results equal the reference for one of the forms.
  std::string compareWith(const std::vector<Bytes> &io) {
    std::string fault;
    for (uint64_t folded = 0; folded < uint64_t(1) << countFoldable(function); ++folded) {
      if (folded == forms.size()) {
        forms.push_back(evaluateAsNpu(function, inputs, folded));
      }
      const FailureOr<top::TensorMap> &expected = forms[folded];
      std::string difference = failed(expected) ? "has no reference" : compare(function, *expected, io);
      if (difference.empty()) {
        return "";
      }
      fault = fault.empty() ? difference : fault;
    }
    return fault;
  }

private:
  func::FuncOp function;
  const top::TensorMap &inputs;
  std::vector<FailureOr<top::TensorMap>> forms; ///< by the mask of folded convolutions; evaluated on demand
};

/// Checks that emitting from the schedule on the ops produces the same stream again.
std::string emitAgain(func::FuncOp function, const bmodel::npu::Chip &chip, const NpuProgram &program) {
  Constants constants;
  std::vector<UnsupportedOp> unsupportedOps;
  FailureOr<NpuProgram> again = emitScheduledProgram(function, chip, constants, unsupportedOps);
  if (failed(again)) {
    return "its schedule is not emitted";
  }
  if (again->commands.size() != program.commands.size()) {
    return "its schedule produces " + std::to_string(again->commands.size()) + " commands, not " +
           std::to_string(program.commands.size());
  }
  for (size_t i = 0; i < program.commands.size(); ++i) {
    if (std::memcmp(&again->commands[i], &program.commands[i], sizeof(bmodel::npu::Descriptor)) != 0) {
      return "its schedule produces another command " + std::to_string(i) + ":\n" + disassemble(again->commands[i]) +
             "\n" + disassemble(program.commands[i]);
    }
  }
  return again->sizes.workspace == program.sizes.workspace ? "" : "its schedule needs another workspace";
}

/// Parses and finishes the text of npu.program after each phase; returns an error unless the commands are the same.
std::string reenter(ArrayRef<std::string> phases, ArrayRef<bmodel::npu::Descriptor> commands, MLIRContext *context) {
  for (auto [number, text] : llvm::enumerate(phases)) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context);
    FailureOr<std::vector<bmodel::npu::Descriptor>> result = failure();
    if (module) {
      result = finishProgram(*module);
    }
    if (failed(result) || result->size() != commands.size() ||
        std::memcmp(result->data(), commands.data(), commands.size() * sizeof commands[0]) != 0) {
      return llvm::formatv("re-entered behind phase {0} is {1}:\n{2}", number,
                           failed(result) ? "no program" : "another program", text);
    }
  }
  return "";
}

} // namespace

RunResult checkOnNpu(func::FuncOp function, const bmodel::npu::Chip &chip, const top::TensorMap &inputs, int orders,
                     const NpuOptions &options) {
  RunResult result;
  std::vector<std::string> phases;
  NpuOptions observed = options;
  observed.observeIr = [&](ModuleOp module, StringRef phase) {
    if (phase.starts_with("emit-npu-program-")) {
      llvm::raw_string_ostream(phases.emplace_back()) << module;
    }
  };
  FailureOr<NpuProgram> program = emitProgram(function, chip, observed);
  if (failed(program)) {
    result.fault = "is not emitted";
    return result;
  }
  result.fault = emitAgain(function, chip, *program);
  if (result.fault.empty()) {
    result.fault = reenter(phases, program->commands, function.getContext());
  }
  const auto &commands = program->commands;
  result.commands = commands.size(), result.groups = program->layerSchedule.groups.size(),
  result.layers = program->layers;
  std::vector<bmodel::npu::Cost> costs;
  for (const bmodel::npu::Descriptor &command : commands) {
    result.programs += command.header.opcode == bmodel::npu::Opcode::map;
    result.fills += command.header.opcode == bmodel::npu::Opcode::fill;
    if (command.header.opcode == bmodel::npu::Opcode::conv) {
      const auto window = command.as<bmodel::npu::conv_command>().window;
      result.pointwise += window.kernel[0] == 1 && window.kernel[1] == 1;
    }
    costs.push_back(costOf(command, chip));
  }
  std::vector<bmodel::npu::Span> spans = schedule(commands.data(), costs.data(), commands.size(), chip);
  result.report = reportOf(commands.data(), costs.data(), spans.data(), commands.size(), program->sizes.inputs);
  References references(function, inputs);
  for (int turn = -1; turn < orders && result.fault.empty(); ++turn) {
    std::vector<Bytes> io;
    for (uint64_t size : program->sizes.io) {
      io.emplace_back(size);
    }
    for (unsigned a = 0; a < function.getNumArguments(); ++a) {
      llvm::ArrayRef<char> bytes = inputs.find(nameOf(function, false, a))->second.getBytes();
      std::memcpy(io[a].data(), bytes.data(), bytes.size());
    }
    std::vector<size_t> order = bmodel::npu::legalOrder(commands.data(), commands.size(), uint64_t(turn));
    result.fault = run(*program, chip, io, turn < 0 ? nullptr : order.data());
    result.fault = result.fault.empty() ? references.compareWith(io) : result.fault;
  }
  return result;
}

} // namespace tessera::npu
