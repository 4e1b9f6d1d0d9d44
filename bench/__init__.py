"""Benchmarks: `make bench` runs them and writes the tables of docs/benchmarks.md and of the README."""
