//===- Nanotron.cpp - nanotron's YAML -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Keys as of nanotron's src/nanotron/config (2025). Its ranks are, outermost first,
// pipeline, data, context, tensor. A model_config has the keys of transformers'
// LlamaConfig or Qwen2Config, so it becomes a config.json.
//
//===----------------------------------------------------------------------===//
#include "Converter.h"

#include <algorithm>

using namespace llvm;

namespace meshwright::convert {

static constexpr Rule nanotronRules[] = {
    {"general.seed", Rule::Run, "seed"},
    {"logging.iteration_step_info_interval", Rule::Run, "log-every"},
    {"parallelism.tp_recompute_allgather", Rule::Ignore,
     "what sequence parallelism gathers is gathered again in the backward, which --remat plans"},
    {"optimizer.optimizer_factory.torch_adam_is_fused optimizer.torch_adam_is_fused", Rule::Ignore, "updates are always fused kernels"},
    {"model.init_method.path", Rule::Ignore, "the executable's --init names the weights"},
    {"model.init_method.use_mup", Rule::Nearest, "no spectral muP; standard initialization"},
    {"model.init_method.*", Rule::Ignore, "weights begin as config.json's initializer_range says"},
    {"model.make_vocab_size_divisible_by", Rule::Ignore, "vocabularies are padded where a mesh asks for it"},
    {"model.ddp_bucket_cap_mb", Rule::Ignore, "gradients are reduced layer by layer"},
    {"model.model_config.moe_config.*", Rule::Describe, "MODEL is a mixture of experts such as qwen2_moe"},
    {"model.model_config.z_loss_enabled", Rule::Nearest, "no z-loss of the logits; --z-loss is of routers"},
    {"model.model_config.z_loss_coefficient", Rule::Ignore, "about z_loss_enabled"},
    {"model.model_config._attn_implementation model.model_config._fused_rms_norm "
     "model.model_config._fused_rotary_emb model.model_config._use_qkv_packed model.model_config.log_attn_probs "
     "model.model_config.ring_attn_heads_k_stride model.model_config.flex_attention_mask "
     "model.model_config.rope_seq_len_interpolation_factor",
     Rule::Ignore, "kernels are Meshwright's own"},
    {"model.model_config._use_doc_masking", Rule::Nearest, "--packed keeps attention within documents"},
    {"model.model_config.no_rope_layer model.model_config.sliding_window_size", Rule::Nearest,
     "not part of the config.json that is written"},
    {"model.model_config.*", Rule::Describe, "part of MODEL"},
    {"data_stages data.*", Rule::Ignore, "the executable's --data names tokenized files"},
    {"tokenizer.*", Rule::Ignore, "'meshwright tokenize' reads it"},
    {"checkpoints.*", Rule::Ignore, "checkpoints are consolidated safetensors files that any mesh can load"},
    {"tokens.limit_test_batches tokens.limit_val_batches tokens.val_check_interval", Rule::Ignore,
     "give the executable --eval-data, with --eval-every and --eval-batches"},
    {"general.* logging.* metrics_logging metrics_logging.* profiler profiler.* lighteval lighteval.* s3_upload s3_upload.*",
     Rule::Ignore, "logging, profiling, evaluation by other programs"},
    {"tokenizer checkpoints", Rule::Ignore, "empty"},
};

static constexpr StringLiteral excludedKey = "optimizer.weight_decay_exclude_named_params";

/// The schedule ends with the run, or the rate is constant at its minimum from there on.
static void readNanotronRates(Converter &c) {
#define RATES "optimizer.learning_rate_scheduler."
  RateSchedule rates;
  rates.steps = c.count("tokens.train_steps", 0);
  if (!rates.steps)
    c.fail("", "tokens.train_steps is missing");
  double rate = c.number(RATES "learning_rate", 3e-4);
  rates.warmup = std::min(rates.steps, c.count(RATES "lr_warmup_steps", 0, 0));
  static constexpr StringLiteral starts[] = {"linear=linear", "constant=constant"};
  if (c.choice(RATES "lr_warmup_style", "linear", starts) == "constant") {
    c.remark(Fate::Nearest, RATES "lr_warmup_style", "no warm-up: the rate is constant");
    rates.warmup = 0;
  }
  static constexpr StringLiteral shapes[] = {"linear=linear", "cosine=cosine", "1-sqrt=1-sqrt"};
  rates.shape = c.choice(RATES "lr_decay_style", "linear", shapes);
  int64_t start = c.count(RATES "lr_decay_starting_step", rates.warmup, 0);
  rates.decay = std::max<int64_t>(0, rates.steps - start);
  if (int64_t decay = c.count(RATES "lr_decay_steps", rates.steps - rates.warmup, 0); decay != rates.decay)
    c.remark(Fate::Nearest, c.has(RATES "lr_decay_steps") ? RATES "lr_decay_steps" : RATES "lr_decay_starting_step",
             "the decay ends with the run: " + Twine(rates.decay) + " steps from step " + Twine(start) + " on");
  rates.least = c.number(RATES "min_decay_lr", rate);
  if (rates.least == rate)
    rates.shape = "constant";
  c.runNumber("lr", rate);
  c.writeSchedule(rates);
#undef RATES
}

/// The keys that transformers has too.
static void readNanotronModel(Converter &c) {
#define MODEL "model.model_config."
  bool llama = c.isOn(MODEL "is_llama_config"), qwen = c.isOn(MODEL "is_qwen2_config");
  static constexpr StringLiteral counts[] = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                             "vocab_size",  "max_position_embeddings"};
  if (!llama && !qwen)
    return;
  json::Object model{{"model_type", qwen ? "qwen2" : "llama"},
                     {"architectures", json::Array{qwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}}};
  for (StringRef name : counts) {
    int64_t value = c.count((MODEL + name).str(), 0);
    if (!value)
      return c.remark(Fate::Model, qwen ? MODEL "is_qwen2_config" : MODEL "is_llama_config",
                      "no config.json can be written without " + name);
    model[name] = value;
  }
  int64_t heads = c.count(MODEL "num_attention_heads", 1);
  model["num_key_value_heads"] = c.count(MODEL "num_key_value_heads", heads);
  model["rms_norm_eps"] = c.number(MODEL "rms_norm_eps", 1e-6);
  model["rope_theta"] = c.number(MODEL "rope_theta", 10000);
  model["hidden_act"] = c.text(MODEL "hidden_act", "silu");
  // Weights begin as init_method says, whatever the model's own number is.
  model["initializer_range"] = c.number("model.init_method.std", c.number(MODEL "initializer_range", 0.02));
  model["tie_word_embeddings"] = c.isOn(MODEL "tie_word_embeddings");
  model["attention_dropout"] = 0.0;
  bool bias = c.isOn(MODEL "attention_bias");
  if (!qwen)
    model["attention_bias"] = bias;
  else if (!bias)
    c.remark(Fate::Nearest, MODEL "is_qwen2_config", "qwen2 has biases of q, k and v; llama in place of it has none");
  if (qwen && !bias) {
    model["model_type"] = "llama";
    model["architectures"] = json::Array{"LlamaForCausalLM"};
  }
  if (c.isOn(MODEL "rope_interleaved"))
    c.remark(Fate::Nearest, MODEL "rope_interleaved",
             "rotary embeddings of halves, as transformers has them; weights need their rows permuted");
  if (const Setting *scaling = c.use(MODEL "rope_scaling"); scaling && !scaling->isOff())
    c.fail(MODEL "rope_scaling", "it must be a mapping or null");
  json::Object scaling;
  for (StringRef name : {"rope_type", "type"})
    if (std::string key = (MODEL "rope_scaling." + name).str(); c.has(key))
      scaling[name] = c.text(key);
  for (StringRef name : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
    if (std::string key = (MODEL "rope_scaling." + name).str(); c.has(key))
      scaling[name] = c.number(key, 1);
  if (!scaling.empty())
    model["rope_scaling"] = std::move(scaling);
  if (c.has(MODEL "moe_config.num_experts"))
    return; // Experts are not in transformers' two configurations.
  c.model = std::move(model);
#undef MODEL
}

static bool usesRing(Converter &c) {
  return c.text("model.model_config._attn_implementation", "llama3_ring_attention") != "llama3_ring_attention";
}

void convertNanotron(Converter &c) {
  if (!c.has("parallelism.dp") || !c.has("parallelism.tp") || !c.has("parallelism.pp"))
    return c.fail("", "it has no parallelism.dp, tp and pp, as nanotron's settings do");
  Layout layout;
  layout.data = c.count("parallelism.dp", 1);
  layout.tensor = c.count("parallelism.tp", 1);
  layout.pipe = c.count("parallelism.pp", 1);
  layout.context = c.count("parallelism.context_parallel_size", 1);
  layout.expert = c.count("parallelism.expert_parallel_size", 1);
  int64_t all = c.times(c.times(layout.data, layout.tensor), c.times(layout.pipe, layout.context));
  if (c.givenDevices() && c.givenDevices() != all)
    c.fail("", "its parallel sizes are of " + Twine(all) + " devices; leave out --devices " + Twine(c.givenDevices()));
  layout.microbatchSize = c.count("tokens.micro_batch_size", 1);
  layout.microbatches = c.count("tokens.batch_accumulation_per_replica", 1);
  c.writeLayout(layout, "parallelism.expert_parallel_size");
  c.flag("seq", Twine(c.count("tokens.sequence_length", 2048)));

  static constexpr StringLiteral stages[] = {"0=0", "1=1"};
  c.writeZero(c.choice("optimizer.zero_stage", "0", stages) == "1", layout, "optimizer.zero_stage");
  static constexpr StringLiteral modes[] = {"ALL_REDUCE=", "REDUCE_SCATTER=scatter"};
  bool scatters = !c.choice("parallelism.tp_mode", "", modes).empty();
  bool async = c.isOn("parallelism.tp_linear_async_communication");
  if (layout.tensor > 1 && scatters)
    c.flag("sequence-parallel", "true");
  if (layout.tensor > 1 && async && scatters)
    c.flag("collective-matmul", "on");
  else if (layout.tensor > 1 && async)
    c.remark(Fate::NoEffect, "parallelism.tp_linear_async_communication", "it overlaps tp_mode REDUCE_SCATTER");
  c.remarkUndivided(layout.tensor, "tensor", {"parallelism.tp_mode", "parallelism.tp_linear_async_communication"});
  c.remarkUndivided(layout.pipe, "pipe", {"parallelism.pp_engine"});
  if (layout.context > 1)
    c.flag("context-parallel", usesRing(c) ? "ring" : "gather");
  static constexpr StringLiteral engines[] = {"1f1b=1f1b", "afab=gpipe"};
  std::string engine = c.choice("parallelism.pp_engine", "gpipe", engines);
  if (layout.pipe > 1)
    c.flag("schedule", engine);

  static constexpr StringLiteral types[] = {"bfloat16=bf16", "float32=f32", "float16=fp16"};
  std::string precision = c.choice("model.dtype", "bf16", types);
  c.flag("precision", precision);
  if (!c.isOn("optimizer.accumulate_grad_in_fp32", true) && precision == "bf16")
    c.flag("grad-dtype", "bf16");
  c.writeRemat(c.isOn("parallelism.recompute_layer") ? "full" : "none");

#define FACTORY "optimizer.optimizer_factory."
  static constexpr StringLiteral optimizers[] = {"adamW=adamw", "sgd=sgd"};
  OptimizerNumbers optimizer;
  optimizer.name = c.choice(FACTORY "name", "adamw", optimizers);
  optimizer.beta1 = c.number(FACTORY "adam_beta1", c.number("optimizer.adam_beta1", 0.9));
  optimizer.beta2 = c.number(FACTORY "adam_beta2", c.number("optimizer.adam_beta2", 0.95));
  optimizer.eps = c.number(FACTORY "adam_eps", c.number("optimizer.adam_eps", 1e-8));
  optimizer.decay = c.number("optimizer.weight_decay", 0);
  readNanotronRates(c);
  c.writeOptimizer(optimizer);
  if (const Setting *excluded = c.has(excludedKey) ? c.use(excludedKey) : nullptr;
      !excluded || excluded->isOff())
    c.writeDecayOfAll(optimizer);
  else
    c.remark(Fate::Nearest, excludedKey,
             "--optimizer-groups 'PATTERN:decay=0;*:decay=1' has patterns of names in Hugging Face checkpoints; "
             "without it matrices decay and vectors do not");
  c.runNumber("grad-clip", c.number("optimizer.clip_grad", 0));
#undef FACTORY
  if (c.has("checkpoints.checkpoints_path")) {
    c.run("save", c.text("checkpoints.checkpoints_path", "checkpoints"));
    if (c.has("checkpoints.checkpoint_interval"))
      c.run("save-every", Twine(c.count("checkpoints.checkpoint_interval", 1)));
  }
  readNanotronModel(c);
  c.apply(nanotronRules);
}

} // namespace meshwright::convert
