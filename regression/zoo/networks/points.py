# SPDX-License-Identifier: Apache-2.0
"""Point clouds, graphs and volumes in small sizes."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    return (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(-1)


def pick(values: Tensor, indices: Tensor) -> Tensor:
    """Returns the rows of `values` (b, n, c) at `indices` (b, ..)."""
    flat = indices.flatten(1).unsqueeze(-1).expand(-1, -1, values.shape[-1])
    return values.gather(1, flat).reshape(*indices.shape, values.shape[-1])


def farthest(points: Tensor, count: int) -> Tensor:
    """Returns the indices of `count` points, each the farthest from those before it."""
    chosen, least = [torch.zeros(points.shape[0], 1, dtype=torch.int64)], None
    for _ in range(count - 1):
        distance = squared_distances(points, pick(points, chosen[-1]))[..., 0]
        least = distance if least is None else torch.minimum(least, distance)
        chosen.append(least.argmax(-1, keepdim=True))
    return torch.cat(chosen, 1)


class SetAbstraction(nn.Module):
    """Farthest-point sampling, a ball query, and a PointNet on every ball."""

    def __init__(self, count: int, near: int, radius: float, inner: int, outer: int) -> None:
        super().__init__()
        self.count, self.near, self.radius = count, near, radius
        self.mlp = nn.Sequential(
            nn.Conv2d(inner + 3, outer, 1), nn.BatchNorm2d(outer), nn.ReLU(), nn.Conv2d(outer, outer, 1), nn.ReLU()
        )

    def forward(self, points: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        centres = pick(points, farthest(points, self.count))
        distances, order = squared_distances(centres, points).topk(self.near, largest=False)
        order = torch.where(distances > self.radius**2, order[..., :1], order)
        local = torch.cat([pick(points, order) - centres.unsqueeze(2), pick(features, order)], -1)
        return centres, self.mlp(local.permute(0, 3, 1, 2)).amax(-1).transpose(1, 2)


class PointNet2(nn.Module):
    """PointNet++ with two levels of set abstraction and feature propagation back to the points."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SetAbstraction(16, 8, 0.4, 3, 32), SetAbstraction(4, 8, 0.8, 32, 64)
        self.up, self.head = nn.Linear(64 + 32, 32), nn.Linear(32 + 3, 5)

    @staticmethod
    def _spread(points: Tensor, sparse: Tensor, features: Tensor) -> Tensor:
        distances, order = squared_distances(points, sparse).topk(3, largest=False)
        weights = 1 / (distances + 1e-3)
        weights = weights / weights.sum(-1, keepdim=True)
        return (pick(features, order) * weights.unsqueeze(-1)).sum(2)

    def forward(self, points: Tensor) -> Tensor:
        p1, f1 = self.first(points, points)
        p2, f2 = self.second(p1, f1)
        f1 = F.relu(self.up(torch.cat([self._spread(p1, p2, f2), f1], -1)))
        return self.head(torch.cat([self._spread(points, p1, f1), points], -1))


class Dgcnn(nn.Module):
    """Edge convolutions on a graph of nearest neighbours that is built anew in every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.ModuleList([nn.Linear(6, 32), nn.Linear(64, 32)])
        self.head = nn.Linear(64, 5)

    def forward(self, points: Tensor) -> Tensor:
        x, found = points, []
        for edge in self.edges:
            near = pick(x, squared_distances(x, x).topk(6, largest=False).indices)
            centre = x.unsqueeze(2).expand_as(near)
            x = F.leaky_relu(edge(torch.cat([centre, near - centre], -1)), 0.2).amax(2)
            found.append(x)
        return self.head(torch.cat(found, -1).amax(1))


class PointTransformer(nn.Module):
    """Vector attention among the nearest neighbours of every point."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.qkv, self.place = nn.Linear(3, 32), nn.Linear(32, 96), nn.Linear(3, 32)
        self.weigh = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
        self.head = nn.Linear(32, 5)

    def forward(self, points: Tensor) -> Tensor:
        x = self.first(points)
        q, k, v = self.qkv(x).chunk(3, -1)
        order = squared_distances(points, points).topk(8, largest=False).indices
        place = self.place(points.unsqueeze(2) - pick(points, order))
        weights = self.weigh(q.unsqueeze(2) - pick(k, order) + place).softmax(2)
        return self.head(x + (weights * (pick(v, order) + place)).sum(2))


class GraphTransformer(nn.Module):
    """Graphormer: attention with biases from distances in the graph, and embeddings of degrees."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.first, self.degree = heads, nn.Linear(8, width), nn.Embedding(17, width)
        self.near = nn.Embedding(4, heads)
        self.layers = nn.ModuleList(
            [nn.ModuleList([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)]) for _ in "12"]
        )
        self.head = nn.Linear(width, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        b, n, _ = nodes.shape
        near = edges > 0.5
        two = (near.float() @ near.float()) > 0
        steps = torch.where(near, 1, torch.where(two, 2, 3))
        bias = self.near(steps).permute(0, 3, 1, 2)
        x = self.first(nodes) + self.degree(near.sum(-1))
        for norm, qkv, last in self.layers:
            q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in qkv(norm(x)).chunk(3, -1))
            x = x + last(F.scaled_dot_product_attention(q, k, v, bias).transpose(1, 2).reshape(b, n, -1))
        return self.head(x.mean(1))


class MeshNet(nn.Sequential):
    """Segments brain volumes with dilated convolutions at full resolution."""

    def __init__(self) -> None:
        layers, channels = [], 1
        for dilation in (1, 2, 4, 2, 1):
            layers += [nn.Conv3d(channels, 8, 3, padding=dilation, dilation=dilation), nn.BatchNorm3d(8), nn.ReLU()]
            channels = 8
        super().__init__(*layers, nn.Conv3d(channels, 3, 1))
