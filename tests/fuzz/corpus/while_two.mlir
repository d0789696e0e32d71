func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%x = %a, %i = %n) : tensor<4xf32>, tensor<i32>
    cond {
      %limit = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %y = stablehlo.add %x, %x : tensor<4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %y, %j : tensor<4xf32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<4xf32>, tensor<i32>
}
