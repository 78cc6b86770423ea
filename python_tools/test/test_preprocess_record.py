# SPDX-License-Identifier: Apache-2.0
"""Tests pre-processing records that other programs wrote: a record that is nested too deep or wrong is an error of the
file."""
from __future__ import annotations

import pytest

from tessera.errors import TesseraError
from tessera.preprocess import Preprocess


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200000,
        "{",
        "[]x",
        '{"mean":"abc"}',
        '{"scale":[null]}',
        '{"resize_dims":["a","b"]}',
        '{"pad_value":[[]]}',
        "3",
        '{"mean":{}}',
        '{"resize_dims":3}',
    ],
)
def test_wrong_records(text: str) -> None:
    with pytest.raises(TesseraError):
        Preprocess.from_json(text).describe()


def test_a_good_record() -> None:
    good = Preprocess(resize_dims=(8, 8), mean=(1.0, 2.0, 3.0))
    assert Preprocess.from_json(good.to_json()) == good
