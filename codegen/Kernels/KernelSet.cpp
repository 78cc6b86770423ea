//===- KernelSet.cpp - The kernels of one model ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelSet.h"

#include "codegen/Kernels/KernelInterface.h"
#include "device_dialect/IR/DeviceCustomOps.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include <atomic>

using namespace mlir;

namespace tessera::kernels {

bool needsKernel(Operation *op) { return isa<KernelInterface>(op) && !device::isElided(op); }

std::vector<codegen::UnsupportedOp> findOpsWithoutKernel(func::FuncOp function, StringRef machine) {
  std::vector<codegen::UnsupportedOp> unsupported;
  for (Operation &op : function.getBody().front()) {
    auto kernel = dyn_cast<KernelInterface>(op);
    if (isa<device::CustomOp>(op)) {
      unsupported.push_back({&op, "is a custom operator, which only the host computes"});
    } else if (isa<device::DeviceDialect>(op.getDialect()) && !kernel && !isa<device::ReshapeOp>(op)) {
      unsupported.push_back({&op, ("has no " + machine + " kernel").str()});
    } else if (kernel && hasOpenSizes(&op) && !kernel.acceptsOpenSizes()) {
      unsupported.push_back({&op, kOpenSizesText});
    }
  }
  return unsupported;
}

void KernelSet::add(Operation *op, std::string key) {
  auto [it, isNew] = byKey.try_emplace(key, entries.size());
  if (isNew) {
    entries.push_back({std::move(key), op, {}});
  }
  indices[op] = it->second;
}

/// Returns a symbol like "conv_3fa94c10d2e85b67": readable in a disassembly, and unique.
static std::string symbolOf(Operation *op, StringRef key) {
  return (op->getName().stripDialect() + "_" + key.take_front(16)).str();
}

LogicalResult KernelSet::compile(KernelCache &cache, Compiler compileKernel,
                                 llvm::function_ref<void(const codegen::Progress &)> progress) {
  std::vector<Entry *> missing;
  for (Entry &entry : entries) {
    if (std::optional<Kernel> found = cache.lookup(entry.key)) {
      entry.kernel = std::move(*found);
      ++hits;
    } else {
      missing.push_back(&entry);
    }
  }
  if (missing.empty()) {
    return success();
  }
  std::atomic<size_t> done = 0;
  LogicalResult result = failableParallelForEach(missing.front()->op->getContext(), missing, [&](Entry *entry) {
    FailureOr<Kernel> kernel = compileKernel(entry->op, symbolOf(entry->op, entry->key));
    if (failed(kernel)) {
      return failure();
    }
    entry->kernel = std::move(*kernel);
    cache.insert(entry->key, entry->kernel);
    progress({.done = ++done, .total = missing.size()});
    return success();
  });
  cache.prune();
  if (std::string fault = cache.fault(); !fault.empty()) {
    emitWarning(UnknownLoc::get(missing.front()->op->getContext())) << fault;
  }
  return result;
}

} // namespace tessera::kernels
