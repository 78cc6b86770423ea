//===- KernelBuilder.h - Frame of one kernel during emission ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H
#define TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H

#include "codegen/Kernels/SizeTerms.h"
#include "codegen/Kernels/VectorTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera::kernels {

/// Returns the number of elements that |type| occupies in memory, including padding lanes of a blocked layout.
/// (device_dialect/IR/Layout.h declares the other layout queries.)
Dim physicalElements(mlir::RankedTensorType type);

/// Returns the product of |sizes|.
Dim multiply(llvm::ArrayRef<Dim> sizes);

/// Launch parameters of a kernel: everything but its code.
struct KernelFrame {
  std::string symbol;
  int64_t tiles = 0;         ///< independent tiles of the launch
  int64_t scratchBytes = 0;  ///< per thread
  unsigned blockThreads = 0; ///< threads of a GPU block that compute one tile together; 0: one thread per tile
  int64_t sharedBytes = 0;   ///< memory shared by the threads of such a block
  int64_t counters = 0;      ///< 4-byte counters of the launch, zero when it begins
  SizeTerms tileTerms = {};  ///< compute |tiles| from the values of symbolsOf(op); empty: |tiles| is constant

  /// Returns the number of tiles of a launch for |op|, whose kernel this is.
  Dim tilesOf(mlir::Operation *op) const { return tileTerms.empty() ? Dim(tiles) : sizeOf(tileTerms, symbolsOf(op)); }
};

/// Builds the MLIR module of one kernel:
///
///   func.func @symbol(%args: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr)
///
/// with the ABI of bmodel/kernel_abi.h. If the op's sizes have symbols, index() computes sizes from the launch's dims.
/// |b| inserts into its body, after the loads of the pointers. Bodies use arith, math, vector, scf (i64 bounds), cf and
/// the llvm dialect, and access memory through load() and store() below. All integers that index memory are i64.
class KernelBuilder {
public:
  KernelBuilder(const VectorTarget &target, mlir::Operation *op, llvm::StringRef symbol);

  const VectorTarget target;
  /// True if the op's function computes with integers: float arithmetic then follows bmodel/numerics_float.h bit for
  /// bit.
  const bool exact;
  /// True if f32 is rounded to bf16 by the machine's instruction, which treats subnormal numbers as zeros.
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

  /// Sets the number of tiles of the launch; a number is at least 1. It must not depend on the machine's threads.
  void setTiles(Dim tiles);
  /// Sets the bytes of scratch(), enough for all sizes; of several calls the largest counts.
  void setScratchBytes(int64_t bytes);

  /// Sets |tiles| tiles, each computed by |threads| threads together (target.tileIsThread), which share memory.
  void setBlocks(int64_t tiles, unsigned threads) { kernelFrame.tiles = tiles, kernelFrame.blockThreads = threads; }
  void setSharedBytes(int64_t bytes) { kernelFrame.sharedBytes = bytes; }
  /// Returns the address (!llvm.ptr) of |count| counters that the blocks of a launch share. Their pointer follows the
  /// pointers of the results.
  mlir::Value counters(int64_t count);

  /// Calls setTiles(|tiles|) and emits the loop over this call's tiles; |body| receives the tile number (i64).
  void forTiles(Dim tiles, llvm::function_ref<void(mlir::Value tile)> body);

  /// Emits the loop over |count| rows that kRowThreads threads compute together. Each thread is one lane of all
  /// vectors: within |body|, loads and stores of kRowThreads lanes access this thread's lane, and registers hold
  /// scalars. Needs target.shuffle.
  void forSharedRows(Dim count, llvm::function_ref<void(mlir::Value row)> body);
  /// Returns this thread's lane (i64) within forSharedRows(), null elsewhere.
  mlir::Value sharedLane() const { return lane; }
  /// Emits |body| for the first thread of a shared row alone, with the semantics outside of forSharedRows(). Outside of
  /// forSharedRows() emits |body| unchanged.
  void inFirstThread(llvm::function_ref<void()> body);
  /// Returns the register type of |lanes| values of |element|: a vector, or a scalar within forSharedRows().
  mlir::Type lanesOf(mlir::Type element, unsigned lanes) const;

