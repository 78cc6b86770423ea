# SPDX-License-Identifier: Apache-2.0
"""Scores of models without labelled data: the agreement of their answers with the float model's.

A judge is judge(model, like, data) -> figures. `model` and `like`, the float model, map input arrays to output arrays;
the first figure is decisive.
"""
from __future__ import annotations

import wave
from pathlib import Path
from typing import Callable, Iterator, Mapping

import numpy as np

from tessera.preprocess import is_picture
from tessera.tasks import Model, only_input, read_picture

Judge = Callable[[Model, Model, Path], Mapping[str, float]]
FACE_SCORE, SAME_BOX, SUPPRESSED = 0.7, 0.5, 0.3
TEXT = 0.3
FRAME, HOP = 512, 128
SCORED_FROM = 20.0  # seconds of the recording; earlier parts are for calibration


def pictures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if is_picture(path))


def overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the intersection over union of one box with others; boxes are x0 y0 x1 y1."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    area = np.prod(np.maximum(others[:, 2:] - others[:, :2], 0), axis=1)
    return shared / np.maximum(np.prod(box[2:] - box[:2]) + area - shared, 1e-12)


def faces_found(outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the boxes above the score, without boxes that overlap better ones."""
    scores, boxes = outputs["scores"][0, :, 1], outputs["boxes"][0]
    left = [i for i in np.argsort(-scores, kind="stable") if scores[i] > FACE_SCORE]
    chosen: list[int] = []
    while left:
        chosen.append(left[0])
        near = overlap(boxes[left[0]], boxes[left])
        left = [i for i, o in zip(left[1:], near[1:]) if o < SUPPRESSED]
    return boxes[chosen]


def faces(model: Model, like: Model, data: Path) -> dict[str, float]:
    """Returns the F1 of the boxes against the float model's over all photos; boxes are equal from an overlap of 0.5."""
    spec, same, found, wanted = only_input(model, "faces"), 0, 0, 0
    for picture in pictures(data):
        arrays = {spec.name: read_picture(spec, picture)}
        ours, theirs = faces_found(model.run(arrays)), faces_found(like.run(arrays))
        found, wanted, free = found + len(ours), wanted + len(theirs), np.ones(len(theirs), bool)
        for box in ours:
            near = overlap(box, theirs) * free if len(theirs) else np.zeros(0)
            if near.size and near.max() >= SAME_BOX:
                free[int(near.argmax())] = False
                same += 1
    return {"agreement": 2 * same / max(found + wanted, 1), "faces": wanted}


def text_map(model: Model, like: Model, data: Path) -> dict[str, float]:
    """Returns the intersection over union of the text pixels over all photos."""
    spec, output, both, either = only_input(model, "text_map"), model.outputs[0].name, 0, 0
    for picture in pictures(data):
        arrays = {spec.name: read_picture(spec, picture)}
        ours, theirs = (m.run(arrays)[output] > TEXT for m in (model, like))
        both, either = both + int((ours & theirs).sum()), either + int((ours | theirs).sum())
    return {"iou": both / max(either, 1), "pixels": either}


def recording(data: Path) -> np.ndarray:
    """Returns the samples of a mono 16-bit file, in -1..1."""
    with wave.open(str(data)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def speech_frames(data: Path, first: float, last: float, hop: int = HOP) -> Iterator[np.ndarray]:
    """Returns frames [1,1,512] between two times in seconds, at 16 kHz."""
    sound = recording(data)[int(first * 16000) : int(last * 16000)]
    for start in range(0, len(sound) - FRAME + 1, hop):
        yield sound[start : start + FRAME].reshape(1, 1, FRAME)


def denoised(model: Model, frames: Iterator[np.ndarray]) -> np.ndarray:
    """Runs the second DTLN network over frames, with its state fed back."""
    state = {"input_5": np.zeros((1, 2, 128, 2), np.float32)}
    answers = []
    for frame in frames:
        out = model.run({"input_4": frame, **state})
        state["input_5"] = out["tf_op_layer_stack_5"].reshape(1, 2, 128, 2)
        answers.append(out["conv1d_3"].ravel())
    return np.concatenate(answers).astype(np.float64)


def speech(model: Model, like: Model, data: Path) -> dict[str, float]:
    """Returns the cosine of the network's output signal with the float model's, and its signal-to-noise ratio in dB."""
    ours, theirs = (denoised(m, speech_frames(data, SCORED_FROM, 40)) for m in (model, like))
    power, noise = float(theirs @ theirs), float(np.square(ours - theirs).sum())
    return {
        "cos": float(ours @ theirs) / max(float(np.linalg.norm(ours) * np.linalg.norm(theirs)), 1e-30),
        "snr": 10 * np.log10(max(power, 1e-30) / max(noise, 1e-30)),
    }


def mel_filters(bands: int, size: int, rate: int) -> np.ndarray:
    """Returns triangles [bands, size / 2 + 1], evenly spaced in mel (2595 log10(1 + f / 700))."""
    mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    edges, grid = 700 * (10 ** (mel / 2595) - 1), np.linspace(0, rate / 2, size // 2 + 1)
    rise = (grid - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - grid) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(rise, fall))


def log_mel(data: Path, first: float, last: float) -> Iterator[np.ndarray]:
    """Returns [1,640]: five neighbouring frames of 128 log-mel bands, as the MLCommons anomaly detector expects
    them."""
    frames = np.concatenate([f[0] for f in speech_frames(data, first, last, FRAME)]).reshape(-1)
    steps = np.lib.stride_tricks.sliding_window_view(frames, 1024)[::FRAME]
    power = np.square(np.abs(np.fft.rfft(steps * np.hanning(1024), axis=1)))
    bands = (10 * np.log10(power @ mel_filters(128, 1024, 16000).T + 1e-10)).astype(np.float32)
    for i in range(len(bands) - 4):
        yield bands[i : i + 5].reshape(1, 640)


def reconstruction(model: Model, like: Model, data: Path) -> dict[str, float]:
    """Returns the mean cosine of the reconstruction with the float model's."""
    spec, output, cosines = only_input(model, "reconstruction"), model.outputs[0].name, []
    for array in log_mel(data, SCORED_FROM, 40):
        ours, theirs = (m.run({spec.name: array})[output].ravel().astype(np.float64) for m in (model, like))
        cosines.append(float(ours @ theirs / (np.linalg.norm(ours) * np.linalg.norm(theirs))))
    return {"cos": float(np.mean(cosines)), "n": len(cosines)}


JUDGES: dict[str, Judge] = {"faces": faces, "text_map": text_map, "speech": speech, "reconstruction": reconstruction}
