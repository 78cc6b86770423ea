//===- AmxTile.cpp - Contraction tiles in AMX registers -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/AmxTile.h"

#include "codegen/X86/MicroTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::x86 {

TileWindows::TileWindows(const TileShape &shape) {
  ArrayRef<int64_t> rows = shape.rows;
  int64_t count = rows.size(), step = shape.rowStride;
  bool even = llvm::all_of(llvm::enumerate(rows), [&](auto row) {
    return row.value() == rows.front() + static_cast<int64_t>(row.index()) * step;
  });
  for (int64_t row = 0; row < count;) {
    // The last window of an evenly spaced tile ends with the tile, because the rows behind it may not be mapped memory.
    int64_t start = even ? std::max<int64_t>(0, std::min(row, count - shape.windowRows)) : row;
    int64_t window = offsets.size() * kWindowRows;
    offsets.push_back(rows[start]);
    first.push_back(start);
    whole = whole && even && start + shape.windowRows <= count;
    for (; row < count; ++row) {
      int64_t apart = rows[row] - rows[start];
      if (apart % step != 0 || apart / step >= shape.windowRows) {
        break;
      }
      places.push_back(window + apart / step);
    }
  }
  if (shape.highAt) {
    offsets.push_back(offsets.front() + shape.highAt), first.push_back(first.front()), whole = false;
  }
  assert(offsets.size() <= 2 && "a tile of AMX has two windows");
}

namespace {

/// The inline assembly of a tile. Registers: rdi A, rsi B, rdx bias, r8 prefetch, r9 offset table, r13 sums, rax and
/// rcx row strides, r10 runs left, r11 A of the current run, r12 iterations left; tmm0-3 sums, tmm4-5 A, tmm6-7 B.
class AmxTileAsm {
public:
  AmxTileAsm(const TileShape &shape, const TileWindows &windows, const SumPlaces &places, bool bias, bool table,
             bool prefetch)
      : shape(shape), windows(windows), places(places), bias(bias), table(table),
        perRow(shape.chunk / 4 * shape.panelRowBytes) {
    int64_t chunks = shape.steps() * 4 / shape.chunk;
    linesPerChunk = prefetch && chunks ? ceilDiv(shape.prefetchLines, chunks) : 0;
  }

  std::string text() {
    line(llvm::formatv("movl $${0}, %eax", shape.rowStride));
    line(llvm::formatv("movl $${0}, %ecx", shape.panelRowBytes));
    emitInit();
    for (const StepRun &run : shape.groups) {
      if (run.count > 0 && run.size > 0) {
        emitRuns(run.count, run.size * 4 / shape.chunk);
      }
    }
    line(llvm::formatv("movl $${0}, %ecx", places.rowBytes));
    forSums([&](int64_t window, int64_t block, int64_t sum) {
      int64_t at = places.windows[window] + block * kBlockBytes;
      line(llvm::formatv("tilestored %tmm{0}, {1}(%r13,%rcx,1)", sum, at));
    });
    return llvm::join(lines, "\n");
  }

private:
  void line(std::string text) { lines.push_back(std::move(text)); }

  void forSums(llvm::function_ref<void(int64_t, int64_t, int64_t)> body) {
    for (int64_t window = 0; window < static_cast<int64_t>(windows.offsets.size()); ++window) {
      for (int64_t block = 0; block < shape.blocks; ++block) {
        body(window, block, window * shape.blocks + block);
      }
    }
  }

  /// Initialises the sums. A row stride of 0 loads the bias into every row.
  void emitInit() {
    if (bias) {
      line("xorl %r11d, %r11d");
    }
    forSums([&](int64_t window, int64_t block, int64_t sum) {
      bool isHigh = shape.highAt && window == 1;
      line(bias && !isHigh ? llvm::formatv("tileloadd {0}(%rdx,%r11,1), %tmm{1}", block * kBlockBytes, sum).str()
                           : llvm::formatv("tilezero %tmm{0}", sum).str());
    });
  }

