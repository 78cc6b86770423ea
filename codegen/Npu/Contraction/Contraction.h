//===- Contraction.h - Convolutions and matmuls on the NPU ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CONTRACTION_CONTRACTION_H
#define TESSERA_CODEGEN_NPU_CONTRACTION_CONTRACTION_H

#include "codegen/Npu/Contraction/OutputStage.h"
#include "codegen/Npu/Contraction/Tiler.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "device_dialect/IR/WeightScales.h"
#include "mlir/IR/ValueRange.h"
#include <array>

namespace tessera::npu {

/// The stage at which kernel rows become input channels (im2col), if at all.
enum class Im2colRows : uint8_t {
  none,
  outside, ///< while x is loaded from off-chip memory
  inside   ///< by moves within local memory
};

/// Third spatial dim of a kernel. The images of x and y are the planes of one volume.
struct Depth {
  uint32_t kernel = 1, step = 1, dilation = 1;
  int32_t padding = 0;

  /// Returns true if planes are independent of each other.
  bool isPlain() const { return kernel == 1 && step == 1 && padding == 0; }
};

/// Kernel taps that become input channels.
struct Im2col {
  Im2colRows rows = Im2colRows::none;
  uint32_t columns = 1; ///< number of neighbouring kernel columns that become channels as well, ordered by columns,
                        ///< then rows

  explicit operator bool() const { return rows != Im2colRows::none; }
};

/// A form of a contraction with its estimated cycles, including moves that the matrix unit waits for.
struct Im2colPlan {
  Im2col im2col;
  double cycles;
};

/// The input of a map that the contraction computes, tile by tile, to get x.
struct MappedInput {
  TileView from; ///< in off-chip memory
  Instructions program;
};

/// The weights of a contraction.
struct ContractionWeights {
  Shape shape; ///< 1, outputs, taps, channels of a group; depthwise: 1, outputs, kernel rows, columns
  bmodel::npu::Type type = bmodel::npu::Type::i8;
  std::vector<char> ordered;        ///< weights in that order; empty if |record| is known
  std::optional<TileView> variable; ///< weights that are not constant, as 1, outputs, 1, channels
  uint64_t *record = nullptr;       ///< offset of the outputs' weights, biases and factors among the constants
};

/// How sums become results.
struct ContractionEpilogue {
  std::vector<int32_t> bias; ///< one per output, or none; for float sums the bits of f32

  // Either by the output stage ...
  std::optional<bmodel::npu::Output> stage;
  std::vector<int32_t> factors;     ///< one per output, if the stage needs them: bits of f32, or mantissas
  std::vector<int32_t> gains;       ///< likewise, applied behind the function; or shifts
  std::optional<TileView> residual; ///< second addend of the stage
  // ... or by a program on raw sums and operands that broadcast to y.
  Instructions program;
  llvm::SmallVector<TileView> extras;

  /// Returns the number of parameters per output: none, bias and factor, or bias, factor and gain (mantissa and shift
  /// in integral stages).
  uint32_t parameters() const;
  /// Returns the bias, factor and gain of an output; those that do not exist are 0, 1 and 1.
  std::array<int32_t, 3> parametersOf(size_t output) const;
};

/// A convolution or matmul as the matrix unit executes it.
struct Contraction {
  TileView x, y; ///< x has only sizes and type if it is computed from |mapped|
  std::optional<MappedInput> mapped;
  ContractionWeights weights;
  bmodel::npu::Window window; ///< with the paddings of the complete x
  Depth depth;
  uint32_t groups = 1;
  unsigned outputsDim = 1; ///< dim of the outputs in y and in operands of the epilogue; 3 if rows are spread over the
                           ///< lanes
  Im2col im2col;           ///< if set, weights.shape has the remaining columns as taps, and all folded taps as channels
  ContractionEpilogue epilogue;

  bool sumsFloats() const { return bmodel::npu::isFloat(x.tensor.type); }
  bool isDepthwise() const { return groups > 1 && groups == x.dim(1) && groups == y.dim(1); }
};

/// Returns the lane in which the columns of a tile of results begin: the lane of y, of x if |hasColumns|, of the
/// residual or of an extra, whichever is the first in local memory, or 0.
uint16_t laneOfTile(const Contraction &contraction, bool hasColumns, const Shape &begin, const Shape &size,
                    const Chip &chip);

/// Places an operand of an epilogue, broadcast to y.
using PlaceExtra = llvm::function_ref<llvm::Expected<TileView>(mlir::Value)>;

/// Sets how sums become results of type |result|. The error names the part of the epilogue that is not supported.
llvm::Error setEpilogue(Contraction &contraction, mlir::Region &epilogue, mlir::ValueRange extras, mlir::Type result,
                        const CommandStream &stream, PlaceExtra placeExtra);

/// Checks that the matrix unit supports these operand types.
llvm::Error checkContraction(mlir::Value x, mlir::Value w, const Chip &chip);

/// Constant operands of a contraction.
struct ContractionConstants {
  mlir::Value w, bias, scales; ///< bias and scales may be null
  device::WeightScales order;  ///< layout of scales

