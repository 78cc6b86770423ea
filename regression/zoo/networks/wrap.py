# SPDX-License-Identifier: Apache-2.0
"""Modules around library models, so that inputs and outputs are tensors."""
from __future__ import annotations

import torch
from torch import Tensor, nn


class Picked(nn.Module):
    """A model of transformers with inputs by name and selected tensors of its results."""

    def __init__(self, model: nn.Module, inputs: list[str], outputs: list[str]) -> None:
        super().__init__()
        self.model, self.inputs, self.outputs = model, inputs, outputs
        self.model.config.return_dict = True
        if hasattr(self.model.config, "use_cache"):
            self.model.config.use_cache = False

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        found = self.model(**dict(zip(self.inputs, tensors)))
        return tuple(found[name] for name in self.outputs)


class Values(nn.Module):
    """A model that returns a dict."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.model(*tensors).values())


class Detector(nn.Module):
    """A detector of torchvision, which takes a list of unbatched pictures."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.model([image[0]])[0].values())


class DetectorHeads(nn.Module):
    """A torchvision detector up to its heads: scores and boxes of every anchor, the part that runs on chips."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        found = self.model.head(list(self.model.backbone(image).values()))
        return torch.softmax(found["cls_logits"], -1), found["bbox_regression"]


class LastFlow(nn.Module):
    """RAFT with only its last estimate."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.model(first, second, num_flow_updates=2)[-1]


def maskformer() -> nn.Module:
    """MaskFormer of transformers on a small Swin."""
    import transformers

    swin = transformers.SwinConfig(
        image_size=64,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 4, 4],
        window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    detr = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=8,
    )
    config = transformers.MaskFormerConfig(
        fpn_feature_size=32, mask_feature_size=32, backbone_config=swin, decoder_config=detr
    )
    config._attn_implementation = "eager"
    model = transformers.MaskFormerForInstanceSegmentation(config)
    return Picked(model, ["pixel_values"], ["class_queries_logits", "masks_queries_logits"])
