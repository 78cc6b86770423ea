//===- AttentionEmission.h - Emission of one attention ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONEMISSION_H
#define TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONEMISSION_H

#include "codegen/Npu/Attention/Attention.h"
#include "codegen/Npu/Emission/Contraction/AttentionBatches.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::npu {

/// An operand of attention: the offset of each batch, and the strides of rows and columns within a matrix, in elements.
struct Matrices {
  mlir::Value value;
  llvm::SmallVector<int64_t> begins;
  int64_t byRow, byColumn;
};

/// Emits one attention: finds regular strides over batches, distributes work over lanes, and places the operands.
class AttentionEmission {
public:
  AttentionEmission(device::AttentionOp op, EmissionContext &context);
  llvm::Error run();
  /// Returns the fastest mapping, and the number of blocks per batch.
  AttentionAttr choose();

private:
  /// Sizes and strides of an operand's view, the latter in elements.
  struct Layout {
    llvm::SmallVector<int64_t, 3> sizes, strides; ///< by c, h, w
  };

  void findCommon();
  int64_t findPeriod() const;
  AttentionEmission partOf(int64_t first, int64_t period) const;
  bool canWorkByBatch() const;
  bool worksByBatch() const;
  /// Operands of several heads that lie side by side in the same rows.
  struct Whole;

  AttentionScales scales();
  void setMapped(AttentionTiles &tiles) const;
  llvm::Error runInParts(int64_t period);
  bool isSideBySide(int64_t period) const;
  llvm::Error placeWhole(Whole &whole, llvm::MutableArrayRef<AttentionEmission> parts);
  uint64_t bytesOfBatch(const Whole &whole) const;
  llvm::Expected<bool> placeMasksOf(Whole &whole, llvm::MutableArrayRef<AttentionEmission> parts);
  llvm::Expected<std::vector<Tile>> tilesOf(const Whole &whole, AttentionTiles &tiles, uint32_t first, uint32_t count);
  llvm::Expected<bool> runSideBySide(llvm::MutableArrayRef<AttentionEmission> parts);
  llvm::Error placeKeys(AttentionTiles &tiles);
  llvm::Error placeMasks(AttentionTiles &tiles);
  llvm::Error placeValueRows(llvm::SmallVector<TileView> &to);
  llvm::Error placeAll(llvm::SmallVector<TileView> &to, const Matrices &of, std::optional<Affine> at,
                       const Layout &layout);
  llvm::Error placeRows(llvm::SmallVector<TileView> &to, const Matrices &of, std::optional<Affine> at, int64_t byRow,
                        int64_t width);
  llvm::Error placeEachBatch(llvm::SmallVector<TileView> &to, const Matrices &of, int64_t width);
  llvm::Error addRows(llvm::SmallVector<TileView> &to, const Matrices &of, llvm::ArrayRef<int64_t> sizes,
                      llvm::ArrayRef<int64_t> strides, int64_t offset, bool outside);

  device::AttentionOp op;
  EmissionContext &context;
  const FusedOps::FusedConsumers *consumers;
  Matrices q, k, v, mask{}, y;
  AttentionSizes sizes;
  int64_t group = 1, outer = 1; ///< batches that share keys, and the number of such groups
  std::optional<Affine> qAt, kAt, vAt, yAt, maskAt;
  std::optional<int64_t> qRows, yRows; ///< row stride if the rows of all batches of a group form one dim
  bool byBatch = false, isBlocked = false;
  int64_t blocks = 1;          ///< per batch
  int64_t rows = 0, inner = 0; ///< sizes of the dims c and h of queries
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONEMISSION_H
