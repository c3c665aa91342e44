"""Writes src/joe_kuo.bin, the direction numbers of S. Joe and F. Y. Kuo, from their table.

Usage: python joe_kuo.py TABLE, where TABLE is the published text file new-joe-kuo-6.21201 or
scipy's archive of it (scipy/stats/_sobol_direction_numbers.npz).

A dimension of degree s is stored as s in 5 bits, the s - 1 inner coefficients of its polynomial,
and the initial numbers m_2 .. m_s, each without its lowest bit, which is 1: j - 1 bits of m_j. The
bits are stored contiguously, beginning with the lowest bit of the first byte. The first dimension,
whose numbers are all 1, is not stored.
"""

import pathlib
import sys


def rows(table):
    if table.suffix == ".npz":
        import numpy as np

        with np.load(table) as archive:
            polynomials, numbers = archive["poly"].tolist(), archive["vinit"].tolist()
        for polynomial, row in zip(polynomials[1:], numbers[1:]):
            degree = polynomial.bit_length() - 1
            yield degree, polynomial >> 1 & (1 << degree - 1) - 1, row[:degree]
        return
    for line in table.read_text().splitlines()[1:]:
        _, degree, inner, *numbers = map(int, line.split())
        yield degree, inner, numbers


def main():
    stream, length = 0, 0
    chunks = bytearray()
    for degree, inner, numbers in rows(pathlib.Path(sys.argv[1])):
        fields = [(degree, 5), (inner, degree - 1)]
        fields += [(number >> 1, j) for j, number in enumerate(numbers)]
        for value, bits in fields:
            stream |= value << length
            length += bits
        while length >= 8:
            chunks.append(stream & 255)
            stream >>= 8
            length -= 8
    chunks.append(stream)
    pathlib.Path(__file__).with_name("src").joinpath("joe_kuo.bin").write_bytes(chunks)


main()
