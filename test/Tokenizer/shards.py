"""Reads the files of `meshwright tokenize`, independently of the code that does: prints what a folder
holds, or compares its tokens with those of test/Inputs/tokenizers.

    shards.py show DIR          the header, documents and tokens of each file, and its mask
    shards.py same DIR FILE.ids
    shards.py plain DIR OTHER   writes tokens and documents to files of their own, without headers
"""
import pathlib
import struct
import sys


def read(path):
    data = path.read_bytes()
    magic, version, width, vocabulary = struct.unpack_from("<4i", data)
    count, documents, _, tokenizer = struct.unpack_from("<4Q", data, 16)
    end, = struct.unpack_from("<i", data, 48)
    assert (magic, version) == (20261127, 1)
    tokens = struct.unpack_from(f"<{count}{ {1: 'B', 2: 'H', 4: 'I'}[width] }", data, 1024)
    behind = (1024 + count * width + 7) // 8 * 8
    starts = struct.unpack_from(f"<{documents}Q", data, behind)
    blocks = (count + 2 ** 20 - 1) // 2 ** 20
    assert len(data) == behind + 8 * documents + 8 * blocks
    return dict(width=width, vocabulary=vocabulary, tokens=tokens, starts=starts, end=end, tokenizer=tokenizer)


command, folder, *rest = sys.argv[1:]
files = sorted(pathlib.Path(folder).glob("tokens-*.bin"))
assert files
if command == "show":
    for path in files:
        shard = read(path)
        print(f"{path.name}: u{8 * shard['width']}, vocabulary {shard['vocabulary']}, end {shard['end']}, tokenizer "
              f"{'known' if shard['tokenizer'] else 'none'}, documents {list(shard['starts'])}")
        print(" ", *shard["tokens"])
        mask = path.with_suffix(".mask")
        if mask.exists():
            assert len(mask.read_bytes()) == len(shard["tokens"])
            print("  mask", *mask.read_bytes())
elif command == "plain":
    other = pathlib.Path(rest[0])
    other.mkdir()
    for path in files:
        shard = read(path)
        (other / path.name).write_bytes(struct.pack(f"<{len(shard['tokens'])}H", *shard["tokens"]))
        (other / path.name).with_suffix(".starts").write_bytes(struct.pack(f"<{len(shard['starts'])}Q", *shard["starts"]))
else:
    tokens = [token for path in files for token in read(path)["tokens"]]
    expected = [int(word) for word in pathlib.Path(rest[0]).read_text().split()]
    assert tokens == expected, "other tokens"
    print(len(tokens), "tokens are the same")
