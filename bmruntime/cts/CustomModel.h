// SPDX-License-Identifier: Apache-2.0
//===- CustomModel.h - A model with a custom operator ---------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H
#define TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H

#include "Fixture.h"

namespace bmrt::cts {

/// Computes y = relu(x + scale * w) with the operator test::Blend (CustomOp.h) and a kernel.
struct CustomModel : bmodel::test::AddRelu {
  explicit CustomModel(const char *name = "Blend") : AddRelu(contractCode(), 1024) {
    subnet().plan.clear(), subnet().kernels.clear();
    bmodel::CustomOpDefT op;
    op.domain = "test", op.name = name, op.version = 3, op.inputs = 2;
    op.attributes = R"({"mode":"a,\"b\"}","pads":[1,2],"scale":0.5})";
    addCustomCall(subnet(), std::move(op), {x, w, sum}, {sum});
    describe("Blend_0", "top.custom", "device.custom");
    addLaunch(subnet(), addKernel(subnet(), "relu", 2), {sum, y}, 64, {y});
  }
};

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H
