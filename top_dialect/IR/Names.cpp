//===- Names.cpp - Keeping ONNX names through rewrites ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Names.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera::top;

static void collectNamed(Location loc, llvm::SetVector<Location> &named) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location inner : fused.getLocations()) {
      collectNamed(inner, named);
    }
  } else if (isa<NameLoc>(loc)) {
    named.insert(loc);
  }
}

SmallVector<StringRef> tessera::top::getNodeNames(Location loc) {
  llvm::SetVector<Location> named;
  collectNamed(loc, named);
  SmallVector<StringRef> names;
  for (Location inner : named) {
    names.push_back(cast<NameLoc>(inner).getName().getValue());
  }
  return names;
}

std::string tessera::top::getDisplayName(Location loc) { return llvm::join(getNodeNames(loc), "+"); }

// Thousands of ops that merge one by one would otherwise create as many lists of thousands of names.
static constexpr size_t kMaxFusedNames = 256;

Location tessera::top::fuseNames(MLIRContext *context, ArrayRef<Location> locs) {
  llvm::SetVector<Location> named;
  for (Location loc : locs) {
    collectNamed(loc, named);
  }
  if (named.empty()) {
    return locs.empty() ? Location(UnknownLoc::get(context)) : locs.front();
  }
  if (named.size() > kMaxFusedNames) {
    SmallVector<Location> kept(named.getArrayRef().take_front(kMaxFusedNames - 1));
    kept.push_back(named.back());
    return FusedLoc::get(context, kept);
  }
  return named.size() == 1 ? named.front() : FusedLoc::get(context, named.getArrayRef());
}

StringRef tessera::top::getInputName(BlockArgument input) {
  // The block has no parent while the importer builds a region.
  auto function = dyn_cast_if_present<FunctionOpInterface>(input.getOwner()->getParentOp());
  auto name =
      function ? function.getArgAttrOfType<StringAttr>(input.getArgNumber(), TopDialect::kNameAttr) : StringAttr();
  return name ? name.getValue() : StringRef();
}

StringRef tessera::top::getTensorName(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result) {
    return "";
  }
  auto names = result.getOwner()->getAttrOfType<ArrayAttr>(TopDialect::kOutputsAttr);
  if (!names || result.getResultNumber() >= names.size()) {
    return "";
  }
  auto name = dyn_cast<StringAttr>(names[result.getResultNumber()]);
  return name ? name.getValue() : StringRef();
}

void tessera::top::setTensorNames(Operation *op, ArrayRef<StringRef> names) {
  SmallVector<Attribute> attrs;
  for (StringRef name : names) {
    attrs.push_back(StringAttr::get(op->getContext(), name));
  }
  op->setAttr(TopDialect::kOutputsAttr, ArrayAttr::get(op->getContext(), attrs));
}

void tessera::top::copyNames(Operation *from, Operation *to) { copyNames(ArrayRef<Operation *>(from), to); }

void tessera::top::copyNames(ArrayRef<Operation *> from, Operation *to) {
  SmallVector<Location> locs;
  for (Operation *op : from) {
    locs.push_back(op->getLoc());
  }
  locs.push_back(to->getLoc());
  to->setLoc(fuseNames(to->getContext(), locs));
  Operation *last = from.back();
  Attribute names = last->getAttr(TopDialect::kOutputsAttr);
  if (names && last->getNumResults() == to->getNumResults()) {
    to->setAttr(TopDialect::kOutputsAttr, names);
  }
}
