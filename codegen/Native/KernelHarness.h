//===- KernelHarness.h - Compares kernels of single ops with the reference ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: runs the kernel of one device op in this process on random data, and compares the results with the op's
// reference evaluation. The kernel is compiled for the machine on which the test runs.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NATIVE_KERNELHARNESS_H
#define TESSERA_CODEGEN_NATIVE_KERNELHARNESS_H

#include "bmodel/kernel_abi.h"
#include "codegen/Kernels/KernelCache.h"
#include "top_dialect/IR/TopInterfaces.h"

#include <functional>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera::native {

struct CheckOptions {
  double low = -2, high = 2;   ///< range of random floats and integers
  double relative = 1e-5;      ///< allowed error over max(1, |expected|); at least 2e-2 for bf16, 4e-3 for f16
  double indexRange = 8;       ///< i32 and i64 operands are drawn from [-indexRange, indexRange)
  bool negativeIndices = true; ///< false: i32 and i64 operands are drawn from [0, indexRange)
  bool allBytes = false;       ///< i8 and ui8 operands hold any byte, extreme ones often
  bool signedZeros = false;    ///< floats are -1, -0, 0 and 1; the function is exact, and so must be every bit
  /// Replaces numbers of the drawn operands, if given.
  std::function<void(llvm::MutableArrayRef<top::HostTensor>)> overwrite;
  int64_t largest16 = 0; ///< with allBytes: i16 operands hold any value up to that magnitude, extreme ones often
};

/// Returns the text of a tensor type, e.g. "tensor<1x3xf32>".
std::string tensorText(llvm::ArrayRef<int64_t> shape, const std::string &element);

/// Memory that ends (up to |alignment|) before an inaccessible page. The memory and its slack are filled with noise of
/// unequal bytes, because equal garbage added to all elements would cancel out, e.g. in a softmax.
class GuardedBuffer {
public:
  explicit GuardedBuffer(int64_t bytes, int64_t alignment = BM_ALIGNMENT) : bytes(bytes) {
    int64_t page = sysconf(_SC_PAGESIZE);
    padded = llvm::alignTo(std::max<int64_t>(bytes, 1), alignment);
    mapped = llvm::alignTo(padded, page) + 2 * page;
    base = static_cast<char *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, page, PROT_NONE);
    mprotect(base + mapped - page, page, PROT_NONE);
    start = base + mapped - page - padded;
    refill();
  }
  GuardedBuffer(GuardedBuffer &&other)
      : bytes(other.bytes), padded(other.padded), mapped(other.mapped), base(other.base), start(other.start) {
    other.base = nullptr;
  }
  ~GuardedBuffer() {
    if (base) {
      munmap(base, mapped);
    }
  }
  char *data() { return start; }
  void refill() {
    for (int64_t i = 0; i < padded; ++i) {
      start[i] = noise(i);
    }
  }
  /// Fills the buffer with ones, so that every float is NaN. NaN times zero is not zero, which reveals unwanted reads.
  void fillWithNaN() { memset(start, 0xff, padded); }
  /// Moves the contents to the front of the buffer, directly behind an inaccessible page.
  void moveToFront() {
    char *front = base + sysconf(_SC_PAGESIZE);
    memmove(front, start, padded);
    start = front;
  }
  bool slackIntact() const {
    for (int64_t i = bytes; i < padded; ++i) {
      if (start[i] != noise(i)) {
        return false;
      }
    }
    return true;
  }
  int64_t size() const { return bytes; }

private:
  static char noise(int64_t at) { return static_cast<char>((static_cast<uint32_t>(at) + 1) * 2654435761u >> 23); }

  int64_t bytes, padded, mapped;
  char *base, *start;
};

/// The operands of an op (random unless constant) and the results of the reference, all row-major.
struct Case {
  std::vector<top::HostTensor> inputs, expected;
};

/// Compiles the kernel of an op to an object that exports the function "kernel".
using KernelSource = llvm::function_ref<mlir::FailureOr<kernels::Kernel>(mlir::Operation *op)>;

