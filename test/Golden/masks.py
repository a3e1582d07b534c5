"""Which tokens are masked, written from docs/models.md alone."""
from philox import philox


def masked(rows, share, mask, vocabulary, step):
    """Inputs and targets of a step with seed 0, from its tokens by sequence. A target of -1 does not count."""
    inputs, targets = [list(row) for row in rows], [[-1] * len(row) for row in rows]
    for i, row in enumerate(rows):
        for j, token in enumerate(row):
            chosen, kind, other, _ = philox([i * len(row) + j, 0, 0x3A5CED, 0], [0, step])
            if chosen < int(share * 2**32):
                targets[i][j] = token
                if kind < int(0.8 * 2**32):
                    inputs[i][j] = mask
                elif kind < int(0.9 * 2**32):
                    inputs[i][j] = other * vocabulary >> 32
    return inputs, targets
