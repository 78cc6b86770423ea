# SPDX-License-Identifier: Apache-2.0
"""Language models of 2024 to 2026 in small sizes."""
from __future__ import annotations

from typing import Any

from networks.audio_text import MASKED, SMALL, TOKENS, WORDS
from registry import Network, ids, normal, recent, transformer

SPECIAL = dict(vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2)
DECODER = dict(**SMALL, **SPECIAL, max_position_embeddings=64, num_key_value_heads=2, head_dim=16)
EXPERTS = dict(num_experts=4, num_local_experts=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
STATE_SPACE = dict(mamba_n_heads=4, mamba_d_head=32, mamba_d_ssm=128, mamba_d_state=8, mamba_chunk_size=8)


def causal(label: str, prefix: str, config: str = "", **changed: Any) -> Network:
    """Describes PREFIXForCausalLM with the sizes of DECODER."""
    arguments = {**DECODER, **changed}
    return transformer(
        label, "text", config or f"{prefix}Config", f"{prefix}ForCausalLM", MASKED, ["logits"], **arguments
    )


def unmasked(label: str, prefix: str, **arguments: Any) -> Network:
    """Describes PREFIXForCausalLM without an attention mask, for networks that carry a state instead."""
    config, model = f"{prefix}Config", f"{prefix}ForCausalLM"
    return transformer(label, "text", config, model, TOKENS, ["logits"], **SPECIAL, **arguments)


SLIDING = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])
GEMMA_3N = dict(
    hidden_size_per_layer_input=16,
    vocab_size_per_layer_input=WORDS,
    laurel_rank=8,
    num_kv_shared_layers=0,
    activation_sparsity_pattern=[0.9, 0.0],
)
LATENT = dict(
    num_key_value_heads=4,
    kv_lora_rank=32,
    q_lora_rank=32,
    qk_rope_head_dim=8,
    v_head_dim=16,
    qk_nope_head_dim=16,
    head_dim=8,
)
GATED_DELTA = dict(
    linear_key_head_dim=16,
    linear_value_head_dim=16,
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    shared_expert_intermediate_size=32,
    layer_types=["linear_attention", "full_attention"],
)
DECODERS = [
    causal("qwen3", "Qwen3"),
    causal("qwen3-moe", "Qwen3Moe", **EXPERTS),
    causal("qwen3-next", "Qwen3Next", **EXPERTS, **GATED_DELTA),
    causal("gemma3", "Gemma3", "Gemma3TextConfig", **SLIDING),
    causal("gemma3n", "Gemma3n", "Gemma3nTextConfig", **SLIDING, **GEMMA_3N),
    causal("smollm3", "SmolLM3", no_rope_layers=[1, 0]),
    causal("phi-4", "Phi3", num_key_value_heads=4),
    causal("phi-4-mini", "Phi3", rope_parameters=dict(rope_theta=1e4, rope_type="default", partial_rotary_factor=0.75)),
    causal("gpt-oss", "GptOss", **EXPERTS, **SLIDING),
    causal("deepseek-v2", "DeepseekV2", **EXPERTS, **LATENT, first_k_dense_replace=1),
    causal("deepseek-v3", "DeepseekV3", **EXPERTS, **LATENT, first_k_dense_replace=1, n_group=2, topk_group=1),
    causal("lfm2", "Lfm2", layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    causal("olmo2", "Olmo2"),
    causal("olmo3", "Olmo3", **SLIDING),
    causal("glm4", "Glm4"),
    causal("granite", "Granite"),
    causal("ministral", "Ministral", **SLIDING),
    causal("cohere2", "Cohere2", **SLIDING),
    causal("exaone4", "Exaone4", **SLIDING),
    causal("ernie4.5", "Ernie4_5"),
    causal("seed-oss", "SeedOss"),
    causal("hunyuan", "HunYuanDenseV1"),
    causal("nemotron", "Nemotron"),
    causal("diffllama", "DiffLlama"),
    causal("arcee", "Arcee"),
    causal("modernbert-decoder", "ModernBertDecoder", **SLIDING),
    causal("falcon-h1", "FalconH1", **STATE_SPACE),
    causal("bamba", "Bamba", **STATE_SPACE, attn_layer_indices=[1]),
    causal("recurrent-gemma", "RecurrentGemma", lru_width=64, block_types=["recurrent", "attention"]),
    unmasked(
        "mamba2",
        "Mamba2",
        hidden_size=32,
        num_hidden_layers=2,
        num_heads=4,
        head_dim=16,
        state_size=8,
        n_groups=1,
        chunk_size=8,
    ),
    unmasked("falcon-mamba", "FalconMamba", hidden_size=32, num_hidden_layers=1, state_size=8, use_mambapy=False),
    unmasked("rwkv", "Rwkv", hidden_size=64, num_hidden_layers=2, context_length=32),
    unmasked("xlstm", "xLSTM", hidden_size=64, num_hidden_layers=2, num_heads=2, chunk_size=16),
]
ENCODERS = [
    transformer(
        "modernbert",
        "text",
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        MASKED,
        ["logits"],
        **SMALL,
        **SPECIAL,
        local_attention=8,
        layer_types=["full_attention", "sliding_attention"],
        cls_token_id=1,
        sep_token_id=2,
    ),
    transformer(
        "eurobert", "text", "EuroBertConfig", "EuroBertForMaskedLM", MASKED, ["logits"], **DECODER, mask_token_id=3
    ),
    transformer(
        "nomic-bert",
        "text",
        "NomicBertConfig",
        "NomicBertForMaskedLM",
        MASKED,
        ["logits"],
        **SMALL,
        **SPECIAL,
        max_position_embeddings=64,
    ),
    transformer(
        "esm",
        "text",
        "EsmConfig",
        "EsmForMaskedLM",
        MASKED,
        ["logits"],
        **SMALL,
        **SPECIAL,
        mask_token_id=3,
        position_embedding_type="rotary",
    ),
]
FORECAST = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, head_dim=16)
SERIES = [
    transformer(
        "timesfm",
        "series",
        "TimesFmConfig",
        "TimesFmModelForPrediction",
        {"past_values": normal(1, 64), "freq": ids(3, 1)},
        ["mean_predictions"],
        **FORECAST,
        patch_length=16,
        context_length=64,
        horizon_length=16,
    )
]
NETWORKS = [recent(network) for network in (*DECODERS, *ENCODERS, *SERIES)]
