#map = #stablehlo<precision HIGHEST>
!t = tensor<2x3xf32>
module @forms attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: !t {mhlo.sharding = "{replicated}", tf.aliasing_output = 0 : i32}, %arg1: tensor<3x4xf32>) -> (tensor<2x4xf32> {jax.result_info = "x"}, tensor<i32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> loc("dot"("f.py":1:2))
    %cst = stablehlo.constant dense<[[0x7FC00000, 1.5, -2.0e-3]]> : tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %0, %c : tensor<2x4xf32>, tensor<i32>
  }
  func.func private @loop(%arg0: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %c) : tensor<i32>, tensor<i32>
    cond {
      %1 = stablehlo.compare  LT, %iterArg, %iterArg_0,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %1, %iterArg_0 : tensor<i32>, tensor<i32>
    }
    return %0#0 : tensor<i32>
  }
}
