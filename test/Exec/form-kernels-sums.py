#!/usr/bin/env python3
"""Prints a norm over so many gradients that one launch cannot take all of their sums of squares: form-kernels-sums.py GRADIENTS"""
import sys

squares = [f"%{i}" for i in range(int(sys.argv[1]))]
types = ", ".join("tensor<f32>" for _ in squares)
print(f"""func.func @norm({", ".join(f"{square}: tensor<f32>" for square in squares)}) -> tensor<f32> {{
  %norm = train.global_norm {", ".join(squares)} : ({types}) -> tensor<f32>
  return %norm : tensor<f32>
}}""")
