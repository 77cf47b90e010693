# SPDX-License-Identifier: Apache-2.0
"""`chart`: what a figure shows, as numbers. One module per kind of chart; figure.py chooses."""
