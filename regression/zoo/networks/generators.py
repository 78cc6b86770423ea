# SPDX-License-Identifier: Apache-2.0
"""Generative networks, super-resolution, and geometry, written from their papers in small sizes."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv_block(inner: int, outer: int, norm: type[nn.Module] | None = nn.BatchNorm2d, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1), *([norm(outer)] if norm else []), nn.ReLU())


class UNet(nn.Module):
    """Ronneberger et al.: max pooling down, transposed convolutions up, skips concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [nn.Sequential(conv_block(a, b), conv_block(b, b)) for a, b in ((3, 16), (16, 32), (32, 64))]
        )
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in ((32, 64), (16, 32))])
        self.after = nn.ModuleList([conv_block(2 * a, a) for a in (32, 16)])
        self.head = nn.Conv2d(16, 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        kept = []
        for level in self.down:
            image = level(image)
            kept.append(image)
            image = F.max_pool2d(image, 2)
        image = kept.pop()
        for up, after in zip(self.up, self.after):
            image = after(torch.cat([up(image), kept.pop()], 1))
        return self.head(image)


class TimedResidual(nn.Module):
    """Residual block of diffusion models: group norms, SiLU, the time embedding added in the middle."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inner), nn.Conv2d(inner, outer, 3, 1, 1)
        self.time = nn.Linear(64, outer)
        self.norm2, self.conv2 = nn.GroupNorm(8, outer), nn.Conv2d(outer, outer, 3, 1, 1)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class PixelAttention(nn.Module):
    """Self-attention over the pixels of a feature map."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, channels), heads
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        weights = torch.softmax(q.transpose(-1, -2) @ k / math.sqrt(c // self.heads), -1)
        return x + self.out((v @ weights.transpose(-1, -2)).reshape(b, c, h, w))


def sinusoids(time: Tensor, width: int) -> Tensor:
    steps = torch.exp(-math.log(10000.0) * torch.arange(width // 2) / (width // 2))
    angles = time[:, None] * steps[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class DiffusionUNet(nn.Module):
    """U-Net of a diffusion model with attention at its lowest level."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.first = nn.Conv2d(3, 32, 3, 1, 1)
        self.down1, self.pool1 = TimedResidual(32, 32), nn.Conv2d(32, 32, 3, 2, 1)
        self.down2, self.pool2 = TimedResidual(32, 64), nn.Conv2d(64, 64, 3, 2, 1)
        self.middle1, self.attention, self.middle2 = TimedResidual(64, 64), PixelAttention(64), TimedResidual(64, 64)
        self.up2, self.up1 = TimedResidual(128, 32), TimedResidual(64, 32)
        self.norm, self.last = nn.GroupNorm(8, 32), nn.Conv2d(32, 3, 3, 1, 1)

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        t = self.time(sinusoids(time, 32))
        a = self.down1(self.first(image), t)
        b = self.down2(self.pool1(a), t)
        x = self.middle2(self.attention(self.middle1(self.pool2(b), t)), t)
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), b], 1), t)
        x = self.up1(torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), a], 1), t)
        return self.last(F.silu(self.norm(x)))


class Vae(nn.Module):
    """Kingma and Welling: encoder to mean and log variance, decoder; the noise comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            conv_block(3, 16, stride=2), conv_block(16, 32, stride=2), nn.Flatten(), nn.Linear(32 * 64, 32)
        )
        self.first = nn.Linear(16, 32 * 64)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Sigmoid()
        )

    def forward(self, image: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(image).chunk(2, 1)
        z = mean + noise * torch.exp(0.5 * log_variance)
        return self.decoder(self.first(z).reshape(-1, 32, 8, 8)), mean, log_variance


class VqVae(nn.Module):
    """Vector quantisation: the nearest of 24 codes, by distances and argmin."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(conv_block(3, 16, stride=2), nn.Conv2d(16, 8, 4, 2, 1))
        self.codes = nn.Parameter(torch.randn(24, 8))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, image: Tensor) -> Tensor:
        z = self.encoder(image).permute(0, 2, 3, 1)
        flat = z.reshape(-1, 8)
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.t() + self.codes.pow(2).sum(1)
        return self.decoder(self.codes[distance.argmin(1)].reshape(z.shape).permute(0, 3, 1, 2))


class DcGan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.ConvTranspose2d(32, 64, 4), nn.BatchNorm2d(64), nn.ReLU()]
        for a, b in ((64, 32), (32, 16)):
            layers += [nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise: Tensor) -> Tensor:
        return self.layers(noise)


class StyleGan(nn.Module):
    """A modulated, demodulated convolution: the weights themselves are computed from the style."""

    def __init__(self) -> None:
        super().__init__()
        self.mapping = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(32, 32), nn.LeakyReLU(0.2))])
        self.constant = nn.Parameter(torch.randn(1, 16, 8, 8))
        self.style, self.weight = nn.Linear(32, 16), nn.Parameter(torch.randn(24, 16, 3, 3) * 0.1)
        self.colour = nn.Conv2d(24, 3, 1)

    def forward(self, style: Tensor) -> Tensor:
        scale = self.style(self.mapping(F.normalize(style, dim=1))) + 1
        weight = self.weight[None] * scale[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        x = F.conv2d(self.constant, weight[0], padding=1)
        return self.colour(F.interpolate(F.leaky_relu(x, 0.2), scale_factor=2.0, mode="bilinear", align_corners=False))


class CycleGan(nn.Module):
    """Generator with instance norms, reflected borders and residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.ReflectionPad2d(3),
            nn.Conv2d(3, 16, 7),
            nn.InstanceNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.InstanceNorm2d(32),
            nn.ReLU(),
        )
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(32, 32, 3),
                    nn.InstanceNorm2d(32),
                    nn.ReLU(),
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(32, 32, 3),
                    nn.InstanceNorm2d(32),
                )
                for _ in range(2)
            ]
        )
        self.last = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 3, 2, 1, 1),
            nn.InstanceNorm2d(16),
            nn.ReLU(),
            nn.ReflectionPad2d(3),
            nn.Conv2d(16, 3, 7),
            nn.Tanh(),
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


