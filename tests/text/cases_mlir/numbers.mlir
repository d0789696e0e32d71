func.func @numbers() {
  stablehlo.constant dense<[0.0, -0.0, 1.0, 0.1, 65504.0, 5.960460e-08, 1.953130e-03, 3.333330e-01]> : tensor<8xf16>
  stablehlo.constant dense<[0.0, -0.0, 1.0, -1.5, 0.1, 3.14159274, 1.0e10, 1.0e-10, 1.17549435e-38, 3.40282347e+38, 16777216.0, 0.333333343, 123456.789, 1.401300e-45]> : tensor<14xbf16>
  stablehlo.constant dense<[0.0, -0.0, 1.0, -1.5, 0.1, 3.14159274, 1.0e10, 1.0e-10, 1.17549435e-38, 3.40282347e+38, 16777216.0, 0.333333343, 123456.789, 1.401300e-45]> : tensor<14xf32>
  stablehlo.constant dense<[0.0, -0.0, 1.0, -1.5, 0.1, 3.14159274, 1.0e10, 1.0e-10, 1.17549435e-38, 3.40282347e+38, 16777216.0, 0.333333343, 123456.789, 1.401300e-45]> : tensor<14xf64>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E4M3FN>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E5M2>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E4M3>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E3M4>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E4M3FNUZ>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E5M2FNUZ>
  stablehlo.constant dense<"0x000102073839487E7F8081"> : tensor<11xf8E4M3B11FNUZ>
  stablehlo.constant dense<[0x7FC00000, 0xFF800000, 0x7F800001]> : tensor<3xf32>
  stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
  stablehlo.constant dense<7> : tensor<2x3xi32>
  stablehlo.constant dense<[[7, 7], [7, 7]]> : tensor<2x2xi8>
  stablehlo.constant dense<[true, false]> : tensor<2xi1>
  stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100]> : tensor<101xi32>
  stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]> : tensor<100xi32>
  stablehlo.constant dense<[-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4]> : tensor<101xi4>
  stablehlo.constant dense<[false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true]> : tensor<101xi1>
  stablehlo.constant dense<[[[1], [2]], [[3], [4]]]> : tensor<2x2x1xui16>
  func.return
}
