//===- properties.h - Keys of ModelDef.properties ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef BMODEL_PROPERTIES_H
#define BMODEL_PROPERTIES_H

namespace bmodel {

/// "all": all engines produce identical bits. Files of float models have neither this property nor kBitEqualExcept.
inline constexpr const char *kBitEqual = "bit_equal";
/// One property per ONNX node whose float sums may differ between engines. The values computed from such a node may
/// differ as well; all other values are bit-identical.
inline constexpr const char *kBitEqualExcept = "bit_equal_except";
/// Marks a model compiled for inspection: the results of its layers are tensors of the file ("kept").
inline constexpr const char *kLayers = "layers";

} // namespace bmodel

#endif // BMODEL_PROPERTIES_H
