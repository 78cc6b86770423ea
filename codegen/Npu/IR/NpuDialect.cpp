//===- NpuDialect.cpp - Decisions of the NPU's compiler -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/IR/NpuDialect.h"

#include "device_dialect/IR/DeviceOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::npu;
namespace device = tessera::device;

#include "codegen/Npu/IR/NpuDialect.cpp.inc"
#include "codegen/Npu/IR/NpuEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/Npu/IR/NpuAttrs.cpp.inc"

void NpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "codegen/Npu/IR/NpuAttrs.cpp.inc"
      >();
  addPrograms();
}

Attribute PiecesAttr::parse(AsmParser &parser, Type) {
  SmallVector<PieceTime> times;
  auto parseTime = [&]() -> ParseResult {
    FailureOr<PieceTime> time = FieldParser<PieceTime>::parse(parser);
    if (succeeded(time)) {
      times.push_back(*time);
    }
    return failure(failed(time));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseTime)) {
    return {};
  }
  return PiecesAttr::get(parser.getContext(), times);
}

void PiecesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getTimes(), printer, [&](PieceTime time) { printer << stringifyPieceTime(time); });
  printer << ">";
}

LogicalResult TapsAttr::verify(function_ref<InFlightDiagnostic()> emitError, TapsAs fetched, TapsAs resident,
                               uint32_t fetchedColumns, uint32_t residentColumns) {
  if (resident == TapsAs::rows_loaded || resident == TapsAs::all_loaded) { // taps_c1
    return emitError() << "resident = " << stringifyTapsAs(resident)
                       << ": an input in local memory is not loaded (taps_c1)";
  }
  for (auto [as, columns] : {std::pair(fetched, fetchedColumns), std::pair(resident, residentColumns)}) {
    bool hasColumns = as == TapsAs::all_loaded || as == TapsAs::all_moved;
    if (columns == 1 || (columns && !hasColumns)) { // taps_c2
      return emitError() << stringifyTapsAs(as) << " with " << columns
                         << " columns: expected two or more, of all_loaded or all_moved (taps_c2)";
    }
  }
  return success();
}

LogicalResult AttentionAttr::verify(function_ref<InFlightDiagnostic()> emitError, AttentionMapping, int64_t blocks) {
  if (blocks < 1) { // attention_c1
    return emitError() << "a batch has " << blocks << " blocks of queries, expected at least one (attention_c1)";
  }
  return success();
}

LogicalResult ResidentAttr::verify(function_ref<InFlightDiagnostic()> emitError, uint32_t first, uint32_t last,
                                   uint64_t, bool, bool) {
  if (last < first) { // resident_c1
    return emitError() << "layers " << first << " to " << last << ": the last is before the first (resident_c1)";
  }
  return success();
}

LogicalResult SlicesAttr::verify(function_ref<InFlightDiagnostic()> emitError, uint32_t first, uint32_t last,
                                 ArrayRef<uint32_t> from, ArrayRef<uint32_t> until) {
  if (first >= last) { // slices_c1
    return emitError() << "layers " << first << " to " << last << ": a group has at least two layers (slices_c1)";
  }
  if (until.size() < 2 || from.size() != until.size()) { // slices_c2
    return emitError() << "'from' has " << from.size() << " rows and 'until' " << until.size()
                       << ": expected at least two slices, with an entry in both lists (slices_c2)";
  }
  for (size_t slice = 0; slice < until.size(); ++slice) {
    uint32_t before = slice ? until[slice - 1] : 0;
    if (until[slice] < before) { // slices_c3
      return emitError() << "slice " << slice << " ends at row " << until[slice]
                         << ", before the previous slice, which ends at " << before << " (slices_c3)";
    }
    if (from[slice] > before) { // slices_c4
      return emitError() << "slice " << slice << " holds rows from " << from[slice] << " on, but computes them from "
                         << before << " on (slices_c4)";
    }
  }
  return success();
}

