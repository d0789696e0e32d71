func.func @main(%arg0: tensor<2x!quant.uniform<i8:f32, 0.5:3>>, %arg1: tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> tensor<2xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<2x!quant.uniform<i8:f32, 0.5:3>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2xf32>
  %2 = stablehlo.tanh %arg1 : tensor<?x3xf32, #stablehlo.bounds<4, ?>>
  return %1 : tensor<2xf32>
}
