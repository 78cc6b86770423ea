//===- PlanFile.h - A schedule by layer, as JSON ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_PLANFILE_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_PLANFILE_H

#include "codegen/Npu/Schedule/LayerSchedule.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::npu {

/// Returns the schedule as JSON: {"whole": [{"first": layer, "last": layer, "from": name, "to": name, "bytes_per_lane",
/// "stored"}], "groups": [{"first", "last", "from", "to", "slices"}]}. Layers are given by number and ONNX name.
llvm::json::Object describePlan(const LayerSchedule &plan);

/// Reads a schedule from a JSON file. "bytes_per_lane" and "stored" are accepted and ignored; names may be omitted.
/// Errors name the entry at fault.
llvm::Expected<LayerSchedule> readPlan(llvm::StringRef path);
/// Parses a schedule. |where| names the text in errors.
llvm::Expected<LayerSchedule> parsePlan(llvm::StringRef text, llvm::StringRef where);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_PLANFILE_H
