//===- OnnxNames.h - Names of an ONNX file that no text can hold ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxProto.h"

namespace tessera::top::onnx_import {

/// Makes every name and text of |model| valid UTF-8 without zero bytes, and at most 16,384 bytes long: bytes that are
/// not become
/// "\xNN", the middle of a longer one "...". Equal texts stay equal, different ones different. Everything behind the
/// importer (messages, JSON, the .bmodel, C strings) may so rely on it.
void escapeNames(onnx::ModelProto &model);

} // namespace tessera::top::onnx_import
