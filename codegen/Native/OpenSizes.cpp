//===- OpenSizes.cpp - Random ops with sizes known at run time ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/OpenSizes.h"

#include "codegen/Kernels/KernelInterface.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::native {
namespace {

SmallVector<Value> tensorsOf(Operation *op) {
  SmallVector<Value> tensors(op->getOperands());
  llvm::append_range(tensors, op->getResults());
  return tensors;
}

/// Gives the function of |op| the types of its arguments and results.
void updateSignature(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  Block &body = function.getBody().front();
  function.setFunctionType(
      FunctionType::get(op->getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

/// The tensors of an op, operands first, with sizes that are replaced by symbols one after another.
class SizeOpener {
public:
  SizeOpener(Operation *op, std::mt19937 &random, OpenedSizes opened)
      : op(op), random(random), opened(opened), operands(op->getNumOperands()) {
    for (Value tensor : tensorsOf(op)) {
      sizes.push_back(Shape(tensor).dims());
    }
  }

  bool open() {
    if (opened == OpenedSizes::Images) {
      openImages();
      setTypes();
      return symbols;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case<device::MapOp, device::SoftmaxOp, device::LutOp>([&](auto) { openDims(); })
        .Case([&](device::NormOp norm) { openNorm(norm); })
        .Case([&](device::ReduceOp reduce) { openReduce(reduce); })
        .Case([&](device::ConvOp conv) {
          openWindows(conv.getWeightShape().drop_front(2), conv.getStrides(), conv.getPads(), conv.getDilations());
        })
        .Case([&](device::PoolOp pool) {
          openWindows(pool.getKernel(), pool.getStrides(), pool.getPads(), pool.getDilations());
        })
        .Case([&](device::MatMulOp matmul) { openMatMul(matmul); })
        .Case([&](device::BlockMatMulOp) { openRows(); })
        .Case([&](device::AttentionOp attention) { openAttention(attention); })
        .Case([&](device::CopyOp copy) { openCopy(copy); });
    setTypes();
    return symbols;
  }

private:
  /// Returns a symbol, or a multiple of one, with a range from slightly below |size| to less than |spread| above it.
  Dim draw(int64_t size, int64_t least, int64_t spread = 7) {
    int64_t factor = size % 2 == 0 && size > 2 && random() % 3 == 0 ? 2 : 1, value = size / factor;
    int64_t min = std::max<int64_t>(least, value - int64_t(random() % 4));
    int64_t max = std::max(value + int64_t(random() % uint64_t(spread)), min + 1);
    int64_t likely = min + int64_t(random() % uint64_t(max - min + 1));
    std::string name = llvm::formatv("s{0}", symbols++);
    return factor * Dim::symbol(op->getContext(), name, min, max, likely);
  }

  bool takes() { return random() % 2 == 0; }

  bool isFixed(unsigned tensor) {
    bool isWeight = packsWeights() && (tensor == 1 || (tensor == 2 && hasBias()));
    return isWeight || (tensor < operands && top::isConstant(op->getOperand(tensor)));
  }
  bool packsWeights() const { return opened == OpenedSizes::NotOfWeights || opened == OpenedSizes::FewLikelyRows; }
  bool hasBias() {
    auto conv = dyn_cast<device::ConvOp>(op);
    auto matmul = dyn_cast<device::MatMulOp>(op);
    return (conv && conv.getBias()) || (matmul && matmul.getBias());
  }

  /// Sets dim |d|, counted from the result's front, of the result and of all |tensors| that have it.
  void setAligned(int64_t d, Dim size, ArrayRef<unsigned> tensors) {
    SmallVector<Dim> &result = sizes[operands];
    int64_t old = result[d].value(), rank = int64_t(result.size());
    for (unsigned t : tensors) {
      int64_t own = d - (rank - int64_t(sizes[t].size()));
      if (own >= 0 && sizes[t][own].is(old) && !isFixed(t)) {
        sizes[t][own] = size;
      }
    }
    result[d] = size;
  }

  /// Returns false if a constant or a blocked layout fixes dim |d| of the result.
  bool canOpen(int64_t d, ArrayRef<unsigned> tensors) {
    int64_t rank = int64_t(sizes[operands].size());
    for (unsigned t : tensors) {
      int64_t own = d - (rank - int64_t(sizes[t].size()));
      bool fixes = own >= 0 && isFixed(t) && !sizes[t][own].is(1);
      if (fixes || (own == 1 && device::isBlocked(tensorsOf(op)[t].getType()))) {
        return false;
      }
    }
    return !(d == 1 && device::isBlocked(op->getResult(0).getType()));
  }

  SmallVector<unsigned> extras() {
    SmallVector<unsigned> found;
    if (auto epilogue = dyn_cast<device::EpilogueInterface>(op)) {
      OperandRange range = epilogue.getEpilogueOperands();
      for (unsigned i = 0; i < range.size(); ++i) {
        found.push_back(range.getBeginOperandIndex() + i);
      }
    }
    return found;
  }

  /// Opens dims of an op whose operands broadcast to the result.
  void openDims() {
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, isa<device::LutOp>(op) ? 1 : operands));
    bool perChannel = isa<device::LutOp>(op) && sizes[1].size() > 1;
    for (int64_t d = 0; d < int64_t(sizes[operands].size()); ++d) {
      if (takes() && canOpen(d, all) && !(perChannel && d == 1)) {
        setAligned(d, draw(sizes[operands][d].value(), isa<device::SoftmaxOp>(op) ? 1 : 0), all);
      }
    }
  }

  void openNorm(device::NormOp norm) {
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, operands));
    for (int64_t d = 0; d < int64_t(sizes[operands].size()); ++d) {
      if (takes() && canOpen(d, all)) {
        setAligned(d, draw(sizes[operands][d].value(), 1), d < int64_t(norm.getAxis()) ? ArrayRef<unsigned>{0} : all);
      }
    }
  }

  void openReduce(device::ReduceOp reduce) {
    SmallVector<unsigned> all = extras();
    for (int64_t d = 0; d < int64_t(sizes[0].size()); ++d) {
      if (!takes() || !canOpen(d, all) || (d == 1 && device::isBlocked(reduce.getX().getType()))) {
        continue;
      }
      bool reduced = llvm::is_contained(reduce.getAxes(), d);
      Dim size = draw(sizes[0][d].value(), reduced ? 1 : 0);
      sizes[0][d] = size;
      if (!reduced) {
        setAligned(d, size, all);
      }
    }
  }

  /// Opens the number of images.
  void openImages() {
    SmallVector<unsigned> all = extras();
    if (canOpen(0, all)) {
      Dim images = draw(sizes[0][0].value(), random() % 8 == 0 ? 0 : 1);
      sizes[0][0] = images;
      setAligned(0, images, all);
    }
  }

  /// Opens the images and the spatial dims of a sliding window; channels are fixed.
  void openWindows(ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> pads,
                   ArrayRef<int64_t> dilations) {
    if (takes()) {
      openImages();
    }
    SmallVector<unsigned> all = extras();
    for (size_t d = 0; d < kernel.size(); ++d) {
      int64_t reach = (kernel[d] - 1) * dilations[d] + 1, padding = pads[d] + pads[d + kernel.size()];
      int64_t input = sizes[0][d + 2].value(), output = sizes[operands][d + 2].value();
      bool roundsDown = output == (input + padding - reach) / strides[d] + 1;
      if (!takes() || !canOpen(int64_t(d) + 2, all) || !roundsDown) {
        continue;
      }
      // Some rows have several register tiles and a remainder.
      Dim size = draw(input, std::max<int64_t>(1, reach - padding), random() % 4 == 0 ? 40 : 7);
      setAligned(int64_t(d) + 2, floorDiv(size + padding - reach, strides[d]) + 1, all);
      sizes[0][d + 2] = size;
    }
  }

  /// Opens all dims of the result but the last, and those of the operands that follow it.
  void openRows() {
    SmallVector<unsigned> tied = extras();
    tied.push_back(0);
    for (int64_t d = 0; d + 1 < int64_t(sizes[operands].size()); ++d) {
      if (takes() && canOpen(d, tied)) {
        setAligned(d, draw(sizes[operands][d].value(), 1, random() % 4 == 0 ? 40 : 7), tied);
      }
    }
  }

  void openMatMul(device::MatMulOp matmul) {
    SmallVector<unsigned> all = extras();
    int64_t rank = int64_t(sizes[operands].size());
    if (opened == OpenedSizes::FewLikelyRows) {
      all.push_back(0);
      const int64_t most = sizes[operands][rank - 2].value();
      return setAligned(rank - 2, Dim::symbol(op->getContext(), llvm::formatv("s{0}", symbols++).str(), 1, most, 1),
                        all);
    }
    if (matmul.getScales() && !packsWeights()) {
      return;
    }
    for (int64_t d = 0; d < rank; ++d) {
      SmallVector<unsigned> tied = all;
      if (d < rank - 2) {
        tied.append({0u, 1u});
      }
      bool isColumn = d == rank - 1, fixedFactor = isFixed(isColumn ? 1 : 0);
      if (isColumn && matmul.getBias()) {
        tied.push_back(2);
      }
      if (!takes() || !canOpen(d, tied) || (d >= rank - 2 && fixedFactor)) {
        continue;
      }
      Dim size = draw(sizes[operands][d].value(), 1);
      if (d >= rank - 2) {
        SmallVector<Dim> &factor = sizes[isColumn ? 1 : 0];
        bool swapped = isColumn ? matmul.getTransB() : matmul.getTransA();
        factor[factor.size() - (isColumn != swapped ? 1 : 2)] = size;
      }
      setAligned(d, size, tied);
    }
    if (takes() && !isFixed(0) && !isFixed(1)) {
      SmallVector<Dim> &a = sizes[0], &b = sizes[1];
      Dim &left = a[a.size() - (matmul.getTransA() ? 2 : 1)], &right = b[b.size() - (matmul.getTransB() ? 1 : 2)];
      left = right = draw(left.value(), 1);
    }
  }

  /// Opens batch dims, queries and keys; depth and features are fixed.
  void openAttention(device::AttentionOp attention) {
    if (attention.getViews()) {
      return;
    }
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, operands));
    int64_t rank = int64_t(sizes[operands].size());
    for (int64_t d = 0; d < rank - 1; ++d) {
      SmallVector<unsigned> tied =
          d < rank - 2 ? all : llvm::filter_to_vector(all, [](unsigned t) { return t % 3 == 0; });
      if (takes() && canOpen(d, tied)) {
        setAligned(d, draw(sizes[operands][d].value(), 1), tied);
      }
    }
    Dim keys = sizes[1].end()[-2];
    bool isMaskOfKeys = attention.getMask() && !sizes[3].empty() && !sizes[3].back().is(1);
    if (takes() && !isFixed(1) && !isFixed(2) && !(isMaskOfKeys && isFixed(3))) {
      sizes[1].end()[-2] = sizes[2].end()[-2] = keys = draw(keys.value(), 1);
      if (isMaskOfKeys) {
        sizes[3].back() = keys;
      }
    }
  }

  /// Opens dims of the result that each region covers, from the same whole dim of its source.
  void openCopy(device::CopyOp copy) {
    std::vector<device::SymbolicPiece> pieces;
    for (Attribute attribute : copy.getPieces()) {
      pieces.emplace_back(cast<device::PieceAttr>(attribute));
    }
    for (size_t d = 0; d < sizes[operands].size(); ++d) {
      Dim old = sizes[operands][d];
      auto isWhole = [&](const device::SymbolicPiece &piece) {
        int64_t s = piece.srcDims[d];
        return s >= 0 && piece.dstSteps[d] == 1 && piece.srcSteps[d] == 1 && piece.srcOffsets[s].is(0) &&
               llvm::count(piece.srcDims, s) == 1 && sameSize(piece.sizes[d], old) && !isFixed(piece.source) &&
               !(s == 1 && device::isBlocked(op->getOperand(piece.source).getType())) &&
               sameSize(sizes[piece.source][s], old);
      };
      if (pieces.empty() || !takes() || !canOpen(int64_t(d), {}) || !llvm::all_of(pieces, isWhole)) {
        continue;
      }
      Dim size = draw(old.value(), 1);
      SmallVector<std::pair<int64_t, int64_t>> places; // several regions may read one dim
      for (device::SymbolicPiece &piece : pieces) {
        piece.sizes[d] = size;
        places.push_back({piece.source, piece.srcDims[d]});
      }
      for (auto [source, dim] : places) {
        sizes[source][dim] = size;
      }
      sizes[operands][d] = size;
    }
    copy.setPiecesAttr(ArrayAttr::get(op->getContext(), llvm::map_to_vector(pieces, [&](const auto &piece) {
                                        return Attribute(piece.get(op->getContext()));
                                      })));
  }

  void setTypes() {
    for (auto [tensor, own] : llvm::zip_equal(tensorsOf(op), sizes)) {
      auto type = cast<RankedTensorType>(tensor.getType());
      tensor.setType(tensorType(own, type.getElementType(), type.getEncoding()));
    }
    updateSignature(op);
  }

  Operation *op;
  std::mt19937 &random;
  OpenedSizes opened;
  unsigned operands;
  int symbols = 0;
  SmallVector<SmallVector<Dim>> sizes; ///< of the operands, then of the results
};

} // namespace

