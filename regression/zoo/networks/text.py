# SPDX-License-Identifier: Apache-2.0
"""Text and recurrent networks in small sizes."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Experts(nn.Module):
    """Mixture of experts: every expert is computed and weighted by the two best gates, with weights gathered by the
    gate's choice."""

    def __init__(self, width: int, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.1), nn.Parameter(
            torch.randn(experts, width, width) * 0.1
        )

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        scores, chosen = self.gate(flat).softmax(-1).topk(2)
        scores = scores / scores.sum(-1, keepdim=True)
        up, down = self.up[chosen], self.down[chosen]
        a, b = torch.einsum("tc,tkcd->tkd", flat, up).chunk(2, -1)
        found = torch.einsum("tkd,tkdc->tkc", F.silu(a) * b, down)
        return (found * scores[..., None]).sum(1).reshape(x.shape)


class MoeTransformer(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.position = nn.Embedding(words, 32), nn.Parameter(torch.randn(1, 16, 32))
        self.attention, self.experts = nn.MultiheadAttention(32, 4, batch_first=True), Experts(32)
        self.norm1, self.norm2, self.head = nn.LayerNorm(32), nn.LayerNorm(32), nn.Linear(32, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.position
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x + self.experts(self.norm2(x)))


class ByteCnn(nn.Module):
    """Characters as bytes: convolutions of several widths, maxima over time."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = nn.Embedding(256, 16)
        self.convs = nn.ModuleList([nn.Conv1d(16, 24, k) for k in (3, 4, 5)])
        self.highway, self.gate, self.head = nn.Linear(72, 72), nn.Linear(72, 72), nn.Linear(72, 4)

    def forward(self, bytes: Tensor) -> Tensor:
        x = self.bytes(bytes).transpose(1, 2)
        x = torch.cat([F.relu(conv(x)).amax(-1) for conv in self.convs], 1)
        gate = torch.sigmoid(self.gate(x))
        return self.head(gate * F.relu(self.highway(x)) + (1 - gate) * x)


class Linformer(nn.Module):
    """Keys and values projected along the sequence."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.qkv, self.out = nn.Embedding(words, 64), nn.Linear(64, 192), nn.Linear(64, 64)
        self.shorter, self.norm, self.head = nn.Parameter(torch.randn(32, 8) * 0.2), nn.LayerNorm(64), nn.Linear(64, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        q, k, v = (part.reshape(1, -1, 4, 16).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        k, v = (torch.einsum("bhnd,nk->bhkd", part, self.shorter) for part in (k, v))
        x = x + self.out(((q @ k.transpose(-1, -2) / 4).softmax(-1) @ v).transpose(1, 2).flatten(2))
        return self.head(x.mean(1))


class Performer(nn.Module):
    """Causal linear attention by cumulative sums of positive features."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.qkv, self.head = nn.Embedding(words, 32), nn.Linear(32, 96), nn.Linear(32, words)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.qkv(self.words(tokens)).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sums = torch.cumsum(torch.einsum("btc,btd->btcd", k, v), 1)
        weights = torch.einsum("btc,btc->bt", q, torch.cumsum(k, 1))
        return self.head(torch.einsum("btc,btcd->btd", q, sums) / (weights[..., None] + 1e-6))


class LstmLanguageModel(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.lstm, self.head = (
            nn.Embedding(words, 32),
            nn.LSTM(32, 48, 2, batch_first=True),
            nn.Linear(48, words),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.words(tokens))[0])


class GruTagger(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.gru, self.head = (
            nn.Embedding(words, 32),
            nn.GRU(32, 24, bidirectional=True, batch_first=True),
            nn.Linear(48, 9),
        )

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        found, last = self.gru(self.words(tokens))
        return self.head(found), last


class Elman(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.RNN(8, 24, nonlinearity="relu", batch_first=True), nn.Linear(24, 3)

    def forward(self, series: Tensor) -> Tensor:
        return self.head(self.rnn(series)[0][:, -1])


class Crnn(nn.Module):
    """Text lines: convolutions that halve only the height, two bidirectional LSTMs, one letter per column."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 16, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, 1, 1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
            nn.Conv2d(32, 32, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d((8, 1)),
        )
        self.lstm, self.head = nn.LSTM(32, 24, 2, bidirectional=True), nn.Linear(48, 30)

    def forward(self, image: Tensor) -> Tensor:
        x = self.convs(image).squeeze(2).permute(2, 0, 1)
        return F.log_softmax(self.head(self.lstm(x)[0]), -1)


class ConvLstm(nn.Module):
    """Gates by convolutions, unrolled over the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.head = nn.Conv2d(3 + 8, 32, 3, 1, 1), nn.Conv2d(8, 1, 1)

    def forward(self, clip: Tensor) -> Tensor:
        h = c = torch.zeros(1, 8, 16, 16)
        for frame in range(4):
            i, f, o, g = self.gates(torch.cat([clip[:, frame], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.head(h)


class Seq2Seq(nn.Module):
    """Luong's attention between a GRU encoder and a GRU decoder."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.encoder, self.decoder = (
            nn.Embedding(words, 32),
            nn.GRU(32, 32, batch_first=True),
            nn.GRU(32, 32, batch_first=True),
        )
        self.score, self.head = nn.Linear(32, 32, bias=False), nn.Linear(64, words)

    def forward(self, tokens: Tensor, answers: Tensor) -> Tensor:
        memory, state = self.encoder(self.words(tokens))
        x, _ = self.decoder(self.words(answers), state)
        weights = torch.softmax(self.score(x) @ memory.transpose(1, 2), -1)
        return self.head(torch.tanh(torch.cat([x, weights @ memory], -1)))
