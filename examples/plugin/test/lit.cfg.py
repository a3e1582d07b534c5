# Every .mlir file of this folder is a test.
import os
import lit.formats

config.name = "MyPasses"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.plugin_build + "/test"
config.substitutions.append(("%plugin", config.plugin_build + "/MyPasses.so"))
config.environment["PATH"] = os.pathsep.join([config.meshwright_tools, config.llvm_tools, os.environ["PATH"]])
