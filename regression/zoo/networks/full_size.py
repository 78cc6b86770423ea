# SPDX-License-Identifier: Apache-2.0
"""The networks that ./dev bench measures, in their usual sizes; their weights are random, because times do not depend
on them."""
from __future__ import annotations

from typing import Any

from registry import Network, ids, image, ones, transformer

TORCHSCRIPT = ("torchscript",)


def _timm(label: str, name: str) -> Network:
    def build() -> Any:
        import timm as library

        return library.create_model(name, pretrained=False)

    return Network(f"full-{label}", "full-size", build, image(224), TORCHSCRIPT, opset=17)


def _bert(tokens: int) -> Network:
    words = {"input_ids": ids(30000, 1, tokens), "attention_mask": ones(1, tokens)}
    result = transformer("", "full-size", "BertConfig", "BertModel", words, ["last_hidden_state"])
    return Network("full-bert_base_128", "full-size", result.build, words, TORCHSCRIPT, opset=17)


NETWORKS = [
    _timm("resnet50", "resnet50"),
    _timm("mobilenetv2", "mobilenetv2_100"),
    _timm("mobilenetv3_large", "mobilenetv3_large_100"),
    _timm("efficientnet_b0", "efficientnet_b0"),
    _timm("vit_small", "vit_small_patch16_224"),
    _timm("swin_tiny", "swin_tiny_patch4_window7_224"),
    _timm("convnext_tiny", "convnext_tiny"),
    _bert(128),
    _timm("densenet121", "densenet121"),
    _timm("regnety_008", "regnety_008"),
]
