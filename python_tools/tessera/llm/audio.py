# SPDX-License-Identifier: Apache-2.0
"""Log-mel spectra of audio, as Whisper was trained on them."""
from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from ..errors import ExitCode, TesseraError
from ..files import require_file

RATE = 16000  # samples per second
HOP = 160  # samples between two frames
_WINDOW = 400


def read_wav(path: Path) -> np.ndarray:
    """Returns the samples of a .wav file as f32 in [-1, 1], the mean of its channels."""
    require_file(path, "audio")
    try:
        with wave.open(str(path)) as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise TesseraError(
            f"failed to read {path}: {error}", hint="it must be a .wav file of integer samples"
        ) from error
    if rate != RATE or width not in (2, 4):
        raise TesseraError(
            f"{path} has {rate} samples of {8 * width} bits per second; supported are {RATE} of 16 or 32 bits",
            ExitCode.UNSUPPORTED,
            hint=f"ffmpeg -i {path} -ar {RATE} -ac 1 -c:a pcm_s16le converted.wav",
        )
    data = data[: len(data) // (width * channels) * (width * channels)]
    samples = np.frombuffer(data, {2: "<i2", 4: "<i4"}[width]).reshape(-1, channels)
    return (samples.astype(np.float64).mean(1) / 2.0 ** (8 * width - 1)).astype(np.float32)


def _to_mel(frequency: np.ndarray) -> np.ndarray:
    """Slaney's scale: linear below 1000 Hz, logarithmic above."""
    high = 15 + 27 * np.log(np.maximum(frequency, 1e-10) / 1000) / np.log(6.4)
    return np.where(frequency < 1000, 3 * frequency / 200, high)


def _to_frequency(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, 200 * mel / 3, 1000 * np.exp(np.log(6.4) * (mel - 15) / 27))


def mel_filters(bins: int) -> np.ndarray:
    """Returns triangles of equal area [frequencies, bins] up to half the rate."""
    frequencies = np.linspace(0, RATE / 2, 1 + _WINDOW // 2)
    edges = _to_frequency(np.linspace(0, float(_to_mel(np.array(RATE / 2))), bins + 2))
    slopes = edges[None, :] - frequencies[:, None]
    widths = np.diff(edges)
    triangles = np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:])
    return np.maximum(triangles, 0) * (2 / (edges[2:] - edges[:-2]))


def log_mel(samples: np.ndarray, bins: int, frames: int) -> np.ndarray:
    """Returns the spectra [1, bins, frames] of samples, which are cut or filled with silence to this length."""
    wanted = frames * HOP
    samples = np.pad(samples[:wanted].astype(np.float64), (0, max(0, wanted - len(samples))))
    padded = np.pad(samples, _WINDOW // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    parts = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP][:frames]
    power = np.abs(np.fft.rfft(parts * window)) ** 2
    found = np.log10(np.maximum(power @ mel_filters(bins), 1e-10))
    found = (np.maximum(found, found.max() - 8) + 4) / 4
    return found.T[None].astype(np.float32)
