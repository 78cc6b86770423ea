//===- PlanFile.h - A schedule by layer, as JSON ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PLANFILE_H
#define TESSERA_CODEGEN_NPU_PLANFILE_H

#include "codegen/Npu/LayerSchedule.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::npu {

/// {"whole": [{"first": layer, "last": layer, "from": name, "to": name, "bytes_per_lane", "stored"}], "groups":
/// [{"first", "last", "from", "to", "slices"}]}; layers by number, with their ONNX names.
llvm::json::Object describePlan(const LayerSchedule &plan);

/// The same read back, perhaps edited: "bytes_per_lane" and "stored" tell and are not read, names may be left out. The
/// error says what is wrong where.
llvm::Expected<LayerSchedule> readPlan(llvm::StringRef path);
/// The same of text that |where| names in errors.
llvm::Expected<LayerSchedule> parsePlan(llvm::StringRef text, llvm::StringRef where);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PLANFILE_H
