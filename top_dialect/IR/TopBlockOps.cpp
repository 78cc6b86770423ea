//===- TopBlockOps.cpp - Verify and infer of ops on blocks ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopBlockOps.h"

#include "top_dialect/IR/BlockQuantization.h"
#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

#define GET_OP_CLASSES
#include "top_dialect/IR/TopBlockOps.cpp.inc"

LogicalResult BlockMatMulOp::inferShapes(Types &types) {
  if (rankOf(getX()) < 2 || rankOf(getW()) != 2) { // block_matmul_c1
    return emitOpError() << "x has rank " << rankOf(getX()) << " and w has rank " << rankOf(getW())
                         << ", allowed are 2 or more and 2 (C1)";
  }
  Dims x = shapeOf(getX()), w = shapeOf(getW());
  if (!dimsAgree(x.back(), w[0])) { // block_matmul_c2
    return emitOpError() << "inner dims are " << toText(x.back()) << " of " << formatShape(x) << " and " << toText(w[0])
                         << " of " << formatShape(w) << ", they must be equal (C2)";
  }
  const auto block = static_cast<int64_t>(getBlock());
  if (block < 1 || block > kMostOfBlock) { // block_matmul_c3
    return emitOpError() << "block is " << block << ", allowed are 1 to " << kMostOfBlock << " (C3)";
  }
  Type f32 = Float32Type::get(getContext());
  for (Value values : {getScales(), getMins()}) {
    Dims expected{ceilDiv(w[0], block), w[1]};
    if (values && !shapesAgree(shapeOf(values), expected)) { // block_matmul_c4
      return emitOpError() << "scales or mins are " << formatShape(shapeOf(values)) << ", but must be "
                           << formatShape(expected) << " (C4)";
    }
    if (values && elementOf(values) != f32) { // block_matmul_c5
      return emitOpError() << "scales or mins are " << elementOf(values) << ", but must be f32 (C5)";
    }
  }
  if (elementOf(getX()) != f32 || !elementOf(getW()).isSignlessInteger(8)) { // block_matmul_c5
    return emitOpError() << "multiplies " << elementOf(getX()) << " and " << elementOf(getW())
                         << ", but must multiply f32 and i8 (C5)";
  }
  x.back() = w[1];
  return addType(*this, x, f32, types);
}
