//===- properties.h - Keys of ModelDef.properties ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef BMODEL_PROPERTIES_H
#define BMODEL_PROPERTIES_H

namespace bmodel {

/// "all": every engine gives the same bits as every other. A file of a float model has neither this nor the next.
inline constexpr const char *kBitEqual = "bit_equal";
/// One for each ONNX node whose sums of floats may differ between engines, and with them what reads them; all else is
/// equal to the bit.
inline constexpr const char *kBitEqualExcept = "bit_equal_except";
/// Of a model for people to look at: what its layers make are tensors of the file ("kept").
inline constexpr const char *kLayers = "layers";

} // namespace bmodel

#endif // BMODEL_PROPERTIES_H
