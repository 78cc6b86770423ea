// SPDX-License-Identifier: Apache-2.0
//===- CustomOps.cpp - The custom operators of a process ------------------===//
#include "bmodel/custom_ops.h"

#include "bmodel/dim_terms.h"
#include "bmodel/tensor_layout.h"

#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

using namespace bmodel;

static_assert(TESSERA_BOOL == int(DType::Bool) && TESSERA_I64 == int(DType::I64) && TESSERA_F64 == int(DType::F64),
              "tessera_custom_op.h numbers the element types as the file does");
static_assert(int(DimOp::Add) + TESSERA_SIZE_FLOOR_DIV == int(DimOp::FloorDiv) &&
                  int(DimOp::Add) + TESSERA_SIZE_MOD == int(DimOp::Mod) &&
                  int(DimOp::Add) + TESSERA_SIZE_MAX == int(DimOp::MAX),
              "tessera_custom_op.h lists the operations on sizes in the order of the file");

class bmodel::CustomOp {
public:
  tessera_custom_op_t def = {};
  mutable pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; ///< held while an operator that is not thread-safe runs
};

namespace {

constexpr size_t kMostOps = 128;

CustomOp registered[kMostOps];
size_t registeredCount = 0;
pthread_mutex_t registryMutex = PTHREAD_MUTEX_INITIALIZER;

class Lock {
public:
  explicit Lock(pthread_mutex_t *mutex) : mutex(mutex) {
    if (mutex) {
      pthread_mutex_lock(mutex);
    }
  }
  ~Lock() {
    if (mutex) {
      pthread_mutex_unlock(mutex);
    }
  }

private:
  pthread_mutex_t *mutex;
};

/// Requires |registryMutex|.
CustomOp *find(const char *domain, const char *name) {
  for (size_t i = 0; i < registeredCount; ++i) {
    if (strcmp(registered[i].def.domain, domain) == 0 && strcmp(registered[i].def.name, name) == 0) {
      return &registered[i];
    }
  }
  return nullptr;
}

/// Computes |a| op |b| for a shape rule that is applied to numbers. A size that the run finds has its largest value.
int64_t combineNumbers(const tessera_custom_call_t *, uint32_t op, int64_t a, int64_t b) {
  if (op == TESSERA_SIZE_FOUND) {
    return b;
  }
  if (op > TESSERA_SIZE_MAX || tessera_is_open(a) || tessera_is_open(b)) {
    return TESSERA_NO_SIZE;
  }
  const DimTerm terms[] = {{a, DimOp::Const}, {b, DimOp::Const}, {0, DimOp(uint32_t(DimOp::Add) + op)}};
  int64_t result;
  return evaluate(DimExpression(terms, 3), nullptr, result) ? result : TESSERA_NO_SIZE;
}

bool isOpen(const tessera_tensor_t &tensor) {
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tessera_is_open(tensor.shape[i])) {
      return true;
    }
  }
  return false;
}

/// Calls a function of the operator; on failure, reports its message. |what| completes "failed to ".
bool call(const CustomOp &op, int (*function)(void *, tessera_custom_call_t *), tessera_custom_call_t &args,
          const char *what, Status &status) {
  char message[240] = {};
  args.struct_size = sizeof(args);
  args.message = message, args.message_size = sizeof(message);
  const int code = function(op.def.user, &args);
  message[sizeof(message) - 1] = 0;
  return code == 0 || BMODEL_FAIL(status, Unsupported, "custom operator '%.60s::%.60s' %s: %s (code %d)", op.def.domain,
                                  op.def.name, what, *message ? message : "it gives no reason", code);
}

} // namespace

