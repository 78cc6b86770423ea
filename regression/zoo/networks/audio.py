# SPDX-License-Identifier: Apache-2.0
"""Audio networks in small sizes, written from their papers."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Demucs(nn.Module):
    """Waveform U-Net with gated linear units and a recurrent middle."""

    def __init__(self) -> None:
        super().__init__()
        widths = [2, 16, 32]
        self.down = nn.ModuleList(
            [
                nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1))
                for a, b in zip(widths, widths[1:])
            ]
        )
        self.lstm, self.linear = nn.LSTM(32, 16, bidirectional=True, batch_first=True), nn.Linear(32, 32)
        self.up = nn.ModuleList(
            [
                nn.Sequential(nn.Conv1d(b, 2 * b, 3, 1, 1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2))
                for a, b in zip(widths[::-1][1:], widths[::-1])
            ]
        )

    def forward(self, wave: Tensor) -> Tensor:
        x, kept = wave, []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = self.linear(self.lstm(x.transpose(1, 2))[0]).transpose(1, 2)
        for layer in self.up:
            x = layer(x + kept.pop())
        return x


class ConvTasNet(nn.Module):
    """Learned filter bank, dilated depthwise blocks with global layer norms, masks of two speakers."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 32, 16, 8, bias=False), nn.ConvTranspose1d(32, 1, 16, 8, bias=False)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Conv1d(32, 48, 1),
                    nn.PReLU(),
                    nn.GroupNorm(1, 48),
                    nn.Conv1d(48, 48, 3, 1, 2**i, 2**i, 48),
                    nn.PReLU(),
                    nn.GroupNorm(1, 48),
                    nn.Conv1d(48, 32, 1),
                )
                for i in range(3)
            ]
        )
        self.mask = nn.Conv1d(32, 64, 1)

    def forward(self, wave: Tensor) -> Tensor:
        coded = F.relu(self.encoder(wave))
        x = coded
        for block in self.blocks:
            x = x + block(x)
        masks = torch.sigmoid(self.mask(x)).reshape(-1, 2, 32, x.shape[-1])
        return self.decoder((masks * coded[:, None]).flatten(0, 1)).reshape(1, 2, -1)


