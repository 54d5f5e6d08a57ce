"""Photographs and drawings as images, and files of the form of MNIST."""
