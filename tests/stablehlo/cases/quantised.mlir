// 1: quantized_type_c3
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>>
  return %r : tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>>) -> tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>> {
  return %a : tensor<2x3x!quant.uniform<i8<5:5>:f32, 1.0:5>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>>
  return %r : tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>>) -> tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>> {
  return %a : tensor<2x3x!quant.uniform<i8<9:3>:f32, 1.0:4>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>>) -> tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8<-129:3>:f32, 1.0>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>>
}
// -----
// 1: quantized_type_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>>) -> tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8<0:128>:f32, 1.0>>
}
// -----
// 1: quantized_type_c5
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.0>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 0.0>>
}
// -----
// 1: quantized_type_c5
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 0.0>>) -> tensor<2x3x!quant.uniform<i8:f32, 0.0>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, 0.0>>
}
// -----
// 1: quantized_type_c5
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, -1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, -1.0>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, -1.0>>
}
// -----
// 1: quantized_type_c5
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, -1.0>>) -> tensor<2x3x!quant.uniform<i8:f32, -1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, -1.0>>
}
// -----
// 1: quantized_type_c4
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>>
}
// -----
// 1: quantized_type_c4
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>>) -> tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, 0x7F800000>>
}
// -----
// 1: quantized_type_c4
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1e39>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1e39>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1e39>>
}
// -----
// 1: quantized_type_c4
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1e39>>) -> tensor<2x3x!quant.uniform<i8:f32, 1e39>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, 1e39>>
}
// -----
// 2: quantized_type_c7
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:128>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:128>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:128>>
}
// -----
// 1: quantized_type_c7
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:128>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:128>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, 1.0:128>>
}
// -----
// 2: quantized_type_c7
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>>
  return %r : tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>>
}
// -----
// 1: quantized_type_c7
func.func @f(%a: tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>>) -> tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>> {
  return %a : tensor<2x3x!quant.uniform<i8<-5:5>:f32, 1.0:6>>
}
// -----
// 2: quantized_type_c7
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>>
  return %r : tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>>
}
// -----
// 1: quantized_type_c7
func.func @f(%a: tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>>) -> tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>> {
  return %a : tensor<2x3x!quant.uniform<u8:f32, 1.0:-1>>
}
// -----
// 1: quantized_type_c10
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>>
}
// -----
// 1: quantized_type_c10
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32, {1.0, 2.0}>>
}
// -----
// 2: quantized_type_c13
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, 1.0>>
}
// -----
// 1: quantized_type_c13
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, 1.0>>) -> tensor<2x3x!quant.uniform<i8:f32:1, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:1, 1.0>>
}
// -----
// 1: quantized_type_c11
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>>
}
// -----
// 1: quantized_type_c11
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:-1, {1.0}>>
}
// -----
// 2: quantized_type_c12
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>>
}
// -----
// 1: quantized_type_c12
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:2, {1.0,1.0}>>
}
// -----
// 2: quantized_type_c13
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 1: quantized_type_c13
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 2: quantized_type_c13
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>>
}
// -----
// 1: quantized_type_c13
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>>
}
// -----
// 1: illegal storage type size
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i64:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i64:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i64:f32, 1.0>>
}
// -----
// 1: illegal storage type size
func.func @f(%a: tensor<2x3x!quant.uniform<i64:f32, 1.0>>) -> tensor<2x3x!quant.uniform<i64:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i64:f32, 1.0>>
}
// -----
// 2: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i1:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i1:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i1:f32, 1.0>>
}
// -----
// 1: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3x!quant.uniform<i1:f32, 1.0>>) -> tensor<2x3x!quant.uniform<i1:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i1:f32, 1.0>>
}
// -----
// 2: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<f32:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<f32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<f32:f32, 1.0>>
}
// -----
// 1: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3x!quant.uniform<f32:f32, 1.0>>) -> tensor<2x3x!quant.uniform<f32:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<f32:f32, 1.0>>
}
// -----
// 2: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>>
}
// -----
// 1: expected integers of 2 to 32 bits
func.func @f(%a: tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>>) -> tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<f8E4M3FN:f32, 1.0>>
}
// -----
// 1: expected a float
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:i32, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:i32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i8:i32, 1.0>>
}
// -----
// 1: expected a float
func.func @f(%a: tensor<2x3x!quant.uniform<i8:i32, 1.0>>) -> tensor<2x3x!quant.uniform<i8:i32, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8:i32, 1.0>>
}
// -----
// 1: expected a float
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>>
}
// -----
// 1: expected a float
func.func @f(%a: tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>>) -> tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>> {
  return %a : tensor<2x3x!quant.uniform<i8:complex<f32>, 1.0>>
}
// -----
// 2: quantized_type_c13
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {}>>
}
// -----
// 1: quantized_type_c13
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {}>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {}>> {
  return %a : tensor<2x3x!quant.uniform<i8:f32:1, {}>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:{0:1}, {{1.0},{2.0}}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:{0:1}, {{1.0},{2.0}}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:{0:1}, {{1.0},{2.0}}>>
}
// -----
// 1: quantized_type_c4
func.func @f(%a: tensor<2x3xf16>) -> tensor<2x3x!quant.uniform<i8:f16, 70000.0>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf16>) -> tensor<2x3x!quant.uniform<i8:f16, 70000.0>>
  return %r : tensor<2x3x!quant.uniform<i8:f16, 70000.0>>
}
// -----
// ok
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0,2.0,3.0}>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0,2.0,3.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {1.0,2.0,3.0}>>
}
// -----
// 2: add_c2
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: add_c2
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: add_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: add_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: add_c4
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f16, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f16, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: add_c5
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: add_c5
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// 2: add_c6
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
}
// -----
// 2: add_c7
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.add %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.abs %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.abs %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: its operands and attributes give
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.abs %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: its operands and attributes give
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.abs %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: its operands and attributes give
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.abs %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.cbrt %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.cbrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.cbrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.cbrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.cbrt %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.ceil %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.ceil %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.ceil %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.ceil %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.ceil %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.cosine %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.cosine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.cosine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.cosine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.cosine %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.exponential %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.exponential %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.exponential %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.exponential %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.exponential %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.exponential_minus_one %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.exponential_minus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.exponential_minus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.exponential_minus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.exponential_minus_one %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.floor %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.floor %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.floor %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.floor %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.floor %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.log %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.log %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.log %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.log %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.log %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.log_plus_one %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.log_plus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.log_plus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.log_plus_one %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.log_plus_one %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.logistic %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.logistic %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.logistic %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.logistic %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.logistic %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.negate %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.negate %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.negate %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.negate %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.negate %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.round_nearest_afz %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.round_nearest_afz %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.round_nearest_afz %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.round_nearest_afz %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.round_nearest_afz %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.round_nearest_even %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.round_nearest_even %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.round_nearest_even %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.round_nearest_even %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.round_nearest_even %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.rsqrt %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.rsqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.rsqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.rsqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.rsqrt %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.sign %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.sign %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.sign %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.sign %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.sign %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.sine %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.sine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.sine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.sine %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.sine %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.sqrt %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.sqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.sqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.sqrt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.sqrt %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.tan %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.tan %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.tan %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.tan %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.tan %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.tanh %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.tanh %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>> {
  %r = stablehlo.tanh %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i32:f32, 1.0>>
  return %r : tensor<2x3x!quant.uniform<i32:f32, 1.0>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.tanh %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.tanh %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.atan2 %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.atan2 %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.atan2 %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.atan2 %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.divide %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.divide %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.divide %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.divide %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.maximum %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.maximum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.maximum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.maximum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.minimum %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.minimum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.minimum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.minimum %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.multiply %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.multiply %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.multiply %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.multiply %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.power %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.power %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.power %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.power %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.remainder %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.remainder %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.remainder %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.remainder %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.subtract %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.subtract %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.subtract %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.subtract %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.and %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.or %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.xor %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi1> {
  %r = stablehlo.is_finite %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi1>
  return %r : tensor<2x3xi1>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.not %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.popcnt %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.real %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible element types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3xi1> {
  %r = stablehlo.compare EQ, %a, %b : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3xi1>
  return %r : tensor<2x3xi1>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3xi1> {
  %r = stablehlo.compare EQ, %a, %b : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3xi1>
  return %r : tensor<2x3xi1>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32> {
  %r = stablehlo.convert %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: bitcast_convert_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi16> {
  %r = stablehlo.bitcast_convert %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi16>
  return %r : tensor<2x3xi16>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi8> {
  %r = stablehlo.bitcast_convert %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xi8>
  return %r : tensor<2x3xi8>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i32:f32, 1.0>>) -> tensor<2x3x4xi8> {
  %r = stablehlo.bitcast_convert %a : (tensor<2x3x!quant.uniform<i32:f32, 1.0>>) -> tensor<2x3x4xi8>
  return %r : tensor<2x3x4xi8>
}
// -----
// 2: one shape
func.func @f(%a: tensor<3x2xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.uniform_quantize %a : (tensor<3x2xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: uniform_quantize_c2
func.func @f(%a: tensor<2x3xf16>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf16>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: uniform_quantize_c2
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f16, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3x!quant.uniform<i8:f16, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3xi8>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xi8>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: its operands and attributes give
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf16> {
  %r = stablehlo.uniform_dequantize %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3xf16>
  return %r : tensor<2x3xf16>
}
// -----
// 2: its operands and attributes give
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2xf32> {
  %r = stablehlo.uniform_dequantize %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.uniform_dequantize %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -----
// 2: reshape_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: reshape_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>>
}
// -----
// 2: reshape_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 2: reshape_c3
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:0, {1.0, 2.0, 3.0}>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:0, {1.0, 2.0, 3.0}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:0, {1.0, 2.0, 3.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<1x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<1x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
  return %r : tensor<1x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 2: compatible element types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible element types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.reshape %a : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// 2: transpose_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 2: transpose_c4
func.func @f(%a: tensor<2x2x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// 2: transpose_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {1.0, 5.0}>>
}
// -----
// 2: broadcast_in_dim_c1
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<4x2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<4x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>> {
  %r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<4x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
  return %r : tensor<4x2x3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>
}
// -----
// 2: broadcast_in_dim_c6
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x2x3x!quant.uniform<i8:f32:0, {1.0,2.0}>> {
  %r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x2x3x!quant.uniform<i8:f32:0, {1.0,2.0}>>
  return %r : tensor<2x2x3x!quant.uniform<i8:f32:0, {1.0,2.0}>>
}
// -----
// 2: broadcast_in_dim_c6
func.func @f(%a: tensor<1x3x!quant.uniform<i8:f32:0, {1.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x3x!quant.uniform<i8:f32:0, {1.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<1x3x!quant.uniform<i8:f32:0, {2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {2.0, 2.0}>> {
  %r = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x3x!quant.uniform<i8:f32:0, {2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {2.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {2.0, 2.0}>>
}
// -----
// 2: same element type
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<4x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>) -> tensor<4x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<4x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<4x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: same element type
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<4x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<4x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<4x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>> {
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>, tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<4x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
  return %r : tensor<4x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<1x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>> {
  %r = stablehlo.slice %a [0:1, 0:3] : (tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>) -> tensor<1x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
  return %r : tensor<1x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0}>>
}
// -----
// 2: same element type
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<1x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.slice %a [0:1, 0:3] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<1x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<1x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<1x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.slice %a [0:1, 0:3] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<1x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<1x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: same element type
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>> {
  %r = stablehlo.reverse %a, dims = [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.reverse %a, dims = [0] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// 2: same element type
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<!quant.uniform<i8:f32, 2.0:3>>) -> tensor<3x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.pad %a, %b, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<!quant.uniform<i8:f32, 2.0:3>>) -> tensor<3x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<3x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: select_c2
func.func @f(%p: tensor<2x3xi1>, %a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.select %p, %a, %b : (tensor<2x3xi1>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%p: tensor<2x3xi1>, %a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.select %p, %a, %b : (tensor<2x3xi1>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// 2: select_c2
func.func @f(%p: tensor<2x3xi1>, %a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.select %p, %a, %b : (tensor<2x3xi1>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// ok
func.func @f(%p: tensor<2x3xi1>, %a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.select %p, %a, %b : (tensor<2x3xi1>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: compatible element types
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>, %c: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<u8:f32, 1.0:1>> {
  %r = stablehlo.clamp %a, %b, %c : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<u8:f32, 1.0:1>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, %b: tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>, %c: tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.clamp %a, %b, %c : (tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>, tensor<2x3x!quant.uniform<i8:f32, 2.0:3>>, tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %c: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>> {
  %r = stablehlo.clamp %a, %b, %c : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>) -> tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
  return %r : tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>
}
// -----
// ok
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c14
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4xf32>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4xf32>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c14
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c14
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf32> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// -----
// 2: dot_general_c15
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0:2>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32, 1.0:2>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c15
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32:1, {1.0,1.0,1.0,1.0:2}>>) -> tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32:1, {1.0,1.0,1.0,1.0:2}>>) -> tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
  return %r : tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
}
// -----
// 2: dot_general_c16
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32:0, {1.0,2.0,3.0}>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32:0, {1.0,2.0,3.0}>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c17
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i4:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i4:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c18
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: dot_general_c18
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f16, 1.0>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f16, 1.0>>
  return %r : tensor<2x4x!quant.uniform<i32:f16, 1.0>>
}
// -----
// 2: dot_general_c19
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 1.0:3>>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
  return %r : tensor<2x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
}
// -----
// 2: dot_general_c20
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<2x4xf32> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// -----
// 2: dot_general_c20
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf16> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf16>
  return %r : tensor<2x4xf16>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<2x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// ok
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf32> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// -----
// ok
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: convolution_c28
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4xf32>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4xf32>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: convolution_c28
func.func @f(%a: tensor<1x5x2xf32>, %b: tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2xf32>, tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: convolution_c29
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f32:0, {1.0,2.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f32:0, {1.0,2.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// ok
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f32:2, {1.0,2.0,1.0,1.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f32:2, {1.0,2.0,1.0,1.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>>
}
// -----
// 2: convolution_c30
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f32:2, {1.0,2.0,1.0,1.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f32:2, {1.0,2.0,1.0,1.0}>>) -> tensor<1x4x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32:1, {1.0,1.0,1.0,1.0}>>
}
// -----
// 2: convolution_c31
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i4:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i4:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: convolution_c32
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// 2: convolution_c33
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, %b: tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32, 1.0:3>>, tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32:2, {1.0,1.0,1.0,1.0}>>
}
// -----
// 2: convolution_c34
func.func @f(%a: tensor<1x5x2xf32>, %b: tensor<2x2x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<1x4x4xf32> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2xf32>, tensor<2x2x4x!quant.uniform<i8:f16, 1.0>>) -> tensor<1x4x4xf32>
  return %r : tensor<1x4x4xf32>
}
// -----
// 2: expected tensor of
func.func @f(%a: tensor<1x5x2x!quant.uniform<i8:f32:2, {1.0,2.0}>>, %b: tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>> {
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2x!quant.uniform<i8:f32:2, {1.0,2.0}>>, tensor<2x2x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
  return %r : tensor<1x4x4x!quant.uniform<i32:f32, 1.0:2>>
}
// -----
// ok
func.func @f() -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.constant() {value = dense<1> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: its operands and attributes give
func.func @f() -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.constant() {value = dense<1> : tensor<2x3xi16>} : () -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: its operands and attributes give
func.func @f() -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.constant() {value = dense<1> : tensor<3x2xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
// -----
// 2: its operands and attributes give
func.func @f() -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>> {
  %r = stablehlo.constant() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
  return %r : tensor<2x3x!quant.uniform<i8:f32, 1.0:1>>
}
