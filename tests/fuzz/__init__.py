"""Entries that take what is not ours, each as one function of bytes: see `targets`."""
