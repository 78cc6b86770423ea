# SPDX-License-Identifier: Apache-2.0
"""YOLOv8 to YOLO12 in small sizes, written from the description of their blocks."""
from __future__ import annotations

from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES, BINS = 4, 8
Block = Callable[[int, int], nn.Module]


class Conv(nn.Sequential):
    """Convolution, normalisation, SiLU."""

    def __init__(
        self, inner: int, outer: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: bool = True
    ) -> None:
        conv = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outer), nn.SiLU() if act else nn.Identity())


class Bottleneck(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(Conv(channels, channels, 3), Conv(channels, channels, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class C2f(nn.Module):
    """The block of YOLOv8: half of the channels pass a chain; all its stages are concatenated."""

    def __init__(self, inner: int, outer: int, stage: Callable[[int], nn.Module] = Bottleneck, depth: int = 2) -> None:
        super().__init__()
        half = outer // 2
        self.first, self.last = Conv(inner, outer), Conv((2 + depth) * half, outer)
        self.stages = nn.ModuleList([stage(half) for _ in range(depth)])

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for stage in self.stages:
            parts.append(stage(parts[-1]))
        return self.last(torch.cat(parts, 1))


class C3k(nn.Module):
    """The stage of YOLO11: two bottlenecks beside a shortcut convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.chain = nn.Sequential(Conv(channels, half), Bottleneck(half), Bottleneck(half))
        self.side, self.last = Conv(channels, half), Conv(2 * half, channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.cat([self.chain(x), self.side(x)], 1))


class RepElan(nn.Module):
    """The aggregation block of YOLOv9 with re-parameterisable convolutions (3x3 beside 1x1)."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        half = outer // 2
        self.first, self.last = Conv(inner, outer), Conv(2 * outer, outer)
        self.wide = nn.ModuleList([Conv(half, half, 3, act=False) for _ in range(2)])
        self.narrow = nn.ModuleList([Conv(half, half, 1, act=False) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).split(self.wide[0][0].in_channels, 1))
        for wide, narrow in zip(self.wide, self.narrow):
            parts.append(F.silu(wide(parts[-1]) + narrow(parts[-1])))
        return self.last(torch.cat(parts, 1))


class Attention(nn.Module):
    """Attention over positions with a depthwise positional convolution (YOLOv10, YOLO11); areas: strips of the picture
    that attend to themselves only (YOLO12)."""

    def __init__(self, channels: int, heads: int = 2, areas: int = 1) -> None:
        super().__init__()
        self.heads, self.areas, self.width = heads, areas, channels // heads
        self.qkv, self.last = Conv(channels, 3 * channels, act=False), Conv(channels, channels, act=False)
        self.position = Conv(channels, channels, 3, groups=channels, act=False)
        self.mlp = nn.Sequential(Conv(channels, 2 * channels), Conv(2 * channels, channels, act=False))

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        strips = self.qkv(x).reshape(b, 3 * c, self.areas, -1).transpose(1, 2)
        q, k, v = strips.reshape(b * self.areas, self.heads, 3 * self.width, -1).split(self.width, 2)
        scores = (q.transpose(-2, -1) @ k * self.width**-0.5).softmax(-1)
        found = (v @ scores.transpose(-2, -1)).reshape(b, self.areas, c, -1).transpose(1, 2).reshape(b, c, h, w)
        value = v.reshape(b, self.areas, c, -1).transpose(1, 2).reshape(b, c, h, w)
        x = x + self.last(found + self.position(value))
        return x + self.mlp(x)


class Psa(nn.Module):
    """Attention on half of the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last, self.attend = (
            Conv(channels, channels),
            Conv(channels, channels),
            Attention(channels // 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x).chunk(2, 1)
        return self.last(torch.cat([a, self.attend(b)], 1))


class Sppf(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = Conv(channels, channels // 2), Conv(2 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class SpatialDown(nn.Sequential):
    """Downsampling of YOLOv10: pointwise, then depthwise."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__(Conv(inner, outer), Conv(outer, outer, 3, 2, groups=outer, act=False))


def down(inner: int, outer: int) -> nn.Module:
    return Conv(inner, outer, 3, 2)


class Pyramid(nn.Module):
    """Backbone and path aggregation; returns three levels with 16, 32 and 64 channels."""

    def __init__(self, block: Block = C2f, downsample: Block = down, top: Callable[[int], nn.Module] = Sppf) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 8, 3, 2), Conv(8, 16, 3, 2), block(16, 16))
        self.p3 = nn.Sequential(Conv(16, 16, 3, 2), block(16, 16))
        self.p4 = nn.Sequential(downsample(16, 32), block(32, 32))
        self.p5 = nn.Sequential(downsample(32, 64), block(64, 64), top(64))
        self.up4, self.up3, self.out4, self.out5 = block(96, 32), block(48, 16), block(48, 32), block(96, 64)
        self.down3, self.down4 = Conv(16, 16, 3, 2), downsample(32, 32)

    def forward(self, image: Tensor) -> list[Tensor]:
        p3 = self.p3(self.stem(image))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        middle = self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
        o3 = self.up3(torch.cat([F.interpolate(middle, scale_factor=2.0), p3], 1))
        o4 = self.out4(torch.cat([self.down3(o3), middle], 1))
        return [o3, o4, self.out5(torch.cat([self.down4(o4), p5], 1))]


class Head(nn.Module):
    """Decoupled heads without anchors: distances as distributions, and scores. depthwise: the light class branch of
    YOLOv10 and YOLO11. best: the number of detections that YOLOv10 selects without suppression. masks: the number of
    prototype masks of the segmentation head."""

    def __init__(self, depthwise: bool = False, best: int = 0, masks: int = 0) -> None:
        super().__init__()
        self.best, widths = best, (16, 32, 64)
        self.box = nn.ModuleList([nn.Sequential(Conv(c, 16, 3), nn.Conv2d(16, 4 * BINS, 1)) for c in widths])
        self.kind = nn.ModuleList([self._kind(c, depthwise) for c in widths])
        self.mask = nn.ModuleList([nn.Conv2d(c, masks, 1) for c in widths] if masks else [])
        self.register_buffer("bins", torch.arange(BINS, dtype=torch.float32).reshape(1, BINS, 1, 1))

    @staticmethod
    def _kind(channels: int, depthwise: bool) -> nn.Module:
        first = Conv(channels, channels, 3, groups=channels) if depthwise else Conv(channels, channels, 3)
        return nn.Sequential(first, Conv(channels, 16), nn.Conv2d(16, CLASSES, 1))

    def forward(self, levels: list[Tensor]) -> Tensor:
        distances = torch.cat([box(x).flatten(2) for box, x in zip(self.box, levels)], 2)
        scores = torch.cat([kind(x).flatten(2) for kind, x in zip(self.kind, levels)], 2).sigmoid()
        centres, strides = self._cells(levels)
        spread = distances.reshape(distances.shape[0], 4, BINS, -1).transpose(2, 1).softmax(1)
        low, high = F.conv2d(spread, self.bins)[:, 0].chunk(2, 1)
        corners = torch.cat([centres - low, centres + high], 1) * strides
        if self.best:
            return self._select(corners.transpose(1, 2), scores.transpose(1, 2))
        found = [torch.cat([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2], scores], 1)]
        found += [torch.cat([mask(x).flatten(2) for mask, x in zip(self.mask, levels)], 2)] if self.mask else []
        return torch.cat(found, 1)

    @staticmethod
    def _cells(levels: list[Tensor]) -> tuple[Tensor, Tensor]:
        centres, strides = [], []
        for level, x in enumerate(levels):
            rows, columns = torch.meshgrid(
                torch.arange(x.shape[2]) + 0.5, torch.arange(x.shape[3]) + 0.5, indexing="ij"
            )
            centres.append(torch.stack([columns, rows]).reshape(1, 2, -1))
            strides.append(torch.full((1, 1, x.shape[2] * x.shape[3]), 8.0 * 2**level))
        return torch.cat(centres, 2), torch.cat(strides, 2)

    def _select(self, boxes: Tensor, scores: Tensor) -> Tensor:
        _, rows = scores.amax(-1).topk(self.best, -1)
        boxes = boxes.gather(1, rows.unsqueeze(-1).expand(-1, -1, 4))
        scores = scores.gather(1, rows.unsqueeze(-1).expand(-1, -1, CLASSES))
        values, flat = scores.flatten(1).topk(self.best, -1)
        kept = boxes.gather(1, (flat // CLASSES).unsqueeze(-1).expand(-1, -1, 4))
        return torch.cat([kept, values.unsqueeze(-1), (flat % CLASSES).unsqueeze(-1).float()], -1)


class Segmenter(nn.Module):
    """YOLOv8 with prototype masks beside the detections."""

    def __init__(self) -> None:
        super().__init__()
        self.pyramid, self.head = Pyramid(), Head(masks=8)
        self.prototypes = nn.Sequential(Conv(16, 16, 3), nn.ConvTranspose2d(16, 16, 2, 2), Conv(16, 16, 3), Conv(16, 8))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        levels = self.pyramid(image)
        return self.head(levels), self.prototypes(levels[0])


def _with_attention(channels: int) -> nn.Module:
    return nn.Sequential(Sppf(channels), Psa(channels))


def yolov8() -> nn.Module:
    return nn.Sequential(Pyramid(), Head())


def yolov9() -> nn.Module:
    return nn.Sequential(Pyramid(RepElan), Head())


def yolov10() -> nn.Module:
    return nn.Sequential(Pyramid(C2f, SpatialDown, _with_attention), Head(depthwise=True, best=16))


def yolo11() -> nn.Module:
    block = lambda inner, outer: C2f(inner, outer, C3k, 1)  # noqa: E731
    return nn.Sequential(Pyramid(block, down, _with_attention), Head(depthwise=True))


def yolo12() -> nn.Module:
    area = lambda channels: Attention(channels, 2, 3)  # noqa: E731
    block = lambda inner, outer: C2f(inner, outer, area if outer >= 64 else C3k, 1)  # noqa: E731
    return nn.Sequential(Pyramid(block), Head(depthwise=True))
