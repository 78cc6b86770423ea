//===- KernelBuilder.h - The frame one kernel is emitted into ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H
#define TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H

#include "codegen/Kernels/VectorTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera::kernels {

/// Number of elements that |type| occupies in memory, padding lanes of a blocked layout included
/// (device_dialect/IR/Layout.h has the rest of the layout questions).
int64_t physicalElements(mlir::RankedTensorType type);

/// Everything that stays of a kernel besides its code.
struct KernelFrame {
  std::string symbol;
  int64_t tiles = 0;         ///< independent tiles of the launch
  int64_t scratchBytes = 0;  ///< per thread
  unsigned blockThreads = 0; ///< of a block of a GPU that computes a tile together; 0: a tile is a thread's
  int64_t sharedBytes = 0;   ///< that such a block shares
  int64_t counters = 0;      ///< of the launch, of 4 bytes each, which are zero when it begins
};

/// Builds the MLIR module of one kernel:
///
///   func.func @symbol(%args: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr)
///
/// with the ABI of bmodel/kernel_abi.h. |b| stands in its body, behind the loads of the pointers.
/// Bodies use arith, math, vector, scf (i64 bounds), cf and the llvm dialect; memory is reached by
/// load() and store() below. All integers that index memory are i64.
class KernelBuilder {
public:
  KernelBuilder(const VectorTarget &target, mlir::Operation *op, llvm::StringRef symbol);

  const VectorTarget target;
  /// The op's function computes with integers: float arithmetic is that of bmodel/numerics_float.h, to the bit.
  const bool exact;
  /// f32 is rounded to bf16 by the machine's instruction, which takes subnormal numbers for zeros.
  bool hasBf16Rounding = false;
  mlir::ImplicitLocOpBuilder b;

  mlir::Operation *op() const { return sourceOp; }
  mlir::OwningOpRef<mlir::ModuleOp> takeModule();
  const KernelFrame &frame() const { return kernelFrame; }

  /// Base pointers (!llvm.ptr, 64-byte aligned) of the op's operands and results.
  mlir::Value operand(unsigned index) const { return pointers[index]; }
  mlir::Value result(unsigned index = 0) const { return pointers[sourceOp->getNumOperands() + index]; }
  mlir::Value tileBegin() const { return begin; } ///< i64
  mlir::Value tileEnd() const { return end; }     ///< i64
  mlir::Value scratch() const { return scratchPointer; }
  mlir::RankedTensorType operandType(unsigned index) const;
  mlir::RankedTensorType resultType(unsigned index = 0) const;

  /// Number of tiles of the launch, at least 1. Must not depend on the machine's threads.
  void setTiles(int64_t tiles) { kernelFrame.tiles = tiles; }
  /// Bytes of scratch(); several calls keep the largest.
  void setScratchBytes(int64_t bytes);

  /// Each tile is computed by |threads| threads together (target.tileIsThread), which share memory.
  void setBlocks(int64_t tiles, unsigned threads) { kernelFrame.tiles = tiles, kernelFrame.blockThreads = threads; }
  void setSharedBytes(int64_t bytes) { kernelFrame.sharedBytes = bytes; }
  /// Address (!llvm.ptr) of |count| counters that blocks of a launch share; stands behind the results' pointers.
  mlir::Value counters(int64_t count);

  /// setTiles(|tiles|) and the loop over this call's tiles; |body| gets the tile (i64).
  void forTiles(int64_t tiles, llvm::function_ref<void(mlir::Value tile)> body);

  /// The loop over |count| rows that kRowThreads threads compute together, each one lane of all vectors: loads and
  /// stores of that many lanes are this thread's then, and registers hold scalars. Needs target.shuffle.
  void forSharedRows(int64_t count, llvm::function_ref<void(mlir::Value row)> body);
  /// This thread's lane (i64) within forSharedRows(); null elsewhere.
  mlir::Value sharedLane() const { return lane; }
  /// What one thread of a shared row does alone, as outside of forSharedRows(); elsewhere |body| as it is.
  void inFirstThread(llvm::function_ref<void()> body);
  /// |lanes| values of |element| in registers: a vector, or this thread's.
  mlir::Type lanesOf(mlir::Type element, unsigned lanes) const;

