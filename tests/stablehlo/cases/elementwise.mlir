// 2: compatible types
func.func @f(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.multiply"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// 2: integers
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.popcnt %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// 2: select_c1
func.func @f(%p: tensor<3xi1>, %a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.select"(%p, %a, %a) : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// ok
func.func @f(%a: tensor<?xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.multiply"(%a, %b) : (tensor<?xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
