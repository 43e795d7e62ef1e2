"""Mutations of files: flipped bits, cuts, repeats, parts of another file, extreme numbers, deep nesting, long lines."""
import re

TELLING = [b"\0", b"\xff", b"\n", b"\r", b"\t", b" ", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"=", b"-", b".", b"%",
           b"\x1b[2J", b"\xc2\x9b", b"\xe2\x80\xae"]
NUMBERS = [b"0", b"-1", b"1e308", b"1e999", b"-1e-320", b"9223372036854775808", b"18446744073709551616", b"NaN", b"-inf",
           b"0x1p9", b"1.", b"00", b"2147483648", b"null", b"true", b'""', b"[]", b"{}"]


def mutated(chance, content, other):
    """One to four changes of `content`, with parts of `other`, at most 4 MB; `chance` is a random.Random."""
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randint(0, len(content)), chance.randint(1, 64)
        before, after = content[:at], content[at:]
        change = chance.randrange(10)
        if change == 0:
            content = before + bytes([after[0] ^ 1 << chance.randrange(8)]) + after[1:] if after else before
        elif change == 1:
            content = before + chance.choice(TELLING) + after[1:]
        elif change == 2:
            content = before + chance.choice(TELLING) + after
        elif change == 3:
            content = before + after[length:]
        elif change == 4:
            content = before
        elif change == 5:
            content = before + after[:length] + after
        elif change == 6:
            content = before + other[chance.randint(0, len(other)):]
        elif change == 7:
            number = chance.choice(NUMBERS)
            content = before + re.sub(rb"[0-9][0-9.eE+-]*", lambda _: number, after, count=1)
        elif change == 8:
            content = before + chance.choice([b"[", b"{", b"(", b'{"a":']) * chance.randint(1, 20000) + after
        else:
            begin = content.rfind(b"\n", 0, at) + 1
            line = content[begin:].split(b"\n", 1)[0] + chance.choice([b"\n", b"", b","])
            content = content[:begin] + line * chance.randint(2, 50) + content[begin:]
    return content[:4 << 20]
