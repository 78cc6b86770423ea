//===- OnnxProto.h - The ONNX protobuf types ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXPROTO_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXPROTO_H

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma clang diagnostic pop

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXPROTO_H
