# SPDX-License-Identifier: Apache-2.0
"""Models of transformers whose configuration has parts, or whose inputs are prepared inside the network."""
from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

from networks.vision import SMALL
from networks.wrap import Picked


def _eager(config: Any) -> Any:
    config._attn_implementation = "eager"
    return config


class Siglip2(nn.Module):
    """The vision tower of SigLIP 2 with a fixed grid of 4 by 4 patches."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.Siglip2VisionConfig(**SMALL, num_patches=16)
        self.model = transformers.Siglip2VisionModel(_eager(config))
        self.register_buffer("sizes", torch.tensor([[4, 4]]))

    def forward(self, patches: Tensor) -> Tensor:
        return self.model(patches, None, self.sizes).pooler_output


class Clip(nn.Module):
    """Both towers of CLIP and their similarity."""

    def __init__(self) -> None:
        super().__init__()
        text = dict(**SMALL, vocab_size=100, max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0)
        config = transformers.CLIPConfig(
            text_config=text, vision_config=dict(**SMALL, image_size=64, patch_size=16), projection_dim=32
        )
        self.model = transformers.CLIPModel(_eager(config))

    def forward(self, pixel_values: Tensor, input_ids: Tensor) -> Tensor:
        found = self.model(input_ids=input_ids, pixel_values=pixel_values)
        return found.logits_per_image


def _sam2_vision() -> Any:
    backbone = transformers.Sam2HieraDetConfig(
        hidden_size=16,
        image_size=[128, 128],
        blocks_per_stage=[1, 2, 2, 1],
        embed_dim_per_stage=[16, 32, 64, 128],
        num_attention_heads_per_stage=[1, 2, 4, 8],
        window_size_per_stage=[8, 4, 8, 4],
        global_attention_blocks=[4],
        window_positional_embedding_background_size=[4, 4],
    )
    return transformers.Sam2VisionConfig(
        backbone_config=_eager(backbone),
        backbone_channel_list=[128, 64, 32, 16],
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
        fpn_hidden_size=32,
    )


def sam2_encoder() -> nn.Module:
    model = transformers.Sam2VisionModel(_eager(_sam2_vision()))
    return Picked(model, ["pixel_values"], ["last_hidden_state"])


class Sam2(nn.Module):
    """SAM 2 on a picture with two points."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.Sam2Config(
            vision_config=_sam2_vision(),
            prompt_encoder_config=dict(hidden_size=32, image_size=128, mask_input_channels=4),
            mask_decoder_config=dict(
                hidden_size=32, mlp_dim=64, num_attention_heads=4, iou_head_hidden_dim=32, num_hidden_layers=2
            ),
        )
        self.model = transformers.Sam2Model(_eager(config))
        self.register_buffer("labels", torch.tensor([[[1, 0]]]))

    def forward(self, image: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        found = self.model(pixel_values=image, input_points=points * 128, input_labels=self.labels)
        return found.pred_masks, found.iou_scores


def depth_anything() -> nn.Module:
    backbone = transformers.Dinov2Config(
        image_size=56,
        patch_size=14,
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=_eager(backbone),
        reassemble_hidden_size=64,
        neck_hidden_sizes=[16, 32, 48, 64],
        fusion_hidden_size=32,
    )
    return Picked(transformers.DepthAnythingForDepthEstimation(_eager(config)), ["pixel_values"], ["predicted_depth"])


def vitpose() -> nn.Module:
    backbone = transformers.VitPoseBackboneConfig(image_size=(64, 48), **SMALL)
    config = transformers.VitPoseConfig(backbone_config=_eager(backbone), num_labels=5)
    return Picked(transformers.VitPoseForPoseEstimation(_eager(config)), ["pixel_values"], ["heatmaps"])


def parakeet() -> nn.Module:
    encoder = transformers.ParakeetEncoderConfig(
        **SMALL, conv_kernel_size=9, subsampling_conv_channels=16, num_mel_bins=80, max_position_embeddings=64
    )
    config = transformers.ParakeetCTCConfig(vocab_size=33, pad_token_id=32, encoder_config=_eager(encoder))
    return Picked(transformers.ParakeetForCTC(_eager(config)), ["input_features"], ["logits"])


class HifiGan(nn.Module):
    """The vocoder of SpeechT5, which returns a bare tensor."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.SpeechT5HifiGanConfig(
            model_in_dim=20, upsample_initial_channel=32, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8]
        )
        self.model = transformers.SpeechT5HifiGan(config)

    def forward(self, spectrogram: Tensor) -> Tensor:
        return self.model(spectrogram)
