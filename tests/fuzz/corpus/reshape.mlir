func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x3xi32>) -> (tensor<12xf32>, tensor<3x2xi32>) {
  %c = stablehlo.reshape %a : (tensor<4x3xf32>) -> tensor<12xf32>
  %d = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return %c, %d : tensor<12xf32>, tensor<3x2xi32>
}
