func.func @f(%p: tensor<i1>, %x: tensor<4xf32>, %t: !stablehlo.token) -> tensor<4xf32> {
  %s = stablehlo.select %p, %x, %x : tensor<i1>, tensor<4xf32>
  %c = stablehlo.complex %x, %x : tensor<4xcomplex<f32>>
  %b = stablehlo.optimization_barrier %x : tensor<4xf32>
  stablehlo.optimization_barrier()
  %tt = stablehlo.tuple : tuple<>
  %a = stablehlo.after_all : !stablehlo.token
  %a2 = stablehlo.after_all %t, %a : !stablehlo.token
  %cc = stablehlo.custom_call @"a b"(%x) {api_version = 4 : i32, backend_config = {k = 1 : i64}, called_computations = [], has_side_effect = false, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>
  %r = stablehlo.reduce_precision %x, format = e5m2 {q.r} : tensor<4xf32>
  %k:2 = "chlo.top_k"(%x) {k = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %z = stablehlo.constant {foo.x = 1 : i64} dense<[(1.0,2.0),(3.0,-0.0)]> : tensor<2xcomplex<f32>>
  %zz = stablehlo.constant dense<> : tensor<0x3xf32>
  %i4 = stablehlo.constant dense<[[-1, 2], [3, -8]]> : tensor<2x2xi4>
  %u = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
  %w:2 = stablehlo.while(%i = %x, %j = %p) : tensor<4xf32>, tensor<i1> attributes {a.b = 1 : i64}
   cond { 
    stablehlo.return %j : tensor<i1>
   } do {
    %y = func.call @g(%i) : (tensor<4xf32>) -> tensor<4xf32>
    %q = stablehlo.constant dense<1.0> : tensor<4xf32>
    %v:2 = stablehlo.while(%i2 = %y, %j2 = %j) : tensor<4xf32>, tensor<i1> cond { stablehlo.return %j2 : tensor<i1> } do { stablehlo.return %q, %j2 : tensor<4xf32>, tensor<i1> }
    stablehlo.return %v#0, %v#1 : tensor<4xf32>, tensor<i1>
   }
  "stablehlo.if"(%p) ({ "stablehlo.return"() : () -> () }, { "stablehlo.return"() : () -> () }) : (tensor<i1>) -> ()
  return %w#0 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