static LogicalResult verifyFused(Operation *op, FusedAttr fused) {
  if (!isa<device::CopyOp, device::MapOp>(op)) {
    return op->emitOpError("cannot be fused: only copies and maps can");
  }
  bool isTarget = isa<device::CopyOp>(op) && fused.getInto() == FusedInto::producer;
  if (isTarget != (fused.getTarget() >= 0)) { // fused_c1, fused_c2
    return op->emitOpError("has target ")
           << fused.getTarget()
           << " in npu.fused: copies fused into a producer need a target from 0 on, other ops must not have one";
  }
  return success();
}

static LogicalResult verifyPieces(Operation *op, PiecesAttr pieces) {
  auto copy = dyn_cast<device::CopyOp>(op);
  if (!copy || copy.getPieces().size() != pieces.getTimes().size()) { // pieces_c1
    return op->emitOpError("has npu.pieces for ")
           << pieces.getTimes().size() << " pieces, expected a copy with as many pieces (pieces_c1)";
  }
  return success();
}

static LogicalResult verifyTaps(Operation *op, ArrayAttr taps) {
  auto conv = dyn_cast<device::ConvOp>(op);
  auto type = conv ? cast<RankedTensorType>(conv.getX().getType()) : RankedTensorType();
  int64_t volumes = !type ? 0 : type.getRank() == 5 ? type.getDimSize(0) : 1;
  if (int64_t(taps.size()) != volumes || !llvm::all_of(taps, llvm::IsaPred<TapsAttr>)) {
    return op->emitOpError("has npu.taps = ")
           << taps << ", expected one #npu.taps for each volume of a conv: " << volumes;
  }
  return success();
}

LogicalResult NpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto wrongType = [&](StringRef expected) {
    return op->emitOpError("has ") << attribute.getName() << " = " << attribute.getValue() << ", expected " << expected;
  };
  if (attribute.getName() == kFusedAttr) {
    auto fused = dyn_cast<FusedAttr>(attribute.getValue());
    return fused ? verifyFused(op, fused) : wrongType("#npu.fused");
  }
  if (attribute.getName() == kPiecesAttr) {
    auto pieces = dyn_cast<PiecesAttr>(attribute.getValue());
    return pieces ? verifyPieces(op, pieces) : wrongType("#npu.pieces");
  }
  if (attribute.getName() == kTapsAttr) {
    auto taps = dyn_cast<ArrayAttr>(attribute.getValue());
    return taps ? verifyTaps(op, taps) : wrongType("a list of #npu.taps");
  }
  if (attribute.getName() == kAttentionAttr) {
    return isa<AttentionAttr>(attribute.getValue()) && isa<device::AttentionOp>(op)
               ? success()
               : wrongType("#npu.attention, on a device.attention");
  }
  if (attribute.getName() == kRowsOnLanesAttr) {
    auto batches = dyn_cast<IntegerAttr>(attribute.getValue());
    return batches && batches.getType().isInteger(64) && batches.getInt() > 0 && isa<device::MatMulOp>(op)
               ? success()
               : wrongType("a number of batches, on a device.matmul");
  }
  if (attribute.getName() == kResidentAttr) {
    return isa<ResidentAttr>(attribute.getValue()) ? success() : wrongType("#npu.resident");
  }
  if (attribute.getName() == kSlicesAttr) {
    return isa<SlicesAttr>(attribute.getValue()) ? success() : wrongType("#npu.slices");
  }
  if (attribute.getName() == kSingleBufferedAttr || attribute.getName() == kPreservedAttr) {
    return isa<UnitAttr>(attribute.getValue()) ? success() : wrongType("a unit attribute");
  }
  if (attribute.getName() == kEffortAttr) {
    return isa<IntegerAttr>(attribute.getValue()) ? success() : wrongType("a number");
  }
  return op->emitOpError("has an unknown attribute ") << attribute.getName();
}
