func.func @main(%a: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %v, %i = chlo.top_k(%a, k = 4) : tensor<8xf32> -> (tensor<4xf32>, tensor<4xi32>)
  return %v, %i : tensor<4xf32>, tensor<4xi32>
}
