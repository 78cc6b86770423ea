//===- MlirPch.cpp - Carries the precompiled header -----------------------===//
// SPDX-License-Identifier: Apache-2.0