bool openRandomSizes(Operation *op, std::mt19937 &random, OpenedSizes opened) {
  return SizeOpener(op, random, opened).open();
}

void bindSizes(Operation *op, Operation *open, llvm::function_ref<int64_t(top::SizeSymbolAttr)> valueOf) {
  for (auto [bound, tensor] : llvm::zip_equal(tensorsOf(op), tensorsOf(open))) {
    bound.setType(substitute(cast<RankedTensorType>(tensor.getType()),
                             [&](top::SizeSymbolAttr symbol) { return Dim(valueOf(symbol)); }));
  }
  if (auto copy = dyn_cast<device::CopyOp>(open)) {
    auto bind = [&](Dim size) { return substitute(size, [&](top::SizeSymbolAttr s) { return Dim(valueOf(s)); }); };
    auto pieces = llvm::map_to_vector(copy.getPieces(), [&](Attribute attribute) {
      device::SymbolicPiece piece(cast<device::PieceAttr>(attribute));
      llvm::transform(piece.sizes, piece.sizes.begin(), bind);
      return Attribute(piece.get(op->getContext()));
    });
    cast<device::CopyOp>(op).setPiecesAttr(ArrayAttr::get(op->getContext(), pieces));
  }
  updateSignature(op);
}

std::vector<std::vector<int64_t>> drawDims(const kernels::SizeSymbols &symbols, std::mt19937 &random) {
  std::vector<std::vector<int64_t>> all(5);
  for (top::SizeSymbolAttr symbol : symbols) {
    all[0].push_back(symbol.getMin());
    all[1].push_back(symbol.getMax());
    all[2].push_back(symbol.getLikely());
    for (size_t i = 3; i < all.size(); ++i) {
      all[i].push_back(symbol.getMin() + int64_t(random() % uint64_t(symbol.getMax() - symbol.getMin() + 1)));
    }
  }
  return all;
}

