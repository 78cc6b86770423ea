//===- ConvThreads.cpp - Convolutions for machines with many threads ------===//
// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring threads compute neighbouring pixels, so that a warp loads one contiguous run of x and a single address
// of the weights. Each thread sums some pixels of some output channels in registers. If that leaves too few threads,
// the threads of a shared row split the sum over one output channel's weights, which are contiguous.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/ConvThreads.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Window.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kWantedThreads = 16384; ///< a thread takes several pixels or channels only while this many threads
                                          ///< remain
constexpr int64_t kFewThreads = 8192;     ///< with fewer threads of one result each, threads share rows instead
constexpr int64_t kMostPixels = 4, kMostChannels = 8;

class ThreadConv {
public:
  ThreadConv(KernelBuilder &kb, device::ConvOp op)
      : kb(kb), op(op), x(kb.operandType(0)), w(kb.operandType(1)), y(kb.resultType()),
        epilogue(kb, cast<device::EpilogueInterface>(*op)), accumulator(registerType(op.getAccumulatorType())),
        windows(windowDims(x, y, Shape(w).dropFront(2).values(), op.getStrides(), op.getPads(), op.getDilations())),
        positions(numElements(Shape(y).dropFront(2))), taps(numElements(Shape(w).dropFront(2))),
        inputs(Shape(w)[1].value()), outputs(Shape(y)[1].value() / op.getGroups()) {
    choose();
  }

  void emit() {
    int64_t images = Shape(y)[0].value(), groups = op.getGroups();
    if (isShared) {
      SmallVector<int64_t> space = {images, groups, outputs, apart};
      return kb.forSharedRows(ShapedType::getNumElements(space), [&](Value row) {
        SmallVector<Value> at = delinearize(kb, row, space);
        place(at[0], at[1], at[2], at[3]);
        sumInRow();
      });
    }
    SmallVector<int64_t> space = {images, groups, int64_t(llvm::divideCeil(outputs, channels)), apart};
    kb.forTiles(ShapedType::getNumElements(space), [&](Value tile) {
      SmallVector<Value> at = delinearize(kb, tile, space);
      place(at[0], at[1], kb.mul(at[2], channels), at[3]);
      sumInThread();
    });
  }

private:
  using Values = SmallVector<Value>;

  /// An output pixel of this thread: its linear position in the plane and its indices.
  struct Pixel {
    Value position;
    Values at;
  };
  struct Source {
    Value offset, inside;
  };

  /// Chooses the number of pixels and channels per thread, the largest that leave enough threads.
  void choose() {
    int64_t others = Shape(y)[0].value() * op.getGroups();
    auto threads = [&] { return others * llvm::divideCeil(outputs, channels) * llvm::divideCeil(positions, pixels); };
    if (threads() < kFewThreads && inputs * taps >= 2 * kRowThreads && accumulator.getIntOrFloatBitWidth() == 32) {
      isShared = kb.target.shuffle != nullptr;
    }
    auto grow = [&](int64_t &size, int64_t most) {
      size *= 2;
      if (size > most || threads() * (isShared ? kRowThreads : 1) < kWantedThreads) {
        size /= 2;
        return false;
      }
      return true;
    };
    bool grows = true;
    while (grows) {
      grows = !isShared && grow(channels, std::min<int64_t>(kMostChannels, llvm::PowerOf2Ceil(outputs)));
      grows |= grow(pixels, std::min(kMostPixels, positions));
    }
    apart = llvm::divideCeil(positions, pixels);
  }

  /// Sets the results that this thread computes; |firstChannel| is relative to the group.
  void place(Value imageIndex, Value groupIndex, Value firstChannel, Value firstPixel) {
    image = imageIndex, group = groupIndex, first = firstChannel;
    own.clear();
    SmallVector<int64_t> sizes(Shape(y).dropFront(2).values());
    for (int64_t p = 0; p < pixels; ++p) {
      Value position = kb.add(firstPixel, p * apart);
      // Pixels beyond the last one repeat the last pixel and are not stored.
      Value clamped = (p + 1) * apart <= positions ? position : kb.min(position, kb.constant(positions - 1));
      own.push_back({position, delinearize(kb, clamped, sizes)});
    }
    xBase =
        kb.mul(kb.add(kb.mul(image, Shape(x)[1].value()), kb.mul(group, inputs)), numElements(Shape(x).dropFront(2)));
  }

