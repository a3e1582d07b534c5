module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32> loc("params['layers'][0]['bias']"), %arg1: tensor<24x16xf32> loc("params['layers'][0]['down']"), %arg2: tensor<16x24xf32> loc("params['layers'][0]['gate']"), %arg3: tensor<4x4x16xf32> loc("params['layers'][0]['out']"), %arg4: tensor<16x32xf32> loc("params['layers'][0]['qkv']"), %arg5: tensor<16x24xf32> loc("params['layers'][0]['up']"), %arg6: tensor<16xf32> loc("params['norm']['bias']"), %arg7: tensor<16xf32> loc("params['norm']['gain']"), %arg8: tensor<16x16xf32> loc("params['wpe']"), %arg9: tensor<256x16xf32> loc("params['wte']"), %arg10: tensor<4x17xi32> loc("tokens")) -> (tensor<f32> {jax.result_info = "result"}) {
    %0 = stablehlo.slice %arg10 [0:4, 0:16] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %1 = call @_take(%arg9, %0) : (tensor<256x16xf32>, tensor<4x16xi32>) -> tensor<4x16x16xf32>
    %2 = stablehlo.iota dim = 0 : tensor<16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %4 = stablehlo.compare LT, %2, %3, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %c_0 = stablehlo.constant dense<16> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %6 = stablehlo.add %2, %5 : tensor<16xi32>
    %7 = stablehlo.select %4, %6, %2 : tensor<16xi1>, tensor<16xi32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %9 = "stablehlo.gather"(%arg8, %8) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<16x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2] : (tensor<1x16x16xf32>) -> tensor<4x16x16xf32>
    %12 = stablehlo.add %1, %11 : tensor<4x16x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.reduce(%12 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %16 = stablehlo.divide %14, %15 : tensor<4x16x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %18 = stablehlo.subtract %12, %17 : tensor<4x16x16xf32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %19 = call @_var(%12, %c_2) : (tensor<4x16x16xf32>, tensor<i32>) -> tensor<4x16x1xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %21 = stablehlo.add %19, %20 : tensor<4x16x1xf32>
    %22 = stablehlo.rsqrt %21 : tensor<4x16x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %24 = stablehlo.multiply %18, %23 : tensor<4x16x16xf32>
    %25 = stablehlo.broadcast_in_dim %arg7, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %28 = stablehlo.multiply %24, %27 : tensor<4x16x16xf32>
    %29 = stablehlo.broadcast_in_dim %arg6, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %32 = stablehlo.add %28, %31 : tensor<4x16x16xf32>
    %33 = stablehlo.dot_general %32, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x32xf32>) -> tensor<4x16x32xf32>
    %34 = stablehlo.slice %33 [0:4, 0:16, 0:16] : (tensor<4x16x32xf32>) -> tensor<4x16x16xf32>
    %35 = stablehlo.slice %33 [0:4, 0:16, 16:24] : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %36 = stablehlo.slice %33 [0:4, 0:16, 24:32] : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %37 = stablehlo.reshape %34 : (tensor<4x16x16xf32>) -> tensor<4x16x4x4xf32>
    %38 = stablehlo.transpose %37, dims = [0, 2, 1, 3] : (tensor<4x16x4x4xf32>) -> tensor<4x4x16x4xf32>
    %39 = stablehlo.reshape %35 : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %40 = stablehlo.transpose %39, dims = [0, 2, 1, 3] : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %41 = stablehlo.reshape %36 : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %42 = stablehlo.transpose %41, dims = [0, 2, 1, 3] : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %43 = stablehlo.iota dim = 0 : tensor<16xi32>
    %44 = stablehlo.iota dim = 0 : tensor<2xi32>
    %c_4 = stablehlo.constant dense<2> : tensor<i32>
    %45 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %46 = stablehlo.multiply %45, %44 : tensor<2xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %47 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %48 = stablehlo.add %47, %46 : tensor<2xi32>
    %49 = stablehlo.convert %48 : (tensor<2xi32>) -> tensor<2xf32>
    %cst_6 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %51 = stablehlo.divide %49, %50 : tensor<2xf32>
    %cst_7 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %53 = stablehlo.power %52, %51 : tensor<2xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %55 = stablehlo.divide %54, %53 : tensor<2xf32>
    %56 = stablehlo.convert %43 : (tensor<16xi32>) -> tensor<16xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %58 = stablehlo.broadcast_in_dim %55, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %59 = stablehlo.broadcast_in_dim %57, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %60 = stablehlo.broadcast_in_dim %58, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %61 = stablehlo.multiply %59, %60 : tensor<16x2xf32>
    %62 = stablehlo.slice %40 [0:4, 0:2, 0:16, 0:4:2] : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %63 = stablehlo.slice %40 [0:4, 0:2, 0:16, 1:4:2] : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %64 = stablehlo.cosine %61 : tensor<16x2xf32>
    %65 = stablehlo.sine %61 : tensor<16x2xf32>
    %66 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %69 = stablehlo.multiply %62, %68 : tensor<4x2x16x2xf32>
    %70 = stablehlo.broadcast_in_dim %65, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %73 = stablehlo.multiply %63, %72 : tensor<4x2x16x2xf32>
    %74 = stablehlo.subtract %69, %73 : tensor<4x2x16x2xf32>
    %75 = stablehlo.broadcast_in_dim %65, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %78 = stablehlo.multiply %62, %77 : tensor<4x2x16x2xf32>
    %79 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %81 = stablehlo.broadcast_in_dim %80, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %82 = stablehlo.multiply %63, %81 : tensor<4x2x16x2xf32>
    %83 = stablehlo.add %78, %82 : tensor<4x2x16x2xf32>
    %84 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2, 3] : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %85 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2, 3] : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %86 = stablehlo.concatenate %84, %85, dim = 4 : (tensor<4x2x16x2x1xf32>, tensor<4x2x16x2x1xf32>) -> tensor<4x2x16x2x2xf32>
    %87 = stablehlo.reshape %86 : (tensor<4x2x16x2x2xf32>) -> tensor<4x2x16x4xf32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 3, 4] : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %89 = stablehlo.reshape %88 : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %90 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 3, 4] : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %91 = stablehlo.reshape %90 : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %92 = stablehlo.iota dim = 0 : tensor<16xi32>
    %93 = stablehlo.iota dim = 0 : tensor<2xi32>
    %c_9 = stablehlo.constant dense<2> : tensor<i32>
    %94 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %95 = stablehlo.multiply %94, %93 : tensor<2xi32>
    %c_10 = stablehlo.constant dense<0> : tensor<i32>
    %96 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %97 = stablehlo.add %96, %95 : tensor<2xi32>
    %98 = stablehlo.convert %97 : (tensor<2xi32>) -> tensor<2xf32>
    %cst_11 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %100 = stablehlo.divide %98, %99 : tensor<2xf32>
    %cst_12 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %102 = stablehlo.power %101, %100 : tensor<2xf32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %104 = stablehlo.divide %103, %102 : tensor<2xf32>
    %105 = stablehlo.convert %92 : (tensor<16xi32>) -> tensor<16xf32>
    %106 = stablehlo.broadcast_in_dim %105, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %107 = stablehlo.broadcast_in_dim %104, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %108 = stablehlo.broadcast_in_dim %106, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %109 = stablehlo.broadcast_in_dim %107, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %110 = stablehlo.multiply %108, %109 : tensor<16x2xf32>
    %111 = stablehlo.slice %38 [0:4, 0:4, 0:16, 0:4:2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %112 = stablehlo.slice %38 [0:4, 0:4, 0:16, 1:4:2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %113 = stablehlo.cosine %110 : tensor<16x2xf32>
    %114 = stablehlo.sine %110 : tensor<16x2xf32>
    %115 = stablehlo.broadcast_in_dim %113, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %117 = stablehlo.broadcast_in_dim %116, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %118 = stablehlo.multiply %111, %117 : tensor<4x4x16x2xf32>
    %119 = stablehlo.broadcast_in_dim %114, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %122 = stablehlo.multiply %112, %121 : tensor<4x4x16x2xf32>
    %123 = stablehlo.subtract %118, %122 : tensor<4x4x16x2xf32>
    %124 = stablehlo.broadcast_in_dim %114, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %126 = stablehlo.broadcast_in_dim %125, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %127 = stablehlo.multiply %111, %126 : tensor<4x4x16x2xf32>
    %128 = stablehlo.broadcast_in_dim %113, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %131 = stablehlo.multiply %112, %130 : tensor<4x4x16x2xf32>
    %132 = stablehlo.add %127, %131 : tensor<4x4x16x2xf32>
    %133 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2, 3] : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %134 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2, 3] : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %135 = stablehlo.concatenate %133, %134, dim = 4 : (tensor<4x4x16x2x1xf32>, tensor<4x4x16x2x1xf32>) -> tensor<4x4x16x2x2xf32>
    %136 = stablehlo.reshape %135 : (tensor<4x4x16x2x2xf32>) -> tensor<4x4x16x4xf32>
    %137 = stablehlo.transpose %89, dims = [0, 1, 3, 2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x4x16xf32>
    %138 = stablehlo.dot_general %136, %137, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x16x4xf32>, tensor<4x4x4x16xf32>) -> tensor<4x4x16x16xf32>
    %cst_14 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %140 = stablehlo.divide %138, %139 : tensor<4x4x16x16xf32>
    %cst_15 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %141 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %142 = stablehlo.divide %140, %141 : tensor<4x4x16x16xf32>
    %143 = stablehlo.tanh %142 : tensor<4x4x16x16xf32>
    %cst_16 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %144 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %145 = stablehlo.multiply %144, %143 : tensor<4x4x16x16xf32>
    %c_17 = stablehlo.constant dense<true> : tensor<i1>
    %146 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %147 = call @triu(%146) : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %148 = call @_where_1(%147, %cst_18, %145) : (tensor<16x16xi1>, tensor<f32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %149 = stablehlo.reduce(%148 init: %cst_19) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<4x4x16xf32>
    %151 = stablehlo.maximum %150, %149 : tensor<4x4x16xf32>
    %152 = stablehlo.broadcast_in_dim %151, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %153 = stablehlo.broadcast_in_dim %152, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %154 = stablehlo.subtract %148, %153 : tensor<4x4x16x16xf32>
    %155 = stablehlo.exponential %154 : tensor<4x4x16x16xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %156 = stablehlo.reduce(%155 init: %cst_21) applies stablehlo.add across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %158 = stablehlo.broadcast_in_dim %157, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %159 = stablehlo.divide %155, %158 : tensor<4x4x16x16xf32>
    %160 = stablehlo.dot_general %91, %159, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x16x4xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x4x16xf32>
    %161 = stablehlo.dot_general %160, %arg3, contracting_dims = [2, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<4x4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x16x16xf32>
    %162 = stablehlo.add %12, %161 : tensor<4x16x16xf32>
    %163 = stablehlo.dot_general %162, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %164 = stablehlo.negate %163 : tensor<4x16x24xf32>
    %165 = stablehlo.exponential %164 : tensor<4x16x24xf32>
    %cst_22 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %166 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %167 = stablehlo.add %166, %165 : tensor<4x16x24xf32>
    %cst_23 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %168 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %169 = stablehlo.divide %168, %167 : tensor<4x16x24xf32>
    %170 = stablehlo.dot_general %162, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %171 = call @relu(%170) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %172 = chlo.square %171 : tensor<4x16x24xf32> -> tensor<4x16x24xf32>
    %173 = stablehlo.multiply %169, %172 : tensor<4x16x24xf32>
    %174 = stablehlo.dot_general %173, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x24xf32>, tensor<24x16xf32>) -> tensor<4x16x16xf32>
    %175 = stablehlo.add %162, %174 : tensor<4x16x16xf32>
    %176 = stablehlo.multiply %arg0, %arg0 : tensor<16xf32>
    %177 = stablehlo.multiply %176, %arg0 : tensor<16xf32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %178 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %179 = stablehlo.minimum %177, %178 : tensor<16xf32>
    %180 = stablehlo.broadcast_in_dim %179, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %181 = stablehlo.broadcast_in_dim %180, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %182 = stablehlo.broadcast_in_dim %181, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %183 = stablehlo.add %175, %182 : tensor<4x16x16xf32>
    %184 = stablehlo.transpose %arg9, dims = [1, 0] : (tensor<256x16xf32>) -> tensor<16x256xf32>
    %185 = stablehlo.dot_general %183, %184, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x256xf32>) -> tensor<4x16x256xf32>
    %186 = stablehlo.reshape %185 : (tensor<4x16x256xf32>) -> tensor<64x256xf32>
    %187 = stablehlo.slice %arg10 [0:4, 1:17] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %188 = stablehlo.reshape %187 : (tensor<4x16xi32>) -> tensor<64xi32>
    %cst_25 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %189 = stablehlo.reduce(%186 init: %cst_25) applies stablehlo.maximum across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %191 = stablehlo.maximum %190, %189 : tensor<64xf32>
    %192 = stablehlo.is_finite %191 : (tensor<64xf32>) -> tensor<64xi1>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %193 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %194 = stablehlo.select %192, %191, %193 : tensor<64xi1>, tensor<64xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0] : (tensor<64xf32>) -> tensor<64x1xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x256xf32>
    %197 = stablehlo.subtract %186, %196 : tensor<64x256xf32>
    %198 = stablehlo.exponential %197 : tensor<64x256xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %199 = stablehlo.reduce(%198 init: %cst_28) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %200 = stablehlo.abs %199 : tensor<64xf32>
    %201 = stablehlo.log %200 : tensor<64xf32>
    %202 = stablehlo.add %201, %194 : tensor<64xf32>
    %203 = stablehlo.broadcast_in_dim %188, dims = [0] : (tensor<64xi32>) -> tensor<64x1xi32>
    %204 = call @take_along_axis(%186, %203) : (tensor<64x256xf32>, tensor<64x1xi32>) -> tensor<64x1xf32>
    %205 = stablehlo.reshape %204 : (tensor<64x1xf32>) -> tensor<64xf32>
    %206 = stablehlo.subtract %202, %205 : tensor<64xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %207 = stablehlo.reduce(%206 init: %cst_29) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_30 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %208 = stablehlo.divide %207, %cst_30 : tensor<f32>
    %209 = stablehlo.multiply %202, %202 : tensor<64xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %210 = stablehlo.reduce(%209 init: %cst_31) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_32 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %211 = stablehlo.divide %210, %cst_32 : tensor<f32>
    %cst_33 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %212 = stablehlo.multiply %cst_33, %211 : tensor<f32>
    %213 = stablehlo.add %208, %212 : tensor<f32>
    return %213 : tensor<f32>
  }
  func.func private @_take(%arg0: tensor<256x16xf32> loc(unknown), %arg1: tensor<4x16xi32> loc(unknown)) -> tensor<4x16x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x16xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %c_1 = stablehlo.constant dense<255> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<4x16x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x16x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<4x16x1xi1>, tensor<i1>) -> tensor<4x16xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<256x16xf32>, tensor<4x16x1xi32>) -> tensor<4x16x16xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<4x16xi1>) -> tensor<4x16x16xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x16xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<4x16x16xi1>, tensor<4x16x16xf32>
    return %16 : tensor<4x16x16xf32>
  }
  func.func private @_where(%arg0: tensor<4x16xi1> loc(unknown), %arg1: tensor<4x16xi32> loc(unknown), %arg2: tensor<4x16xi32> loc(unknown)) -> tensor<4x16xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x16xi1>, tensor<4x16xi32>
    return %0 : tensor<4x16xi32>
  }
  func.func private @_var(%arg0: tensor<4x16x16xf32> loc(unknown), %arg1: tensor<i32> loc(unknown)) -> tensor<4x16x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<4x16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x16x16xf32>
    %6 = chlo.square %5 : tensor<4x16x16xf32> -> tensor<4x16x16xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %8 = stablehlo.subtract %cst_1, %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<4x16x1xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.compare GT, %8, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = call @_where_0(%13, %12, %cst_4) : (tensor<i1>, tensor<4x16x1xf32>, tensor<f32>) -> tensor<4x16x1xf32>
    return %14 : tensor<4x16x1xf32>
  }
  func.func private @_where_0(%arg0: tensor<i1> loc(unknown), %arg1: tensor<4x16x1xf32> loc(unknown), %arg2: tensor<f32> loc(unknown)) -> tensor<4x16x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1, 2] : (tensor<16x1xf32>) -> tensor<4x16x1xf32>
    %3 = stablehlo.select %arg0, %arg1, %2 : tensor<i1>, tensor<4x16x1xf32>
    return %3 : tensor<4x16x1xf32>
  }
  func.func private @triu(%arg0: tensor<16x16xi1> loc(unknown)) -> tensor<16x16xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x16xi32>
    %2 = stablehlo.add %0, %1 : tensor<16x16xi32>
    %3 = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %6 = stablehlo.select %4, %5, %arg0 : tensor<16x16xi1>, tensor<16x16xi1>
    return %6 : tensor<16x16xi1>
  }
  func.func private @_where_1(%arg0: tensor<16x16xi1> loc(unknown), %arg1: tensor<f32> loc(unknown), %arg2: tensor<4x4x16x16xf32> loc(unknown)) -> tensor<4x4x16x16xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<16x16xi1>) -> tensor<4x16x16xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x16x16xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3] : (tensor<4x16x16xi1>) -> tensor<4x4x16x16xi1>
    %4 = stablehlo.broadcast_in_dim %2, dims = [1, 2, 3] : (tensor<4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %5 = stablehlo.select %3, %4, %arg2 : tensor<4x4x16x16xi1>, tensor<4x4x16x16xf32>
    return %5 : tensor<4x4x16x16xf32>
  }
  func.func private @relu(%arg0: tensor<4x16x24xf32> loc(unknown)) -> tensor<4x16x24xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x16x24xf32>
    return %1 : tensor<4x16x24xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<64x256xf32> loc(unknown), %arg1: tensor<64x1xi32> loc(unknown)) -> tensor<64x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<64x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<64x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<64x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<64x1xi1>, tensor<64x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<64x1xi32>) -> tensor<64x1x1xi32>
    %c_1 = stablehlo.constant dense<255> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<64x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<64x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<64x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<64x1x1xi1>, tensor<i1>) -> tensor<64x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<64x256xf32>, tensor<64x1x1xi32>) -> tensor<64x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<64x1xi1>, tensor<64x1xf32>
    return %15 : tensor<64x1xf32>
  }
}
