//===- KernelPch.h - Headers of libraries that emit kernels, parsed once --===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CMAKE_KERNELPCH_H
#define TESSERA_CMAKE_KERNELPCH_H

#include "device_dialect/IR/DeviceOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#endif // TESSERA_CMAKE_KERNELPCH_H
