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
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %14 = call @tril(%13) : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %15 = stablehlo.dot_general %14, %12, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x16xf32>, tensor<4x16x16xf32>) -> tensor<16x4x16xf32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x4x16xf32>
    %17 = stablehlo.divide %15, %16 : tensor<16x4x16xf32>
    %18 = stablehlo.transpose %17, dims = [1, 0, 2] : (tensor<16x4x16xf32>) -> tensor<4x16x16xf32>
    %19 = stablehlo.add %12, %18 : tensor<4x16x16xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%19 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %cst_3 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %23 = stablehlo.divide %21, %22 : tensor<4x16x1xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %25 = stablehlo.subtract %19, %24 : tensor<4x16x16xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %26 = call @_var(%19, %c_4) : (tensor<4x16x16xf32>, tensor<i32>) -> tensor<4x16x1xf32>
    %cst_5 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %28 = stablehlo.add %26, %27 : tensor<4x16x1xf32>
    %29 = stablehlo.rsqrt %28 : tensor<4x16x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %31 = stablehlo.multiply %25, %30 : tensor<4x16x16xf32>
    %32 = stablehlo.broadcast_in_dim %arg7, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %35 = stablehlo.multiply %31, %34 : tensor<4x16x16xf32>
    %36 = stablehlo.broadcast_in_dim %arg6, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %39 = stablehlo.add %35, %38 : tensor<4x16x16xf32>
    %40 = stablehlo.dot_general %39, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x32xf32>) -> tensor<4x16x32xf32>
    %41 = stablehlo.slice %40 [0:4, 0:16, 0:16] : (tensor<4x16x32xf32>) -> tensor<4x16x16xf32>
    %42 = stablehlo.slice %40 [0:4, 0:16, 16:24] : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %43 = stablehlo.slice %40 [0:4, 0:16, 24:32] : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %44 = stablehlo.reshape %41 : (tensor<4x16x16xf32>) -> tensor<4x16x4x4xf32>
    %45 = stablehlo.transpose %44, dims = [0, 2, 1, 3] : (tensor<4x16x4x4xf32>) -> tensor<4x4x16x4xf32>
    %46 = stablehlo.reshape %42 : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %47 = stablehlo.transpose %46, dims = [0, 2, 1, 3] : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %48 = stablehlo.reshape %43 : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %49 = stablehlo.transpose %48, dims = [0, 2, 1, 3] : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %50 = stablehlo.iota dim = 0 : tensor<16xi32>
    %51 = stablehlo.iota dim = 0 : tensor<2xi32>
    %c_6 = stablehlo.constant dense<2> : tensor<i32>
    %52 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %53 = stablehlo.multiply %52, %51 : tensor<2xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %54 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %55 = stablehlo.add %54, %53 : tensor<2xi32>
    %56 = stablehlo.convert %55 : (tensor<2xi32>) -> tensor<2xf32>
    %cst_8 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %58 = stablehlo.divide %56, %57 : tensor<2xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %60 = stablehlo.power %59, %58 : tensor<2xf32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %62 = stablehlo.divide %61, %60 : tensor<2xf32>
    %63 = stablehlo.convert %50 : (tensor<16xi32>) -> tensor<16xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %65 = stablehlo.broadcast_in_dim %62, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %66 = stablehlo.broadcast_in_dim %64, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %67 = stablehlo.broadcast_in_dim %65, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %68 = stablehlo.multiply %66, %67 : tensor<16x2xf32>
    %69 = stablehlo.slice %47 [0:4, 0:2, 0:16, 0:4:2] : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %70 = stablehlo.slice %47 [0:4, 0:2, 0:16, 1:4:2] : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %71 = stablehlo.cosine %68 : tensor<16x2xf32>
    %72 = stablehlo.sine %68 : tensor<16x2xf32>
    %73 = stablehlo.broadcast_in_dim %71, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %76 = stablehlo.multiply %69, %75 : tensor<4x2x16x2xf32>
    %77 = stablehlo.broadcast_in_dim %72, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %80 = stablehlo.multiply %70, %79 : tensor<4x2x16x2xf32>
    %81 = stablehlo.subtract %76, %80 : tensor<4x2x16x2xf32>
    %82 = stablehlo.broadcast_in_dim %72, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %85 = stablehlo.multiply %69, %84 : tensor<4x2x16x2xf32>
    %86 = stablehlo.broadcast_in_dim %71, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %89 = stablehlo.multiply %70, %88 : tensor<4x2x16x2xf32>
    %90 = stablehlo.add %85, %89 : tensor<4x2x16x2xf32>
    %91 = stablehlo.broadcast_in_dim %81, dims = [0, 1, 2, 3] : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %92 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2, 3] : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %93 = stablehlo.concatenate %91, %92, dim = 4 : (tensor<4x2x16x2x1xf32>, tensor<4x2x16x2x1xf32>) -> tensor<4x2x16x2x2xf32>
    %94 = stablehlo.reshape %93 : (tensor<4x2x16x2x2xf32>) -> tensor<4x2x16x4xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 3, 4] : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %96 = stablehlo.reshape %95 : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %97 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 3, 4] : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %98 = stablehlo.reshape %97 : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %99 = stablehlo.iota dim = 0 : tensor<16xi32>
    %100 = stablehlo.iota dim = 0 : tensor<2xi32>
    %c_11 = stablehlo.constant dense<2> : tensor<i32>
    %101 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %102 = stablehlo.multiply %101, %100 : tensor<2xi32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %103 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %104 = stablehlo.add %103, %102 : tensor<2xi32>
    %105 = stablehlo.convert %104 : (tensor<2xi32>) -> tensor<2xf32>
    %cst_13 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %107 = stablehlo.divide %105, %106 : tensor<2xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %109 = stablehlo.power %108, %107 : tensor<2xf32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %111 = stablehlo.divide %110, %109 : tensor<2xf32>
    %112 = stablehlo.convert %99 : (tensor<16xi32>) -> tensor<16xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %114 = stablehlo.broadcast_in_dim %111, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %115 = stablehlo.broadcast_in_dim %113, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %116 = stablehlo.broadcast_in_dim %114, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %117 = stablehlo.multiply %115, %116 : tensor<16x2xf32>
    %118 = stablehlo.slice %45 [0:4, 0:4, 0:16, 0:4:2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %119 = stablehlo.slice %45 [0:4, 0:4, 0:16, 1:4:2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %120 = stablehlo.cosine %117 : tensor<16x2xf32>
    %121 = stablehlo.sine %117 : tensor<16x2xf32>
    %122 = stablehlo.broadcast_in_dim %120, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %123 = stablehlo.broadcast_in_dim %122, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %125 = stablehlo.multiply %118, %124 : tensor<4x4x16x2xf32>
    %126 = stablehlo.broadcast_in_dim %121, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %127 = stablehlo.broadcast_in_dim %126, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %129 = stablehlo.multiply %119, %128 : tensor<4x4x16x2xf32>
    %130 = stablehlo.subtract %125, %129 : tensor<4x4x16x2xf32>
    %131 = stablehlo.broadcast_in_dim %121, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %132 = stablehlo.broadcast_in_dim %131, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %134 = stablehlo.multiply %118, %133 : tensor<4x4x16x2xf32>
    %135 = stablehlo.broadcast_in_dim %120, dims = [1, 2] : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [1, 2, 3] : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %137 = stablehlo.broadcast_in_dim %136, dims = [0, 1, 2, 3] : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %138 = stablehlo.multiply %119, %137 : tensor<4x4x16x2xf32>
    %139 = stablehlo.add %134, %138 : tensor<4x4x16x2xf32>
    %140 = stablehlo.broadcast_in_dim %130, dims = [0, 1, 2, 3] : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %141 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2, 3] : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %142 = stablehlo.concatenate %140, %141, dim = 4 : (tensor<4x4x16x2x1xf32>, tensor<4x4x16x2x1xf32>) -> tensor<4x4x16x2x2xf32>
    %143 = stablehlo.reshape %142 : (tensor<4x4x16x2x2xf32>) -> tensor<4x4x16x4xf32>
    %144 = stablehlo.transpose %96, dims = [0, 1, 3, 2] : (tensor<4x4x16x4xf32>) -> tensor<4x4x4x16xf32>
    %145 = stablehlo.dot_general %143, %144, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x16x4xf32>, tensor<4x4x4x16xf32>) -> tensor<4x4x16x16xf32>
    %cst_16 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %146 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %147 = stablehlo.divide %145, %146 : tensor<4x4x16x16xf32>
    %cst_17 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %149 = stablehlo.divide %147, %148 : tensor<4x4x16x16xf32>
    %150 = stablehlo.tanh %149 : tensor<4x4x16x16xf32>
    %cst_18 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %151 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %152 = stablehlo.multiply %151, %150 : tensor<4x4x16x16xf32>
    %c_19 = stablehlo.constant dense<true> : tensor<i1>
    %153 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %154 = call @triu(%153) : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %155 = call @_where_1(%154, %cst_20, %152) : (tensor<16x16xi1>, tensor<f32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %cst_21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %156 = stablehlo.reduce(%155 init: %cst_21) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %cst_22 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %157 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x4x16xf32>
    %158 = stablehlo.maximum %157, %156 : tensor<4x4x16xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %161 = stablehlo.subtract %155, %160 : tensor<4x4x16x16xf32>
    %162 = stablehlo.exponential %161 : tensor<4x4x16x16xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %163 = stablehlo.reduce(%162 init: %cst_23) applies stablehlo.add across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %165 = stablehlo.broadcast_in_dim %164, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %166 = stablehlo.divide %162, %165 : tensor<4x4x16x16xf32>
    %167 = stablehlo.dot_general %98, %166, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x16x4xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x4x16xf32>
    %168 = stablehlo.dot_general %167, %arg3, contracting_dims = [2, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<4x4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x16x16xf32>
    %169 = stablehlo.add %19, %168 : tensor<4x16x16xf32>
    %170 = stablehlo.dot_general %169, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %171 = stablehlo.negate %170 : tensor<4x16x24xf32>
    %172 = stablehlo.exponential %171 : tensor<4x16x24xf32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %173 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %174 = stablehlo.add %173, %172 : tensor<4x16x24xf32>
    %cst_25 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %175 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %176 = stablehlo.divide %175, %174 : tensor<4x16x24xf32>
    %177 = stablehlo.dot_general %169, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %cst_26 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %178 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %179 = stablehlo.multiply %178, %177 : tensor<4x16x24xf32>
    %180 = stablehlo.negate %177 : tensor<4x16x24xf32>
    %cst_27 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %181 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<4x16x24xf32>
    %182 = stablehlo.multiply %180, %181 : tensor<4x16x24xf32>
    %183 = chlo.erfc %182 : tensor<4x16x24xf32> -> tensor<4x16x24xf32>
    %184 = stablehlo.multiply %179, %183 : tensor<4x16x24xf32>
    %185 = stablehlo.abs %184 : tensor<4x16x24xf32>
    %186 = stablehlo.multiply %176, %185 : tensor<4x16x24xf32>
    %187 = stablehlo.dot_general %186, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x24xf32>, tensor<24x16xf32>) -> tensor<4x16x16xf32>
    %188 = stablehlo.add %169, %187 : tensor<4x16x16xf32>
    %189 = stablehlo.multiply %arg0, %arg0 : tensor<16xf32>
    %190 = stablehlo.multiply %189, %arg0 : tensor<16xf32>
    %cst_28 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %191 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %192 = stablehlo.minimum %190, %191 : tensor<16xf32>
    %193 = call @relu(%192) : (tensor<16xf32>) -> tensor<16xf32>
    %194 = chlo.square %193 : tensor<16xf32> -> tensor<16xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [1, 2] : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %197 = stablehlo.broadcast_in_dim %196, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %198 = stablehlo.add %188, %197 : tensor<4x16x16xf32>
    %199 = stablehlo.transpose %arg9, dims = [1, 0] : (tensor<256x16xf32>) -> tensor<16x256xf32>
    %200 = stablehlo.dot_general %198, %199, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x16xf32>, tensor<16x256xf32>) -> tensor<4x16x256xf32>
    %201 = stablehlo.reshape %200 : (tensor<4x16x256xf32>) -> tensor<64x256xf32>
    %202 = stablehlo.slice %arg10 [0:4, 1:17] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %203 = stablehlo.reshape %202 : (tensor<4x16xi32>) -> tensor<64xi32>
    %cst_29 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %204 = stablehlo.reduce(%201 init: %cst_29) applies stablehlo.maximum across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_30 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %205 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %206 = stablehlo.maximum %205, %204 : tensor<64xf32>
    %207 = stablehlo.is_finite %206 : (tensor<64xf32>) -> tensor<64xi1>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %208 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %209 = stablehlo.select %207, %206, %208 : tensor<64xi1>, tensor<64xf32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [0] : (tensor<64xf32>) -> tensor<64x1xf32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x256xf32>
    %212 = stablehlo.subtract %201, %211 : tensor<64x256xf32>
    %213 = stablehlo.exponential %212 : tensor<64x256xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %214 = stablehlo.reduce(%213 init: %cst_32) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %215 = stablehlo.abs %214 : tensor<64xf32>
    %216 = stablehlo.log %215 : tensor<64xf32>
    %217 = stablehlo.add %216, %209 : tensor<64xf32>
    %218 = stablehlo.broadcast_in_dim %203, dims = [0] : (tensor<64xi32>) -> tensor<64x1xi32>
    %219 = call @take_along_axis(%201, %218) : (tensor<64x256xf32>, tensor<64x1xi32>) -> tensor<64x1xf32>
    %220 = stablehlo.reshape %219 : (tensor<64x1xf32>) -> tensor<64xf32>
    %221 = stablehlo.subtract %217, %220 : tensor<64xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %222 = stablehlo.reduce(%221 init: %cst_33) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_34 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %223 = stablehlo.divide %222, %cst_34 : tensor<f32>
    %224 = stablehlo.multiply %217, %217 : tensor<64xf32>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %225 = stablehlo.reduce(%224 init: %cst_35) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_36 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %226 = stablehlo.divide %225, %cst_36 : tensor<f32>
    %cst_37 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %227 = stablehlo.multiply %cst_37, %226 : tensor<f32>
    %228 = stablehlo.add %223, %227 : tensor<f32>
    return %228 : tensor<f32>
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
  func.func private @tril(%arg0: tensor<16x16xf32> loc(unknown)) -> tensor<16x16xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x16xi32>
    %2 = stablehlo.add %0, %1 : tensor<16x16xi32>
    %3 = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<16x16xi1>, tensor<16x16xf32>
    return %6 : tensor<16x16xf32>
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
  func.func private @relu(%arg0: tensor<16xf32> loc(unknown)) -> tensor<16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<16xf32>
    return %1 : tensor<16xf32>
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
