# SPDX-License-Identifier: Apache-2.0
"""Time series, tables, graphs and points in small sizes."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Tcn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(4 if i == 0 else 16, 16, 3, dilation=2**i) for i in range(4)])
        self.skip, self.head = nn.Conv1d(4, 16, 1), nn.Linear(16, 3)

    def forward(self, series: Tensor) -> Tensor:
        x = series
        for i, conv in enumerate(self.convs):
            y = F.relu(conv(F.pad(x, (2 * 2**i, 0))))
            x = y + (self.skip(x) if i == 0 else x)
        return self.head(x[:, :, -1])


class NBeats(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 48 + 12))
                for _ in range(3)
            ]
        )

    def forward(self, series: Tensor) -> Tensor:
        forecast = torch.zeros(series.shape[0], 12)
        for block in self.blocks:
            back, ahead = block(series).split([48, 12], 1)
            series, forecast = series - back, forecast + ahead
        return forecast


class GatedResidual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second, self.gate, self.norm = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + F.glu(self.gate(self.second(F.elu(self.first(x)))), -1))


class Tft(nn.Module):
    """Temporal fusion: variable selection, LSTM, gated residuals, causal attention, quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.select = nn.ModuleList([nn.Linear(1, 16) for _ in range(6)]), nn.Linear(96, 6)
        self.lstm, self.residual1, self.residual2 = (
            nn.LSTM(16, 16, batch_first=True),
            GatedResidual(16),
            GatedResidual(16),
        )
        self.attention, self.head = nn.MultiheadAttention(16, 4, batch_first=True), nn.Linear(16, 3)

    def forward(self, series: Tensor) -> Tensor:
        parts = torch.stack([embed(series[..., i : i + 1]) for i, embed in enumerate(self.embed)], -2)
        weights = torch.softmax(self.select(parts.flatten(-2)), -1)
        x = self.residual1(self.lstm((parts * weights[..., None]).sum(-2))[0])
        mask = torch.triu(torch.ones(24, 24, dtype=torch.bool), 1)
        x = self.residual2(x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])
        return self.head(x[:, -6:])


class DeepAr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.mean, self.spread = nn.LSTM(4, 24, 2, batch_first=True), nn.Linear(24, 1), nn.Linear(24, 1)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor]:
        scale = series.abs().mean(1, keepdim=True) + 1
        x = self.lstm(series / scale)[0]
        return self.mean(x) * scale[..., :1], F.softplus(self.spread(x)) * scale[..., :1]


class InceptionTime(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.pooled = nn.Conv1d(3, 8, 1), nn.Conv1d(3, 8, 1)
        self.convs = nn.ModuleList([nn.Conv1d(8, 8, k, padding="same", bias=False) for k in (4, 9, 19)])
        self.norm, self.head = nn.BatchNorm1d(32), nn.Linear(32, 4)

    def forward(self, series: Tensor) -> Tensor:
        x = self.narrow(series)
        x = torch.cat([*(conv(x) for conv in self.convs), self.pooled(F.max_pool1d(series, 3, 1, 1))], 1)
        return self.head(F.relu(self.norm(x)).mean(-1))


class DLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.season, self.trend = nn.Linear(48, 12), nn.Linear(48, 12)

    def forward(self, series: Tensor) -> Tensor:
        x = series.transpose(1, 2)
        trend = F.avg_pool1d(F.pad(x, (6, 6), mode="replicate"), 13, 1)
        return (self.season(x - trend) + self.trend(trend)).transpose(1, 2)


class FtTransformer(nn.Module):
    """Numbers and kinds as tokens, with a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(10, 32)), nn.Parameter(torch.randn(10, 32))
        self.kinds, self.first = nn.Embedding(4 * 8, 32), nn.Parameter(torch.randn(1, 1, 32))
        self.register_buffer("offset", torch.arange(4) * 8)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True),
            2,
            enable_nested_tensor=False,
        )
        self.head = nn.Linear(32, 2)

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        x = torch.cat([self.first, numbers[..., None] * self.weight + self.bias, self.kinds(kinds + self.offset)], 1)
        return self.head(self.layers(x)[:, 0])


class TabNet(nn.Module):
    """Sequential attention by sparsemax: sort, cumulative sum, threshold."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.masks, self.steps = (
            nn.Linear(16, 24),
            nn.ModuleList([nn.Linear(12, 16) for _ in range(2)]),
            nn.ModuleList([nn.Linear(16, 48) for _ in range(2)]),
        )
        self.head = nn.Linear(12, 3)

    @staticmethod
    def sparsemax(x: Tensor) -> Tensor:
        ordered = torch.sort(x, -1, descending=True).values
        sums = torch.cumsum(ordered, -1) - 1
        counts = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        support = (counts * ordered > sums).to(x.dtype).sum(-1, keepdim=True)
        threshold = sums.gather(-1, support.long() - 1) / support
        return F.relu(x - threshold)

    def forward(self, numbers: Tensor) -> Tensor:
        prior, total, attend = torch.ones_like(numbers), 0, self.first(numbers)[:, 12:]
        for mask, step in zip(self.masks, self.steps):
            weights = self.sparsemax(mask(attend) * prior)
            prior = prior * (1.3 - weights)
            decide, attend = F.glu(step(weights * numbers), -1).split(12, -1)
            total = total + F.relu(decide)
        return self.head(total)


