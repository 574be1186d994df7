"""Small networks of Hugging Face's transformers, saved as it saves them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tests.families.network import OTHER_H, Answer, Attend, D, H, Network, add_mask, randomize
from tests.families.torchvision_operators import define_operators

SIZES = {
    "hidden_size": D,
    "num_hidden_layers": 1,
    "num_attention_heads": H,
    "intermediate_size": 16,
    "attn_implementation": "eager",
}
SIDES = {
    "d_model": D,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": H,
    "decoder_attention_heads": OTHER_H,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "attn_implementation": "eager",
}
WORDS = {"vocab_size": 20, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
IMAGES = {"image_size": 8, "patch_size": 4}
SOUNDS: dict[str, Any] = {
    "conv_dim": (8, 8),
    "conv_stride": (2, 2),
    "conv_kernel": (3, 3),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}


def load_transformers() -> Any:
    """Import transformers, silent."""
    define_operators()
    import transformers

    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers


def make(model: str, config: str, **settings: Any) -> Any:
    """A network with random parameters, biases too."""
    transformers = load_transformers()
    network = getattr(transformers, model)(getattr(transformers, config)(**settings))
    return randomize(network)


def save_pretrained(network: Any) -> Callable[[Path], Path]:
    """How to write a network as transformers does."""

    def save(folder: Path) -> Path:
        network.save_pretrained(folder)
        return folder / "model.safetensors"

    return save


def ask_alone(layer: nn.Module) -> Attend:
    """A layer of self attention."""

    def attend(query: Tensor, _: Tensor, visible: Tensor) -> Answer:
        output, weights, *_rest = layer(query, attention_mask=add_mask(visible))
        return output, weights

    return attend


def ask_across(layer: nn.Module) -> Attend:
    """A layer of cross attention."""

    def attend(query: Tensor, key: Tensor, visible: Tensor) -> Answer:
        output, weights, *_rest = layer(
            query, key_value_states=key, attention_mask=add_mask(visible)
        )
        return output, weights

    return attend


def ask_bert(layer: Any) -> Attend:
    """BERT's layer without the norm that follows."""

    def attend(query: Tensor, key: Tensor, visible: Tensor) -> Answer:
        across = {"encoder_hidden_states": key} if layer.is_cross_attention else {}
        mixed, weights = layer.self(query, attention_mask=add_mask(visible), **across)
        return layer.output.dense(mixed), weights

    return attend


def ask_gpt2(layer: Any) -> Attend:
    """GPT-2's layer."""

    def attend(query: Tensor, key: Tensor, visible: Tensor) -> Answer:
        mask = add_mask(visible)
        if layer.is_cross_attention:
            output, weights = layer(query, encoder_hidden_states=key, encoder_attention_mask=mask)
        else:
            output, weights = layer(query, attention_mask=mask)
        return output, weights

    return attend


def build_bert() -> Network:
    """BERT with cross attention, as a decoder has it."""
    network = make(
        "BertModel", "BertConfig", is_decoder=True, add_cross_attention=True, **WORDS, **SIZES
    )
    (layer,), prefix = network.encoder.layer, "encoder.layer.0"
    return Network(
        save_pretrained(network),
        {f"{prefix}.attention": ask_bert(layer.attention)},
        {f"{prefix}.crossattention": ask_bert(layer.crossattention)},
    )


def build_roberta() -> Network:
    """RoBERTa with a head, behind which the names have a prefix."""
    network = make("RobertaForMaskedLM", "RobertaConfig", **WORDS, **SIZES)
    (layer,) = network.roberta.encoder.layer
    layers = {"roberta.encoder.layer.0.attention": ask_bert(layer.attention)}
    return Network(save_pretrained(network), layers, {})


def build_vision(model: str, config: str) -> Network:
    """ViT, or one with its names in the file."""
    network = make(model, config, **IMAGES, **SIZES)
    (layer,) = network.layers if hasattr(network, "layers") else network.encoder.layer
    layers = {"encoder.layer.0.attention": ask_alone(layer.attention)}
    return Network(save_pretrained(network), layers, {})