  /// Sets bias, factors and the type of weights. The epilogue must be set before.
  llvm::Error setParameters(Contraction &contraction) const;
  /// Returns the weights, converted to |type|.
  llvm::Expected<std::vector<char>> weights(bmodel::npu::Type type) const;
  bool setFactors(Contraction &contraction, llvm::ArrayRef<float> values) const;
};

/// Turns kernel rows into channels: from outputs, channels, rows, columns to outputs, rows * channels, columns.
/// |columns|: bytes.
std::vector<char> foldRows(llvm::ArrayRef<char> bytes, size_t outputs, size_t channels, size_t rows, size_t columns);
/// Returns weights of |size| bytes each in the order in which the matrix unit reads them: all channels of a tap one
/// after another.
std::vector<char> orderWeights(std::vector<char> bytes, size_t outputs, size_t channels, size_t taps, size_t size);

/// Cuts the contraction into tiles and appends them.
llvm::Error appendContraction(Contraction &contraction, Tiler &tiler);

/// Weighs the gain of taps as channels against the time to lay out x accordingly.
Im2colPlan planIm2col(const Contraction &contraction, const Chip &chip);
/// Returns the plans for x in off-chip memory and for x in local memory.
TapsAttr chooseTaps(const Contraction &contraction, mlir::MLIRContext *context, const Chip &chip);
/// Returns the plan that applies to the location of x. Fails if it is not possible.
llvm::Expected<Im2col> im2colOf(TapsAttr taps, const Contraction &contraction);
/// Returns |window| after folding kernel columns into channels: the remaining columns are further apart.
bmodel::npu::Window windowOfIm2col(bmodel::npu::Window window, Im2col im2col);
/// Loads x of a tile with its taps as channels. The result has one row for each row of the tile.
TileView loadIm2col(const Contraction &contraction, const Shape &begin, const Shape &size, CommandStream &stream,
                    LocalBudget &localBudget, Tile &tile);

/// Buffer in which taps are laid out as channels. The first |block| channels are the kernel rows, the others kernel
/// columns.
struct Im2colBuffer {
  TileView buffer;
  uint32_t block, left, seenColumns; ///< seenColumns: columns of x in the buffer, with |left| columns before them
};
/// Numbers of rows and columns around the region of a buffer that is copied.
struct Edges {
  uint32_t top, bottom, left, right;
};
/// Returns the commands that fill the edges, or the whole buffer if that takes less time. They precede the copies.
std::vector<bmodel::npu::Descriptor> fillEdges(const TileView &place, const Edges &edges, int16_t value,
                                               const Chip &chip);
/// Returns |rows| rows of x: every |step|-th one from |begin| on.
TileView everyRow(TileView x, uint32_t begin, uint32_t step, uint32_t rows, const Chip &chip);
/// The rows [low, end), counted from row |begin| of the result and out of |rows|, for which kernel row |k| sees a row
/// of x.
struct SeenRows {
  uint32_t low, end;
  bool operator==(const SeenRows &other) const { return low == other.low && end == other.end; }
};
SeenRows rowsSeen(const Contraction &contraction, uint32_t begin, uint32_t rows, uint32_t k);

/// Returns true if the contraction can compute a map on x while loading it; kernel rows then become channels. Chips
/// with lanes for only one band are excluded: on these, first layers run slice by slice, and the map would delay each
/// slice.
bool canMapInput(const Contraction &contraction, const Chip &chip);
/// Returns the number of rows that the buffer of a mapped x needs beyond the rows of a tile.
uint32_t mappedShifts(const Contraction &contraction);
/// Computes x of a tile as product.mapped says, and lays out the kernel rows as channels.
void loadMapped(const Contraction &contraction, const Im2colBuffer &place, const Shape &begin, const Shape &size,
                CommandStream &stream, LocalBudget &localBudget, Tile &tile);
/// Returns the cycles of the matrix unit if taps are folded like this.
double multiplyCycles(const Contraction &contraction, Im2col im2col, const Chip &chip);
/// Estimated cycles of the DMA and the vector unit for loading and mapping |rows| rows of the result, with the number
/// of bands that is best beside |multiply| cycles of the matrix unit.
struct MappedCycles {
  uint32_t bands;
  double moves, computes;
};
MappedCycles planBands(const Contraction &contraction, uint32_t rows, double multiply, const Chip &chip);
/// Returns true if taps become channels also if the map stays in front of the contraction, so that the weights are the
/// same in both cases.
bool usesIm2colUnmapped(const Contraction &contraction, const Chip &chip);
/// Returns true if mapping x while loading takes less time than a separate map, judging by this contraction alone.
bool paysToMap(const Contraction &contraction, const Chip &chip);

/// Loads |x| of a tile (all of the channels in |x|) with the planes that a window sees laid out as channels or rows.
TileView loadPlanes(const Contraction &contraction, const TileView &x, const Shape &begin, const Shape &size,
                    const Chip &chip, LocalBudget &localBudget, Tile &tile);
/// Returns the window over the result of loadPlanes. The padding of rows that remain rows is unchanged.
bmodel::npu::Window windowOfPlanes(const Contraction &contraction);

/// Returns the values of a constant. |what| names it in the error if it is not one.
template <typename T>
llvm::Expected<std::vector<T>> constantValues(mlir::Value value, const char *what);
extern template llvm::Expected<std::vector<float>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<char>> constantValues(mlir::Value, const char *);
extern template llvm::Expected<std::vector<int32_t>> constantValues(mlir::Value, const char *);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CONTRACTION_CONTRACTION_H
