"""Networks that name the maps as fairseq did: CLIP, BART, Whisper, OPT, Wav2Vec2 and others."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.settings import check_model_type
from export.checkpoints.tensors import Tensors
from model.weights import Weights

TYPES = (
    "bart",
    "biogpt",
    "blenderbot",
    "blenderbot-small",
    "clip",
    "clip_text_model",
    "clip_vision_model",
    "clipseg",
    "data2vec-audio",
    "detr",
    "fsmt",
    "hubert",
    "m2m_100",
    "marian",
    "mbart",
    "musicgen",
    "musicgen_decoder",
    "nllb-moe",
    "opt",
    "owlvit",
    "pegasus",
    "plbart",
    "sew",
    "siglip",
    "siglip_text_model",
    "siglip_vision_model",
    "speech_to_text",
    "table-transformer",
    "trocr",
    "unispeech",
    "unispeech-sat",
    "wav2vec2",
    "whisper",
    "xglm",
)
MAPS = ("q_proj", "k_proj", "v_proj")
# `attn` is not among them: it is the name in GPT-J and EVA-02, which rotate.
PLACES = ("", "self_attn", "encoder_attn", "cross_attn", "attention")


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``decoder.layers.3.self_attn`` and ``decoder.layers.3.encoder_attn``."""
    prefixes = find_prefixes(names, *(f"{name}.weight" for name in MAPS))
    return {prefix for prefix in prefixes if prefix.rpartition(".")[2] in PLACES}


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``; Whisper's keys have no bias.

    In decoders and in CLIP's text tower the network hides later keys, not the layer, so the layer
    is not causal by itself.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, as are those of WavLM's relative
            positions, or if ``config.json`` tells of another network.
    """
    check_model_type(config, TYPES)
    query, key, value = MAPS
    return read_linear_maps(tensors, config, query=query, key=key, value=value, output="out_proj")


BART = Family("CLIP, BART, Whisper, OPT, Wav2Vec2", "q_proj, k_proj, v_proj, out_proj", find, read)