  //--- i64 and loop helpers; constants fold while building ---
  mlir::Value constant(int64_t value); ///< i64
  /// Returns |size| as an i64: a constant, or a value computed once at the kernel's entry. Only for the kernel's own
  /// function.
  mlir::Value index(Dim size);
  /// Returns false if index() or setTiles() received an unknown size, e.g. after an overflow; takeKernel() then fails.
  bool hasKnownSizes() const { return !unknownSize; }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, Dim y) { return add(x, index(y)); }
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, Dim y) { return mul(x, index(y)); }
  mlir::Value div(mlir::Value x, Dim y); ///< x >= 0, y > 0 when the code runs
  mlir::Value rem(mlir::Value x, Dim y); ///< x >= 0, y > 0 when the code runs
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y); ///< signed, i1
  /// Emits for (i = lower; i < upper; i += step) body(i); a single iteration is emitted without a loop.
  void forLoop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void forLoop(Dim lower, Dim upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Emits a loop with carried values, of which |body| returns the next ones.
  llvm::SmallVector<mlir::Value>
  forLoop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange init,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> then);
  /// Emits condition ? then() : otherwise; |then| is only computed if the condition holds.
  mlir::Value ifElse(mlir::Value condition, llvm::function_ref<mlir::Value()> then, mlir::Value otherwise);
  /// Emits an ifElse() of several values.
  llvm::SmallVector<mlir::Value> ifElseAll(mlir::Value condition,
                                           llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
                                           mlir::ValueRange otherwise);

  //--- memory ---
  /// Loads or stores a scalar or 1-D vector of |type| (integers signless); i1 is converted from and to bytes 0 and 1.
  /// |index| counts elements of |type|'s element type from |base|. |alignment| is in bytes; 0 means the element's.
  mlir::Value load(mlir::Type type, mlir::Value base, mlir::Value index, unsigned alignment = 0);
  void store(mlir::Value value, mlir::Value base, mlir::Value index, unsigned alignment = 0);
  /// Loads the lanes that |mask| (vector of i1) selects; the other lanes are not read and become 0.
  mlir::Value maskedLoad(mlir::VectorType type, mlir::Value base, mlir::Value index, mlir::Value mask);
  /// Returns |value| in the lanes that |mask| selects and 0 in the others.
  mlir::Value zeroOutside(mlir::Value mask, mlir::Value value);
  void maskedStore(mlir::Value value, mlir::Value base, mlir::Value index, mlir::Value mask);
  /// Reads element |index| + |offsets|[l] (vector of i64) into lane l. |mask| may be null.
  mlir::Value gather(mlir::VectorType type, mlir::Value base, mlir::Value index, mlir::Value offsets, mlir::Value mask);
  /// Returns the address base + index * bytes(elementType).
  mlir::Value element(mlir::Type elementType, mlir::Value base, mlir::Value index);

  /// Accesses elements of a tensor of |elementType|, converted from and to registerType(elementType), so that f16 and
  /// bf16 values are f32 in registers. |lanes| 0: a scalar. |mask| as above, may be null. |alignment|, in bytes as
  /// above, requires a null mask.
  mlir::Value loadElements(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index,
                           mlir::Value mask = nullptr, unsigned alignment = 0);
  /// Loads |lanes| neighbours (a power of two); |index| is a multiple of |lanes|. All lanes go to this thread's
  /// registers, even within forSharedRows().
  mlir::Value loadRun(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index);
  /// Stores |values|, scalars, as neighbours at |index|, which is a multiple of their number.
  void storeRun(mlir::Type elementType, mlir::ValueRange values, mlir::Value base, mlir::Value index);
  mlir::Value gatherElements(mlir::Type elementType, unsigned lanes, mlir::Value base, mlir::Value index,
                             mlir::Value offsets, mlir::Value mask = nullptr);
  void storeElements(mlir::Type elementType, mlir::Value value, mlir::Value base, mlir::Value index,
                     mlir::Value mask = nullptr, unsigned alignment = 0);

  //--- vectors ---
  /// Returns the mask of the lanes l with l < |count| (i64).
  mlir::Value maskBelow(unsigned lanes, mlir::Value count);
  mlir::Value splat(mlir::Value scalar, unsigned lanes);
  mlir::Value floatConstant(mlir::Type type, double value); ///< |type|: float or vector of floats
  mlir::Value zero(mlir::Type type);                        ///< any scalar or vector type

private:
  mlir::Value loadPointer(unsigned index);
  mlir::Value computeAtEntry(Dim size);
  unsigned alignmentAt(mlir::Type type, mlir::Value base, mlir::Value index, unsigned alignment) const;

  mlir::Operation *sourceOp;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelFrame kernelFrame;
  llvm::SmallVector<mlir::Value> pointers;
  mlir::Value arguments, begin, end, scratchPointer, lane;
  SizeSymbols symbols;
  llvm::DenseMap<mlir::Attribute, mlir::Value> sizes; ///< computed at the entry, by expression
  mlir::Value dims;                                   ///< address of the values of |symbols|; null until needed
  mlir::Operation *lastOfEntry = nullptr;             ///< sizes are computed behind it
  bool unknownSize = false;
};

/// Returns the type in which an element is computed: f32 for f16 and bf16, signless for integers, otherwise
/// |elementType|.
mlir::Type registerType(mlir::Type elementType);
/// Rounds |value| (register type) to values that |elementType| can hold; the type of the result is the register type.
mlir::Value roundToElement(KernelBuilder &kb, mlir::Value value, mlir::Type elementType);

/// Clones the straight-line scalar |region| (map body, epilogue or prologue) at kb.b, with |arguments| in place of its
/// block arguments, and returns the yielded value, or |wanted|, a value of the region. |arguments| have register types:
/// all scalars, or all vectors of one length. Ops without an instruction are expanded (MathApprox.h), so no call to
/// libm remains. An empty region yields arguments[0]. For the epilogue of a conv or matmul, |arguments| are the
/// accumulator and one value per extra operand.
mlir::Value emitScalarRegion(KernelBuilder &kb, mlir::Region &region, mlir::ValueRange arguments,
                             mlir::Value wanted = {});

/// Clones the part of |region| that computes its result from the value |from| and constants alone. |value| holds |from|
/// in registers.
mlir::Value emitScalarRegionFrom(KernelBuilder &kb, mlir::Region &region, mlir::Value from, mlir::Value value);

/// Returns the value that |region| yields before it is rounded to f16 or bf16, because storing the element rounds it
/// anyway. Returns the yielded value itself if the region does not round it, null for an empty region.
mlir::Value beforeRounding(mlir::Region &region);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELBUILDER_H
