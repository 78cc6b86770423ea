// SPDX-License-Identifier: Apache-2.0
//===- DataSizedModel.h - A model that reads a size from its data ---------===//
#ifndef TESSERA_BMRUNTIME_CTS_DATASIZEDMODEL_H
#define TESSERA_BMRUNTIME_CTS_DATASIZEDMODEL_H

#include "SizedModel.h"

namespace bmrt::cts {

/// Reads the dim c from the input `count` and computes the output p [c, ceil(w / 2)] from the first c rows of s.
struct DataSizedModel : SizedModel {
  explicit DataSizedModel(std::vector<char> codeBytes = sizedCode()) : SizedModel(std::move(codeBytes)) {
    using namespace bmodel;
    c = addDim(stage(), "c", {0, 17});
    areaOfP = addDerivedDim(stage(), "c*w/2", {slotTerm(c), slotTerm(half), opTerm(DimOp::Mul)}, {0, 17 * 17});
    count = addTensor(stage(), "count", DType::I64, std::vector<int64_t>{2});
    tensor(count).role = TensorRole::Input, tensor(count).place = Place::Caller;
    written = addTensor(stage(), "written", DType::I64, std::vector<int64_t>{2});
    tensor(written).role = TensorRole::Output, tensor(written).place = Place::Caller;
    front = add("front", {c, w}, TensorRole::Workspace, Place::Workspace);
    tensor(front).view_of = int32_t(s);
    p = add("p", {c, half}, TensorRole::Output, Place::Caller);
    q = add("q", {c, half}, TensorRole::Output, Place::Caller);
    stage().inputs.push_back(count);
    stage().outputs.insert(stage().outputs.end(), {p, q, written});
    ReadDimDefT readDim;
    readDim.slot = c, readDim.from = count, readDim.index = 1;
    addStep(readDim);
    addLaunch(subnet(), addKernel(subnet(), "add_pairs", 3), {front, t, p}, {c, m}, slotDim(stage(), areaOfP), {p});
    CopyDefT copy;
    copy.from = p, copy.to = q;
    addStep(copy);
    for (uint64_t index : {0, 1}) {
      WriteDimDefT writeDim;
      writeDim.slot = index ? areaOfP : c, writeDim.to = written, writeDim.index = index;
      addStep(writeDim);
    }
  }

  template <typename Op>
  void addStep(Op op) {
    subnet().plan.push_back(std::make_unique<bmodel::StepDefT>());
    subnet().plan.back()->op.Set(std::move(op));
  }
  bmodel::ReadDimDefT &read() { return *subnet().plan[3]->op.AsReadDimDef(); }
  bmodel::LaunchDefT &dataLaunch() { return *subnet().plan[4]->op.AsLaunchDef(); }
  bmodel::WriteDimDefT &lastWrite() { return *subnet().plan[7]->op.AsWriteDimDef(); }

  uint32_t c, areaOfP, count, written, front, p, q;
};

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_DATASIZEDMODEL_H
