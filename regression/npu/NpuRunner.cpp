//===- NpuRunner.cpp - Device functions on the NPU's simulator ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/NpuRunner.h"

#include "bmruntime/src/npu/Simulator.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Reference/Support.h"

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

/// What the results are after a run on zeroed memories.
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

std::string differenceOf(const std::string &name, size_t at, size_t count, double got, double wanted) {
  return "result '" + name + "' differs from the reference at " + std::to_string(at) + " of " + std::to_string(count) +
         ": " + std::to_string(got) + ", expected " + std::to_string(wanted);
}

/// What is farther from |wanted| than |tolerance| allows.
std::string compareNear(const std::string &name, const top::HostTensor &wanted, const Bytes &got, double tolerance) {
  top::HostTensor made(wanted.getType());
  std::memcpy(made.getBytes().data(), got.data(), made.getBytes().size());
  std::vector<double> expected = top::reference::read<double>(wanted), values = top::reference::read<double>(made);
  double largest = 1e-3;
  if (auto integer = dyn_cast<IntegerType>(wanted.getType().getElementType())) {
    largest = std::ldexp(1.0, int(std::min(integer.getWidth(), 16u))), tolerance = std::max(tolerance, 1.5 / largest);
  } else {
    for (double value : expected) {
      largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0);
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    bool isSame = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    if (!isSame && !(std::abs(values[i] - expected[i]) <= tolerance * largest)) {
      return differenceOf(name, i, expected.size(), values[i], expected[i]);
    }
  }
  return "";
}

std::string compare(func::FuncOp function, const top::TensorMap &expected, const std::vector<Bytes> &io,
                    double tolerance) {
  for (unsigned r = 0; r < function.getNumResults(); ++r) {
    std::string name = nameOf(function, true, r);
    const top::HostTensor &tensor = expected.find(name)->second;
    llvm::ArrayRef<char> wanted = tensor.getBytes();
    const Bytes &got = io[function.getNumArguments() + r];
    if (tolerance > 0) {
      if (std::string fault = compareNear(name, tensor, got, tolerance); !fault.empty()) {
        return fault;
      }
      continue;
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (got[i] != static_cast<unsigned char>(wanted[i])) {
        return "result '" + name + "' differs from the reference at byte " + std::to_string(i) + " of " +
               std::to_string(wanted.size()) + ": " + std::to_string(got[i]) + ", expected " +
               std::to_string(static_cast<unsigned char>(wanted[i]));
      }
    }
  }
  return "";
}

} // namespace

RunResult checkOnNpu(func::FuncOp function, const bmodel::npu::Chip &chip, const top::TensorMap &inputs, int orders,
                     const NpuOptions &options, double tolerance) {
  RunResult result;
  FailureOr<NpuProgram> program = emitProgram(function, chip, options);
  FailureOr<top::TensorMap> expected = top::Evaluator().run(function, inputs);
  if (failed(program) || failed(expected)) {
    result.fault = failed(program) ? "is not emitted" : "has no reference";
    return result;
  }
  const auto &commands = program->commands;
  result.commands = commands.size(), result.groups = program->decisions.groups.size(), result.layers = program->layers;
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
    result.fault = result.fault.empty() ? compare(function, *expected, io, tolerance) : result.fault;
  }
  return result;
}

} // namespace tessera::npu
