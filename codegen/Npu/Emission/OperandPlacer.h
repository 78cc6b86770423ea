//===- OperandPlacer.h - Locations of operands and results ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H
#define TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H

#include "codegen/Npu/Decisions/FusedOps.h"
#include "codegen/Npu/Schedule/PlanGroups.h"
#include "codegen/Npu/Stream/CommandStream.h"

namespace tessera::npu {

/// Finds the location of what the current op reads and writes: local memory if the value plan keeps it there, else
/// off-chip memory. Sizes and strides are those of n, c, h, w, in elements.
class OperandPlacer {
public:
  /// |surveys|: everything is placed in off-chip memory, and the plan records each view.
  OperandPlacer(mlir::func::FuncOp function, CommandStream &stream, ValuePlan &plan, const FusedOps &fusedOps,
                bool surveys)
      : function(function), stream(stream), plan(plan), fusedOps(fusedOps), chip(stream.chip), surveys(surveys) {}

  /// Sets the op whose operands are placed next, and its number in the program. Null stands for the function's end.
  void enter(mlir::Operation *op, uint32_t number) { current = op, this->number = number; }

  /// Places a view of a value that begins |offset| elements into it.
  llvm::Expected<TileView> place(mlir::Value value, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                                 int64_t offset = 0) {
    return placeAs(value, {sizes, strides, offset, Access::read, std::nullopt});
  }
  /// Like `place`, but always reads from off-chip memory, even if the value is resident. |as|: element type of the
  /// view, if it differs from the value's type; sizes, strides and offset count elements of that type.
  llvm::Expected<TileView> placeOutside(mlir::Value value, llvm::ArrayRef<int64_t> sizes,
                                        llvm::ArrayRef<int64_t> strides, int64_t offset = 0,
                                        std::optional<bmodel::npu::Type> as = std::nullopt) {
    return placeAs(value, {sizes, strides, offset, Access::readOutside, as});
  }
  /// Places the elements of a value as one row, with element type |as| if given.
  llvm::Expected<TileView> placeFlat(mlir::Value value, int64_t count, std::optional<bmodel::npu::Type> as) {
    return placeAs(value, {{1, 1, 1, count}, {0, 0, 0, 1}, 0, Access::read, as});
  }
  /// Places |rows| rows of |size| elements each, with the rows over lanes, as they lie in another value.
  llvm::Expected<TileView> placeRows(const StridedView &seen, int64_t rows, int64_t size) {
    return place(seen.value, {1, rows, 1, size}, {0, *seen.strideOf(size, rows), 0, *seen.strideOf(1, size)},
                 seen.offset);
  }
  /// Places a value of four dims as it is, or one volume of a value of five dims, its planes as images.
  llvm::Expected<TileView> placeImages(mlir::Value value, int64_t volume) {
    return placeBroadcastImages(value, typeOf(value).getShape(), volume);
  }
  /// Like placeImages, for a value that broadcasts to |dims|.
  llvm::Expected<TileView> placeBroadcastImages(mlir::Value value, llvm::ArrayRef<int64_t> dims, int64_t volume);

  /// Returns true if the current op computes |value|.
  bool makes(mlir::Value value) const;
  /// Returns true if a view of a value is in local memory, whole or slice by slice.
  bool isResident(mlir::Value value, const View &view) const;
  /// Returns the off-chip region and offset of a value, without an element type, or nothing if it has no address.
  std::optional<Tensor> outsideOf(mlir::Value value);

  /// Begins a group of ops that run slice by slice. |end|: number of its last op.
  void openGroup(uint32_t end) { groupEnd = end; }
  void closeGroup() { slices.clear(); }
  /// Allocates a buffer for |rows| of the op's result if these stay slice by slice. Returns the commands that move rows
  /// which are still needed from the previous buffer.
  std::vector<Descriptor> openSlice(const SliceGroup &group, mlir::Operation *op, RowRange rows);

private:
  /// A view of a value and the kind of access.
  struct Request {
    llvm::ArrayRef<int64_t> sizes, strides;
    int64_t offset;
    Access access;
    std::optional<bmodel::npu::Type> as;
  };
  /// Rows of a value that stays slice by slice.
  struct Slice {
    TileView place;
    RowRange rows;
  };

  llvm::Expected<TileView> placeAs(mlir::Value value, const Request &request);
  llvm::Expected<Tensor> baseOf(mlir::Value value);
  std::optional<TileView> placeLocal(mlir::Value value, const View &view, int64_t offset, Access access,
                                     const Tensor &outside);
  TileView placeInSlice(mlir::Value value, const Slice &slice, const View &view, int64_t offset, Access access,
                        const Tensor &outside) const;
  const Slice *sliceOf(mlir::Value value) const;

  mlir::func::FuncOp function;
  CommandStream &stream;
  ValuePlan &plan;
  const FusedOps &fusedOps;
  const Chip &chip;
  bool surveys;
  mlir::Operation *current = nullptr;
  uint32_t number = 0;
  llvm::DenseMap<unsigned, TileView> locals; ///< by alias set of the plan
  llvm::DenseMap<unsigned, Slice> slices;    ///< by alias set, for the current slice group
  uint32_t groupEnd = 0;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_OPERANDPLACER_H