  void emitRuns(int64_t count, int64_t chunks) {
    constexpr int64_t kMostUnrolled = 4;
    if (count > 1) {
      line(llvm::formatv("movl $${0}, %r10d", count));
      line("1:");
    }
    if (table) {
      line("movslq (%r9), %r11");
      line("addq $$4, %r9");
      line("addq %rdi, %r11");
    } else {
      line("movq %rdi, %r11");
    }
    int64_t unrolled = std::min(chunks, kMostUnrolled), turns = chunks / unrolled;
    if (turns > 1) {
      line(llvm::formatv("movl $${0}, %r12d", turns));
      line(".p2align 5");
      line("2:");
    }
    emitChunks(unrolled);
    if (turns > 1) {
      line("decl %r12d");
      line("jne 2b");
    }
    emitChunks(chunks % unrolled);
    if (!table && count > 1) {
      line(llvm::formatv("addq $${0}, %rdi", shape.groupBytes));
    }
    if (count > 1) {
      line("decl %r10d");
      line("jne 1b");
    }
  }

  /// Emits |count| chunks and advances the pointers behind them.
  void emitChunks(int64_t count) {
    if (count == 0) {
      return;
    }
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      for (int64_t i = 0; i < linesPerChunk; ++i) {
        line(llvm::formatv("prefetcht1 {0}(%r8)", (chunk * linesPerChunk + i) * 64));
      }
      emitProducts(chunk);
    }
    line(llvm::formatv("addq $${0}, %r11", count * shape.chunk));
    line(llvm::formatv("addq $${0}, %rsi", count * perRow));
    if (linesPerChunk) {
      line(llvm::formatv("addq $${0}, %r8", count * linesPerChunk * 64));
    }
  }

  void emitProducts(int64_t chunk) {
    auto multiply = [&](int64_t window) {
      bool isUnsigned = shape.highAt ? window == 0 : shape.kind == TileKind::U8;
      return shape.kind == TileKind::BF16 ? "tdpbf16ps" : isUnsigned ? "tdpbusd" : "tdpbssd";
    };
    for (int64_t block = 0; block < shape.blocks; ++block) {
      line(llvm::formatv("tileloadd {0}(%rsi,%rcx,1), %tmm{1}", chunk * perRow + block * kBlockBytes, 6 + block));
    }
    forSums([&](int64_t window, int64_t block, int64_t sum) {
      if (block == 0) {
        line(llvm::formatv("tileloadd {0}(%r11,%rax,1), %tmm{1}", windows.offsets[window] + chunk * shape.chunk,
                           4 + window));
      }
      line(llvm::formatv("{0} %tmm{1}, %tmm{2}, %tmm{3}", multiply(window), 6 + block, 4 + window, sum));
    });
  }

  const TileShape &shape;
  const TileWindows &windows;
  const SumPlaces &places;
  bool bias, table;
  int64_t perRow; ///< bytes of B in one chunk of K
  int64_t linesPerChunk = 0;
  SmallVector<std::string> lines;
};

