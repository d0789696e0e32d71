func.func @main(%a: tensor<4x3xf32>, %b: tensor<3xf32>, %c: tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xi1>) {
  %0 = chlo.broadcast_add %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %1 = chlo.broadcast_multiply %0, %c : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %2 = chlo.broadcast_maximum %1, %a : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = chlo.broadcast_compare %2, %b {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
  return %2, %3 : tensor<4x3xf32>, tensor<4x3xi1>
}
