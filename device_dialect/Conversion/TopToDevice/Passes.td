//===- Passes.td - Conversion from Top to device ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_TO_DEVICE_PASSES
#define TOP_TO_DEVICE_PASSES

include "mlir/Pass/PassBase.td"

def ConvertTopToDevicePass : Pass<"convert-top-to-device", "::mlir::func::FuncOp"> {
  let summary = "Lower a static Top function to the device vocabulary";
  let description = [{
    Before: Top ops with static shapes. After: device ops over the same tensors, row-major; constants stay
    `top.weight` and `top.constant`. Every elementwise op becomes a `device.map`, every copy a `device.copy`;
    nothing is fused and no layout is chosen here.

    Integer arithmetic replaces ops between `top.dequantize` and `top.quantize`: convolutions, matmuls, sums and means
    of 8-bit operands become integer device ops whose epilogue requantises (or gives f32 if no quantize follows);
    copies, maxima and nearest resizes run on the integers. An op without an integer form becomes three maps:
    dequantise, compute in float, quantise.
    Ops that cannot be lowered are all reported at once, each with its ONNX name, the violated constraint, the actual
    and the allowed value and what to do; the function is then left unchanged.
    ```mlir
    %y = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %y = device.map (%x) {
    ^bb0(%e: f32):
      %zero = arith.constant 0.0 : f32
      %m = arith.maximumf %e, %zero : f32
      device.yield %m : f32
    } : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [Option<"requantisation", "requantise", "std::string", "\"float\"",
      "How integer sums become narrow integers: float, fixed or tflite (bmodel/numerics.h)">];
  let statistics = [Statistic<"numLowered", "lowered-ops", "Top ops replaced by device ops">];
}

#endif // TOP_TO_DEVICE_PASSES
