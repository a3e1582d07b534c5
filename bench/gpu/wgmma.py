def wg(n, ta, tb):
    regs = n//2
    s = f"static __device__ __forceinline__ void wgmma_n{n}_{ta}{tb}(float (&d)[{regs}], uint64_t a, uint64_t b, int keep) {{\n"
    s += '  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %' + str(regs+2) + ', 0;\\n"\n'
    s += f'    "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{'
    s += ", ".join(f"%{i}" for i in range(regs))
    s += f'}}, %{regs}, %{regs+1}, p, 1, 1, {ta}, {tb};\\n}}\\n"\n    : '
    s += ", ".join(f'"+f"(d[{i}])' for i in range(regs))
    s += '\n    : "l"(a), "l"(b), "r"(keep));\n}\n'
    return s
open("wgmma.h","w").write("#pragma once\n" + "".join(wg(n,ta,tb) for n in (128,256) for ta,tb in ((0,0),(0,1),(1,1))))
