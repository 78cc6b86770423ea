# SPDX-License-Identifier: Apache-2.0
"""Vision networks of 2024 to 2026 in small sizes, and torchvision's detectors with their post-processing."""
from __future__ import annotations

from typing import Any

from networks.vision import PIXELS, SMALL, detector
from registry import Network, ids, image, normal, own, recent, timm, torchvision, transformer, uniform

STAGES = (1, 1, 1, 1)
SMALL_VIT = dict(depth=2, embed_dim=96, num_heads=3)
BACKBONES = [
    timm("mobilenetv5_base", 64, "cnn", channel_multiplier=0.25),
    timm("mobilenetv4_hybrid_medium", 64, "cnn"),
    timm("ghostnetv3_050", 64, "cnn"),
    timm("repghostnet_050", 64, "cnn"),
    timm("csatv2", 64, "cnn"),
    timm("lcnetv2_base", 64, "cnn"),
    timm("lowformer_b0", 64, "cnn"),
    timm("hardcorenas_a", 64, "cnn"),
    timm("rexnet_100", 64, "cnn"),
    timm("cs3darknet_s", 64, "cnn"),
    timm("fastvit_sa12", 64, "vit", layers=STAGES),
    timm("fastvit_mci0", 64, "vit", layers=STAGES),
    timm("tiny_vit_21m_224", 64, "vit", depths=STAGES, embed_dims=(32, 64, 96, 128), num_heads=(1, 2, 3, 4)),
    timm("efficientformerv2_s1", 64, "vit", img_size=64),
    timm("efficientvim_m1", 64, "vit"),
    timm("iformer_t", 64, "vit"),
    timm("shvit_s1", 64, "vit"),
    timm("vit_small_patch16_dinov3", 64, "vit", img_size=64, **SMALL_VIT),
    timm("naflexvit_base_patch16_gap", 64, "vit", **SMALL_VIT),
    timm("cpubone_nano", 64, "cnn"),
    timm("poolformerv2_s12", 64, "vit"),
]
ENCODERS = [
    transformer(
        "dinov3",
        "vit",
        "DINOv3ViTConfig",
        "DINOv3ViTModel",
        PIXELS,
        ["pooler_output"],
        **SMALL,
        image_size=64,
        num_register_tokens=4,
    ),
    transformer(
        "dinov3-convnext",
        "cnn",
        "DINOv3ConvNextConfig",
        "DINOv3ConvNextModel",
        PIXELS,
        ["pooler_output"],
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 2, 1],
        image_size=64,
    ),
    transformer(
        "aimv2",
        "vit",
        "Aimv2VisionConfig",
        "Aimv2VisionModel",
        PIXELS,
        ["pooler_output"],
        **SMALL,
        image_size=64,
        patch_size=16,
    ),
    transformer("ijepa", "vit", "IJepaConfig", "IJepaModel", PIXELS, ["last_hidden_state"], **SMALL, image_size=64),
    own("siglip2", "vit", "networks.recent:Siglip2", {"patches": normal(1, 16, 768)}),
    own("clip", "vit", "networks.recent:Clip", {**PIXELS, "input_ids": ids(100, 1, 8)}),
    own("sam2-encoder", "segmentation", "networks.recent:sam2_encoder", {"image": normal(1, 3, 128, 128)}),
    own(
        "sam2", "segmentation", "networks.recent:Sam2", {"image": normal(1, 3, 128, 128), "points": uniform(1, 1, 2, 2)}
    ),
    own("depth-anything-v2", "segmentation", "networks.recent:depth_anything", {"pixel_values": normal(1, 3, 56, 56)}),
    own("vitpose", "geometry", "networks.recent:vitpose", {"pixel_values": normal(1, 3, 64, 48)}),
    transformer(
        "eomt",
        "segmentation",
        "EomtConfig",
        "EomtForUniversalSegmentation",
        PIXELS,
        ["class_queries_logits", "masks_queries_logits"],
        image_size=64,
        num_queries=10,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_blocks=1,
    ),
]


def complete(path: str, size: int, **arguments: Any) -> Network:
    """Describes a detector of torchvision up to the boxes that remain after suppression."""
    inputs = {"image": uniform(1, 3, size, size)}
    wrap = "networks.wrap:Detector"
    return torchvision(f"detection.{path}", "detection", inputs, wrap=wrap, num_classes=5, **arguments)


FEW = dict(min_size=96, max_size=96, rpn_pre_nms_top_n_test=64, rpn_post_nms_top_n_test=16, box_detections_per_img=8)
DETECTION = [
    detector("rt-detr-v2", "RTDetrV2"),
    detector("d-fine", "DFine", encoder_in_channels=[512, 1024, 2048]),
    own("yolov8", "detection", "networks.yolo:yolov8", image(96)),
    own("yolov8-seg", "detection", "networks.yolo:Segmenter", image(96)),
    own("yolov9", "detection", "networks.yolo:yolov9", image(96)),
    own("yolov10", "detection", "networks.yolo:yolov10", image(96)),
    own("yolo11", "detection", "networks.yolo:yolo11", image(96)),
    own("yolo12", "detection", "networks.yolo:yolo12", image(96)),
    complete("fasterrcnn_mobilenet_v3_large_320_fpn", 96, **FEW),
    complete("fasterrcnn_resnet50_fpn", 96, **FEW),
    complete("maskrcnn_resnet50_fpn", 96, **FEW),
    complete("keypointrcnn_resnet50_fpn", 96, **{**FEW, "num_keypoints": 5}),
    complete(
        "retinanet_resnet50_fpn_v2",
        96,
        score_thresh=0.0,
        min_size=96,
        max_size=96,
        topk_candidates=16,
        detections_per_img=8,
    ),
    complete(
        "fcos_resnet50_fpn", 96, score_thresh=0.0, min_size=96, max_size=96, topk_candidates=16, detections_per_img=8
    ),
    complete("ssd300_vgg16", 300, topk_candidates=16, detections_per_img=8),
]
GEOMETRY = [
    own("pointnet++", "geometry", "networks.points:PointNet2", {"points": uniform(1, 64, 3)}),
    own("dgcnn", "geometry", "networks.points:Dgcnn", {"points": uniform(1, 64, 3)}),
    own("point-transformer", "geometry", "networks.points:PointTransformer", {"points": uniform(1, 64, 3)}),
    own(
        "graph-transformer",
        "tabular",
        "networks.points:GraphTransformer",
        {"nodes": normal(1, 16, 8), "edges": uniform(1, 16, 16)},
    ),
    own("meshnet", "segmentation", "networks.points:MeshNet", {"volume": normal(1, 1, 16, 16, 16)}),
]
NETWORKS = [recent(network) for network in (*BACKBONES, *ENCODERS, *DETECTION, *GEOMETRY)]
