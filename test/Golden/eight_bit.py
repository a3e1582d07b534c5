"""AdamW with states of 8 bits, after Dettmers et al. 2022 (8-bit Optimizers via Block-wise Quantization), in float64: the update is
torch.optim.AdamW's, and both moments are quantized after each step.

Blocks are parts of rows of one length: the largest divisor of an eighth of the row up to 256, or of the row where the former is below 64. Tensors of
fewer than 4096 elements keep their moments in full. bitsandbytes has blocks of 256 elements of the flattened tensor.

    PYTHONPATH=FOLDER venv/bin/python test/Golden/eight_bit.py

compares the map, and codes of random numbers, with those of the package bitsandbytes in FOLDER. With 0.50.2 numbers of both maps agree to
1.5e-7, f32's rounding. Its quantizer for CPUs takes another code than the nearest for small numbers, but never a nearer one.
"""
import torch


def dynamic_map(signed):
    """The 256 numbers, ascending."""
    numbers = [0.0, 1.0]
    for exponent in range(7):
        cells = 2 ** exponent if signed else 2 ** (exponent + 1)
        centers = [10.0 ** (exponent - 6) * (0.1 + 0.9 * (cell + 0.5) / cells) for cell in range(cells)]
        numbers += centers + ([-center for center in centers] if signed else [])
    return torch.tensor(sorted(numbers), dtype=torch.double)


def block_length(row):
    def divisor(size):
        return max(d for d in range(1, min(size, 256) + 1) if size % d == 0)
    eighth = divisor(row // 8) if row % 8 == 0 else 0
    return eighth if eighth >= 64 else divisor(row)


def nearest(values, signed):
    """The place of the nearest number of the map."""
    numbers = dynamic_map(signed)
    return (values.reshape(-1, 1) - numbers).abs().argmin(1).reshape(values.shape)


def rounded(moment, signed):
    """A moment after it has been quantized and read again."""
    if moment.numel() < 4096 or block_length(moment.shape[-1]) < 8:
        return moment
    blocks = moment.reshape(-1, block_length(moment.shape[-1]))
    amax = blocks.abs().amax(1, keepdim=True)
    codes = nearest(torch.nan_to_num(blocks / amax), signed)
    return (dynamic_map(signed)[codes] * amax).reshape(moment.shape)


class AdamW8bit(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, eps):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                t = state["step"] = state.get("step", 0) + 1
                m = beta1 * state.get("m", torch.zeros_like(p)) + (1 - beta1) * p.grad
                v = beta2 * state.get("v", torch.zeros_like(p)) + (1 - beta2) * p.grad ** 2
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * (m / (1 - beta1 ** t)) / ((v / (1 - beta2 ** t)).sqrt() + group["eps"]))
                state["m"], state["v"] = rounded(m, signed=True), rounded(v, signed=False)


def compare():
    import bitsandbytes.functional as published
    for signed in (True, False):
        theirs = published.create_dynamic_map(signed=signed).double()
        ours = dynamic_map(signed)
        error = ((theirs - ours).abs() / ours.abs().clamp(min=1e-30)).max().item()
        x = torch.randn(64, 256) * (2 * torch.randn(64, 256)).exp()
        x = x if signed else x * x
        codes, state = published.quantize_blockwise(x, code=theirs.float(), blocksize=256)
        y = (x.double() / state.absmax.double().reshape(-1, 1))
        mine, other = ours[nearest(y, signed)], ours[codes.long()]
        nearer = ((other - y).abs() < (mine - y).abs() - 1e-7).sum().item()
        print(f"signed={signed}: largest difference of the map {error:.1e}; {(mine != other).sum().item()} of {x.numel()} codes differ, {nearer} are nearer")
        assert error < 2e-7 and not nearer


if __name__ == "__main__":
    compare()