  /// Returns the offset at which |pixel| reads its |tap| within a channel of x, and whether it lies inside x (null:
  /// always).
  Source sourceOf(const Pixel &pixel, ArrayRef<Value> tap) {
    Source source = {kb.constant(0), {}};
    for (auto [d, window] : llvm::enumerate(windows)) {
      Value position = window.inputAt(kb, pixel.at[d], tap[d]);
      source.offset = kb.add(kb.mul(source.offset, window.input), position);
      if (window.isAllInterior()) {
        continue;
      }
      Value inside = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, position, kb.index(window.input));
      source.inside = source.inside ? Value(arith::AndIOp::create(kb.b, source.inside, inside)) : inside;
    }
    if (source.inside) { // a safe address; the loaded value is replaced by padding
      source.offset = arith::SelectOp::create(kb.b, source.inside, source.offset, kb.constant(0));
    }
    return source;
  }

  Value loadInput(const Source &source, Value channelBase) {
    Value value = kb.loadElements(x.getElementType(), 0, kb.operand(0), kb.add(channelBase, source.offset));
    if (source.inside) {
      Value padding = kb.zero(value.getType());
      if (op.getPadValue()) {
        padding = arith::ConstantOp::create(kb.b, kb.b.getI8IntegerAttr(static_cast<int8_t>(op.getPadValue())));
      }
      value = arith::SelectOp::create(kb.b, source.inside, value, padding);
    }
    return convertElement(kb, value, x.getElementType(), accumulator);
  }

  /// Returns output channel |c| of this thread, counted over all groups. Channels beyond the group's last one repeat
  /// the last.
  Value channelAt(int64_t c) {
    Value channel = kb.add(first, c);
    channel = outputs % channels ? kb.min(channel, kb.constant(outputs - 1)) : channel;
    return kb.add(kb.mul(group, outputs), channel);
  }

  Value scaleAt(Value channel, Value input) {
    Value row = kb.div(input, std::max<int64_t>(1, op.getWeightGroup()));
    return kb.loadElements(cast<RankedTensorType>(op.getScales().getType()).getElementType(), 0,
                           kb.operand(op->getNumOperands() - 1), kb.add(kb.mul(row, Shape(w)[0].value()), channel));
  }

  Value weight(Value loaded, Value channel, Value input) {
    Value factor = convertElement(kb, loaded, w.getElementType(), accumulator);
    return op.getScales() ? Value(arith::MulFOp::create(kb.b, factor, scaleAt(channel, input))) : factor;
  }

  /// Sums tap by tap and, within a tap, input channel by input channel.
  void sumInThread() {
    Values sums(channels * pixels);
    for (int64_t c = 0; c < channels; ++c) {
      std::fill_n(sums.begin() + c * pixels, pixels, initial(channelAt(c)));
    }
    SmallVector<int64_t> kernel(Shape(w).dropFront(2).values());
    sums = kb.forLoop(kb.constant(0), kb.constant(taps), 1, sums, [&](Value tap, ValueRange old) {
      SmallVector<Source> sources;
      Values at = delinearize(kb, tap, kernel), bases;
      for (const Pixel &pixel : own) {
        sources.push_back(sourceOf(pixel, at));
      }
      for (int64_t c = 0; c < channels; ++c) {
        bases.push_back(kb.add(kb.mul(channelAt(c), inputs * taps), tap));
      }
      return overInputs(sources, bases, old);
    });
    for (int64_t c = 0; c < channels; ++c) {
      store(c, ArrayRef(sums).slice(c * pixels, pixels));
    }
  }

  /// Processes several input channels per iteration. If the kernel has one tap, their weights are contiguous.
  Values overInputs(ArrayRef<Source> sources, ArrayRef<Value> bases, ValueRange sums) {
    unsigned bits = w.getElementType().getIntOrFloatBitWidth();
    unsigned unrolled = inputs % 4 == 0 && bits >= 8 && bits <= 32 ? 4 : 1;
    bool isRun = unrolled > 1 && taps == 1;
    int64_t plane = numElements(Shape(x).dropFront(2));
    return kb.forLoop(kb.constant(0), kb.constant(inputs), unrolled, sums, [&](Value input, ValueRange old) {
      Values next(old), runs;
      for (int64_t c = 0; isRun && c < channels; ++c) {
        runs.push_back(kb.loadRun(w.getElementType(), unrolled, kb.operand(1), kb.add(bases[c], input)));
      }
      for (int64_t i = 0; i < unrolled; ++i) {
        Value at = kb.add(input, i);
        Values values;
        for (const Source &source : sources) {
          values.push_back(loadInput(source, kb.add(xBase, kb.mul(at, plane))));
        }
        for (int64_t c = 0; c < channels; ++c) {
          Value loaded =
              isRun ? Value(vector::ExtractOp::create(kb.b, runs[c], i))
                    : kb.loadElements(w.getElementType(), 0, kb.operand(1), kb.add(bases[c], kb.mul(at, taps)));
          Value factor = weight(loaded, channelAt(c), at);
          for (int64_t p = 0; p < pixels; ++p) {
            next[c * pixels + p] = emitMultiplyAdd(kb, values[p], factor, next[c * pixels + p]);
          }
        }
      }
      return next;
    });
  }

  /// Computes one output channel whose weights the threads of a row share.
  void sumInRow() {
    Value channel = channelAt(0), base = kb.mul(channel, inputs * taps);
    SmallVector<int64_t> kernel(Shape(w).dropFront(2).values());
    int64_t plane = numElements(Shape(x).dropFront(2));
    Values sums = overRow(kb, inputs * taps, kRowThreads, Values(pixels, kb.zero(accumulator)),
                          [&](Value i, Value mask, ValueRange old) {
                            Value at = kb.add(i, kb.sharedLane());
                            at = mask ? kb.min(at, kb.constant(inputs * taps - 1)) : at;
                            Value loaded = kb.loadElements(w.getElementType(), 0, kb.operand(1), kb.add(base, at));
                            Value input = kb.div(at, taps), factor = weight(loaded, channel, input);
                            Values tap = delinearize(kb, kb.rem(at, taps), kernel), next;
                            for (int64_t p = 0; p < pixels; ++p) {
                              Value value = loadInput(sourceOf(own[p], tap), kb.add(xBase, kb.mul(input, plane)));
                              next.push_back(keepActive(kb, mask, emitMultiplyAdd(kb, value, factor, old[p]), old[p]));
                            }
                            return next;
                          });
    for (Value &sum : sums) {
      sum = add(reduceLanes(kb, sum, [&](Value a, Value b) { return add(a, b); }), initial(channel));
    }
    kb.inFirstThread([&] { store(0, sums); });
  }

  Value add(Value a, Value b) {
    return isa<FloatType>(accumulator) ? Value(arith::AddFOp::create(kb.b, a, b))
                                       : Value(arith::AddIOp::create(kb.b, a, b));
  }

  Value initial(Value channel) {
    if (!op.getBias()) {
      return kb.zero(accumulator);
    }
    Type type = cast<RankedTensorType>(op.getBias().getType()).getElementType();
    return convertElement(kb, kb.loadElements(type, 0, kb.operand(2), channel), type, accumulator);
  }

  void store(int64_t c, ArrayRef<Value> sums) {
    auto storeChannel = [&] {
      for (int64_t p = 0; p < pixels; ++p) {
        Values at = {image, channelAt(c)};
        at.append(own[p].at);
        auto storePixel = [&] { epilogue.store(sums[p], at, -1, Value()); };
        (p + 1) * apart <= positions ? storePixel()
                                     : kb.ifThen(kb.less(own[p].position, kb.constant(positions)), storePixel);
      }
    };
    outputs % channels ? kb.ifThen(kb.less(kb.add(first, c), kb.constant(outputs)), storeChannel) : storeChannel();
  }

  KernelBuilder &kb;
  device::ConvOp op;
  RankedTensorType x, w, y;
  EpilogueStore epilogue;
  Type accumulator;
  SmallVector<WindowDim> windows;
  const int64_t positions, taps, inputs, outputs; ///< per image, per channel, per group, per group
  int64_t pixels = 1, channels = 1;               ///< per thread
  int64_t apart = 1;                              ///< distance between the pixels of one thread
  bool isShared = false;
  Value image, group, first, xBase;
  SmallVector<Pixel> own;
};

} // namespace

void emitConvByThreads(KernelBuilder &kb, device::ConvOp conv) { ThreadConv(kb, conv).emit(); }

} // namespace tessera::kernels
