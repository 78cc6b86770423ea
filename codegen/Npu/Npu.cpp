//===- Npu.cpp - A device function as a program of the NPU ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Npu.h"

#include "codegen/Npu/Emitter.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace tessera::npu {
namespace hw = bmodel::npu;

void buildNpuPipeline(OpPassManager &manager) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(device::createConvertTopToDevicePass());
  functions.addPass(device::createVerifyLoweredPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(device::createSimplifyCopiesPass());
  functions.addPass(device::createFormTablesPass());
  functions.addPass(device::createFuseEpiloguesPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(device::createAssignAddressesPass());
  functions.addPass(device::createVerifyAddressesPass());
}

static hw::RegionSizes sizesOf(func::FuncOp function, size_t constants) {
  hw::RegionSizes sizes;
  sizes.constants = constants;
  if (auto bytes = function->getAttrOfType<IntegerAttr>(device::DeviceDialect::kWorkspaceBytesAttr)) {
    sizes.workspace = uint64_t(bytes.getInt());
  }
  for (Type type : function.getArgumentTypes()) {
    sizes.io.push_back(uint64_t(device::physicalBytes(cast<RankedTensorType>(type))));
  }
  sizes.inputs = uint32_t(sizes.io.size());
  for (Type type : function.getResultTypes()) {
    sizes.io.push_back(uint64_t(device::physicalBytes(cast<RankedTensorType>(type))));
  }
  return sizes;
}

FailureOr<NpuProgram> emitProgram(func::FuncOp function, const hw::Chip &chip) {
  if (chip.requantise != "float") {
    return function.emitError() << "chip '" << chip.name << "' requantises in integers ('" << chip.requantise
                                << "'), which is not emitted yet";
  }
  Emitter emitter(function, chip);
  if (failed(emitter.run())) {
    return failure();
  }
  NpuProgram program;
  program.commands = std::move(emitter.stream.commands);
  program.constants = std::move(emitter.stream.constants);
  program.layers = std::move(emitter.stream.layers);
  program.sizes = sizesOf(function, program.constants.size());
  hw::assignWaits(program.commands, chip);
  bmodel::Status status;
  const auto *constants = reinterpret_cast<const unsigned char *>(program.constants.data());
  const hw::Descriptor *commands = program.commands.data();
  size_t count = program.commands.size();
  if (!hw::checkStream(commands, count, chip, program.sizes, constants, status)) {
    return function.emitError() << "internal error: " << status.message;
  }
  return program;
}

} // namespace tessera::npu
