//===- TopOps.h - All ops of the Top dialect ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopElementwiseOps.h"
#include "top_dialect/IR/TopReduceOps.h"
#include "top_dialect/IR/TopShapeOps.h"
