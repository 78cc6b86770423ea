//===- Costs.h - What a device op costs on the NPU and on the host -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Coarse on purpose: it decides where ops run, and most of those that could run on both sides cost little on both. What
// a finished program for the NPU takes is told by bmodel/npu/latency.h instead.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_COSTS_H
#define TESSERA_CODEGEN_PARTITION_COSTS_H

#include "bmodel/npu/chip.h"
#include "mlir/IR/Operation.h"

namespace tessera::partition {

/// The host beside an NPU, for which there is no description: two cores with 128-bit vectors at about 1.5 GHz.
struct HostModel {
  double products = 12e9;  ///< multiply-adds of integers a second
  double flops = 8e9;      ///< all other operations a second
  double bandwidth = 4e9;  ///< bytes a second, of what an op reads and writes
  double launch = 2e-6;    ///< seconds, of each op
  double handOver = 20e-6; ///< seconds, of an interrupt and of caches that are cleaned, each time a side takes over
};

/// Multiplications of convolutions, matrix products, attention and recurrent layers; 0 of other ops.
int64_t countProducts(mlir::Operation *op);

/// Bytes of the tensor, as it is stored.
int64_t bytesOf(mlir::Value value);

double hostSeconds(mlir::Operation *op, const HostModel &host);

/// As part of a stream: at the peak of the unit that does it, or as fast as its constants come; other operands are
/// taken to lie in local memory.
double npuSeconds(mlir::Operation *op, const bmodel::npu::Chip &chip);

/// Of a value that one side leaves in the DDR for the other: written and read there.
double transferSeconds(int64_t bytes, const bmodel::npu::Chip &chip);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_COSTS_H
