//===- MicroKernel.cpp - The register tile of a matmul --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/MicroKernel.h"

#include "codegen/X86/Transforms/RegisterTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

int64_t TileShape::steps() const {
  int64_t total = 0;
  for (const StepRun &run : groups) {
    total += run.count * run.size;
  }
  return total;
}

int64_t maxTileRows(const X86Target &target, int64_t blocks) { return maxTileRows(target.vectorBytes(), blocks); }

namespace {

/// Writes the K loop. Registers: rdi A, rsi B, rdx bias, r8 prefetch, r9 offset table, stride of groups or number of
/// steps, r10 group counter, r11 A of the group, rcx scales, eax counter of scale rows, or rax the bytes of B to skip.
class TileAsm {
public:
  TileAsm(const X86Target &target, const TileShape &shape, bool bias, bool table, bool prefetch)
      : target(target), shape(shape), bias(bias), table(table), prefetch(prefetch && shape.prefetchLines),
        rows(shape.rows.size()), width(shape.blocks * vectorsPerBlock(target)) {}

  std::string text() {
    emitInit();
    emitConstants();
    if (shape.runsPerScale) {
      line(llvm::formatv("leaq {0}(%rsi), %rcx", shape.scalesAt));
    }
    if (shape.openSteps) {
      emitOpenSteps();
      return llvm::join(lines, "\n");
    }
    int64_t step = 0;
    for (const StepRun &run : shape.groups) {
      emitRunsByScale(run, step);
    }
    return llvm::join(lines, "\n");
  }
  int64_t accumulators() const { return rows * width; }

private:
  void line(std::string text) { lines.push_back(std::move(text)); }
  std::string reg(int64_t index) const {
    return llvm::formatv("%{0}mm{1}", target.hasMasks() ? "z" : target.hasFma() ? "y" : "x", index);
  }

