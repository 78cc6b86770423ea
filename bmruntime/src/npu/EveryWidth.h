// SPDX-License-Identifier: Apache-2.0
//===- EveryWidth.h - Functions compiled for each width of vectors ----------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_EVERYWIDTH_H
#define TESSERA_BMRUNTIME_SRC_NPU_EVERYWIDTH_H

// The dynamic loader chooses the version for the CPU. Sanitizers do not support this, because the choice happens before
// they are initialised.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define NPU_EVERY_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NPU_EVERY_WIDTH
#endif

#endif // TESSERA_BMRUNTIME_SRC_NPU_EVERYWIDTH_H
