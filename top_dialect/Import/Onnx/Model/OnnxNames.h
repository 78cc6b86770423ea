//===- OnnxNames.h - Normalisation of names that are not valid text -------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXNAMES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXNAMES_H

#include "top_dialect/Import/Onnx/Model/OnnxProto.h"

namespace tessera::top::onnx_import {

/// Turns all names and texts of |model| into valid UTF-8 without zero bytes, at most 16,384 bytes long. Invalid bytes
/// become "\xNN", and the middle of a longer text becomes "...". Equal texts stay equal and different ones stay
/// different. All later stages (messages, JSON, the .bmodel, C strings) can rely on this.
void escapeNames(onnx::ModelProto &model);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXNAMES_H
