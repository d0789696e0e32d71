func.func @f(%x: tensor<4x?xf32>, %i: tensor<4xi32>, %y: tensor<4xf32>, %c: tensor<4xcomplex<f32>>, %p: tensor<4xi1>, %q: tensor<4x4xf32>, %s: tensor<f32>, %n: tensor<i32>, %d: tensor<2xi64>, %d2: tensor<2xui64>, %k: tensor<3x3x3x3xf32>) {
  "stablehlo.abs"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.abs"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.cbrt"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.cbrt"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.ceil"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.ceil"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.cosine"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.cosine"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.exponential"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.exponential"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.exponential_minus_one"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.exponential_minus_one"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.floor"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.floor"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.log"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.log"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.log_plus_one"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.log_plus_one"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.logistic"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.logistic"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.negate"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.negate"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.round_nearest_afz"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.round_nearest_afz"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.round_nearest_even"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.round_nearest_even"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.rsqrt"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.rsqrt"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.sign"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.sign"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.sine"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.sine"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.sqrt"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.sqrt"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.tan"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.tan"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.tanh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.tanh"(%x) : (tensor<4x?xf32>) -> tensor<?x4xf32>
  "stablehlo.cbrt"(%y) {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.cbrt"(%y) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.cbrt"(%y) {result_accuracy = #stablehlo.result_accuracy<rtol = 0.1, ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.exponential"(%y) {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.exponential"(%y) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.exponential"(%y) {result_accuracy = #stablehlo.result_accuracy<rtol = 0.1, ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.count_leading_zeros"(%i) : (tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.not"(%i) : (tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.popcnt"(%i) : (tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.add"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.atan2"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.divide"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.maximum"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.minimum"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.multiply"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.power"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.remainder"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.subtract"(%y, %y) {a.b} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.and"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.or"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.xor"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.shift_left"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.shift_right_arithmetic"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "stablehlo.shift_right_logical"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  "chlo.acos"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.acosh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.asin"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.asinh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.atan"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.atanh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.bessel_i1e"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.cosh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.digamma"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.erf"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.erf_inv"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.erfc"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.lgamma"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.sinh"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.tan"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  "chlo.broadcast_add"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_atan2"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_divide"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_maximum"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_minimum"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_multiply"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_next_after"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_polygamma"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_power"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_remainder"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_subtract"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "chlo.broadcast_zeta"(%y, %q) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.real"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  "stablehlo.imag"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  "stablehlo.abs"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  "stablehlo.convert"(%y) : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  "stablehlo.bitcast_convert"(%y) : (tensor<4xf32>) -> tensor<4xi32>
  "stablehlo.is_finite"(%y) : (tensor<4xf32>) -> tensor<4xi1>
  "stablehlo.compare"(%y, %y) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  "stablehlo.compare"(%y, %y) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type TOTALORDER>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  "stablehlo.complex"(%y, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  "stablehlo.clamp"(%s, %y, %y) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.select"(%p, %y, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.select"(%p, %y, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>
  "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<4x4xi32>
  "stablehlo.dynamic_iota"(%d) {iota_dimension = 1 : i64} : (tensor<2xi64>) -> tensor<?x?xi32>
  "stablehlo.broadcast_in_dim"(%y) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  "stablehlo.broadcast_in_dim"(%s) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x4xf32>
  "stablehlo.dynamic_broadcast_in_dim"(%y, %d) {broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  "stablehlo.concatenate"(%y, %y, %y) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
  "stablehlo.dynamic_slice"(%q, %n, %n) {slice_sizes = array<i64: 1, 2>} : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  "stablehlo.dynamic_update_slice"(%y, %y, %n) : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  "stablehlo.slice"(%q) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 3>, strides = array<i64: 2, 1>} : (tensor<4x4xf32>) -> tensor<2x2xf32>
  "stablehlo.pad"(%y, %s) {edge_padding_low = array<i64: -1>, edge_padding_high = array<i64: 2>, interior_padding = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  "stablehlo.reshape"(%y) : (tensor<4xf32>) -> tensor<2x2xf32>
  "stablehlo.reverse"(%y) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.transpose"(%q) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.get_dimension_size"(%x) {dimension = 1 : i64} : (tensor<4x?xf32>) -> tensor<i32>
  "stablehlo.set_dimension_size"(%q, %n) {dimension = 1 : i64} : (tensor<4x4xf32>, tensor<i32>) -> tensor<4x?xf32, #stablehlo.bounds<?, 4>>
  "stablehlo.dot"(%q, %q) {precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.dot_general"(%q, %q) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.dot_general"(%q, %q) {precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>], dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  "stablehlo.fft"(%c) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  "stablehlo.cholesky"(%q) {lower = true} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.cholesky"(%q) {lower = false} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.gather"(%q, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
  "stablehlo.rng_bit_generator"(%d2) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  "stablehlo.replica_id"() : () -> tensor<ui32>
  "stablehlo.custom_call"() {call_target_name = "f.g", has_side_effect = true, operand_layouts = [], result_layouts = []} : () -> ()
  "stablehlo.custom_call"(%q) {call_target_name = "f", api_version = 2 : i32, backend_config = "x\00y", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.reduce"(%q, %s) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %0 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>  "stablehlo.return"(%0) : (tensor<f32>) -> () }) {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  "stablehlo.reduce"(%q, %s) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %0 = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>  "stablehlo.return"(%0) : (tensor<f32>) -> () }) {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  "stablehlo.reduce"(%q, %s) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %0 = "stablehlo.subtract"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>  "stablehlo.return"(%0) : (tensor<f32>) -> () }) {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  "stablehlo.reduce"(%q, %s) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %0 = "stablehlo.add"(%b, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>  "stablehlo.return"(%0) : (tensor<f32>) -> () }) {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  "stablehlo.reduce"(%y, %y, %s, %s) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c2: tensor<f32>, %e: tensor<f32>): %0 = stablehlo.add %a, %c2 : tensor<f32> %1 = stablehlo.constant dense<1.0> : tensor<f32> "stablehlo.return"(%0, %1) : (tensor<f32>, tensor<f32>) -> () }) {dimensions = array<i64: 0>, a.b = "c"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  "stablehlo.convolution"(%k, %k) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, window_reversal = array<i1: false, true>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return
}
