# lit configuration: every .mlir and .test file under test/ is a test.
import glob
import os
import shutil
import subprocess
import lit.formats

config.name = "meshwright"
config.test_format = lit.formats.ShTest(not os.environ.get("LIT_USE_EXTERNAL_SHELL"))
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
# Long tests begin first, so that none runs alone at the end: .lit_test_times.txt beside this has the seconds of a tree that was never tested.
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.meshwright_build, "test")
config.substitutions.append(("%inputs", os.path.join(config.test_source_root, "Inputs")))
config.substitutions.append(("%build", config.meshwright_build))
config.substitutions.append(("%root", os.path.dirname(config.test_source_root)))
# What ./check samples and ./check --all runs whole: `%all` is --all or nothing, `%{12 of 300 seeds}` 300 or 12, and a line
# `%if all %{ .. %}` is one that adds rows and no mechanism, and so is a file of the name `*.all.test`.
everything = bool(os.environ.get("MESHWRIGHT_CHECK_ALL"))
if everything:
    config.available_features.add("all")
else:
    # Files that are rows alone.
    config.excludes += map(os.path.basename, glob.glob(os.path.join(config.test_source_root, "**", "*.all.test"), recursive=True))
around = (r"%\{\d+ of (?=\d)", r"(?<=\d) seeds\}") if everything else (r"%\{(?=\d+ of )", r"(?<=\d) of \d+ seeds\}")
config.substitutions += [("%all", "--all" if everything else ""), *((part, "") for part in around)]
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.meshwright_build, "bin"), config.llvm_tools, os.environ["PATH"]])
config.environment["OMP_NUM_THREADS"] = "1"
# glibc overwrites memory that is freed or new, so that a read of either is no matter of luck.
config.environment["MALLOC_PERTURB_"] = "165"
# Kernels of OpenBLAS for another processor than this one, such as Haswell or Zen: its results are promised there too.
if "OPENBLAS_CORETYPE" in os.environ:
    config.environment["OPENBLAS_CORETYPE"] = os.environ["OPENBLAS_CORETYPE"]
config.environment["MESHWRIGHT_BUILD"] = config.meshwright_build
config.environment["MESHWRIGHT_LLVM"] = os.path.dirname(config.llvm_tools)

# The runtime for GPUs, built where the headers of CUDA are.
if os.path.exists(os.path.join(config.meshwright_build, "runtime", "libmeshwright_runtime_cuda.a")):
    config.available_features.add("cuda-runtime")
    # Runs a command whose executables for GPUs train without one.
    fake = os.path.join(config.meshwright_build, "runtime", "test", "fake_")
    config.substitutions.append(("%gpu", f"env LD_LIBRARY_PATH={fake}gpu:{fake}cudnn FAKE_GPU_COMPUTES=1 "
                                         "FAKE_GPUS=8"))
# ... with cuDNN, built where its headers and its frontend's are.
if os.path.exists(os.path.join(config.meshwright_build, "runtime", "with_cudnn")):
    config.available_features.add("cudnn-runtime")
# SimGrid's simulator of networks, where it was installed when this was configured.
judge = os.path.join(config.meshwright_build, "bin", "simgrid-judge")
if os.path.exists(judge):
    config.available_features.add("simgrid")
    config.substitutions.append(("%simgrid", judge))
# Programs of Debian's that show pages as readers see them.
for program in ("chromium", "mkdocs"):
    if shutil.which(program):
        config.available_features.add(program)
# Slurm's daemons, which ordinary users do not have on their PATH.
if shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin"):
    config.available_features.add("slurm")
# clang's fuzzer and sanitizers.
if glob.glob(os.path.join(os.path.dirname(config.llvm_tools), "lib/clang/*/lib/*/libclang_rt.fuzzer*.a")):
    config.available_features.add("fuzzer")
# XLA's compiler for processors, which judges what --target stablehlo writes. MESHWRIGHT_JAX_PYTHON
# names a Python that has jaxlib.
jax = shutil.which(os.environ.get("MESHWRIGHT_JAX_PYTHON", "python3"))
if jax and subprocess.run([jax, "-c", "import jaxlib"], capture_output=True).returncode == 0:
    config.available_features.add("jaxlib")
    config.substitutions.append(("%jax", jax))
# PyTorch, whose distributed checkpoints are read and written. MESHWRIGHT_TORCH_PYTHON names a Python that has it.
torch = shutil.which(os.environ.get("MESHWRIGHT_TORCH_PYTHON", "python3"))
find = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, ('torch', 'safetensors'))))"
if torch and subprocess.run([torch, "-c", find], capture_output=True).returncode == 0:
    config.available_features.add("torch")
    config.substitutions.append(("%torch", torch))
# The assembler of NVIDIA's toolkit, where there is one; without it its tests are unsupported.
ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
if ptxas:
    config.available_features.add("ptxas")
    config.environment["PATH"] += os.pathsep + os.path.dirname(ptxas)
