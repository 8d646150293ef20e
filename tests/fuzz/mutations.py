"""Changed bytes: what happens to files on disks and lines."""

from __future__ import annotations

TOKENS = (
    b"0",
    b"-1",
    b"1e400",
    b"NaN",
    b"null",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\t",
)
TOKENS += (b"99999999999999999999", b"true", b"\\ud800", b"\xef\xbb\xbf", b":", b"1e308", b"-", b"'", b"\xe2\x80\xa8")


def mutated(random, content: bytes, others: list[bytes] = ()) -> bytes:
    """Some bytes changed, removed, repeated, moved or inserted; or the end of another input in place of the own."""
    data = bytearray(content)
    for _ in range(int(random.integers(1, 5))):
        kind, place = random.integers(8), int(random.integers(len(data) + 1))
        end = min(len(data), place + int(random.choice([1, 2, 8, 100])))
        if kind == 0 and data:
            data[place - 1] ^= 1 << random.integers(8)
        elif kind == 1 and data:
            data[place - 1] = random.integers(256)
        elif kind == 2:
            del data[place:end]
        elif kind == 3:
            data[place:place] = data[place:end] * int(random.integers(1, 4))
        elif kind == 4:
            data[place:place] = TOKENS[random.integers(len(TOKENS))]
        elif kind == 5:
            data[place:end] = TOKENS[random.integers(len(TOKENS))]
        elif kind == 6:
            del data[place:]
        elif len(others) > 0:
            other = others[random.integers(len(others))]
            data[place:] = other[int(random.integers(len(other) + 1)) :]
    return bytes(data)
