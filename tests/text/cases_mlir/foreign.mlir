// Ops of other dialects in their pretty forms.
func.func @each(%i: i32, %f: f32, %n: index, %b: i1, %v: tensor<2xi32>, %w: tensor<2xi1>, %d: tensor<?x?xf32>, %s: tensor<f32>, %sh: tensor<1xindex>, %ss: !shape.shape, %wi: !shape.witness, %sz: !shape.size, %vs: !shape.value_shape) {
  %x1 = arith.constant 0 : index
  %x2 = arith.constant -1 : i32
  %x3 = arith.constant 5 : i8
  %x4 = arith.constant true
  %x5 = arith.constant 1.5 : f32
  %x6 = arith.constant dense<1> : tensor<2xi32>
  %x7 = arith.constant {a.b = 1} 7 : i64
  %x8 = arith.addi %i, %i : i32
  %x9 = arith.addi %i, %i overflow<nsw> : i32
  %x10 = arith.addi %i, %i {a.b} : i32
  %x11 = arith.muli %i, %i overflow<nsw, nuw> : i32
  %x12 = arith.subi %i, %i : i32
  %x13 = arith.divsi %i, %i : i32
  %x14 = arith.divui %i, %i : i32
  %x15 = arith.ceildivsi %i, %i : i32
  %x16 = arith.ceildivui %i, %i : i32
  %x17 = arith.floordivsi %i, %i : i32
  %x18 = arith.remsi %i, %i : i32
  %x19 = arith.remui %i, %i : i32
  %x20 = arith.andi %i, %i : i32
  %x21 = arith.ori %i, %i : i32
  %x22 = arith.xori %i, %i : i32
  %x23 = arith.shli %i, %i : i32
  %x24 = arith.shrsi %i, %i : i32
  %x25 = arith.shrui %i, %i : i32
  %x26 = arith.maxsi %i, %i : i32
  %x27 = arith.maxui %i, %i : i32
  %x28 = arith.minsi %i, %i : i32
  %x29 = arith.minui %i, %i : i32
  %x30 = arith.addf %f, %f : f32
  %x31 = arith.addf %f, %f fastmath<fast> : f32
  %x32 = arith.subf %f, %f : f32
  %x33 = arith.mulf %f, %f : f32
  %x34 = arith.divf %f, %f : f32
  %x35 = arith.remf %f, %f : f32
  %x36 = arith.maximumf %f, %f : f32
  %x37 = arith.minimumf %f, %f : f32
  %x38 = arith.maxnumf %f, %f : f32
  %x39 = arith.minnumf %f, %f : f32
  %x40 = arith.negf %f : f32
  %x41 = arith.index_cast %n : index to i32
  %x42 = arith.index_castui %n : index to i32
  %x43 = arith.extsi %i : i32 to i64
  %x44 = arith.extui %i : i32 to i64
  %x45 = arith.extui %i nneg : i32 to i64
  %x46 = arith.extf %f : f32 to f64
  %x47 = arith.trunci %i : i32 to i8
  %x48 = arith.truncf %f : f32 to f16
  %x49 = arith.sitofp %i : i32 to f32
  %x50 = arith.uitofp %i : i32 to f32
  %x51 = arith.fptosi %f : f32 to i32
  %x52 = arith.fptoui %f : f32 to i32
  %x53 = arith.bitcast %f : f32 to i32
  %x54 = arith.cmpi slt, %i, %i : i32
  %x55 = arith.cmpi eq, %v, %v : tensor<2xi32>
  %x56 = arith.cmpf oeq, %f, %f : f32
  %x57 = arith.select %b, %i, %i : i32
  %x58 = arith.select %w, %v, %v : tensor<2xi1>, tensor<2xi32>
  %x59 = tensor.dim %d, %n : tensor<?x?xf32>
  %x60 = tensor.from_elements %i, %i : tensor<2xi32>
  %x61 = tensor.from_elements : tensor<0xi32>
  %x62 = tensor.extract %v[%n] : tensor<2xi32>
  %x63 = tensor.extract %s[] : tensor<f32>
  %x64 = tensor.cast %d : tensor<?x?xf32> to tensor<2x?xf32>
  %x65 = tensor.rank %d : tensor<?x?xf32>
  %x66 = tensor.empty() : tensor<2xf32>
  %x67 = tensor.empty(%n) : tensor<?xf32>
  %x68 = tensor.insert %i into %v[%n] : tensor<2xi32>
  %x69 = tensor.reshape %d(%sh) : (tensor<?x?xf32>, tensor<1xindex>) -> tensor<?xf32>
  %x70 = tensor.splat %f : tensor<2xf32>
  %x71 = tensor.bitcast %v : tensor<2xi32> to tensor<2xf32>
  %x72 = shape.const_shape [1, 2] : tensor<2xindex>
  %x73 = shape.const_shape [] : !shape.shape
  %x74 = shape.const_shape {a.b} [3] : tensor<1xindex>
  %x75 = shape.shape_of %d : tensor<?x?xf32> -> tensor<2xindex>
  %x76 = shape.shape_of %d {a.b} : tensor<?x?xf32> -> !shape.shape
  %x77 = shape.broadcast %sh, %sh : tensor<1xindex>, tensor<1xindex> -> tensor<1xindex>
  %x78 = shape.broadcast %sh, %sh {error = "x"} : tensor<1xindex>, tensor<1xindex> -> tensor<1xindex>
  %x79 = shape.num_elements %sh : tensor<1xindex> -> index
  %x80 = shape.cstr_broadcastable %sh, %sh : tensor<1xindex>, tensor<1xindex>
  %x81 = shape.is_broadcastable %sh, %sh : tensor<1xindex>, tensor<1xindex>
  %x82 = shape.cstr_eq %sh, %sh : tensor<1xindex>, tensor<1xindex>
  %x83 = shape.shape_eq %sh, %sh : tensor<1xindex>, tensor<1xindex>
  %x84 = shape.assuming_all %wi, %wi
  %x85 = shape.const_witness true
  %x86 = shape.const_witness false
  %x87 = shape.const_size 3
  %x88 = shape.cstr_require %b, "msg"
  %x89 = shape.to_extent_tensor %ss : !shape.shape -> tensor<?xindex>
  %x90 = shape.from_extent_tensor %sh : tensor<1xindex>
  %x91 = shape.from_extents %n, %n : index, index
  %x92 = shape.get_extent %sh, %n : tensor<1xindex>, index -> index
  %x93 = shape.concat %sh, %sh : tensor<1xindex>, tensor<1xindex> -> tensor<2xindex>
  %x94 = shape.add %n, %n : index, index -> index
  %x95 = shape.mul %n, %n : index, index -> index
  %x96 = shape.div %n, %n : index, index -> index
  %x97 = shape.rank %sh : tensor<1xindex> -> index
  %x98 = shape.index_to_size %n
  %x99 = shape.size_to_index %sz : !shape.size
  %x100 = shape.value_as_shape %sh : tensor<1xindex> -> !shape.shape
  %x101 = shape.value_of %vs : tensor<2xf32>
  %x102 = shape.any %sh, %sh : tensor<1xindex>, tensor<1xindex> -> tensor<1xindex>
  %x103:2 = "shape.split_at"(%sh, %n) : (tensor<1xindex>, index) -> (tensor<1xindex>, tensor<1xindex>)
  %x104 = shape.with_shape %d, %sh : tensor<?x?xf32>, tensor<1xindex>
  %x105 = shape.assuming %wi -> (tensor<2xi32>) { shape.assuming_yield %v : tensor<2xi32> }
  %x106:2 = shape.assuming %wi -> (tensor<2xi32>, i32) { %k = arith.addi %i, %i : i32 shape.assuming_yield %v, %k : tensor<2xi32>, i32 }
  shape.assuming %wi { shape.assuming_yield }
  cf.assert %b, "hi there"
  cf.assert %b, "x" {a.b}
  %x110 = arith.divsi %i, %i exact : i32
  %x111 = arith.shrui %i, %i exact : i32
  %x112 = arith.uitofp %i nneg : i32 to f32
  %x113 = arith.truncf %f to_nearest_even : f32 to f16
  %x114 = arith.truncf %f toward_zero fastmath<fast> : f32 to f16
  %x115 = arith.extf %f fastmath<fast> : f32 to f64
  %x116 = arith.index_castui %n nneg : index to i32
  %x117 = arith.trunci %i overflow<nuw> : i32 to i8
  %x118 = arith.cmpf ult, %f, %f fastmath<nnan> : f32
  %x119 = arith.addi %i, %i overflow<none> : i32
  %x120 = "arith.addi"(%i, %i) : (i32, i32) -> i32
  %x121 = shape.max %sz, %sz : !shape.size, !shape.size -> !shape.size
  %x122 = "shape.const_shape"() {shape = dense<[1,1]> : tensor<2xindex>} : () -> tensor<2xindex>
  %x123 = arith.constant 0 : i1
  %x124 = arith.constant -9 : index
  %x125 = shape.const_witness true {a.b}
  %x126 = shape.const_size 3 {a.b}
  %x127 = tensor.empty() {a.b} : tensor<2xf32>
  %x128 = tensor.extract %v[%n] {a.b} : tensor<2xi32>
  shape.assuming %wi {shape.assuming_yield } {a.b}
  %x130 = tensor.insert %i into %v[%n] {a.b} : tensor<2xi32>
  %x133 = arith.constant dense<true> : tensor<i1>
  %x134 = tensor.dim {a.b} %d, %n : tensor<?x?xf32>
  %x135 = arith.select %b, %v, %v : tensor<2xi32>
  %x136 = shape.const_shape {a.b}[] : tensor<0xindex>
  %x137 = arith.negf %f fastmath<nnan,ninf> {a.b} : f32
  return
}
func.func @f0(%i: i32, %f: f32, %n: index, %b: i1, %v: tensor<2xi32>, %w: tensor<2xi1>, %d: tensor<?x?xf32>, %s: tensor<f32>, %sh: tensor<1xindex>, %ss: !shape.shape, %wi: !shape.witness, %sz: !shape.size, %vs: !shape.value_shape) {
%y = arith.constant 0 : index
%x = arith.constant 0 : index
%z = arith.constant 1 : index
%u = arith.constant true
%q = arith.constant true
 %r = stablehlo.constant dense<1> : tensor<i32>
%rr = arith.constant dense<1.0> : tensor<f32>
 %r2 = stablehlo.constant dense<1.0> : tensor<f32>
 %aa = tensor.dim %d, %x : tensor<?x?xf32>
%ab = tensor.dim %d, %x : tensor<?x?xf32>
  return
}
func.func @f1(%i: i32, %f: f32, %n: index, %b: i1, %v: tensor<2xi32>, %w: tensor<2xi1>, %d: tensor<?x?xf32>, %s: tensor<f32>, %sh: tensor<1xindex>, %ss: !shape.shape, %wi: !shape.witness, %sz: !shape.size, %vs: !shape.value_shape) {
%r = shape.assuming %wi -> (tensor<2xi32>) { %o = arith.constant 1 : index 
 %r0 = arith.constant 1 : i32 
shape.assuming_yield %v : tensor<2xi32> }
%r3 = shape.assuming %wi -> (tensor<2xi32>) { %o = arith.constant 1 : index 
 %r9 = arith.constant 1 : i32 
shape.assuming_yield %v : tensor<2xi32> }
%k=arith.constant 1 : index
  return
}
func.func @f2(%i: i32, %f: f32, %n: index, %b: i1, %v: tensor<2xi32>, %w: tensor<2xi1>, %d: tensor<?x?xf32>, %s: tensor<f32>, %sh: tensor<1xindex>, %ss: !shape.shape, %wi: !shape.witness, %sz: !shape.size, %vs: !shape.value_shape) {
%x = shape.assuming %wi -> (i1) {
 shape.assuming %wi { %q = arith.constant true }
%q = arith.constant true
shape.assuming_yield %q : i1 }
  return
}
