# SPDX-License-Identifier: Apache-2.0
"""Elementary functions are as exact as docs/numerics.md says, on every chip and in every type, for all exponents."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest
from test_cuda import MACHINE, has_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import elementary  # noqa: E402
from engines import Compiler  # noqa: E402

BLOCKS = 4  # the first of those that the table is made of


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    started = Compiler()
    yield started
    started.close()


@pytest.mark.parametrize("column", list(elementary.COLUMNS))
def test_errors_are_those_of_the_page(compiler: Compiler, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "cuda" in elementary.COLUMNS[column][0] and not os.environ.get("BMRT_LIBCUDA"):
        if not has_machine():
            pytest.skip("no GPU, and the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
        monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))
    bounds, faults = elementary.read_table()[column], []
    for name, found in elementary.measure(compiler, column, BLOCKS).items():
        for errors in found:
            if errors.worst > bounds[name]:
                faults.append(f"{name}({errors.at!r}): {errors.worst:.4g} ulp, the page says {bounds[name]}")
            if len(errors.wrong):
                faults.append(f"{name}({errors.wrong[0]!r}) is NaN, an infinity or a zero where it should not be")
    assert not faults, "\n".join(faults)


def test_an_error_is_noticed() -> None:
    given = elementary.arguments("F32", 2)
    with np.errstate(all="ignore"):
        exact = np.sin(given["x"].astype(elementary.Wide)).astype(np.float32)
    assert elementary.errors_of("Sin", "F32", given, exact).worst <= 0.5
    at = np.nextafter(exact, np.float32(2))
    assert 0.5 < elementary.errors_of("Sin", "F32", given, at).worst <= 2.5
    assert len(elementary.errors_of("Sin", "F32", given, np.full_like(exact, np.inf)).wrong)
    assert set(elementary.read_table()) == set(elementary.COLUMNS)
