func.func @main() {
  %a = stablehlo.constant dense<[1, 0]> : tensor<2xui16>
  %f = stablehlo.constant dense<[1.0, 0.5]> : tensor<2xf32>
  %b = stablehlo.maximum %a, %a : tensor<2xui16>
  %g = stablehlo.add %f, %f : tensor<2xf32>
  check.expect_eq_const %b, dense<[1, 0]> : tensor<2xui16>
  check.expect_eq %a, %b : tensor<2xui16>
  check.expect_almost_eq_const %g, dense<[2.0, 1.0]> : tensor<2xf32>
  func.return
}
