"""What torch_gpu.py and jax_train.py have in common: arguments, tokens, the steps that are timed, the line that is printed.

Tokens are 16 bits each and are read in the order in which Meshwright's executables read them. --batch takes several sizes,
which are measured one after another, the smallest first, until one does not fit; the line has all of them under `batches`
and, beside them, the numbers of the one with the most tokens a second."""
import argparse
import array
import json
import statistics
import time

BETAS, EPSILON, DECAY = (0.9, 0.95), 1e-8, 0.1  # of AdamW; matrices decay
LOADED = time.time()


def parser(description):
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("config")
    result.add_argument("--data", required=True)
    result.add_argument("--batch", required=True, type=lambda text: sorted(map(int, text.split(","))),
                        help="or several with commas between")
    result.add_argument("--seq", type=int, required=True)
    result.add_argument("--steps", type=int, default=25)
    result.add_argument("--warmup", type=int, default=5)
    result.add_argument("--lr", type=float, default=1e-4)
    result.add_argument("--clip", type=float, default=1.0)
    result.add_argument("--pad-vocab", type=int, default=64, metavar="N",
                        help="pad the vocabulary to a multiple of N, as Meshwright does for tensor cores; 1: as it is")
    result.add_argument("--masters", choices=["f32", "bf16"], default="f32")
    result.add_argument("--started", type=float, default=LOADED, metavar="SECONDS",
                        help="when the process was started, since 1970; otherwise when this was loaded")
    return result


def model(args):
    """The config, its vocabulary padded."""
    with open(args.config) as file:
        config = json.load(file)
    config["vocab_size"] = -(-config["vocab_size"] // args.pad_vocab) * args.pad_vocab
    return config


class Tokens:
    def __init__(self, args):
        self.stream, self.seq = array.array("H"), args.seq
        with open(args.data, "rb") as file:
            self.stream.frombytes(file.read())
        self.sequences = (len(self.stream) - 1) // args.seq

    def rows(self, batch, step):
        """A batch of sequences, each with the token behind it, one after the other."""
        result = array.array("H")
        for i in range(batch):
            at = (step * batch + i) % self.sequences * self.seq
            result += self.stream[at:at + self.seq + 1]
        return result


def measure(args, batch, train, aside=0.0):
    """Times `train(rows)`, of 16-bit tokens, which gives a step's loss on the host, as Meshwright's steps end with theirs.
    `aside` are seconds that were no part of starting."""
    tokens, times, losses, started = Tokens(args), [], [], None
    for step in range(args.steps):
        begin = time.perf_counter()
        losses.append(float(train(tokens.rows(batch, step))))
        times.append(1e3 * (time.perf_counter() - begin))
        if started is None:
            started = 1e3 * (time.time() - args.started - aside)
    counted = times[args.warmup:]
    if not counted:
        raise SystemExit(f"--steps {args.steps} leaves none after the --warmup of {args.warmup}")
    ms = statistics.median(counted)
    return {"batch": batch, "step_ms": ms, "tokens_per_s": 1e3 * batch * args.seq / ms, "first_step_ms": times[0],
            "start_to_first_step_ms": started, "loss": losses}


def sweep(args, run, is_out_of_memory, **about):
    """Calls `run(batch)` for each size and prints what it gives. `about` is put into the line."""
    measured = []
    for batch in args.batch:
        try:
            measured.append(run(batch))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            measured.append({"batch": batch, "out_of_memory": True})
            break  # Larger ones need more.
    best = max((one for one in measured if "step_ms" in one), key=lambda one: one["tokens_per_s"], default={})
    print(json.dumps({**best, **about, "batches": [{key: value for key, value in one.items() if key != "loss"}
                                                   for one in measured]}))
