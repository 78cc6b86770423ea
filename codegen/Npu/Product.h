//===- Product.h - Convolutions and matrix products on the NPU --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PRODUCT_H
#define TESSERA_CODEGEN_NPU_PRODUCT_H

#include "codegen/Npu/OutputStage.h"
#include "codegen/Npu/Stream.h"
#include "mlir/IR/ValueRange.h"

namespace tessera::npu {

/// An integer product as the matrix unit sees it.
struct Product {
  Place x, y;
  Place weights; ///< 1, outputs, taps, channels of a group; where depthwise 1, outputs, kernel rows, columns
  bmodel::npu::Window window; ///< paddings of the whole x
  uint32_t groups = 1;
  std::vector<int32_t> bias; ///< one per output, or none

  // How sums become results: by the output stage ...
  std::optional<bmodel::npu::Output> stage;
  std::vector<float> factors;    ///< one per output, where the stage has it so
  std::optional<Place> residual; ///< its second addend
  // ... or by a program on raw sums and what broadcasts to y.
  Instructions program;
  llvm::SmallVector<Place> extras;

  bool isDepthwise() const { return groups > 1 && groups == x.dim(1) && groups == y.dim(1); }
};

/// The place of an operand of an epilogue, broadcast to y.
using PlaceExtra = llvm::function_ref<llvm::Expected<Place>(mlir::Value)>;

/// Fills in how sums become results stored as |result|. The error says what of the epilogue cannot be computed.
llvm::Error setEpilogue(Product &product, mlir::Region &epilogue, mlir::ValueRange extras, mlir::Type result,
                        PlaceExtra placeExtra);

/// Cuts the product into tiles and appends them.
llvm::Error appendProduct(Product &product, Stream &stream);

/// The values of a constant; |what| names it in the error where it is none.
template <typename T>
llvm::Expected<std::vector<T>> constantValues(mlir::Value value, const char *what);
extern template llvm::Expected<std::vector<float>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<char>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<int32_t>> constantValues(mlir::Value, const char *);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PRODUCT_H
