func.func @main(%a: tensor<4x3xf32>, %i: tensor<5x2xi32>) -> tensor<5xf32> {
  %c = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x3xf32>, tensor<5x2xi32>) -> tensor<5xf32>
  return %c : tensor<5xf32>
}