  void emitInit() {
    bool vex = target.hasFma();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        std::string to = reg(row * width + column);
        if (bias && row == 0) {
          line(llvm::formatv("{0} {1}(%rdx), {2}", vex ? "vmovups" : "movups", column * target.vectorBytes(), to));
        } else if (bias) {
          line(llvm::formatv("{0} {1}, {2}", vex ? "vmovaps" : "movaps", reg(column), to));
        } else if (vex) {
          // vpxord (EVEX) reaches all 32 zmm registers; vxorps (VEX) suffices for the 16 ymm registers.
          line(target.hasMasks() ? llvm::formatv("vpxord {0}, {0}, {0}", to).str()
                                 : llvm::formatv("vxorps {0}, {0}, {0}", to).str());
        } else {
          line(llvm::formatv("xorps {0}, {0}", to));
        }
      }
    }
  }

  /// Emits the runs of each row of scales, row after row. The runs behind the last whole row use its successor.
  void emitRunsByScale(const StepRun &run, int64_t &step) {
    int64_t rows = shape.runsPerScale ? run.count / shape.runsPerScale : 0;
    if (rows == 0) {
      return emitRun(run, step);
    }
    if (rows > 1) {
      line(llvm::formatv("movl $${0}, %eax", rows));
      line("2:");
    }
    emitRun({shape.runsPerScale, run.size}, step);
    line(llvm::formatv("addq $${0}, %rcx", shape.blocks * kBlockBytes));
    if (rows > 1) {
      line("decl %eax");
      line("jne 2b");
    }
    emitRun({run.count - rows * shape.runsPerScale, run.size}, step);
  }

  /// Loads the A of the next group from the table, and skips B up to that group.
  void emitEntry() {
    line("movslq (%r9), %r11");
    if (shape.skips) {
      line("movslq 4(%r9), %rax");
      line(llvm::formatv("imulq $${0}, %rax, %rax", shape.panelRowBytes));
      line("addq %rax, %rsi");
    }
    line(llvm::formatv("addq $${0}, %r9", shape.skips ? 8 : 4));
    line("addq %rdi, %r11");
  }

  void emitRun(const StepRun &run, int64_t &step) {
    if (run.count == 0 || run.size == 0) {
      return;
    }
    // The label is a local number, so two inlined copies do not clash.
    if (run.count > 1) {
      line(llvm::formatv("movl $${0}, %r10d", run.count));
      line(".p2align 5");
      line("1:");
    }
    if (table) {
      emitEntry();
    }
    int64_t total = shape.steps(), lines64 = 0;
    if (prefetch) {
      lines64 = (shape.prefetchLines * run.size + total - 1) / total;
    }
    int64_t stepOfB = shape.aheadLines ? shape.aheadLines * kBlockBytes : shape.panelRowBytes;
    for (int64_t k = 0; k < run.size; ++k) {
      for (int64_t line64 = 0; line64 < lines64; ++line64) {
        if (line64 * run.size / lines64 == k) {
          line(llvm::formatv("prefetcht1 {0}(%r8)", line64 * 64));
        }
      }
      // Prefetch the cache lines that begin in this step's part of B.
      for (int64_t at = llvm::alignTo(k * shape.panelRowBytes, kBlockBytes);
           shape.aheadBytes && at < k * shape.panelRowBytes + stepOfB; at += kBlockBytes) {
        line(llvm::formatv("prefetcht0 {0}(%rsi)", at + shape.aheadBytes));
      }
      emitStep(k, shape.oddGroups && k + 1 == run.size);
    }
    // A run of 4-bit integers ends at a byte boundary.
    int64_t stepsOfB = shape.step == PackedStep::i4 ? int64_t(llvm::alignTo(run.size, 2)) : run.size;
    line(llvm::formatv("addq $${0}, %rsi", stepsOfB * shape.panelRowBytes));
    if (shape.openGroups) {
      line("addq %r9, %rdi");
    } else if (!table) {
      line(llvm::formatv("addq $${0}, %rdi", shape.groupBytes));
    }
    if (lines64) {
      line(llvm::formatv("addq $${0}, %r8", lines64 * 64));
    }
    if (run.count > 1) {
      line("decl %r10d");
      line("jne 1b");
    }
    step += run.count * run.size;
  }

  /// Emits as many steps as r9 holds: whole groups, then single steps.
  void emitOpenSteps() {
    const int64_t group = shape.groups.front().size;
    assert(llvm::isPowerOf2_64(group) && "a shift and a mask split the steps");
    emitOpenLoop(llvm::formatv("shrl $${0}, %r10d", llvm::Log2_64(group)), group, shape.groupBytes);
    emitOpenLoop(llvm::formatv("andl $${0}, %r10d", group - 1), 1, shape.stepBytes);
  }

  /// Emits a loop over |steps| K steps of A, |bytes| long. |select| computes the number of iterations from the number
  /// of steps in r10.
  void emitOpenLoop(std::string select, int64_t steps, int64_t bytes) {
    line("movl %r9d, %r10d");
    line(std::move(select));
    line("jz 3f");
    line(".p2align 5");
    line("1:");
    for (int64_t k = 0; k < steps; ++k) {
      emitStep(k, /*single=*/false);
    }
    line(llvm::formatv("addq $${0}, %rsi", steps * shape.panelRowBytes));
    line(llvm::formatv("addq $${0}, %rdi", bytes));
    line("decl %r10d");
    line("jne 1b");
    line("3:");
  }

  /// Emits K step |k| of a group. |single|: of its pairs of bf16, only the first element exists.
  void emitStep(int64_t k, bool single) {
    if (shape.kind == TileKind::S16) {
      emitStepWords(k);
    } else if (!sumsFloats(shape.kind)) {
      shape.step == PackedStep::i8x4 ? emitStepVnni(k) : emitStepPairs(k);
    } else if (target.hasMasks()) {
      emitStepAvx512(k, single);
    } else if (target.hasFma()) {
      emitStepAvx2(k);
    } else {
      emitStepSse(k);
    }
  }

  std::string aAt(int64_t row, int64_t k) const {
    return llvm::formatv("{0}({1})", shape.rows[row] + k * shape.stepBytes, table ? "%r11" : "%rdi");
  }
  std::string bAt(int64_t column, int64_t k) const {
    if (shape.step == PackedStep::i4) {
      return llvm::formatv("{0}(%rsi)", (k & ~int64_t(1)) * shape.panelRowBytes + column * target.vectorBytes() / 4);
    }
    int64_t vectorBytes = target.vectorBytes() * stepBits(shape.step) / 32;
    return llvm::formatv("{0}(%rsi)", k * shape.panelRowBytes + column * vectorBytes);
  }

  /// Loads the vectors of B of step |k| into the registers behind the accumulators, converted for multiplication.
  void emitLoadsOfB(int64_t k) {
    for (int64_t column = 0; column < width; ++column) {
      std::string from = bAt(column, k), to = reg(accumulators() + column);
      switch (shape.step) {
      default: // f32, pairs of bf16
        line(llvm::formatv("vmovups {0}, {1}", from, to));
        break;
      case PackedStep::bf16:
        line(llvm::formatv("vpmovzxwd {0}, {1}", from, to));
        line(llvm::formatv("vpslld $$16, {0}, {0}", to));
        break;
      case PackedStep::f16:
        line(llvm::formatv("vcvtph2ps {0}, {1}", from, to));
        break;
      case PackedStep::i8:
        line(llvm::formatv("vpmovsxbd {0}, {1}", from, to));
        line(llvm::formatv("vcvtdq2ps {0}, {0}", to));
        break;
      case PackedStep::i4:
        // Moves the 4 bits to the top and sign-extends them on the way back.
        line(llvm::formatv("vpmovzxbd {0}, {1}", from, to));
        line(llvm::formatv("vpslld $${0}, {1}, {1}", k % 2 ? 24 : 28, to));
        line(llvm::formatv("vpsrad $$28, {0}, {0}", to));
        line(llvm::formatv("vcvtdq2ps {0}, {0}", to));
        break;
      }
      if (shape.runsPerScale) {
        line(llvm::formatv("vmulps {0}(%rcx), {1}, {1}", column * target.vectorBytes(), to));
      }
    }
  }

  /// |single|: loads the second element of each pair of A as zero. A zero weight alone would not do, because an
  /// infinity next to the row would produce NaN.
  void emitStepAvx512(int64_t k, bool single) {
    int64_t firstB = accumulators(), a = firstB + width;
    const char *multiply = shape.kind == TileKind::BF16 ? "vdpbf16ps" : "vfmadd231ps";
    emitLoadsOfB(k);
    for (int64_t row = 0; row < rows; ++row) {
      if (width == 1 && !single) {
        line(llvm::formatv("{0} {1}{{1to16}, {2}, {3}", multiply, aAt(row, k), reg(firstB), reg(row)));
        continue;
      }
      line(single ? llvm::formatv("vpbroadcastw {0}, {1} {{%k1} {{z}", aAt(row, k), reg(a)).str()
                  : llvm::formatv("vbroadcastss {0}, {1}", aAt(row, k), reg(a)).str());
      for (int64_t column = 0; column < width; ++column) {
        line(llvm::formatv("{0} {1}, {2}, {3}", multiply, reg(firstB + column), reg(a), reg(row * width + column)));
      }
    }
  }

  void emitStepAvx2(int64_t k) {
    int64_t firstB = accumulators(), a = firstB + width;
    emitLoadsOfB(k);
    for (int64_t row = 0; row < rows; ++row) {
      line(llvm::formatv("vbroadcastss {0}, {1}", aAt(row, k), reg(a)));
      for (int64_t column = 0; column < width; ++column) {
        line(llvm::formatv("vfmadd231ps {0}, {1}, {2}", reg(firstB + column), reg(a), reg(row * width + column)));
      }
    }
  }

  void emitStepSse(int64_t k) {
    int64_t firstA = accumulators(), product = firstA + rows;
    for (int64_t row = 0; row < rows; ++row) {
      line(llvm::formatv("movss {0}, {1}", aAt(row, k), reg(firstA + row)));
      line(llvm::formatv("shufps $$0, {0}, {0}", reg(firstA + row)));
    }
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        line(llvm::formatv("movups {0}, {1}", bAt(column, k), reg(product)));
        line(llvm::formatv("mulps {0}, {1}", reg(firstA + row), reg(product)));
        line(llvm::formatv("addps {0}, {1}", reg(product), reg(row * width + column)));
      }
    }
  }

  //--- Constants ---

  /// Loads the mask that selects the first element of each pair.
  void emitMaskOfFirst() {
    line("movl $$0x55555555, %r11d");
    line("kmovd %r11d, %k1");
  }

  /// Loads the constant for 8-bit A into the last register: 0x80 in every byte (VNNI with signed A, which is multiplied
  /// as A + 128), or the mask of even bytes (unsigned A without VNNI).
  void emitConstants() {
    if (shape.oddGroups) {
      return emitMaskOfFirst();
    }
    bool dots = shape.step == PackedStep::i8x4;
    bool flips = dots && shape.kind == TileKind::S8, masks = !dots && shape.kind == TileKind::U8;
    if (!flips && !masks) {
      return;
    }
    line(llvm::formatv("movl $${0}, %r11d", flips ? 0x80808080u : 0x00ff00ffu));
    std::string last = reg(target.vectorRegisters() - 1);
    if (target.hasMasks()) {
      line(llvm::formatv("vpbroadcastd %r11d, {0}", last));
    } else if (target.hasFma()) {
      std::string half = llvm::formatv("%xmm{0}", target.vectorRegisters() - 1);
      line(llvm::formatv("vmovd %r11d, {0}", half));
      line(llvm::formatv("vpbroadcastd {0}, {1}", half, last));
    } else {
      line(llvm::formatv("movd %r11d, {0}", last));
      line(llvm::formatv("pshufd $$0, {0}, {0}", last));
    }
  }

  //--- 8-bit integers ---

  void emitStepVnni(int64_t k) {
    int64_t firstB = accumulators(), a = firstB + width;
    for (int64_t column = 0; column < width; ++column) {
      line(llvm::formatv("vmovdqu32 {0}, {1}", bAt(column, k), reg(firstB + column)));
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (shape.kind == TileKind::S8) {
        line(llvm::formatv("vpxord {0}{{1to16}, {1}, {2}", aAt(row, k), reg(target.vectorRegisters() - 1), reg(a)));
      } else {
        line(llvm::formatv("vpbroadcastd {0}, {1}", aAt(row, k), reg(a)));
      }
      for (int64_t column = 0; column < width; ++column) {
        line(llvm::formatv("vpdpbusd {0}, {1}, {2}", reg(firstB + column), reg(a), reg(row * width + column)));
      }
    }
  }

  /// Widens the bytes of A to i16 (bytes 0 and 2, then 1 and 3) and multiplies them by pairs of i16 weights. Unlike the
  /// sums of vpmaddubsw, these sums do not saturate.
  void emitStepPairs(int64_t k) {
    int64_t even = accumulators(), odd = even + 1, product = even + 2;
    bool vex = target.hasFma(), isSigned = shape.kind == TileKind::S8;
    std::string mask = reg(target.vectorRegisters() - 1);
    auto shift = [&](const char *name, int64_t from, int64_t to) {
      if (vex) {
        line(llvm::formatv("v{0} $$8, {1}, {2}", name, reg(from), reg(to)));
        return;
      }
      if (from != to) {
        line(llvm::formatv("movdqa {0}, {1}", reg(from), reg(to)));
      }
      line(llvm::formatv("{0} $$8, {1}", name, reg(to)));
    };
    for (int64_t row = 0; row < rows; ++row) {
      if (vex) {
        line(llvm::formatv("vpbroadcastd {0}, {1}", aAt(row, k), reg(even)));
      } else {
        line(llvm::formatv("movd {0}, {1}", aAt(row, k), reg(even)));
        line(llvm::formatv("pshufd $$0, {0}, {0}", reg(even)));
      }
      shift(isSigned ? "psraw" : "psrlw", even, odd);
      if (isSigned) {
        shift("psllw", even, even);
        shift("psraw", even, even);
      } else if (vex) {
        line(llvm::formatv("{0} {1}, {2}, {2}", target.hasMasks() ? "vpandd" : "vpand", mask, reg(even)));
      } else {
        line(llvm::formatv("pand {0}, {1}", mask, reg(even)));
      }
      int64_t vectors = vectorsPerBlock(target);
      for (int64_t column = 0; column < width; ++column) {
        for (int64_t half = 0; half < 2; ++half) {
          int64_t at = k * shape.panelRowBytes + column / vectors * 2 * kBlockBytes + half * kBlockBytes +
                       column % vectors * target.vectorBytes();
          std::string sum = reg(row * width + column), factor = reg(half ? odd : even);
          if (vex) {
            line(llvm::formatv("vpmaddwd {0}(%rsi), {1}, {2}", at, factor, reg(product)));
            line(llvm::formatv("vpaddd {0}, {1}, {1}", reg(product), sum));
          } else {
            line(llvm::formatv("movdqa {0}, {1}", factor, reg(product)));
            line(llvm::formatv("pmaddwd {0}(%rsi), {1}", at, reg(product)));
            line(llvm::formatv("paddd {0}, {1}", reg(product), sum));
          }
        }
      }
    }
  }

  /// Multiplies pairs of i16 of A and B. Their two products are summed exactly and then added.
  void emitStepWords(int64_t k) {
    int64_t firstB = accumulators(), a = target.vnni ? firstB + width : firstB, product = a + 1;
    for (int64_t column = 0; target.vnni && column < width; ++column) {
      line(llvm::formatv("vmovdqu32 {0}, {1}", bAt(column, k), reg(firstB + column)));
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (target.hasFma()) {
        line(llvm::formatv("vpbroadcastd {0}, {1}", aAt(row, k), reg(a)));
      } else {
        line(llvm::formatv("movd {0}, {1}", aAt(row, k), reg(a)));
        line(llvm::formatv("pshufd $$0, {0}, {0}", reg(a)));
      }
      for (int64_t column = 0; column < width; ++column) {
        std::string sum = reg(row * width + column);
        if (target.vnni) {
          line(llvm::formatv("vpdpwssd {0}, {1}, {2}", reg(firstB + column), reg(a), sum));
        } else if (target.hasFma()) {
          line(llvm::formatv("vpmaddwd {0}, {1}, {2}", bAt(column, k), reg(a), reg(product)));
          line(llvm::formatv("vpaddd {0}, {1}, {1}", reg(product), sum));
        } else {
          line(llvm::formatv("movdqa {0}, {1}", reg(a), reg(product)));
          line(llvm::formatv("pmaddwd {0}, {1}", bAt(column, k), reg(product)));
          line(llvm::formatv("paddd {0}, {1}", reg(product), sum));
        }
      }
    }
  }

  const X86Target &target;
  const TileShape &shape;
  bool bias, table, prefetch;
  int64_t rows, width;
  SmallVector<std::string> lines;
};