class Dlrm(nn.Module):
    """Recommendation: products of all pairs of embeddings, the upper triangle of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.bottom = nn.ModuleList([nn.Embedding(50, 16) for _ in range(5)]), nn.Sequential(
            nn.Linear(8, 16), nn.ReLU()
        )
        self.top = nn.Sequential(nn.Linear(16 + 15, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
        rows, columns = torch.triu_indices(6, 6, 1).unbind(0)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        x = self.bottom(numbers)
        all_of = torch.stack([x, *(table(kinds[:, i]) for i, table in enumerate(self.tables))], 1)
        products = (all_of @ all_of.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([x, products], 1))


class DeepFm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.factors = nn.Embedding(50, 1), nn.Embedding(50, 8)
        self.deep = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, kinds: Tensor) -> Tensor:
        v = self.factors(kinds)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.linear(kinds).sum(1) + pairs + self.deep(v.flatten(1)))


class Gcn(nn.Module):
    """Graph convolutions with a symmetric normalisation of a dense adjacency."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 24), nn.Linear(24, 4)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        a = (edges > 0.7).float() + torch.eye(20)
        degree = a.sum(-1).rsqrt()
        a = degree[..., None] * a * degree[:, None]
        return F.log_softmax(a @ self.second(F.relu(a @ self.first(nodes))), -1)


class Gat(nn.Module):
    """Graph attention: masked softmax over neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.left, self.right, self.head = (
            nn.Linear(8, 32),
            nn.Parameter(torch.randn(4, 8)),
            nn.Parameter(torch.randn(4, 8)),
            nn.Linear(32, 4),
        )

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        h = self.linear(nodes).reshape(1, 20, 4, 8).transpose(1, 2)
        scores = F.leaky_relu(
            (h * self.left[:, None]).sum(-1)[..., None] + (h * self.right[:, None]).sum(-1)[..., None, :], 0.2
        )
        scores = scores.masked_fill((edges < 0.5)[:, None], -1e9)
        return self.head(F.elu(scores.softmax(-1) @ h).transpose(1, 2).flatten(2))


class PointNet(nn.Module):
    """Points: a learned 3 x 3 transform, shared layers, a maximum over all points."""

    def __init__(self) -> None:
        super().__init__()

        def shared(*widths: int) -> nn.Sequential:
            return nn.Sequential(
                *[
                    layer
                    for a, b in zip(widths, widths[1:])
                    for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
                ]
            )

        self.transform, self.matrix = shared(3, 16, 32), nn.Linear(32, 9)
        self.layers, self.head = shared(3, 32, 64), nn.Linear(64, 5)

    def forward(self, points: Tensor) -> Tensor:
        matrix = self.matrix(self.transform(points).amax(-1)).reshape(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(points.transpose(1, 2), matrix).transpose(1, 2)
        return self.head(self.layers(x).amax(-1))
