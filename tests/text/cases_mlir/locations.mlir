func.func @f(%x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %1 = stablehlo.add %x, %x : tensor<4xf32> loc(callsite("a"("f.py":1:2) at fused<"m">["b.py":3:4, "c"]))
  %2 = stablehlo.add %x, %1 : tensor<4xf32> loc("a"("f.py":1:2))
  %3 = stablehlo.add %x, %2 : tensor<4xf32> loc(fused["f.py":1:2 to :9, "g.py":3:4 to 8:9])
  %4 = stablehlo.add %x, %3 : tensor<4xf32> loc(unknown)
  return %4 : tensor<4xf32> loc("z"(callsite("q" at "r")))
} loc("fun")
