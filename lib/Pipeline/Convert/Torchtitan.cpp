//===- Torchtitan.cpp - torchtitan's TOML -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Keys and defaults as of torchtitan's last release with TOML files
// (torchtitan/config/job_config.py, early 2026). Its mesh is, outermost first,
// pipeline, replicate, shard, context, tensor.
//
//===----------------------------------------------------------------------===//
#include "Converter.h"

#include <algorithm>

using namespace llvm;

namespace meshwright::convert {

static constexpr Rule torchtitanRules[] = {
    {"training.max_norm", Rule::Run, "grad-clip"},
    {"metrics.log_freq", Rule::Run, "log-every"},
    {"debug.seed training.seed", Rule::Run, "seed"},
    {"hf_transformers.* model.name model.flavor model.hf_assets_path model.tokenizer_path", Rule::Describe,
     "MODEL is the config.json of this model"},
    {"model.converters", Rule::Nearest, "--precision fp8 is not supported on GPUs yet; bf16 comes nearest"},
    {"model.print_after_conversion quantize.* float8.* mx.*", Rule::Ignore, "about model.converters"},
    {"training.enable_cpu_offload", Rule::Nearest,
     "--offload optimizer,parameters keeps layers' parameters, their gradients and all states on the host"},
    {"training.dataset training.dataset_path training.dataloader.*", Rule::Ignore,
     "the executable's --data names tokenized files"},
    {"training.gc_freq training.gc_debug", Rule::Ignore, "there is no garbage collector"},
    {"optimizer.implementation optimizer.fused optimizer.foreach", Rule::Ignore,
     "updates are always fused kernels"},
    {"optimizer.early_step_in_backward", Rule::Nearest, "parameters are updated after the backward"},
    {"parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_split_points", Rule::Nearest,
     "--cuts gives the first layer of each chunk; without it all have equally many"},
    {"parallelism.pipeline_parallel_first_stage_less_layers parallelism.pipeline_parallel_last_stage_less_layers",
     Rule::Nearest, "chunks have equally many layers; --cuts places them by hand"},
    {"parallelism.pipeline_parallel_schedule_csv", Rule::Nearest, "no schedules from files"},
    {"parallelism.pipeline_parallel_expert_parallel_overlap", Rule::Ignore,
     "--overlap auto merges such tasks of dualpipe-v on GPUs"},
    {"parallelism.disable_loss_parallel", Rule::Nearest, "logits stay divided along tensor"},
    {"parallelism.expert_parallel_comm_backend", Rule::Ignore, "all-to-alls are the runtime's own"},
    {"parallelism.enable_compiled_autograd", Rule::Ignore, "everything is compiled"},
    {"activation_checkpoint.*", Rule::Ignore, "--remat is a minimum cut, which needs no such choices"},
    {"checkpoint.*", Rule::Ignore, "checkpoints are consolidated safetensors files that any mesh can load"},
    {"validation.* eval.*", Rule::Ignore, "give the executable --eval-data, with --eval-every and --eval-batches"},
    {"debug.deterministic debug.deterministic_warn_only training.deterministic", Rule::Ignore,
     "runs repeat bit by bit, on GPUs with --deterministic on"},
    {"debug.moe_force_load_balance", Rule::Nearest, "tokens go to the experts that routers choose"},
    {"fault_tolerance.enable", Rule::Nearest, "all ranks run or none; --resume auto restarts a run"},
    {"compile.*", Rule::Ignore, "everything is compiled"},
    {"job.* profiling.* metrics.* comm.* memory_estimation.* fault_tolerance.* experimental.*", Rule::Ignore,
     "logging, profiling, launching"},
};

/// Expert parallelism takes its ranks from those of shard, context and, where experts are not divided by
/// tensor parallelism, tensor; Meshwright's from data-parallel ranks alone.
static void readExperts(Converter &c, Layout &layout) {
  static constexpr StringLiteral key = "parallelism.expert_parallel_degree",
                                 inner = "parallelism.expert_tensor_parallel_degree";
  int64_t experts = c.count(key, 1), divided = c.count(inner, 1);
  if (experts == 1)
    return;
  bool whole = divided == 1 && layout.tensor > 1;
  if (whole && experts % layout.tensor)
    return c.fail(key, "with " + inner + " = 1 it must be a multiple of tensor_parallel_degree, " +
                           Twine(layout.tensor));
  layout.expert = whole ? experts / layout.tensor : experts;
  if (whole)
    c.remark(Fate::Nearest, inner,
             "along tensor each expert is divided, not the list of experts: expert=" + Twine(layout.expert) +
                 " leaves a rank equally many bytes");
  if (layout.context > 1)
    c.remark(Fate::Nearest, key, "its ranks are data-parallel ranks alone, not those of context too");
}

static std::string torchtitanSchedule(Converter &c, const Layout &layout) {
  static constexpr StringLiteral key = "parallelism.pipeline_parallel_schedule",
                                 perStage = "parallelism.pipeline_parallel_layers_per_stage";
  static constexpr StringLiteral names[] = {
      "1F1B=1f1b",           "GPipe=gpipe",    "Interleaved1F1B=interleaved:2", "LoopedBFS=looped", "ZBVZeroBubble=zb-v",
      "DualPipeV=dualpipe-v", "InterleavedZeroBubble=zero"};
  std::string name = c.choice(key, "1f1b", names);
  if (layout.pipe == 1) {
    c.remarkUndivided(1, "pipe", {key, perStage});
    return "";
  }
  if (name == "looped" || name == "zero") {
    c.remark(Fate::Nearest, key,
             name == "zero" ? "interleaved:2, or zb-v, which splits the backward too"
                            : "interleaved:2, which holds fewer activations");
    name = "interleaved:2";
  }
  if (c.has(perStage)) {
    c.count(perStage, 1);
    if (name == "interleaved:2")
      c.remark(Fate::Undecided, perStage,
               "interleaved:V has V = layers / (" + Twine(layout.pipe) + " stages x this) chunks of a stage; V = 2 is "
               "assumed");
  }
  return name;
}

static std::string remat(Converter &c) {
  static constexpr StringLiteral mode = "activation_checkpoint.mode", option = "activation_checkpoint.selective_ac_option";
  static constexpr StringLiteral modes[] = {"none=none", "selective=selective", "full=full", "memory_budget=budget"};
  std::string policy = c.choice(mode, "selective", modes), which = c.text(option, "2");
  if (policy == "budget") {
    c.remark(Fate::Nearest, mode, "selective; --remat auto with --memory-limit BYTES recomputes as little as fits");
    return "selective";
  }
  if (policy != "selective") {
    c.remark(Fate::NoEffect, option, "about mode selective");
    return policy;
  }
  if (which == "1")
    return "full";
  if (which != "op")
    c.remark(Fate::Nearest, c.has(option) ? option : mode,
             "one whole layer in " + which + "; selective recomputes what is cheap in all layers, every:K keeps the input "
             "of one layer in K");
  return "selective";
}

static void readTorchtitanRates(Converter &c) {
  RateSchedule rates;
  rates.steps = c.count("training.steps", 10000);
  rates.warmup = std::min(rates.steps, c.count("lr_scheduler.warmup_steps", 200, 0));
  static constexpr StringLiteral shapes[] = {"linear=linear", "cosine=cosine", "sqrt=1-sqrt"};
  rates.shape = c.choice("lr_scheduler.decay_type", "linear", shapes);
  double share = c.number("lr_scheduler.decay_ratio", -1);
  rates.decay = rates.steps - rates.warmup;
  if (share >= 0)
    rates.decay = std::min(rates.decay, int64_t(std::min(share, 1.0) * double(rates.steps) + 0.5));
  double rate = c.number("optimizer.lr", 8e-4);
  rates.least = rate * c.number("lr_scheduler.min_lr_factor", 0);
  if (c.has("lr_scheduler.total_steps") && c.count("lr_scheduler.total_steps", rates.steps) != rates.steps)
    c.remark(Fate::Nearest, "lr_scheduler.total_steps", "schedules end with the run, at --steps");
  c.runNumber("lr", rate);
  c.writeSchedule(rates);
}

static void readCheckpoints(Converter &c) {
  if (!c.isOn("checkpoint.enable", c.isOn("checkpoint.enable_checkpoint")))
    return;
  std::string folder = c.text("checkpoint.folder", "checkpoint"), inside = c.text("job.dump_folder", "./outputs");
  c.run("save", inside + "/" + folder);
  c.run("save-every", Twine(c.count("checkpoint.interval", 500)));
  if (int64_t kept = c.count("checkpoint.keep_latest_k", 10, 0))
    c.run("keep", Twine(kept));
}

void convertTorchtitan(Converter &c) {
  if (!c.hasTable("parallelism") && !c.hasTable("training") && !c.hasTable("model"))
    return c.fail("", "it has none of [parallelism], [training] and [model], as torchtitan's settings do");
  Layout layout;
  layout.replica = c.count("parallelism.data_parallel_replicate_degree", 1);
  layout.tensor = c.count("parallelism.tensor_parallel_degree", 1);
  layout.pipe = c.count("parallelism.pipeline_parallel_degree", 1);
  layout.context = c.count("parallelism.context_parallel_degree", 1);
  static constexpr StringLiteral shard = "parallelism.data_parallel_shard_degree";
  int64_t degree = c.count(shard, -1, -1);
  if (degree == 0)
    c.fail(shard, "it must be positive, or -1 for all other devices");
  if (degree < 0 || c.givenDevices())
    layout.data = c.dataDevices(layout, c.givenDevices(),
                                "data_parallel_shard_degree = -1 takes all that are left: give --devices N");
  if (degree > 0 && c.givenDevices() && degree != layout.data)
    c.fail(shard, "but --devices leaves " + Twine(layout.data) + " ranks for it; leave --devices out");
  if (degree > 0)
    layout.data = degree;
  readExperts(c, layout);

  int64_t local = c.count("training.local_batch_size", c.count("training.batch_size", 8));
  int64_t step = c.times(local, layout.dataParallel()), global = c.count("training.global_batch_size", -1, -1);
  if (global > 0 && global % step)
    c.fail("training.global_batch_size", "it must be a multiple of local_batch_size times data-parallel ranks, " + Twine(step));
  layout.microbatchSize = local;
  layout.microbatches = global > 0 ? std::max<int64_t>(1, global / step) : 1;
  static constexpr StringLiteral size = "parallelism.pipeline_parallel_microbatch_size";
  int64_t microbatch = c.count(size, 1);
  c.remarkUndivided(layout.pipe, "pipe", {size});
  if (layout.pipe > 1 && local % microbatch) {
    c.fail(size, "it must divide local_batch_size, " + Twine(local));
  } else if (layout.pipe > 1) {
    layout.microbatches = c.times(layout.microbatches, local / microbatch);
    layout.microbatchSize = microbatch;
  }
  c.writeLayout(layout, "parallelism.expert_parallel_degree");
  c.flag("seq", Twine(c.count("training.seq_len", 2048)));

  // Fully sharded over shard and context ranks; DDP without them. With a pipeline, parameters are not
  // freed after the forward by default.
  static constexpr StringLiteral reshards[] = {"default=", "always=3", "never=2"};
  std::string reshard = c.choice("parallelism.fsdp_reshard_after_forward", "", reshards);
  c.writeZero(reshard.empty() ? (layout.pipe > 1 ? 2 : 3) : reshard == "3" ? 3 : 2, layout,
              "parallelism.fsdp_reshard_after_forward");
  if (layout.tensor > 1)
    c.flag("sequence-parallel", "true");
  bool async = c.isOn("parallelism.enable_async_tensor_parallel");
  if (async && layout.tensor > 1)
    c.flag("collective-matmul", "on");
  static constexpr StringLiteral rotations[] = {"allgather=gather", "alltoall=ring"};
  std::string rotation = c.choice("parallelism.context_parallel_rotate_method", "gather", rotations);
  static constexpr StringLiteral balancers[] = {"headtail=zigzag", "ptrr=other", "none=none"};
  std::string balance = c.choice("parallelism.context_parallel_load_balancer", "zigzag", balancers);
  if (layout.context > 1) {
    c.flag("context-parallel", rotation);
    if (balance == "none")
      c.flag("context-balance", "none");
    else if (balance == "other")
      c.remark(Fate::Nearest, "parallelism.context_parallel_load_balancer",
               "zigzag; --context-balance striped balances documents of packed sequences");
  }
  c.remarkUndivided(layout.tensor, "tensor", {"parallelism.enable_async_tensor_parallel"});
  c.remarkUndivided(layout.context, "context",
                    {"parallelism.context_parallel_rotate_method", "parallelism.context_parallel_load_balancer"});
  if (std::string name = torchtitanSchedule(c, layout); !name.empty())
    c.flag("schedule", name);

  static constexpr StringLiteral types[] = {"bfloat16=bf16", "float32=f32", "float16=fp16"};
  std::string precision = c.choice("training.mixed_precision_param", "bf16", types);
  c.flag("precision", precision);
  if (c.choice("training.dtype", "f32", types) == "bf16")
    c.remark(Fate::Nearest, "training.dtype",
             "--precision bf16 keeps f32 master weights, and --moments-dtype bf16 stores moments in bf16");
  if (c.choice("training.mixed_precision_reduce", "f32", types) == "bf16" && precision == "bf16")
    c.flag("grad-dtype", "bf16");
  c.writeRemat(remat(c));
  static constexpr StringLiteral optimizers[] = {"AdamW=adamw", "Adam=adam", "Muon=muon", "SGD=sgd", "Lion=lion"};
  OptimizerNumbers optimizer;
  optimizer.name = c.choice("optimizer.name", "adamw", optimizers);
  if (c.isOn("training.enable_cpu_offload")) {
    c.flag("offload", "optimizer,parameters");
    c.remark(Fate::Nearest, "training.enable_cpu_offload",
             "parameters of layers, their gradients and the optimizer's states go to the host; embeddings stay on the device");
  }

  readTorchtitanRates(c);
  optimizer.beta1 = c.number("optimizer.beta1", 0.9);
  optimizer.beta2 = c.number("optimizer.beta2", 0.95);
  optimizer.eps = c.number("optimizer.eps", 1e-8);
  optimizer.decay = c.number("optimizer.weight_decay", 0.1);
  optimizer.momentum = 0.95;
  c.writeOptimizer(optimizer);
  c.writeDecayOfAll(optimizer);
  if (!c.has("training.max_norm"))
    c.run("grad-clip", "1");
  readCheckpoints(c);
  c.apply(torchtitanRules);
}

} // namespace meshwright::convert
