"""Families that transformers lacks, as models of transformers that compute the same.

After the Python code that publishers keep beside their models. `judge_of` gives the configuration of such a model, `patch`
makes it compute what else the family does, and `renamed` gives its tensors the names and shapes that files of the family have.
"""
import copy
import re

import torch
from transformers import AutoConfig


def llama_like(keys, kind="llama", **names):
    """The configuration of `kind` with the values of `keys`, some of which have other `names` in it."""
    config = {names.get(key, key): value for key, value in keys.items() if names.get(key, key)}
    return dict(config, model_type=kind)


def internlm2(keys):
    return llama_like(keys, bias="attention_bias", **{"": None})


def exaone(keys):
    return llama_like(keys, num_layers="num_hidden_layers", activation_function="hidden_act", layer_norm_epsilon="rms_norm_eps",
                      embed_dropout=None)


def xverse(keys):
    return llama_like(keys, max_tokenizer_truncation=None)


def qwen(keys):
    config = llama_like(keys, "qwen2", kv_channels="head_dim", layer_norm_epsilon="rms_norm_eps", attn_dropout_prob="attention_dropout",
                        emb_dropout_prob=None, rotary_emb_base="rope_theta", rotary_pct=None, no_bias=None, use_logn_attn=None,
                        use_dynamic_ntk=None, seq_length=None)
    return dict(config, intermediate_size=keys["intermediate_size"] // 2, num_key_value_heads=keys["num_attention_heads"])


def chatglm(keys):
    config = llama_like(keys, "glm", padded_vocab_size="vocab_size", seq_length="max_position_embeddings", num_layers="num_hidden_layers",
                        multi_query_group_num="num_key_value_heads", kv_channels="head_dim", ffn_hidden_size="intermediate_size",
                        layernorm_epsilon="rms_norm_eps", add_qkv_bias="attention_bias", hidden_dropout=None, rope_ratio=None,
                        multi_query_attention=None)
    return dict(config, pad_token_id=None, rope_theta=10000.0 * keys.get("rope_ratio", 1), partial_rotary_factor=0.5)


def baichuan(keys):
    config = llama_like(keys, z_loss_weight=None, model_max_length=None)
    return dict(config, max_position_embeddings=keys.get("max_position_embeddings", keys.get("model_max_length")))


def phi3small(keys):
    names = {"ff_intermediate_size": "intermediate_size", "layer_norm_epsilon": "rms_norm_eps", "rope_embedding_base": "rope_theta",
             "hidden_act": None}
    names |= {key: None for key in keys if key.startswith(("mup_", "blocksparse_", "gegelu_")) or key.endswith("_dropout_prob")}
    config = llama_like(keys, **names)
    return dict({"rope_theta": 1e6}, **config, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)


def nemotron_nas(keys):
    config = llama_like(keys, block_configs=None, intermediate_size=None, num_key_value_heads=None)
    return dict({"rope_theta": 500000.0, "rms_norm_eps": 1e-5}, **config, intermediate_size=4, num_key_value_heads=keys["num_attention_heads"])


class Mixture(torch.nn.Module):
    """DeepSpeed's mixture of experts (Rajbhandari et al. 2022) without capacities and noise; with `residual` an MLP beside the
    experts, and a softmax of two numbers that says how much of the result is whose."""

    def __init__(self, mlp, hidden, experts, chosen, residual):
        super().__init__()
        self.chosen = chosen
        self.deepspeed_moe = torch.nn.Module()
        self.deepspeed_moe.gate = torch.nn.Module()
        self.deepspeed_moe.gate.wg = torch.nn.Linear(hidden, experts, bias=False)
        self.deepspeed_moe.experts = torch.nn.Module()
        self.deepspeed_moe.experts.deepspeed_experts = torch.nn.ModuleList(copy.deepcopy(mlp) for _ in range(experts))
        if residual:
            self.mlp, self.coefficient = mlp, torch.nn.Linear(hidden, 2)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        scores = self.deepspeed_moe.gate.wg(tokens).softmax(-1)
        best, which = scores.topk(self.chosen, dim=-1)
        weights = best if self.chosen == 1 else best / best.sum(-1, keepdim=True)
        y = torch.zeros_like(tokens)
        for number, expert in enumerate(self.deepspeed_moe.experts.deepspeed_experts):
            rows, choices = (which == number).nonzero(as_tuple=True)
            y = y.index_add(0, rows, expert(tokens[rows]) * weights[rows, choices, None])
        # The loss counts first choices where there are two, and shares of all choices else.
        counted = which[:, :1] if self.chosen == 2 else which
        shares = torch.bincount(counted.flatten(), minlength=scores.shape[-1]).double() / counted.numel()
        self.balance = scores.shape[-1] * (scores.mean(0) * shares).sum()
        y = y.view_as(x)
        if not hasattr(self, "coefficient"):
            return y
        shares = self.coefficient(x).softmax(-1)
        return y * shares[..., :1] + self.mlp(x) * shares[..., 1:]


def moe_llava_llama(keys):
    return llama_like(keys, moe=None)


def patch_moe_llava(model, keys):
    moe = keys["moe"]
    layers = moe["moe_layers_idx"]
    counts = moe["num_experts"] * len(layers) if len(moe["num_experts"]) == 1 else moe["num_experts"]
    for number, experts in zip(layers, counts, strict=True):
        layer = model.model.layers[number]
        layer.mlp = Mixture(layer.mlp, model.config.hidden_size, experts, moe["top_k_experts"], moe["use_residual"])


JUDGES = {family.__name__: family for family in (internlm2, exaone, xverse, qwen, chatglm, baichuan, phi3small, moe_llava_llama)} | {"nemotron-nas": nemotron_nas}


def judge_of(keys):
    config = JUDGES[keys["model_type"]](keys)
    return AutoConfig.for_model(**config)


def alibi(heads, length):
    """Scores of linear biases (Press et al. 2022), for a power of two heads, on a causal mask."""
    assert heads & (heads - 1) == 0
    slopes = torch.tensor([2.0 ** (-8 * (head + 1) / heads) for head in range(heads)])
    distance = torch.arange(length)[None] - torch.arange(length)[:, None]
    mask = slopes[:, None, None] * distance
    return mask.masked_fill(distance > 0, float("-inf"))[None]


class GatedMlp(torch.nn.Module):
    """Phi-3-small's MLP, of which one matrix has the rows of gate and up in turns."""

    def __init__(self, hidden, inner, limit):
        super().__init__()
        self.up_proj, self.down_proj, self.limit = torch.nn.Linear(hidden, 2 * inner), torch.nn.Linear(inner, hidden), limit

    def forward(self, x):
        both = self.up_proj(x)
        gate, up = both[..., ::2].clamp(max=self.limit), both[..., 1::2].clamp(-self.limit, self.limit)
        return self.down_proj(gate * torch.sigmoid(1.702 * gate) * (up + 1))


def patch_phi3small(model, keys):
    """LayerNorms, and factors of muP; sequences are so short that attention sees all keys."""
    config = model.config
    eps = keys.get("layer_norm_epsilon", 1e-5)
    for layer in model.model.layers:
        layer.mlp = GatedMlp(config.hidden_size, config.intermediate_size, keys["gegelu_limit"])
        layer.input_layernorm, layer.post_attention_layernorm = (torch.nn.LayerNorm(config.hidden_size, eps) for _ in range(2))
        layer.self_attn.scaling = keys["mup_attn_multiplier"] / layer.self_attn.head_dim
    model.model.norm = torch.nn.LayerNorm(config.hidden_size, eps)
    embed, head = model.model.embed_tokens, model.lm_head
    embed.forward = lambda ids: torch.nn.functional.embedding(ids, embed.weight, embed.padding_idx) * keys["mup_embedding_multiplier"]
    head.forward = lambda x: torch.nn.functional.linear(x, head.weight) / keys["mup_width_multiplier"]


class Matrix(torch.nn.Module):
    """One matrix in place of attention or of an MLP."""

    def __init__(self, name, hidden, pair):
        super().__init__()
        self.pair = pair
        setattr(self, name, torch.nn.Linear(hidden, hidden, bias=False))

    def forward(self, x=None, hidden_states=None, **_):
        (matrix,) = self.children()
        y = matrix(hidden_states if x is None else x)
        return (y, None) if self.pair else y


class Nothing(torch.nn.Module):
    def __init__(self, pair):
        super().__init__()
        self.pair = pair

    def forward(self, x=None, hidden_states=None, **_):
        y = torch.zeros_like(hidden_states if x is None else x)
        return (y, None) if self.pair else y


def patch_nemotron_nas(model, keys):
    """Layers have what their blocks say, of which nothing has no norm before it."""
    hidden = model.config.hidden_size
    for layer, block in zip(model.model.layers, keys["block_configs"]):
        attention, mlp = block["attention"], block["ffn"]
        if attention.get("no_op"):
            layer.self_attn, layer.input_layernorm = Nothing(True), torch.nn.Identity()
        elif attention.get("replace_with_linear"):
            layer.self_attn = Matrix("linear_attn", hidden, True)
        else:
            config = copy.deepcopy(model.config)
            config.num_key_value_heads = config.num_attention_heads // attention["n_heads_in_group"]
            layer.self_attn = type(layer.self_attn)(config, layer.self_attn.layer_idx)
        if mlp.get("no_op"):
            layer.mlp, layer.post_attention_layernorm = Nothing(False), torch.nn.Identity()
        elif mlp.get("replace_with_linear"):
            layer.mlp = Matrix("linear_mlp", hidden, False)
        else:
            config = copy.deepcopy(model.config)
            config.intermediate_size = -(-int(2 * mlp["ffn_mult"] * hidden / 3) // 256) * 256
            layer.mlp = type(layer.mlp)(config)


def patch(model, keys):
    """What a family does that no configuration of the judge says. Baichuan's: rows of the second generation's head have length 1,
    and the large ones have linear biases of scores."""
    if keys["model_type"] == "phi3small":
        patch_phi3small(model, keys)
    if keys["model_type"] == "nemotron-nas":
        patch_nemotron_nas(model, keys)
    if keys["model_type"] == "moe_llava_llama":
        patch_moe_llava(model, keys)
    if "z_loss_weight" in keys:
        head = model.lm_head
        head.forward = lambda x: torch.nn.functional.linear(x, torch.nn.functional.normalize(head.weight))
    if "max_position_embeddings" in keys or keys["model_type"] != "baichuan":
        return
    model.model.rotary_emb.forward = lambda x, position_ids: (torch.ones(1, x.shape[1], model.config.head_dim),
                                                              torch.zeros(1, x.shape[1], model.config.head_dim))
    plain = model.forward
    model.forward = lambda input_ids, **more: plain(
        input_ids=input_ids, attention_mask=alibi(model.config.num_attention_heads, input_ids.shape[1]).expand(len(input_ids), -1, -1, -1),
        **more)


NAMES = {
    "internlm2": {"embed_tokens": "tok_embeddings", "lm_head": "output", "input_layernorm": "attention_norm",
                  "post_attention_layernorm": "ffn_norm", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
                  "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "self_attn.qkv": "attention.wqkv"},
    "exaone": {"model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f", "model.layers": "transformer.h",
               "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.attention.out_proj",
               "self_attn": "attn.attention", "mlp.gate_proj": "mlp.c_fc_0", "mlp.up_proj": "mlp.c_fc_1", "mlp.down_proj": "mlp.c_proj"},
    "xverse": {},
    "qwen": {"model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f", "model.layers": "transformer.h",
             "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.qkv": "attn.c_attn", "self_attn.o_proj": "attn.c_proj",
             "mlp.gate_proj": "mlp.w2", "mlp.up_proj": "mlp.w1", "mlp.down_proj": "mlp.c_proj"},
    "chatglm": {"model.embed_tokens": "transformer.embedding.word_embeddings", "model.norm": "transformer.encoder.final_layernorm",
                "model.layers": "transformer.encoder.layers", "lm_head": "transformer.output_layer",
                "self_attn.qkv": "self_attention.query_key_value", "self_attn.o_proj": "self_attention.dense",
                "mlp.gate_up_proj": "mlp.dense_h_to_4h", "mlp.down_proj": "mlp.dense_4h_to_h"},
    "baichuan": {"self_attn.qkv": "self_attn.W_pack"},
    "phi3small": {"self_attn.qkv": "self_attn.query_key_value", "self_attn.o_proj": "self_attn.dense", "model.norm": "model.final_layernorm"},
    "nemotron-nas": {},
    "moe_llava_llama": {},
}


def joined(parts, config, by_group):
    """Queries, keys and values in one tensor: one after the other, or for each key head its queries, its key and its value."""
    if not by_group:
        return torch.cat(parts)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return torch.cat([part.reshape(heads, -1, *part.shape[1:]) for part in parts], dim=1).flatten(0, 1)


def renamed(tensors, config, family):
    """`tensors` of the judge as files of `family` have them."""
    names, result = NAMES[family], {}
    tensors = dict(tensors)
    if any("qkv" in name for name in names):
        for name in [name for name in tensors if ".q_proj." in name]:
            parts = [tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
            tensors[name.replace("q_proj", "qkv")] = joined(parts, config, family in ("internlm2", "phi3small"))
    for name, tensor in tensors.items():
        # The longest of the names, so that a part's is not taken for the whole's.
        for old in sorted(names, key=len, reverse=True):
            name = re.sub(rf"(^|\.){re.escape(old)}(?=\.)", rf"\g<1>{names[old]}", name)
        result[name] = tensor
    return result
