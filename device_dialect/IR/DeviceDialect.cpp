//===- DeviceDialect.cpp - Registration, attributes, interfaces -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceCustomOps.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::device;

#include "device_dialect/IR/DeviceDialect.cpp.inc"
#include "device_dialect/IR/DeviceInterfaces.cpp.inc"
#include "device_dialect/IR/PackingInterface.cpp.inc"

/// Parses and prints a list of numbers in brackets; `?` stands for a symbolic one.
static ParseResult parseNumbers(AsmParser &parser, SmallVector<int64_t> &numbers) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    numbers.push_back(ShapedType::kDynamic);
    return succeeded(parser.parseOptionalQuestion()) ? ParseResult(success()) : parser.parseInteger(numbers.back());
  });
}

static void printNumbers(AsmPrinter &printer, ArrayRef<int64_t> numbers) {
  printer << '[';
  llvm::interleaveComma(numbers, printer, [&](int64_t number) {
    if (ShapedType::isDynamic(number)) {
      printer << '?';
    } else {
      printer << number;
    }
  });
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "device_dialect/IR/DeviceAttrs.cpp.inc"

namespace {
/// Replaces symbols in the regions of copies, which attention has as well.
struct PieceSizes : tessera::top::SizeAttributes {
  explicit PieceSizes(Dialect *dialect) : SizeAttributes(dialect) {}
  using Replace = llvm::function_ref<tessera::Dim(tessera::top::SizeSymbolAttr)>;

  void replaceSymbols(Operation *op, Replace replace) const override {
    if (auto copy = dyn_cast<CopyOp>(op)) {
      copy.setPiecesAttr(replaceIn(copy.getPieces(), replace));
    } else if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getViews()) {
      attention.setViewsAttr(replaceIn(*attention.getViews(), replace));
    }
  }

  static ArrayAttr replaceIn(ArrayAttr pieces, Replace replace) {
    SmallVector<Attribute> replaced;
    for (PieceAttr attr : pieces.getAsRange<PieceAttr>()) {
      SymbolicPiece piece(attr);
      for (SmallVector<tessera::Dim> *sizes : {&piece.sizes, &piece.dstOffsets, &piece.srcOffsets}) {
        for (tessera::Dim &size : *sizes) {
          size = tessera::substitute(size, replace);
        }
      }
      replaced.push_back(piece.get(pieces.getContext()));
    }
    return ArrayAttr::get(pieces.getContext(), replaced);
  }
};
} // namespace

void DeviceDialect::initialize() {
  addInterfaces<PieceSizes>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "device_dialect/IR/DeviceAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "device_dialect/IR/DeviceComputeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "device_dialect/IR/DeviceMoveOps.cpp.inc"
      >();
  addOperations<BlockMatMulOp, CustomOp>();
}

LogicalResult BlockedAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t block,
                                  ArrayRef<tessera::top::SizeAttr>) {
  if (block < 1) { // blocked_c1
    return emitError() << "block " << block << " is not positive (blocked_c1)";
  }
  return success();
}

LogicalResult BlockedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                          function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() < 2) { // blocked_c2
    return emitError() << "a channel-blocked tensor needs rank 2 or more, but has rank " << shape.size()
                       << " (blocked_c2)";
  }
  if (failed(tessera::top::verifySizes(getSizes(), shape, [&] { return emitError(); }))) {
    return failure();
  }
  if (!getSizes().empty() && ShapedType::isDynamic(shape[1])) { // blocked_c3
    return emitError() << "the number of channels of a channel-blocked tensor must be a number (blocked_c3)";
  }
  return success();
}

LogicalResult PieceAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t, ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> dstOffsets, ArrayRef<int64_t>, ArrayRef<int64_t>,
                                ArrayRef<int64_t> srcOffsets, ArrayRef<int64_t>,
                                ArrayRef<tessera::top::SizeAttr> symbolic) {
  auto open = llvm::concat<const int64_t>(sizes, dstOffsets, srcOffsets);
  int64_t count = llvm::count_if(open, [](int64_t number) { return ShapedType::isDynamic(number); });
  bool isComplete = llvm::all_of(symbolic, [](tessera::top::SizeAttr size) { return tessera::Dim(size).isSymbolic(); });
  if (count != int64_t(symbolic.size()) || !isComplete) { // piece_c1
    return emitError() << count << " sizes and offsets are symbolic, but " << symbolic.size()
                       << " expressions are listed (piece_c1)";
  }
  return success();
}

Attribute BlockedAttr::withSizes(ArrayRef<tessera::top::SizeAttr> sizes) const {
  return get(getContext(), getBlock(), sizes);
}
