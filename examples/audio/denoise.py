# SPDX-License-Identifier: Apache-2.0
"""Removes noise from speech in real time: DTLN, two recurrent networks, one block every 8 ms.

The networks do not keep state: each run returns the state that the next run receives as input.
"""
import sys
import wave

import numpy as np

import tessera.runtime as rt

BLOCK, HOP = 512, 128  # samples: length of a block, and the distance between two blocks


class Denoiser:
    def __init__(self) -> None:
        self._mask, self._clean = (rt.load(f"dtln_{i}.bmodel").net() for i in (1, 2))
        self._states = [np.zeros((1, 2, 128, 2), np.float32) for _ in range(2)]
        self._input, self._output = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float32)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes HOP new samples and returns HOP samples, delayed by 32 ms."""
        self._input = np.concatenate([self._input[HOP:], samples])
        spectrum = np.fft.rfft(self._input)
        out = self._mask({"input_2": _frame(np.abs(spectrum)), "input_3": self._states[0]})
        self._states[0] = out["tf_op_layer_stack_2"].reshape(1, 2, 128, 2)

        estimate = np.fft.irfft(spectrum * out["activation_2"].ravel())
        out = self._clean({"input_4": _frame(estimate), "input_5": self._states[1]})
        self._states[1] = out["tf_op_layer_stack_5"].reshape(1, 2, 128, 2)

        self._output = np.concatenate([self._output[HOP:], np.zeros(HOP, np.float32)]) + out["conv1d_3"].ravel()
        return self._output[:HOP]


def _frame(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).reshape(1, 1, -1)


def level(signal: np.ndarray) -> str:
    return f"{10 * np.log10(np.mean(signal**2) + 1e-12):4.0f} dB"


with wave.open(sys.argv[1]) as file:
    speech = np.frombuffer(file.readframes(5 * file.getframerate()), np.int16).astype(np.float32) / 32768
noise = np.random.default_rng(0).standard_normal(speech.size).astype(np.float32) * 0.02
silence = np.zeros(2 * 16000, np.float32)

for name, sound in (("noise alone", noise[: silence.size]), ("speech and noise", speech + noise)):
    denoiser = Denoiser()
    out = np.concatenate([denoiser.push(sound[i : i + HOP]) for i in range(0, sound.size - HOP + 1, HOP)])
    print(f"{name:16}  {level(sound[16000:])} in, {level(out[16000:])} out")