bool bmodel::addCustomOp(const tessera_custom_op_t *op, Status &status) {
  if (op->abi != TESSERA_CUSTOM_OP_ABI || op->struct_size < sizeof(tessera_custom_op_t)) {
    return BMODEL_FAIL(status, Unsupported,
                       "a custom operator has version %u of tessera_custom_op.h and %u bytes, supported are version %d "
                       "and at least %zu bytes: compile it again with the header of this release",
                       op->abi, op->struct_size, TESSERA_CUSTOM_OP_ABI, sizeof(tessera_custom_op_t));
  }
  if (!op->domain || !op->name || !*op->name || !op->infer || !op->run) {
    return BMODEL_FAIL(status, Unsupported, "custom operator '%.60s' lacks its domain, its name, infer or run",
                       op->name ? op->name : "");
  }
  const Lock lock(&registryMutex);
  if (const CustomOp *known = find(op->domain, op->name)) {
    const bool isSame = known->def.infer == op->infer && known->def.run == op->run && known->def.user == op->user;
    return isSame || BMODEL_FAIL(status, Unsupported, "custom operator '%.60s::%.60s' is registered already",
                                 op->domain, op->name);
  }
  if (registeredCount == kMostOps) {
    return BMODEL_FAIL(status, NoMemory, "%zu custom operators are registered already, which is the maximum", kMostOps);
  }
  memcpy(&registered[registeredCount++].def, op, sizeof(*op));
  return true;
}

bool bmodel::loadCustomOps(const char *path, Status &status) {
  // dlopen searches the system's folders for a name without a slash.
  char local[512];
  if (!strchr(path, '/') && strlen(path) < sizeof(local) - 2) {
    memcpy(local, "./", 2), memcpy(local + 2, path, strlen(path) + 1);
    path = local;
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *cause = dlerror();
    return BMODEL_FAIL(status, Io, "cannot load custom operators: %.400s", cause ? cause : path);
  }
  const auto list = reinterpret_cast<tessera_custom_ops_t>(dlsym(library, "tessera_custom_ops"));
  if (!list) {
    return BMODEL_FAIL(status, Unsupported,
                       "'%.200s' is not a library of custom operators: it does not export 'tessera_custom_ops'", path);
  }
  for (const tessera_custom_op_t *const *op = list(); op && *op; ++op) {
    if (!addCustomOp(*op, status)) {
      return false;
    }
  }
  return true;
}

const CustomOp *bmodel::findCustomOp(const char *domain, const char *name) {
  const Lock lock(&registryMutex);
  return find(domain, name);
}

bool bmodel::acceptsOpenSizes(const CustomOp &op) { return op.def.flags & TESSERA_CUSTOM_OP_OPEN_SIZES; }

bool bmodel::findsSizes(const CustomOp &op) { return op.def.flags & TESSERA_CUSTOM_OP_FINDS_SIZES; }

bool bmodel::inferCustomOp(const CustomOp &op, tessera_custom_call_t args, Status &status) {
  const bool takesOpen = args.combine_sizes;
  args.combine_sizes = takesOpen ? args.combine_sizes : combineNumbers;
  for (uint32_t i = 0; i < args.output_count; ++i) {
    args.outputs[i] = {};
    args.outputs[i].dtype = UINT32_MAX; // a rule that forgets an output is an error
  }
  if (!call(op, op.def.infer, args, "does not take its inputs", status)) {
    return false;
  }
  for (uint32_t i = 0; i < args.output_count; ++i) {
    tessera_tensor_t &output = args.outputs[i];
    output.bytes = 0;
    if (output.dtype > uint32_t(DType::MAX) || output.rank > TESSERA_CUSTOM_OP_MAX_RANK ||
        !((takesOpen && isOpen(output)) ||
          storedBytes(DType(output.dtype), output.shape, output.rank, LayoutKind::RowMajor, 0, 0, output.bytes))) {
      return BMODEL_FAIL(status, Unsupported,
                         "the shape rule of custom operator '%.60s::%.60s' gives output %u no valid type and shape",
                         op.def.domain, op.def.name, i);
    }
    output.data = nullptr;
    memset(output.shape + output.rank, 0, (TESSERA_CUSTOM_OP_MAX_RANK - output.rank) * sizeof(int64_t));
  }
  return true;
}

bool bmodel::runCustomOp(const CustomOp &op, tessera_custom_call_t args, Status &status) {
  const Lock lock(op.def.flags & TESSERA_CUSTOM_OP_SERIAL ? &op.mutex : nullptr);
  return call(op, op.def.run, args, "failed", status);
}
