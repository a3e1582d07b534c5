module @jit_loss attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<128x32xf32> loc("params['layers'][0]['down']"), %arg1: tensor<32x32xf32> loc("params['layers'][0]['key']"), %arg2: tensor<32xf32> loc("params['layers'][0]['ln_1']['bias']"), %arg3: tensor<32xf32> loc("params['layers'][0]['ln_1']['gain']"), %arg4: tensor<32xf32> loc("params['layers'][0]['ln_2']['bias']"), %arg5: tensor<32xf32> loc("params['layers'][0]['ln_2']['gain']"), %arg6: tensor<32x32xf32> loc("params['layers'][0]['proj']"), %arg7: tensor<32x32xf32> loc("params['layers'][0]['query']"), %arg8: tensor<32x128xf32> loc("params['layers'][0]['up']"), %arg9: tensor<128xf32> loc("params['layers'][0]['up_bias']"), %arg10: tensor<32x32xf32> loc("params['layers'][0]['value']"), %arg11: tensor<128x32xf32> loc("params['layers'][1]['down']"), %arg12: tensor<32x32xf32> loc("params['layers'][1]['key']"), %arg13: tensor<32xf32> loc("params['layers'][1]['ln_1']['bias']"), %arg14: tensor<32xf32> loc("params['layers'][1]['ln_1']['gain']"), %arg15: tensor<32xf32> loc("params['layers'][1]['ln_2']['bias']"), %arg16: tensor<32xf32> loc("params['layers'][1]['ln_2']['gain']"), %arg17: tensor<32x32xf32> loc("params['layers'][1]['proj']"), %arg18: tensor<32x32xf32> loc("params['layers'][1]['query']"), %arg19: tensor<32x128xf32> loc("params['layers'][1]['up']"), %arg20: tensor<128xf32> loc("params['layers'][1]['up_bias']"), %arg21: tensor<32x32xf32> loc("params['layers'][1]['value']"), %arg22: tensor<32xf32> loc("params['ln_f']['bias']"), %arg23: tensor<32xf32> loc("params['ln_f']['gain']"), %arg24: tensor<16x32xf32> loc("params['wpe']"), %arg25: tensor<256x32xf32> loc("params['wte']"), %arg26: tensor<4x17xi32> loc("tokens")) -> (tensor<f32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_3 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_5 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_6 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %cst_7 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %cst_8 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_10 = stablehlo.constant dense<256> : tensor<i32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.slice %arg26 [0:4, 0:16] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %1 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %3 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %4 = stablehlo.add %0, %3 : tensor<4x16xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<4x16xi1>, tensor<4x16xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %7 = "stablehlo.gather"(%arg25, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 32>}> : (tensor<256x32xf32>, tensor<4x16x1xi32>) -> tensor<4x16x32xf32>
    %8 = stablehlo.broadcast_in_dim %arg24, dims = [1, 2] : (tensor<16x32xf32>) -> tensor<1x16x32xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x16x32xf32>) -> tensor<4x16x32xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x16x32xf32>
    %11 = stablehlo.reduce(%10 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<4x16x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %16 = stablehlo.subtract %10, %15 : tensor<4x16x32xf32>
    %17 = stablehlo.multiply %16, %16 : tensor<4x16x32xf32>
    %18 = stablehlo.reduce(%17 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %20 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %21 = stablehlo.divide %19, %20 : tensor<4x16x1xf32>
    %22 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %23 = stablehlo.add %21, %22 : tensor<4x16x1xf32>
    %24 = stablehlo.sqrt %23 : tensor<4x16x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %26 = stablehlo.divide %16, %25 : tensor<4x16x32xf32>
    %27 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %29 = stablehlo.multiply %26, %28 : tensor<4x16x32xf32>
    %30 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %32 = stablehlo.add %29, %31 : tensor<4x16x32xf32>
    %33 = stablehlo.dot_general %32, %arg7, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %34 = stablehlo.reshape %33 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %35 = stablehlo.dot_general %32, %arg1, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %36 = stablehlo.reshape %35 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %37 = stablehlo.dot_general %32, %arg10, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %38 = stablehlo.reshape %37 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %39 = stablehlo.dot_general %34, %36, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>) -> tensor<4x4x16x16xf32>
    %40 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %41 = stablehlo.multiply %39, %40 : tensor<4x4x16x16xf32>
    %42 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %43 = call @tril(%42) : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %44 = call @_where(%43, %41, %cst_5) : (tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16x16xf32>
    %45 = stablehlo.reduce(%44 init: %cst_4) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %46 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x4x16xf32>
    %47 = stablehlo.maximum %46, %45 : tensor<4x4x16xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %50 = stablehlo.subtract %44, %49 : tensor<4x4x16x16xf32>
    %51 = stablehlo.exponential %50 : tensor<4x4x16x16xf32>
    %52 = stablehlo.reduce(%51 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %55 = stablehlo.divide %51, %54 : tensor<4x4x16x16xf32>
    %56 = stablehlo.dot_general %38, %55, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<4x16x4x8xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x8x16xf32>
    %57 = stablehlo.transpose %56, dims = [0, 3, 1, 2] : (tensor<4x4x8x16xf32>) -> tensor<4x16x4x8xf32>
    %58 = stablehlo.reshape %57 : (tensor<4x16x4x8xf32>) -> tensor<4x16x32xf32>
    %59 = stablehlo.dot_general %58, %arg6, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %60 = stablehlo.add %10, %59 : tensor<4x16x32xf32>
    %61 = stablehlo.reduce(%60 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %63 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %64 = stablehlo.divide %62, %63 : tensor<4x16x1xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %66 = stablehlo.subtract %60, %65 : tensor<4x16x32xf32>
    %67 = stablehlo.multiply %66, %66 : tensor<4x16x32xf32>
    %68 = stablehlo.reduce(%67 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %70 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %71 = stablehlo.divide %69, %70 : tensor<4x16x1xf32>
    %72 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %73 = stablehlo.add %71, %72 : tensor<4x16x1xf32>
    %74 = stablehlo.sqrt %73 : tensor<4x16x1xf32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %76 = stablehlo.divide %66, %75 : tensor<4x16x32xf32>
    %77 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %79 = stablehlo.multiply %76, %78 : tensor<4x16x32xf32>
    %80 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %81 = stablehlo.broadcast_in_dim %80, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %82 = stablehlo.add %79, %81 : tensor<4x16x32xf32>
    %83 = stablehlo.dot_general %82, %arg8, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x128xf32>) -> tensor<4x16x128xf32>
    %84 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<128xf32>) -> tensor<1x1x128xf32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0, 1, 2] : (tensor<1x1x128xf32>) -> tensor<4x16x128xf32>
    %86 = stablehlo.add %83, %85 : tensor<4x16x128xf32>
    %87 = stablehlo.multiply %86, %86 : tensor<4x16x128xf32>
    %88 = stablehlo.multiply %87, %86 : tensor<4x16x128xf32>
    %89 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %90 = stablehlo.multiply %89, %88 : tensor<4x16x128xf32>
    %91 = stablehlo.add %86, %90 : tensor<4x16x128xf32>
    %92 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %93 = stablehlo.multiply %92, %91 : tensor<4x16x128xf32>
    %94 = stablehlo.tanh %93 : tensor<4x16x128xf32>
    %95 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %96 = stablehlo.add %95, %94 : tensor<4x16x128xf32>
    %97 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %98 = stablehlo.multiply %97, %96 : tensor<4x16x128xf32>
    %99 = stablehlo.multiply %86, %98 : tensor<4x16x128xf32>
    %100 = stablehlo.dot_general %99, %arg0, contracting_dims = [2] x [0] : (tensor<4x16x128xf32>, tensor<128x32xf32>) -> tensor<4x16x32xf32>
    %101 = stablehlo.add %60, %100 : tensor<4x16x32xf32>
    %102 = stablehlo.reduce(%101 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %104 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %105 = stablehlo.divide %103, %104 : tensor<4x16x1xf32>
    %106 = stablehlo.broadcast_in_dim %105, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %107 = stablehlo.subtract %101, %106 : tensor<4x16x32xf32>
    %108 = stablehlo.multiply %107, %107 : tensor<4x16x32xf32>
    %109 = stablehlo.reduce(%108 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %111 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %112 = stablehlo.divide %110, %111 : tensor<4x16x1xf32>
    %113 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %114 = stablehlo.add %112, %113 : tensor<4x16x1xf32>
    %115 = stablehlo.sqrt %114 : tensor<4x16x1xf32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %117 = stablehlo.divide %107, %116 : tensor<4x16x32xf32>
    %118 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %119 = stablehlo.broadcast_in_dim %118, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %120 = stablehlo.multiply %117, %119 : tensor<4x16x32xf32>
    %121 = stablehlo.broadcast_in_dim %arg13, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %122 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %123 = stablehlo.add %120, %122 : tensor<4x16x32xf32>
    %124 = stablehlo.dot_general %123, %arg18, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %125 = stablehlo.reshape %124 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %126 = stablehlo.dot_general %123, %arg12, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %127 = stablehlo.reshape %126 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %128 = stablehlo.dot_general %123, %arg21, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %129 = stablehlo.reshape %128 : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %130 = stablehlo.dot_general %125, %127, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>) -> tensor<4x4x16x16xf32>
    %131 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %132 = stablehlo.multiply %130, %131 : tensor<4x4x16x16xf32>
    %133 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %134 = call @tril(%133) : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %135 = call @_where(%134, %132, %cst_5) : (tensor<16x16xi1>, tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16x16xf32>
    %136 = stablehlo.reduce(%135 init: %cst_4) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %137 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x4x16xf32>
    %138 = stablehlo.maximum %137, %136 : tensor<4x4x16xf32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %140 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %141 = stablehlo.subtract %135, %140 : tensor<4x4x16x16xf32>
    %142 = stablehlo.exponential %141 : tensor<4x4x16x16xf32>
    %143 = stablehlo.reduce(%142 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %144 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2] : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2, 3] : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %146 = stablehlo.divide %142, %145 : tensor<4x4x16x16xf32>
    %147 = stablehlo.dot_general %129, %146, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<4x16x4x8xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x8x16xf32>
    %148 = stablehlo.transpose %147, dims = [0, 3, 1, 2] : (tensor<4x4x8x16xf32>) -> tensor<4x16x4x8xf32>
    %149 = stablehlo.reshape %148 : (tensor<4x16x4x8xf32>) -> tensor<4x16x32xf32>
    %150 = stablehlo.dot_general %149, %arg17, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %151 = stablehlo.add %101, %150 : tensor<4x16x32xf32>
    %152 = stablehlo.reduce(%151 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %153 = stablehlo.broadcast_in_dim %152, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %154 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %155 = stablehlo.divide %153, %154 : tensor<4x16x1xf32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %157 = stablehlo.subtract %151, %156 : tensor<4x16x32xf32>
    %158 = stablehlo.multiply %157, %157 : tensor<4x16x32xf32>
    %159 = stablehlo.reduce(%158 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %161 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %162 = stablehlo.divide %160, %161 : tensor<4x16x1xf32>
    %163 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %164 = stablehlo.add %162, %163 : tensor<4x16x1xf32>
    %165 = stablehlo.sqrt %164 : tensor<4x16x1xf32>
    %166 = stablehlo.broadcast_in_dim %165, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %167 = stablehlo.divide %157, %166 : tensor<4x16x32xf32>
    %168 = stablehlo.broadcast_in_dim %arg16, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %170 = stablehlo.multiply %167, %169 : tensor<4x16x32xf32>
    %171 = stablehlo.broadcast_in_dim %arg15, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %173 = stablehlo.add %170, %172 : tensor<4x16x32xf32>
    %174 = stablehlo.dot_general %173, %arg19, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x128xf32>) -> tensor<4x16x128xf32>
    %175 = stablehlo.broadcast_in_dim %arg20, dims = [2] : (tensor<128xf32>) -> tensor<1x1x128xf32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 1, 2] : (tensor<1x1x128xf32>) -> tensor<4x16x128xf32>
    %177 = stablehlo.add %174, %176 : tensor<4x16x128xf32>
    %178 = stablehlo.multiply %177, %177 : tensor<4x16x128xf32>
    %179 = stablehlo.multiply %178, %177 : tensor<4x16x128xf32>
    %180 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %181 = stablehlo.multiply %180, %179 : tensor<4x16x128xf32>
    %182 = stablehlo.add %177, %181 : tensor<4x16x128xf32>
    %183 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %184 = stablehlo.multiply %183, %182 : tensor<4x16x128xf32>
    %185 = stablehlo.tanh %184 : tensor<4x16x128xf32>
    %186 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %187 = stablehlo.add %186, %185 : tensor<4x16x128xf32>
    %188 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16x128xf32>
    %189 = stablehlo.multiply %188, %187 : tensor<4x16x128xf32>
    %190 = stablehlo.multiply %177, %189 : tensor<4x16x128xf32>
    %191 = stablehlo.dot_general %190, %arg11, contracting_dims = [2] x [0] : (tensor<4x16x128xf32>, tensor<128x32xf32>) -> tensor<4x16x32xf32>
    %192 = stablehlo.add %151, %191 : tensor<4x16x32xf32>
    %193 = stablehlo.reduce(%192 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %195 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %196 = stablehlo.divide %194, %195 : tensor<4x16x1xf32>
    %197 = stablehlo.broadcast_in_dim %196, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %198 = stablehlo.subtract %192, %197 : tensor<4x16x32xf32>
    %199 = stablehlo.multiply %198, %198 : tensor<4x16x32xf32>
    %200 = stablehlo.reduce(%199 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %201 = stablehlo.broadcast_in_dim %200, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %202 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %203 = stablehlo.divide %201, %202 : tensor<4x16x1xf32>
    %204 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %205 = stablehlo.add %203, %204 : tensor<4x16x1xf32>
    %206 = stablehlo.sqrt %205 : tensor<4x16x1xf32>
    %207 = stablehlo.broadcast_in_dim %206, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %208 = stablehlo.divide %198, %207 : tensor<4x16x32xf32>
    %209 = stablehlo.broadcast_in_dim %arg23, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %211 = stablehlo.multiply %208, %210 : tensor<4x16x32xf32>
    %212 = stablehlo.broadcast_in_dim %arg22, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %213 = stablehlo.broadcast_in_dim %212, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %214 = stablehlo.add %211, %213 : tensor<4x16x32xf32>
    %215 = stablehlo.transpose %arg25, dims = [1, 0] : (tensor<256x32xf32>) -> tensor<32x256xf32>
    %216 = stablehlo.dot_general %214, %215, contracting_dims = [2] x [0] : (tensor<4x16x32xf32>, tensor<32x256xf32>) -> tensor<4x16x256xf32>
    %217 = call @log_softmax(%216) : (tensor<4x16x256xf32>) -> tensor<4x16x256xf32>
    %218 = stablehlo.slice %arg26 [0:4, 1:17] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %219 = stablehlo.broadcast_in_dim %218, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %220 = call @take_along_axis(%217, %219) : (tensor<4x16x256xf32>, tensor<4x16x1xi32>) -> tensor<4x16x1xf32>
    %221 = stablehlo.reduce(%220 init: %cst_9) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x16x1xf32>, tensor<f32>) -> tensor<f32>
    %222 = stablehlo.divide %221, %cst : tensor<f32>
    %223 = stablehlo.negate %222 : tensor<f32>
    return %223 : tensor<f32>
  }
  func.func private @tril(%arg0: tensor<16x16xi1> loc(unknown)) -> tensor<16x16xi1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x16xi32>
    %2 = stablehlo.add %0, %1 : tensor<16x16xi32>
    %3 = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<16x16xi1>, tensor<16x16xi1>
    return %6 : tensor<16x16xi1>
  }
  func.func private @_where(%arg0: tensor<16x16xi1> loc(unknown), %arg1: tensor<4x4x16x16xf32> loc(unknown), %arg2: tensor<f32> loc(unknown)) -> tensor<4x4x16x16xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<4x4x16x16xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x4x16x16xi1>, tensor<4x4x16x16xf32>
    return %3 : tensor<4x4x16x16xf32>
  }
  func.func private @log_softmax(%arg0: tensor<4x16x256xf32> loc(unknown)) -> tensor<4x16x256xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4x16xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x16x256xf32>
    %6 = stablehlo.exponential %5 : tensor<4x16x256xf32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %9 = stablehlo.log %8 : tensor<4x16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<4x16x256xf32>
    return %11 : tensor<4x16x256xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x16x256xf32> loc(unknown), %arg1: tensor<4x16x1xi32> loc(unknown)) -> tensor<4x16x1xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<255> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<256> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x16x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x16x1xi1>, tensor<4x16x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x16x1xi32>) -> tensor<4x16x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x16x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<4x16x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x16x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<4x16x1x1xi1>, tensor<i1>) -> tensor<4x16x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x16x256xf32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x16x1xi1>, tensor<4x16x1xf32>
    return %15 : tensor<4x16x1xf32>
  }
}
