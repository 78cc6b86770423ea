//===- NpuPlanFile.h - What a plan of the NPU decides, as JSON --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/Npu/Decisions.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// {"whole": [{"first": layer, "last": layer, "from": name, "to": name, "bytes_per_lane", "stored"}], "groups":
/// [{"first", "last", "from", "to", "slices"}]}; layers by number, with their ONNX names.
llvm::json::Object describePlan(const npu::Decisions &plan);

/// The same read back, perhaps edited: "bytes_per_lane" and "stored" tell and are not read, names may be left out. The
/// error says what is wrong where.
llvm::Expected<npu::Decisions> readPlan(llvm::StringRef path);

} // namespace tessera::tool
