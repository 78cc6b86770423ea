//===- X86Dialect.h - Attributes of the x86 family --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_IR_X86DIALECT_H
#define TESSERA_CODEGEN_X86_IR_X86DIALECT_H

#include "device_dialect/IR/DeviceInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include <optional>

#include "codegen/X86/IR/X86Dialect.h.inc"
#include "codegen/X86/IR/X86Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "codegen/X86/IR/X86Attrs.h.inc"

#endif // TESSERA_CODEGEN_X86_IR_X86DIALECT_H
