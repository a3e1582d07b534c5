//===- Megatron.cpp - Megatron-LM's arguments ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Arguments and defaults as of Megatron-LM's megatron/training/arguments.py (2025). Its
// ranks are, outermost first, pipeline, data, context, tensor; experts are divided among
// neighbouring ranks of context and data.
//
//===----------------------------------------------------------------------===//
#include "Converter.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace llvm;

namespace meshwright::convert {

static constexpr Rule megatronRules[] = {
    {"seed", Rule::Run, "seed"},
    {"log-interval", Rule::Run, "log-every"},
    {"overlap-grad-reduce overlap-param-gather overlap-param-gather-with-optimizer-step align-grad-reduce "
     "align-param-gather overlap-p2p-communication overlap-p2p-communication-warmup-flush no-overlap-p2p-communication "
     "delay-grad-reduce delay-wgrad-compute overlap-moe-expert-parallel-comm defer-embedding-wgrad-compute "
     "tp-comm-bulk-dgrad tp-comm-bulk-wgrad tp-comm-overlap-* tp-comm-split-* tp-comm-bootstrap-backend "
     "disable-tp-comm-* async-tensor-model-parallel-allreduce no-async-tensor-model-parallel-allreduce",
     Rule::Ignore, "--overlap auto overlaps communication on GPUs"},
    {"fp8-format fp8 fp8-recipe fp8-param-gather", Rule::Nearest, "--precision fp8 is not supported on GPUs yet; --precision bf16 comes nearest"},
    {"fp4-format", Rule::Nearest, "no types of 4 bits; --precision bf16 comes nearest"},
    {"fp8-* fp4-* first-last-layers-bf16 num-layers-at-*", Rule::Ignore, "about fp8-format"},
    {"rampup-batch-size", Rule::Nearest, "the batch is --batch from the first step on; to ramp it up, compile with --batch-ramp and give the executable "
     "--batch-ramp START+INC:SAMPLES; --steps and --warmup count steps of any size"},
    {"decoupled-lr decoupled-min-lr", Rule::Nearest, "--optimizer-groups 'PATTERN:lr=X' multiplies the rate of embeddings"},
    {"outer-dp-sharding-strategy", Rule::Nearest, "optimizer states are replicated along replica"},
    {"fsdp-* megatron-fsdp-* torch-fsdp2-* no-fsdp-* keep-fsdp-* num-cuda-graph-warmup-steps", Rule::Ignore,
     "buffers and types of FSDP, which are planned"},
    {"optimizer-cpu-offload", Rule::Ignore, "--offload optimizer"},
    {"optimizer-offload-fraction", Rule::Nearest, "all of the optimizer's states go to the host, none is updated there"},
    {"cpu-offloading-num-layers", Rule::Nearest, "--offload activations moves those of all layers"},
    {"decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers account-for-embedding-in-pipeline-split "
     "account-for-loss-in-pipeline-split pipeline-model-parallel-layout",
     Rule::Nearest, "--cuts gives the first layer of each chunk; without it all have equally many"},
    {"microbatch-group-size-per-virtual-pipeline-stage", Rule::Nearest, "groups of as many microbatches as stages"},
    {"distribute-saved-activations", Rule::Nearest, "--sequence-parallel divides what is saved along tensor"},
    {"moe-token-drop-policy", Rule::Nearest, "tokens are dropped by their position"},
    {"moe-router-enable-expert-bias moe-router-bias-update-rate", Rule::Nearest,
     "--router-bias-rate U, for models whose routers have a bias"},
    {"mtp-num-layers", Rule::Nearest, "no multi-token prediction"},
    {"moe-expert-capacity-factor moe-pad-expert-input-to-capacity", Rule::Nearest,
     "--expert-capacity counts tokens of a sequence, not of a microbatch"},
    {"moe-token-dispatcher-type moe-grouped-gemm moe-permute-fusion moe-enable-deepep moe-flex-dispatcher-backend "
     "moe-use-legacy-grouped-gemm moe-router-dtype moe-router-fusion moe-per-layer-logging moe-layer-recompute "
     "moe-extended-tp moe-shared-expert-overlap",
     Rule::Ignore, "experts are grouped matrix products between all-to-alls"},
    {"init-method-xavier-uniform", Rule::Nearest, "weights begin normally distributed, by config.json's initializer_range"},
    {"no-init-method", Rule::Ignore, "weights begin as config.json's initializer_range says"},
    {"apply-query-key-layer-scaling attention-softmax-in-fp32 no-query-key-layer-scaling", Rule::Ignore,
     "softmax is computed in f32"},
    {"apply-layernorm-1p", Rule::Nearest, "weights of norms are stored as they are, not less one"},
    {"data-path train-data-path valid-data-path test-data-path data-args-path data-cache-path mock-data split "
     "dataloader-type num-workers vocab-file merge-file vocab-extra-ids tokenizer-* tiktoken-* "
     "no-create-attention-mask-in-dataloader no-mmap-bin-files num-dataset-builder-threads "
     "train-on-prompt s3-cache-path object-storage-cache-path per-split-data-args-path legacy-tokenizer",
     Rule::Ignore, "the executable's --data names tokenized files"},
    {"reset-position-ids reset-attention-mask", Rule::Nearest,
     "--packed keeps attention within documents, each from position 0 on; the executable's --documents says where they begin"},
    {"eod-mask-loss", Rule::Nearest, "each token counts in the loss, the end of a document too"},
    {"eval-interval eval-iters eval-global-batch-size skip-train", Rule::Ignore,
     "give the executable --eval-data, with --eval-every and --eval-batches"},
    {"load pretrained-checkpoint finetune no-load-* no-save-* use-checkpoint-args exit-on-missing-checkpoint "
     "ckpt-* async-save dist-ckpt-* use-dist-ckpt auto-detect-ckpt-format use-persistent-ckpt-worker ckpt-fully-parallel-* "
     "use-checkpoint-opt_param-scheduler use-checkpoint-opt-param-scheduler override-opt_param-scheduler "
     "override-opt-param-scheduler non-persistent-* retro-* check-weight-hash-across-dp-replicas-interval save-retain-interval",
     Rule::Ignore, "checkpoints are consolidated safetensors files; the executable's --init and --resume load them"},
    {"nproc-per-node nnodes node-rank master-addr master-port rdzv-* standalone max-restarts log-dir redirects tee module "
     "start-method monitor-interval local-ranks-filter role run-path",
     Rule::Ignore, "launching"},
    {"use-tp-pp-dp-mapping", Rule::Nearest,
     "data-parallel ranks lie inside pipeline stages; --mesh lists axes outermost first, data before pipe"},
    {"distributed-backend distributed-timeout-minutes ddp-* use-ring-exchange-p2p local-rank "
     "lazy-mpu-init nccl-* use-nccl-ub use-sharp sharp-enabled-group high-priority-stream-groups disable-symmetric-registration "
     "num-gpus empty-unused-memory-level exit-* manual-gc manual-gc-interval no-barrier-with-level-1-timing "
     "barrier-with-L1-time rank* enable-ft-package calc-ft-timeouts inprocess-restart no-one-logger enable-one-logger",
     Rule::Ignore, "launching, communication and memory of another runtime"},
    {"log-* tensorboard-* wandb-* timing-log-* timing-log-level timing-log-option profile profile-* use-pytorch-profiler "
     "record-memory-history memory-snapshot-path one-logger-* no-log-* straggler-* disable-straggler-on-startup "
     "check-for-nan-in-loss-and-grad no-check-for-nan-in-loss-and-grad check-for-spiky-loss check-for-large-grads "
     "config-logger-dir result-rejected-tracker-filename rerun-mode error-injection-*",
     Rule::Ignore, "logging and profiling"},
    {"use-mcore-models use-legacy-models transformer-impl attention-backend use-flash-attn use-rotary-position-embeddings "
     "bias-gelu-fusion bias-swiglu-fusion bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion no-bias-dropout-fusion "
     "no-masked-softmax-fusion masked-softmax-fusion no-gradient-accumulation-fusion gradient-accumulation-fusion "
     "no-rope-fusion apply-rope-fusion no-persist-layer-norm persist-layer-norm cross-entropy-loss-fusion cross-entropy-fusion-impl "
     "te-rng-tracker enable-cuda-graph external-cuda-graph cuda-graph-* deterministic-mode use-te-rng-tracker "
     "no-position-embedding memory-efficient-layer-norm use-cpu-initialization use-fused-weighted-squared-relu calculate-per-token-loss "
     "accumulate-allreduce-grads-in-fp32 no-data-sharding make-vocab-size-divisible-by padded-vocab-size keep-fp8-weight-transpose-cache "
     "data-parallel-random-init perform-initialization no-initialization model-parallel-* train-sync-interval adlr-autoresume-* adlr-autoresume "
     "enable-experimental fp16-lm-cross-entropy grad-reduce-in-fp32 no-decoupled-*",
     Rule::Ignore, "kernels, sums and padding are Meshwright's own"},
    {"fp32-residual-connection", Rule::Nearest, "activations between layers have the type of --precision"},
    {"start-weight-decay end-weight-decay weight-decay-incr-style", Rule::Ignore, "weight decay does not change over steps"},
    {"rotary-interleaved", Rule::Nearest,
     "rotary embeddings of halves, as transformers has them; weights need their rows permuted"},
    {"encoder-seq-length decoder-seq-length retriever-* bert-* mask-prob short-seq-prob spec", Rule::Nearest,
     "for models of another kind"},
    {"experimental-attention-variant linear-* dsa-* attention-output-gate apply-wd-to-qk-layernorm", Rule::Nearest,
     "not supported; left out"},
    {"use-mup mup-*", Rule::Nearest,
     "--mup-base names the config.json of the base model, whose hidden size is --mup-base-hidden-size"},
    {"step-batch-size-schedule", Rule::Nearest, "the batch is --batch from the first step on"},
    {"verify-integrity async-strategy async-ckpt-* wgrad-deferral-limit test-mode fim-* export-* disable-gloo-process-groups "
     "trust-remote-code disable-bf16-reduced-precision-matmul hf-token",
     Rule::Ignore, "checkpoints, data and tests of another runtime"},
    {"init-method-std num-layers hidden-size ffn-hidden-size num-attention-heads kv-channels group-query-attention num-query-groups "
     "max-position-embeddings position-embedding-type rotary-base rotary-percent rotary-seq-len-interpolation-factor "
     "use-rope-scaling rope-scaling-factor normalization norm-epsilon layernorm-epsilon swiglu squared-relu openai-gelu "
     "disable-bias-linear add-qkv-bias qk-layernorm untie-embeddings-and-output-weights attention-dropout hidden-dropout "
     "vocab-size num-experts moe-ffn-hidden-size moe-router-* moe-shared-expert-* moe-layer-freq multi-latent-attention "
     "q-lora-rank kv-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim mscale mscale-all-dim window-size "
     "softmax-type activation-func-clamp-value glu-linear-offset model-name untie-embeddings moe-n-hash-layers",
     Rule::Describe, "part of MODEL"},
};

/// A number of steps, which may be given as a number of samples.
static int64_t orElse(Converter &c, StringRef key, StringRef samples, int64_t batch, int64_t otherwise) {
  if (c.has(key))
    return c.count(key, otherwise, 0);
  // Sizes in samples may be larger than 32 bits.
  if (!samples.empty() && c.has(samples)) {
    double number = c.number(samples, 0);
    if (batch)
      return int64_t(std::min(number / double(batch), 2e9));
    c.remark(Fate::Undecided, samples, "without --global-batch-size it is no number of steps");
  }
  return otherwise;
}

static void readMegatronRates(Converter &c, int64_t batch) {
  RateSchedule rates;
  rates.steps = orElse(c, "train-iters", "train-samples", batch, 0);
  int64_t ends = orElse(c, "lr-decay-iters", "lr-decay-samples", batch, rates.steps);
  rates.warmup = orElse(c, "lr-warmup-iters", "lr-warmup-samples", batch, 0);
  if (c.has("lr-warmup-fraction"))
    rates.warmup = int64_t(std::min(1.0, c.number("lr-warmup-fraction", 0)) * double(ends) + 0.5);
  if (rates.steps)
    rates.warmup = std::min(rates.warmup, rates.steps);
  if (ends != rates.steps)
    c.remark(Fate::Nearest, c.has("lr-decay-iters") ? "lr-decay-iters" : "lr-decay-samples",
             "schedules end with the run, at --steps; there the rate would reach its minimum at step " + Twine(ends));
  static constexpr StringLiteral shapes[] = {"constant=constant", "linear=linear", "cosine=cosine",
                                             "inverse-square-root=inverse-sqrt", "WSD=wsd"};
  rates.shape = c.choice("lr-decay-style", "linear", shapes);
  rates.decay = rates.steps;
  if (rates.shape == "wsd") {
    static constexpr StringLiteral curves[] = {"exponential=exponential", "linear=linear", "cosine=cosine",
                                               "minus_sqrt=1-sqrt", "1-sqrt=1-sqrt"};
    rates.shape = c.choice("lr-wsd-decay-style", "exponential", curves);
    rates.decay = orElse(c, "lr-wsd-decay-iters", "lr-wsd-decay-samples", batch, 0);
  } else if (rates.shape == "inverse-sqrt" || rates.shape == "constant") {
    rates.decay = 0;
  }
  if (c.number("lr-warmup-init", 0) > 0)
    c.remark(Fate::Nearest, "lr-warmup-init", "the warm-up begins at --lr / --warmup");
  rates.least = c.number("min-lr", 0);
  if (c.has("lr"))
    c.runNumber("lr", c.number("lr", 0));
  c.writeSchedule(rates);
}

static void readMegatronOptimizer(Converter &c) {
  // Its Adam is AdamW.
  static constexpr StringLiteral types[] = {"adam=adamw", "sgd=sgd-momentum", "muon=muon", "dist_muon=muon"};
  OptimizerNumbers numbers;
  numbers.name = c.choice("optimizer", "adamw", types);
  numbers.beta1 = c.number("adam-beta1", 0.9);
  numbers.beta2 = c.number("adam-beta2", 0.999);
  numbers.eps = c.number("adam-eps", 1e-8);
  numbers.decay = c.number("weight-decay", 0.01);
  static constexpr StringLiteral styles[] = {"constant=constant", "linear=changes", "cosine=changes"};
  static constexpr StringLiteral style = "weight-decay-incr-style";
  if (c.choice(style, "constant", styles) == "changes") {
    numbers.decay = c.number("end-weight-decay", *numbers.decay);
    c.remark(Fate::Nearest, style, "weight decay is that of the end from the first step on");
  }
  numbers.momentum = numbers.name == "muon" ? c.number("muon-momentum", 0.95) : c.number("sgd-momentum", 0.9);
  c.writeOptimizer(numbers);
  static constexpr StringLiteral widths[] = {"fp32=f32", "bf16=bf16", "fp16=fp16", "fp8=fp8"};
  std::string first = c.choice("exp-avg-dtype", "f32", widths), second = c.choice("exp-avg-sq-dtype", "f32", widths);
  bool aware = c.isOn("use-precision-aware-optimizer");
  if (aware && first == "bf16" && second == "bf16")
    c.flag("moments-dtype", "bf16");
  else if (aware && (first != "f32" || second != "f32"))
    c.remark(Fate::Nearest, "use-precision-aware-optimizer", "--moments-dtype is f32 or bf16, for both moments");
  for (StringRef key : {"main-grads-dtype", "main-params-dtype"})
    if (c.has(key) && c.choice(key, "f32", widths) != "f32")
      c.remark(Fate::Nearest, key, "f32; master weights store only the 16 bits that bf16 weights lack");
  if (c.isOn("optimizer-cpu-offload") || c.isOn("cpu-offloading")) {
    auto where = [&](StringRef key) { return c.isOn(key) ? MemorySpace::Host : MemorySpace::Device; };
    c.flag("offload", optionText(Offload{where("optimizer-cpu-offload"), where("cpu-offloading")}));
  }
}

static void readRemat(Converter &c) {
  static constexpr StringLiteral granularities[] = {"full=full", "selective=selective"};
  std::string how = c.choice("recompute-granularity", c.isOn("recompute-activations") ? "selective" : "none", granularities);
  static constexpr StringLiteral methods[] = {"uniform=uniform", "block=block"};
  std::string method = c.choice("recompute-method", "uniform", methods);
  int64_t layers = c.count("recompute-num-layers", 1);
  if (c.has("recompute-modules"))
    c.remark(Fate::Nearest, "recompute-modules", "--remat selective recomputes what is cheap, price:P what costs at most P");
  if (how != "full")
    return c.writeRemat(how);
  if (method == "block")
    c.remark(Fate::Nearest, "recompute-method",
             "full recomputes all layers of a stage; --remat P1,P2,.. has a policy for each stage");
  c.writeRemat(method == "uniform" && layers > 1 ? "every:" + std::to_string(layers) : "full");
}

static std::string megatronSchedule(Converter &c, const Layout &layout) {
  static constexpr StringLiteral layersKey = "num-layers-per-virtual-pipeline-stage", stagesKey = "num-virtual-stages-per-pipeline-rank";
  if (layout.pipe == 1)
    return "";
  int64_t chunks = c.count(stagesKey, 1);
  if (c.has(layersKey)) {
    int64_t inChunk = c.count(layersKey, 1), layers = c.count("num-layers", 0);
    if (!layers || layers % c.times(inChunk, layout.pipe))
      c.fail(layersKey, layers ? "it must divide the " + Twine(layers) + " layers (num-layers) of " + Twine(layout.pipe) + " stages"
                               : Twine("num-layers is missing"));
    else
      chunks = layers / (inChunk * layout.pipe);
  }
  return chunks > 1 ? "interleaved:" + std::to_string(chunks) : "1f1b";
}

static void readContext(Converter &c, Layout &layout, std::string &mesh) {
  static constexpr StringLiteral key = "cp-comm-type";
  static constexpr StringLiteral types[] = {"p2p=ring", "all_gather=gather", "allgather=gather", "a2a=ulysses", "a2a+p2p=hybrid"};
  if (layout.context == 1)
    return;
  std::string how = "ring";
  if (const Setting *type = c.use(key); type && type->kind == Setting::List)
    c.remark(Fate::Nearest, key, "all layers use one form; ring");
  else
    how = c.choice(key, "ring", types);
  if (how == "hybrid") {
    const Setting *sizes = c.use("hierarchical-context-parallel-sizes");
    int64_t heads = 0;
    if (sizes && sizes->items.size() == 2 && !StringRef(sizes->items[0]).getAsInteger(10, heads) && heads > 0 &&
        layout.context % heads == 0)
      mesh = Twine(layout.context / heads).str() + "x" + Twine(heads).str();
    else
      c.fail(key, "hierarchical-context-parallel-sizes must be two numbers whose product is context-parallel-size");
  }
  c.flag("context-parallel", how);
}

/// GPT-2, Llama, Qwen2, Qwen3 and Mixtral, by which of their parts the arguments ask for; nothing for others.
static void readMegatronModel(Converter &c) {
  static constexpr StringLiteral key = "num-layers";
  for (StringRef needed : {"num-layers", "hidden-size", "num-attention-heads", "vocab-size"})
    if (!c.has(needed) || StringRef(c.text(needed)).contains('$'))
      return c.remark(Fate::Model, key, "no config.json can be written: the file does not decide " + needed);
  for (StringRef other : {"multi-latent-attention", "moe-shared-expert-intermediate-size", "moe-layer-freq", "squared-relu",
                          "window-size", "moe-router-score-function", "mtp-num-layers", "spec",
                          "experimental-attention-variant", "attention-output-gate", "use-mup",
                          "moe-router-pre-softmax", "moe-router-topk-scaling-factor", "moe-router-num-groups",
                          "moe-n-hash-layers", "activation-func-clamp-value", "glu-linear-offset",
                          "rotary-seq-len-interpolation-factor"})
    if (c.has(other))
      return c.remark(Fate::Model, key, "no config.json is written for models with " + other);
  static constexpr StringLiteral sums[] = {"vanilla=vanilla", "off-by-one=other", "learnable=other"};
  if (c.choice("softmax-type", "vanilla", sums) == "other")
    return c.remark(Fate::Model, "softmax-type", "no config.json is written for models with attention sinks");
  int64_t layers = c.count("num-layers", 1), width = c.count("hidden-size", 1), heads = c.count("num-attention-heads", 1);
  int64_t vocabulary = c.count("vocab-size", 1);
  bool swiglu = c.isOn("swiglu"), bias = !c.isOn("disable-bias-linear"), untied = c.isOn("untie-embeddings-and-output-weights");
  static constexpr StringLiteral norms[] = {"LayerNorm=layer", "RMSNorm=rms"};
  static constexpr StringLiteral positions[] = {"learned_absolute=learned", "rope=rope", "none=none", "yarn=other",
                                                "mrope=other", "relative=other"};
  std::string norm = c.choice("normalization", "layer", norms);
  std::string position = c.isOn("use-rotary-position-embeddings") ? "rope" : "learned";
  position = c.choice("position-embedding-type", position, positions);
  int64_t hidden = c.count("ffn-hidden-size", swiglu ? c.times(width, 8) / 3 / 64 * 64 : c.times(width, 4));
  int64_t length = c.count("max-position-embeddings", c.count("seq-length", 1024));
  double epsilon = c.number("norm-epsilon", c.number("layernorm-epsilon", 1e-5));
  double dropped = c.number("hidden-dropout", 0.1), droppedAttention = c.number("attention-dropout", 0.1);
  bool hasOwnHeads = c.has("kv-channels") && c.times(c.count("kv-channels", 1), heads) != width;
  if (norm == "layer" && position == "learned" && !swiglu && bias && !untied && hidden == c.times(width, 4) &&
      !c.has("num-experts") && !c.has("group-query-attention") && !c.isOn("qk-layernorm") && !hasOwnHeads) {
    // GELU is exact unless it is fused with the bias.
    bool isExact = c.isOn("no-bias-gelu-fusion") && !c.isOn("openai-gelu");
    c.model = json::Object{{"model_type", "gpt2"},
                           {"architectures", json::Array{"GPT2LMHeadModel"}},
                           {"n_layer", layers},
                           {"n_embd", width},
                           {"n_head", heads},
                           {"n_positions", length},
                           {"vocab_size", vocabulary},
                           {"activation_function", isExact ? "gelu" : "gelu_new"},
                           {"initializer_range", c.number("init-method-std", 0.02)},
                           {"layer_norm_epsilon", epsilon},
                           {"attn_pdrop", droppedAttention},
                           {"embd_pdrop", dropped},
                           {"resid_pdrop", dropped}};
    return;
  }
  bool qkvBias = c.isOn("add-qkv-bias"), qkNorm = c.isOn("qk-layernorm"), experts = c.has("num-experts");
  StringRef family = experts ? "mixtral" : qkNorm ? "qwen3" : qkvBias ? "qwen2" : "llama";
  bool isLlamaLike = norm == "rms" && position == "rope" && swiglu && !bias && int(experts) + qkNorm + qkvBias <= 1 &&
                     dropped == 0 && c.number("rotary-percent", 1) == 1;
  if (!isLlamaLike)
    return c.remark(Fate::Model, key,
                    "no config.json is written: the model is neither GPT-2 (LayerNorm, learned positions, GELU, biases, tied "
                    "embeddings) nor like Llama (RMSNorm, rope, swiglu, no biases, hidden-dropout 0)");
  static constexpr StringLiteral classes[] = {"mixtral=MixtralForCausalLM", "qwen3=Qwen3ForCausalLM", "qwen2=Qwen2ForCausalLM",
                                              "llama=LlamaForCausalLM"};
  json::Object model{{"model_type", family},
                     {"num_hidden_layers", layers},
                     {"hidden_size", width},
                     {"intermediate_size", experts ? c.count("moe-ffn-hidden-size", hidden) : hidden},
                     {"num_attention_heads", heads},
                     {"num_key_value_heads", c.isOn("group-query-attention") ? c.count("num-query-groups", 1) : heads},
                     {"vocab_size", vocabulary},
                     {"max_position_embeddings", length},
                     {"rope_theta", c.number("rotary-base", 10000)},
                     {"rms_norm_eps", epsilon},
                     {"initializer_range", c.number("init-method-std", 0.02)},
                     {"hidden_act", "silu"},
                     {"tie_word_embeddings", !untied},
                     {"attention_dropout", droppedAttention}};
  for (StringRef entry : classes)
    if (entry.split('=').first == family)
      model["architectures"] = json::Array{entry.split('=').second};
  if (c.has("kv-channels")) {
    int64_t head = c.count("kv-channels", 1);
    if (family == "qwen3" || c.times(head, heads) != width)
      model["head_dim"] = head;
  }
  if (experts) {
    model["num_local_experts"] = c.count("num-experts", 1);
    model["num_experts_per_tok"] = c.count("moe-router-topk", 2);
  }
  if (c.isOn("use-rope-scaling"))
    model["rope_scaling"] = json::Object{{"rope_type", "llama3"},
                                         {"factor", c.number("rope-scaling-factor", 8)},
                                         {"low_freq_factor", 1.0},
                                         {"high_freq_factor", 4.0},
                                         {"original_max_position_embeddings", 8192}};
  c.model = std::move(model);
}

static void readRouters(Converter &c, const Layout &layout) {
  if (!c.has("num-experts"))
    return;
  static constexpr StringLiteral type = "moe-router-load-balancing-type";
  static constexpr StringLiteral kinds[] = {"aux_loss=switch", "seq_aux_loss=sequence", "none=none", "sinkhorn=other",
                                            "global_aux_loss=switch"};
  std::string kind = "other";
  if (const Setting *given = c.use(type); !given || given->kind != Setting::List)
    kind = c.choice(type, "switch", kinds);
  double factor = c.number("moe-aux-loss-coeff", 0);
  if (kind == "other")
    c.remark(Fate::Nearest, type, "--aux-loss switch, sequence, hf or gshard");
  else if (kind != "none" && factor > 0) {
    c.flag("aux-loss", kind);
    c.flag("aux-loss-coef", c.numberText(factor));
    if (kind == "switch" && layout.microbatches > 1)
      c.flag("aux-scope", "microbatch");
  }
  if (double z = c.number("moe-z-loss-coeff", 0); z > 0)
    c.flag("z-loss", c.numberText(z));
}

static void readZero(Converter &c, const Layout &layout) {
  static constexpr StringLiteral strategies[] = {"no_shard=0", "optim=1", "optim_grads=2", "optim_grads_params=3"};
  std::string level = c.isOn("use-distributed-optimizer") ? "1" : "0";
  bool fsdp = c.isOn("use-megatron-fsdp") || c.isOn("use-custom-fsdp");
  std::string strategy = c.choice("data-parallel-sharding-strategy", "0", strategies);
  if (fsdp)
    level = strategy;
  if (c.isOn("use-torch-fsdp2"))
    level = "3";
  c.writeZero(level[0] - '0', layout, "use-distributed-optimizer");
}

void convertMegatron(Converter &c) {
  bool known = false;
  for (StringRef key : {"tensor-model-parallel-size", "pipeline-model-parallel-size", "micro-batch-size", "global-batch-size",
                        "num-layers", "context-parallel-size", "use-distributed-optimizer"})
    known |= c.has(key);
  if (!known)
    return c.fail("", "it has none of the arguments --tensor-model-parallel-size, --pipeline-model-parallel-size, "
                      "--micro-batch-size, --global-batch-size and --num-layers, as launch scripts of Megatron-LM do");
  Layout layout;
  layout.tensor = c.count("tensor-model-parallel-size", 1);
  layout.pipe = c.count("pipeline-model-parallel-size", 1);
  layout.context = c.count("context-parallel-size", 1);
  layout.expert = c.count("expert-model-parallel-size", 1);
  int64_t all = c.givenDevices();
  if (!all && c.has("nproc-per-node"))
    all = c.times(c.count("nproc-per-node", 1), c.count("nnodes", 1));
  layout.data = c.dataDevices(layout, all, "give --devices N; arguments of torchrun, --nproc_per_node and --nnodes, are not in it");
  // Each instance of the distributed optimizer shards within its ranks.
  static constexpr StringLiteral instances = "num-distributed-optimizer-instances";
  if (int64_t copies = c.count(instances, 1); copies > 1 && layout.data % copies == 0) {
    layout.replica = copies;
    layout.data /= copies;
  } else if (copies > 1) {
    c.fail(instances, "it must divide the " + Twine(layout.data) + " data-parallel ranks");
  }
  int64_t inner = c.count("expert-tensor-parallel-size", layout.tensor);
  if (layout.expert > 1 && inner != layout.tensor)
    c.remark(Fate::Nearest, "expert-tensor-parallel-size", "experts are divided along tensor, by " + Twine(layout.tensor));
  if (layout.expert > 1 && layout.context > 1)
    c.remark(Fate::Nearest, "expert-model-parallel-size", "its ranks are data-parallel ranks alone, not those of context too");

  layout.microbatchSize = c.count("micro-batch-size", 1);
  int64_t step = c.times(layout.microbatchSize, layout.dataParallel()), batch = c.count("global-batch-size", step);
  if (batch % step)
    c.fail("global-batch-size", "it must be a multiple of micro-batch-size times data-parallel ranks, " + Twine(step) +
                                    "; --devices gives another number of ranks");
  layout.microbatches = std::max<int64_t>(1, batch / step);
  std::string parts;
  readContext(c, layout, parts);
  c.writeLayout(layout, "expert-model-parallel-size");
  if (!parts.empty())
    for (auto &[name, value] : c.flags)
      if (name == "mesh") {
        std::string whole = "context=" + std::to_string(layout.context);
        value.replace(value.find(whole), whole.size(), "context=" + parts);
      }
  if (c.has("seq-length"))
    c.flag("seq", Twine(c.count("seq-length", 1)));
  readZero(c, layout);
  if (c.isOn("sequence-parallel") && layout.tensor > 1)
    c.flag("sequence-parallel", "true");
  if (c.isOn("tp-comm-overlap") && layout.tensor > 1)
    c.flag("collective-matmul", "on");
  if (std::string name = megatronSchedule(c, layout); !name.empty())
    c.flag("schedule", name);
  c.remarkUndivided(layout.tensor, "tensor", {"sequence-parallel", "tp-comm-overlap"});
  c.remarkUndivided(layout.pipe, "pipe", {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank"});
  c.remarkUndivided(layout.context, "context", {"cp-comm-type", "hierarchical-context-parallel-sizes"});

  bool bf16 = c.isOn("bf16"), fp16 = c.isOn("fp16");
  if (bf16 && fp16)
    c.fail("fp16", "bf16 is given too; keep one of them");
  c.flag("precision", bf16 ? "bf16" : fp16 ? "fp16" : "f32");
  if (c.isOn("grad-reduce-in-bf16") && bf16)
    c.flag("grad-dtype", "bf16");
  readRemat(c);
  readRouters(c, layout);
  readMegatronRates(c, batch);
  readMegatronOptimizer(c);
  c.runNumber("grad-clip", c.number("clip-grad", 1));
  if (fp16) {
    if (c.has("loss-scale")) {
      c.runNumber("initial-loss-scale", c.number("loss-scale", 1));
      c.remark(Fate::Nearest, "loss-scale", "the loss scale begins there and stays dynamic");
    } else {
      c.runNumber("initial-loss-scale", c.number("initial-loss-scale", 4294967296.0));
    }
    c.runNumber("min-loss-scale", c.number("min-loss-scale", 1, 1));
    c.run("loss-scale-window", Twine(c.count("loss-scale-window", 1000)));
    c.run("hysteresis", Twine(c.count("hysteresis", 2)));
  }
  if (c.has("save") && !StringRef(c.text("save")).contains('$')) {
    c.run("save", c.text("save"));
    if (c.has("save-interval"))
      c.run("save-every", Twine(c.count("save-interval", 1)));
  } else {
    c.remark(Fate::Undecided, "save", "the file does not decide this folder; the executable's --save");
    c.remark(Fate::NoEffect, "save-interval", "the executable's --save-every, with --save");
  }
  readMegatronModel(c);
  c.apply(megatronRules);
}

} // namespace meshwright::convert
