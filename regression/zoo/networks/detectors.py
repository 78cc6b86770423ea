# SPDX-License-Identifier: Apache-2.0
"""Detectors and segmenters in small sizes, with the post-processing that exporters add to their heads."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from networks.generators import conv_block


def conv_silu(inner: int, outer: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outer), nn.SiLU()
    )


class Csp(nn.Module):
    """C2f of YOLOv8: a split, a chain, everything concatenated."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = conv_silu(channels, channels, 1), conv_silu(channels * 3 // 2, channels, 1)
        self.chain = nn.Sequential(conv_silu(channels // 2, channels // 2), conv_silu(channels // 2, channels // 2))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x).chunk(2, 1)
        return self.last(torch.cat([a, b, b + self.chain(b)], 1))


class Neck(nn.Module):
    """Backbone with three levels, spatial pyramid pooling, and a path back up."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_silu(3, 16, 3, 2), conv_silu(16, 16, 3, 2))
        self.p3, self.p4 = nn.Sequential(conv_silu(16, 32, 3, 2), Csp(32)), nn.Sequential(
            conv_silu(32, 32, 3, 2), Csp(32)
        )
        self.p5, self.spp = nn.Sequential(conv_silu(32, 32, 3, 2), Csp(32)), conv_silu(128, 32, 1)
        self.up4, self.up3 = Csp(64), Csp(64)
        self.out4, self.out3 = conv_silu(64, 32, 1), conv_silu(64, 32, 1)

    def forward(self, image: Tensor) -> list[Tensor]:
        p3 = self.p3(self.stem(image))
        p4 = self.p4(p3)
        pooled = [self.p5(p4)]
        for _ in range(3):
            pooled.append(F.max_pool2d(pooled[-1], 5, 1, 2))
        p5 = self.spp(torch.cat(pooled, 1))
        p4 = self.out4(self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0, mode="nearest"), p4], 1)))
        p3 = self.out3(self.up3(torch.cat([F.interpolate(p4, scale_factor=2.0, mode="nearest"), p3], 1)))
        return [p3, p4, p5]


class Yolo(nn.Module):
    """Network like YOLOv5: three anchors per cell, decoded; with_nms: followed by torchvision's suppression of the 16
    best boxes."""

    def __init__(self, with_nms: bool) -> None:
        super().__init__()
        self.neck, self.with_nms = Neck(), with_nms
        self.heads = nn.ModuleList([nn.Conv2d(32, 3 * 9, 1) for _ in range(3)])
        self.register_buffer(
            "anchors",
            torch.tensor(
                [[[10.0, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 59]], [[56, 60], [66, 88], [90, 80]]]
            ),
        )

    def forward(self, image: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        found = []
        for level, (x, head) in enumerate(zip(self.neck(image), self.heads)):
            b, _, h, w = x.shape
            y = head(x).reshape(b, 3, 9, h, w).permute(0, 1, 3, 4, 2).sigmoid()
            rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack([columns, rows], -1).float()[None, None]
            xy = (y[..., :2] * 2 - 0.5 + grid) * (8 * 2**level)
            wh = (y[..., 2:4] * 2) ** 2 * self.anchors[level][None, :, None, None]
            found.append(torch.cat([xy, wh, y[..., 4:]], -1).reshape(b, -1, 9))
        boxes = torch.cat(found, 1)
        if not self.with_nms:
            return boxes
        import torchvision

        boxes = boxes[0]
        scores = boxes[:, 4] * boxes[:, 5:].amax(1)
        corners = torch.cat([boxes[:, :2] - boxes[:, 2:4] / 2, boxes[:, :2] + boxes[:, 2:4] / 2], 1)
        best, order = scores.topk(16)
        kept = torchvision.ops.nms(corners[order], best, 0.5)
        return corners[order][kept], best[kept]


class YoloDfl(nn.Module):
    """Network like YOLOv8: distances as distributions over 8 bins, an angle, class scores."""

    def __init__(self) -> None:
        super().__init__()
        self.neck = Neck()
        self.box, self.kind, self.angle = (nn.ModuleList([nn.Conv2d(32, n, 1) for _ in range(3)]) for n in (32, 4, 1))

    def forward(self, image: Tensor) -> Tensor:
        outputs = []
        for level, x in enumerate(self.neck(image)):
            b, _, h, w = x.shape
            bins = self.box[level](x).reshape(b, 4, 8, h * w).softmax(2)
            distance = (bins * torch.arange(8, dtype=torch.float32)[:, None]).sum(2)
            rows, columns = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            centre = torch.stack([columns, rows]).reshape(1, 2, -1)
            low, high = centre - distance[:, :2], centre + distance[:, 2:]
            angle = (self.angle[level](x).flatten(2).sigmoid() - 0.25) * torch.pi
            size = high - low
            middle = (low + high) / 2 - centre
            turned = torch.cat(
                [
                    middle[:, :1] * angle.cos() - middle[:, 1:] * angle.sin(),
                    middle[:, :1] * angle.sin() + middle[:, 1:] * angle.cos(),
                ],
                1,
            )
            outputs.append(
                torch.cat(
                    [
                        (turned + centre) * (8 * 2**level),
                        size * (8 * 2**level),
                        self.kind[level](x).flatten(2).sigmoid(),
                        angle,
                    ],
                    1,
                )
            )
        return torch.cat(outputs, 2)


class Ssd(nn.Module):
    """Default boxes, softmax over classes, decoded with variances."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_block(3, 16, stride=2), conv_block(16, 32, stride=2), conv_block(32, 32, stride=2)
        )
        self.more = nn.ModuleList([conv_block(32, 32, stride=2), conv_block(32, 32, stride=2)])
        self.kind, self.box = (nn.ModuleList([nn.Conv2d(32, n, 3, 1, 1) for _ in range(3)]) for n in (4 * 5, 4 * 4))
        total = 4 * (12 * 12 + 6 * 6 + 3 * 3)
        self.register_buffer("defaults", torch.rand(total, 4, generator=torch.Generator().manual_seed(1)) * 0.5 + 0.1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(image)
        levels = [x]
        for layer in self.more:
            levels.append(layer(levels[-1]))
        scores = torch.cat(
            [kind(x).permute(0, 2, 3, 1).reshape(1, -1, 5) for kind, x in zip(self.kind, levels)], 1
        ).softmax(-1)
        offsets = torch.cat([box(x).permute(0, 2, 3, 1).reshape(1, -1, 4) for box, x in zip(self.box, levels)], 1)
        centre = self.defaults[:, :2] + offsets[..., :2] * 0.1 * self.defaults[:, 2:]
        size = self.defaults[:, 2:] * torch.exp(offsets[..., 2:] * 0.2)
        return torch.cat([centre - size / 2, centre + size / 2], -1).clamp(0, 1), scores


class CenterNet(nn.Module):
    """Peaks by max pooling, the 10 best by topk, their sizes by gather."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 16, stride=2), conv_block(16, 32, stride=2))
        self.heat, self.size = nn.Conv2d(32, 3, 1), nn.Conv2d(32, 2, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.features(image)
        heat = self.heat(x).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, places = heat.flatten(1).topk(10)
        cell = places % (24 * 24)
        size = self.size(x).flatten(2).gather(2, cell[:, None].expand(-1, 2, -1))
        return scores, torch.stack([cell % 24, cell // 24], -1).float(), size


class MaskDecoder(nn.Module):
    """MaskFormer-like: queries look at pixels, masks are products of query and pixel embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.pixels = nn.Sequential(
            conv_block(3, 16, stride=2), conv_block(16, 32, stride=2)
        ), nn.Conv2d(32, 32, 1)
        self.queries = nn.Parameter(torch.randn(1, 8, 32))
        self.layers = nn.ModuleList([nn.TransformerDecoderLayer(32, 4, 64, 0.0, batch_first=True) for _ in range(2)])
        self.kind, self.mask = nn.Linear(32, 5), nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        pixels = self.pixels(self.features(image))
        memory, x = pixels.flatten(2).transpose(1, 2), self.queries
        for layer in self.layers:
            x = layer(x, memory)
        masks = torch.einsum("bqc,bchw->bqhw", self.mask(x), pixels)
        return self.kind(x), torch.einsum("bqk,bqhw->bkhw", self.kind(x).softmax(-1), masks.sigmoid())


class BiSeNet(nn.Module):
    """Two paths, attention refinement, feature fusion, bilinear to full size."""

    def __init__(self) -> None:
        super().__init__()
        self.spatial = nn.Sequential(conv_block(3, 16, stride=2), conv_block(16, 32, stride=2))
        self.context = nn.Sequential(
            conv_block(3, 16, stride=2),
            conv_block(16, 32, stride=2),
            conv_block(32, 32, stride=2),
            conv_block(32, 32, stride=2),
        )
        self.refine = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 32, 1), nn.Sigmoid())
        self.fuse, self.gate = conv_block(64, 32), nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 32, 1), nn.Sigmoid()
        )
        self.head = nn.Conv2d(32, 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        context = self.context(image)
        context = context * self.refine(context) + context.mean((2, 3), keepdim=True)
        context = F.interpolate(context, scale_factor=4.0, mode="bilinear", align_corners=True)
        x = self.fuse(torch.cat([self.spatial(image), context], 1))
        return F.interpolate(
            self.head(x + x * self.gate(x)), scale_factor=4.0, mode="bilinear", align_corners=False
        ).argmax(1)