/// The kernel of an op in a shared object that is loaded into this process.
class LoadedKernel {
public:
  /// Sets |message| if the kernel cannot be compiled or loaded.
  LoadedKernel(mlir::Operation *op, KernelSource compile);
  LoadedKernel(const LoadedKernel &) = delete;
  ~LoadedKernel();

  /// Sets the values of kernels::symbolsOf(op), which an op with symbolic sizes needs before a run.
  void setDims(llvm::ArrayRef<int64_t> values);
  int64_t tiles() const { return frame.tiles; }
  /// Returns the pointers to pass for |buffers|, the operands and results.
  llvm::SmallVector<void *> argumentsFor(std::vector<GuardedBuffer> &buffers) const;
  void run(llvm::ArrayRef<void *> arguments, int64_t begin, int64_t end, GuardedBuffer &scratch) const {
    function(arguments.data(), begin, end, scratch.data());
  }

  std::string message;
  kernels::KernelFrame frame;             ///< with the tiles for the dims
  llvm::SmallVector<uint32_t> alignments; ///< of the arguments

private:
  void *handle = nullptr;
  bm_kernel_fn function = nullptr;
  std::optional<GuardedBuffer> dims;
};

/// Returns element |index| of an array of |type| as a double.
double readNumber(mlir::Type type, const char *data, int64_t index);

/// Returns the elements of |tensor| as a kernel reads them, in memory of the given alignment.
GuardedBuffer toMemory(mlir::RankedTensorType type, const top::HostTensor &tensor, int64_t alignment);

/// Draws the operands of |op| that are not constants.
void drawInputs(mlir::Operation *op, const CheckOptions &options, Case &data);

/// Draws operands and evaluates the reference. Returns a description of the error, or "".
std::string evaluate(mlir::Operation *op, const CheckOptions &options, Case &data);

/// Evaluates the reference on the operands of |data|. Returns a description of the error, or "".
std::string evaluateInputs(mlir::Operation *op, Case &data);

/// Runs the kernel of |op| on |buffers| (the operands as in memory) and compares its results with |expected|
/// (row-major). Returns a description of the first error, or "". Checks values, zeros in padding lanes, writes outside
/// the results, and that results do not depend on how tiles are split.
std::string runKernel(mlir::Operation *op, KernelSource compile, const CheckOptions &options,
                      std::vector<GuardedBuffer> buffers, llvm::ArrayRef<top::HostTensor> expected);

/// Runs |kernel| as above. |op| has the types of this run: those of the kernel's op, or for a kernel with symbolic
/// sizes the types at the dims that are set.
std::string runKernel(mlir::Operation *op, const LoadedKernel &kernel, const CheckOptions &options,
                      std::vector<GuardedBuffer> buffers, llvm::ArrayRef<top::HostTensor> expected);

/// Calls runKernel() with random operands. Returns a description of the first error, or "".
std::string runOnRandom(mlir::Operation *op, KernelSource compile, const CheckOptions &options);
std::string runOnRandom(mlir::Operation *op, const LoadedKernel &kernel, const CheckOptions &options);

/// Returns the seconds that the kernel of |op| takes on one core, the best of several runs on the operands |buffers|.
double timeKernel(mlir::Operation *op, KernelSource compile, std::vector<GuardedBuffer> buffers);

/// Parses |text|, "(%a: type, ...) -> type { body }", a function whose body holds one device op and constants, and runs
/// |check| on the op. Returns its result, or a description of the error.
std::string checkOp(mlir::MLIRContext &context, const std::string &text,
                    llvm::function_ref<std::string(mlir::Operation *)> check);

/// Parses |text| as checkOp() does; returns null after an error.
mlir::OwningOpRef<mlir::ModuleOp> parseCase(mlir::MLIRContext &context, const std::string &text);
/// Returns the device op with a kernel in |module|; null if there is not exactly one.
mlir::Operation *kernelOpOf(mlir::ModuleOp module);

/// Returns the number of cases that the running test has checked before this one.
int64_t casesBefore();

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_KERNELHARNESS_H