class Dit(nn.Module):
    """Diffusion transformer: layer norms without parameters, shifted and scaled by the time."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.position = nn.Conv2d(4, 64, 4, 4), nn.Parameter(torch.randn(1, 16, 64) * 0.1)
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU())
        self.modulation = nn.ModuleList([nn.Linear(64, 6 * 64) for _ in range(2)])
        self.qkv = nn.ModuleList([nn.Linear(64, 192) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(64, 64) for _ in range(2)])
        self.mlp = nn.ModuleList(
            [nn.Sequential(nn.Linear(64, 128), nn.GELU(approximate="tanh"), nn.Linear(128, 64)) for _ in range(2)]
        )
        self.head = nn.Linear(64, 64)

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.position
        t = self.time(sinusoids(time, 32))
        for modulation, qkv, out, mlp in zip(self.modulation, self.qkv, self.out, self.mlp):
            shift1, scale1, gate1, shift2, scale2, gate2 = modulation(t)[:, None].chunk(6, -1)
            h = F.layer_norm(x, (64,)) * (1 + scale1) + shift1
            q, k, v = qkv(h).reshape(1, 16, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + gate1 * out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 16, 64))
            x = x + gate2 * mlp(F.layer_norm(x, (64,)) * (1 + scale2) + shift2)
        return F.pixel_shuffle(self.head(x).transpose(1, 2).reshape(1, 64, 4, 4), 4)


class Coupling(nn.Module):
    """RealNVP: affine couplings with exp(tanh), halves swapped, and the log determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)) for _ in range(4)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x.chunk(2, 1)
        log_determinant = torch.zeros(x.shape[0])
        for net in self.nets:
            scale, shift = net(a).chunk(2, 1)
            scale = torch.tanh(scale)
            a, b = b * torch.exp(scale) + shift, a
            log_determinant = log_determinant + scale.sum(1)
        return torch.cat([a, b], 1), log_determinant


