func.func @main(%a: tensor<1x8x2xf32>, %b: tensor<3x2x4xf32>) -> tensor<1x6x4xf32> {
  %c = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>
  return %c : tensor<1x6x4xf32>
}
