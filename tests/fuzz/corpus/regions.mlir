func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<2x1xi32>, %arg2: tensor<2x6xf32>, %arg3: tensor<i32>) -> tensor<4x6xf32> {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x1xi32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  %1 = "stablehlo.case"(%arg3) ({
    stablehlo.return %0 : tensor<4x6xf32>
  }, {
    %n = stablehlo.negate %0 : tensor<4x6xf32>
    stablehlo.return %n : tensor<4x6xf32>
  }) : (tensor<i32>) -> tensor<4x6xf32>
  %2 = stablehlo.slice %1 [0:4:2, 1:3] : (tensor<4x6xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.custom_call @foo(%2) {api_version = 4 : i32, backend_config = {a = 1 : i64}} : (tensor<2x2xf32>) -> tensor<2x2xf32>

  return %1 : tensor<4x6xf32>
}
