//===- Releases.cpp - releases whose configurations are read --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Those of examples/models, whose numbers of parameters test/Frontend/models.test compares.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

llvm::ArrayRef<StringRef> meshwright::frontend::releasesOf(StringRef family) {
  static const std::pair<StringRef, std::vector<StringRef>> table[] = {
      {"apertus", {"swiss-ai/Apertus-8B-2509"}},
      {"baichuan", {"baichuan-inc/Baichuan-13B-Base", "baichuan-inc/Baichuan2-7B-Base"}},
      {"bert", {"google-bert/bert-base-uncased"}},
      {"biogpt", {"microsoft/biogpt"}},
      {"bloom", {"bigscience/bloom-560m"}},
      {"chatglm", {"THUDM/chatglm3-6b"}},
      {"cohere", {"CohereLabs/c4ai-command-r-v01"}},
      {"cohere2", {"CohereLabs/c4ai-command-r7b-12-2024"}},
      {"deepseek_v2", {"deepseek-ai/DeepSeek-V2-Lite"}},
      {"deepseek_v3", {"deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2-Instruct"}},
      {"deepseek_v32", {"deepseek-ai/DeepSeek-V3.2"}},
      {"ernie4_5", {"baidu/ERNIE-4.5-0.3B-PT"}},
      {"ernie4_5_moe", {"baidu/ERNIE-4.5-21B-A3B-PT"}},
      {"exaone", {"LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct"}},
      {"exaone4", {"LGAI-EXAONE/EXAONE-4.0-1.2B"}},
      {"falcon", {"tiiuae/falcon-40b", "tiiuae/falcon-7b"}},
      {"falcon_mamba", {"tiiuae/falcon-mamba-7b"}},
      {"gemma", {"google/gemma-2b"}},
      {"gemma2", {"google/gemma-2-2b"}},
      {"gemma3_text", {"google/gemma-3-1b-pt"}},
      {"glm", {"zai-org/glm-4-9b-chat-hf"}},
      {"glm4", {"zai-org/GLM-4-9B-0414"}},
      {"glm4_moe", {"zai-org/GLM-4.5-Air"}},
      {"glm_moe_dsa", {"zai-org/GLM-5"}},
      {"gpt_bigcode", {"bigcode/starcoder"}},
      {"gpt_neox", {"EleutherAI/pythia-160m"}},
      {"gpt_oss", {"openai/gpt-oss-120b", "openai/gpt-oss-20b"}},
      {"gptj", {"EleutherAI/gpt-j-6b"}},
      {"granite", {"ibm-granite/granite-3.1-2b-instruct"}},
      {"granitemoe", {"ibm-granite/granite-3.1-3b-a800m-instruct"}},
      {"helium", {"kyutai/helium-1-2b"}},
      {"hunyuan_v1_dense", {"tencent/Hunyuan-7B-Instruct"}},
      {"hunyuan_v1_moe", {"tencent/Hunyuan-A13B-Instruct"}},
      {"internlm2", {"internlm/internlm2-7b"}},
      {"jamba", {"ai21labs/Jamba-v0.1"}},
      {"kimi_linear", {"moonshotai/Kimi-Linear-48B-A3B-Instruct"}},
      {"lfm2", {"LiquidAI/LFM2-1.2B"}},
      {"lfm2_moe", {"LiquidAI/LFM2-8B-A1B"}},
      {"llama", {"01-ai/Yi-6B"}},
      {"llama4_text", {"meta-llama/Llama-4-Scout-17B-16E-Instruct"}},
      {"mamba", {"state-spaces/mamba-2.8b-hf"}},
      {"mamba2", {"mistralai/Mamba-Codestral-7B-v0.1"}},
      {"minicpm", {"openbmb/MiniCPM-2B-sft-bf16"}},
      {"minicpm3", {"openbmb/MiniCPM3-4B"}},
      {"minimax_m2", {"MiniMaxAI/MiniMax-M2"}},
      {"ministral3", {"mistralai/Ministral-3-8B-Base-2512"}},
      {"mistral", {"mistralai/Mistral-7B-v0.1", "mistralai/Mistral-Small-3.1-24B-Base-2503"}},
      {"mixtral", {"mistralai/Mixtral-8x22B-v0.1", "mistralai/Mixtral-8x7B-v0.1"}},
      {"mllama_text_model", {"meta-llama/Llama-3.2-11B-Vision"}},
      {"modernbert", {"answerdotai/ModernBERT-base"}},
      {"mpt", {"mosaicml/mpt-7b"}},
      {"nemotron", {"nvidia/Minitron-4B-Base"}},
      {"olmo", {"allenai/OLMo-1B-hf"}},
      {"olmo2", {"allenai/OLMo-2-0425-1B"}},
      {"olmo3", {"allenai/Olmo-3-1025-7B", "allenai/Olmo-3.1-32B-Think"}},
      {"olmoe", {"allenai/OLMoE-1B-7B-0924"}},
      {"openai-gpt", {"openai-community/openai-gpt"}},
      {"opt", {"facebook/opt-125m"}},
      {"persimmon", {"adept/persimmon-8b-base"}},
      {"phi", {"microsoft/phi-2"}},
      {"phi3", {"microsoft/Phi-3-mini-4k-instruct"}},
      {"phimoe", {"microsoft/Phi-3.5-MoE-instruct"}},
      {"qwen", {"Qwen/Qwen-7B"}},
      {"qwen2", {"Qwen/Qwen2.5-0.5B"}},
      {"qwen2_5_vl", {"Qwen/Qwen2.5-VL-7B-Instruct"}},
      {"qwen2_moe", {"Qwen/Qwen1.5-MoE-A2.7B"}},
      {"qwen3", {"Qwen/Qwen3-0.6B"}},
      {"qwen3_5_moe", {"Qwen/Qwen3.5-35B-A3B"}},
      {"qwen3_5_text", {"Qwen/Qwen3.5-27B"}},
      {"qwen3_moe", {"Qwen/Qwen3-30B-A3B"}},
      {"qwen3_next", {"Qwen/Qwen3-Next-80B-A3B-Instruct"}},
      {"qwen3_vl_moe_text", {"Qwen/Qwen3-VL-30B-A3B-Instruct"}},
      {"qwen3_vl_text", {"Qwen/Qwen3-VL-4B-Instruct"}},
      {"recurrent_gemma", {"google/recurrentgemma-2b"}},
      {"roberta", {"FacebookAI/roberta-base"}},
      {"seed_oss", {"ByteDance-Seed/Seed-OSS-36B-Instruct"}},
      {"smollm3", {"HuggingFaceTB/SmolLM3-3B"}},
      {"stablelm", {"stabilityai/stablelm-3b-4e1t"}},
      {"starcoder2", {"bigcode/starcoder2-3b"}},
  };
  for (const auto &[name, releases] : table)
    if (name == family)
      return releases;
  return {};
}
