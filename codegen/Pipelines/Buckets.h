//===- Buckets.h - Sizes for which a chip of fixed sizes is compiled -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_BUCKETS_H
#define TESSERA_CODEGEN_PIPELINES_BUCKETS_H

#include "device_dialect/Transforms/PadToBucket.h"

#include "llvm/Support/Error.h"

namespace tessera::codegen {

/// A choice among buckets, which a text like "h=320,640,w=320,640" lists: one for each combination of sizes.
struct BucketChoice {
  std::string text; ///< empty: the function has the sizes of the model
  size_t index = 0; ///< of the combination; the sizes of the last name vary fastest
};

/// Returns the range of each symbol of the function's arguments in the chosen bucket: from above the next smaller size
/// of its name, or its own smallest value, to the size. Returns an error if the text does not list the sizes of each
/// open dim, in ascending order and within its range. Without text, the bucket is empty.
llvm::Expected<device::Bucket> findBucket(mlir::func::FuncOp function, const BucketChoice &choice);

/// Returns an example of --buckets with two sizes of each open dim.
std::string suggestBuckets(mlir::func::FuncOp function);

/// Returns an error if padToBucket cannot rewrite the function: if a run computes a size.
llvm::Error checkBuckets(mlir::func::FuncOp function, const device::Bucket &bucket);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_BUCKETS_H