class Nerf(nn.Module):
    """Positional encoding by sines, then a network with a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(3 + 3 * 2 * 6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.last = nn.Sequential(nn.Linear(64 + 39, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, rays: Tensor) -> tuple[Tensor, Tensor]:
        angles = (rays[..., None] * (2.0 ** torch.arange(6))).flatten(1)
        encoded = torch.cat([rays, angles.sin(), angles.cos()], 1)
        out = self.last(torch.cat([self.first(encoded), encoded], 1))
        return torch.sigmoid(out[:, :3]), F.softplus(out[:, 3:])


class Espcn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 5, 1, 2),
            nn.Tanh(),
            nn.Conv2d(32, 16, 3, 1, 1),
            nn.Tanh(),
            nn.Conv2d(16, 9, 3, 1, 1),
            nn.PixelShuffle(3),
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.layers(image)


class Fsrcnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 5, 1, 2),
            nn.PReLU(32),
            nn.Conv2d(32, 12, 1),
            nn.PReLU(12),
            nn.Conv2d(12, 12, 3, 1, 1),
            nn.PReLU(12),
            nn.Conv2d(12, 32, 1),
            nn.PReLU(32),
            nn.ConvTranspose2d(32, 1, 9, 3, 4, 2),
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.layers(image)


class Edsr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, 1, 1)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1)) for _ in range(3)]
        )
        self.last = nn.Sequential(nn.Conv2d(32, 128, 3, 1, 1), nn.PixelShuffle(2), nn.Conv2d(32, 3, 3, 1, 1))

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        y = x
        for block in self.blocks:
            y = y + 0.1 * block(y)
        return self.last(x + y)


class Rrdb(nn.Module):
    """ESRGAN's residual in residual dense block."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, 1, 1)
        self.dense = nn.ModuleList(
            [nn.ModuleList([nn.Conv2d(16 + 8 * i, 8 if i < 4 else 16, 3, 1, 1) for i in range(5)]) for _ in range(2)]
        )
        self.last = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 3, 3, 1, 1))

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        for convs in self.dense:
            parts = [x]
            for conv in convs[:-1]:
                parts.append(F.leaky_relu(conv(torch.cat(parts, 1)), 0.2))
            x = x + 0.2 * convs[-1](torch.cat(parts, 1))
        return self.last(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Imdn(nn.Module):
    """Information distillation by splits, contrast-aware channel attention."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, 1, 1)
        self.steps = nn.ModuleList([nn.Conv2d(32 if i == 0 else 24, 32, 3, 1, 1) for i in range(3)])
        self.join, self.squeeze = nn.Conv2d(8 * 2 + 32, 32, 1), nn.Sequential(
            nn.Conv2d(32, 4, 1), nn.ReLU(), nn.Conv2d(4, 32, 1), nn.Sigmoid()
        )
        self.last = nn.Sequential(nn.Conv2d(32, 12, 3, 1, 1), nn.PixelShuffle(2))

    def forward(self, image: Tensor) -> Tensor:
        x = kept = self.first(image)
        parts = []
        for step in list(self.steps)[:-1]:
            part, x = torch.split(F.leaky_relu(step(x), 0.05), [8, 24], 1)
            parts.append(part)
        x = self.join(torch.cat([*parts, F.leaky_relu(self.steps[-1](x), 0.05)], 1))
        mean = x.mean((2, 3), keepdim=True)
        contrast = (x - mean).pow(2).mean((2, 3), keepdim=True).sqrt() + mean
        return self.last(x * self.squeeze(contrast) + kept)


class LayerNorm2d(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * (x - mean) / torch.sqrt(variance + 1e-6) + self.bias[:, None, None]


class NafNet(nn.Module):
    """A block without activations: gates by products of halves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 3, 3, 1, 1)
        self.norm1, self.norm2 = LayerNorm2d(16), LayerNorm2d(16)
        self.wide, self.depth, self.back = (
            nn.Conv2d(16, 32, 1),
            nn.Conv2d(32, 32, 3, 1, 1, groups=32),
            nn.Conv2d(16, 16, 1),
        )
        self.attention = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 16, 1))
        self.wide2, self.back2 = nn.Conv2d(16, 32, 1), nn.Conv2d(16, 16, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        a, b = self.depth(self.wide(self.norm1(x))).chunk(2, 1)
        y = a * b
        x = x + self.back(y * self.attention(y))
        a, b = self.wide2(self.norm2(x)).chunk(2, 1)
        return image + self.last(x + self.back2(a * b))


class Restormer(nn.Module):
    """Attention over channels instead of pixels, with a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 32, 3, 1, 1), nn.Conv2d(32, 3, 3, 1, 1)
        self.norm, self.qkv, self.depth = LayerNorm2d(32), nn.Conv2d(32, 96, 1), nn.Conv2d(96, 96, 3, 1, 1, groups=96)
        self.temperature, self.out = nn.Parameter(torch.ones(4, 1, 1)), nn.Conv2d(32, 32, 1)
        self.norm2, self.gate, self.back = LayerNorm2d(32), nn.Conv2d(32, 64, 1), nn.Conv2d(32, 32, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        b, c, h, w = x.shape
        q, k, v = self.depth(self.qkv(self.norm(x))).reshape(b, 3, 4, c // 4, h * w).unbind(1)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        weights = torch.softmax(q @ k.transpose(-1, -2) * self.temperature, -1)
        x = x + self.out((weights @ v).reshape(b, c, h, w))
        a, b = self.gate(self.norm2(x)).chunk(2, 1)
        return image + self.last(x + self.back(F.gelu(a) * b))


class SpatialTransformer(nn.Module):
    """Jaderberg et al.: a grid from an affine matrix, sampled bilinearly."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 121, 6))
        self.classify = nn.Sequential(
            conv_block(1, 16, stride=2), conv_block(16, 16, stride=2), nn.Flatten(), nn.Linear(16 * 49, 10)
        )

    def forward(self, image: Tensor) -> Tensor:
        start = torch.tensor([[1.0, 0, 0, 0, 1, 0]])
        matrix = (0.1 * self.where(image) + start).reshape(-1, 2, 3)
        axis = torch.linspace(-1, 1, 28)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        points = torch.stack([x, y, torch.ones_like(x)], -1).reshape(1, -1, 3)
        grid = (points @ matrix.transpose(1, 2)).reshape(-1, 28, 28, 2)
        return self.classify(F.grid_sample(image, grid, align_corners=False))


class Capsules(nn.Module):
    """Sabour et al.: routing by agreement, three rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.primary = nn.Conv2d(1, 16, 9), nn.Conv2d(16, 32, 9, 3)
        self.weight = nn.Parameter(torch.randn(10, 4 * 16, 8, 8) * 0.2)

    @staticmethod
    def squash(x: Tensor) -> Tensor:
        square = x.pow(2).sum(-1, keepdim=True)
        return square / (1 + square) * x / torch.sqrt(square + 1e-6)

    def forward(self, image: Tensor) -> Tensor:
        u = self.squash(self.primary(F.relu(self.first(image))).reshape(1, 4, 8, 16).transpose(2, 3).reshape(1, 64, 8))
        votes = torch.einsum("oiab,nib->noia", self.weight, u)
        logits = torch.zeros(1, 10, 64)
        for _ in range(3):
            v = self.squash((torch.softmax(logits, 1)[..., None] * votes).sum(2))
            logits = logits + (votes * v[:, :, None]).sum(-1)
        return v.norm(dim=-1)


class Hourglass(nn.Module):
    """Heat maps of key points, and their expected positions (soft argmax)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = conv_block(3, 16, stride=2)
        self.down = nn.ModuleList([conv_block(16, 16) for _ in range(3)])
        self.up = nn.ModuleList([conv_block(16, 16) for _ in range(3)])
        self.head = nn.Conv2d(16, 5, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x, kept = self.first(image), []
        for layer in self.down:
            kept.append(x)
            x = layer(F.avg_pool2d(x, 2))
        for layer in self.up:
            x = layer(F.interpolate(x, scale_factor=2.0, mode="nearest")) + kept.pop()
        maps = self.head(x)
        weights = torch.softmax(maps.flatten(2), -1).reshape(maps.shape)
        axis = torch.arange(32, dtype=torch.float32)
        return maps, torch.stack([(weights.sum(2) * axis).sum(-1), (weights.sum(3) * axis).sum(-1)], -1)


class Siamese(nn.Module):
    """SiamFC/SiamRPN: the template's features are the kernel of a depthwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            conv_block(3, 16, stride=2), conv_block(16, 32, stride=2), conv_block(32, 32, stride=2)
        )
        self.score, self.box = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, template: Tensor, search: Tensor) -> tuple[Tensor, Tensor]:
        kernel, x = self.features(template), self.features(search)
        found = F.conv2d(x, kernel.reshape(32, 1, 4, 4), groups=32)
        return self.score(found), self.box(found).exp()


class Deformable(nn.Module):
    """Deformable convolution written with one grid sample per tap, so that every exporter can express it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.offset = conv_block(3, 16, stride=2), nn.Conv2d(16, 18, 3, 1, 1)
        self.weight, self.head = nn.Parameter(torch.randn(9, 24, 16) * 0.1), nn.Linear(24, 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        size = x.shape[-1]
        offset = self.offset(x).reshape(1, 9, 2, size, size).permute(1, 0, 3, 4, 2)
        axis = torch.arange(size, dtype=torch.float32)
        rows, columns = torch.meshgrid(axis, axis, indexing="ij")
        base = torch.stack([columns, rows], -1)[None]
        total = torch.zeros(1, 24, size * size)
        for tap in range(9):
            place = base + offset[tap] + torch.tensor([tap % 3 - 1.0, tap // 3 - 1.0])
            taken = F.grid_sample(x, (2 * place + 1) / size - 1, align_corners=False)
            total = total + self.weight[tap] @ taken.flatten(2)
        return self.head(F.relu(total).mean(-1))


class NeuralOde(nn.Module):
    """Four steps of Runge-Kutta through a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        h = 0.25
        for _ in range(4):
            k1 = self.slope(x)
            k2 = self.slope(x + h / 2 * k1)
            k3 = self.slope(x + h / 2 * k2)
            k4 = self.slope(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x
