sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @turned = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(2)2}], replicated={"y":(1)2}>}, %arg1: tensor<16x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}], unreduced={"y"}>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%arg2: tensor<4x8xf32>) {
    %6 = stablehlo.add %arg2, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<4x8xf32>
    sdy.return %6 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.named_computation<"foo">(%2) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] (%arg2: tensor<8x8xf32>) {
    sdy.return %arg2 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = sdy.reshard %3 <mesh<["x"=2, "y"=4]>, [{"y", "x"}, {}]> : tensor<8x8xf32>
  %5 = sdy.propagation_barrier %4 allowed_direction=FORWARD : tensor<8x8xf32>
  sdy.sharding_group %5 group_id=3 : tensor<8x8xf32>
  %6 = stablehlo.custom_call @foo(%5) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([jk, i]) {i=8, j=2, k=4} need_replication={j} blocked_propagation={k}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %7 = func.call @shared(%6) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %7 : tensor<8x8xf32>
}
func.func private @shared(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {"x", "y":(1)2}] %0 out_sharding=<@mesh, [{}, {"x", "y":(1)2}]> : tensor<8x8xf32>
  %2 = sdy.all_to_all [{"y":(1)2}: 1->0] %1 out_sharding=<@mesh, [{"y":(1)2}, {"x"}]> : tensor<8x8xf32>
  %3 = sdy.collective_permute %2 out_sharding=<@turned, [{"y":(1)2}, {"x"}]> : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
