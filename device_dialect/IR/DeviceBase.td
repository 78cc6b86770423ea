//===- DeviceBase.td - Classes shared by the op families -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_BASE
#define DEVICE_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "device_dialect/IR/DeviceDialect.td"
include "device_dialect/IR/DeviceInterfaces.td"
include "top_dialect/IR/TopInterfaces.td"

def Device_Tensor : AnyTypeOf<[AnyRankedTensor]>;

// Every device op has a reference evaluation through Top's interface, so one evaluator runs functions of both dialects.
// It sees all tensors as row-major, whatever their layout. |work|: the methods of WorkInterface that the op overrides.
class Device_Op<string mnemonic, list<Trait> traits = [], list<string> work = []>
    : Op<Device_Dialect, mnemonic,
         !listconcat(traits, [Pure, DeclareOpInterfaceMethods<ReferenceInterface>, DeclareOpInterfaceMethods<WorkInterface, work>])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// Result elements pass through `epilogue` (see EpilogueInterface). The op's arguments must name the extra operands
// `extras`. Isolated, because a scalar region captures nothing and folders must keep its constants inside. |epilogue|:
// the methods of EpilogueInterface with a default that the op overrides; |work|: those of WorkInterface.
class Device_EpilogueOp<string mnemonic, list<Trait> traits = [], list<string> epilogue = [], list<string> work = []>
    : Device_Op<mnemonic, !listconcat(traits, [IsolatedFromAbove, DeclareOpInterfaceMethods<EpilogueInterface, epilogue>]), work> {
  let regions = (region AnyRegion:$epilogue);
}

#endif // DEVICE_BASE
