module @m {
  func.func public @main(%arg0: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}, %arg1: tensor<i32>) -> (tensor<2x3xf32>, tensor<?xf32, #stablehlo.bounds<6>>) {
    %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 2 : i64, largest = false}, mhlo.version = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %1 = stablehlo.custom_call @mhlo.domain(%arg0) {mhlo.attributes = {domain = "{kind=\22sharding\22, entry={maximal device=0}, exit={maximal device=1}}"}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.custom_call @t(%1) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.schedule = "SCHEDULE_LATEST"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = call @f(%2) {mhlo.fusion_kind = "kLoop"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = stablehlo.composite "my.op" %3 {composite_attributes = {n = 1 : i64}, decomposition = @f, version = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.dynamic_reshape %4, %5 : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<6>>
    return %4, %6 : tensor<2x3xf32>, tensor<?xf32, #stablehlo.bounds<6>>
  }
  func.func private @f(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
