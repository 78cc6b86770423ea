// SPDX-License-Identifier: Apache-2.0
//===- SizedModel.h - A model whose sizes are known at run time -----------===//
#ifndef TESSERA_BMRUNTIME_CTS_SIZEDMODEL_H
#define TESSERA_BMRUNTIME_CTS_SIZEDMODEL_H

#include "Fixture.h"

namespace bmrt::cts {

/// The compiled sized.c.
inline const std::vector<char> &sizedCode() {
  static const std::vector<char> code = bmodel::test::readBytes(BMRT_CTS_SIZED);
  return code;
}

/// Inputs x [n, w] and t [n + w / 3], w a multiple of 3; constant b [3]. Computes s = x + b, and the outputs y [n,
/// ceil(w / 2)], the sums of pairs of s and elements of t, and z, a copy of y.
struct SizedModel {
  explicit SizedModel(std::vector<char> codeBytes = sizedCode(), int64_t mostRows = 17) : code(std::move(codeBytes)) {
    using namespace bmodel;
    segments.emplace_back(SegmentKind::Code);
    segments.emplace_back(SegmentKind::Constants);
    segments[0].append(code);
    segments[1].append({reinterpret_cast<const char *>(kBias), sizeof(kBias)});
    model.producer = "test";
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[0]->name = model.chips[0]->family = "x86";
    model.nets.push_back(std::make_unique<NetDefT>());
    model.nets[0]->name = "main";
    model.nets[0]->stages.push_back(std::make_unique<StageDefT>());
    n = addDim(stage(), "n", {0, mostRows}, 1, 5);
    w = addDim(stage(), "w", {0, 33}, 3, 9);
    m = addDerivedDim(stage(), "m", {slotTerm(w), constantTerm(3), opTerm(DimOp::FloorDiv)}, {0, 11});
    total = addDerivedDim(stage(), "n+m", {slotTerm(n), slotTerm(m), opTerm(DimOp::Add)}, {0, mostRows + 11});
    half = addDerivedDim(stage(), "w/2", {slotTerm(w), constantTerm(2), opTerm(DimOp::CeilDiv)}, {0, 17});
    tiles = addDerivedDim(stage(), "n*w/2", {slotTerm(n), slotTerm(half), opTerm(DimOp::Mul)}, {0, 17 * mostRows});
    x = add("x", {n, w}, TensorRole::Input, Place::Caller);
    t = add("t", {total}, TensorRole::Input, Place::Caller);
    b = addTensor(stage(), "b", DType::F32, std::vector<int64_t>{3});
    tensor(b).role = TensorRole::Constant, tensor(b).place = Place::Segment, tensor(b).place_index = 1;
    s = add("s", {n, w}, TensorRole::Workspace, Place::Workspace);
    y = add("y", {n, half}, TensorRole::Output, Place::Caller);
    z = add("z", {n, half}, TensorRole::Output, Place::Caller);
    stage().inputs = {x, t};
    stage().outputs = {y, z};
    stage().workspaces.push_back(std::make_unique<WorkspaceDefT>());
    stage().workspaces[0]->bytes = tensor(s).bytes;
    stage().subnets.push_back(std::make_unique<SubnetDefT>());
    subnet().name = "main", subnet().kind = SubnetKind::X86, subnet().code_segment = 0;
    subnet().cpu_features = BM_CPU_SSE2, subnet().kernel_abi = BM_KERNEL_ABI_VERSION;
    addLaunch(subnet(), addKernel(subnet(), "add_bias", 3), {x, b, s}, {n, m}, slotDim(stage(), n), {s});
    addLaunch(subnet(), addKernel(subnet(), "add_pairs", 3), {s, t, y}, {n, m}, slotDim(stage(), tiles), {y});
    CopyDefT copy;
    copy.from = y, copy.to = z;
    subnet().plan.push_back(std::make_unique<StepDefT>());
    subnet().plan.back()->op.Set(copy);
    subnet().plan.back()->writes = {z};
  }

  uint32_t add(const char *name, std::vector<uint32_t> dims, bmodel::TensorRole role, bmodel::Place place) {
    std::vector<bmodel::Dim> shape;
    for (uint32_t dim : dims) {
      shape.push_back(bmodel::slotDim(stage(), dim));
    }
    const uint32_t slot = addTensor(stage(), name, bmodel::DType::F32, shape);
    tensor(slot).role = role, tensor(slot).place = place, tensor(slot).onnx_names = {name};
    return slot;
  }

  bmodel::StageDefT &stage() { return *model.nets[0]->stages[0]; }
  bmodel::SubnetDefT &subnet() { return *stage().subnets[0]; }
  bmodel::TensorDefT &tensor(uint32_t slot) { return *stage().tensors[slot]; }
  bmodel::LaunchDefT &launch(size_t step) { return *subnet().plan[step]->op.AsLaunchDef(); }
  std::string write(const std::string &path) { return writeModel(model, segments, path); }

  static constexpr float kBias[3] = {10, 20, 30};
  std::vector<char> code;
  std::vector<bmodel::SegmentContents> segments;
  bmodel::ModelDefT model;
  uint32_t n, w, m, total, half, tiles;
  uint32_t x, t, b, s, y, z;
};

/// The result y of SizedModel.
inline std::vector<float> sizedResult(const std::vector<float> &x, const std::vector<float> &t, int64_t n, int64_t w) {
  std::vector<float> y;
  auto s = [&](int64_t i, int64_t j) { return j < w ? x[size_t(i * w + j)] + SizedModel::kBias[j % 3] : 0; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < w; k += 2) {
      y.push_back(s(i, k) + s(i, k + 1) + t[size_t(i)] + t.back());
    }
  }
  return y;
}

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_SIZEDMODEL_H
