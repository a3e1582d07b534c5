"""What generate.py and expected.py generate from: golden models, their configurations changed where sequences are to be longer."""
PROMPT = b"What light" # more than a decoder reads at once

LONG = {"max_position_embeddings": 320}
CASES = {
    # 200 tokens, of rotary families, whose weights do not depend on how many positions there are.
    **{name: {"inputs": f"golden-more/{name}", "config": LONG, "tokens": 200}
       for name in ("qwen3", "gemma2", "mixtral", "deepseek-v3", "gpt-oss", "phi3", "mistral-window")},
    "llama": {"inputs": "golden/llama-tiny", "config": LONG, "tokens": 200},
    # As many as the model has positions.
    "gpt2": {"inputs": "golden/gpt2-tiny", "config": {}, "tokens": 20},
    **{name: {"inputs": f"golden-more/{name}", "config": {}, "tokens": 20}
       for name in ("apertus", "bloom", "cohere2", "ernie4_5-moe", "exaone4", "falcon", "gemma3", "glm4", "gpt-neox", "gptj", "llama4", "llama4-chunks",
                    "minicpm3", "minimax-m2", "mpt", "nemotron", "olmo2",
                    "olmoe", "opt", "qwen2-window", "smollm3", "stablelm", "starcoder2")},
}
