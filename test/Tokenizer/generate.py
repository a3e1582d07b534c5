#!/usr/bin/env python3
"""Writes test/Inputs/tokenizers: small tokenizers of many kinds, and what the libraries that they are
from make of a text with them. Needs `pip install tokenizers sentencepiece`; the tests do not.

    test/Tokenizer/generate.py
"""
import io
import json
import pathlib
import re
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "bench"))
import tokenizer_text

out = root / "test/Inputs/tokenizers"
contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
llama3 = (contractions + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
qwen2 = llama3.replace("{1,3}", "")
upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
o200k = (rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{contractions}?|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{contractions}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
deepseek = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def split(*patterns):
    return pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(each), "isolated") for each in patterns),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def special(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


# Of each its normalizer, pre-tokenizer, arguments of its model, and added tokens.
byte_level = {
    "gpt2": (None, pre_tokenizers.ByteLevel(add_prefix_space=False), {}, special("<|endoftext|>")),
    "llama3": (None, split(llama3), {"ignore_merges": True}, special("<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>")),
    "qwen2": (normalizers.NFC(), split(qwen2), {}, special("<|endoftext|>", "<|im_start|>", "<|im_end|>")),
    "o200k": (None, split(o200k), {}, special("<|endoftext|>")),
    "deepseek": (None, split(*deepseek), {}, special("<|endoftext|>")),
    "starcoder": (None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)]), {},
                  special("<|endoftext|>")),
    # Kinds that no one model has together.
    "mixture": (normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
                pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"),
                                         pre_tokenizers.ByteLevel(add_prefix_space=True)]), {},
                [AddedToken("<|endoftext|>", special=True, lstrip=True, rstrip=True),
                 AddedToken("The", single_word=True, normalized=True), AddedToken("me", normalized=False)]),
}


def write(name, tokenizer, text):
    # Tokens that text has are added ones here; none is a byte's fallback.
    spec = json.loads(tokenizer.to_str())
    spec["added_tokens"] = [each for each in spec["added_tokens"] if not each["content"].startswith("<0x")]
    path = out / f"{name}.json"
    path.write_text(json.dumps(spec, ensure_ascii=False, separators=(",", ":")) + "\n")
    ids = Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False).ids
    (out / f"{name}.ids").write_text(" ".join(map(str, ids)) + "\n")


def main():
    out.mkdir(parents=True, exist_ok=True)
    raw = tokenizer_text.mixed(8000, seed=1)
    (out / "text.bin").write_bytes(raw)
    text = raw.decode("utf-8", "replace")
    corpus = tokenizer_text.mixed(300_000, seed=2).decode("utf-8", "replace")
    for name, (normalizer, pre_tokenizer, arguments, added) in byte_level.items():
        tokenizer = Tokenizer(models.BPE(**arguments))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator([corpus], trainers.BpeTrainer(
            vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        tokenizer.add_tokens(added)
        if name == "llama3":
            first = tokenizer.token_to_id("<|begin_of_text|>")
            tokenizer.post_processor = processors.TemplateProcessing(
                single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", first)])
        write(name, tokenizer, text)

    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    for name, divides in ("llama2", False), ("metaspace", True):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
        tokenizer.train_from_iterator([corpus], trainers.BpeTrainer(
            vocab_size=800, limit_alphabet=200, show_progress=False, special_tokens=["<unk>", "<s>", "</s>", *bytes_]))
        steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        tokenizer.decoder = decoders.Sequence(steps)
        if not divides:
            tokenizer.pre_tokenizer = None
            tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        write(name, tokenizer, text)

    # It would have a token for each of all letters otherwise.
    lines = [line for line in corpus.splitlines() if line and max(line) < "\u0250"]
    # Of segmentations that are as likely, such as those of "///", version 0.2 takes another than 0.1.97,
    # which Debian has.
    plain = re.sub(r"(.)\1+", r"\1", raw[:4000].decode("utf-8", "replace"))
    (out / "sentencepiece.txt").write_bytes(plain.encode())
    for kind in "bpe", "unigram":
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=800, model_type=kind, byte_fallback=True,
            character_coverage=0.98, normalization_rule_name="identity", minloglevel=2, hard_vocab_limit=False,
            remove_extra_whitespaces=False)
        (out / f"{kind}.model").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        (out / f"{kind}.ids").write_text(" ".join(map(str, processor.encode(plain))) + "\n")

    # What BpeTrainer makes, for `meshwright tokenizer train` to make too.
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = split(llama3)
    trained.decoder = decoders.ByteLevel()
    sample = corpus[:40_000]
    (out / "train.txt").write_bytes(sample.encode())
    trained.train_from_iterator([sample], trainers.BpeTrainer(
        vocab_size=500, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<|endoftext|>"]))
    (out / "trained.json").write_text(json.dumps(json.loads(trained.to_str()), ensure_ascii=False, indent=1) + "\n")


main()
