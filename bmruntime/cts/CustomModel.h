// SPDX-License-Identifier: Apache-2.0
//===- CustomModel.h - A model with a custom operator ---------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H
#define TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H

#include "Fixture.h"
#include "SizedModel.h"

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

/// As SizedModel, but z = y + scale * y, computed by test::Blend.
struct SizedCustomModel : SizedModel {
  SizedCustomModel() {
    subnet().plan.pop_back();
    bmodel::CustomOpDefT op;
    op.domain = "test", op.name = "Blend", op.version = 3, op.inputs = 2;
    op.attributes = R"({"scale":0.5})";
    addCustomCall(subnet(), std::move(op), {y, y, z}, {z});
    subnet().plan.back()->debug = std::make_unique<bmodel::StepDebugDefT>();
    subnet().plan.back()->debug->onnx_nodes = {"Blend_0"};
  }
};

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_CUSTOMMODEL_H
