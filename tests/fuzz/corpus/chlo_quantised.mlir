func.func @main(%a: tensor<4x!quant.uniform<i8:f32, 2.0:15>>, %b: tensor<4x!quant.uniform<i8:f32, 2.0:15>>) -> tensor<4x!quant.uniform<i8:f32, 2.0:15>> {
  %0 = stablehlo.maximum %a, %b : tensor<4x!quant.uniform<i8:f32, 2.0:15>>
  %1 = "chlo.broadcast_add"(%0, %b) : (tensor<4x!quant.uniform<i8:f32, 2.0:15>>, tensor<4x!quant.uniform<i8:f32, 2.0:15>>) -> tensor<4x!quant.uniform<i8:f32, 2.0:15>>
  return %1 : tensor<4x!quant.uniform<i8:f32, 2.0:15>>
}