void emitAsm(KernelBuilder &kb, Type result, ValueRange inputs, StringRef text, StringRef constraints) {
  LLVM::InlineAsmOp::create(kb.b, kb.b.getLoc(), result ? TypeRange{result} : TypeRange{}, inputs, text, constraints,
                            /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

} // namespace

void emitAmxTile(KernelBuilder &kb, const TileShape &shape, const TileWindows &windows, Value a, Value b, Value bias,
                 Value table, Value prefetch, Value sums, const SumPlaces &places) {
  AmxTileAsm code(shape, windows, places, static_cast<bool>(bias), static_cast<bool>(table),
                  static_cast<bool>(prefetch));
  std::string text = code.text();
  // The pointers that the loops advance are results as well.
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
  auto pointer = LLVM::LLVMPointerType::get(kb.b.getContext());
  SmallVector<Type> types(registers.size(), pointer);
  SmallVector<std::string> constraints;
  for (StringRef name : registers) {
    constraints.push_back(llvm::formatv("={{{0}}", name));
  }
  for (size_t i = 0; i < registers.size(); ++i) {
    constraints.push_back(std::to_string(i));
  }
  inputs.push_back(sums);
  constraints.push_back("{r13}");
  if (bias) {
    inputs.push_back(bias);
    constraints.push_back("{rdx}");
  }
  for (StringRef name : {"rax", "rcx", "r10", "r11", "r12", "memory", "dirflag", "fpsr", "flags"}) {
    constraints.push_back(llvm::formatv("~{{{0}}", name));
  }
  emitAsm(kb, LLVM::LLVMStructType::getLiteral(kb.b.getContext(), types), inputs, text, llvm::join(constraints, ","));
}

/// Returns the 64 bytes that ldtilecfg reads: palette 1, then the bytes per row and the number of rows of each
/// register.
static SmallVector<int8_t> tileConfig(int64_t rows, int64_t chunk) {
  constexpr int64_t kRowBytes = 16, kRows = 48, kSums = 4, kOfA = 6, kRegisters = 8;
  SmallVector<int8_t> bytes(64, 0);
  bytes[0] = 1;
  for (int64_t i = 0; i < kRegisters; ++i) {
    bool isA = i >= kSums && i < kOfA, isB = i >= kOfA;
    bytes[kRowBytes + 2 * i] = static_cast<int8_t>(isA ? chunk : kBlockBytes);
    bytes[kRows + i] = static_cast<int8_t>(isB ? chunk / 4 : rows);
  }
  return bytes;
}

void emitTileConfig(KernelBuilder &kb, int64_t rows, int64_t chunk) {
  SmallVector<int8_t> bytes = tileConfig(rows, chunk);
  std::string name = kb.frame().symbol + "_tiles";
  {
    OpBuilder::InsertionGuard guard(kb.b);
    auto module = kb.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    kb.b.setInsertionPointToStart(module.getBody());
    auto type = RankedTensorType::get({static_cast<int64_t>(bytes.size())}, kb.b.getI8Type());
    LLVM::GlobalOp::create(kb.b, LLVM::LLVMArrayType::get(kb.b.getI8Type(), bytes.size()),
                           /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)), /*alignment=*/64);
  }
  Value config = LLVM::AddressOfOp::create(kb.b, LLVM::LLVMPointerType::get(kb.b.getContext()), name);
  emitAsm(kb, {}, config, "ldtilecfg ($0)", "r,~{memory},~{dirflag},~{fpsr},~{flags}");
}

void emitTileRelease(KernelBuilder &kb) { emitAsm(kb, {}, {}, "tilerelease", "~{memory},~{dirflag},~{fpsr},~{flags}"); }

/// Returns the low and the high bytes of the i16 in |words|.
static std::pair<Value, Value> halvesOf(KernelBuilder &kb, Value words) {
  auto type = cast<VectorType>(words.getType());
  auto bytes = VectorType::get(type.getShape(), kb.b.getI8Type());
  Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, int16_t(8)));
  Value high = arith::ShRSIOp::create(kb.b, words, eight);
  return {arith::TruncIOp::create(kb.b, bytes, words), arith::TruncIOp::create(kb.b, bytes, high)};
}

static void storeHalves(KernelBuilder &kb, Value words, Value to, int64_t highAt) {
  auto [low, high] = halvesOf(kb, words);
  kb.store(low, to, kb.constant(0), 1);
  kb.store(high, to, kb.constant(highAt), 1);
}

void splitWords(KernelBuilder &kb, Value from, Value to, int64_t count, int64_t highAt) {
  constexpr int64_t kTogether = 32;
  auto vector = VectorType::get({kTogether}, kb.b.getI16Type());
  kb.forLoop(0, count / kTogether * kTogether, kTogether,
             [&](Value at) { storeHalves(kb, kb.load(vector, from, at, 1), byteOffset(kb, to, at), highAt); });
  if (int64_t rest = count % kTogether) {
    Value at = kb.constant(count - rest), mask = kb.maskBelow(kTogether, kb.constant(rest));
    auto [low, high] = halvesOf(kb, kb.maskedLoad(vector, from, at, mask));
    kb.maskedStore(low, to, at, mask);
    kb.maskedStore(high, byteOffset(kb, to, highAt), at, mask);
  }
}

void addHighSums(KernelBuilder &kb, Value sums, int64_t blocks) {
  auto vector = VectorType::get({kBlock}, kb.b.getI32Type());
  Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(vector, int32_t(8)));
  int64_t window = kWindowRows * blocks * kBlock;
  kb.forLoop(0, window, kBlock, [&](Value at) {
    Value high = arith::ShLIOp::create(kb.b, kb.load(vector, sums, kb.add(at, window)), eight);
    kb.store(arith::AddIOp::create(kb.b, kb.load(vector, sums, at), high), sums, at);
  });
}