def build_distilbert() -> Network:
    """DistilBERT."""
    sizes = {"dim": D, "n_layers": 1, "n_heads": H, "hidden_dim": 16}
    network = make(
        "DistilBertModel", "DistilBertConfig", attn_implementation="eager", **WORDS, **sizes
    )
    (layer,) = network.transformer.layer
    layers = {"transformer.layer.0.attention": ask_alone(layer.attention)}
    return Network(save_pretrained(network), layers, {})


def build_clip() -> Network:
    """CLIP, whose two towers have heads of their own."""
    sizes = SIZES | {"num_attention_heads": OTHER_H}
    network = make(
        "CLIPModel",
        "CLIPConfig",
        text_config=WORDS | SIZES,
        vision_config=IMAGES | sizes,
        attn_implementation="eager",
    )
    layers = {
        f"{tower}.encoder.layers.0.self_attn": ask_alone(
            getattr(network, tower).encoder.layers[0].self_attn
        )
        for tower in ("text_model", "vision_model")
    }
    return Network(save_pretrained(network), layers, {})


def build_sides(model: str, config: str, **settings: Any) -> Network:
    """BART or Whisper, whose encoder and decoder have heads of their own."""
    network = make(model, config, **WORDS, **SIDES, **settings)
    (encoder,), (decoder,) = network.encoder.layers, network.decoder.layers
    return Network(
        save_pretrained(network),
        {
            "encoder.layers.0.self_attn": ask_alone(encoder.self_attn),
            "decoder.layers.0.self_attn": ask_alone(decoder.self_attn),
        },
        {"decoder.layers.0.encoder_attn": ask_across(decoder.encoder_attn)},
    )


def build_bart() -> Network:
    """BART."""
    return build_sides("BartModel", "BartConfig", max_position_embeddings=20)


def build_whisper() -> Network:
    """Whisper, whose keys have no bias."""
    sizes = {"max_source_positions": 10, "max_target_positions": 10, "num_mel_bins": 8}
    return build_sides("WhisperModel", "WhisperConfig", decoder_start_token_id=1, **sizes)


def build_opt() -> Network:
    """OPT."""
    sizes = SIZES | {"ffn_dim": 16, "max_position_embeddings": 20, "word_embed_proj_dim": D}
    del sizes["intermediate_size"]
    network = make("OPTModel", "OPTConfig", **WORDS, **sizes)
    (layer,) = network.decoder.layers
    layers = {"decoder.layers.0.self_attn": ask_alone(layer.self_attn)}
    return Network(save_pretrained(network), layers, {})


def build_wav2vec2() -> Network:
    """Wav2Vec2."""
    network = make("Wav2Vec2Model", "Wav2Vec2Config", **SIZES, **SOUNDS)
    (layer,) = network.encoder.layers
    layers = {"encoder.layers.0.attention": ask_alone(layer.attention)}
    return Network(save_pretrained(network), layers, {})


def make_gpt2() -> Any:
    """GPT-2 with cross attention."""
    sizes = {"n_embd": D, "n_layer": 1, "n_head": H, "n_positions": 20}
    return make(
        "GPT2Model",
        "GPT2Config",
        add_cross_attention=True,
        attn_implementation="eager",
        **WORDS,
        **sizes,
    )


def make_cache(network: Any) -> Any:
    """A cache of keys and values for a network, empty."""
    return load_transformers().DynamicCache(config=network.config)


def build_gpt2() -> Network:
    """GPT-2."""
    network = make_gpt2()
    (layer,) = network.h
    return Network(
        save_pretrained(network),
        {"h.0.attn": ask_gpt2(layer.attn)},
        {"h.0.crossattention": ask_gpt2(layer.crossattention)},
    )


NETWORKS: dict[str, Callable[[], Network]] = {
    "BERT": build_bert,
    "RoBERTa": build_roberta,
    "ViT": lambda: build_vision("ViTModel", "ViTConfig"),
    "DeiT": lambda: build_vision("DeiTModel", "DeiTConfig"),
    "DINOv2": lambda: build_vision("Dinov2Model", "Dinov2Config"),
    "DistilBERT": build_distilbert,
    "CLIP": build_clip,
    "BART": build_bart,
    "Whisper": build_whisper,
    "OPT": build_opt,
    "Wav2Vec2": build_wav2vec2,
    "GPT-2": build_gpt2,
}
