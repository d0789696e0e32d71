func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>, %v: tensor<5xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %s: tensor<f32>, %t: tensor<f32>):
    %z = stablehlo.add %x, %s : tensor<f32>
    %w = stablehlo.add %y, %t : tensor<f32>
    stablehlo.return %z, %w : tensor<f32>, tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %c#0, %c#1 : tensor<4xf32>, tensor<4xf32>
}