class VoiceActivity(nn.Module):
    """Silero-like: a short-time transform as a convolution, magnitudes, a convolutional encoder, one step of an LSTM
    whose state goes round outside."""

    def __init__(self) -> None:
        super().__init__()
        angles = 2 * math.pi * torch.arange(33)[:, None] * torch.arange(64)[None] / 64
        self.register_buffer("basis", torch.cat([angles.cos(), -angles.sin()])[:, None] * torch.hann_window(64))
        self.encoder = nn.Sequential(
            nn.Conv1d(33, 32, 3, 1, 1),
            nn.ReLU(),
            nn.Conv1d(32, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv1d(32, 32, 3, 2, 1),
            nn.ReLU(),
        )
        self.cell, self.head = nn.LSTMCell(32, 32), nn.Conv1d(32, 1, 1)

    def forward(self, wave: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        parts = F.conv1d(F.pad(wave[:, None], (0, 32), mode="reflect"), self.basis, stride=32)
        x = self.encoder(torch.sqrt(parts[:, :33] ** 2 + parts[:, 33:] ** 2 + 1e-9)).mean(-1)
        h, c = self.cell(x, (state[0], state[1]))
        return torch.sigmoid(self.head(F.relu(h)[..., None])).squeeze(-1), torch.stack([h, c])


class MelClassifier(nn.Module):
    """torch.stft in the graph, mel filters, logarithm, a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(128))
        self.register_buffer("mel", torch.rand(16, 65, generator=torch.Generator().manual_seed(1)))
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 5),
        )

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, 128, 64, window=self.window, center=False, return_complex=False)
        power = spectrum.pow(2).sum(-1)
        return self.layers(torch.log(self.mel @ power + 1e-3)[:, None])


class DsCnn(nn.Module):
    """Key words: depthwise separable blocks on 49 x 10 features."""

    def __init__(self) -> None:
        super().__init__()

        def block() -> list[nn.Module]:
            return [
                nn.Conv2d(24, 24, 3, 1, 1, groups=24),
                nn.BatchNorm2d(24),
                nn.ReLU(),
                nn.Conv2d(24, 24, 1),
                nn.BatchNorm2d(24),
                nn.ReLU(),
            ]

        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, (10, 4), 2, (4, 1)),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            *block(),
            *block(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, 12),
            nn.Softmax(1),
        )

    def forward(self, features: Tensor) -> Tensor:
        return self.layers(features)


class WaveNet(nn.Module):
    """Causal dilated convolutions, tanh times sigmoid, skips summed."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 16, 1)
        self.gates = nn.ModuleList([nn.Conv1d(16, 32, 2, dilation=2**i) for i in range(4)])
        self.skips = nn.ModuleList([nn.Conv1d(16, 32, 1) for _ in range(4)])
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(32, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1))

    def forward(self, wave: Tensor) -> Tensor:
        x, total = self.first(wave), 0
        for i, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + y, total + skip(y)
        return F.log_softmax(self.last(total), 1)


class HifiGan(nn.Module):
    """Vocoder: transposed convolutions, receptive fields of several kernels averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(16, 32, 7, 1, 3), nn.Conv1d(8, 1, 7, 1, 3)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(32, 16, 8, 4, 2), nn.ConvTranspose1d(16, 8, 8, 4, 2)])
        self.fields = nn.ModuleList(
            [nn.ModuleList([nn.Conv1d(c, c, k, 1, (k - 1) // 2 * d, d) for k, d in ((3, 1), (5, 3))]) for c in (16, 8)]
        )

    def forward(self, mel: Tensor) -> Tensor:
        x = self.first(mel)
        for up, fields in zip(self.ups, self.fields):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(x + field(F.leaky_relu(x, 0.1)) for field in fields) / 2
        return torch.tanh(self.last(F.leaky_relu(x)))


class Conformer(nn.Module):
    """Subsampling, half feed-forwards, attention with relative positions (shifted by padding and reshaping), a gated
    convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
        self.linear = nn.Linear(64, 64)
        self.half1, self.half2 = (
            nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64)) for _ in range(2)
        )
        self.norm, self.qkv, self.out = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64)
        self.position, self.u, self.v = (
            nn.Parameter(torch.randn(4, 31, 16) * 0.1),
            nn.Parameter(torch.randn(4, 1, 16) * 0.1),
            nn.Parameter(torch.randn(4, 1, 16) * 0.1),
        )
        self.norm2, self.wide, self.depth = (
            nn.LayerNorm(64),
            nn.Conv1d(64, 128, 1),
            nn.Conv1d(64, 64, 7, 1, 3, groups=64),
        )
        self.batch, self.back, self.head = nn.BatchNorm1d(64), nn.Conv1d(64, 64, 1), nn.Linear(64, 20)

    def forward(self, mel: Tensor) -> Tensor:
        x = self.subsample(mel)
        x = self.linear(x.permute(0, 2, 1, 3).flatten(2))
        x = x + 0.5 * self.half1(x)
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, t, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        relative = (q + self.v) @ self.position.transpose(-1, -2)
        relative = F.pad(relative, (1, 0)).reshape(b, 4, 2 * t, t)[:, :, 1:].reshape(b, 4, t, 2 * t - 1)[..., :t]
        weights = torch.softmax(((q + self.u) @ k.transpose(-1, -2) + relative) / 4, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, 64))
        y = F.glu(self.wide(self.norm2(x).transpose(1, 2)), 1)
        x = x + self.back(F.silu(self.batch(self.depth(y)))).transpose(1, 2)
        return F.log_softmax(self.head(x + 0.5 * self.half2(x)), -1)