void copyChannelsLast(KernelBuilder &kb, Value from, Value to, Value count, int64_t blocks, int64_t planeBytes,
                      int64_t elementBytes, int64_t depth, int64_t highAt, llvm::function_ref<Value(Value)> sourceOf) {
  constexpr int64_t kTogether = 4, kLineBytes = 64; // positions per iteration; the copy is written in whole cache lines
  int64_t blockBytes = kBlock * elementBytes, perLine = std::max<int64_t>(1, kLineBytes / blockBytes);
  int64_t sourceBytes = highAt ? 2 * blockBytes : blockBytes;
  auto vector = VectorType::get({blockBytes}, kb.b.getI8Type());
  auto words = VectorType::get({kBlock}, kb.b.getI16Type());
  Value whole = kb.mul(kb.div(count, kTogether), kTogether);
  auto copyBlocks = [&](Value first, int64_t together) {
    Value source = byteOffset(kb, from, kb.mul(first, planeBytes));
    Value target = byteOffset(kb, to, kb.mul(first, blockBytes));
    auto copy = [&](Value position) {
      Value at = kb.mul(sourceOf ? sourceOf(position) : position, sourceBytes), line = kb.mul(position, depth);
      for (int64_t block = 0; block < together; ++block) {
        Value from = byteOffset(kb, byteOffset(kb, source, block * planeBytes), at);
        Value to = byteOffset(kb, byteOffset(kb, target, block * blockBytes), line);
        Value zero = kb.constant(0);
        if (highAt) {
          storeHalves(kb, kb.load(words, from, zero, 1), to, highAt);
        } else {
          kb.store(kb.load(vector, from, zero, 1), to, zero, 1);
        }
      }
    };
    kb.forLoop(kb.constant(0), whole, kTogether, [&](Value position) {
      for (int64_t i = 0; i < kTogether; ++i) {
        copy(kb.add(position, i));
      }
    });
    kb.forLoop(whole, count, 1, copy);
  };
  int64_t ofLines = blocks / perLine * perLine;
  kb.forLoop(0, ofLines, perLine, [&](Value first) { copyBlocks(first, perLine); });
  if (ofLines < blocks) {
    copyBlocks(kb.constant(ofLines), blocks - ofLines);
  }
  if (int64_t rest = depth / blockBytes - blocks; rest > 0) { // garbage times a zero weight may be NaN
    Value zero = kb.zero(vector);
    kb.forLoop(kb.constant(0), count, 1, [&](Value position) {
      for (int64_t i = 0; i < rest; ++i) {
        kb.store(zero, byteOffset(kb, to, (blocks + i) * blockBytes), kb.mul(position, depth), 1);
      }
    });
  }
}

Value interleave(KernelBuilder &kb, Value x, Value y) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> order;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    order.append({lane, lanes + lane});
  }
  return vector::ShuffleOp::create(kb.b, x, y, order);
}

void copyPixels(KernelBuilder &kb, Value from, Value to, Value count, int64_t channels, int64_t planeBytes,
                int64_t elementBytes) {
  constexpr int64_t kTogether = 16; // positions per iteration
  Type element = kb.b.getIntegerType(elementBytes * 8);
  auto vector = VectorType::get({kTogether}, element);
  auto planesAt = [&](Type type, Value position) {
    SmallVector<Value> planes;
    for (int64_t channel = 0; channel < kPixel; ++channel) {
      planes.push_back(channel < channels ? kb.load(type, byteOffset(kb, from, channel * planeBytes), position, 1)
                                          : kb.zero(type));
    }
    return planes;
  };
  Value whole = kb.mul(kb.div(count, kTogether), kTogether);
  kb.forLoop(kb.constant(0), whole, kTogether, [&](Value first) {
    SmallVector<Value> planes = planesAt(vector, first);
    Value even = interleave(kb, planes[0], planes[2]), odd = interleave(kb, planes[1], planes[3]);
    kb.store(interleave(kb, even, odd), to, kb.mul(first, kPixel), 1);
  });
  kb.forLoop(whole, count, 1, [&](Value position) {
    for (auto [channel, value] : llvm::enumerate(planesAt(element, position))) {
      kb.store(value, to, kb.add(kb.mul(position, kPixel), int64_t(channel)), 1);
    }
  });
}

} // namespace tessera::x86
