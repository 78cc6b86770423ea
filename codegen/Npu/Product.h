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

/// A form of a product with its cycles, the moves included that the matrix unit waits for.
struct FoldPlan {
  Fold fold;
  double cycles;
};

/// What a map makes x of: the product computes it, tile by tile.
struct MappedInput {
  TileView from; ///< outside the chip
  Instructions program;
};

/// A product as the matrix unit sees it.
struct Product {
  TileView x, y; ///< x: of what |mapped| makes sizes and type alone
  std::optional<MappedInput> mapped;
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
FoldPlan planFold(const Product &product, const Chip &chip);
/// What the plans are for x as it is, outside the chip, and for x in local memory.
TapsAttr chooseTaps(const Product &product, mlir::MLIRContext *context, const Chip &chip);
/// What was chosen, for x where it is. The error says why it cannot be.
llvm::Expected<Fold> foldOf(TapsAttr taps, const Product &product);
/// |window| over what has columns of the kernel as channels: the others are that many apart.
bmodel::npu::Window windowOfFold(bmodel::npu::Window window, Fold fold);
/// x of a tile, laid out so: as many rows as the tile has.
TileView loadFolded(const Product &product, const Shape &begin, const Shape &size, Stream &stream,
                    LocalBudget &localBudget, Tile &tile);

/// Where taps are laid out as channels: |block| of them are of the rows of the kernel, the others of its columns.
struct FoldedPlace {
  TileView made;
  uint32_t block, left, seenColumns; ///< columns of x, and how many there are before them
};
/// Rows and columns around what is copied into a place.
struct Edges {
  uint32_t top, bottom, left, right;
};
/// Fills them before the copies, or all of the place where that takes less time.
std::vector<bmodel::npu::Descriptor> fillEdges(const TileView &place, const Edges &edges, int16_t value,
                                               const Chip &chip);
/// Every |step|-th row, |rows| of them.
TileView everyRow(TileView x, uint32_t begin, uint32_t step, uint32_t rows, const Chip &chip);
/// The rows [low, end) of |rows| from |begin| on for which kernel row |k| sees a row of x.
struct SeenRows {
  uint32_t low, end;
  bool operator==(const SeenRows &other) const { return low == other.low && end == other.end; }
};
SeenRows rowsSeen(const Product &product, uint32_t begin, uint32_t rows, uint32_t k);

/// Whether x can be what a map makes on the way: kernel rows become channels then. Chips with lanes for one band alone
/// run first layers slice by slice, where such a step in front waits for the slice.
bool canMapInput(const Product &product, const Chip &chip);
/// Rows beyond those of a tile that its place has then.
uint32_t mappedShifts(const Product &product);
/// Computes x of a tile where product.mapped says how, and lays out the rows of the kernel.
void loadMapped(const Product &product, const FoldedPlace &place, const Shape &begin, const Shape &size, Stream &stream,
                LocalBudget &localBudget, Tile &tile);
/// Cycles of the matrix unit where x is laid out so.
double multiplyCycles(const Product &product, Fold fold, const Chip &chip);
/// Cycles that loading and mapping |rows| rows of the result take the DMA and the vector unit, about, in so many bands
/// as is best beside |multiply| cycles of the matrix unit.
struct MappedCycles {
  uint32_t bands;
  double moves, computes;
};
MappedCycles planBands(const Product &product, uint32_t rows, double multiply, const Chip &chip);
/// Whether taps are channels, too, where the map stands in front of the product: its weights are the same then.
bool foldsUnmapped(const Product &product, const Chip &chip);
/// Whether mapping x on the way takes less time than a map in front, as far as the product alone tells.
bool paysToMap(const Product &product, const Chip &chip);

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
