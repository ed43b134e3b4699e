"""Exact moments of rows in which wide factors stand as codes, never as columns of 0 and 1.

`layout` says which columns of a row vector are given by a code, `sums` adds up such rows, `cells`
is what comes out: the same integers as those of dense rows, without most of their zeros.
"""
