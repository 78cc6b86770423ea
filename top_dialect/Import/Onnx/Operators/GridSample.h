//===- GridSample.h - Handler of GridSample ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_GRIDSAMPLE_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_GRIDSAMPLE_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

void gridSample(NodeImporter &n);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_GRIDSAMPLE_H
