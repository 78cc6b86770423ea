//===- Product.h - Convolutions and matrix products on the NPU --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PRODUCT_H
#define TESSERA_CODEGEN_NPU_PRODUCT_H

#include "codegen/Npu/IR/NpuDialect.h"
#include "codegen/Npu/OutputStage.h"
#include "codegen/Npu/Tiler.h"
#include "device_dialect/IR/WeightScales.h"
#include "mlir/IR/ValueRange.h"

namespace tessera::npu {

/// Kernel rows as channels: where x is laid out so.
enum class FoldRows : uint8_t {
  none,
  outside, ///< on the way from outside memory
  inside   ///< from local memory to local memory
};

/// A kernel's third dim: images of x and y are planes of one volume.
struct Depth {
  uint32_t kernel = 1, step = 1, dilation = 1;
  int32_t padding = 0;

  /// Each plane by itself.
  bool isPlain() const { return kernel == 1 && step == 1 && padding == 0; }
};

/// Taps of a kernel as channels.
struct Fold {
  FoldRows rows = FoldRows::none;
  uint32_t columns = 1; ///< so many neighbouring columns of the kernel, too, by columns, then rows

  explicit operator bool() const { return rows != FoldRows::none; }
};

/// A product as the matrix unit sees it.
struct Product {
  TileView x, y;
  Shape weights; ///< 1, outputs, taps, channels of a group; where depthwise 1, outputs, kernel rows, columns
  bmodel::npu::Type weightType = bmodel::npu::Type::i8;
  std::vector<char> ordered;      ///< weights in that order; empty where the record is known
  std::optional<TileView> second; ///< weights that are no constant, as 1, outputs, 1, channels
  uint64_t *record = nullptr;     ///< where weights, bias and factor of each output are among the constants
  bmodel::npu::Window window;     ///< paddings of the whole x
  Depth depth;
  uint32_t groups = 1;
  unsigned outputsDim = 1; ///< the dim of y and of operands of the epilogue that outputs are; 3 where lanes have rows
  Fold fold; ///< then weights have taps of columns alone, or a single one, and channels of all that is folded
  std::vector<int32_t> bias; ///< one per output, or none; of floats their bits

  // How sums become results: by the output stage ...
  std::optional<bmodel::npu::Output> stage;
  std::vector<int32_t> factors;     ///< one per output, where the stage has it so: the bits of f32, or mantissas
  std::vector<int32_t> gains;       ///< the same, behind the function; or shifts
  std::optional<TileView> residual; ///< its second addend
  // ... or by a program on raw sums and what broadcasts to y.
  Instructions program;
  llvm::SmallVector<TileView> extras;

  bool sumsFloats() const { return bmodel::npu::isFloat(x.tensor.type); }
  bool isDepthwise() const { return groups > 1 && groups == x.dim(1) && groups == y.dim(1); }
};

/// The lane that the columns of a tile of results begin in, as far as they are in local memory already: those of y, of
/// x if it |hasColumns|, of the residual or of extras.
uint16_t laneOfTile(const Product &product, bool hasColumns, const Shape &begin, const Shape &size, const Chip &chip);

/// The place of an operand of an epilogue, broadcast to y.
using PlaceExtra = llvm::function_ref<llvm::Expected<TileView>(mlir::Value)>;

/// Fills in how sums become results stored as |result|. The error says what of the epilogue cannot be computed.
llvm::Error setEpilogue(Product &product, mlir::Region &epilogue, mlir::ValueRange extras, mlir::Type result,
                        const Stream &stream, PlaceExtra placeExtra);

/// Whether the matrix unit multiplies such operands.
llvm::Error checkProduct(mlir::Value x, mlir::Value w, const Chip &chip);

/// What of a product is constant.
struct ProductConstants {
  mlir::Value w, bias, scales; ///< the last two may be null
  device::WeightScales order;  ///< of scales

  /// Bias, factors and the type of weights; the epilogue is set before.
  llvm::Error setParameters(Product &product) const;
  /// The weights in that type.
  llvm::Expected<std::vector<char>> weights(bmodel::npu::Type type) const;
  bool setFactors(Product &product, llvm::ArrayRef<float> values) const;
};

/// Kernel rows as channels: outputs, rows * channels, columns of outputs, channels, rows, columns. |columns|: bytes.
std::vector<char> foldRows(llvm::ArrayRef<char> bytes, size_t outputs, size_t channels, size_t rows, size_t columns);
/// Weights of |size| bytes in the order in which the unit reads them: channels of a tap one after another.
std::vector<char> orderWeights(std::vector<char> bytes, size_t outputs, size_t channels, size_t taps, size_t size);

/// Cuts the product into tiles and appends them.
llvm::Error appendProduct(Product &product, Tiler &tiler);

/// What the matrix unit gains by taps as channels against what it takes to lay x out so.
Fold planFold(const Product &product, const Chip &chip);
/// Cycles of the product in that form, the moves included that the matrix unit waits for.
double productCycles(const Product &product, const Chip &chip);
/// The same for x as it is, outside the chip, and for x in local memory.
TapsAttr chooseTaps(const Product &product, mlir::MLIRContext *context, const Chip &chip);
/// What was chosen, for x where it is. The error says why it cannot be.
llvm::Expected<Fold> foldOf(TapsAttr taps, const Product &product);
/// |window| over what has columns of the kernel as channels: the others are that many apart.
bmodel::npu::Window windowOfFold(bmodel::npu::Window window, Fold fold);
/// x of a tile, laid out so: as many rows as the tile has.
TileView loadFolded(const Product &product, const Shape &begin, const Shape &size, const Chip &chip,
                    LocalBudget &localBudget, Tile &tile);

/// |x| of a tile, as many channels as it has, with the planes that a window sees as channels or rows.
TileView loadPlanes(const Product &product, const TileView &x, const Shape &begin, const Shape &size, const Chip &chip,
                    LocalBudget &localBudget, Tile &tile);
/// The window over what loadPlanes makes; padding of rows that stay rows is as it was.
bmodel::npu::Window windowOfPlanes(const Product &product);

/// The values of a constant; |what| names it in the error where it is none.
template <typename T>
llvm::Expected<std::vector<T>> constantValues(mlir::Value value, const char *what);
extern template llvm::Expected<std::vector<float>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<char>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<int32_t>> constantValues(mlir::Value, const char *);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PRODUCT_H
