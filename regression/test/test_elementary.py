# SPDX-License-Identifier: Apache-2.0
"""Tests that elementary functions are as exact as docs/numerics.md states, on every chip and in every type, for all
exponents."""
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

BLOCKS = 4  # tests use the first blocks of those that the table is computed from


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    started = Compiler()
    yield started
    started.close()


@pytest.mark.parametrize("column", list(elementary.COLUMNS))
def test_errors_are_those_of_the_page(compiler: Compiler, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chips = list(elementary.COLUMNS[column][0])
    if len(chips) > 5:  # all arguments of 16 bits: of x86, only the narrowest and the widest instruction set
        del chips[1 : len(elementary.ISAS) - 1]
    if not os.environ.get("BMRT_LIBCUDA") and has_machine():
        monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))
    elif not os.environ.get("BMRT_LIBCUDA") and "cuda" in chips:
        chips.remove("cuda")
        if not chips:
            pytest.skip("no GPU, and the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    bounds, faults = elementary.read_table()[column], []
    for name, found in elementary.measure(compiler, column, BLOCKS, chips=chips).items():
        for errors in found:
            if errors.worst > bounds[name]:
                faults.append(f"{name}({errors.at!r}): {errors.worst:.4g} ulp, the page says {bounds[name]}")
            if len(errors.wrong):
                faults.append(f"{name}({errors.wrong[0]!r}) is NaN, an infinity or a zero where it should not be")
    assert not faults, "\n".join(faults)


def test_an_error_is_noticed() -> None:
    given = elementary.arguments("F32", 2)
    want = elementary.definition_of("Sin", given)

    def errors_of(got: np.ndarray) -> elementary.Errors:
        return elementary.errors_of("Sin", "F32", given, got, want)

    exact = want.astype(np.float32)
    assert errors_of(exact).worst <= 0.5
    assert 0.5 < errors_of(np.nextafter(exact, np.float32(2))).worst <= 2.5
    assert len(errors_of(np.full_like(exact, np.inf)).wrong)
    assert set(elementary.read_table()) == set(elementary.COLUMNS)
