# SPDX-License-Identifier: Apache-2.0
"""Networks that generate pictures, and networks quantised by onnxruntime's tools."""
from __future__ import annotations

from networks import audio_text, vision
from registry import Network, image, normal, own, quantised, transformer

GENERATIVE = [
    own(
        "unet-diffusion",
        "generative",
        "networks.generators:DiffusionUNet",
        {"image": normal(1, 3, 32, 32), "time": normal(1)},
    ),
    own("vae", "generative", "networks.generators:Vae", {"image": normal(1, 3, 32, 32), "noise": normal(1, 16)}),
    own("vqvae", "generative", "networks.generators:VqVae", {"image": normal(1, 3, 32, 32)}),
    own("dcgan", "generative", "networks.generators:DcGan", {"noise": normal(1, 32, 1, 1)}),
    own("stylegan-block", "generative", "networks.generators:StyleGan", {"style": normal(1, 32)}),
    own("cyclegan", "generative", "networks.generators:CycleGan", image(32)),
    own("dit", "generative", "networks.generators:Dit", {"image": normal(1, 4, 16, 16), "time": normal(1)}),
    own("flow-coupling", "generative", "networks.generators:Coupling", {"x": normal(1, 16)}),
    own("nerf", "generative", "networks.generators:Nerf", {"rays": normal(64, 3)}),
    own("espcn", "super-resolution", "networks.generators:Espcn", image(32, 1)),
    own("fsrcnn-transposed", "super-resolution", "networks.generators:Fsrcnn", image(32, 1)),
    own("edsr", "super-resolution", "networks.generators:Edsr", image(24)),
    own("rrdb", "super-resolution", "networks.generators:Rrdb", image(24)),
    own("imdn", "super-resolution", "networks.generators:Imdn", image(24)),
    own("nafnet", "super-resolution", "networks.generators:NafNet", image(32)),
    own("restormer", "super-resolution", "networks.generators:Restormer", image(32)),
    transformer(
        "swin2sr",
        "super-resolution",
        "Swin2SRConfig",
        "Swin2SRForImageSuperResolution",
        {"pixel_values": normal(1, 3, 32, 32)},
        ["reconstruction"],
        image_size=32,
        embed_dim=32,
        depths=[2],
        num_heads=[4],
        window_size=8,
        upscale=2,
    ),
    own("spatial-transformer", "geometry", "networks.generators:SpatialTransformer", image(28, 1)),
    own("capsules", "geometry", "networks.generators:Capsules", image(28, 1)),
    own("hourglass", "geometry", "networks.generators:Hourglass", image(64)),
    own(
        "siamese-correlation",
        "geometry",
        "networks.generators:Siamese",
        {"template": normal(1, 3, 32, 32), "search": normal(1, 3, 64, 64)},
    ),
    own("deformable", "geometry", "networks.generators:Deformable", image(32)),
    own("neural-ode", "geometry", "networks.generators:NeuralOde", {"x": normal(1, 8)}),
]


def _named(name: str) -> Network:
    return next(network for network in (*vision.NETWORKS, *audio_text.NETWORKS) if network.name == name)


QUANTISED = [
    quantised("qdq-mobilenetv2", _named("timm-mobilenetv2_050"), "networks.quantised:qdq"),
    quantised("qdq-resnet18", _named("timm-resnet18"), "networks.quantised:qdq"),
    quantised("qdq-vit", _named("timm-vit_tiny_patch16_224"), "networks.quantised:qdq"),
    quantised("qdq-u16-resnet18", _named("timm-resnet18"), "networks.quantised:qdq_u16"),
    quantised("qdq-u16-bert", _named("hf-bert"), "networks.quantised:qdq_u16"),
    quantised("qlinear-shufflenet", _named("torchvision-shufflenet_v2_x0_5"), "networks.quantised:qlinear"),
    quantised("qlinear-squeezenet", _named("torchvision-squeezenet1_1"), "networks.quantised:qlinear"),
    quantised("dynamic-bert", _named("hf-bert"), "networks.quantised:dynamic"),
    quantised("dynamic-gpt2", _named("hf-gpt2"), "networks.quantised:dynamic"),
    quantised("dynamic-lstm", _named("own-lstm-language-model"), "networks.quantised:dynamic"),
]
NETWORKS = [*GENERATIVE, *QUANTISED]
