"""Text for tests and timings of tokenizers: code, prose of many scripts, emoji, numbers, odd
spaces, special tokens, and bytes that are no UTF-8. It depends on the size, the seed and the files of
this repository."""
import pathlib
import random
import unicodedata

root = pathlib.Path(__file__).resolve().parent.parent

# First and last code points of scripts, and how many letters words have about.
scripts = [(0x41, 0x5a, 6), (0x61, 0x7a, 7), (0xc0, 0x24f, 6), (0x370, 0x3ff, 7), (0x400, 0x52f, 8),
           (0x531, 0x58f, 7), (0x5d0, 0x5ea, 5), (0x620, 0x6ff, 5), (0x904, 0x94d, 6), (0x985, 0x9cd, 6),
           (0xb85, 0xbcd, 8), (0xe01, 0xe4e, 20), (0x10a0, 0x10ff, 7), (0x1100, 0x11ff, 4),
           (0x1e00, 0x1fff, 5), (0x3041, 0x30ff, 9), (0x4e00, 0x9fff, 12), (0xac00, 0xd7a3, 4),
           (0x10400, 0x1044f, 5), (0x1d400, 0x1d7ff, 3), (0x20000, 0x2a6df, 3), (0xa640, 0xa69f, 5)]
emoji = ["\U0001F600", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F1E9\U0001F1EA", "\u2764\uFE0F",
         "\U0001F44D\U0001F3FD", "\u2603", "\u00A9", "\u2122", "\U0001FAE0"]
spaces = [" "] * 30 + ["\n", "\n\n", "\r\n", "  ", "   ", "\t", "\u00A0", "\u3000", "\u2028", " \n", "\n    ", "\x85",
                       "\u200b", "\u2003 ", "\n \n\t", "\u180e", "\x0b", "\x0c", "\x1c"]
contractions = ["'s", "'T", "'re", "'VE", "'m", "'LL", "'d", "'\u017f", "\u2019s", "'x", "''s", "'"]
signs = list(".,;:!?()[]{}<>/\\|@#$%^&*-_=+~`\"") + ["...", "/*", "*/", "://", "--\n", "}\r\n\n", "\u20ac", "\u00bf", "\u3002", "\u00b2\u00b3", "\u216b", "\u0661\u0662\u0663\u0664"]


def word(rng):
    first, last, length = rng.choice(scripts)
    letters = [chr(rng.randint(first, last)) for _ in range(max(1, int(rng.expovariate(1 / length))))]
    text = "".join(c for c in letters if unicodedata.category(c) != "Cn")
    if rng.random() < 0.1:
        text = unicodedata.normalize("NFD", text)
    if rng.random() < 0.05:
        text += chr(rng.randint(0x300, 0x36f))
    return text


def noise(rng):
    """A run of words and signs that no pattern was made for."""
    parts = []
    for _ in range(rng.randint(5, 60)):
        kind = rng.random()
        if kind < 0.5:
            parts.append(word(rng))
        elif kind < 0.6:
            parts.append(str(rng.randint(0, 10 ** rng.randint(1, 12))))
        elif kind < 0.7:
            parts.append(rng.choice(signs) * rng.randint(1, 3))
        elif kind < 0.75:
            parts.append(rng.choice(emoji))
        elif kind < 0.8:
            parts.append(rng.choice(contractions))
        if rng.random() < 0.7:
            parts.append(rng.choice(spaces))
    return "".join(parts).encode()


def mixed(size, seed=0, special=("<|endoftext|>", "<|im_start|>")):
    """`size` bytes. Half is files of this repository."""
    rng = random.Random(seed)
    files = sorted(p for folder in ("docs", "lib", "test/Golden", "runtime") for p in (root / folder).rglob("*")
                   if p.suffix in (".md", ".cpp", ".h", ".py", ".td"))
    code = b"\n".join(p.read_bytes() for p in files)
    out, length = [], 0
    while length < size:
        kind = rng.random()
        if kind < 0.4:
            at = rng.randrange(len(code) - 5000)
            part = code[at:at + rng.randint(10, 5000)].decode(errors="ignore").encode()
        elif kind < 0.97:
            part = b"".join(noise(rng) for _ in range(rng.randint(1, 20)))
        elif kind < 0.985:
            part = bytes(rng.randrange(256) for _ in range(rng.randint(1, 20)))
        else:
            part = rng.choice(special).encode() + rng.choice([b"", b" ", b"\n"])
        out.append(part)
        length += len(part)
    return b"".join(out)[:size]
