module attributes {m.a = [1, 2 : i32, 1.5, 2.5 : f32, true, "x\22y\\z\09", unit], m.b = {c = @f::@g, "d e" = array<i32: 1, 2>}, m.t = tensor<2xf32>, m.fn = (i32) -> i32, m.u = 7 : ui8, m.idx = 3 : index, m.n = -1 : i8} {
  func.func private @ext(tensor<f32> {x.y = 1 : i64}, i32) -> (tensor<f32> {z.w}, i32) attributes {foo.bar}
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.constant dense_resource<res> : tensor<4xf32>
    %1 = stablehlo.add %0, %x {my.attr = "a"} : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      res: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
