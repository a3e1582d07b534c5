//===- DeepSpeed.cpp - DeepSpeed's JSON ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Keys as of DeepSpeed's documentation of its configuration (2025). The values "auto",
// which Hugging Face's Trainer fills in, decide nothing.
//
//===----------------------------------------------------------------------===//
#include "Converter.h"

#include <cmath>

using namespace llvm;

namespace meshwright::convert {

static constexpr Rule deepSpeedRules[] = {
    {"steps_per_print", Rule::Run, "log-every"},
    {"zero_optimization.offload_optimizer.ratio", Rule::Nearest, "all of the optimizer's states go to the host"},
    {"zero_optimization.offload_param.* zero_optimization.offload_optimizer.*", Rule::Ignore,
     "buffers for copies; --offload-buffer is Meshwright's"},
    {"zero_optimization.zero_hpz_partition_size", Rule::Nearest,
     "no second copy of parameters within a node; --mesh replica=R,data=S (HSDP) shards within S ranks"},
    {"zero_optimization.zero_quantized_weights zero_optimization.zero_quantized_nontrainable_weights", Rule::Nearest,
     "weights are sent in the type of --precision, unquantized"},
    {"zero_optimization.zero_quantized_gradients", Rule::Nearest, "--grad-reduce-dtype fp8 sends gradients in 8 bits"},
    {"zero_optimization.overlap_comm", Rule::Ignore, "--overlap auto overlaps communication on GPUs"},
    {"zero_optimization.*", Rule::Ignore, "buckets and thresholds; collectives are planned layer by layer"},
    {"fp16.* bf16.* bfloat16.* amp.opt_level amp.loss_scale", Rule::Ignore, "about a precision that is not enabled"},
    {"amp.enabled", Rule::Nearest, "--precision fp16 or bf16, with f32 master weights"},
    {"optimizer.params.amsgrad", Rule::Nearest, "the moments of a step, and not the largest so far"},
    {"optimizer.params.torch_adam optimizer.params.fused",
     Rule::Ignore, "updates are always fused kernels"},
    {"optimizer.params.freeze_step optimizer.params.cuda_aware optimizer.params.comm_backend_name "
     "optimizer.params.max_coeff optimizer.params.min_coeff optimizer.params.coeff_beta optimizer.params.factor_*",
     Rule::Ignore, "about an optimizer that there is not"},
    {"activation_checkpointing.partition_activations", Rule::Nearest,
     "--sequence-parallel divides what is saved along tensor"},
    {"activation_checkpointing.*", Rule::Ignore, "--remat decides what is recomputed"},
    {"fp32_allreduce prescale_gradients gradient_predivide_factor", Rule::Ignore,
     "gradients are reduced in f32 unless --grad-dtype bf16 is given"},
    {"sparse_gradients", Rule::Nearest, "gradients of embeddings are dense"},
    {"sparse_attention sparse_attention.*", Rule::Nearest, "attention is dense, or as config.json has windows"},
    {"data_efficiency.* curriculum_learning.* progressive_layer_drop.* compression_training.* eigenvalue.* "
     "quantize_training.* hybrid_engine.* moe.* compile.deepcompile",
     Rule::Nearest, "not supported; left out"},
    {"elasticity.enabled", Rule::Nearest, "the batch and the number of ranks are fixed; checkpoints load on any mesh"},
    {"elasticity.*", Rule::Ignore, "about elasticity"},
    {"pipeline.*", Rule::Nearest, "--mesh pipe=P and --schedule 1f1b"},
    {"wall_clock_breakdown memory_breakdown dump_state disable_allgather zero_allow_untested_optimizer "
     "zero_force_ds_cpu_optimizer seq_parallel_communication_data_type checkpoint.* comms_logger.* flops_profiler.* "
     "tensorboard.* wandb.* csv_monitor.* comet.* autotuning.* aio.* nebula.* monitor_config.* compile.* dataloader_drop_last "
     "load_universal_checkpoint use_node_local_storage use_data_before_expert_parallelism timers.* vocabulary_size "
     "gradient_accumulation_dtype tensor_parallel.*",
     Rule::Ignore, "logging, profiling, checkpoints"},
};

static bool isAuto(Converter &c, StringRef key) {
  if (const Setting *setting = c.has(key) ? c.use(key) : nullptr; !setting || setting->text != "auto")
    return false;
  c.remark(Fate::Undecided, key, "the program that calls DeepSpeed fills it in");
  return true;
}

static int64_t countOf(Converter &c, StringRef key, int64_t otherwise, int64_t least = 1) {
  return isAuto(c, key) ? otherwise : c.count(key, otherwise, least);
}
static double numberOf(Converter &c, StringRef key, double otherwise) {
  return isAuto(c, key) ? otherwise : c.number(key, otherwise);
}
static bool isOnOf(Converter &c, StringRef key, bool otherwise = false) {
  return isAuto(c, key) ? otherwise : c.isOn(key, otherwise);
}

/// The third of batch, micro-batch and accumulation follows from the other two and the ranks.
static void readBatch(Converter &c, Layout &layout) {
  static constexpr StringLiteral batchKey = "train_batch_size", microKey = "train_micro_batch_size_per_gpu",
                                 stepsKey = "gradient_accumulation_steps";
  int64_t batch = countOf(c, batchKey, 0), micro = countOf(c, microKey, 0), steps = countOf(c, stepsKey, 0);
  int64_t model = c.times(c.times(layout.tensor, layout.pipe), layout.context);
  int64_t all = c.givenDevices();
  if (!all && batch && micro && steps && batch % c.times(micro, steps) == 0)
    all = c.times(batch / c.times(micro, steps), model);
  layout.data = c.dataDevices(layout, all,
                              "give --devices N, or train_batch_size, train_micro_batch_size_per_gpu and "
                              "gradient_accumulation_steps");
  int64_t ranks = layout.data;
  if (batch && micro && !steps)
    steps = batch / std::max<int64_t>(1, c.times(micro, ranks));
  else if (batch && !micro)
    micro = batch / c.times(ranks, steps ? steps : (steps = 1));
  else if (micro && !steps)
    steps = 1;
  if (batch && batch != c.times(c.times(micro, steps), ranks))
    return c.fail(batchKey, "it must be train_micro_batch_size_per_gpu times gradient_accumulation_steps times " +
                                Twine(ranks) + " data-parallel ranks");
  layout.microbatchSize = micro;
  layout.microbatches = std::max<int64_t>(1, steps);
}

/// Whether gradients are bf16.
static bool readPrecision(Converter &c) {
  bool bf16 = isOnOf(c, "bf16.enabled", isOnOf(c, "bfloat16.enabled")), fp16 = isOnOf(c, "fp16.enabled");
  if (bf16 && fp16)
    c.fail("fp16.enabled", "bf16 is enabled too; keep one of them");
  if (bf16 || fp16 || !(isAuto(c, "bf16.enabled") || isAuto(c, "fp16.enabled")))
    c.flag("precision", bf16 ? "bf16" : fp16 ? "fp16" : "f32");
  static constexpr StringLiteral types[] = {"fp32=f32", "bf16=bf16", "fp16=fp16"};
  static constexpr StringLiteral sums = "data_types.grad_accum_dtype";
  std::string type = isAuto(c, sums) ? "f32" : c.choice(sums, "f32", types);
  if (type == "bf16" && bf16)
    c.flag("grad-dtype", "bf16");
  else if (type != "f32")
    c.remark(Fate::Nearest, sums, "f32; bf16 goes with bf16.enabled");
  bool areNarrow = type == "bf16" && bf16;
  if (!fp16)
    return areNarrow;
  if (double scale = numberOf(c, "fp16.loss_scale", 0); scale > 0) {
    c.runNumber("initial-loss-scale", scale);
    c.remark(Fate::Nearest, "fp16.loss_scale", "the loss scale begins there and stays dynamic");
  } else if (c.has("fp16.initial_scale_power") && !isAuto(c, "fp16.initial_scale_power")) {
    c.runNumber("initial-loss-scale", std::ldexp(1.0, int(std::min<int64_t>(127, c.count("fp16.initial_scale_power", 16, 0)))));
  }
  if (c.has("fp16.min_loss_scale"))
    c.runNumber("min-loss-scale", std::max(1.0, numberOf(c, "fp16.min_loss_scale", 1)));
  if (c.has("fp16.loss_scale_window"))
    c.run("loss-scale-window", Twine(countOf(c, "fp16.loss_scale_window", 1000)));
  if (c.has("fp16.hysteresis"))
    c.run("hysteresis", Twine(countOf(c, "fp16.hysteresis", 2)));
  return areNarrow;
}

static void readCommunication(Converter &c, const Layout &layout, bool areNarrow) {
  static constexpr StringLiteral key = "communication_data_type", offload = "zero_optimization.offload_param.device";
  static constexpr StringLiteral types[] = {"fp32=f32", "bf16=bf16", "bfp16=bf16", "fp16=fp16"};
  if (!c.has(key) || isAuto(c, key))
    return;
  std::string type = c.choice(key, "f32", types);
  static constexpr StringLiteral devices[] = {"cpu=cpu", "nvme=nvme", "none="};
  bool isSent = layout.dataParallel() > 1, isOffloaded = c.has(offload) && !c.choice(offload, "", devices).empty();
  if (type == "bf16" && isSent && !areNarrow && !isOffloaded)
    c.flag("grad-reduce-dtype", "bf16");
  else if (isSent && type != (areNarrow ? "bf16" : "f32"))
    c.remark(Fate::Nearest, key,
             isOffloaded      ? "gradients are sent in the type of --grad-dtype; --grad-reduce-dtype does not go with --offload parameters"
             : type == "fp16" ? "gradients are sent in the type of --grad-dtype; --grad-reduce-dtype bf16 sends as few bytes"
                              : "gradients are bf16, and sent so");
}

static void readOffload(Converter &c) {
  static constexpr StringLiteral key = "zero_optimization.offload_optimizer.device";
  static constexpr StringLiteral devices[] = {"cpu=cpu", "nvme=nvme", "none="};
  std::string device = c.choice(key, c.isOn("zero_optimization.cpu_offload") ? "cpu" : "", devices);
  bool activations = c.isOn("activation_checkpointing.cpu_checkpointing");
  static constexpr StringLiteral parametersKey = "zero_optimization.offload_param.device";
  std::string parameters =
      c.choice(parametersKey, c.isOn("zero_optimization.cpu_offload_params") ? "cpu" : "", devices);
  auto space = [](StringRef device) {
    return device.empty() ? MemorySpace::Device : device == "nvme" ? MemorySpace::Ssd : MemorySpace::Host;
  };
  Offload offload{space(device), activations ? MemorySpace::Host : MemorySpace::Device, space(parameters)};
  if (offload.any())
    c.flag("offload", optionText(offload));
  // The folder is a flag of the executable.
  StringRef folder = "zero_optimization.offload_optimizer.nvme_path";
  if (!c.has(folder))
    folder = "zero_optimization.offload_param.nvme_path";
  if ((offload.optimizer == MemorySpace::Ssd || offload.parameters == MemorySpace::Ssd) && c.has(folder))
    c.run("ssd", c.text(folder));
  if (activations)
    c.remark(Fate::Nearest, "activation_checkpointing.cpu_checkpointing",
             "--offload activations moves saved activations of layers to the host; add --remat full to save only "
             "their inputs, if the model's code does so");
}

/// The learning rate of the optimizer; 0 if the program sets it.
static double readDeepSpeedOptimizer(Converter &c) {
#define PARAMS "optimizer.params."
  static constexpr StringLiteral key = "optimizer.type";
  static constexpr StringLiteral types[] = {
      "Adam=adamw",           "AdamW=adamw",    "FusedAdam=adamw", "CPUAdam=adamw", "Lion=lion",           "SGD=sgd-momentum",
      "Muon=muon",            "OneBitAdam=?adamw", "ZeroOneAdam=?adamw", "Lamb=?adamw",   "OneBitLamb=?adamw", "Adagrad=?adamw"};
  OptimizerNumbers numbers;
  numbers.name = "";
  if (!isAuto(c, key))
    numbers.name = c.choice(key, "", types);
  if (numbers.name.empty()) {
    c.flag("optimizer", "adamw");
    return 0;
  }
  if (StringRef(numbers.name).starts_with("?")) {
    numbers.name.erase(0, 1);
    c.remark(Fate::Nearest, key, "adamw; gradients are reduced uncompressed");
  }
  if (!c.isOn(PARAMS "adam_w_mode", true) && c.text(key) != "AdamW" && numbers.name == "adamw")
    numbers.name = "adam";
  numbers.momentum = numberOf(c, PARAMS "momentum", numbers.name == "muon" ? 0.95 : 0);
  if (numbers.name == "sgd-momentum" && c.isOn(PARAMS "nesterov"))
    numbers.name = "sgd-nesterov";
  if (isAuto(c, PARAMS "weight_decay"))
    numbers.decay = std::nullopt;
  else
    numbers.decay = c.number(PARAMS "weight_decay", 0);
  if (numbers.decay.value_or(0) > 0)
    c.remark(Fate::Undecided, PARAMS "weight_decay",
             "the program decides which parameters decay; here matrices do and vectors do not, with --optimizer-groups "
             "'*:decay=1' all do");
  if (!c.isOn(PARAMS "bias_correction", true))
    c.remark(Fate::Nearest, PARAMS "bias_correction", "moments are corrected for their bias");
  if (numbers.name == "sgd-momentum" && numbers.momentum == 0 && numbers.decay.value_or(0) == 0)
    numbers.name = "sgd";
  if (numbers.name == "lion")
    numbers.beta2 = 0.99;
  numbers.eps = numberOf(c, PARAMS "eps", 1e-8);
  static constexpr StringLiteral betas = PARAMS "betas";
  if (const Setting *list = c.has(betas) && !isAuto(c, betas) ? c.use(betas) : nullptr) {
    if (list->items.size() != 2 || !to_float(list->items[0], numbers.beta1) || !to_float(list->items[1], numbers.beta2) ||
        !(numbers.beta1 >= 0 && numbers.beta1 < 1 && numbers.beta2 >= 0 && numbers.beta2 < 1))
      c.fail(betas, "it must be two numbers from 0 to 1");
  }
  double rate = numberOf(c, PARAMS "lr", isAuto(c, PARAMS "lr") ? 0 : 1e-3);
  c.writeOptimizer(numbers);
  return rate;
#undef PARAMS
}

static void readDeepSpeedRates(Converter &c, double rate) {
#define PARAMS "scheduler.params."
  static constexpr StringLiteral key = "scheduler.type";
  static constexpr StringLiteral types[] = {"WarmupLR=constant", "WarmupDecayLR=linear", "WarmupCosineLR=cosine",
                                            "OneCycle=other", "LRRangeTest=other"};
  RateSchedule rates;
  if (!isAuto(c, key))
    rates.shape = c.choice(key, "constant", types);
  if (rates.shape == "other") {
    rates.shape = "constant";
    c.remark(Fate::Nearest, key, "no such schedule; constant, or --lr-schedule wsd, cosine, linear");
  } else if (c.has(key)) {
    rates.steps = countOf(c, PARAMS "total_num_steps", 0);
    rates.warmup = isAuto(c, PARAMS "warmup_num_steps") ? 0 : c.count(PARAMS "warmup_num_steps", 1000, 0);
    // Of these two schedules, that with a decay has a highest rate of its own.
    double otherwise = rates.shape == "linear" ? 1e-3 : rate;
    if (double highest = isAuto(c, PARAMS "warmup_max_lr") ? rate : c.number(PARAMS "warmup_max_lr", otherwise);
        highest > 0)
      rate = highest;
    if (numberOf(c, PARAMS "warmup_min_lr", 0) > 0 || numberOf(c, PARAMS "warmup_min_ratio", 0) > 0)
      c.remark(Fate::Nearest, c.has(PARAMS "warmup_min_lr") ? PARAMS "warmup_min_lr" : PARAMS "warmup_min_ratio",
               "the warm-up begins at --lr / --warmup");
    static constexpr StringLiteral curves[] = {"log=log", "linear=linear"};
    if (c.choice(PARAMS "warmup_type", "log", curves) == "log" && rates.warmup)
      c.remark(Fate::Nearest, c.has(PARAMS "warmup_type") ? PARAMS "warmup_type" : key,
               "the warm-up is linear; DeepSpeed's default is logarithmic");
    rates.least = rates.shape == "cosine" ? rate * numberOf(c, PARAMS "cos_min_ratio", 1e-4) : 0;
    rates.decay = rates.steps;
    if (rates.shape != "constant" && !rates.steps)
      c.remark(Fate::Undecided, key, "the schedule ends at the executable's --steps, which the file does not give");
  }
  if (rate > 0)
    c.runNumber("lr", rate);
  c.writeSchedule(rates);
#undef PARAMS
}

void convertDeepSpeed(Converter &c) {
  if (!c.has("train_batch_size") && !c.has("train_micro_batch_size_per_gpu") && !c.has("zero_optimization.stage") &&
      !c.has("optimizer.type") && !c.has("gradient_accumulation_steps"))
    return c.fail("", c.has("model_type")
                          ? "it is a model's configuration, which 'meshwright compile' reads as MODEL; settings of "
                            "DeepSpeed have train_batch_size or zero_optimization"
                          : "it has none of train_batch_size, train_micro_batch_size_per_gpu, zero_optimization.stage "
                            "and optimizer.type, as DeepSpeed's settings do");
  Layout layout;
  layout.tensor = c.count("tensor_parallel.autotp_size", 1, 0);
  layout.tensor = std::max<int64_t>(1, layout.tensor);
  layout.context = countOf(c, "sequence_parallel_size", 1);
  readBatch(c, layout);
  // MiCS shards within groups of ranks and replicates over them.
  static constexpr StringLiteral group = "zero_optimization.mics_shard_size";
  if (int64_t size = c.count(group, -1, -1); size > 0) {
    if (layout.data % size)
      return c.fail(group, "it must divide the " + Twine(layout.data) + " data-parallel ranks");
    layout.replica = layout.data / size;
    layout.data = size;
  }
  c.writeLayout(layout, "");
  static constexpr StringLiteral stages[] = {"0=0", "1=1", "2=2", "3=3"};
  std::string stage = isAuto(c, "zero_optimization.stage") ? "0" : c.choice("zero_optimization.stage", "0", stages);
  c.writeZero(stage[0] - '0', layout, "zero_optimization.stage");
  if (layout.context > 1)
    c.flag("context-parallel", "ulysses");
  bool areNarrow = readPrecision(c);
  readCommunication(c, layout, areNarrow);
  readOffload(c);
  double rate = readDeepSpeedOptimizer(c);
  readDeepSpeedRates(c, rate);
  if (!isAuto(c, "gradient_clipping"))
    c.runNumber("grad-clip", c.number("gradient_clipping", 0));
  c.remark(Fate::Undecided, "activation_checkpointing.number_checkpoints",
           "the model's code decides what is recomputed; --remat every:K keeps the input of one layer in K");
  c.apply(deepSpeedRules);
}

} // namespace meshwright::convert
