# SPDX-License-Identifier: Apache-2.0
"""lit settings of every suite of Tessera; loaded by the generated lit.site.cfg.py."""
# lit provides `config` and `lit_config`. ruff: noqa: F821
import os

import lit.formats

config.name = f"tessera-{config.tessera_suite}"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".onnxtxt", ".py"]
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py"]

# Tessera's programs and LLVM 22's FileCheck, not, count and split-file come first on PATH, so that RUN lines use plain
# names: `tessera-opt %s | FileCheck %s`.
bin_dir = os.path.join(config.tessera_build_dir, "bin")
config.environment["PATH"] = os.pathsep.join([bin_dir, config.llvm_tools_dir, os.environ.get("PATH", "")])
config.environment["PYTHONPATH"] = os.path.join(config.tessera_build_dir, "python")
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=all"
for name in ("TESSERA_DATA", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", config.tessera_python))
config.substitutions.append(("%src", config.tessera_source_dir))
config.substitutions.append(("%build", config.tessera_build_dir))

# REQUIRES: x86-avx2, x86-avx512 mark tests that execute such code.
try:
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = set(next((l for l in cpuinfo if l.startswith("flags")), "").split())
except OSError:
    flags = set()
if {"avx2", "fma"} <= flags:
    config.available_features.add("x86-avx2")
if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
    config.available_features.add("x86-avx512")
if os.path.isdir(os.environ.get("TESSERA_DATA", "")):
    config.available_features.add("shared-data")
