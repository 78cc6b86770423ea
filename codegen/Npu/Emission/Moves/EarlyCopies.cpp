//===- EarlyCopies.cpp - Parts of copies that run early -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Moves/EarlyCopies.h"

#include "codegen/Npu/Decisions/ChooseDirectStores.h"
#include "codegen/Npu/Emission/Moves/Copies.h"
#include "codegen/Npu/IR/NpuDialect.h"

using namespace mlir;

namespace tessera::npu {

static PieceTime timeOf(device::CopyOp copy, unsigned piece) {
  auto pieces = copy->getAttrOfType<PiecesAttr>(NpuDialect::kPiecesAttr);
  return pieces ? pieces.getTimes()[piece] : PieceTime::turn;
}

EarlyCopies::EarlyCopies(func::FuncOp function, const Chip &) : function(function) {
  for (auto copy : function.getBody().front().getOps<device::CopyOp>()) {
    for (auto [index, piece] : llvm::enumerate(copy.getPieces().getAsRange<device::PieceAttr>())) {
      Operation *writer =
          hoistsLoads(copy, unsigned(index)) ? lastWriterOf(copy.getSources()[piece.getSource()]) : nullptr;
      if (writer) {
        behind[writer].push_back({copy, unsigned(index)});
      }
    }
  }
}

bool EarlyCopies::hoistsLoads(device::CopyOp copy, unsigned piece) const {
  return timeOf(copy, piece) != PieceTime::turn;
}

llvm::Error EarlyCopies::emitBehind(Operation *op, uint32_t number, EmissionContext &context) const {
  for (auto [each, index] : behind.lookup(op)) {
    auto copy = cast<device::CopyOp>(each);
    if (timeOf(copy, index) == PieceTime::direct) {
      if (llvm::Error error = context.surveys() ? planStores(copy, index, context) : llvm::Error::success()) {
        return error;
      }
      continue;
    }
    context.operands.enter(copy, number);
    if (llvm::Error error = emitPieces(copy, index, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Records in the plan which ops store a piece directly. All ops that compute its source have been visited.
llvm::Error EarlyCopies::planStores(device::CopyOp copy, unsigned index, EmissionContext &context) const {
  auto piece = cast<device::PieceAttr>(copy.getPieces()[index]);
  auto stores = directStoreCosts(function, copy, piece, context.chip);
  if (!stores) {
    return reject("has a direct piece in npu.pieces that the ops which compute its source cannot store");
  }
  for (const DirectStoreCost &store : *stores) {
    context.plan.addDirectStore(store.value, store.directStore);
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
