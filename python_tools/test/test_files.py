# SPDX-License-Identifier: Apache-2.0
"""Tensor files: written data is read back, bad files are rejected, and no partial file is left."""
from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from tessera import safetensors_io
from tessera.errors import TesseraError
from tessera.files import atomic_write, load_npz, save_npz, staging_folder
from tessera.outputs import Outputs
from tessera.tensor_files import load_tensors

TENSORS = {
    "a/b:0": np.arange(6, dtype=np.float32).reshape(2, 3),
    "file": np.array(3, np.int64),
    "empty": np.zeros((0, 4), np.float64),
    "flag": np.array([True, False]),
    "half": np.ones(2, np.float16),
}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    (save_npz if suffix == ".npz" else safetensors_io.save)(path, TENSORS)
    back = load_tensors(path)
    assert list(back) == list(TENSORS)
    for name, array in TENSORS.items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        assert np.array_equal(back[name], array)


def test_same_tensors_same_bytes(tmp_path: Path) -> None:
    save_npz(tmp_path / "a.npz", TENSORS)
    save_npz(tmp_path / "b.npz", TENSORS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_bfloat16_is_widened(tmp_path: Path) -> None:
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (tmp_path / "x.safetensors").write_bytes(
        struct.pack("<Q", len(header)) + header + struct.pack("<HH", 0x3F80, 0xC000)
    )
    assert safetensors_io.load(tmp_path / "x.safetensors")["x"].tolist() == [1.0, -2.0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{",
        struct.pack("<Q", 55) + b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,80]}}',
        struct.pack("<Q", 54) + b'{"x":{"dtype":"F3","shape":[2],"data_offsets":[0,0] }}',
        struct.pack("<Q", 54) + b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,0]}}',
    ],
)
def test_bad_safetensors_is_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(TesseraError, match="not a safetensors file"):
        safetensors_io.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04garbage", b"text", b"\x80\x04pickle"])
def test_bad_npz_is_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(TesseraError, match="not a readable .npz"):
        load_npz(tmp_path / "x.npz")


def test_truncated_npz_is_rejected(tmp_path: Path) -> None:
    save_npz(tmp_path / "x.npz", TENSORS)
    data = (tmp_path / "x.npz").read_bytes()
    for length in range(0, len(data) - 1, 97):
        (tmp_path / "y.npz").write_bytes(data[:length])
        with pytest.raises(TesseraError):
            load_npz(tmp_path / "y.npz")


def test_a_failing_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("through", ["", "link"])
def test_pipes_and_devices_are_not_replaced(tmp_path: Path, through: str) -> None:
    """As root, a command could replace /dev/null by a file, for all programs of the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through:
        (tmp_path / through).symlink_to(pipe)
    wanted = tmp_path / (through or "pipe")
    with Outputs() as outputs, pytest.raises(TesseraError, match="not a regular file, but a pipe"):
        outputs.path(wanted)
    with pytest.raises(TesseraError, match="not a regular file, but a pipe"):
        save_npz(wanted, TENSORS)
    with pytest.raises(TesseraError, match="not a regular file, but a pipe"), staging_folder(wanted):
        pass
    assert pipe.is_fifo() and len(list(tmp_path.iterdir())) == 1 + bool(through)


def test_folders_that_nothing_came_into_go(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with Outputs() as outputs:
        outputs.path(tmp_path / "new" / "deep" / "x.json").write_text("1")
        outputs.folder(tmp_path / "there" / "rep")
        outputs.folder(tmp_path / "there")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    with Outputs() as outputs:
        outputs.path(tmp_path / "new" / "deep" / "x.json").write_text("1")
        outputs.publish()
    assert (tmp_path / "new" / "deep" / "x.json").read_text() == "1"


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    with Outputs() as outputs, pytest.raises(TesseraError, match="File name too long"):
        outputs.path(tmp_path / ("x" * 300))
    with pytest.raises(TesseraError, match="File name too long"):
        load_npz(tmp_path / ("x" * 300))


def test_unwritable_type_is_named(tmp_path: Path) -> None:
    with pytest.raises(TesseraError, match="'c'.*complex64"):
        safetensors_io.save(tmp_path / "x.safetensors", {"c": np.zeros(1, np.complex64)})
    assert not list(tmp_path.iterdir())
