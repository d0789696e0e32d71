// Data at the end of the text, with its alignment; alike elements stay as many as they are.
func.func @f() {
  %0 = stablehlo.constant dense_resource<a> : tensor<2xf32>
  %1 = stablehlo.constant dense_resource<b> : tensor<2xf32>
  %2 = stablehlo.constant dense_resource<a> : tensor<2xf32>
  return
}
{-#
  dialect_resources: {
    builtin: {
      a: "0x400000000000803F0000803F",
      b: "0x080000000000803F00000040"
    }
  }
#-}
