package compressed

import "hash/crc32"

// A CRC-32 is a polynomial over GF(2) modulo crc32.IEEE. Its highest bit is the coefficient of x^0.
const one = uint32(1) << 31

// combine returns the CRC-32 of two joined texts from theirs, and from the length of the second one. Bits that follow the
// first text multiply its polynomial by x.
func combine(first, second uint32, length int) uint32 {
	return multiply(first, power(uint64(length)*8)) ^ second //nolint:gosec // lengths are not negative
}

// multiply returns the product of two polynomials.
func multiply(a, b uint32) uint32 {
	product := uint32(0)
	for ; a != 0; a <<= 1 {
		if a&one != 0 {
			product ^= b
		}
		b = timesX(b)
	}
	return product
}

// timesX returns x times a polynomial.
func timesX(p uint32) uint32 {
	if p&1 != 0 {
		return p>>1 ^ crc32.IEEE
	}
	return p >> 1
}

// squares has x^(2^n) at n.
var squares = func() (table [64]uint32) {
	table[0] = timesX(one)
	for n := range table[1:] {
		table[n+1] = multiply(table[n], table[n])
	}
	return table
}()

// power returns x^n.
func power(n uint64) uint32 {
	out := one
	for at := 0; n != 0; at, n = at+1, n>>1 {
		if n&1 != 0 {
			out = multiply(out, squares[at])
		}
	}
	return out
}