  //--- i64 and loop helpers; constants fold while building ---
  mlir::Value constant(int64_t value); ///< i64
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y) { return add(x, constant(y)); }
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y) { return mul(x, constant(y)); }
  mlir::Value div(mlir::Value x, int64_t y); ///< x >= 0, y > 0
  mlir::Value rem(mlir::Value x, int64_t y); ///< x >= 0, y > 0
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y); ///< signed, i1
  /// for (i = lower; i < upper; i += step) body(i); one trip is emitted straight.
  void forLoop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void forLoop(int64_t lower, int64_t upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// The same with carried values: |body| returns the next ones.
  llvm::SmallVector<mlir::Value>
  forLoop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange init,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> then);
  /// condition ? then() : otherwise, where |then| is only computed if the condition holds.
  mlir::Value ifElse(mlir::Value condition, llvm::function_ref<mlir::Value()> then, mlir::Value otherwise);
  /// The same of several values.
  llvm::SmallVector<mlir::Value> ifElseAll(mlir::Value condition,
                                           llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
                                           mlir::ValueRange otherwise);

  //--- memory ---
  /// |type|: scalar or 1-D vector in registers, integers signless; i1 is converted from and to bytes 0 and 1.
  /// |index| counts elements of |type|'s element type from |base|. |alignment| in bytes; 0 = the element's.
  mlir::Value load(mlir::Type type, mlir::Value base, mlir::Value index, unsigned alignment = 0);
  void store(mlir::Value value, mlir::Value base, mlir::Value index, unsigned alignment = 0);
  /// Lanes with a zero in |mask| (vector of i1) are neither read nor written; read as 0.
  mlir::Value maskedLoad(mlir::VectorType type, mlir::Value base, mlir::Value index, mlir::Value mask);
  /// |value| in the lanes of |mask|, 0 in the others.
  mlir::Value zeroOutside(mlir::Value mask, mlir::Value value);
  void maskedStore(mlir::Value value, mlir::Value base, mlir::Value index, mlir::Value mask);
  /// Lane l reads the element |index| + |offsets|[l] (vector of i64). |mask| may be null.
  mlir::Value gather(mlir::VectorType type, mlir::Value base, mlir::Value index, mlir::Value offsets, mlir::Value mask);
  /// base + index * bytes(elementType).
  mlir::Value element(mlir::Type elementType, mlir::Value base, mlir::Value index);

  /// Elements of a tensor of |elementType|, converted from and to registerType(elementType), so that
  /// f16 and bf16 are reached as f32. |lanes| 0: a scalar. |mask| as above, may be null. |alignment| in bytes as above,
  /// without a mask.
  mlir::Value loadElements(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index,
                           mlir::Value mask = nullptr, unsigned alignment = 0);
  /// |lanes| neighbours, a power of two, from a multiple of |lanes| on, in this thread's registers even within
  /// forSharedRows().
  mlir::Value loadRun(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index);
  /// Stores |values|, scalars, as such neighbours.
  void storeRun(mlir::Type elementType, mlir::ValueRange values, mlir::Value base, mlir::Value index);
  mlir::Value gatherElements(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index,
                             mlir::Value offsets, mlir::Value mask = nullptr);
  void storeElements(mlir::Type elementType, mlir::Value value, mlir::Value base, mlir::Value index,
                     mlir::Value mask = nullptr, unsigned alignment = 0);

  //--- vectors ---
  /// Lanes |l| with l < |count| (i64).
  mlir::Value maskBelow(unsigned lanes, mlir::Value count);
  mlir::Value splat(mlir::Value scalar, unsigned lanes);
  mlir::Value floatConstant(mlir::Type type, double value); ///< |type|: float or vector of floats
  mlir::Value zero(mlir::Type type);                        ///< any scalar or vector type

private:
  mlir::Value loadPointer(unsigned index);
  unsigned alignmentAt(mlir::Type type, mlir::Value base, mlir::Value index, unsigned alignment) const;

  mlir::Operation *sourceOp;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelFrame kernelFrame;
  llvm::SmallVector<mlir::Value> pointers;
  mlir::Value arguments, begin, end, scratchPointer, lane;
};

/// Type that an element is computed in: f16 and bf16 in f32, integers without sign, others as they are.
mlir::Type registerType(mlir::Type elementType);
/// |value| (register type) rounded to the values that |elementType| can hold; the register type stays.
mlir::Value roundToElement(KernelBuilder &kb, mlir::Value value, mlir::Type elementType);

/// Clones the straight-line scalar |region| (map body, epilogue or prologue) at kb.b with |arguments|
/// in place of its block arguments, in register types: all scalars, or all vectors of one length. Ops
/// that have no instruction are expanded (MathApprox.h), so no call to libm remains. An empty
/// region gives arguments[0]. Returns the yielded value. For the epilogues of conv and matmul too:
/// arguments = accumulator, then one per extra operand. |wanted|: a value of the region to return instead.
mlir::Value emitScalarRegion(KernelBuilder &kb, mlir::Region &region, mlir::ValueRange arguments,
                             mlir::Value wanted = {});

/// Clones the end of |region| that computes its result from |from|, a value of the region whose registers are |value|,
/// and constants alone.
mlir::Value emitScalarRegionFrom(KernelBuilder &kb, mlir::Region &region, mlir::Value from, mlir::Value value);

/// What the region yields before it is rounded to f16 or bf16: storing the element rounds it once and for all. The
/// yielded value itself where nothing is rounded, null for an empty region.
mlir::Value beforeRounding(mlir::Region &region);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H