std::string checkOpenSizes(MLIRContext &context, const std::string &text, KernelSource compile,
                           const CheckOptions &options, uint64_t seed) {
  return checkOp(context, text, [&](Operation *open) -> std::string {
    std::mt19937 random{std::mt19937::result_type(seed)};
    if (!openRandomSizes(open, random) || !cast<kernels::KernelInterface>(open).acceptsOpenSizes()) {
      return "";
    }
    if (options.signedZeros) {
      device::setExact(open->getParentOp());
    }
    LoadedKernel kernel(open, compile);
    const kernels::SizeSymbols symbols = kernels::symbolsOf(open);
    std::string where;
    llvm::raw_string_ostream(where) << *open;
    if (!kernel.message.empty()) {
      return kernel.message + " of " + where;
    }
    for (const std::vector<int64_t> &values : drawDims(symbols, random)) {
      OwningOpRef<ModuleOp> module = parseCase(context, text);
      Operation *op = kernelOpOf(*module);
      bindSizes(op, open, [&](top::SizeSymbolAttr symbol) {
        return values[size_t(llvm::find(symbols, symbol) - symbols.begin())];
      });
      kernel.setDims(values);
      std::string message = kernel.message.empty() ? runOnRandom(op, kernel, options) : kernel.message;
      if (!message.empty()) {
        return message + llvm::formatv(" at {0} of ", llvm::make_range(values.begin(), values.end())).str() + where;
      }
    }
    return "";
  });
}

} // namespace tessera::native
