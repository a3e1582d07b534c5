"""Random small configurations of every family: other sizes, options and layers in each."""
import math

FLAG = [True, False]
WIDER = [13, 32, 50]
CLIPS = [None, 0.5, 1.5]
ACTIVATIONS = ["gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "relu", "relu2"]


class Draw:
    """Sizes of one model, and what families draw alike."""

    def __init__(self, pick, vocabulary, layers=None, least_head=2):
        self.pick, self.vocabulary = pick, vocabulary
        self.layers = layers or pick([1, 2, 3, 4])
        self.heads = pick([1, 2, 3, 4, 5, 6])
        self.head = max(least_head, 2 * pick([1, 2, 3, 4, 5, 8]))
        if self.heads * self.head < 8:
            self.head *= 4  # A norm of two or three numbers divides by almost nothing.
        self.kv = self.heads // pick([n for n in range(1, self.heads + 1) if self.heads % n == 0])

    def maybe(self, **keys):
        """Some of these keys, each with one of its values."""
        return {key: self.pick(values) for key, values in keys.items() if self.pick(FLAG)}

    def sizes(self, apart=True, groups=True, activation="hidden_act", norm="rms_norm_eps", after=False):
        """The keys that most families have. `apart`: heads need not divide hidden_size; "always" gives their size in any
        case, because where it is absent it is another one. `after`: there are norms after MLPs, which divide by almost
        nothing where MLPs give almost nothing."""
        config = {"max_position_embeddings": 64, "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
                  "hidden_size": self.heads * self.head, "intermediate_size": self.pick(WIDER if after else [1, 13, 32, 50]),
                  activation: self.pick(ACTIVATIONS[:4] if after else ACTIVATIONS), "attention_dropout": 0.0}
        if apart and (apart == "always" or self.pick(FLAG)):
            config |= {"head_dim": self.head, "hidden_size": self.heads * self.pick([self.head, 7])}
        if groups:
            config["num_key_value_heads"] = self.kv
        if norm:
            config[norm] = self.pick([1e-4, 1e-3] if after else [1e-6, 1e-5, 1e-3])
        return config

    def padding(self):
        """101 is frequent in English text."""
        return {"pad_token_id": self.pick([None, None, 0, 3, 101 if self.vocabulary > 101 else 30])}

    def turned(self, key="partial_rotary_factor"):
        """A part of each head that is an even number of elements."""
        parts = [count / self.head for count in range(2, self.head + 1, 2)]
        return {key: self.pick([part for part in parts if int(self.head * part) % 2 == 0 and int(self.head * part) > 1])}

    def scaling(self, width, types=("default", "linear", "llama3", "yarn", "longrope", "dynamic")):
        """One object of rotary positions, of which `width` elements of a head turn."""
        kind = self.pick(types if width > 2 else types[:5])  # transformers divides by width - 2 for dynamic ones.
        scaling = {"rope_type": kind}
        if kind != "default" and kind != "longrope":
            scaling["factor"] = self.pick([1.5, 4.0])
        if kind == "llama3":
            scaling |= {"low_freq_factor": 1.0, "high_freq_factor": self.pick([3.0, 4.0])}
        if kind == "llama3" or kind == "yarn" and self.pick(FLAG):
            scaling["original_max_position_embeddings"] = 16
        if kind == "longrope":
            scaling |= {"short_factor": [self.pick([1.0, 1.1, 1.3]) for _ in range(width // 2)],
                        "long_factor": [self.pick([1.0, 2.5, 6.0]) for _ in range(width // 2)]}
            scaling |= self.maybe(factor=[2.0], attention_factor=[1.2], original_max_position_embeddings=[8, 16, 32])
        if kind == "yarn":
            scaling |= self.maybe(beta_fast=[16, 32], beta_slow=[1, 2], truncate=FLAG, attention_factor=[1.1])
            scaling |= self.pick([{}, {"mscale": 0.7, "mscale_all_dim": 0.9}])
        return scaling

    def rotary(self, part=None, theta="rope_theta"):
        """Rotary positions, of a part of each head, as transformers 4 writes them, or as version 5 does."""
        base, part = self.pick([100.0, 10000.0]), part or {}
        width = int(self.head * next(iter(part.values()), 1.0))
        scaling = self.pick([None, self.scaling(width)])
        if self.pick(FLAG):
            config = {theta: base, **part}
            if scaling and scaling["rope_type"] != "default":
                if self.pick(FLAG):
                    scaling["type"] = scaling.pop("rope_type")
                config["rope_scaling"] = scaling
            return config
        parameters = {"rope_parameters": dict(scaling or {"rope_type": "default"}, rope_theta=base)}
        if part and self.pick(FLAG):
            parameters["rope_parameters"]["partial_rotary_factor"] = next(iter(part.values()))
            part = {}
        return parameters | part

    def layer_types(self):
        types = [self.pick(["full_attention", "sliding_attention"]) for _ in range(self.layers)]
        return {"layer_types": types}


# --- families with LayerNorm and a plain MLP --------------------------------------


def gpt2(d):
    return {"n_positions": 64, "n_embd": d.heads * d.head, "n_layer": d.layers, "n_head": d.heads,
            "n_inner": d.pick([None, 1, 17, 40]), "activation_function": d.pick(ACTIVATIONS),
            "layer_norm_epsilon": d.pick([1e-5, 1e-3]), "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
            "tie_word_embeddings": d.pick(FLAG)}


def gpt2_own(d):
    return dict(gpt2(d), scale_attn_weights=d.pick(FLAG), scale_attn_by_inverse_layer_idx=d.pick(FLAG))


def gpt_bigcode(d):
    return dict(gpt2(d), multi_query=True, scale_attn_weights=d.pick(FLAG))


def gptj(d):
    return dict(gpt2(d), rotary_dim=d.pick(range(2, d.head + 1, 2)))


def codegen(d):
    """Heads lie in files in four parts."""
    heads = d.pick([4, 8])
    return dict(gptj(d), n_head=heads, n_embd=heads * d.head)


def gpt_neo(d):
    types = [d.pick(["global", "local"]) for _ in range(d.layers)]
    return {"max_position_embeddings": 64, "hidden_size": d.heads * d.head, "num_layers": d.layers, "num_heads": d.heads,
            "intermediate_size": d.pick([None, 1, 17, 40]), "window_size": d.pick([1, 5, 40]), "attention_types": [[types, 1]],
            "activation_function": d.pick(ACTIVATIONS), "layer_norm_epsilon": d.pick([1e-5, 1e-3]), "attention_dropout": 0.0,
            "embed_dropout": 0.0, "resid_dropout": 0.0, "tie_word_embeddings": d.pick(FLAG)}


def xglm(d):
    heads = 2 * d.heads  # As many sines as cosines, and more than one.
    return {"max_position_embeddings": 64, "d_model": heads * d.head, "num_layers": d.layers, "attention_heads": heads, "ffn_dim": d.pick(WIDER),
            "activation_function": d.pick(ACTIVATIONS), "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.2,
            "scale_embedding": d.pick(FLAG), "tie_word_embeddings": d.pick(FLAG), "pad_token_id": d.pick([0, 1])}


def gpt_neox(d):
    config = dict(d.sizes(apart=False, groups=False, norm="layer_norm_eps"), hidden_dropout=0.0,
                  use_parallel_residual=d.pick(FLAG), attention_bias=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG))
    return config | d.rotary(d.turned("rotary_pct"), "rotary_emb_base")


def falcon(d):
    inner = {"ffn_hidden_size": d.pick([1, 17, 40])} if d.pick(FLAG) else {}
    config = {"hidden_size": d.heads * d.head, "num_hidden_layers": d.layers, "num_attention_heads": d.heads, **inner,
              "max_position_embeddings": 64, "activation": d.pick(ACTIVATIONS), "layer_norm_epsilon": d.pick([1e-5, 1e-3]),
              "bias": d.pick(FLAG), "attention_dropout": 0.0, "tie_word_embeddings": d.pick(FLAG)}
    if d.pick(FLAG):
        config |= {"new_decoder_architecture": True, "num_kv_heads": d.kv}
    return config | d.rotary()


def phi(d):
    normed = d.pick(FLAG)
    return dict(d.sizes(apart=not normed, norm="layer_norm_eps"), qk_layernorm=normed, embd_pdrop=0.0, resid_pdrop=0.0,
                tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary(d.turned()))


def persimmon(d):
    return dict(d.sizes(apart=False, groups=False, norm="layer_norm_eps"), qk_layernorm=d.pick(FLAG),
                tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary(d.turned()))


def starcoder2(d):
    return dict(d.sizes(norm="norm_epsilon"), embedding_dropout=0.0, residual_dropout=0.0, use_bias=d.pick(FLAG),
                sliding_window=d.pick([None, 1, 5, 40]), tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary())


def nemotron(d):
    return dict(d.sizes(norm="norm_eps"), attention_bias=d.pick(FLAG), mlp_bias=d.pick(FLAG),
                tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary(d.turned()))


def opt(d):
    narrow = {"word_embed_proj_dim": 10} if d.pick(FLAG) else {}
    return {"max_position_embeddings": 64, "num_hidden_layers": d.layers, "num_attention_heads": d.heads,
            "hidden_size": d.heads * d.head, "ffn_dim": d.pick(WIDER), "activation_function": d.pick(ACTIVATIONS),
            "attention_dropout": 0.0, "dropout": 0.0, "init_std": 0.2, "do_layer_norm_before": d.pick(FLAG),
            "enable_bias": d.pick(FLAG), "layer_norm_elementwise_affine": d.pick(FLAG),
            "tie_word_embeddings": d.pick(FLAG), **narrow, **d.padding()}


def bloom(d):
    return {"n_layer": d.layers, "n_head": d.heads, "hidden_size": d.heads * d.head, "attention_dropout": 0.0, "hidden_dropout": 0.0,
            "layer_norm_epsilon": d.pick([1e-5, 1e-3]), "tie_word_embeddings": d.pick(FLAG)}


def mpt(d):
    return {"max_seq_len": 64, "n_layers": d.layers, "n_heads": d.heads, "d_model": d.heads * d.head,
            "layer_norm_epsilon": d.pick([1e-5, 1e-3]), "tie_word_embeddings": d.pick(FLAG),
            "attn_config": {"alibi": True, "attn_pdrop": 0, "softmax_scale": d.pick([None, 0.3]), "clip_qkv": d.pick(CLIPS)}}


# --- families with a gated MLP ----------------------------------------------------


def biogpt(d):
    return {"max_position_embeddings": 64, "num_hidden_layers": d.layers, "num_attention_heads": d.heads,
            "hidden_size": d.heads * d.head, "intermediate_size": d.pick(WIDER), "hidden_act": d.pick(ACTIVATIONS),
            "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "tie_word_embeddings": d.pick(FLAG),
            **d.padding()}


def plain(d, **options):
    return dict(d.sizes(**options), **d.padding(), **d.rotary(), tie_word_embeddings=d.pick(FLAG))


def llama(d, **options):
    return dict(plain(d, **options), attention_bias=d.pick(FLAG), mlp_bias=d.pick(FLAG))


def mistral(d):
    return dict(plain(d), sliding_window=d.pick([None, 1, 5, 40]))


def ministral(d):
    config = dict(plain(d, apart="always"), sliding_window=d.pick([1, 5, 40]))
    return config | d.pick([{}, d.layer_types()])


def qwen2(d):
    config = dict(plain(d), use_sliding_window=d.pick(FLAG), sliding_window=d.pick([1, 6]))
    listed = config["use_sliding_window"] and d.pick(FLAG)
    return config | (d.layer_types() if listed else {"max_window_layers": d.pick([0, 1, 2])})


def qwen3(d):
    config = dict(plain(d, apart="always"), attention_bias=d.pick(FLAG), use_sliding_window=d.pick(FLAG),
                  sliding_window=d.pick([1, 6]))
    listed = config["use_sliding_window"] and d.pick(FLAG)
    return config | (d.layer_types() if listed else {"max_window_layers": d.pick([0, 1, 2])})


def experts(d, inner="moe_intermediate_size", normalized=True):
    """Experts, of which each token chooses some. The routers' part of the loss is of one microbatch, so it is left to golden
    runs."""
    count = d.pick([1, 2, 3, 5, 8])
    keys = {"num_experts": count, "num_experts_per_tok": d.pick([n for n in (1, 2, 3) if n <= count]), inner: d.pick([1, 10, 24])}
    return keys | ({"norm_topk_prob": d.pick(FLAG)} if normalized else {})


def sparse(d):
    """Experts in all layers, in some, or in none."""
    dense = [{"mlp_only_layers": list(range(d.layers))}, {"num_experts": 0}, {"decoder_sparse_step": d.layers + 1}]
    some = [{}, {"mlp_only_layers": [d.pick(range(d.layers))]}, {"decoder_sparse_step": 2}]
    return experts(d) | d.pick([d.pick(dense), d.pick(some), {}])


def qwen2_moe(d):
    return qwen2(d) | {"qkv_bias": d.pick(FLAG)} | sparse(d) | {"shared_expert_intermediate_size": d.pick([1, 16])}


def qwen3_moe(d):
    return dict(plain(d), use_sliding_window=d.pick(FLAG), sliding_window=d.pick([1, 6]), attention_bias=d.pick(FLAG), **sparse(d))


def mixtral(d):
    sizes = experts(d, "intermediate_size", normalized=False)
    return dict(plain(d, apart="always"), sliding_window=d.pick([None, 1, 6]), **{"num_local_experts": sizes.pop("num_experts")}) | sizes


def olmoe(d):
    return dict(plain(d, apart=False), attention_bias=d.pick(FLAG), clip_qkv=d.pick(CLIPS)) | experts(d, "intermediate_size")


def gpt_oss(d):
    sizes = experts(d, "intermediate_size", normalized=False)
    rotary = dict(d.scaling(d.head, ("default", "yarn")), rope_theta=d.pick([100.0, 10000.0]))
    config = dict(d.sizes(apart="always"), **d.padding(), rope_parameters=rotary, tie_word_embeddings=d.pick(FLAG),
                  attention_bias=d.pick(FLAG), sliding_window=d.pick([1, 5, 40]), swiglu_limit=d.pick([0.3, 7.0]),
                  swiglu_alpha=d.pick([1.0, 1.702]), num_local_experts=sizes.pop("num_experts"))
    return config | sizes | d.pick([{}, d.layer_types()])


def routed(d):
    """Experts in groups, beside shared ones, from some layer on."""
    groups, size, sizes = d.pick([1, 2, 3]), d.pick([2, 4]), experts(d)
    del sizes["num_experts"]
    return sizes | {"n_routed_experts": groups * size, "n_group": groups, "topk_group": d.pick(range(1, groups + 1)),
                    "num_experts_per_tok": d.pick([1, 2]), "n_shared_experts": d.pick([1, 2]),
                    "routed_scaling_factor": d.pick([1.0, 2.5]), "first_k_dense_replace": d.pick(range(d.layers + 1))}


def phi3(d):
    part = d.turned()
    config = dict(d.sizes(), **part, **d.padding(), resid_pdrop=0.0, sliding_window=d.pick([None, 1, 5]),
                  tie_word_embeddings=d.pick(FLAG), original_max_position_embeddings=16)
    kind = d.pick(["none", "default", "longrope"])
    base = {"rope_theta": d.pick([100.0, 10000.0])}
    if kind == "longrope":
        scaling = d.scaling(int(d.head * part["partial_rotary_factor"]), ["longrope"])
        scaling = {"type": "longrope", "short_factor": scaling["short_factor"], "long_factor": scaling["long_factor"]}
        return config | base | {"rope_scaling": scaling}
    return config | (base if kind == "none" else {"rope_parameters": dict(base, rope_type="default")})


def gemma(d):
    return plain(d, apart="always") | d.maybe(hidden_activation=[None, "gelu_pytorch_tanh"])


def gemma2(d):
    config = dict(plain(d, apart="always", activation="hidden_activation", after=True), query_pre_attn_scalar=d.pick([4, 24]),
                  attn_logit_softcapping=d.pick([None, 2.0, 50.0]), final_logit_softcapping=d.pick([None, 3.0, 30.0]),
                  sliding_window=d.pick([1, 5, 40]))
    return config | d.pick([{}, d.layer_types()])


def by_layer_type(d, local):
    """Rotary positions that differ by layer type, as either version writes them. transformers reads no "truncate" there."""
    def scaled():
        return {key: value for key, value in d.scaling(d.head).items() if key != "truncate"}
    if d.pick(FLAG):
        config = {"rope_theta": d.pick([100.0, 10000.0])} | d.maybe(**local)
        scaling = scaled()
        return config | ({} if scaling["rope_type"] == "default" else d.pick([{}, {"rope_scaling": scaling}]))
    return {"rope_parameters": {kind: dict(scaled(), rope_theta=d.pick([100.0, 10000.0]))
                                for kind in ("full_attention", "sliding_attention")}}


def gemma3(d):
    config = {key: value for key, value in gemma2(d).items() if not key.startswith("rope_") and key != "layer_types"}
    listed = d.pick(FLAG)
    pattern = d.layer_types() if listed else d.maybe(sliding_window_pattern=[1, 2, 3])
    return config | pattern | by_layer_type(d, {"rope_local_base_freq": [50.0, 1000.0]})


def gemma4(d):
    """Sizes that layers differ in. Norms after parts that give almost nothing need a large epsilon."""
    config = dict(d.sizes(apart="always", activation="hidden_activation", after=True), **d.padding(), rms_norm_eps=d.pick([0.01, 0.1]),
                  final_logit_softcapping=d.pick([None, 3.0, 30.0]), sliding_window=d.pick([1, 5, 40]), global_head_dim=2 * d.head,
                  attention_k_eq_v=d.pick(FLAG), num_global_key_value_heads=d.pick([None, d.kv]), hidden_size_per_layer_input=d.pick([0, 6, 9]),
                  vocab_size_per_layer_input=d.vocabulary, tie_word_embeddings=d.pick(FLAG))
    kinds = d.layer_types()["layer_types"][:-1] + ["full_attention"]
    shared = [n for n in range(d.layers) if set(kinds[d.layers - n:]) <= set(kinds[:d.layers - n])]
    config |= {"layer_types": kinds, "num_kv_shared_layers": d.pick(shared), "use_double_wide_mlp": d.pick(FLAG)}
    rotary = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": d.pick([0.5, 1.0])}, "sliding_attention": {"rope_type": "default"}}
    config["rope_parameters"] = {kind: dict(scaling, rope_theta=d.pick([100.0, 10000.0])) for kind, scaling in rotary.items()}
    sizes = experts(d, normalized=False)
    sizes["top_k_experts"] = sizes.pop("num_experts_per_tok")
    return config | d.pick([{}, dict(sizes, enable_moe_block=True)])


def olmo(d):
    return dict(plain(d, norm=None), attention_bias=d.pick(FLAG), clip_qkv=d.pick(CLIPS))


def olmo2(d):
    return dict(plain(d, after=True), attention_bias=d.pick(FLAG))


def olmo3(d):
    config = {key: value for key, value in olmo2(d).items() if not key.startswith("rope_")}
    return dict(config, sliding_window=d.pick([1, 5]), **d.pick([{}, d.layer_types()]), **by_layer_type(d, {}))


def exaone4(d):
    config = dict(plain(d, after=True), sliding_window=d.pick([None, 1, 5]))
    if config["sliding_window"] is None:  # transformers divides by its pattern then, which is 0.
        return config | {"layer_types": ["full_attention"] * d.layers}
    return config | (d.layer_types() if d.pick(FLAG) else {"sliding_window_pattern": d.pick([1, 2, 4])})


def granite(d):
    return dict(plain(d), attention_bias=d.pick(FLAG), mlp_bias=d.pick(FLAG), attention_multiplier=d.pick([0.1, 0.5]),
                embedding_multiplier=d.pick([1.0, 12.0]), residual_multiplier=d.pick([0.22, 1.0]),
                logits_scaling=d.pick([1.0, 8.0]))


def granitemoe(d):
    config = dict(granite(d), **{key: value for key, value in mixtral(d).items() if "expert" in key or key == "intermediate_size"})
    del config["mlp_bias"]
    return config


def granitemoeshared(d):
    return dict(granitemoe(d), shared_intermediate_size=d.pick([0, 1, 16]))


def llama4_text(d):
    """Where layers do not turn, some positions are scaled or none; others see a chunk of their document."""
    sizes = experts(d, "intermediate_size", normalized=False)
    config = dict(plain(d, apart="always"), attention_bias=d.pick(FLAG), use_qk_norm=d.pick(FLAG),
                  attn_temperature_tuning=d.pick(FLAG), floor_scale=d.pick([3, 8, 8192]), attn_scale=d.pick([0.1, 1.0]),
                  intermediate_size_mlp=d.pick(WIDER), attention_chunk_size=d.pick([3, 8, 64, 8192]))
    layers = d.pick([{}, {"no_rope_layers": [d.pick([0, 1]) for _ in range(d.layers)]}, {"no_rope_layer_interval": 2}])
    some = [{"interleave_moe_layer_step": 2}, {"moe_layers": [layer for layer in range(d.layers) if d.pick(FLAG)]}]
    sizes["num_local_experts"] = sizes.pop("num_experts")
    return config | sizes | layers | d.pick([{}, d.pick(some)])


def minicpm(d):
    return dict(plain(d, apart=False), attention_bias=d.pick(FLAG), scale_emb=d.pick([1, 12]), scale_depth=d.pick([1.0, 1.4]),
                dim_model_base=d.pick([1, 8, 16]))


def smollm3(d):
    layers = d.pick([{}, {"no_rope_layers": [d.pick([0, 1]) for _ in range(d.layers)]}, {"no_rope_layer_interval": 2}])
    windows = {"use_sliding_window": True, "sliding_window": d.pick([1, 5])} | d.pick([{}, d.layer_types()])
    return dict(plain(d), attention_bias=d.pick(FLAG), mlp_bias=d.pick(FLAG), **layers, **d.pick([{}, windows]))


def stablelm(d):
    return dict(d.sizes(apart=False, norm="layer_norm_eps"), use_qkv_bias=d.pick(FLAG),
                qk_layernorm=d.pick(FLAG), use_parallel_residual=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG),
                **d.padding(), **d.rotary(d.turned()))


def glm(d):
    return dict(d.sizes(apart="always", after=True), attention_bias=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG), **d.padding(),
                **d.rotary(d.turned()))


def glm4_moe(d):
    return dict(glm(d), use_qk_norm=d.pick(FLAG), **routed(d))


def latent(d):
    """Multi-head latent attention, of which d.head elements of a head turn."""
    return dict(d.sizes(apart=False), num_key_value_heads=d.heads, q_lora_rank=d.pick([None, 8, 12]), kv_lora_rank=d.pick([8, 10]),
                qk_nope_head_dim=d.pick([2, 4, 8]), qk_rope_head_dim=d.head, v_head_dim=d.pick([3, 6, 12]),
                attention_bias=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary())


def deepseek_v2(d):
    config = dict(latent(d), mlp_bias=d.pick(FLAG), **routed(d), topk_method=d.pick(["greedy", "group_limited_greedy"]))
    return config | {"norm_topk_prob": False}


def deepseek_v3(d):
    return dict(latent(d), rope_interleave=d.pick(FLAG), **routed(d))


def minicpm3(d):
    return dict(latent(d), q_lora_rank=d.pick([8, 12]), scale_emb=d.pick([1, 12]), scale_depth=d.pick([1.0, 1.4]),
                dim_model_base=d.pick([8, 16]))


def cohere(d):
    return dict(plain(d, norm="layer_norm_eps"), attention_bias=d.pick(FLAG), logit_scale=d.pick([0.0625, 1.0]),
                use_qk_norm=d.pick(FLAG))


def cohere2(d):
    config = dict(plain(d, norm="layer_norm_eps"), attention_bias=d.pick(FLAG), logit_scale=d.pick([0.0625, 1.0]),
                  sliding_window=d.pick([1, 5]))
    return config | d.pick([{}, {"sliding_window_pattern": d.pick([1, 2, 3])}, d.layer_types()])


def helium(d):
    return dict(plain(d, apart="always"), attention_bias=d.pick(FLAG), mlp_bias=d.pick(FLAG))


def seed_oss(d):
    return dict(llama(d, apart="always"), attention_out_bias=d.pick(FLAG), residual_dropout=0.0)


def ernie4_5(d):
    config = dict(plain(d, apart="always"), use_bias=d.pick(FLAG))
    del config["attention_dropout"]
    return config


def ernie4_5_moe(d):
    """Layers from one index to another have experts, or every other one of those."""
    sizes = experts(d, normalized=False)
    names = {"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k", "moe_intermediate_size": "moe_intermediate_size"}
    return dict(ernie4_5(d), **{names[key]: value for key, value in sizes.items()}, moe_num_shared_experts=d.pick([0, 1, 2]),
                moe_layer_start_index=d.pick(range(d.layers + 1)), moe_layer_end_index=d.pick([-1, 0, d.layers - 1]),
                **d.maybe(moe_layer_interval=[1, 2], moe_norm_min=[1e-12, 0.4]))


def minimax_m2(d):
    sizes = experts(d, "intermediate_size", normalized=False)
    sizes["num_local_experts"] = sizes.pop("num_experts")
    config = dict(d.sizes(apart="always"), **d.padding(), tie_word_embeddings=d.pick(FLAG))
    if d.pick(FLAG):
        return dict(config, rotary_dim=d.pick(range(2, d.head + 1, 2)), rope_theta=d.pick([100.0, 10000.0])) | sizes
    return dict(config, **d.rotary(d.turned())) | sizes


def ministral3(d):
    rotary = dict(d.scaling(d.head, ["yarn"]), rope_theta=d.pick([100.0, 10000.0]), original_max_position_embeddings=d.pick([3, 16]),
                  llama_4_scaling_beta=d.pick([0.1, 0.5]))
    return dict(d.sizes(apart="always"), **d.padding(), rope_parameters=rotary, tie_word_embeddings=d.pick(FLAG),
                sliding_window=d.pick([None, 5]))


def hunyuan(d):
    scaling = d.pick([None, {"type": "dynamic", "alpha": 50.0, "factor": 1.0}]) if d.head > 2 else None
    return dict(d.sizes(apart="always"), **d.padding(), attention_bias=d.pick(FLAG), rope_theta=d.pick([100.0, 10000.0]),
                rope_scaling=scaling, tie_word_embeddings=d.pick(FLAG))


def hunyuan_moe(d):
    sizes = experts(d, "intermediate_size", normalized=False)
    topk = sizes.pop("num_experts_per_tok")
    return dict(hunyuan(d), **sizes) | {"moe_topk": d.pick([topk, [d.pick(range(1, sizes["num_experts"] + 1)) for _ in range(d.layers)]])}


def moe_llava(d):
    layers = sorted({d.pick(range(d.layers)) for _ in range(d.layers)})
    each = d.pick([2, 3, 4, 8])
    counts = d.pick([[each], [each * d.pick([1, 2]) for _ in layers]])
    moe = {"moe_enable": True, "moe_mode": "custom", "moe_layers_idx": layers, "num_experts": counts, "top_k_experts": d.pick([1, 2]),
           "use_residual": d.pick(FLAG), "router_aux_loss_coef": 0.0}
    return dict(plain(d), moe=moe)


def deepseek_v32(d):
    config = dict(latent(d), **routed(d), q_lora_rank=d.pick([8, 12]), index_topk=d.pick([64, 2048]), index_n_heads=d.pick([1, 2]),
                  index_head_dim=d.head + d.pick([0, 4]))
    return config | d.pick([{}, {"mlp_layer_types": [d.pick(["dense", "sparse"]) for _ in range(d.layers)]}])


def glm_moe_dsa(d):
    return dict(deepseek_v32(d), **d.pick([{}, {"index_topk_freq": 2}, {"indexer_types": ["full"] + [
        d.pick(["full", "shared"]) for _ in range(d.layers - 1)]}]))


def cwm(d):
    # transformers has heads of 128 where nothing is said.
    config = {key: value for key, value in llama(d).items() if key != "attention_bias"} | {"head_dim": d.head}
    return dict(config, sliding_window=d.pick([1, 5]), **d.pick([{}, d.layer_types()]))


def internlm3(d):
    biased = d.pick(FLAG)  # transformers has both or neither, and heads of 128 where nothing is said.
    return dict(plain(d), head_dim=d.head, attention_bias=biased, mlp_bias=biased)


def jais2(d):
    return llama(d, activation="hidden_act", norm="layer_norm_eps")


def hyperclovax(d):
    return dict(granite(d), use_post_norm=d.pick(FLAG))


def nanochat(d):
    """Without weights, norms of little divide by almost nothing."""
    return dict(plain(d, apart=False, after=True), attention_bias=d.pick(FLAG), final_logit_softcapping=d.pick([3.0, 15.0]))


def sinks_and_windows(d, config):
    thetas = {"layer_rope_theta": [d.pick([0, 100.0, 10000.0]) for _ in range(d.layers)]}
    return dict(config, sliding_window=d.pick([1, 5, 40]), **d.pick([{}, d.layer_types()]), **d.pick([{}, thetas]))


def granite_swa(d):
    return sinks_and_windows(d, {key: value for key, value in granite(d).items() if key != "head_dim"} | {"hidden_size": d.heads * d.head})


def granitemoe_swa(d):
    config = {key: value for key, value in granitemoeshared(d).items() if key != "head_dim"} | {"hidden_size": d.heads * d.head}
    return sinks_and_windows(d, config)


def sarvam_moe(d):
    return dict(plain(d, apart="always"), attention_bias=d.pick(FLAG), use_qk_norm=d.pick(FLAG), **routed(d))


def axk1(d):
    sizes = {key: value for key, value in routed(d).items() if key != "first_k_dense_replace"}
    return dict(latent(d), q_lora_rank=d.pick([8, 12]), rope_interleave=d.pick(FLAG), **sizes,
                mlp_layer_types=[d.pick(["dense", "sparse"]) for _ in range(d.layers)])


def afmoe(d):
    return dict(plain(d, apart="always", after=True), attention_bias=d.pick(FLAG), mup_enabled=d.pick(FLAG), route_scale=d.pick([1.0, 2.5]),
                num_dense_layers=d.pick(range(d.layers + 1)), num_shared_experts=d.pick([1, 2]), sliding_window=d.pick([1, 5, 40]),
                **d.pick([{"global_attn_every_n_layers": d.pick([1, 2])}, d.layer_types()]), **experts(d, normalized=False))


def parts_by_type(d, config):
    """Rotary positions of a part of each head, which differs by layer type."""
    config = {key: value for key, value in config.items() if not key.startswith("rope_")}
    kinds = {kind: dict(d.turned(), rope_type="default", rope_theta=d.pick([100.0, 10000.0])) for kind in ("full_attention", "sliding_attention")}
    return dict(config, sliding_window=d.pick([1, 5, 40]), rope_parameters=kinds, **d.layer_types(),
                mlp_layer_types=[d.pick(["dense", "sparse"]) for _ in range(d.layers)])


def laguna(d):
    config = dict(plain(d, apart="always"), attention_bias=d.pick(FLAG), gating=d.pick([True, "per-head", "per-element"]),
                  moe_routed_scaling_factor=d.pick([1.0, 2.5]), shared_expert_intermediate_size=d.pick([1, 16]), **experts(d, normalized=False))
    heads = {"num_attention_heads_per_layer": [config["num_key_value_heads"] * d.pick([1, 2, 3]) for _ in range(d.layers)]}
    return parts_by_type(d, config | d.pick([{}, heads]))


def mimo_v2_flash(d):
    """Layers with a window have twice as many heads of keys."""
    kv = d.pick([1, 2])
    sizes = {key: value for key, value in routed(d).items() if key not in ("first_k_dense_replace", "n_shared_experts")}
    config = dict(plain(d, apart="always"), num_attention_heads=2 * kv * d.pick([1, 2]), num_key_value_heads=kv, v_head_dim=d.pick([3, 6, 12]),
                  attention_bias=d.pick(FLAG), attention_value_scale=d.pick([None, 0.707]), **sizes)
    return parts_by_type(d, config)


def cohere2_moe(d):
    config = dict(plain(d, apart="always", norm="layer_norm_eps"), attention_bias=d.pick(FLAG), logit_scale=d.pick([0.0625, 1.0]),
                  sliding_window=d.pick([1, 5]), num_shared_experts=d.pick([0, 1, 2]), expert_selection_fn=d.pick(["softmax", "sigmoid"]),
                  shared_expert_combination_strategy=d.pick(["average", "sum"]), prefix_dense_sliding_window_pattern=d.pick([1, 2]),
                  prefix_dense_intermediate_size=d.pick([None, 7]), **experts(d, "intermediate_size"), **d.maybe(rms_norm_eps=[1e-5, 1e-3]))
    listed = d.layer_types() | {"mlp_layer_types": [d.pick(["dense", "sparse"]) for _ in range(d.layers)]}
    return config | d.pick([{"first_k_dense_replace": d.pick(range(d.layers + 1)), "sliding_window_pattern": d.pick([2, 4])}, listed])


def dbrx(d):
    """Keys in two objects. transformers refuses a configuration without a bound of queries, keys and values."""
    count = d.pick([1, 2, 3, 5])
    return {"d_model": d.heads * d.head, "n_heads": d.heads, "n_layers": d.layers, "max_seq_len": 64, "resid_pdrop": 0.0, "emb_pdrop": 0.0,
            "rope_theta": (theta := d.pick([100.0, 10000.0])), **d.padding(),
            "attn_config": {"kv_n_heads": d.kv, "clip_qkv": d.pick(CLIPS[1:]), "attn_pdrop": 0.0, "rope_theta": theta},
            "ffn_config": {"ffn_hidden_size": d.pick(WIDER), "moe_num_experts": count, "moe_top_k": d.pick([n for n in (1, 2, 3) if n <= count]),
                           "moe_normalize_expert_weights": d.pick([None, 1.0]), "ffn_act_fn": {"name": d.pick(ACTIVATIONS)}}}


def longcat_flash(d):
    """transformers cannot choose one expert of a token."""
    config = {key: value for key, value in latent(d).items() if key != "num_hidden_layers"}
    return config | {"num_layers": d.layers, "q_lora_rank": d.pick([8, 12]), "head_dim": d.head, "ffn_hidden_size": config.pop("intermediate_size"),
                     "expert_ffn_hidden_size": d.pick([1, 10]), "n_routed_experts": d.pick([2, 4]), "zero_expert_num": d.pick([1, 3]),
                     "moe_topk": d.pick([2, 3]), "routed_scaling_factor": d.pick([1.0, 6.0])}


def diffllama(d):
    """Heads of keys in pairs. Where both attentions are much the same, a norm with a small epsilon hides what the second is multiplied by."""
    heads, share = d.kv, d.pick([1, 2, 3])
    config = dict(d.sizes(apart=False), **d.rotary(), **d.padding(), attention_bias=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG))
    return config | {"num_key_value_heads": 2 * heads, "num_attention_heads": 2 * heads * share, "hidden_size": 2 * heads * share * d.head, "rms_norm_eps": d.pick([0.1, 0.3])}


def gpt_neox_japanese(d):
    config = {key: value for key, value in d.sizes(apart=False, groups=False, norm="layer_norm_eps").items() if key != "intermediate_size"}
    return dict(config, intermediate_multiple_size=d.pick([1, 3]), hidden_dropout=0.0, tie_word_embeddings=d.pick(FLAG),
                **d.rotary(d.turned("rotary_pct"), "rotary_emb_base"))


def flex_olmo(d):
    return dict(olmo2(d), **experts(d, "intermediate_size"))


def mellum(d):
    config = {key: value for key, value in plain(d).items() if not key.startswith("rope_")}
    sizes = experts(d)
    sizes["num_local_experts"] = sizes.pop("num_experts")
    rope = {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": d.pick([100.0, 10000.0])} for kind in ("full_attention", "sliding_attention")}}
    return config | sizes | rope | {"sliding_window": d.pick([1, 5]), "attention_bias": d.pick(FLAG), **d.layer_types(),
                                    "mlp_layer_types": [d.pick(["dense", "sparse"]) for _ in range(d.layers)]}


def dots1(d):
    return dict(plain(d), attention_bias=d.pick(FLAG), sliding_window=d.pick([1, 5]), max_window_layers=d.pick([0, 1, 2]), **routed(d))


def exaone_moe(d):
    sizes = routed(d)
    sizes["num_experts"] = sizes.pop("n_routed_experts")
    sizes["num_shared_experts"] = sizes.pop("n_shared_experts")
    config = exaone4(d)
    if config["sliding_window"] is None:
        config["sliding_window"] = 5
    return dict(config, **sizes)


def solar_open(d):
    sizes = {key: value for key, value in routed(d).items() if key != "first_k_dense_replace"}
    return {key: value for key, value in plain(d, apart="always").items() if key != "intermediate_size"} | sizes | {"attention_bias": d.pick(FLAG)}


def glm4_moe_lite(d):
    sizes = {key: value for key, value in routed(d).items() if key != "first_k_dense_replace"}
    return dict(latent(d), rope_interleave=d.pick(FLAG), **sizes, mlp_layer_types=[d.pick(["dense", "sparse"]) for _ in range(d.layers)])


def hy_v3(d):
    sizes = {key: value for key, value in routed(d).items() if "group" not in key and key not in ("first_k_dense_replace", "norm_topk_prob")}
    sizes = {{"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts", "routed_scaling_factor": "router_scaling_factor"}.get(key, key): value
             for key, value in sizes.items()}
    return dict(llama(d, apart="always"), **sizes, mlp_layer_types=[d.pick(["dense", "sparse"]) for _ in range(d.layers)])


def youtu(d):
    return dict(latent(d), rope_interleave=d.pick(FLAG))


def openai_gpt(d):
    config = dict(gpt2(d), afn=d.pick(["gelu", "relu", "silu"]))
    del config["activation_function"], config["n_inner"]
    return config


def apertus(d):
    """Without an object for rotary positions transformers has one of its own."""
    rotary = dict(d.scaling(d.head), rope_theta=d.pick([100.0, 10000.0]))
    config = dict(d.sizes(apart=False), **d.padding(), rope_parameters=rotary, attention_bias=d.pick(FLAG),
                  tie_word_embeddings=d.pick(FLAG), hidden_dropout=0.0)
    return config | d.pick([{}, {"hidden_act": "xielu"}, {"hidden_act": "xielu"}])


# --- linear recurrences -------------------------------------------------------------


def bounds(d):
    """Of step sizes."""
    return d.pick([{}, {"time_step_limit": [0.0, float("inf")]}, {"time_step_limit": [0.3, 0.9]}])


def mamba2(d):
    groups, shared, head = d.pick([1, 2, 3]), d.pick([1, 2, 4]), d.pick([2, 4, 6])
    heads = groups * shared
    expand = d.pick([n for n in (1, 2) if heads * head % n == 0])
    return {"hidden_size": heads * head // expand, "expand": expand, "num_hidden_layers": d.layers, "num_heads": heads, "head_dim": head,
            "n_groups": groups, "state_size": d.pick([2, 5, 8]), "conv_kernel": d.pick([2, 3, 4]), "chunk_size": d.pick([1, 4, 8, 256]),
            "use_bias": d.pick(FLAG), "use_conv_bias": d.pick(FLAG), "layer_norm_epsilon": d.pick([1e-5, 1e-3]),
            "tie_word_embeddings": d.pick(FLAG), **bounds(d)}


def recurrent_gemma(d):
    # No norm follows layers' parts.
    config = dict(d.sizes(apart=False, activation="hidden_activation"), attention_window_size=d.pick([1, 5, 40]), conv1d_width=d.pick([1, 3, 4]),
                  attention_bias=d.pick(FLAG), logits_soft_cap=d.pick([0.5, 30.0]), tie_word_embeddings=d.pick(FLAG), **d.padding())
    for key in "max_position_embeddings", "initializer_range":
        config.pop(key, None)
    config["intermediate_size"] = 2 * d.pick([3, 13, 20])
    config |= d.maybe(lru_width=[2 * d.heads, 5 * d.heads], block_types=[["recurrent"], ["attention", "recurrent"], ["recurrent", "recurrent", "attention"]])
    return config | {"rope_theta": d.pick([100.0, 10000.0]), "init_std": None} | d.turned()


def mamba(d):
    return {"hidden_size": d.pick([8, 12, 15]), "expand": d.pick([1, 2, 3]), "num_hidden_layers": d.layers, "state_size": d.pick([1, 3, 8]),
            "time_step_rank": d.pick(["auto", 2, 5]), "conv_kernel": d.pick([2, 3, 4]), "use_bias": d.pick(FLAG), "use_conv_bias": d.pick(FLAG),
            "layer_norm_epsilon": d.pick([1e-5, 1e-3]), "tie_word_embeddings": d.pick(FLAG), **d.padding()}


def falcon_mamba(d):
    # Norms of few numbers divide by almost nothing.
    return dict(mamba(d), state_size=d.pick([3, 8]), time_step_rank=d.pick([3, 5]), mixer_rms_eps=d.pick([1e-3, 1e-2]))


def jamba(d):
    config = dict(d.sizes(apart=False), hidden_act="silu", mamba_d_state=d.pick([3, 8]), mamba_dt_rank=d.pick([3, 5]), mamba_d_conv=d.pick([2, 4]),
                  mamba_expand=d.pick([1, 2]), mamba_conv_bias=d.pick(FLAG), mamba_proj_bias=d.pick(FLAG), rms_norm_eps=d.pick([1e-2, 0.1]),
                  num_experts=d.pick([1, 2, 4]), tie_word_embeddings=d.pick(FLAG), **d.padding())
    for kind in "attn", "expert":
        period = d.pick([1, 2, 3])
        config |= {f"{kind}_layer_period": period, f"{kind}_layer_offset": d.pick(range(period))}
    return config | {"num_experts_per_tok": d.pick([1, 2]) if config["num_experts"] > 1 else 1}


def kimi_linear(d):
    experts, groups = d.pick([(2, 1), (4, 1), (4, 2), (6, 3)])
    plain, turned = 2 * d.pick([1, 3, 4]), 2 * d.pick([1, 2])
    config = dict(d.sizes(apart=False, groups=False), hidden_act="silu", q_lora_rank=d.pick([None, 6]), kv_lora_rank=d.pick([5, 8]), qk_nope_head_dim=plain,
                  qk_rope_head_dim=turned, v_head_dim=d.pick([3, 8]), num_key_value_heads=d.heads, moe_intermediate_size=d.pick([3, 10]),
                  num_experts=experts, num_experts_per_token=d.pick([1, 2]), num_expert_group=groups, topk_group=d.pick([groups, 1]) if experts > 2 else 1,
                  moe_renormalize=d.pick(FLAG), routed_scaling_factor=d.pick([1.0, 2.5]), num_shared_experts=d.pick([1, 2]),
                  first_k_dense_replace=d.pick([0, 1, 2]), rms_norm_eps=d.pick([1e-2, 0.1]), **d.padding())
    attend = [i for i in range(1, d.layers + 1) if d.pick(FLAG)]
    sizes = {"num_heads": d.pick([1, 2, 3, 4]), "head_dim": d.pick([4, 6, 8]), "short_conv_kernel_size": d.pick([2, 4])}
    return config | {"linear_attn_config": {"full_attn_layers": attend, "kda_layers": [i for i in range(1, d.layers + 1) if i not in attend], **sizes}}


def bailing_hybrid(d):
    config = kimi_linear(d)
    renamed = {"num_experts_per_token": "num_experts_per_tok", "num_expert_group": "n_group", "moe_renormalize": "norm_topk_prob"}
    config = {renamed.get(key, key): value for key, value in config.items() if key != "linear_attn_config"}
    config |= d.pick([{"layer_group_size": d.pick([1, 2, 3])}, {"layer_types": [d.pick(["linear_attention", "full_attention"]) for _ in range(d.layers)]}])
    return config | {"head_dim": d.pick([4, 6, 8]), "short_conv_kernel_size": d.pick([2, 4]), "kda_safe_gate": d.pick(FLAG), "kda_lower_bound": d.pick([-5.0, -0.5]),
                     "rope_theta": d.pick([100.0, 10000.0])}


def minimax(d):
    config = dict(d.sizes(), hidden_act="silu", num_local_experts=d.pick([2, 4]), num_experts_per_tok=d.pick([1, 2]), block_size=d.pick([1, 4, 8, 256]),
                  rms_norm_eps=d.pick([1e-4, 1e-3]), tie_word_embeddings=d.pick(FLAG), **d.rotary())
    factors = [f"{part}_{which}_factor" for part in ("full_attn", "linear_attn", "mlp") for which in ("alpha", "beta")]
    config |= d.maybe(**{factor: [0.7, 1.0, 1.8] for factor in factors})
    return config | {"layer_types": [d.pick(["linear_attention", "full_attention"]) for _ in range(d.layers)]}


def granitemoehybrid(d):
    config = granitemoeshared(d) if d.pick(FLAG) else dict(granite(d), num_local_experts=0, num_experts_per_tok=0)
    hidden = config["hidden_size"]
    heads = d.pick([n for n in range(1, hidden + 1) if hidden % n == 0])
    groups = d.pick([n for n in (1, 2, 3, 4) if heads % n == 0])
    config = dict(config, mamba_expand=1, shared_intermediate_size=d.pick([5, 12]), mamba_n_heads=heads,
                  mamba_d_head=d.pick(["auto", hidden // heads]),
                  mamba_n_groups=groups, mamba_d_state=d.pick([2, 5, 8]), mamba_d_conv=d.pick([2, 4]), mamba_conv_bias=d.pick(FLAG),
                  mamba_proj_bias=d.pick(FLAG), mamba_chunk_size=d.pick([4, 8, 256]),
                  position_embedding_type=d.pick([None, "nope", "rope"]), **bounds(d))
    config.pop("mlp_bias", None)
    return config | {"layer_types": [d.pick(["mamba", "attention"]) for _ in range(d.layers)], "hidden_act": "silu"}


def nemotron_h(d):
    groups = d.pick([1, 2, 3])
    experts = d.pick([2, 4, 6])
    config = dict(d.sizes(apart="always", activation="mlp_hidden_act", norm="layer_norm_epsilon"), mlp_bias=d.pick(FLAG),
                  mamba_num_heads=groups * d.pick([1, 2]), mamba_head_dim=d.pick([2, 4]), n_groups=groups, ssm_state_size=d.pick([2, 5]),
                  chunk_size=d.pick([4, 128]), conv_kernel=d.pick([2, 4]), use_bias=d.pick(FLAG), use_conv_bias=d.pick(FLAG),
                  n_routed_experts=experts, num_experts_per_tok=d.pick([1, 2]), moe_intermediate_size=d.pick([3, 10]),
                  moe_shared_expert_intermediate_size=d.pick([5, 12]), routed_scaling_factor=d.pick([1.0, 2.5]),
                  norm_topk_prob=d.pick(FLAG), time_step_min=d.pick([0.001, 0.3]), **bounds(d))
    # One layer at least has tokens that see each other: else there is nothing for documents to divide.
    return config | {"layers_block_type": [d.pick(["mamba", "attention"]), *[d.pick(["mamba", "attention", "mlp", "moe"]) for _ in range(d.layers - 1)]]}


def qwen3_next(d):
    keys, heads = d.pick([1, 2, 3]), d.pick([1, 2])
    config = dict(d.sizes(apart="always"), hidden_act="silu", linear_num_key_heads=keys, linear_num_value_heads=keys * heads,
                  linear_key_head_dim=d.pick([4, 6, 8]), linear_value_head_dim=d.pick([2, 4, 7]), linear_conv_kernel_dim=d.pick([2, 4]),
                  num_experts=d.pick([2, 4]), num_experts_per_tok=d.pick([1, 2]), moe_intermediate_size=d.pick([3, 10]),
                  shared_expert_intermediate_size=d.pick([5, 12]), norm_topk_prob=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG))
    config |= d.pick([{"full_attention_interval": d.pick([1, 2])},
                      {"layer_types": [d.pick(["linear_attention", "full_attention"]) for _ in range(d.layers)]}])
    return config | {"mlp_only_layers": d.pick([[], [0]])} | d.rotary(d.turned())


def lfm2(d):
    config = d.sizes(apart=False, norm="norm_eps")
    for key in "hidden_act", "attention_dropout":
        del config[key]
    config |= d.pick([{"block_auto_adjust_ff_dim": False}, {"block_multiple_of": d.pick([1, 8]), "block_ffn_dim_multiplier": d.pick([1.0, 1.5])}])
    config |= d.pick([{"full_attn_idxs": [i for i in range(d.layers) if d.pick(FLAG)]},
                      {"layer_types": [d.pick(["conv", "full_attention"]) for _ in range(d.layers)]}])
    return dict(config, conv_bias=d.pick(FLAG), conv_L_cache=d.pick([1, 3, 4]), tie_word_embeddings=d.pick(FLAG), **d.padding(), **d.rotary())


def lfm3(d):
    config = {key: value for key, value in lfm2(d).items() if "block" not in key and "attn_idxs" not in key and not key.startswith("rope_")}
    rotary = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": d.pick([0.5, 1.0])}, "sliding_attention": {"rope_type": "default"}}
    return config | {"head_dim": d.head, "norm_eps": d.pick([1e-4, 1e-3]), "sliding_window": d.pick([1, 5, 40]), "attention_bias": d.pick(FLAG),
                     "use_sandwich_norm": d.pick(FLAG), "use_attention_gate": d.pick(FLAG), "attention_dropout": 0.0,
                     "layer_types": [d.pick(["conv", "full_attention", "sliding_attention"]) for _ in range(d.layers)],
                     "rope_parameters": {kind: dict(scaling, rope_theta=d.pick([100.0, 10000.0])) for kind, scaling in rotary.items()}}


def qwen3_5(d):
    config = qwen3_next(d)
    return {key: value for key, value in config.items() if "expert" not in key and "mlp_only" not in key and key not in ("moe_intermediate_size", "norm_topk_prob")}


def qwen3_5_moe(d):
    config = qwen3_next(d)
    return {key: value for key, value in config.items() if key not in ("mlp_only_layers", "norm_topk_prob", "intermediate_size")}


def lfm2_moe(d):
    config = {key: value for key, value in lfm2(d).items() if "block" not in key and "attn_idxs" not in key}
    return config | {"layer_types": [d.pick(["conv", "full_attention"]) for _ in range(d.layers)], "num_dense_layers": d.pick([0, 1]),
                     "num_experts": d.pick([2, 4]), "num_experts_per_tok": d.pick([1, 2]), "moe_intermediate_size": d.pick([3, 10]),
                     "routed_scaling_factor": d.pick([1.0, 2.5]), "norm_topk_prob": d.pick(FLAG)}


def bamba(d, keys=None):
    config = dict(d.sizes(apart="always"), head_dim=d.pick([4, 8]))  # Half of a head has rotary positions.
    hidden = config["hidden_size"]
    heads = d.pick([n for n in range(1, hidden + 1) if hidden % n == 0])
    config |= dict(mamba_expand=1, mamba_n_heads=heads, mamba_d_head=d.pick(["auto", hidden // heads]),
                   mamba_n_groups=d.pick([n for n in (1, 2, 3, 4) if heads % n == 0]), mamba_d_state=d.pick([2, 5, 8]), mamba_d_conv=d.pick([2, 4]),
                   mamba_conv_bias=d.pick(FLAG), mamba_proj_bias=d.pick(FLAG), mamba_chunk_size=d.pick([4, 8, 256]), attention_bias=d.pick(FLAG),
                   mlp_bias=d.pick(FLAG), tie_word_embeddings=d.pick(FLAG), hidden_act="silu", **bounds(d))
    if keys is None:
        keys = {"attn_layer_indices": d.pick([None, [i for i in range(d.layers) if d.pick(FLAG)]])}
    return config | keys


def falcon_h1(d):
    config = bamba(d, {"mamba_rms_norm": d.pick(FLAG), "mamba_norm_before_gate": d.pick(FLAG), "projectors_bias": d.pick(FLAG)})
    config |= {"mamba_d_ssm": config["mamba_n_heads"] * (size := d.pick([2, 4, 5])), "mamba_d_head": d.pick(["auto", size])}
    factor = lambda: d.pick([1.0, 0.7, 1.4])
    for key in ("embedding", "lm_head", "key", "attention_in", "attention_out", "ssm_in", "ssm_out"):
        config[f"{key}_multiplier"] = factor()
    return config | {"ssm_multipliers": [factor() for _ in range(5)], "mlp_multipliers": [factor() for _ in range(2)], "head_dim": d.head} | d.rotary()


# --- encoders ---------------------------------------------------------------------


def bert(d):
    config = dict(d.sizes(apart=False, groups=False, norm="layer_norm_eps", after=True), hidden_dropout_prob=0.0,
                  attention_probs_dropout_prob=0.0, type_vocab_size=d.pick([1, 2, 3]), **d.padding())
    del config["attention_dropout"]
    return config


def distilbert(d):
    return {"max_position_embeddings": 64, "n_layers": d.layers, "n_heads": d.heads, "dim": d.heads * d.head, "hidden_dim": d.pick([13, 32, 50]),
            "activation": d.pick(ACTIVATIONS[:4]), "dropout": 0.0, "attention_dropout": 0.0, **d.padding()}


def mpnet(d):
    return {key: value for key, value in roberta(d).items() if key != "type_vocab_size"}


def albert(d):
    return dict(bert(d), embedding_size=d.pick([10, d.heads * d.head]))


def electra(d):
    return dict(bert(d), embedding_size=d.pick([10, d.heads * d.head]))


def roberta(d):
    padding = d.pick([0, 1, 5])
    return dict(bert(d), pad_token_id=padding, max_position_embeddings=64 + padding + 1)


def modernbert(d):
    config = d.sizes(apart=False, groups=False, activation="hidden_activation", norm="norm_eps")
    config |= {key: d.pick(FLAG) for key in ("norm_bias", "attention_bias", "mlp_bias", "decoder_bias", "classifier_bias",
                                             "tie_word_embeddings")}
    config |= {"local_attention": d.pick([2, 5, 8, 40]), "classifier_activation": d.pick(ACTIVATIONS), "embedding_dropout": 0.0,
               "mlp_dropout": 0.0, **d.padding(), **d.pick([{}, {"global_attn_every_n_layers": d.pick([1, 2])}, d.layer_types()])}
    rotary = by_layer_type(d, {"local_rope_theta": [50.0, 1000.0]})
    if "rope_theta" in rotary:
        rotary["global_rope_theta"] = rotary.pop("rope_theta")
    return config | rotary


def t5(d):
    layers = {"num_layers": d.layers, "num_decoder_layers": d.pick([d.layers, 1, 3])}
    # A distance that has a bucket of its own is below a quarter of these.
    buckets, farthest = d.pick([(4, 3), (8, 5), (8, 20), (32, 128)])
    return {"d_model": d.heads * d.pick([d.head, 7]), "d_kv": d.head, "num_heads": d.heads, "d_ff": d.pick([1, 13, 32, 50]), **layers,
            "feed_forward_proj": d.pick(["relu", "gated-gelu", "gated-silu"]), "dropout_rate": 0.0, "layer_norm_epsilon": d.pick([1e-6, 1e-3]),
            "relative_attention_num_buckets": buckets, "relative_attention_max_distance": farthest, "decoder_start_token_id": d.pick([0, 5]),
            "initializer_factor": 0.5, "init_std": None, **d.maybe(tie_word_embeddings=[True, False])}


def bart(d):
    # Sources, targets and logits have one table.
    heads = d.heads * d.pick([1, 2])
    width = heads * 2 * d.pick([1, 2, 3])  # As many sines as cosines.
    return {"d_model": width, "encoder_layers": d.layers, "decoder_layers": d.pick([1, 3]), "encoder_attention_heads": heads,
            "decoder_attention_heads": d.pick([heads, 1, 2]), "encoder_ffn_dim": d.pick([1, 13, 32]), "decoder_ffn_dim": d.pick([7, 32]),
            "max_position_embeddings": 64, "activation_function": d.pick(["gelu", "relu", "silu"]), "dropout": 0.0, "attention_dropout": 0.0,
            "activation_dropout": 0.0, "init_std": 0.2, "decoder_start_token_id": d.pick([0, 2]), "pad_token_id": d.pick([0, 1, 3]),
            **d.maybe(scale_embedding=[True, False], tie_word_embeddings=[True])}


def m2m_100(d):
    """Of two sines at least, and without layers that are dropped, as its own defaults have them."""
    config = bart(d)
    return config | {"d_model": 2 * config["d_model"], "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}


ENCODERS = {"bert": bert, "distilbert": distilbert, "electra": electra, "albert": albert, "ernie": bert, "mpnet": mpnet, "roberta": roberta, "xlm-roberta": roberta, "camembert": roberta, "modernbert": modernbert}
DECODERS = {"gpt2": gpt2_own, "gpt_bigcode": gpt_bigcode, "opt": opt, "biogpt": biogpt, "gptj": gptj, "gpt_neox": gpt_neox,
            "falcon": falcon, "phi": phi, "persimmon": persimmon, "starcoder2": starcoder2, "nemotron": nemotron, "llama": llama,
            "mistral": mistral, "ministral": ministral, "qwen2": qwen2, "qwen3": qwen3, "qwen2_moe": qwen2_moe,
            "qwen3_moe": qwen3_moe, "phi3": phi3, "gemma": gemma, "gemma2": gemma2, "vaultgemma": gemma2, "gemma3_text": gemma3,
            "olmo": olmo, "olmo2": olmo2, "olmo3": olmo3, "exaone4": exaone4, "granite": granite, "minicpm": minicpm,
            "smollm3": smollm3, "stablelm": stablelm, "glm": glm, "glm4": glm, "glm4_moe": glm4_moe, "cohere": cohere,
            "cohere2": cohere2, "helium": helium, "seed_oss": seed_oss, "arcee": llama, "ernie4_5": ernie4_5,
            "bloom": bloom, "mpt": mpt, "deepseek_v2": deepseek_v2, "deepseek_v3": deepseek_v3, "minicpm3": minicpm3,
            "mixtral": mixtral, "olmoe": olmoe, "gpt_oss": gpt_oss, "granitemoe": granitemoe, "granitemoeshared": granitemoeshared,
            "llama4_text": llama4_text, "ernie4_5_moe": ernie4_5_moe, "minimax_m2": minimax_m2, "apertus": apertus,
            "ministral3": ministral3, "hunyuan_v1_dense": hunyuan, "hunyuan_v1_moe": hunyuan_moe, "moe_llava_llama": moe_llava, "deepseek_v32": deepseek_v32,
            "glm_moe_dsa": glm_moe_dsa, "openai-gpt": openai_gpt, "cwm": cwm, "internlm3": internlm3, "iquestcoder": lambda d: dict(llama(d), head_dim=d.head), "jais2": jais2,
            "hyperclovax": hyperclovax, "flex_olmo": flex_olmo, "mellum": mellum, "dots1": dots1, "exaone_moe": exaone_moe,
            "solar_open": solar_open, "glm4_moe_lite": glm4_moe_lite, "youtu": youtu, "hy_v3": hy_v3,
            "codegen": codegen, "gpt_neo": gpt_neo, "xglm": xglm, "nanochat": nanochat, "granite_swa": granite_swa,
            "granitemoe_swa": granitemoe_swa, "sarvam_moe": sarvam_moe, "sarvam_mla": deepseek_v3, "axk1": axk1, "afmoe": afmoe,
            "laguna": laguna, "mimo_v2_flash": mimo_v2_flash, "cohere2_moe": cohere2_moe, "dbrx": dbrx, "longcat_flash": longcat_flash,
            "diffllama": diffllama, "gpt_neox_japanese": gpt_neox_japanese}
FAMILIES = DECODERS | ENCODERS
# Of which random strategies draw some beside the others.
RECURRENT = {"mamba2": mamba2, "granitemoehybrid": granitemoehybrid, "nemotron_h": nemotron_h, "qwen3_next": qwen3_next, "lfm2": lfm2,
             "qwen3_5_text": qwen3_5, "qwen3_5_moe_text": qwen3_5_moe, "lfm2_moe": lfm2_moe, "bamba": bamba, "falcon_h1": falcon_h1,
             "lfm3": lfm3, "recurrent_gemma": recurrent_gemma, "mamba": mamba, "falcon_mamba": falcon_mamba, "jamba": jamba, "kimi_linear": kimi_linear, "bailing_hybrid": bailing_hybrid,
             "minimax": minimax}
# Not for every strategy: what layers take of tokens crosses stages, which zero-bubble schedules refuse.
APART = {"gemma4_text": gemma4}
# Not drawn, but golden models: text parts of larger models, families that transformers lacks or trains by chance, and olmo_hybrid,
# whose small models turn roundings to 32 bits into the fourth digit of a gradient's norm.
UNDRAWN = {"baichuan", "chatglm", "exaone", "internlm2", "nemotron-nas", "phi3small", "step3p5", "llava", "llava_llama", "mimo", "moe_llava_mistral", "mllama_text_model", "olmo_hybrid", "phi3_v", "phimoe", "qwen",
           "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl", "qwen2_vl_text", "qwen3_5_moe", "qwen3_vl_moe_text", "qwen3_vl_text", "xverse"}
# Of a source and a target.
PAIRED = {"t5": t5, "mt5": t5, "umt5": t5, "bart": bart, "blenderbot": bart, "marian": bart, "pegasus": bart,
          "mbart": bart, "plbart": bart, "blenderbot-small": bart, "m2m_100": m2m_100}
# Whose routers' scores are sigmoids, and whose routers have a bias by which they choose.
SIGMOIDS = {"deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe", "llama4_text", "minimax_m2", "dots1", "exaone_moe", "solar_open",
            "glm4_moe_lite", "hy_v3", "sarvam_moe", "sarvam_mla", "axk1", "afmoe", "laguna", "mimo_v2_flash", "kimi_linear", "bailing_hybrid"}
BIASED = SIGMOIDS - {"llama4_text"} | {"ernie4_5_moe", "longcat_flash"}
LEAST_HEAD = {"cohere": 8, "phi": 8, "persimmon": 8}  # Heads are normalized about their mean: two elements would be signs.


def random_config(pick, family=None, layers=None, vocabularies=(256, 257, 300, 331)):
    """A configuration of `family`, or of any."""
    family, vocabulary = family or pick(list(FAMILIES)), pick(vocabularies)
    sizes = Draw(pick, vocabulary, layers, LEAST_HEAD.get(family, 2))
    config = (FAMILIES | RECURRENT | PAIRED | APART)[family](sizes)
    if "init_std" not in config:
        config["initializer_range"] = 0.2
    config = {key: value for key, value in config.items() if (key, value) != ("init_std", None)}
    return {"model_type": family, "vocab_size": vocabulary, **config}


def task_of(config):
    """The compiler's options for what the family is trained to do."""
    return {"mlm": 0.3, "mask_id": 3} if config["model_type"] in ENCODERS else {}


def layers_of(config):
    return next((config[key] for key in ("num_hidden_layers", "num_layers", "n_layers") if config.get(key)), 0)


def experts_of(config):
    keys = "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"
    config = config | config.get("ffn_config", {})
    if "moe" in config:  # Of which a mesh axis divides the number in each layer.
        return math.gcd(*config["moe"]["num_experts"])
    return next((config[key] for key in keys if config.get(key)), 0)


def has_routers(config):
    """Whether some layer has experts."""
    if "moe_layers" in config:
        return len(config["moe_layers"]) > 0
    if "expert_layer_period" in config:
        period, offset = config["expert_layer_period"], config["expert_layer_offset"]
        return experts_of(config) > 1 and any(i % period == offset for i in range(config["num_hidden_layers"]))
    if "mlp_layer_types" in config:
        return "sparse" in config["mlp_layer_types"]
    dense, every = config.get("mlp_only_layers") or [], config.get("decoder_sparse_step") or config.get("interleave_moe_layer_step", 1)
    every = config.get("moe_layer_interval") or every
    first, last, layers = config.get("first_k_dense_replace", config.get("num_dense_layers", 0)), config.get("moe_layer_end_index", -1), layers_of(config)
    first = config.get("moe_layer_start_index", first)
    return experts_of(config) > 0 and any(
        first <= i <= (last if last >= 0 else layers - 1) and (i + 1) % every == 0 and i not in dense for i in range(layers))


def has_norms(config):
    """Whether norms have weights."""
    return config["model_type"] not in ("olmo", "nanochat") and config.get("layer_norm_elementwise_affine", True)


def heads_of(config):
    keys = "n_head", "n_heads", "num_heads", "attention_heads", "num_attention_heads"
    return next(config[key] for key in keys if config.get(key))


def set_dropout(config, probability):
    """Gives every kind of dropout that the configuration names this probability, but for those that its layers do not have."""
    absent = {("apertus", "hidden_dropout"), ("diffllama", "attention_dropout")}
    config.update({key: probability for key in config if "drop" in key and (config["model_type"], key) not in absent})
