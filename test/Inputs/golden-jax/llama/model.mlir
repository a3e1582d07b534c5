module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<256x32xf32> loc("params['embed']"), %arg1: tensor<32x256xf32> loc("params['head']"), %arg2: tensor<48x32xf32> loc("params['layers'][0]['down']"), %arg3: tensor<32x48xf32> loc("params['layers'][0]['gate']"), %arg4: tensor<32xf32> loc("params['layers'][0]['norm_1']"), %arg5: tensor<32xf32> loc("params['layers'][0]['norm_2']"), %arg6: tensor<32x48xf32> loc("params['layers'][0]['up']"), %arg7: tensor<32x16xf32> loc("params['layers'][0]['wk']"), %arg8: tensor<32x32xf32> loc("params['layers'][0]['wo']"), %arg9: tensor<32x32xf32> loc("params['layers'][0]['wq']"), %arg10: tensor<32x16xf32> loc("params['layers'][0]['wv']"), %arg11: tensor<48x32xf32> loc("params['layers'][1]['down']"), %arg12: tensor<32x48xf32> loc("params['layers'][1]['gate']"), %arg13: tensor<32xf32> loc("params['layers'][1]['norm_1']"), %arg14: tensor<32xf32> loc("params['layers'][1]['norm_2']"), %arg15: tensor<32x48xf32> loc("params['layers'][1]['up']"), %arg16: tensor<32x16xf32> loc("params['layers'][1]['wk']"), %arg17: tensor<32x32xf32> loc("params['layers'][1]['wo']"), %arg18: tensor<32x32xf32> loc("params['layers'][1]['wq']"), %arg19: tensor<32x16xf32> loc("params['layers'][1]['wv']"), %arg20: tensor<32xf32> loc("params['norm']"), %arg21: tensor<4x16xi32> loc("tokens"), %arg22: tensor<4x16xi32> loc("targets")) -> (tensor<f32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %1 = stablehlo.compare LT, %arg21, %0, SIGNED : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %3 = stablehlo.add %arg21, %2 : tensor<4x16xi32>
    %4 = stablehlo.select %1, %3, %arg21 : tensor<4x16xi1>, tensor<4x16xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<256x32xf32>, tensor<4x16x1xi32>) -> tensor<4x16x32xf32>
    %7 = chlo.square %6 : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_1 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %11 = stablehlo.divide %9, %10 : tensor<4x16x1xf32>
    %cst_2 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %13 = stablehlo.add %11, %12 : tensor<4x16x1xf32>
    %14 = stablehlo.rsqrt %13 : tensor<4x16x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %16 = stablehlo.multiply %6, %15 : tensor<4x16x32xf32>
    %17 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %19 = stablehlo.multiply %16, %18 : tensor<4x16x32xf32>
    %20 = stablehlo.dot_general %19, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %21 = stablehlo.reshape %20 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %22 = stablehlo.dot_general %19, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %23 = stablehlo.reshape %22 : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %24 = stablehlo.dot_general %19, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %25 = stablehlo.reshape %24 : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %26 = stablehlo.iota dim = 0 : tensor<16xi32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %28 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %29 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %30 = stablehlo.multiply %29, %28 : tensor<4xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %31 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %32 = stablehlo.add %31, %30 : tensor<4xi32>
    %33 = stablehlo.negate %32 : tensor<4xi32>
    %34 = stablehlo.convert %33 : (tensor<4xi32>) -> tensor<4xf32>
    %cst_5 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %36 = stablehlo.divide %34, %35 : tensor<4xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %38 = stablehlo.power %37, %36 : tensor<4xf32>
    %39 = stablehlo.convert %27 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %40 = stablehlo.broadcast_in_dim %38, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %41 = stablehlo.broadcast_in_dim %39, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %42 = stablehlo.broadcast_in_dim %40, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %43 = stablehlo.multiply %41, %42 : tensor<16x4xf32>
    %44 = stablehlo.cosine %43 : tensor<16x4xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %46 = stablehlo.sine %43 : tensor<16x4xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %48 = stablehlo.slice %21 [0:4, 0:16, 0:4, 0:4] : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %49 = stablehlo.slice %21 [0:4, 0:16, 0:4, 4:8] : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %50 = stablehlo.broadcast_in_dim %45, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %52 = stablehlo.multiply %48, %51 : tensor<4x16x4x4xf32>
    %53 = stablehlo.broadcast_in_dim %47, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %55 = stablehlo.multiply %49, %54 : tensor<4x16x4x4xf32>
    %56 = stablehlo.subtract %52, %55 : tensor<4x16x4x4xf32>
    %57 = stablehlo.broadcast_in_dim %45, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %59 = stablehlo.multiply %49, %58 : tensor<4x16x4x4xf32>
    %60 = stablehlo.broadcast_in_dim %47, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %62 = stablehlo.multiply %48, %61 : tensor<4x16x4x4xf32>
    %63 = stablehlo.add %59, %62 : tensor<4x16x4x4xf32>
    %64 = stablehlo.concatenate %56, %63, dim = 3 : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x8xf32>
    %65 = stablehlo.reshape %64 : (tensor<4x16x4x8xf32>) -> tensor<4x16x2x2x8xf32>
    %66 = stablehlo.iota dim = 0 : tensor<16xi32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %68 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c_7 = stablehlo.constant dense<2> : tensor<i32>
    %69 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %70 = stablehlo.multiply %69, %68 : tensor<4xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %71 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %72 = stablehlo.add %71, %70 : tensor<4xi32>
    %73 = stablehlo.negate %72 : tensor<4xi32>
    %74 = stablehlo.convert %73 : (tensor<4xi32>) -> tensor<4xf32>
    %cst_9 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %76 = stablehlo.divide %74, %75 : tensor<4xf32>
    %cst_10 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %78 = stablehlo.power %77, %76 : tensor<4xf32>
    %79 = stablehlo.convert %67 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %80 = stablehlo.broadcast_in_dim %78, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %81 = stablehlo.broadcast_in_dim %79, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %82 = stablehlo.broadcast_in_dim %80, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %83 = stablehlo.multiply %81, %82 : tensor<16x4xf32>
    %84 = stablehlo.cosine %83 : tensor<16x4xf32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %86 = stablehlo.sine %83 : tensor<16x4xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %88 = stablehlo.slice %23 [0:4, 0:16, 0:2, 0:4] : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %89 = stablehlo.slice %23 [0:4, 0:16, 0:2, 4:8] : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %90 = stablehlo.broadcast_in_dim %85, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %92 = stablehlo.multiply %88, %91 : tensor<4x16x2x4xf32>
    %93 = stablehlo.broadcast_in_dim %87, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %95 = stablehlo.multiply %89, %94 : tensor<4x16x2x4xf32>
    %96 = stablehlo.subtract %92, %95 : tensor<4x16x2x4xf32>
    %97 = stablehlo.broadcast_in_dim %85, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %99 = stablehlo.multiply %89, %98 : tensor<4x16x2x4xf32>
    %100 = stablehlo.broadcast_in_dim %87, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %102 = stablehlo.multiply %88, %101 : tensor<4x16x2x4xf32>
    %103 = stablehlo.add %99, %102 : tensor<4x16x2x4xf32>
    %104 = stablehlo.concatenate %96, %103, dim = 3 : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x8xf32>
    %105 = stablehlo.dot_general %104, %65, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<4x16x2x8xf32>, tensor<4x16x2x2x8xf32>) -> tensor<4x2x16x16x2xf32>
    %106 = stablehlo.transpose %105, dims = [0, 1, 4, 3, 2] : (tensor<4x2x16x16x2xf32>) -> tensor<4x2x2x16x16xf32>
    %cst_11 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %108 = stablehlo.divide %106, %107 : tensor<4x2x2x16x16xf32>
    %109 = stablehlo.iota dim = 0 : tensor<16xi32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %111 = stablehlo.broadcast_in_dim %109, dims = [1] : (tensor<16xi32>) -> tensor<1x16xi32>
    %112 = stablehlo.broadcast_in_dim %110, dims = [0, 1] : (tensor<16x1xi32>) -> tensor<16x16xi32>
    %113 = stablehlo.broadcast_in_dim %111, dims = [0, 1] : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %114 = stablehlo.compare GE, %112, %113, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %115 = call @_where(%114, %108, %cst_12) : (tensor<16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %cst_13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %116 = stablehlo.reduce(%115 init: %cst_13) applies stablehlo.maximum across dimensions = [4] : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %cst_14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %117 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x2x2x16xf32>
    %118 = stablehlo.maximum %117, %116 : tensor<4x2x2x16xf32>
    %119 = stablehlo.broadcast_in_dim %118, dims = [0, 1, 2, 3] : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2, 3, 4] : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %121 = stablehlo.subtract %115, %120 : tensor<4x2x2x16x16xf32>
    %122 = stablehlo.exponential %121 : tensor<4x2x2x16x16xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %123 = stablehlo.reduce(%122 init: %cst_15) applies stablehlo.add across dimensions = [4] : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2, 3] : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0, 1, 2, 3, 4] : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %126 = stablehlo.divide %122, %125 : tensor<4x2x2x16x16xf32>
    %127 = stablehlo.dot_general %25, %126, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<4x16x2x8xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x8x2x16xf32>
    %128 = stablehlo.transpose %127, dims = [0, 4, 1, 3, 2] : (tensor<4x2x8x2x16xf32>) -> tensor<4x16x2x2x8xf32>
    %129 = stablehlo.reshape %128 : (tensor<4x16x2x2x8xf32>) -> tensor<4x16x32xf32>
    %130 = stablehlo.dot_general %129, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %131 = stablehlo.add %6, %130 : tensor<4x16x32xf32>
    %132 = chlo.square %131 : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %133 = stablehlo.reduce(%132 init: %cst_16) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_17 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %135 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %136 = stablehlo.divide %134, %135 : tensor<4x16x1xf32>
    %cst_18 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %137 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %138 = stablehlo.add %136, %137 : tensor<4x16x1xf32>
    %139 = stablehlo.rsqrt %138 : tensor<4x16x1xf32>
    %140 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %141 = stablehlo.multiply %131, %140 : tensor<4x16x32xf32>
    %142 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %143 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %144 = stablehlo.multiply %141, %143 : tensor<4x16x32xf32>
    %145 = stablehlo.dot_general %144, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %146 = call @silu(%145) : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %147 = stablehlo.dot_general %144, %arg6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %148 = stablehlo.multiply %146, %147 : tensor<4x16x48xf32>
    %149 = stablehlo.dot_general %148, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x48xf32>, tensor<48x32xf32>) -> tensor<4x16x32xf32>
    %150 = stablehlo.add %131, %149 : tensor<4x16x32xf32>
    %151 = chlo.square %150 : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %152 = stablehlo.reduce(%151 init: %cst_19) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %153 = stablehlo.broadcast_in_dim %152, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_20 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %155 = stablehlo.divide %153, %154 : tensor<4x16x1xf32>
    %cst_21 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %156 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %157 = stablehlo.add %155, %156 : tensor<4x16x1xf32>
    %158 = stablehlo.rsqrt %157 : tensor<4x16x1xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %160 = stablehlo.multiply %150, %159 : tensor<4x16x32xf32>
    %161 = stablehlo.broadcast_in_dim %arg13, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %162 = stablehlo.broadcast_in_dim %161, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %163 = stablehlo.multiply %160, %162 : tensor<4x16x32xf32>
    %164 = stablehlo.dot_general %163, %arg18, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %165 = stablehlo.reshape %164 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %166 = stablehlo.dot_general %163, %arg16, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %167 = stablehlo.reshape %166 : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %168 = stablehlo.dot_general %163, %arg19, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %169 = stablehlo.reshape %168 : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %170 = stablehlo.iota dim = 0 : tensor<16xi32>
    %171 = stablehlo.broadcast_in_dim %170, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %172 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c_22 = stablehlo.constant dense<2> : tensor<i32>
    %173 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %174 = stablehlo.multiply %173, %172 : tensor<4xi32>
    %c_23 = stablehlo.constant dense<0> : tensor<i32>
    %175 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %176 = stablehlo.add %175, %174 : tensor<4xi32>
    %177 = stablehlo.negate %176 : tensor<4xi32>
    %178 = stablehlo.convert %177 : (tensor<4xi32>) -> tensor<4xf32>
    %cst_24 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %179 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %180 = stablehlo.divide %178, %179 : tensor<4xf32>
    %cst_25 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %181 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %182 = stablehlo.power %181, %180 : tensor<4xf32>
    %183 = stablehlo.convert %171 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %184 = stablehlo.broadcast_in_dim %182, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %185 = stablehlo.broadcast_in_dim %183, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %186 = stablehlo.broadcast_in_dim %184, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %187 = stablehlo.multiply %185, %186 : tensor<16x4xf32>
    %188 = stablehlo.cosine %187 : tensor<16x4xf32>
    %189 = stablehlo.broadcast_in_dim %188, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %190 = stablehlo.sine %187 : tensor<16x4xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %192 = stablehlo.slice %165 [0:4, 0:16, 0:4, 0:4] : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %193 = stablehlo.slice %165 [0:4, 0:16, 0:4, 4:8] : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %194 = stablehlo.broadcast_in_dim %189, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %196 = stablehlo.multiply %192, %195 : tensor<4x16x4x4xf32>
    %197 = stablehlo.broadcast_in_dim %191, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %199 = stablehlo.multiply %193, %198 : tensor<4x16x4x4xf32>
    %200 = stablehlo.subtract %196, %199 : tensor<4x16x4x4xf32>
    %201 = stablehlo.broadcast_in_dim %189, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %202 = stablehlo.broadcast_in_dim %201, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %203 = stablehlo.multiply %193, %202 : tensor<4x16x4x4xf32>
    %204 = stablehlo.broadcast_in_dim %191, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %205 = stablehlo.broadcast_in_dim %204, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %206 = stablehlo.multiply %192, %205 : tensor<4x16x4x4xf32>
    %207 = stablehlo.add %203, %206 : tensor<4x16x4x4xf32>
    %208 = stablehlo.concatenate %200, %207, dim = 3 : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x8xf32>
    %209 = stablehlo.reshape %208 : (tensor<4x16x4x8xf32>) -> tensor<4x16x2x2x8xf32>
    %210 = stablehlo.iota dim = 0 : tensor<16xi32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %212 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c_26 = stablehlo.constant dense<2> : tensor<i32>
    %213 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %214 = stablehlo.multiply %213, %212 : tensor<4xi32>
    %c_27 = stablehlo.constant dense<0> : tensor<i32>
    %215 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %216 = stablehlo.add %215, %214 : tensor<4xi32>
    %217 = stablehlo.negate %216 : tensor<4xi32>
    %218 = stablehlo.convert %217 : (tensor<4xi32>) -> tensor<4xf32>
    %cst_28 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %219 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %220 = stablehlo.divide %218, %219 : tensor<4xf32>
    %cst_29 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %221 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %222 = stablehlo.power %221, %220 : tensor<4xf32>
    %223 = stablehlo.convert %211 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %224 = stablehlo.broadcast_in_dim %222, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %225 = stablehlo.broadcast_in_dim %223, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %226 = stablehlo.broadcast_in_dim %224, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %227 = stablehlo.multiply %225, %226 : tensor<16x4xf32>
    %228 = stablehlo.cosine %227 : tensor<16x4xf32>
    %229 = stablehlo.broadcast_in_dim %228, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %230 = stablehlo.sine %227 : tensor<16x4xf32>
    %231 = stablehlo.broadcast_in_dim %230, dims = [0, 2] : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %232 = stablehlo.slice %167 [0:4, 0:16, 0:2, 0:4] : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %233 = stablehlo.slice %167 [0:4, 0:16, 0:2, 4:8] : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %234 = stablehlo.broadcast_in_dim %229, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %235 = stablehlo.broadcast_in_dim %234, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %236 = stablehlo.multiply %232, %235 : tensor<4x16x2x4xf32>
    %237 = stablehlo.broadcast_in_dim %231, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %239 = stablehlo.multiply %233, %238 : tensor<4x16x2x4xf32>
    %240 = stablehlo.subtract %236, %239 : tensor<4x16x2x4xf32>
    %241 = stablehlo.broadcast_in_dim %229, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %242 = stablehlo.broadcast_in_dim %241, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %243 = stablehlo.multiply %233, %242 : tensor<4x16x2x4xf32>
    %244 = stablehlo.broadcast_in_dim %231, dims = [1, 2, 3] : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %245 = stablehlo.broadcast_in_dim %244, dims = [0, 1, 2, 3] : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %246 = stablehlo.multiply %232, %245 : tensor<4x16x2x4xf32>
    %247 = stablehlo.add %243, %246 : tensor<4x16x2x4xf32>
    %248 = stablehlo.concatenate %240, %247, dim = 3 : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x8xf32>
    %249 = stablehlo.dot_general %248, %209, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<4x16x2x8xf32>, tensor<4x16x2x2x8xf32>) -> tensor<4x2x16x16x2xf32>
    %250 = stablehlo.transpose %249, dims = [0, 1, 4, 3, 2] : (tensor<4x2x16x16x2xf32>) -> tensor<4x2x2x16x16xf32>
    %cst_30 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %251 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %252 = stablehlo.divide %250, %251 : tensor<4x2x2x16x16xf32>
    %253 = stablehlo.iota dim = 0 : tensor<16xi32>
    %254 = stablehlo.broadcast_in_dim %253, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %255 = stablehlo.broadcast_in_dim %253, dims = [1] : (tensor<16xi32>) -> tensor<1x16xi32>
    %256 = stablehlo.broadcast_in_dim %254, dims = [0, 1] : (tensor<16x1xi32>) -> tensor<16x16xi32>
    %257 = stablehlo.broadcast_in_dim %255, dims = [0, 1] : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %258 = stablehlo.compare GE, %256, %257, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %cst_31 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %259 = call @_where(%258, %252, %cst_31) : (tensor<16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %cst_32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %260 = stablehlo.reduce(%259 init: %cst_32) applies stablehlo.maximum across dimensions = [4] : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %261 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<4x2x2x16xf32>
    %262 = stablehlo.maximum %261, %260 : tensor<4x2x2x16xf32>
    %263 = stablehlo.broadcast_in_dim %262, dims = [0, 1, 2, 3] : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %264 = stablehlo.broadcast_in_dim %263, dims = [0, 1, 2, 3, 4] : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %265 = stablehlo.subtract %259, %264 : tensor<4x2x2x16x16xf32>
    %266 = stablehlo.exponential %265 : tensor<4x2x2x16x16xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %267 = stablehlo.reduce(%266 init: %cst_34) applies stablehlo.add across dimensions = [4] : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %268 = stablehlo.broadcast_in_dim %267, dims = [0, 1, 2, 3] : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %269 = stablehlo.broadcast_in_dim %268, dims = [0, 1, 2, 3, 4] : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %270 = stablehlo.divide %266, %269 : tensor<4x2x2x16x16xf32>
    %271 = stablehlo.dot_general %169, %270, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<4x16x2x8xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x8x2x16xf32>
    %272 = stablehlo.transpose %271, dims = [0, 4, 1, 3, 2] : (tensor<4x2x8x2x16xf32>) -> tensor<4x16x2x2x8xf32>
    %273 = stablehlo.reshape %272 : (tensor<4x16x2x2x8xf32>) -> tensor<4x16x32xf32>
    %274 = stablehlo.dot_general %273, %arg17, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %275 = stablehlo.add %150, %274 : tensor<4x16x32xf32>
    %276 = chlo.square %275 : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %277 = stablehlo.reduce(%276 init: %cst_35) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %278 = stablehlo.broadcast_in_dim %277, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_36 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %279 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %280 = stablehlo.divide %278, %279 : tensor<4x16x1xf32>
    %cst_37 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %281 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %282 = stablehlo.add %280, %281 : tensor<4x16x1xf32>
    %283 = stablehlo.rsqrt %282 : tensor<4x16x1xf32>
    %284 = stablehlo.broadcast_in_dim %283, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %285 = stablehlo.multiply %275, %284 : tensor<4x16x32xf32>
    %286 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %287 = stablehlo.broadcast_in_dim %286, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %288 = stablehlo.multiply %285, %287 : tensor<4x16x32xf32>
    %289 = stablehlo.dot_general %288, %arg12, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %290 = call @silu(%289) : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %291 = stablehlo.dot_general %288, %arg15, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %292 = stablehlo.multiply %290, %291 : tensor<4x16x48xf32>
    %293 = stablehlo.dot_general %292, %arg11, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x48xf32>, tensor<48x32xf32>) -> tensor<4x16x32xf32>
    %294 = stablehlo.add %275, %293 : tensor<4x16x32xf32>
    %295 = chlo.square %294 : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %296 = stablehlo.reduce(%295 init: %cst_38) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %297 = stablehlo.broadcast_in_dim %296, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_39 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %298 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %299 = stablehlo.divide %297, %298 : tensor<4x16x1xf32>
    %cst_40 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %300 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %301 = stablehlo.add %299, %300 : tensor<4x16x1xf32>
    %302 = stablehlo.rsqrt %301 : tensor<4x16x1xf32>
    %303 = stablehlo.broadcast_in_dim %302, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %304 = stablehlo.multiply %294, %303 : tensor<4x16x32xf32>
    %305 = stablehlo.broadcast_in_dim %arg20, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %306 = stablehlo.broadcast_in_dim %305, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %307 = stablehlo.multiply %304, %306 : tensor<4x16x32xf32>
    %308 = stablehlo.dot_general %307, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x256xf32>) -> tensor<4x16x256xf32>
    %cst_41 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %309 = stablehlo.reduce(%308 init: %cst_41) applies stablehlo.maximum across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %cst_42 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %310 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %311 = stablehlo.maximum %310, %309 : tensor<4x16xf32>
    %312 = stablehlo.is_finite %311 : (tensor<4x16xf32>) -> tensor<4x16xi1>
    %cst_43 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %313 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %314 = stablehlo.select %312, %311, %313 : tensor<4x16xi1>, tensor<4x16xf32>
    %315 = stablehlo.broadcast_in_dim %314, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %316 = stablehlo.broadcast_in_dim %315, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %317 = stablehlo.subtract %308, %316 : tensor<4x16x256xf32>
    %318 = stablehlo.exponential %317 : tensor<4x16x256xf32>
    %cst_44 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %319 = stablehlo.reduce(%318 init: %cst_44) applies stablehlo.add across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %320 = stablehlo.abs %319 : tensor<4x16xf32>
    %321 = stablehlo.log %320 : tensor<4x16xf32>
    %322 = stablehlo.add %321, %314 : tensor<4x16xf32>
    %323 = stablehlo.broadcast_in_dim %arg22, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %324 = call @take_along_axis(%308, %323) : (tensor<4x16x256xf32>, tensor<4x16x1xi32>) -> tensor<4x16x1xf32>
    %325 = stablehlo.reshape %324 : (tensor<4x16x1xf32>) -> tensor<4x16xf32>
    %326 = stablehlo.subtract %322, %325 : tensor<4x16xf32>
    %cst_45 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %327 = stablehlo.reduce(%326 init: %cst_45) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<f32>
    %cst_46 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %328 = stablehlo.divide %327, %cst_46 : tensor<f32>
    return %328 : tensor<f32>
  }
  func.func private @_where(%arg0: tensor<16x16xi1> loc(unknown), %arg1: tensor<4x2x2x16x16xf32> loc(unknown), %arg2: tensor<f32> loc(unknown)) -> tensor<4x2x2x16x16xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [3, 4] : (tensor<16x16xi1>) -> tensor<4x2x2x16x16xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x2x2x16x16xi1>, tensor<4x2x2x16x16xf32>
    return %3 : tensor<4x2x2x16x16xf32>
  }
  func.func private @silu(%arg0: tensor<4x16x48xf32> loc(unknown)) -> tensor<4x16x48xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4x16x48xf32>
    %1 = stablehlo.exponential %0 : tensor<4x16x48xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x48xf32>
    %3 = stablehlo.add %2, %1 : tensor<4x16x48xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16x48xf32>
    %5 = stablehlo.divide %4, %3 : tensor<4x16x48xf32>
    %6 = stablehlo.multiply %arg0, %5 : tensor<4x16x48xf32>
    return %6 : tensor<4x16x48xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x16x256xf32> loc(unknown), %arg1: tensor<4x16x1xi32> loc(unknown)) -> tensor<4x16x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x16x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x16x1xi1>, tensor<4x16x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x16x1xi32>) -> tensor<4x16x1x1xi32>
    %c_1 = stablehlo.constant dense<255> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x16x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<4x16x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x16x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<4x16x1x1xi1>, tensor<i1>) -> tensor<4x16x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x16x256xf32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x16x1xi1>, tensor<4x16x1xf32>
    return %15 : tensor<4x16x1xf32>
  }
}
