//===- PackedWeights.h - Weights of 2, 4 or 8 bits in bytes -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MICROSOFT_PACKEDWEIGHTS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MICROSOFT_PACKEDWEIGHTS_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Unpacks the numbers in the constant bytes |packed| [..., bytes] to u8 [..., count]. The first number is in the
/// lowest bits.
mlir::Value unpackBits(NodeImporter &n, mlir::Value packed, int64_t bits, int64_t count);
/// Returns the attribute |name|, a number of bits. Rejects other numbers than 2, 4 and 8.
int64_t readBits(NodeImporter &n, llvm::StringRef name);
/// Returns (q - zero) * scale in the type of |scale|.
mlir::Value dequantise(NodeImporter &n, mlir::Value q, mlir::Value zero, mlir::Value scale);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MICROSOFT_PACKEDWEIGHTS_H
