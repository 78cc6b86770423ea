// SPDX-License-Identifier: Apache-2.0
//===- TensorInfo.cpp - Descriptions of tensors for the C interface -------===//
#include "TensorInfo.h"

#include "Status.h"
#include "bmodel/tensor_layout.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

static_assert(int(BMRT_F32) == int(DType::F32) && int(BMRT_BOOL) == int(DType::Bool) &&
              int(BMRT_BOOL) == int(DType::MAX) && int(BMRT_PACKED) == int(LayoutKind::Packed) &&
              int(BMRT_PACKED) == int(LayoutKind::MAX));
static_assert(TESSERA_CUSTOM_OP_MAX_RANK == BMRT_MAX_RANK);

void bmrt::core::describeTensor(const TensorDef &def, const int64_t *dims, bmrt_tensor_info_t &out) {
  out = {};
  out.def = &def;
  out.name = def.name()->c_str();
  out.dtype = bmrt_dtype_t(def.dtype());
  out.layout = bmrt_layout_t(def.layout());
  out.block = def.block();
  out.block_axis = def.block_axis();
  out.rank = def.shape() ? def.shape()->size() : 0;
  for (uint32_t i = 0; i < out.rank; ++i) {
    const Dim &dim = *def.shape()->Get(i);
    out.max_shape[i] = dim.value();
    out.shape[i] = dim.slot() < 0 ? dim.value() : dims ? dims[dim.slot()] : -1;
  }
  out.bytes = currentBytes(def, dims);
  out.onnx_name_count = def.onnx_names() ? def.onnx_names()->size() : 0;
  out.quant_axis = -1;
  if (const QuantDef *quant = def.quant()) {
    out.scale_count = quant->scales() ? quant->scales()->size() : 0;
    out.scales = quant->scales() ? quant->scales()->data() : nullptr;
    out.zero_points = quant->zero_points() ? quant->zero_points()->data() : nullptr;
    out.quant_axis = quant->axis();
  }
  out.preprocess = def.preprocess() ? def.preprocess()->c_str() : nullptr;
}

tessera_tensor_t bmrt::core::describeCustomTensor(const TensorDef &def, const int64_t *dims) {
  tessera_tensor_t result;
  memset(&result, 0, sizeof(result));
  result.dtype = uint32_t(def.dtype()), result.rank = def.shape() ? def.shape()->size() : 0;
  result.bytes = currentBytes(def, dims);
  for (uint32_t i = 0; i < result.rank; ++i) {
    const Dim &dim = *def.shape()->Get(i);
    result.shape[i] = dim.slot() < 0 ? dim.value() : dims ? dims[dim.slot()] : -1;
  }
  return result;
}

bool bmrt::core::isKnown(const TensorDef &def, const int64_t *dims) {
  for (uint32_t i = 0; def.shape() && i < def.shape()->size(); ++i) {
    const int32_t slot = def.shape()->Get(i)->slot();
    if (slot >= 0 && (!dims || dims[slot] < 0)) {
      return false;
    }
  }
  return true;
}

uint64_t bmrt::core::currentBytes(const TensorDef &def, const int64_t *dims) {
  const uint32_t rank = def.shape() ? def.shape()->size() : 0;
  int64_t shape[BMRT_MAX_RANK];
  for (uint32_t i = 0; i < rank; ++i) {
    const Dim &dim = *def.shape()->Get(i);
    shape[i] = dim.slot() < 0 ? dim.value() : dims ? dims[dim.slot()] : -1;
    if (shape[i] < 0) {
      return def.bytes();
    }
  }
  uint64_t bytes = 0;
  return storedBytes(def.dtype(), shape, rank, def.layout(), def.block(), def.block_axis(), bytes) ? bytes
                                                                                                   : def.bytes();
}

const char *bmrt::core::formatShape(const int64_t *shape, uint32_t rank, char *buffer, size_t size) {
  size_t used = size_t(snprintf(buffer, size, "%s", rank == 0 ? "scalar" : ""));
  for (uint32_t i = 0; i < rank && used < size; ++i) {
    const char *separator = i ? "x" : "";
    const int n = shape[i] < 0 ? snprintf(buffer + used, size - used, "%s?", separator)
                               : snprintf(buffer + used, size - used, "%s%" PRId64, separator, shape[i]);
    used += size_t(n);
  }
  return buffer;
}

extern "C" uint32_t bmrt_dtype_bytes(bmrt_dtype_t dtype) { return dtypeBytes(DType(dtype)); }

extern "C" const char *bmrt_dtype_name(bmrt_dtype_t dtype) {
  return unsigned(dtype) <= unsigned(BMRT_BOOL) ? dtypeName(DType(dtype)) : "?";
}

extern "C" const char *bmrt_tensor_onnx_name(const bmrt_tensor_info_t *info, uint32_t index) {
  return info && index < info->onnx_name_count
             ? static_cast<const TensorDef *>(info->def)->onnx_names()->Get(index)->c_str()
             : nullptr;
}

extern "C" const char *bmrt_tensor_computed_by(const bmrt_tensor_info_t *info) {
  const flatbuffers::String *op = info ? static_cast<const TensorDef *>(info->def)->computed_by() : nullptr;
  return op ? op->c_str() : nullptr;
}

extern "C" uint64_t bmrt_tensor_row_major_bytes(const bmrt_tensor_info_t *info) {
  uint64_t bytes = 0;
  return info && info->rank <= BMRT_MAX_RANK &&
                 storedBytes(DType(info->dtype), info->shape, info->rank, LayoutKind::RowMajor, 0, 0, bytes)
             ? bytes
             : 0;
}

extern "C" bmrt_code_t bmrt_tensor_to_row_major(const bmrt_tensor_view_t *view, void *out, uint64_t out_bytes,
                                                bmrt_status_t *out_status) {
  BMRT_REQUIRE(view && (out || out_bytes == 0));
  const bmrt_tensor_info_t &info = view->info;
  if (info.layout == BMRT_PACKED) {
    return BMRT_FAIL(out_status, UNSUPPORTED, "tensor '%.100s' is packed for a kernel and has no row-major form",
                     info.name);
  }
  const uint64_t bytes = bmrt_tensor_row_major_bytes(&info);
  if (out_bytes != bytes) {
    return BMRT_FAIL(out_status, INVALID_ARGUMENT, "buffer for tensor '%.100s' has %" PRIu64 " bytes, needs %" PRIu64,
                     info.name, out_bytes, bytes);
  }
  if (bytes > 0 && info.layout == BMRT_CHANNEL_BLOCKED) {
    unblock(view->data, out, dtypeBytes(DType(info.dtype)), info.shape, info.rank, info.block, info.block_axis);
  } else if (bytes > 0) {
    memcpy(out, view->data, bytes);
  }
  return succeed(out_status);
}
