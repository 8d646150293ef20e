"""Partitions of a table on a cluster, and samples of them."""
