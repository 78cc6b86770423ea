//===- tessera-opt.cpp - mlir-opt with the dialects and passes of Tessera ---===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel_format/tools/Program.h"
#include "codegen/Target/Registry.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "quant/Transforms/Passes.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Transforms/Passes.h"

int main(int argc, char **argv) {
  bmodel::program::begin("tessera-opt", argc, argv);
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::quant::QuantDialect, tessera::device::DeviceDialect, tessera::top::TopDialect>();
  tessera::codegen::registerFamilies(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  tessera::top::registerTopTransforms();
  tessera::quant::registerQuantTransforms();
  tessera::device::registerTopToDevicePasses();
  tessera::device::registerDeviceTransformsPasses();
  tessera::device::registerLoweringPipeline();
  for (const tessera::codegen::Family *family : tessera::codegen::families()) {
    family->registerPasses();
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tessera optimizer driver\n", registry));
}
