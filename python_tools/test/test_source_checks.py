# SPDX-License-Identifier: Apache-2.0
"""The source checks find violations of their rules, and pass on a clean tree."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEV = Path(__file__).resolve().parents[1] / "dev"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def run(script: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(DEV / script), str(root)], text=True, capture_output=True)


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "name, line, reason",
    [
        ("bmruntime/src/core/a.cpp", '#include "llvm/ADT/SmallVector.h"', "without LLVM"),
        ("bmodel_format/src/a.h", "#include <mlir/IR/Value.h>", "without LLVM"),
        ("bmodel_format/src/a.h", '#include "bmruntime/include/bmrt/bmrt.h"', "lowest layer"),
        ("bmruntime/src/a.cpp", '#include "codegen/X86/Emit.h"', "never the compiler"),
        ("top_dialect/IR/a.cpp", '#include "device_dialect/IR/DeviceOps.h"', "knows no layer below"),
        ("quant/Transforms/a.cpp", '#include "device_dialect/IR/DeviceOps.h"', "meet only through"),
        ("device_dialect/IR/A.td", 'include "codegen/A.td"', "layer above"),
        ("codegen/X86/a.cpp", '#include "onnx/onnx_pb.h"', "framework-neutral"),
        ("bmruntime/CMakeLists.txt", "target_link_libraries(bmrt PRIVATE LLVM)", "without LLVM"),
        ("top_dialect/CMakeLists.txt", "target_link_libraries(TesseraTopIR PUBLIC TesseraDeviceIR)", "nothing below"),
        ("bmruntime/src/cuda/a_test.cpp", '#include "bmruntime/ptx_machine/PtxMachine.h"', "as libcuda.so.1"),
        ("bmruntime/ptx_machine/Memory/a.h", '#include "bmodel/reader.h"', "knows nothing of Tessera"),
        ("bmruntime/ptx_machine/CMakeLists.txt", "target_link_libraries(ptx_machine bmrt)", "knows nothing of Tessera"),
        ("bmruntime/test/a_test.cpp", '#include "regression/npu/NpuRunner.h"', "nothing may depend on it"),
        ("codegen/CMakeLists.txt", "add_test(a ${PROJECT_SOURCE_DIR}/regression/a.sh)", "nothing may depend on it"),
    ],
)
def test_layering_violation_is_found(tmp_path: Path, name: str, line: str, reason: str) -> None:
    write(tmp_path, name, f"{line}\n")
    result = run("check_layering.py", tmp_path)
    assert result.returncode == 1
    assert f"{name}:1" in result.stdout and reason in result.stdout


def test_layering_allows_the_downward_direction(tmp_path: Path) -> None:
    write(tmp_path, "codegen/a.cpp", '#include "device_dialect/IR/X.h"\n#include "top_dialect/IR/Y.h"\n')
    write(tmp_path, "top_dialect/Import/Onnx/a.cpp", '#include "onnx/onnx_pb.h"\n')
    assert run("check_layering.py", tmp_path).returncode == 0


def test_circles_are_found(tmp_path: Path) -> None:
    """Covers C++ units (a header and its source), Python modules, and listed circles that have changed."""
    write(tmp_path, "codegen/A.h", "int a;\n")
    write(tmp_path, "codegen/A.cpp", '#include "B.h"\n')
    write(tmp_path, "codegen/B.h", '#include "codegen/A.h"\n')
    write(tmp_path, "codegen/C.cpp", '#include "codegen/B.h"\n')
    write(tmp_path, "python_tools/tessera/cli/a.py", "from ..b import x\n")
    write(tmp_path, "python_tools/tessera/b.py", "def f():\n    from tessera.cli import a\n")
    write(tmp_path, "python_tools/tessera/c.py", "if TYPE_CHECKING:\n    from .d import x\n")
    write(tmp_path, "python_tools/tessera/d.py", "from .c import y\n")
    result = run("check_layering.py", tmp_path)
    assert "codegen/A: closes a circle of 2 units; remove one of: codegen/A -> codegen/B," in result.stdout
    assert "python_tools/tessera/b.py: closes a circle of 2 units" in result.stdout
    assert result.returncode == 1 and "2 violations" in result.stdout

    known = "# comment\ncodegen/A codegen/B\npython_tools/tessera/b.py python_tools/tessera/cli/a.py\n"
    write(tmp_path, "python_tools/dev/known_circles.txt", known)
    assert run("check_layering.py", tmp_path).returncode == 0
    write(tmp_path, "codegen/B.h", "int b;\n")
    assert "the circle of codegen/A is open or has changed" in run("check_layering.py", tmp_path).stdout


@pytest.mark.parametrize(
    "name, line",
    [
        ("codegen/Pipelines/a.cpp", "npu::Chip chip;"),
        ("device_dialect/IR/a.td", "// what NPUs want"),
        ("bmruntime/src/core/a.cpp", '#include "../npu/b.h"'),
        ("quant/a.h", '"npu-base"'),
        ("python_tools/tessera/cli/a.py", 'if family == "npu":'),
        ("python_tools/tessera/report/a.js", "const on = subnet.kind === 'Npu';"),
    ],
)
def test_a_family_is_named_in_its_rooms_only(tmp_path: Path, name: str, line: str) -> None:
    write(tmp_path, "codegen/CMakeLists.txt", "tessera_family(npu FOLDER Npu LIB TesseraNpu)\n")
    write(tmp_path, "codegen/Npu/a.cpp", "npu::Chip chip;\n")
    write(tmp_path, "bmruntime/src/npu/a.cpp", "npu::Chip chip;\n")
    write(tmp_path, "codegen/Target/a_test.cpp", "npu::Chip chip;\n")
    write(tmp_path, "quant/b.cpp", "input();\n")
    write(tmp_path, "python_tools/tessera/families/npu.py", 'name = "npu"\n')
    assert run("check_families.py", tmp_path).returncode == 0
    write(tmp_path, name, f"{line}\n")
    result = run("check_families.py", tmp_path)
    assert result.returncode == 1 and f"{name}:1: names the family" in result.stdout


def test_exempt_files_are_listed_while_they_name_a_family(tmp_path: Path) -> None:
    write(tmp_path, "codegen/CMakeLists.txt", "tessera_family(npu FOLDER Npu LIB TesseraNpu)\n")
    write(tmp_path, "bmodel_format/src/Memories.cpp", 'return "npu";\n')
    result = run("check_families.py", tmp_path)
    assert result.returncode == 0 and "bmodel_format/src/Memories.cpp: exempt, 1 lines" in result.stdout
    write(tmp_path, "bmodel_format/src/Memories.cpp", "return family;\n")
    result = run("check_families.py", tmp_path)
    assert result.returncode == 1 and "remove it from EXEMPT" in result.stdout


def test_direct_reads_of_sizes_may_only_become_fewer(tmp_path: Path) -> None:
    sizes = tmp_path / "python_tools/dev/direct_sizes.txt"
    read = "auto n = typeOf(x).getDimSize(0);\n"
    write(tmp_path, "codegen/Kernels/a.cpp", read)
    write(tmp_path, "codegen/Npu/a.cpp", read)
    write(tmp_path, "top_dialect/Reference/a.cpp", read)
    result = run("check_sizes.py", tmp_path)
    assert result.returncode == 1 and "1 violations" in result.stdout
    assert "codegen/Kernels/a.cpp:1: 1 direct reads of sizes (lines 1), at most 0 allowed" in result.stdout

    write(tmp_path, "python_tools/dev/direct_sizes.txt", "codegen/Kernels/a.cpp 1\n")
    assert run("check_sizes.py", tmp_path).returncode == 0
    write(tmp_path, "codegen/Kernels/a.cpp", read + read)
    assert subprocess.run([sys.executable, str(DEV / "check_sizes.py"), "--update", str(tmp_path)]).returncode == 1
    write(tmp_path, "codegen/Kernels/a.cpp", "")
    assert "has 0 direct reads, not 1" in run("check_sizes.py", tmp_path).stdout
    assert subprocess.run([sys.executable, str(DEV / "check_sizes.py"), "--update", str(tmp_path)]).returncode == 0
    assert "a.cpp" not in sizes.read_text()


def test_an_empty_tree_is_no_success(tmp_path: Path) -> None:
    assert run("check_layering.py", tmp_path).returncode == 1
    assert run("check_sources.py", tmp_path).returncode == 1


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.cpp", "int a;\n", "no licence line"),
        ("a.js", "let a;\n", "no licence line"),
        ("a.py", f"# {SPDX[3:]}" + "x = 1\n" * 1000, "at most 1000"),
        ("a.py", f"# {SPDX[3:]}" + f"x = '{'x' * 116}'\n", "a.py:2: 122 columns"),
        ("a.cpp", SPDX + "int a; \n", "trailing whitespace"),
        ("a.cpp", SPDX + "int a;", "no newline"),
        ("a.cpp", SPDX + "<<<<<<< HEAD\n", "left-over marker"),
        ("codegen/Npu/a.h", SPDX + "int a;\n" * 400, "401 lines, at most 400"),
        (
            "codegen/Npu/a.cpp",
            SPDX + "void f(int a,\n       int b) {\n" + "  a = b;\n" * 58 + "}\n",
            "a.cpp:2: a function of 61",
        ),
        ("quant/a.h", SPDX + "struct A {\n  int f() {\n" + "    if (a) {\n    }\n" * 30 + "  }\n};\n", "a.h:3:"),
        (
            "a.py",
            f"# {SPDX[3:]}" + "class A:\n    def f():\n        return (\n" + "            1,\n" * 58 + "        )\n",
            "a.py:3: a function of 61",
        ),
    ],
)
def test_source_violation_is_found(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, name, text)
    result = run("check_sources.py", tmp_path)
    assert result.returncode == 1 and message in result.stdout


def test_functions_of_allowed_length_are_clean(tmp_path: Path) -> None:
    body = "  for (;;) {\n" + "    a();\n" * 56 + "  }\n"
    write(tmp_path, "codegen/Npu/a.cpp", SPDX + "namespace {\nvoid f() {\n" + body + "}\n" + "int a;\n" * 20 + "}\n")
    write(tmp_path, "b.py", f"# {SPDX[3:]}def f():\n" + "    a()\n" * 59)
    result = run("check_sources.py", tmp_path)
    assert result.returncode == 0, result.stdout
