//===- CentreWords.cpp - Unsigned 16-bit integers as signed ones ----------===//
// SPDX-License-Identifier: Apache-2.0
//
// Engines multiply i16. An imported ui16 tensor becomes i16 with the same values: sat(rne(r / s) + z) - 32768 equals
// the i16 sat(rne(r / s) + (z - 32768)), because both additions are exact unless they saturate.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::device {

static constexpr double kHalf = 32768;

/// Returns the zero point for integers reduced by kHalf.
static Value centred(OpBuilder &builder, Location loc, Value zeroPoint) {
  double zero = top::getConstantDoubles(zeroPoint)->front();
  return top::createScalar(builder, loc, builder.getIntegerType(16), zero - kHalf);
}

void centreWords(Operation *function) {
  SmallVector<top::QuantizeOp> words;
  function->walk([&](top::QuantizeOp op) {
    Type element = Lowering::element(op.getY());
    if (element.isUnsignedInteger(16) && getScaling(op)) {
      words.push_back(op);
    }
  });
  for (top::QuantizeOp op : words) {
    SmallVector<top::DequantizeOp> readers;
    for (Operation *user : op.getY().getUsers()) {
      auto reader = dyn_cast<top::DequantizeOp>(user);
      if (reader && getScaling(reader)) {
        readers.push_back(reader);
      }
    }
    if (readers.empty()) {
      continue;
    }
    OpBuilder builder(op);
    Location loc = op.getLoc();
    RankedTensorType type = withElement(Lowering::type(op.getY()), builder.getIntegerType(16));
    auto integers = top::QuantizeOp::create(builder, loc, type, op.getX(), op.getScale(),
                                            centred(builder, loc, op.getZeroPoint()), op.getLevels());
    for (top::DequantizeOp reader : readers) {
      builder.setInsertionPoint(reader);
      Value zero = centred(builder, reader.getLoc(), reader.getZeroPoint());
      auto real = top::DequantizeOp::create(builder, reader.getLoc(), reader.getType(), integers, reader.getScale(),
                                            zero, reader.getLevels());
      top::copyNames(reader, real);
      reader.replaceAllUsesWith(real.getY());
      reader.erase();
    }
    if (op.use_empty()) {
      op.erase();
    }
  }
}

} // namespace tessera::device
