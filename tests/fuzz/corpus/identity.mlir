func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {n = 3 : i64} {
  return %b, %a : tensor<2xf32>, tensor<2xf32>
}