/// Adds the registers and flags that the tile overwrites, except its outputs, as inline-assembly clobbers. |letter|
/// selects the vector registers (x, y or z).
void addClobbers(const X86Target &target, const TileShape &shape, char letter, int64_t accumulators,
                 SmallVectorImpl<std::string> &constraints) {
  if (shape.runsPerScale) {
    constraints.push_back("~{rcx}");
  }
  if (shape.runsPerScale || shape.skips) {
    constraints.push_back("~{rax}");
  }
  if (shape.oddGroups) {
    constraints.push_back("~{k1}");
  }
  constraints.push_back("~{r10}");
  constraints.push_back("~{r11}");
  for (int64_t i = accumulators; i < static_cast<int64_t>(target.vectorRegisters()); ++i) {
    constraints.push_back(llvm::formatv("~{{{0}mm{1}}", letter, i));
  }
  for (StringRef name : {"memory", "dirflag", "fpsr", "flags"}) {
    constraints.push_back(llvm::formatv("~{{{0}}", name));
  }
}

} // namespace

SmallVector<Value> emitRegisterTile(KernelBuilder &kb, const TileShape &shape, Value a, Value b, Value bias,
                                    Value table, Value prefetch) {
  assert(static_cast<int64_t>(shape.rows.size()) <= maxTileRows(targetOf(kb), shape.blocks) &&
         "tile exceeds the registers");
  assert(!(shape.skips && (shape.runsPerScale || !table)) && "skipping needs an offset table and no scales");
  assert((stepBits(shape.step) >= 32 || targetOf(kb).hasFma()) && "SSE tiles read 32-bit weights only");
  auto pointer = LLVM::LLVMPointerType::get(kb.b.getContext());
  Type sum = sumsFloats(shape.kind) ? Type(kb.b.getF32Type()) : kb.b.getI32Type();
  Type vector = VectorType::get({static_cast<int64_t>(targetOf(kb).lanes(32))}, sum);
  TileAsm code(targetOf(kb), shape, static_cast<bool>(bias), table && !shape.openGroups && !shape.openSteps,
               static_cast<bool>(prefetch));
  std::string text = code.text();
  int64_t accumulators = code.accumulators();

  // Outputs: the accumulators, and the pointers, which the loop advances. Inputs: the pointers, tied to the outputs.
  char letter = targetOf(kb).hasMasks() ? 'z' : targetOf(kb).hasFma() ? 'y' : 'x';
  SmallVector<std::string> constraints;
  SmallVector<Type> types(accumulators, vector);
  for (int64_t i = 0; i < accumulators; ++i) {
    constraints.push_back(llvm::formatv("={{{0}mm{1}}", letter, i));
  }
  SmallVector<Value> inputs{a, b};
  SmallVector<StringRef> registers{"rdi", "rsi"};
  if (prefetch) {
    inputs.push_back(prefetch);
    registers.push_back("r8");
  }
  if (table) {
    inputs.push_back(table);
    registers.push_back("r9");
  }
  for (StringRef name : registers) {
    constraints.push_back(llvm::formatv("={{{0}}", name));
    types.push_back(pointer);
  }
  for (size_t i = 0; i < registers.size(); ++i) {
    constraints.push_back(std::to_string(accumulators + i));
  }
  if (bias) {
    inputs.push_back(bias);
    constraints.push_back("{rdx}");
  }
  addClobbers(targetOf(kb), shape, letter, accumulators, constraints);

  Type result = LLVM::LLVMStructType::getLiteral(kb.b.getContext(), types);
  auto tile =
      LLVM::InlineAsmOp::create(kb.b, kb.b.getLoc(), TypeRange{result}, inputs, text, llvm::join(constraints, ","),
                                /*has_side_effects=*/true, /*is_align_stack=*/false,
                                LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  SmallVector<Value> sums;
  for (int64_t i = 0; i < accumulators; ++i) {
    sums.push_back(LLVM::ExtractValueOp::create(kb.b, tile.getRes(), i));
  }
  return sums;
}

} // namespace tessera::x86
